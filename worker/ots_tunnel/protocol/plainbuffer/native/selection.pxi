# Records that a filter passes, with the columns that they keep (see `sinks.middleware.transform`): one pass that
# verifies, without an object per cell. What is joined anew lies in one page.

cdef enum:
    # Cells of a row whose choice is remembered for the cell at the same place of the next row.
    REMEMBERED = 64
    # Most columns of a key.
    MOST_KEYS = 8
    # What becomes of a cell.
    LEFT_OUT = 0
    KEPT = 1
    RENAMED = 2
    REFUSED = 3
    # What becomes of a record.
    UNTOUCHED = 0
    JOINED = 1
    DROPPED = 2
    LEFT_TO_THE_REFERENCE = 3


cdef struct Choice:
    const byte* name
    Py_ssize_t name_size
    byte name_crc
    int rule
    # Of a cell that gets another name.
    const byte* new_name
    Py_ssize_t new_size
    byte new_crc


cdef struct KeyCells:
    Cell[MOST_KEYS] cells
    Py_ssize_t count


cdef int _choose(Choice* choice, const Cell* cell, dict names, bint keeps_others) except -1:
    """The choice for a name: see `select`."""
    cdef bytes name = _span_name(cell.name, cell.name_size)
    found = names.get(name, keeps_others)
    choice.name, choice.name_size = cell.name, cell.name_size
    choice.name_crc = _crc(cell.name, cell.name_size, 0)
    if found is None:
        choice.rule = REFUSED
    elif found is True or found is False:
        choice.rule = KEPT if found is True else LEFT_OUT
    else:
        choice.rule = RENAMED
        choice.new_name, choice.new_size = <const byte*>PyBytes_AS_STRING(<bytes?>found), PyBytes_GET_SIZE(<bytes>found)
        choice.new_crc = _crc(choice.new_name, choice.new_size, 0)
    return 0


cdef int _append_renamed(Text* page, const byte* data, Py_ssize_t start, Py_ssize_t end, const Cell* cell, const Choice* choice, byte* crc) except -1:
    """A cell under its new name, and its checksum in `crc`."""
    cdef byte[CELL_START_BYTES] head = [CELL, CELL_NAME, 0, 0, 0, 0]
    cdef byte[CHECKSUM_BYTES] tail = [CELL_CHECKSUM, 0]
    cdef unsigned int size = <unsigned int>choice.new_size
    cdef Py_ssize_t rest = start + CELL_START_BYTES + cell.name_size
    memcpy(&head[2], &size, 4)
    crc[0] = choice.new_crc
    if cell.has_value:
        crc[0] = _crc(cell.value, cell.value_size, crc[0])
    if cell.has_timestamp:
        crc[0] = _crc(<const byte*>&cell.timestamp_ms, STAMP_BYTES, crc[0])
    if cell.op:
        crc[0] = _crc(&cell.op, 1, crc[0])
    tail[1] = crc[0]
    _append(page, head, CELL_START_BYTES)
    _append(page, choice.new_name, choice.new_size)
    _append(page, data + rest, end - CHECKSUM_BYTES - rest)
    return _append(page, tail, CHECKSUM_BYTES)


