# Growing text: what `json` writes is appended here, and becomes bytes once.

cdef extern from "Python.h":
    void* PyMem_Realloc(void* block, size_t size) noexcept
    void* PyMem_Calloc(size_t count, size_t size) noexcept
    void PyMem_Free(void* block) noexcept
    char* PyOS_double_to_string(double value, char code, int precision, int flags, int* kind) except NULL
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char* data, Py_ssize_t size) except NULL
    char* content_of "PyBytes_AS_STRING"(PyObject* whole) noexcept
    int resize_bytes "_PyBytes_Resize"(PyObject** whole, Py_ssize_t size) except -1
    enum:
        Py_DTSF_ADD_DOT_0

cdef enum:
    # What a part of a record comes to.
    WRITTEN = 0
    UNDECIDED = 1
    # Bytes of the first allocation.
    FIRST_ROOM = 4096
    # Characters of a 64-bit number with its sign.
    NUMBER_CHARACTERS = 20
    # Bytes that become characters of a JSON string at a time, and the most characters of one byte.
    PIECE_BYTES = 512
    ESCAPE_CHARACTERS = 6
    WORD_BYTES = 8

cdef const char* DIGITS = b"0123456789abcdef"
cdef const char* PAIRS = (
    b"0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
    b"5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"
)
cdef const char* BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


cdef struct Text:
    char* data
    Py_ssize_t size
    Py_ssize_t room
    # The object of bytes that has the memory; NULL where the text has its own.
    PyObject* whole


cdef int _begin_bytes(Text* text, Py_ssize_t room) except -1:
    """An empty text that becomes bytes without a copy, see `_bytes_of`."""
    text.whole = new_bytes(NULL, room)
    text.data, text.size, text.room = content_of(text.whole), 0, room
    return 0


cdef bytes _bytes_of(Text* text):
    """Hand the memory of a text over that was begun by `_begin_bytes`."""
    cdef PyObject* whole = text.whole
    cdef Py_ssize_t size = text.size
    text[0] = Text(NULL, 0, 0, NULL)
    resize_bytes(&whole, size)
    found = <bytes>whole
    Py_DECREF(found)  # the reference that the text had
    return found


cdef void _free_text(Text* text) noexcept:
    if text.whole is NULL:
        PyMem_Free(text.data)
    else:
        Py_DECREF(<object>text.whole)


cdef int _grow(Text* text, Py_ssize_t more) except -1:
    """Room for `more` bytes behind those that are there. Raises MemoryError."""
    cdef Py_ssize_t room = text.room * 2 if text.room else FIRST_ROOM
    if room - text.size < more:
        room = text.size + more
    if text.whole is not NULL:
        text.data = NULL  # where this fails, there is no object any more
        resize_bytes(&text.whole, room)
        text.data, text.room = content_of(text.whole), room
        return 0
    cdef void* data = PyMem_Realloc(text.data, room)
    if data is NULL:
        raise MemoryError
    text.data = <char*>data
    text.room = room
    return 0


cdef inline int _append(Text* text, const void* data, Py_ssize_t size) except -1:
    if size == 0:
        return 0  # memcpy must not get NULL, which an empty text has
    if text.room - text.size < size:
        _grow(text, size)
    memcpy(text.data + text.size, data, size)
    text.size += size
    return 0


cdef int _append_number(Text* text, long long number) except -1:
    cdef char[NUMBER_CHARACTERS] digits
    cdef Py_ssize_t at = NUMBER_CHARACTERS
    # the smallest number has no positive counterpart among those with a sign
    cdef unsigned long long rest = <unsigned long long>number if number >= 0 else 0 - <unsigned long long>number
    while rest >= 100:
        at -= 2
        memcpy(&digits[at], PAIRS + 2 * (rest % 100), 2)
        rest //= 100
    if rest >= 10:
        at -= 2
        memcpy(&digits[at], PAIRS + 2 * rest, 2)
    else:
        at -= 1
        digits[at] = 48 + rest
    if number < 0:
        at -= 1
        digits[at] = 45
    return _append(text, &digits[at], NUMBER_CHARACTERS - at)


cdef inline void _put_digits(char* target, int count, long long number) noexcept nogil:
    """The last `count` digits of a number."""
    while count:
        count -= 1
        target[count] = <char>(48 + number % 10)
        number //= 10


