# What repeats from record to record: the names of cells and their versions, as JSON and as checksums.
#
# The records of a table mostly have the same columns in the same order, and the cells of a record the same version. So
# what stands before a value is kept for each place in a record, and what stands behind it for the last version.

cdef enum:
    # Places that are kept, a power of two; further cells share them.
    PLACES = 32
    # Bytes of a name that is kept.
    KEPT_NAME_BYTES = 64
    # `,{"name":"`, and `","op":"PUT","value":`
    BEFORE_NAME = 10
    BEHIND_NAME = 21
    # `,"version":`, a number and `}`
    VERSION_CHARACTERS = 11 + NUMBER_CHARACTERS + 1


cdef struct PutStart:
    # What begins a put, up to its value, with the comma before it; no name is kept where the size is 0.
    int size
    int name_size
    byte name_crc
    char[BEFORE_NAME + KEPT_NAME_BYTES + BEHIND_NAME] text


cdef struct Repeats:
    PutStart[PLACES] starts
    # What ends a cell of the last version; none is kept where the size is 0.
    long long version
    int version_size
    byte version_crc
    char[VERSION_CHARACTERS] version_text


cdef void _begin_repeats(Repeats* repeats) noexcept nogil:
    cdef int place
    for place in range(PLACES):
        repeats.starts[place].size = repeats.starts[place].name_size = 0
    repeats.version_size = 0


cdef inline bint _keep_start(PutStart* start, const byte* name, Py_ssize_t size) noexcept nogil:
    """Keep the start of puts of a name; False where the name is long, or not itself in JSON."""
    cdef Py_ssize_t at
    start.size = 0
    if size > KEPT_NAME_BYTES:
        return False
    for at in range(size):
        if name[at] < 0x20 or name[at] >= 0x80 or name[at] == 0x22 or name[at] == 0x5C:
            return False
    memcpy(&start.text[0], <const char*>b',{"name":"', BEFORE_NAME)
    memcpy(&start.text[BEFORE_NAME], name, size)
    memcpy(&start.text[BEFORE_NAME + size], <const char*>b'","op":"PUT","value":', BEHIND_NAME)
    start.name_size, start.size = <int>size, <int>(BEFORE_NAME + size + BEHIND_NAME)
    start.name_crc = _crc(name, size, 0)
    return True


cdef inline bint _has_start(PutStart* start, const Cell* cell) noexcept nogil:
    """Whether the start of this put is kept, now or already."""
    if cell.op or not cell.has_value:
        return False
    if start.size and start.name_size == cell.name_size:
        if not memcmp(&start.text[BEFORE_NAME], cell.name, cell.name_size):
            return True
    return _keep_start(start, cell.name, cell.name_size)


cdef int _keep_version(Repeats* repeats, long long version) except -1:
    cdef Text text = Text(&repeats.version_text[0], 0, VERSION_CHARACTERS, NULL)
    _append(&text, b',"version":', 11)
    _append_number(&text, version)
    _append(&text, b"}", 1)
    repeats.version, repeats.version_size = version, <int>text.size
    repeats.version_crc = _crc(<const byte*>&version, STAMP_BYTES, 0)
    return 0


cdef inline int _append_version(Text* text, Repeats* repeats, long long version) except -1:
    """The version of a cell, and the cell's end."""
    if repeats.version != version or not repeats.version_size:
        _keep_version(repeats, version)
    return _append(text, &repeats.version_text[0], repeats.version_size)


cdef inline byte _crc_behind(const Repeats* repeats, const Cell* cell, byte crc) noexcept nogil:
    """The checksum of a put from that of its name; its version is the one that is kept.

    The checksum is linear: that of eight bytes behind others is theirs, moved by eight bytes, and that of the eight.
    """
    crc = _crc(cell.value, cell.value_size, crc)
    return TABLES[7][crc] ^ repeats.version_crc if cell.has_timestamp else crc
