# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled twin of `record`, of `spans.scan_row`, of the page's framing and of the batch's encoding.

It reads what is well-formed and hands everything else to the Python reference, which then says what is wrong: so
there is one set of rules and one set of errors. Bytes are those of `tags` and of docs/protocol.md 2.2 and 3.1.

A record is a view of its page: columns are decoded when they are asked for. Records and columns cannot be part of a
cycle, so the garbage collector does not track them.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_FromDouble
from cpython.long cimport PyLong_FromLongLong
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.string cimport memcmp, memcpy

ctypedef unsigned char byte

include "native/checksum.pxi"
include "native/cells.pxi"
include "native/columns.pxi"
include "native/record.pxi"
include "native/page.pxi"
include "native/batch.pxi"
include "native/spans.pxi"
include "native/matching.pxi"