cdef int _join(Text* page, Record record, Choice* choices, dict names, bint keeps_others, Py_ssize_t* left_out) except -1:
    """Append a record with the cells that it keeps; what became of it."""
    cdef const byte* data = record._data()
    cdef Py_ssize_t size = record._size, key_end = _scan_key(data, size), at = FIRST_CELL_AT, start, tail, place = 0, kept = 0
    cdef byte crc = 0, joined = 0, mark = 0, own = 0
    cdef byte[CHECKSUM_BYTES] end = [ROW_CHECKSUM, 0]
    cdef byte tag = ROW_DATA
    cdef bint renamed = False
    cdef Cell cell
    cdef Choice* choice
    left_out[0] = 0
    if key_end < 0:
        return LEFT_TO_THE_REFERENCE
    while at < key_end:
        at = _scan_cell(data, at, key_end, &cell)
        if at < 0 or not _is_sound(&cell):
            return LEFT_TO_THE_REFERENCE
        crc = TABLES[0][crc ^ cell.checksum]
    joined = crc
    _append(page, data, key_end)
    if data[at] == ROW_DATA:
        at += 1
        if at >= size or data[at] != CELL:
            return LEFT_TO_THE_REFERENCE
        while at < size and data[at] == CELL:
            start = at
            at = _scan_cell(data, at, size, &cell)
            if at < 0:
                return LEFT_TO_THE_REFERENCE
            choice = &choices[place if place < REMEMBERED else REMEMBERED - 1]
            place += 1
            if choice.name is NULL or choice.name_size != cell.name_size or memcmp(choice.name, cell.name, cell.name_size):
                _choose(choice, &cell, names, keeps_others)
            if choice.rule == REFUSED or not _is_sound_behind(&cell, choice.name_crc):
                return LEFT_TO_THE_REFERENCE
            crc = TABLES[0][crc ^ cell.checksum]
            if choice.rule == LEFT_OUT:
                left_out[0] += 1
                continue
            if not kept:
                _append(page, &tag, TAG_BYTES)
            kept += 1
            own = cell.checksum
            if choice.rule == KEPT:
                _append(page, data + start, at - start)
            else:
                renamed = True
                _append_renamed(page, data, start, at, &cell, choice, &own)
            joined = TABLES[0][joined ^ own]
    tail = _row_end(data, at, size, crc)
    if tail < 0:
        return LEFT_TO_THE_REFERENCE
    if record.action is _actions[ACTION_UPDATE] and left_out[0] and not kept:
        return DROPPED
    if not left_out[0] and not renamed:
        return UNTOUCHED
    mark = tail > at  # the marker is the only byte that may be between the cells and the tail
    _append(page, data + at, size - CHECKSUM_BYTES - at)
    end[1] = TABLES[0][joined ^ mark]
    _append(page, end, CHECKSUM_BYTES)
    return JOINED


cdef int _scan_key_cells(KeyCells* key, const byte* data, Py_ssize_t size) noexcept:
    """The cells of a key; UNDECIDED where one is no plain value, or they are more than a table can have."""
    cdef Py_ssize_t at = FIRST_CELL_AT, end = _scan_key(data, size)
    cdef Cell* cell
    key.count = 0
    if end < 0:
        return UNDECIDED
    while at < end:
        if key.count == MOST_KEYS:
            return UNDECIDED
        cell = &key.cells[key.count]
        at = _scan_cell(data, at, end, cell)
        if at < 0 or cell.value_size < 1 or not _is_text(cell.name, cell.name_size):
            return UNDECIDED
        if cell.value[0] == INTEGER:
            if cell.value_size != NUMBER_BYTES:
                return UNDECIDED
        elif cell.value[0] == STRING or cell.value[0] == BLOB:
            if cell.value_size < TEXT_AT or _u32(cell.value + 1) != cell.value_size - TEXT_AT:
                return UNDECIDED
            if cell.value[0] == STRING and not _is_text(cell.value + TEXT_AT, cell.value_size - TEXT_AT):
                return UNDECIDED
        else:
            return UNDECIDED
        key.count += 1
    return WRITTEN


cdef int _beside(const Cell* cell, object bound) except -2:
    """-1, 0 or 1 as the value of a key is below, equal to or above a bound of its type."""
    cdef long long number, other
    cdef Py_ssize_t size, least
    cdef int found
    if cell.value[0] == INTEGER:
        memcpy(&number, cell.value + 1, 8)
        other = <long long>bound
        return (number > other) - (number < other)
    size = cell.value_size - TEXT_AT
    least = min(size, PyBytes_GET_SIZE(<bytes?>bound))
    found = memcmp(cell.value + TEXT_AT, PyBytes_AS_STRING(<bytes>bound), least) if least else 0
    if found:
        return 1 if found > 0 else -1
    return (size > PyBytes_GET_SIZE(<bytes>bound)) - (size < PyBytes_GET_SIZE(<bytes>bound))


cdef int _order(const KeyCells* key, tuple bounds) except -3:
    """-1, 0 or 1 as a key is below, at or above a bound; 2 where the bound does not fit the key."""
    cdef Py_ssize_t index
    cdef int found = 0
    if len(bounds) > key.count:
        return 2
    for index in range(len(bounds)):
        tag, bound = <tuple?>bounds[index]
        if key.cells[index].value[0] != <byte>tag:
            return 2
        if found == 0:
            found = _beside(&key.cells[index], bound)
    return found


