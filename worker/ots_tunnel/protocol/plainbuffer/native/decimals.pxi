# Doubles as text: the shortest one that is read as the same double, as `repr` writes it.

cdef enum:
    # Decimals that are tried before the general way, which takes ten times as long.
    MOST_DECIMALS = 6

cdef double[MOST_DECIMALS + 1] POWERS = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6]


cdef int _append_few_decimals(Text* text, double value) except -1:
    """A double that is a number of at most 15 digits, of which few are decimals; UNDECIDED where it is none.

    Number and power of ten are exact, so their quotient is the double that is next to the decimal number: the one that
    a reader gets. No two numbers of 15 digits have the same double, so the one with the fewest decimals is the shortest.
    """
    cdef double size = -value if value < 0 else value, scaled
    cdef long long number, power = 1
    cdef int decimals
    cdef char[2 * NUMBER_CHARACTERS] digits
    # Smaller and larger ones have an exponent; both zeros are left out, since the sign of one is not that of a number.
    if not 0.001 <= size < 1e15:
        return UNDECIDED
    for decimals in range(MOST_DECIMALS + 1):
        scaled = size * POWERS[decimals] + 0.5
        if scaled >= 1e15:
            return UNDECIDED
        number = <long long>scaled
        if <double>number / POWERS[decimals] == size:
            break
        power *= 10
    else:
        return UNDECIDED
    if value < 0:
        _append(text, b"-", 1)
    _append_number(text, number // power)
    _append(text, b".", 1)
    if decimals == 0:
        return _append(text, b"0", 1)
    _put_digits(digits, decimals, number % power)
    return _append(text, digits, decimals)


cdef int _append_double(Text* text, double value) except -1:
    cdef char* digits
    if not _append_few_decimals(text, value):
        return WRITTEN
    if not isfinite(value):
        if isnan(value):
            return _append(text, b'{"double":"nan"}', 16)
        return _append(text, b'{"double":"inf"}', 16) if value > 0 else _append(text, b'{"double":"-inf"}', 17)
    digits = PyOS_double_to_string(value, b"r", 0, Py_DTSF_ADD_DOT_0, NULL)
    try:
        _append(text, digits, strlen(digits))
    finally:
        PyMem_Free(digits)
    return WRITTEN
