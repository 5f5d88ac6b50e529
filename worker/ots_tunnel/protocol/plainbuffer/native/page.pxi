# What is read: the framing of a page, the same page of records again, and counts over them.

cdef enum:
    # Keys of protobuf: field number and wire type.
    # ReadRecordsResponse: records, next_token, may_more_record.
    PAGE_RECORD = 1 << 3 | 2
    PAGE_NEXT = 2 << 3 | 2
    PAGE_MAY_MORE = 3 << 3 | 0
    # Record: action_type, record, origin_record.
    RECORD_ACTION = 1 << 3 | 0
    RECORD_BODY = 2 << 3 | 2
    RECORD_ORIGIN = 3 << 3 | 2
    # GetStreamRecordResponse numbers records, their fields and the next position alike.
    SHARD_CONSUMED = 3 << 3 | 2
    SHARD_MAY_MORE = 4 << 3 | 0
    # ConsumedCapacity: capacity_unit, capacity_data_size. CapacityUnit: read, write.
    CONSUMED_UNIT = 1 << 3 | 2
    CONSUMED_SIZE = 2 << 3 | 2
    UNIT_READ = 1 << 3 | 0
    UNIT_WRITE = 2 << 3 | 0
    # A field that a message does not have: no key is negative.
    NO_FIELD = -1

