# Records in the envelopes of `cloud_events` and `kafka.message`: the form of `json`, and what stands around it.

cdef enum:
    DAY_SECONDS = 86400
    # Days of 400 years, and those from 1st March 0000 to 1970.
    DAYS_OF_ERA = 146097
    DAYS_BEFORE_1970 = 719468
    # The reference has seconds as a double, which holds microseconds exactly below 2^32 seconds (year 2106).
    EXACT_SECONDS_BITS = 32
    # Characters of a time: YYYY-MM-DDTHH:MM:SS.ffffffZ
    TIME_CHARACTERS = 27


cdef int _append_time(Text* text, long long timestamp_us) except -1:
    """A time of UTC with microseconds; UNDECIDED where the reference would round."""
    cdef long long second = timestamp_us // 1000000, day, of_day, of_era, year
    cdef int month, of_year
    cdef char[TIME_CHARACTERS] out
    if timestamp_us < 0 or second >> EXACT_SECONDS_BITS:
        return UNDECIDED
    # Years begin on 1st March here, so that a leap day is the last of its year.
    day = second // DAY_SECONDS + DAYS_BEFORE_1970
    of_day = second % DAY_SECONDS
    of_era = day % DAYS_OF_ERA
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = <int>(of_era - (365 * year + year // 4 - year // 100))
    # The months from March on have 31, 30, 31, 30, 31 days, twice, and then 31 and the rest: 153 days in five months.
    month = (5 * of_year + 2) // 153
    year += day // DAYS_OF_ERA * 400 + (1 if month >= 10 else 0)
    _put_digits(out, 4, year)
    out[4] = out[7] = 45
    _put_digits(out + 5, 2, month + 3 if month < 10 else month - 9)
    _put_digits(out + 8, 2, of_year - (153 * month + 2) // 5 + 1)
    out[10], out[13], out[16], out[19], out[26] = 84, 58, 58, 46, 90
    _put_digits(out + 11, 2, of_day // 3600)
    _put_digits(out + 14, 2, of_day // 60 % 60)
    _put_digits(out + 17, 2, of_day % 60)
    _put_digits(out + 20, 6, timestamp_us % 1000000)
    return _append(text, out, TIME_CHARACTERS)


cdef int _append_event(Text* text, Text* key, Record record, Repeats* repeats, tuple heads, identity) except -1:
    """One event; UNDECIDED where only the reference can decide, with a part of it written. `key` is used and left."""
    cdef Layout row
    cdef byte crc = 0
    cdef bytes begin = <bytes>heads[0], middle = <bytes>heads[1], data = <bytes>heads[2], name
    key.size = 0
    if not _lay_out(record, &row) or _append_key(key, row.data, row.key_end, &crc):
        return UNDECIDED
    _append(text, PyBytes_AS_STRING(begin), PyBytes_GET_SIZE(begin))
    if row.has_sequence:
        _append_sequence(text, &row, b".")
    else:
        name = <bytes?>identity(record.body)
        _append(text, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name))
    _append(text, PyBytes_AS_STRING(middle), PyBytes_GET_SIZE(middle))
    if _append_escaped(text, <const byte*>key.data, key.size):
        return UNDECIDED
    _append_head(text, &row, data)
    _append(text, key.data, key.size)
    if _append_columns(text, &row, repeats, crc):
        return UNDECIDED
    if row.has_sequence:
        _append(text, b',"time":"', 9)
        if _append_time(text, row.timestamp_us):
            return UNDECIDED
        _append(text, b'"', 1)
    return _append(text, b"}", 1)


def cloud_events(
    list records not None, Py_ssize_t first, Py_ssize_t end, dict heads not None, identity not None, Py_ssize_t most
):
    """The events of the records from `first` to `end`, and the place of the first record that is not among them.

    It ends at a record that only the reference can decide, or when the events have `most` bytes. The heads of an action
    are what stands before the identity, from there to the subject, and from there to the sequence in the data;
    `identity` makes that of a record without a sequence from its body.
    """
    cdef Text text = Text(NULL, 0, 0, NULL), key = Text(NULL, 0, 0, NULL)
    cdef Repeats repeats
    cdef Py_ssize_t at = first, size = 0
    cdef list events = []
    _begin_repeats(&repeats)
    end = min(end, <Py_ssize_t>len(records))
    try:
        while at < end and size < most:
            record = records[at]
            text.size = 0
            if type(record) is not Record or _append_event(
                &text, &key, <Record>record, &repeats, <tuple>heads[(<Record>record).action], identity
            ):
                break
            events.append(PyBytes_FromStringAndSize(text.data, text.size))
            size += text.size
            at += 1
        return events, at
    finally:
        PyMem_Free(text.data)
        PyMem_Free(key.data)


cdef int _append_key_values(Text* text, const Layout* row) except -1:
    """The values of the key as an array; its cells are verified by `_append_key`."""
    cdef Py_ssize_t at = FIRST_CELL_AT
    cdef Cell cell
    _append(text, b"[", 1)
    while at < row.key_end:
        if at > FIRST_CELL_AT:
            _append(text, b",", 1)
        at = _scan_cell(row.data, at, row.key_end, &cell)
        if _append_value(text, cell.value, cell.value_size, True):
            return UNDECIDED
    return _append(text, b"]", 1)


cdef tuple _message(Text* text, Record record, Repeats* repeats, bytes head, list headers, str name):
    """Key, value and headers of one message; None where only the reference can decide."""
    cdef Layout row
    cdef byte crc = 0
    cdef bytes key, value
    if not _lay_out(record, &row):
        return None
    text.size = 0
    _append_head(text, &row, head)
    if _append_key(text, row.data, row.key_end, &crc) or _append_columns(text, &row, repeats, crc):
        return None
    value = PyBytes_FromStringAndSize(text.data, text.size)
    text.size = 0
    if _append_key_values(text, &row):
        return None
    key = PyBytes_FromStringAndSize(text.data, text.size)
    if row.has_sequence:
        text.size = 0
        _append_sequence(text, &row, b".")
        headers = headers + [(name, PyBytes_FromStringAndSize(text.data, text.size))]
    return key, value, headers


def messages(
    list records not None, Py_ssize_t first, dict heads not None, dict headers not None, str name not None, Py_ssize_t most
):
    """Key, value and headers of the messages of the records from `first` on, and the place of the first that is left.

    It ends at a record that only the reference can decide, or when the values have `most` bytes. The headers of an
    action are followed by one with this name and the sequence, if there is one.
    """
    cdef Text text = Text(NULL, 0, 0, NULL)
    cdef Repeats repeats
    cdef Py_ssize_t at = first, count = len(records), size = 0
    cdef list made = []
    cdef tuple message
    _begin_repeats(&repeats)
    try:
        while at < count and size < most:
            record = records[at]
            if type(record) is not Record:
                break
            action = (<Record>record).action
            message = _message(&text, <Record>record, &repeats, <bytes>heads[action], <list>headers[action], name)
            if message is None:
                break
            made.append(message)
            size += PyBytes_GET_SIZE(<bytes>message[1])
            at += 1
        return made, at
    finally:
        PyMem_Free(text.data)
