# CRC-8 of PlainBuffer (docs/protocol.md 3.2), eight bytes at a time.

cdef byte[8][256] TABLES

cdef void _fill_tables() noexcept:
    cdef int value, bit, number
    for number in range(256):
        value = number
        for bit in range(8):
            value = ((value << 1) ^ 0x07) & 0xFF if value & 0x80 else (value << 1) & 0xFF
        TABLES[0][number] = <byte>value
    for bit in range(1, 8):
        for number in range(256):
            TABLES[bit][number] = TABLES[0][TABLES[bit - 1][number]]

_fill_tables()


cdef inline byte _crc(const byte* data, Py_ssize_t size, byte crc) noexcept nogil:
    cdef Py_ssize_t index
    cdef byte rest
    while size >= 8:
        crc = (TABLES[7][crc ^ data[0]] ^ TABLES[6][data[1]] ^ TABLES[5][data[2]] ^ TABLES[4][data[3]]
               ^ TABLES[3][data[4]] ^ TABLES[2][data[5]] ^ TABLES[1][data[6]] ^ TABLES[0][data[7]])
        data += 8
        size -= 8
    if size <= 0:
        return crc
    # Names and values are short: each of these bytes is looked up without waiting for the one before.
    rest = TABLES[size - 1][crc ^ data[0]]
    for index in range(1, size):
        rest ^= TABLES[size - 1 - index][data[index]]
    return rest


def crc8(data not None, byte crc=0):
    """Continue the checksum `crc` over `data`."""
    cdef const byte[::1] view
    if type(data) is bytes:
        # Most data is; a view costs more than the checksum of a short cell.
        return _crc(<const byte*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), crc)
    view = data
    return _crc(&view[0], view.shape[0], crc) if view.shape[0] else crc
