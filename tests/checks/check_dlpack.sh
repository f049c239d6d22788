# DLPack with its real consumer: a shared library made of eager.h, and NumPy, which takes its tensors and lends its arrays through
# capsules. Skipped without Python and NumPy, or where no shared library can be made.
. tests/checks/check.sh
T=$TEST_TEMP
cat >"$T/lib.c" <<'END'
#define EAGER_IMPLEMENTATION
#include "eager.h"
END
cat >"$T/numpy_dlpack.py" <<'END'
import ctypes, gc, sys
import numpy as np

lib = ctypes.PyDLL(sys.argv[1])
py = ctypes.pythonapi
P = ctypes.c_void_p
class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int), ("dims", ctypes.c_int64 * 8)]
class Memory(ctypes.Structure):
    _fields_ = [(n, ctypes.c_int64) for n in ("live_tensors", "live_bytes", "peak_bytes", "cached_bytes", "allocations", "tensors_made", "host_copies")]
def function(name, result, *arguments):
    f = getattr(lib, name)
    f.restype, f.argtypes = result, arguments
    return f
from_data = function("eg_from_data", P, ctypes.c_int, Shape, P)
reshape = function("eg_reshape", P, P, Shape)
data, size = function("eg_data", P, P), function("eg_size", ctypes.c_int64, P)
to, to_legacy = function("eg_to_dlpack", P, P), function("eg_to_dlpack_legacy", P, P)
borrow, borrow_legacy = function("eg_from_dlpack", P, P), function("eg_from_dlpack_legacy", P, P)
shape_of = function("eg_shape_of", Shape, P)
message = function("eg_error_message", ctypes.c_char_p)
begin = function("eg_scope_begin", ctypes.c_int64 * 2)
shutdown, memory = function("eg_shutdown", None), function("eg_memory", Memory)
sum_of = function("eg_square", P, P)
py.PyCapsule_New.restype, py.PyCapsule_New.argtypes = ctypes.py_object, (P, ctypes.c_char_p, P)
py.PyCapsule_GetPointer.restype, py.PyCapsule_GetPointer.argtypes = P, (ctypes.py_object, ctypes.c_char_p)
py.PyCapsule_SetName.argtypes = (ctypes.py_object, ctypes.c_char_p)
names = {True: b"dltensor", False: b"dltensor_versioned"}

class Tensor:
    """What numpy.from_dlpack takes."""
    def __init__(self, pointer, legacy=False):
        assert pointer, message()
        self.pointer, self.legacy = pointer, legacy
    def __dlpack_device__(self):
        return (1, 0)
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        legacy = self.legacy or max_version is None or max_version[0] < 1
        return py.PyCapsule_New((to_legacy if legacy else to)(self.pointer), names[legacy], None)
def tensor(a, dtype):
    a = np.ascontiguousarray(a)
    return from_data(dtype, Shape(a.ndim, (ctypes.c_int64 * 8)(*a.shape)), a.ctypes.data_as(P))
def values(x, dtype):
    shape = shape_of(x)
    return np.ctypeslib.as_array((ctypes.c_ubyte * (size(x) * dtype.itemsize)).from_address(data(x))).view(dtype).reshape(shape.dims[:shape.rank])
def lend(a, legacy):
    capsule = a.__dlpack__() if legacy else a.__dlpack__(max_version=(1, 0))
    pointer = py.PyCapsule_GetPointer(capsule, names[legacy])
    py.PyCapsule_SetName(capsule, b"used_" + names[legacy])
    x = (borrow_legacy if legacy else borrow)(pointer)
    assert x, message()
    return x

dtypes = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_, np.float16]
for legacy in (False, True):
    for i, dtype in enumerate(dtypes):
        a = np.array([[1, 0, 3], [0, 5, 1]]).astype(dtype)
        b = np.from_dlpack(Tensor(tensor(a, i), legacy))
        assert b.dtype == a.dtype and b.shape == a.shape and not b.flags.writeable, (b, b.flags)
        np.testing.assert_array_equal(a, b)
        c = np.arange(12).astype(dtype).reshape(3, 4)[::-1, ::2]
        x = lend(c, legacy)
        np.testing.assert_array_equal(c, values(x, c.dtype))
        x = lend(c.T, legacy)
        np.testing.assert_array_equal(c.T, values(x, c.dtype))
    x = lend(np.zeros((2, 0, 3), np.float32), legacy)
    assert size(x) == 0
    x = lend(np.array(2.5), legacy)
    assert values(x, np.dtype(np.float64)) == 2.5
# no copy: both see the same memory
a = np.arange(6, dtype=np.float64)
x = lend(a, False)
assert data(x) == a.ctypes.data
b = np.from_dlpack(Tensor(x))
assert b.ctypes.data == a.ctypes.data
# NumPy's array lives as long as we use it, and our memory as long as NumPy does
import weakref
gone = weakref.ref(a)
del a
gc.collect()
assert gone() is not None
shutdown()
gc.collect()
np.testing.assert_array_equal(b, np.arange(6))
del b
gc.collect()
assert gone() is None and memory().live_tensors == 0
print("all is well")
END
build() {
    $CC -std=c11 -O0 -fPIC -shared -I. "$T/lib.c" -o "$T/libeager.so" $LIBS
}
if [ -z "$PYTHON" ] || ! "$PYTHON" -c 'import numpy, sys; sys.exit(int(numpy.__version__.split(".")[0]) < 2)' 2>/dev/null; then
    skip numpy_takes_and_lends "no Python with NumPy 2"
elif ! build >"$T/build.log" 2>&1; then skip numpy_takes_and_lends "no shared library can be made: $(head -n 1 "$T/build.log")"
else check numpy_takes_and_lends "$PYTHON" "$T/numpy_dlpack.py" "$T/libeager.so"; fi
finish
