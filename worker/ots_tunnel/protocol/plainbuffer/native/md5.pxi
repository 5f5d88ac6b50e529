# MD5 of several bodies at a time: a vector holds the same word of eight of them (RFC 1321).
#
# Each step of MD5 needs the result of the one before, so one body alone leaves most of a processor unused. So do four of
# them, one register of SSE2: two registers take their steps in turn.

cdef enum:
    LANES = 8
    MD5_BLOCK = 64
    MD5_WORDS = 4
    MD5_BYTES = 16
    # Where the length of a body stands in its last block.
    LENGTH_AT = 56

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    typedef uint32_t ots_vector __attribute__((vector_size(32)));

    static ots_vector ots_sines[64];

    static void ots_set_sine(int step, uint32_t sine) {
        ots_sines[step] = (ots_vector){sine, sine, sine, sine, sine, sine, sine, sine};
    }

    static inline uint32_t ots_word(const unsigned char *at) {
        uint32_t word;
        memcpy(&word, at, 4);
        return word;
    }

    /* `x` comes from the step before: whatever does not need it is computed before it. */
    #define OTS_F(sum, x, y, z) sum += z ^ (x & (y ^ z));
    #define OTS_G(sum, x, y, z) sum += y & ~z; sum += x & z;
    #define OTS_H(sum, x, y, z) sum += x ^ (y ^ z);
    #define OTS_I(sum, x, y, z) sum += y ^ (x | ~z);
    #define OTS_STEP(f, a, b, c, d, of, by, n) a += in[(of) & 15] + ots_sines[n]; f(a, b, c, d) a = b + ((a << by) | (a >> (32 - by)));
    #define OTS_TWO(f, of, next, by, then, n) OTS_STEP(f, a, b, c, d, of, by, n) OTS_STEP(f, d, a, b, c, next, then, n + 1)
    #define OTS_BACK(f, of, next, by, then, n) OTS_STEP(f, c, d, a, b, of, by, n) OTS_STEP(f, b, c, d, a, next, then, n + 1)
    /* Four steps; the first one takes the word `of`, each further one the word `more` behind. */
    #define OTS_FOUR(f, of, more, r, s, t, u, n) OTS_TWO(f, of, of + more, r, s, n) OTS_BACK(f, of + 2 * more, of + 3 * more, t, u, n + 2)
    #define OTS_ROUND(f, of, next, more, r, s, t, u, n) \\
        OTS_FOUR(f, of, more, r, s, t, u, n) OTS_FOUR(f, of + next, more, r, s, t, u, n + 4) \\
        OTS_FOUR(f, of + 2 * next, more, r, s, t, u, n + 8) OTS_FOUR(f, of + 3 * next, more, r, s, t, u, n + 12)
    #define OTS_WORDS(from) (ots_vector){ \\
        ots_word(bodies[0] + from), ots_word(bodies[1] + from), ots_word(bodies[2] + from), ots_word(bodies[3] + from), \\
        ots_word(bodies[4] + from), ots_word(bodies[5] + from), ots_word(bodies[6] + from), ots_word(bodies[7] + from)}

    /* Take the next blocks of all lanes; `state` has the first words of all bodies, then the second ones, and so on. */
    static void ots_md5_blocks(uint32_t *state, const unsigned char **bodies, Py_ssize_t blocks) {
        ots_vector before[4], in[16];
        memcpy(before, state, sizeof before);
        for (Py_ssize_t at = 0; at < 64 * blocks; at += 64) {
            ots_vector a = before[0], b = before[1], c = before[2], d = before[3];
            for (int word = 0; word < 16; word++)
                in[word] = OTS_WORDS(at + 4 * word);
            OTS_ROUND(OTS_F, 0, 4, 1, 7, 12, 17, 22, 0)
            OTS_ROUND(OTS_G, 1, 20, 5, 5, 9, 14, 20, 16)
            OTS_ROUND(OTS_H, 5, 12, 3, 4, 11, 16, 23, 32)
            OTS_ROUND(OTS_I, 0, 28, 7, 6, 10, 15, 21, 48)
            before[0] += a;
            before[1] += b;
            before[2] += c;
            before[3] += d;
        }
        memcpy(state, before, sizeof before);
    }
    """
    void ots_set_sine(int step, unsigned int sine)
    void ots_md5_blocks(unsigned int* state, const byte** bodies, Py_ssize_t blocks) nogil


cdef int _fill_sines() except -1:
    """The constant of each step: the sine of its number, from 1 on, as a fraction of 2^32."""
    from math import sin

    cdef int step
    for step in range(MD5_BLOCK):
        ots_set_sine(step, <unsigned int>int(abs(sin(step + 1)) * 4294967296))
    return 0

_fill_sines()

cdef unsigned int[MD5_WORDS] MD5_START = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476]


cdef struct Lane:
    # Place of the body among all, -1 for none.
    Py_ssize_t body
    # Blocks that can be taken from `at` on.
    const byte* at
    Py_ssize_t blocks
    # The end of the body with its padding: one or two blocks, 0 once they are taken.
    Py_ssize_t last_blocks
    byte[2 * MD5_BLOCK] last


cdef void _begin_lane(Lane* lane, unsigned int* state, int number, Py_ssize_t place, bytes body) noexcept:
    cdef const byte* data = <const byte*>PyBytes_AS_STRING(body)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(body)
    cdef Py_ssize_t rest = size % MD5_BLOCK
    cdef unsigned long long bits = <unsigned long long>size * 8
    cdef int word
    lane.body, lane.at, lane.blocks = place, data, size // MD5_BLOCK
    lane.last_blocks = 1 if rest < LENGTH_AT else 2
    memset(lane.last, 0, sizeof(lane.last))
    memcpy(lane.last, data + size - rest, rest)
    lane.last[rest] = 0x80
    memcpy(lane.last + lane.last_blocks * MD5_BLOCK - 8, &bits, 8)
    for word in range(MD5_WORDS):
        state[word * LANES + number] = MD5_START[word]


cdef bytes _digest(const unsigned int* state, int number):
    cdef bytes digest = PyBytes_FromStringAndSize(NULL, MD5_BYTES)
    cdef int word
    for word in range(MD5_WORDS):
        memcpy(PyBytes_AS_STRING(digest) + 4 * word, &state[word * LANES + number], 4)
    return digest


def md5_of(list bodies not None):
    """The MD5 of each body."""
    cdef unsigned int[MD5_WORDS * LANES] state
    cdef Lane[LANES] lanes
    cdef const byte* at[LANES]
    cdef const byte* any_at
    cdef Py_ssize_t following = 0, count = len(bodies), blocks
    cdef int number
    cdef list digests = [None] * count
    memset(state, 0, sizeof(state))
    for number in range(LANES):
        lanes[number].body = -1
        lanes[number].blocks = lanes[number].last_blocks = 0
    while True:
        blocks, any_at = 0, NULL
        for number in range(LANES):
            while not lanes[number].blocks:
                if lanes[number].last_blocks:
                    lanes[number].at = lanes[number].last
                    lanes[number].blocks = lanes[number].last_blocks
                    lanes[number].last_blocks = 0
                    break
                if lanes[number].body >= 0:
                    digests[lanes[number].body] = _digest(state, number)
                    lanes[number].body = -1
                if following == count:
                    break
                _begin_lane(&lanes[number], state, number, following, <bytes?>bodies[following])
                following += 1
            if lanes[number].blocks and (any_at is NULL or lanes[number].blocks < blocks):
                blocks, any_at = lanes[number].blocks, lanes[number].at
        if any_at is NULL:
            return digests
        for number in range(LANES):
            # a lane without a body repeats another one's blocks
            at[number] = lanes[number].at if lanes[number].blocks else any_at
        ots_md5_blocks(state, at, blocks)
        for number in range(LANES):
            if lanes[number].blocks:
                lanes[number].at += blocks * MD5_BLOCK
                lanes[number].blocks -= blocks
