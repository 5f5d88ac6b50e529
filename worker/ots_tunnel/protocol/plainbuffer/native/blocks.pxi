# Columns that grow, in the layout of Arrow: what is filled here reaches pyarrow by the buffer protocol, without a copy.

from cpython.buffer cimport PyBuffer_FillInfo

cdef class Block:
    """Memory of one buffer of a column; it can be read as bytes."""

    cdef Text _text

    def __dealloc__(self):
        PyMem_Free(self._text.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        # an empty buffer has an address as well
        PyBuffer_FillInfo(view, self, self._text.data if self._text.data is not NULL else <char*>DIGITS, self._text.size, True, flags)

    def __len__(self):
        return self._text.size


cdef Block _block_of(Text* text):
    """Hand the memory of a text over, without the room that it has left: columns are held for a while."""
    cdef Block block = Block.__new__(Block)
    cdef void* data = PyMem_Realloc(text.data, text.size) if text.size else NULL
    block._text = text[0]
    text[0] = Text(NULL, 0, 0, NULL)
    if data is not NULL:
        block._text.data = <char*>data
    return block


cdef Block _bits(const Text* codes, byte least, byte most):
    """A bit for each code: whether it lies from `least` to `most`."""
    cdef Text bits = Text(NULL, 0, 0, NULL)
    cdef const byte* data = <const byte*>codes.data
    cdef Py_ssize_t at = 0, index, count = codes.size
    cdef Py_ssize_t whole = count - count % 8
    cdef byte packed, bit, span = most - least
    if count == 0:
        return _block_of(&bits)
    _grow(&bits, (count + 7) // 8)
    while at < whole:
        packed = 0
        for index in range(8):
            bit = <byte>(data[at + index] - least) <= span
            packed |= bit << index
        bits.data[bits.size] = packed
        bits.size += 1
        at += 8
    if at < count:
        packed = 0
        for index in range(count - at):
            bit = <byte>(data[at + index] - least) <= span
            packed |= bit << index
        bits.data[bits.size] = packed
        bits.size += 1
    return _block_of(&bits)


cdef inline int _append_code(Text* text, byte code) except -1:
    if text.room == text.size:
        _grow(text, 1)
    text.data[text.size] = code
    text.size += 1
    return 0


cdef inline int _append_int32(Text* text, int number) except -1:
    return _append(text, &number, 4)


cdef inline int _append_int64(Text* text, long long number) except -1:
    return _append(text, &number, 8)


cdef bint _is_text(const byte* data, Py_ssize_t size) noexcept nogil:
    """Whether bytes are UTF-8, as Python judges it."""
    cdef Py_ssize_t at = 0, bytes_of
    cdef unsigned long long word, high = 0x8080808080808080
    while at < size:
        if size - at >= 8:
            memcpy(&word, data + at, 8)
            if not word & high:
                at += 8
                continue
        if data[at] < 0x80:
            at += 1
            continue
        bytes_of = _character_bytes(data + at, size - at)
        if not bytes_of:
            return False
        at += bytes_of
    return True
