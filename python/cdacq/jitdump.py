"""Reading jitdumps. No target is needed."""
from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from . import _abi, _decode, records
from ._abi import JitdumpFlags, JitdumpKind, JitdumpStrings, Status
from ._calls import Gate, Listing, Pending, call, visit
from ._lookups import _item, _sized

_place = _decode.decoder(_abi.JitdumpPlace, records.JitdumpPlace)
_function = _decode.decoder(_abi.JitdumpFunction, records.JitdumpFunction)
_inline_call = _decode.decoder(_abi.JitdumpInlineCall, records.JitdumpInlineCall)
_range = _decode.decoder(_abi.JitdumpRange, records.JitdumpRange)
_line_record = _decode.decoder(_abi.JitdumpLineRecord, records.JitdumpLineRecord)
_header = _decode.decoder(_abi.JitdumpHeader, records.JitdumpHeader)
_move = _decode.decoder(_abi.JitdumpMove, records.JitdumpMove)
_debug_info = _decode.decoder(_abi.JitdumpDebugInfo, records.JitdumpDebugInfo)
_samply = _decode.decoder(_abi.JitdumpSamplyDebugInfo2, records.JitdumpSamplyDebugInfo2)
_positions = _decode.decoder(_abi.JitdumpSamplyPositions, records.JitdumpSamplyPositions)


def _bytes(address: int | None, size: int) -> bytes | None:
    return ctypes.string_at(address, size) if address else None


def _load(load: Any) -> records.JitdumpLoad:
    return records.JitdumpLoad(
        load.pid, load.tid, load.vma, load.code_addr, load.code_size, load.code_index,
        _decode.text_at(load.name, load.name_length), _bytes(load.code, load.code_size), load.code_offset,
        load.debug_info, load.unwinding_info, load.samply_debug_info2)


def _unwinding_info(info: Any) -> records.JitdumpUnwindingInfo:
    return records.JitdumpUnwindingInfo(
        info.unwind_data_size, info.eh_frame_hdr_size, info.mapped_size,
        _bytes(info.unwinding_data, info.unwind_data_size), info.unwinding_data_offset, info.fde_count)


_FIELDS: dict[int, tuple[str, Callable[[Any], Any]]] = {
    JitdumpKind.HEADER: ("header", _header),
    JitdumpKind.LOAD: ("load", _load),
    JitdumpKind.MOVE: ("move", _move),
    JitdumpKind.DEBUG_INFO: ("debug_info", _debug_info),
    JitdumpKind.UNWINDING_INFO: ("unwinding_info", _unwinding_info),
    JitdumpKind.SAMPLY_DEBUG_INFO2: ("samply_debug_info2", _samply),
    JitdumpKind.SAMPLY_POSITIONS: ("samply_positions", _positions),
}


class JitdumpRecord:
    """A record of a jitdump, or its header, which comes first.

    `fields` has what records of the kind have: a JitdumpHeader, JitdumpLoad, JitdumpMove, JitdumpDebugInfo,
    JitdumpUnwindingInfo, JitdumpSamplyDebugInfo2 or JitdumpSamplyPositions; None if the record is too short for them,
    or its kind has none. The lists in a record can be read until the next record is: later, ValueError is raised.
    """

    def __init__(self, jitdump: Jitdump, item: Any) -> None:
        self._jitdump = jitdump
        self._generation = jitdump._generation
        self._item = item
        self.kind: JitdumpKind = _decode.member(JitdumpKind, item.kind)
        self.id: int = item.id
        """The kind as stored in the file; 0 for the header."""
        self.offset: int = item.offset
        self.total_size: int = item.total_size
        self.timestamp: int = item.timestamp
        self.error: str | None = _decode.text(item.error)
        """What is wrong with the record."""
        name, decode = _FIELDS.get(item.kind, ("", None))
        self.fields: Any = decode(getattr(getattr(item, "as"), name)) if decode and item.has_fields else None

    def __repr__(self) -> str:
        kind = self.kind.text if isinstance(self.kind, JitdumpKind) else self.kind
        return f"<cdacq.JitdumpRecord {kind} at {self.offset:#x}>"

    def _check(self) -> None:
        if self._jitdump._generation != self._generation:
            raise ValueError("the lists of a record are gone when the next record was read")

    def _list(self, element: Callable[[], Any]) -> list[Any]:
        found = []
        with self._jitdump._using():
            self._check()
            while (item := element()) is not None:
                found.append(item)
        return found

    def entries(self) -> list[records.JitdumpEntry]:
        """The debug entries of a JIT_CODE_DEBUG_INFO. The name of one that has "\\xff" is that of the entry before."""
        cursor = ctypes.c_uint64()
        item = _sized(_abi.JitdumpEntry)
        names: list[str | None] = []

        def element() -> records.JitdumpEntry | None:
            if call("cdacq_jitdump_record_next_entry", self._item, ctypes.byref(cursor),
                    ctypes.byref(item)) == Status.DONE:
                return None
            name = _decode.text_at(item.name, item.name_length)
            if not names or item.name_length != 1 or ctypes.string_at(item.name, 1) != b"\xff":
                names[:] = [name]
            return records.JitdumpEntry(item.code_addr, item.line, item.discrim, names[0])
        return self._list(element)

    def _strings(self, which: JitdumpStrings) -> list[str]:
        cursor, address, length = ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_size_t()

        def element() -> str | None:
            if call("cdacq_jitdump_record_next_string", self._item, which, ctypes.byref(cursor),
                    ctypes.byref(address), ctypes.byref(length)) == Status.DONE:
                return None
            return _decode.text_at(address.value, length.value) or ""
        return self._list(element)

    def files(self) -> list[str]:
        """The files in samply's debug info."""
        return self._strings(JitdumpStrings.FILES)

    def function_names(self) -> list[str]:
        """The names of functions in samply's debug info."""
        return self._strings(JitdumpStrings.FUNCTION_NAMES)

    def _elements(self, name: str, declared: type[ctypes.Structure], decode: Callable[[Any], Any]) -> list[Any]:
        item = _sized(declared)
        index = 0

        def element() -> Any:
            nonlocal index
            if index == 1 << 32 or call(name, self._item, index, ctypes.byref(item)) == Status.DONE:
                return None
            index += 1
            return decode(item)
        return self._list(element)

    def functions(self) -> list[records.JitdumpFunction]:
        """The functions in samply's debug info."""
        return self._elements("cdacq_jitdump_record_get_function", _abi.JitdumpFunction, _function)

    def inline_calls(self) -> list[records.JitdumpInlineCall]:
        """The calls that were inlined: a tree in depth-first order."""
        return self._elements("cdacq_jitdump_record_get_inline_call", _abi.JitdumpInlineCall, _inline_call)

    def ranges(self) -> list[records.JitdumpRange]:
        """The ranges: each inlined call owns the next `range_count`."""
        return self._elements("cdacq_jitdump_record_get_range", _abi.JitdumpRange, _range)

    def line_records(self) -> list[records.JitdumpLineRecord]:
        """The lines in samply's debug info."""
        return self._elements("cdacq_jitdump_record_get_line_record", _abi.JitdumpLineRecord, _line_record)


