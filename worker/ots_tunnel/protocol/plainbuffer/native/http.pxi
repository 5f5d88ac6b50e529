# The head of an HTTP answer (see `http.wire`): what the service sends, everything else is left to the reference.

cdef enum:
    CARRIAGE_RETURN = 0x0D
    SPACE = 0x20
    TAB = 0x09
    COLON = 0x3A
    LAST_ASCII = 0x7E
    # "HTTP/1.1 200"
    VERSION_BYTES = 8
    STATUS_LINE_BYTES = VERSION_BYTES + 1 + 3
    # Longest name of a header that is read here.
    MOST_NAME_BYTES = 64


cdef inline bint _is_blank(byte letter) noexcept nogil:
    return letter == SPACE or letter == TAB


cdef Py_ssize_t _line_end(const byte* data, Py_ssize_t at, Py_ssize_t size) noexcept nogil:
    """Offset of the line break at the end of a line, or of the end of the head; -1 for a line that is no plain text."""
    while at < size and (SPACE <= data[at] <= LAST_ASCII or data[at] == TAB):
        at += 1
    if at < size and (size - at < 2 or data[at] != CARRIAGE_RETURN or data[at + 1] != 0x0A):
        return -1
    return at


cdef int _add_header(dict headers, const byte* data, Py_ssize_t at, Py_ssize_t end) except -1:
    """Add the header of one line; 0 where the reference has to read it."""
    cdef byte[MOST_NAME_BYTES] lower
    cdef Py_ssize_t size = 0, start = at
    cdef str name
    while at < end and data[at] != COLON:
        if size == MOST_NAME_BYTES or _is_blank(data[at]):
            return 0
        lower[size] = data[at] | 0x20 if 0x41 <= data[at] <= 0x5A else data[at]
        size += 1
        at += 1
    if at == end or not size:
        return 0
    at += 1
    while at < end and _is_blank(data[at]):
        at += 1
    while end > at and _is_blank(data[end - 1]):
        end -= 1
    name = PyUnicode_DecodeUTF8(<const char*>lower, size, NULL)
    if name in headers:
        return 0
    headers[name] = PyUnicode_DecodeUTF8(<const char*>data + at, end - at, NULL)
    return 1


def parse_head(bytes head not None):
    """Version, status and headers of an answer; None where the reference has to read it."""
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(head)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(head), at, end
    cdef dict headers = {}
    cdef int status = 0
    if size < STATUS_LINE_BYTES or memcmp(data, <const char*>b"HTTP/1.1 ", VERSION_BYTES + 1):
        return None
    for at in range(VERSION_BYTES + 1, STATUS_LINE_BYTES):
        if not 0x30 <= data[at] <= 0x39:
            return None
        status = 10 * status + data[at] - 0x30
    at = STATUS_LINE_BYTES
    if status < 100 or (at < size and data[at] != SPACE and data[at] != CARRIAGE_RETURN):
        return None
    at = _line_end(data, at, size)
    while at >= 0:
        if at == size:
            return b"HTTP/1.1", status, headers
        at += 2
        end = _line_end(data, at, size)
        if end < 0 or not _add_header(headers, data, at, end):
            return None
        at = end
    return None


def room_for(Py_ssize_t size):
    """Bytes to be filled before they are used, and the memory for that: one byte more, where the end of bytes stands.

    The memory is there as long as the bytes are. Its last byte may be written only where the bytes are not used then.
    """
    cdef bytes content = PyBytes_FromStringAndSize(NULL, size)
    return content, PyMemoryView_FromMemory(PyBytes_AS_STRING(content), size + 1, PyBUF_WRITE)