cdef inline Py_ssize_t _varint(const byte* data, Py_ssize_t at, Py_ssize_t end, unsigned long long* value) noexcept nogil:
    """Offset after the number at `at`; -1 if it does not end."""
    cdef int shift = 0
    value[0] = 0
    while at < end and shift < 64:
        value[0] |= <unsigned long long>(data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            return at
        shift += 7
    return -1


cdef inline Py_ssize_t _block(const byte* data, Py_ssize_t at, Py_ssize_t end, Py_ssize_t* start) noexcept nogil:
    """Offset after the length-delimited field whose length stands at `at`; its content begins at `start`."""
    cdef unsigned long long size
    at = _varint(data, at, end, &size)
    if at < 0 or size > <unsigned long long>(end - at):
        return -1
    start[0] = at
    return at + <Py_ssize_t>size


cdef Record _read_record(bytes page, const byte* data, Py_ssize_t at, Py_ssize_t end):
    """The record of one field; None if the reference has to read it."""
    cdef unsigned long long action = 0
    cdef Py_ssize_t start = 0, body = -1, body_end = 0, origin = 0, origin_end = 0
    while at < end:
        if data[at] == RECORD_ACTION:
            at = _varint(data, at + 1, end, &action)
        elif data[at] == RECORD_BODY:
            at = body_end = _block(data, at + 1, end, &body)
        elif data[at] == RECORD_ORIGIN:
            at = origin_end = _block(data, at + 1, end, &origin)
        else:
            return None
        if at < 0:
            return None
    if body < 0 or not 1 <= action <= 3:
        return None
    cdef Record record = Record.__new__(Record)
    record.action = _actions[action]
    record._page = page
    record._start = body
    record._size = body_end - body
    if origin_end > origin:
        record.origin = PyBytes_FromStringAndSize(<const char*>data + origin, origin_end - origin)
    return record


cdef bint _is_consumed(const byte* data, Py_ssize_t at, Py_ssize_t end) noexcept nogil:
    """Whether a ConsumedCapacity is complete; False also where only the reference can decide. Nothing of it is used."""
    cdef unsigned long long number = 0
    cdef Py_ssize_t start = 0, after
    cdef bint has_unit = False
    while at < end:
        if data[at] == CONSUMED_UNIT:
            has_unit = True
        elif data[at] != CONSUMED_SIZE:
            return False
        after = _block(data, at + 1, end, &start)
        if after < 0:
            return False
        at = start
        while at < after:
            if data[at] != UNIT_READ and data[at] != UNIT_WRITE:
                return False
            at = _varint(data, at + 1, after, &number)
            if at < 0:
                return False
    return has_unit


cdef tuple _read_page(bytes page, int may_more_key, int consumed_key):
    """Records, next position and may_more of an answer with records; None if the reference has to read it."""
    if _reference is None:
        _bind()
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(page)
    cdef Py_ssize_t at = 0, end = PyBytes_GET_SIZE(page), start = 0
    cdef unsigned long long number = 0
    cdef list records = []
    cdef Record record
    following = may_more = None
    while at < end:
        if data[at] == PAGE_RECORD:
            at = _block(data, at + 1, end, &start)
            if at < 0:
                return None
            record = _read_record(page, data, start, at)
            if record is None:
                return None
            records.append(record)
        elif data[at] == PAGE_NEXT:
            at = _block(data, at + 1, end, &start)
            if at < 0:
                return None
            try:
                following = PyUnicode_DecodeUTF8(<const char*>data + start, at - start, NULL)
            except UnicodeDecodeError:
                return None
        elif data[at] == may_more_key:
            at = _varint(data, at + 1, end, &number)
            if at < 0:
                return None
            may_more = number != 0
        elif data[at] == consumed_key:
            at = _block(data, at + 1, end, &start)
            if at < 0 or not _is_consumed(data, start, at):
                return None
        else:
            return None
    return records, following, may_more


def read_page(bytes page not None):
    """Records, next token and may_more of a ReadRecordsResponse; None if the reference has to read it."""
    cdef tuple found = _read_page(page, PAGE_MAY_MORE, NO_FIELD)
    return None if found is None or found[1] is None else found


def read_shard_page(bytes page not None):
    """Records, next iterator and may_more of a GetStreamRecordResponse; None if the reference has to read it."""
    return _read_page(page, SHARD_MAY_MORE, SHARD_CONSUMED)


def encode_page(list records not None):
    """A ReadRecordsResponse of these records, without previous values; None where only the reference can decide."""
    if _actions is None:
        _bind()
    cdef Py_ssize_t index, size = 2, inner, count = len(records)
    cdef Record record
    cdef byte* target
    cdef int action
    # read once: nothing may change between the size and the copy
    cdef bytearray codes = bytearray(count)
    for index in range(count):
        if type(records[index]) is not Record:
            return None
        record = <Record>records[index]
        for action in range(1, 4):
            if record.action is _actions[action]:
                codes[index] = action
                break
        else:
            return None
        inner = 2 + 1 + _varint_size(record._size) + record._size
        size += 1 + _varint_size(inner) + inner
    cdef bytes page = PyBytes_FromStringAndSize(NULL, size)
    target = <byte*>PyBytes_AS_STRING(page)
    for index in range(count):
        record = <Record>records[index]
        target = _put_block(target, PAGE_RECORD, 2 + 1 + _varint_size(record._size) + record._size)
        target[0] = RECORD_ACTION
        target[1] = codes[index]
        target = _put_block(target + 2, RECORD_BODY, record._size)
        memcpy(target, record._data(), record._size)
        target += record._size
    # the token that every page has
    target[0] = PAGE_NEXT
    target[1] = 0
    return page


def count_actions(list records not None):
    """Number of records of each action that occurs; None if the reference has to count."""
    if _actions is None:
        _bind()
    cdef Py_ssize_t index, puts = 0, updates = 0, deletes = 0
    cdef object put = _actions[1], update = _actions[2], delete = _actions[3], record, action
    for index in range(len(records)):
        record = records[index]
        if type(record) is not Record:
            return None
        action = (<Record>record).action
        if action is put:
            puts += 1
        elif action is update:
            updates += 1
        elif action is delete:
            deletes += 1
        else:
            return None
    return {action: count for action, count in ((put, puts), (update, updates), (delete, deletes)) if count}


def total_size(list records not None):
    """Bytes of all records on the wire; None if the reference has to count."""
    cdef Py_ssize_t index, total = 0
    cdef object record
    for index in range(len(records)):
        record = records[index]
        if type(record) is not Record:
            return None
        total += (<Record>record)._size
        if (<Record>record).origin is not None:
            total += PyBytes_GET_SIZE((<Record>record).origin)
    return total