class Jitdump:
    """A jitdump, opened; iterate it for its records. Close it, or use it in a `with` statement.

    `code`: also read code and unwinding data. `follow`: the file is still being written; only whole records are
    returned, and iterating again continues with those that were added. Raises Error.
    """

    def __init__(self, path: str | os.PathLike[str], *, follow: bool = False, code: bool = False) -> None:
        flags = (JitdumpFlags.FOLLOW if follow else 0) | (JitdumpFlags.CODE if code else 0)
        self._gate = Gate("jitdump", exclusive=True)
        self._pending = Pending()
        self._generation = 0
        self._handle = ctypes.c_void_p()
        self._path = path
        self.find_problem: str | None = None
        call("cdacq_jitdump_open", _decode.encode(os.fspath(path)), flags, ctypes.byref(self._handle))

    def __repr__(self) -> str:
        return f"<cdacq.Jitdump {os.fspath(self._path)!r}{', closed' if self._gate.closed else ''}>"

    def _using(self) -> Any:
        return _Using(self._gate)

    def next(self) -> JitdumpRecord | None:
        """The next record; None if there is none, with `follow` at present. Raises Error if the file is damaged."""
        item = _sized(_abi.JitdumpRecord)
        with self._using():
            self._generation += 1
            if call("cdacq_jitdump_next", self._handle, ctypes.byref(item)) == Status.DONE:
                return None
            return JitdumpRecord(self, item)

    def __iter__(self) -> Iterator[JitdumpRecord]:
        while (record := self.next()) is not None:
            yield record

    def check_end(self) -> None:
        """Raises Error if a file that is followed no longer ends within a record, or one about a function that it lacks."""
        with self._using():
            call("cdacq_jitdump_check_end", self._handle)

    def find(self, address: int, time: int | None = None) -> tuple[JitdumpRecord, records.JitdumpPlace] | None:
        """The JIT_CODE_LOAD of the function that has an address, and its place; None if there is none.

        At the end of the file, or after the records up to `time`. Moves are applied. Reads the whole file.
        `find_problem` is then what is wrong with the file, so that the answer may be wrong, or None.
        """
        item, place = _sized(_abi.JitdumpRecord), _sized(_abi.JitdumpPlace)
        with self._using():
            self._generation += 1
            at = _abi.JITDUMP_LAST if time is None else _decode.number(time, "a time")
            status = call("cdacq_jitdump_find", self._handle, _decode.address(address), at, ctypes.byref(item),
                          ctypes.byref(place))
            found = _place(place)
            self.find_problem = found.problem
            return None if status == Status.NOT_MANAGED else (JitdumpRecord(self, item), found)

    @staticmethod
    def find_file(pid: int) -> str | None:
        """The path of the jitdump of a running process; None if there is none, perhaps not yet."""
        path = ctypes.create_string_buffer(4096)
        if call("cdacq_jitdump_find_file", _decode.process_id(pid), path, len(path)) == Status.NOT_MANAGED:
            return None
        return _decode.text(path.value)

    def places(self) -> Listing[records.JitdumpPlace]:
        """Where every function of the records read so far is now, in no particular order."""
        with self._using():
            self._generation += 1
            return visit("cdacq_jitdump_visit_places", self._handle, item=_item(_abi.JitdumpPlace, _place),
                         pending=self._pending)

    def close(self) -> None:
        """Closes the file. May be called again."""
        if self._gate.close():
            self._generation += 1
            _abi.library().cdacq_jitdump_close(self._handle)

    def __enter__(self) -> Jitdump:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle") and self._handle:
            self.close()


class _Using:
    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def __enter__(self) -> None:
        self._gate.enter()

    def __exit__(self, *_: object) -> None:
        self._gate.leave()
