"""Records of arrays that kernels get as one address, instead of array by array.

To numba, a named tuple of arrays is all the numbers that describe its arrays: for twenty arrays about 150. They are
handed over in every call between kernels and taken from Python one by one, and all of that has to be compiled. Where
kernels share a hundred arrays, it is most of what is compiled. A record is one address, that of a table which says
where each array lies and how long it is; kernels look up what they use.

The table is filled when a kernel is called from Python, and nothing changes it while the kernel runs. The compiler is
told so (`invariant.load`), and looks arrays up before a loop rather than in it. Nothing that fills the table must
then be moved past what reads it, so a function of its own does that, which is never inlined.
"""

from __future__ import annotations

import hashlib
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import extending
from numba.core import cgutils, types
from numba.core.typing import templates
from numba.np import arrayobj

C = TypeVar("C", bound=type[tuple[Any, ...]])

_numba = cast("Any", numba)
_cgutils = cast("Any", cgutils)
_types = cast("Any", types)
_templates = cast("Any", templates)
_extending = cast("Any", extending)
_arrayobj = cast("Any", arrayobj)
_ir = _cgutils.ir

_WORD = _ir.IntType(64)
_ADDRESS = _ir.IntType(8).as_pointer()
_DATA, _SHAPE = 4, 5
"""Words of an array in a table, as numba writes them: (meminfo, parent, size, item size, data, shape …, strides …)."""


class RecordType(_types.Type):
    """The type of a record: its class, and the types of its arrays by name."""

    def __init__(self, record: type, arrays: tuple[tuple[str, Any], ...]) -> None:
        self.record = record
        self.arrays = dict(arrays)
        described = f"{record.__module__} {record.__qualname__} {arrays!r}"
        base: Any = super()
        base.__init__(name=f"{record.__name__}_{hashlib.sha256(described.encode()).hexdigest()[:12]}")

    def place(self, name: str) -> int:
        """Return at which word of the table an array begins."""
        place = 0
        for other, array in self.arrays.items():
            if other == name:
                break
            place += _words(array)
        return place

    @property
    def size(self) -> int:
        """The words of the table."""
        return sum(map(_words, self.arrays.values()))


def _words(array: Any) -> int:
    return _SHAPE + 2 * array.ndim


_extending.register_model(RecordType)(_extending.models.OpaqueModel)


def record(kind: C) -> C:
    """Let kernels take a kind of named tuple as one address, where it consists of contiguous arrays."""

    def typed(value: Any, _: Any) -> Any:
        arrays = tuple((name, _numba.typeof(array)) for name, array in zip(value._fields, value, strict=True))
        if all(isinstance(array, _types.Array) and array.layout == "C" for _, array in arrays):
            return RecordType(kind, arrays)
        return _types.BaseTuple.from_types([array for _, array in arrays], kind)

    _extending.typeof_impl.register(kind)(typed)
    return kind


class _Attributes(_templates.AttributeTemplate):
    key = RecordType

    def generic_resolve(self, typ: Any, attr: str) -> Any:
        """Return the type of an array of a record."""
        return typ.arrays.get(attr)


_templates.infer_getattr(_Attributes)


@_extending.lower_getattr_generic(RecordType)
def _look_up(context: Any, builder: Any, typ: Any, value: Any, attr: str) -> Any:
    """Return an array of a record."""
    kind = typ.arrays[attr]
    table = builder.bitcast(value, _WORD.as_pointer())
    place = typ.place(attr)
    shape = [_word(builder, table, place + _SHAPE + axis) for axis in range(kind.ndim)]
    address = _word(builder, table, place + _DATA)
    array = context.make_array(kind)(context, builder)
    size = np.dtype(_numba.np.numpy_support.as_dtype(kind.dtype)).itemsize
    strides = [_WORD(size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    data = builder.inttoptr(address, array.data.type)
    _arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


def _word(builder: Any, table: Any, place: int) -> Any:
    word = builder.load(builder.gep(table, [_WORD(place)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


@_extending.unbox(RecordType)
def _take(typ: Any, value: Any, c: Any) -> Any:
    """Return the address of a table of the arrays of a named tuple, which lasts as long as the call."""
    table = c.builder.call(_filling(typ, c), [value])
    failed = _cgutils.is_null(c.builder, table)
    with c.builder.if_then(failed, likely=False):
        c.pyapi.err_set_string("PyExc_MemoryError", "no memory for a table of arrays")

    def free() -> None:
        kind = _ir.FunctionType(_ir.VoidType(), [_ADDRESS])
        c.builder.call(_cgutils.get_or_insert_function(c.builder.module, kind, "PyMem_RawFree"), [table])

    return _extending.NativeValue(table, is_error=failed, cleanup=free)


def _filling(typ: Any, c: Any) -> Any:
    """Return a function from a named tuple to the address of a table, or of nothing if there is no memory."""
    module, python = c.builder.module, c.pyapi.pyobj
    name = f"missmdp.fill.{typ.name}"
    function = _cgutils.get_or_insert_function(module, _ir.FunctionType(_ADDRESS, [python]), name)
    if function.blocks:
        return function
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = _ir.IRBuilder(function.append_basic_block("entry"))
    allocate = _external(module, _ADDRESS, [_WORD], "PyMem_RawMalloc")
    item = _external(module, python, [python, _WORD], "PyTuple_GetItem")
    describe = _external(module, _ir.IntType(32), [python, _ADDRESS], "numba_adapt_ndarray")
    table = builder.call(allocate, [_WORD(8 * typ.size)])
    with builder.if_then(_cgutils.is_null(builder, table), likely=False):
        builder.ret(table)
    for number, array in enumerate(typ.arrays):
        own = builder.gep(table, [_WORD(8 * typ.place(array))])
        builder.call(describe, [builder.call(item, [function.args[0], _WORD(number)]), own])
    builder.ret(table)
    return function


def _external(module: Any, result: Any, arguments: list[Any], name: str) -> Any:
    return _cgutils.get_or_insert_function(module, _ir.FunctionType(result, arguments), name)