cdef int _append_base64(Text* text, const byte* data, Py_ssize_t size) except -1:
    cdef Py_ssize_t at = 0, whole = size - size % 3, needed = (size + 2) // 3 * 4
    cdef unsigned int group
    cdef char* out
    if text.room - text.size < needed:
        _grow(text, needed)
    out = text.data + text.size
    text.size += needed
    while at < whole:
        group = (data[at] << 16) | (data[at + 1] << 8) | data[at + 2]
        out[0], out[1] = BASE64[group >> 18], BASE64[(group >> 12) & 63]
        out[2], out[3] = BASE64[(group >> 6) & 63], BASE64[group & 63]
        out += 4
        at += 3
    if size - at == 1:
        group = data[at] << 16
        out[0], out[1], out[2], out[3] = BASE64[group >> 18], BASE64[(group >> 12) & 63], 61, 61
    elif size - at == 2:
        group = (data[at] << 16) | (data[at + 1] << 8)
        out[0], out[1], out[2], out[3] = BASE64[group >> 18], BASE64[(group >> 12) & 63], BASE64[(group >> 6) & 63], 61
    return 0


cdef inline bint _is_tail(byte one) noexcept nogil:
    return one & 0xC0 == 0x80


cdef inline Py_ssize_t _character_bytes(const byte* data, Py_ssize_t left) noexcept nogil:
    """Bytes of the character of several bytes that begins here; 0 where it is no UTF-8, as Python judges it."""
    cdef byte first = data[0]
    if first < 0xC2 or first > 0xF4:
        return 0
    if first < 0xE0:
        return 2 if left >= 2 and _is_tail(data[1]) else 0
    if first < 0xF0:
        if left < 3 or not _is_tail(data[1]) or not _is_tail(data[2]):
            return 0
        # no longer form than needed, and no surrogate
        return 0 if (first == 0xE0 and data[1] < 0xA0) or (first == 0xED and data[1] >= 0xA0) else 3
    if left < 4 or not _is_tail(data[1]) or not _is_tail(data[2]) or not _is_tail(data[3]):
        return 0
    return 0 if (first == 0xF0 and data[1] < 0x90) or (first == 0xF4 and data[1] >= 0x90) else 4


cdef inline bint _are_plain(unsigned long long word) noexcept nogil:
    """Whether eight bytes are ASCII, and none is a control character, a quote or a backslash."""
    cdef unsigned long long ones = 0x0101010101010101, high = 0x8080808080808080
    cdef unsigned long long quote = word ^ (ones * 0x22), backslash = word ^ (ones * 0x5C)
    return not ((word | (word - ones * 0x20) | (quote - ones) | (backslash - ones)) & high)


cdef inline bint _put_short(char* out, const byte* data, Py_ssize_t size) noexcept nogil:
    """Put four to seven bytes; False where one of them is not itself in JSON."""
    cdef unsigned int first = _u32(data), last = _u32(data + size - 4)
    memcpy(out, &first, 4)
    memcpy(out + size - 4, &last, 4)
    return _are_plain(first | <unsigned long long>last << 32)


cdef inline char* _put_escape(char* out, byte one) noexcept nogil:
    """What stands for a control character, a quote or a backslash."""
    cdef char short_form = 0
    out[0] = 0x5C
    if one == 0x22 or one == 0x5C:
        short_form = one
    elif one == 0x0A:
        short_form = 0x6E
    elif one == 0x0D:
        short_form = 0x72
    elif one == 0x09:
        short_form = 0x74
    elif one == 0x08:
        short_form = 0x62
    elif one == 0x0C:
        short_form = 0x66
    if short_form:
        out[1] = short_form
        return out + 2
    memcpy(out + 1, <const char*>b"u00", 3)
    out[4], out[5] = DIGITS[one >> 4], DIGITS[one & 15]
    return out + ESCAPE_CHARACTERS


cdef int _append_escaped(Text* text, const byte* data, Py_ssize_t size) except -1:
    """A JSON string with its quotes; 0, or 1 where the bytes are no UTF-8."""
    cdef Py_ssize_t at = 0, end = 0, bytes_of, left
    cdef unsigned long long word
    cdef byte one
    cdef char* out
    _append(text, b'"', 1)
    while at < size:
        end = min(size, at + PIECE_BYTES)
        # a word, or a character of several bytes, may go beyond the piece
        left = (end - at) * ESCAPE_CHARACTERS + 2 * WORD_BYTES
        if text.room - text.size < left:
            _grow(text, left)
        out = text.data + text.size
        while at < end:
            left = size - at
            if left >= WORD_BYTES:
                memcpy(&word, data + at, WORD_BYTES)
                if _are_plain(word):
                    memcpy(out, &word, WORD_BYTES)
                    at += WORD_BYTES
                    out += WORD_BYTES
                    continue
            elif left >= 4 and _put_short(out, data + at, left):
                at += left
                out += left
                continue
            one = data[at]
            if one >= 0x80:
                bytes_of = _character_bytes(data + at, left)
                if not bytes_of:
                    return 1
                memcpy(out, data + at, bytes_of)
                at += bytes_of
                out += bytes_of
            elif one < 0x20 or one == 0x22 or one == 0x5C:
                out = _put_escape(out, one)
                at += 1
            else:
                out[0] = <char>one
                at += 1
                out += 1
        text.size = out - text.data
    return _append(text, b'"', 1)
