"""From structs of C to the records of the package. Private."""
from __future__ import annotations

import array
import ctypes
import functools
import gc
import operator
import struct
from collections.abc import Callable, Iterable
from typing import Any

from . import _abi, records

SIZE_T = ctypes.sizeof(ctypes.c_size_t)


def text(raw: bytes | None) -> str | None:
    """Bytes that are not UTF-8 become surrogates, as in file names."""
    return None if raw is None else raw.decode("utf-8", "surrogateescape")


def text_at(address: int | None, length: int) -> str | None:
    return text(ctypes.string_at(address, length)) if address else None


def wrong_type(value: object, wanted: str) -> TypeError:
    return TypeError(f"expected {wanted}, not {type(value).__name__}")


def encode(value: str | bytes) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise wrong_type(value, "str or bytes")
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise ValueError(f"{value!r} contains a NUL")
    return raw


def number(value: int, what: str, bits: int = 64) -> int:
    """An unsigned number of C, from any type of integer: ctypes takes fewer types, and cuts what does not fit."""
    value = operator.index(value)
    if not 0 <= value < 1 << bits:
        raise OverflowError(f"{value:#x} is not {what}")
    return value


class _HeapArrays:
    """Frees the arrays of a heap when nothing refers to them any more."""

    def __init__(self, arrays: _abi.HeapArrays) -> None:
        self._free = _abi.library().cdacq_heap_arrays_destroy
        self._arrays = arrays

    def __del__(self) -> None:
        self._free(self._arrays)


def heap_arrays(address: int | None) -> tuple[Any, ...]:
    """The arrays of a struct cdacq_heap_arrays, as records.Heap has them; None: they are empty."""
    arrays = _abi.HeapArrays.from_address(address) if address else _abi.HeapArrays()
    owner = _HeapArrays(arrays) if address else None

    def view(values: Any, count: int, code: str) -> memoryview:
        place = ctypes.cast(values, ctypes.c_void_p).value
        if not place or not count:
            return memoryview(array.array(code)).toreadonly()
        data = (ctypes.c_uint8 * (count * struct.calcsize(code))).from_address(place)
        data.owner = owner  # type: ignore[attr-defined]
        return memoryview(data).cast("B").cast(code).toreadonly()

    count = arrays.object_count
    return (view(arrays.addresses, count, "Q"), view(arrays.byte_sizes, count, "Q"), view(arrays.types, count, "I"),
            view(arrays.generations, count, "B"), view(arrays.method_tables, arrays.type_count, "Q"),
            arrays.free_type if arrays.free_type < arrays.type_count else None,
            view(arrays.first_references, count + 1, "Q"), view(arrays.targets, arrays.reference_count, "Q"))


def address(value: int) -> int:
    return number(value, "an address")


def process_id(value: int) -> int:
    pid = operator.index(value)
    if isinstance(value, bool) or not 0 < pid < 1 << 31:
        raise ValueError(f"{value!r} is not the id of a process")
    return pid


def function(value: Any, name: str) -> Any:
    """A function or None: a mistake raises at once, not when the function is called, if ever."""
    if value is not None and not callable(value):
        raise wrong_type(value, f"a function as {name}")
    return value


def member(enumeration: Any, value: int) -> Any:
    """A number that this package does not know, of a newer library, stays a number."""
    return enumeration._value2member_map_.get(value, value)


def il_offset(value: int) -> int | None:
    return None if value == _abi.OFFSET_UNKNOWN else value


def copy(address: int, declared: type[ctypes.Structure]) -> Any:
    """A copy of what the library passed: its `size` may differ from ours, and what it does not know is 0."""
    item = declared()
    size = min(ctypes.c_size_t.from_address(address).value, ctypes.sizeof(declared))
    ctypes.memmove(ctypes.byref(item), address, size)
    return item


# fields whose value is not the plain one: by struct and field
_SPECIAL: dict[tuple[type[ctypes.Structure], str], Callable[[Any], Any]] = {
    (_abi.Source, "il_offset"): il_offset,
    (_abi.End, "flaws"): _abi.ExceptionFlaw,
    (_abi.TargetInfo, "missing_filter"): _abi.CoreFilter,
}
for _struct, _field, _enumeration in (
        (_abi.Need, "kind", _abi.NeedKind), (_abi.TargetInfo, "kind", _abi.TargetKind),
        (_abi.TargetInfo, "problem_status", _abi.Status), (_abi.DescriptorItem, "kind", _abi.DescriptorItemKind),
        (_abi.ExceptionClause, "kind", _abi.ClauseKind), (_abi.JitManagerInfo, "kind", _abi.CodeKind),
        (_abi.CodeHeapInfo, "type", _abi.CodeHeapType), (_abi.HeapSegment, "generation", _abi.Generation),
        (_abi.End, "kind", _abi.EndKind),
        (_abi.Lock, "kind", _abi.LockKind), (_abi.SystemCall, "kind", _abi.CallKind), (_abi.Value, "kind", _abi.ValueKind)):
    _SPECIAL[_struct, _field] = functools.partial(member, _enumeration)


