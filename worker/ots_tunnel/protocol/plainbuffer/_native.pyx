# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The compiled twin of the codec and of the forms that sinks and Spark write.

Theory of operation
-------------------
Parts, one file each, compiled as one module so that the C compiler can inline across them:

    native/checksum.pxi   CRC-8, eight bytes at a time
    native/cells.pxi      the grammar: cells and rows, found and verified; C structs, no Python objects
    native/columns.pxi    names, values, and the class Column
    native/record.pxi     the class Record, a view of its page
    native/page.pxi       framing of the answers that hold records, counts over them
    native/md5.pxi        MD5 of several bodies at a time
    native/http.pxi       the head of an HTTP answer
    native/batch.pxi      a BatchWriteRowRequest from records, its answer, the plan of a page's requests
    native/spans.pxi      scan_row
    native/rows.pxi       the rows of a page, one by one
    native/matching.pxi   the equal rows of two pages
    native/text.pxi       text that grows: numbers, base64, strings of JSON
    native/decimals.pxi   doubles as text
    native/repeats.pxi    what repeats from record to record in JSON
    native/json.pxi       the JSON form of records
    native/envelopes.pxi  CloudEvents and messages of Kafka
    native/blocks.pxi     columns that grow, in the layout of Arrow
    native/change_log.pxi records as columns of the change log
    native/typed.pxi      rows of a table as columns of given types
    native/typed_log.pxi  records as typed rows of the change log
    native/selection.pxi  records that a filter passes, with the columns they keep

One rule: the twin accepts well-formed input and nothing else. Where a tag, a length, a checksum or a type is not what
the grammar expects, it returns None, and the caller runs the Python reference on the same bytes. The reference then
raises the error, or accepts what is legal but rare: an extension with more blocks, two records with fields out of order.
There is one set of rules, one set of error messages, and the twin never needs to explain itself. Property tests compare
both on valid and on damaged bytes.

Memory. A record holds its page, a start and a size; key and columns are made on access. `Record` and `Column` cannot be
part of a cycle, so the garbage collector does not track them (`no_gc`). The freelists keep 1,024 freed records and 256
freed columns for the next page. The caches hold 512 names, addressed by size, first and last byte; a name that is not
there costs one new string. These sizes are own choices.

Safety. Bounds checks are off, so every read is guarded by a comparison with `end`. Lengths come from the wire as 32 bits
without sign and are compared with the rest, `size > end - at`, never added first: a sum could overflow.

Example: `Record.columns` of a page's record runs `_scan_key` (offset of the first attribute), then `_scan_cell` for each
cell into one `Cell` struct on the stack, `_is_sound` for its checksum, `_column` for its Python object, and `_row_end`
for the row's checksum. If any of them fails, `PythonRecord` decodes the same bytes.

Source: `tags`; docs/protocol.md 2.2 and 3.1.
"""

cimport cython
from cpython.buffer cimport PyBUF_WRITE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_FromDouble
from cpython.long cimport PyLong_FromLongLong
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.math cimport isfinite, isnan
from libc.string cimport memcmp, memcpy, memset, strlen

ctypedef unsigned char byte

include "native/checksum.pxi"
include "native/cells.pxi"
include "native/columns.pxi"
include "native/record.pxi"
include "native/page.pxi"
include "native/md5.pxi"
include "native/http.pxi"
include "native/batch.pxi"
include "native/spans.pxi"
include "native/rows.pxi"
include "native/matching.pxi"
include "native/text.pxi"
include "native/decimals.pxi"
include "native/repeats.pxi"
include "native/json.pxi"
include "native/envelopes.pxi"
include "native/blocks.pxi"
include "native/change_log.pxi"
include "native/typed.pxi"
include "native/typed_log.pxi"
include "native/selection.pxi"