cdef const Cell* _cell_named(const KeyCells* key, bytes name) noexcept:
    """The last one of this name, as a dictionary keeps it; NULL where there is none."""
    cdef Py_ssize_t index
    for index in range(key.count - 1, -1, -1):
        if key.cells[index].name_size == PyBytes_GET_SIZE(name) and not memcmp(key.cells[index].name, PyBytes_AS_STRING(name), key.cells[index].name_size):
            return &key.cells[index]
    return NULL


cdef int _passes(Record record, tuple prefixes, tuple begin, tuple end) except -1:
    """Whether the key of a record passes: UNTOUCHED, DROPPED, or LEFT_TO_THE_REFERENCE."""
    cdef KeyCells key
    cdef const Cell* cell
    cdef int found = UNTOUCHED, order
    if not record._is_sound_throughout() or _scan_key_cells(&key, record._data(), record._size):
        return LEFT_TO_THE_REFERENCE
    if begin:
        order = _order(&key, begin)
        if order == 2:
            return LEFT_TO_THE_REFERENCE
        if order < 0:
            return DROPPED
    if end:
        order = _order(&key, end)
        if order == 2:
            return LEFT_TO_THE_REFERENCE
        if order >= 0:
            return DROPPED
    for name, prefix in prefixes:
        cell = _cell_named(&key, <bytes?>name)
        if cell is NULL or cell.value[0] != STRING:
            return LEFT_TO_THE_REFERENCE
        if cell.value_size - TEXT_AT < len(<bytes?>prefix) or memcmp(cell.value + TEXT_AT, PyBytes_AS_STRING(<bytes>prefix), len(<bytes>prefix)):
            found = DROPPED
    return found


def select(
    list records not None, Py_ssize_t first, int actions, tuple prefixes not None, tuple begin not None,
    tuple end not None, dict names, bint keeps_others, Py_ssize_t most
):
    """Records from `first` on that pass, with the columns they keep.

    Args:
        actions: a bit for each action that passes, by its number.
        prefixes: name of a key column and the beginning of its value.
        begin, end: tag and value of the bounds of the first key columns; empty for no bound.
        names: what becomes of a column: False leaves it out, True keeps it, bytes are its new name, None is left to the
            reference. None for all of them keeps the records as they are.
        keeps_others: whether columns without an entry are kept.

    Returns:
        The records, how many did not pass, how many cells were left out, and the place of the first record that is not
        among them: it has to be left to the reference, or the records before it have `most` bytes.
    """
    cdef Choice[REMEMBERED] choices
    cdef Text page = Text(NULL, 0, 0, NULL)
    cdef Py_ssize_t at = first, count = len(records), total = 0, before, left = 0, dropped = 0, cells = 0
    cdef int found
    cdef list passed = [], joined = []
    cdef Record record, made
    cdef bint filters_keys = bool(prefixes or begin or end)
    if _reference is None:
        _bind()
    memset(choices, 0, sizeof(choices))
    try:
        while at < count and total < most:
            if type(records[at]) is not Record:
                break
            record = <Record>records[at]
            found, left, before = UNTOUCHED, 0, page.size
            if not actions >> <int>record.action & 1:
                found = DROPPED
            elif filters_keys:
                found = _passes(record, prefixes, begin, end)
            if found == UNTOUCHED and names is not None and record.action is not _actions[ACTION_DELETE]:
                found = _join(&page, record, choices, names, keeps_others, &left)
            if found != JOINED:
                page.size = before
            if found == LEFT_TO_THE_REFERENCE:
                break
            if found == DROPPED:
                dropped += 1
            elif found == UNTOUCHED:
                passed.append(record)
            else:
                made = Record.__new__(Record)
                made.action, made.origin, made._key = record.action, record.origin, record._key
                made._start, made._size = before, page.size - before
                made._sound = True
                joined.append(made)
                passed.append(made)
            cells += left
            total += record._size
            at += 1
        if joined:
            own = PyBytes_FromStringAndSize(page.data, page.size)
            for made in joined:
                made._page = own
        return passed, dropped, cells, at
    finally:
        PyMem_Free(page.data)