def decoder(declared: type[ctypes.Structure], record: type) -> Callable[[Any], Any]:
    """A function that turns a struct into the record with its fields, without `size` and what only a visit can use."""
    steps: list[tuple[str, Callable[[Any], Any] | None]] = []
    for field, kind in declared._fields_:  # type: ignore[misc]
        if field not in ("size", "local_file"):
            steps.append((field, _SPECIAL.get((declared, field), text if kind is ctypes.c_char_p else None)))
    assert tuple(field for field, _ in steps) == record._fields, declared.__name__  # type: ignore[attr-defined]

    def decode(item: Any) -> Any:
        return record(*[getattr(item, field) if step is None else step(getattr(item, field)) for field, step in steps])
    return decode


# ---- Methods: hundreds of thousands at a time ----------------------------------------------------------------------


def _method_format() -> tuple[struct.Struct, list[str]]:
    """The struct for the module of that name, so that an array is decoded without an object of ctypes for a field."""
    codes = {(1, False): "?", (4, True): "i", (4, False): "I", (8, False): "Q"}
    parts, names, position = ["="], [], 0
    for name, kind in _abi.Method._fields_:  # type: ignore[misc]
        field = getattr(_abi.Method, name)
        signed = kind in (ctypes.c_int, ctypes.c_int32)
        parts.append(f"{field.offset - position}x{codes[field.size, signed]}")
        names.append(name)
        position = field.offset + field.size
    parts.append(f"{ctypes.sizeof(_abi.Method) - position}x")
    return struct.Struct("".join(parts)), names


METHOD_FORMAT, _METHOD_FIELDS = _method_format()
METHOD_SIZE = METHOD_FORMAT.size
_ANSWERS = _abi.Answer._value2member_map_
_KINDS = _abi.CodeKind._value2member_map_
assert METHOD_SIZE == ctypes.sizeof(_abi.Method)


class Strings:
    """The strings of one call's answers. Many answers share them."""

    def __init__(self) -> None:
        self._known: dict[int, str | None] = {0: None}

    def get(self, address: int) -> str | None:
        try:
            return self._known[address]
        except KeyError:
            value = self._known[address] = text(ctypes.string_at(address))
            return value


def methods(tuples: Iterable[tuple[Any, ...]], strings: Strings, errors: dict[int, str] | None = None) -> list[Any]:
    """The methods of tuples of METHOD_FORMAT. `errors`: texts by index, if the pointers to them are no longer valid."""
    made: list[Any] = []
    get, string_at, new = strings.get, ctypes.string_at, records.Method._make
    unknown, answers, kinds = _abi.OFFSET_UNKNOWN, _ANSWERS, _KINDS
    for (_, ip, answer, kind, runtime, verified, cold, undecided, thunk, name, length, module, method_desc, tier, token,
         il, code_start, code_size, cold_start, cold_size, offset, funclet_start, file, url, line, column,
         error) in tuples:
        if errors is not None:
            problem = errors.get(len(made))
        else:
            problem = text(string_at(error)) if error else None
        made.append(new((
            ip, answers.get(answer, answer), kinds.get(kind, kind), runtime, verified, cold, undecided, thunk,
            string_at(name, length).decode("utf-8", "surrogateescape") if name else None, get(module), method_desc,
            get(tier), token, None if il == unknown else il, code_start, code_size, cold_start, cold_size, offset,
            funclet_start, get(file), get(url), line, column, problem)))
    return made


def many_methods(raw: bytes | memoryview, strings: Strings, errors: dict[int, str] | None = None) -> list[Any]:
    """The methods of an array. Nothing that is made here can be in a cycle, so the collector need not look for one."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return methods(METHOD_FORMAT.iter_unpack(raw), strings, errors)
    finally:
        if collecting:
            gc.enable()


def method(address: int, strings: Strings) -> Any:
    """The method at an address, while its `error` is valid."""
    raw = ctypes.string_at(address, min(ctypes.c_size_t.from_address(address).value, METHOD_SIZE))
    return methods([METHOD_FORMAT.unpack(raw.ljust(METHOD_SIZE, b"\0"))], strings)[0]


assert [name for name in _METHOD_FIELDS if name not in ("size", "name_length")] == list(records.Method._fields)
