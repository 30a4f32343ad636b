"""What a session and a target have in common: every look-up. Private."""
from __future__ import annotations

import ctypes
import operator
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from . import _abi, _decode, records
from ._abi import (CodeKind, ExceptionFlaw, FrameKind, FramesFlags, FrameSource, FuncletKind, JitType, Status,
                   VariableKind, VariableState, VisitFlags)
from ._calls import Listing, Pending, call, visit
from .errors import Error

_source = _decode.decoder(_abi.Source, records.Source)
_stress_log = _decode.decoder(_abi.StressLog, records.StressLog)
_code_range = _decode.decoder(_abi.CodeRangeInfo, records.CodeRange)
_clause = _decode.decoder(_abi.ExceptionClause, records.ExceptionClause)
_jit_manager = _decode.decoder(_abi.JitManagerInfo, records.JitManagerInfo)
_code_heap = _decode.decoder(_abi.CodeHeapInfo, records.CodeHeap)
_pdb = _decode.decoder(_abi.PdbInfo, records.PdbInfo)
_exception_frame = _decode.decoder(_abi.ExceptionFrame, records.ExceptionFrame)
_code_file = _decode.decoder(_abi.CodeFile, records.CodeFile)
_object = _decode.decoder(_abi.Object, records.Object)
_value = _decode.decoder(_abi.Value, records.Value)
_delegate = _decode.decoder(_abi.Delegate, records.Delegate)
_lock = _decode.decoder(_abi.Lock, records.Lock)
_failed_task = _decode.decoder(_abi.FailedTask, records.FailedTask)
_heap_segment = _decode.decoder(_abi.HeapSegment, records.HeapSegment)
_heap_root = _decode.decoder(_abi.HeapRoot, records.HeapRoot)
_load_context = _decode.decoder(_abi.LoadContext, records.LoadContext)
_task = _decode.decoder(_abi.Task, records.Task)
_system_call = _decode.decoder(_abi.SystemCall, records.SystemCall)
_end = _decode.decoder(_abi.End, records.End)
_activity = _decode.decoder(_abi.Activity, records.Activity)
_written = _decode.decoder(_abi.Written, records.Written)


def _sized(declared: type[ctypes.Structure]) -> Any:
    return declared(size=ctypes.sizeof(declared))


def _item(declared: type[ctypes.Structure], decode: Callable[[Any], Any]) -> Callable[[int], Any]:
    return lambda address: decode(_decode.copy(address, declared))


def _wait(address: int) -> records.Wait:
    item = _decode.copy(address, _abi.Wait)
    tasks, at = [], item.tasks
    for _ in range(item.task_count):
        tasks.append(_task(_decode.copy(at, _abi.Task)))
        at += ctypes.c_size_t.from_address(at).value
    return records.Wait(
        _decode.member(_abi.WaitKind, item.kind), _decode.member(_abi.WaitSource, item.by), item.tid, item.thread,
        item.managed_id, _decode.text(item.name), item.object, _decode.text(item.type),
        item.timeout_ms if item.has_timeout else None, item.blocker_tid, item.blocker_id,
        _decode.text(item.blocker_name), tasks,
        {_abi.WaitEndless.YES: True, _abi.WaitEndless.NO: False}.get(item.endless), item.readers,
        bool(item.has_pending_continuation), bool(item.is_cycle), item.process)


def _stress_message(address: int) -> records.StressMessage:
    item = _decode.copy(address, _abi.StressMessage)
    return records.StressMessage(
        item.address, item.tid, item.time_ns, item.facilities, tuple(item.arguments[:item.argument_count]),
        _decode.text(item.format), _decode.text(item.text), _abi.StressFlaw(item.flaws), _decode.text(item.problem))


def _field_visitor(found: list[records.Field]) -> Callable[[int, object], int]:
    def visitor(field: int, _context: object) -> int:
        item = _decode.copy(field, _abi.Field)
        found.append(records.Field(_decode.text(item.name), _decode.text(item.type), _decode.text(item.owner),
                                   item.offset, _decode.text(item.problem), _value(item.value.contents)))
        return 0
    return visitor


def _value_struct(value: records.Value) -> Any:
    if not isinstance(value, records.Value):
        raise _decode.wrong_type(value, "a Value")
    made = _sized(_abi.Value)
    made.kind, made.width, made.address, made.bits, made.method_table = value
    return made


def _deadlock(address: int) -> list[records.Wait]:
    item = _decode.copy(address, _abi.Deadlock)
    return [_wait(item.waits[i]) for i in range(item.count)]


def _thread_pool(graph: Any) -> records.ThreadPool | None:
    pool = _sized(_abi.ThreadPool)
    call("cdacq_wait_graph_get_thread_pool", graph, ctypes.byref(pool))
    limits = (pool.min_workers, pool.max_workers) if pool.has_limits else (None, None)
    return records.ThreadPool(pool.object, pool.workers, pool.busy, pool.waiting, *limits,
                              pool.queued if pool.has_queued else None, pool.starves) if pool.workers else None


def _visit_flags(stubs: bool, r2r: str) -> int:
    try:
        ready_to_run = {"prepared": VisitFlags(0), "all": VisitFlags.R2R_ALL, "none": VisitFlags.R2R_NONE}[r2r]
    except (KeyError, TypeError):
        raise ValueError(f"r2r is {r2r!r}, not 'prepared', 'all' or 'none'") from None
    return int(ready_to_run | (VisitFlags.STUBS if stubs else VisitFlags(0)))


def _registers(pointer: Any) -> dict[int, int]:
    if not pointer:
        return {}
    values = _decode.copy(ctypes.addressof(pointer.contents), _abi.Registers)
    return {i: values.values[i] for i in range(len(values.values)) if values.known >> i & 1}


def registers_struct(registers: dict[int, int]) -> Any:
    if not isinstance(registers, Mapping):
        raise _decode.wrong_type(registers, "a dict of registers")
    made = _sized(_abi.Registers)
    for number, value in registers.items():
        number = operator.index(number)
        if not 0 <= number < len(made.values):
            raise ValueError(f"{number} is not the number of a register")
        made.known |= 1 << number
        made.values[number] = operator.index(value)
    return made


class Block:
    """The code of one method: the handle of the ExecutionManager contract. Made by `block_at`.

    The calls that read the target raise Error if something that they need is missing.
    """

    def __init__(self, session: Lookups, ip: int, handle: Any) -> None:
        self._session = session
        self._handle = handle
        self.ip = ip

    def __repr__(self) -> str:
        return f"<cdacq.Block at {self.ip:#x}>"

    def _plain(self, name: str) -> int:
        with self._session._inside():
            value: int = getattr(_abi.library(), name)(ctypes.byref(self._handle))
            return value

    def _call(self, name: str, *results: Any) -> list[Any]:
        with self._session._inside() as handle:
            call(name, ctypes.byref(self._handle), handle, *map(ctypes.byref, results))
        return [result.value for result in results]

    @property
    def method_desc(self) -> int:
        """GetMethodDesc: 0 for ReadyToRun code that the runtime has not prepared, or if that cannot be read."""
        return self._plain("cdacq_block_get_method_desc")

    @property
    def start_address(self) -> int:
        """GetStartAddress: the start of the method's hot part."""
        return self._plain("cdacq_block_get_start_address")

    @property
    def relative_offset(self) -> int:
        """GetRelativeOffset: from the start; in the cold part the size of the hot part plus the offset in it."""
        return self._plain("cdacq_block_get_relative_offset")

    @property
    def jit_type(self) -> JitType:
        """GetJITType: the manager that the block belongs to."""
        kind: JitType = _decode.member(JitType, self._plain("cdacq_block_get_jit_type"))
        return kind

    @property
    def unwind_info_base_address(self) -> int:
        """GetUnwindInfoBaseAddress: the base of the relative addresses in the unwind info."""
        return self._plain("cdacq_block_get_unwind_info_base_address")

    def method_region_info(self) -> records.RegionInfo:
        """GetMethodRegionInfo: the sizes of the hot and cold part."""
        sizes = self._call("cdacq_block_get_method_region_info", *(ctypes.c_uint64() for _ in range(3)))
        return records.RegionInfo(*sizes)

    def unwind_info(self) -> int:
        """GetUnwindInfo: the address of the RUNTIME_FUNCTION that covers the ip; 0 if the method has none."""
        address: int = self._call("cdacq_block_get_unwind_info", ctypes.c_uint64())[0]
        return address

    def funclet_start_address(self) -> int:
        """GetFuncletStartAddress: the start of the body or funclet that covers the ip."""
        address: int = self._call("cdacq_block_get_funclet_start_address", ctypes.c_uint64())[0]
        return address

    def is_funclet(self) -> bool:
        """IsFunclet: whether the ip is in a handler, filter or finally funclet."""
        return bool(self._call("cdacq_block_is_funclet", ctypes.c_bool())[0])

    def is_filter_funclet(self) -> bool:
        """IsFilterFunclet: whether the ip is in a filter funclet."""
        return bool(self._call("cdacq_block_is_filter_funclet", ctypes.c_bool())[0])

    def debug_info(self) -> records.DebugInfo:
        """GetDebugInfo: the blob that maps the method's code to its IL."""
        return records.DebugInfo(*self._call("cdacq_block_get_debug_info", ctypes.c_uint64(), ctypes.c_bool()))

    def gc_info(self) -> records.GCInfo:
        """GetGCInfo: the method's GC info and the version of its format."""
        return records.GCInfo(*self._call("cdacq_block_get_gc_info", ctypes.c_uint64(), ctypes.c_uint32()))

    def is_gc_safe(self) -> bool:
        """IsGcSafe: whether a garbage collection can begin at the ip."""
        return bool(self._call("cdacq_block_is_gc_safe", ctypes.c_bool())[0])

    def stack_parameter_size(self) -> int:
        """GetStackParameterSize: bytes of arguments that the method removes from the stack; 0 except on x86."""
        size: int = self._call("cdacq_block_get_stack_parameter_size", ctypes.c_uint32())[0]
        return size

    def exception_clauses(self) -> Listing[records.ExceptionClause]:
        """GetExceptionClauses, in the order in which the runtime searches them."""
        with self._session._inside() as handle:
            return visit("cdacq_block_visit_exception_clauses", ctypes.byref(self._handle), handle,
                         item=_item(_abi.ExceptionClause, _clause), pending=self._session._pending)


class Frame:
    """One call on a stack: `struct cdacq_frame`. `registers` maps DWARF numbers to the values that are known."""

    __slots__ = ("index", "kind", "by", "funclet", "is_call", "pc", "sp", "cfa", "method", "symbol", "symbol_offset",
                 "module", "module_offset", "frame", "frame_name", "registers", "after_gap", "files_verified",
                 "object", "variables")
    index: int
    kind: FrameKind
    by: FrameSource
    funclet: FuncletKind
    is_call: bool
    """`pc` is a return address: the call is the instruction before it."""
    pc: int
    sp: int
    cfa: int
    method: records.Method | None
    """Of managed code and stubs, and if the look-up failed. Its line is that of the call."""
    symbol: str | None
    symbol_offset: int
    module: str | None
    module_offset: int
    frame: int
    frame_name: str | None
    registers: dict[int, int]
    after_gap: bool
    """Frames may be missing before it: the caller of code could not be found, and a Frame led here."""
    files_verified: bool
    """False: its native symbol, or how it was found, rests on a file that nothing confirms."""
    object: int
    """Of an async method that waits: the object that holds its state; else 0."""
    variables: list[records.Variable] | None
    """Its arguments and locals, if they were asked for; None: it has none, or they cannot be read."""

    def __init__(self, item: Any, variables: list[records.Variable] | None = None) -> None:
        self.variables = variables
        for field in self.__slots__[:-1]:
            value = getattr(item, field)
            setattr(self, field, _decode.text(value) if isinstance(value, bytes) else value)
        self.kind = _decode.member(FrameKind, item.kind)
        self.by = _decode.member(FrameSource, item.by)
        self.funclet = _decode.member(FuncletKind, item.funclet)
        self.method = _decode.method(item.method, _decode.Strings()) if item.method else None
        self.registers = _registers(item.registers)

    @property
    def is_managed(self) -> bool:
        """The body or a funclet of a method."""
        return self.kind in (FrameKind.MANAGED, FrameKind.FUNCLET)

    @property
    def name(self) -> str | None:
        """The name of the method, symbol or Frame; None if it is not known."""
        return (self.method.name if self.method else None) or self.symbol or self.frame_name

    def __repr__(self) -> str:
        kind = self.kind.name if isinstance(self.kind, FrameKind) else self.kind
        return f"<cdacq.Frame {self.index} {self.pc:#x} {kind} {self.name}>"


class ExceptionObject:
    """An exception of the target. Made by `exception`."""

    def __init__(self, session: Lookups, item: Any) -> None:
        self._session = session
        self.address: int = item.address
        self.type: str | None = _decode.text(item.type)
        """As Type.ToString() gives it; None if it is not known."""
        self.inner_address: int = item.inner
        """The address of InnerException, or 0."""
        self.hresult: int = item.hresult
        self.frame_count: int = item.frame_count
        self.thrown: bool = item.thrown

    def __repr__(self) -> str:
        return f"<cdacq.ExceptionObject {self.address:#x} {self.type}>"

    @property
    def inner(self) -> ExceptionObject | None:
        """The InnerException. Raises Error if it cannot be read."""
        return self._session.exception(self.inner_address) if self.inner_address else None

    def frames(self) -> Listing[records.ExceptionFrame]:
        """The frames that the object recorded, the one that threw first."""
        with self._session._inside() as handle:
            return visit("cdacq_session_visit_exception_frames", handle, self.address,
                         item=_item(_abi.ExceptionFrame, _exception_frame), pending=self._session._pending)

    def text(self) -> str:
        """The text of Exception.ToString(). Any characters: escape it before you print it."""
        return self.text_and_flaws()[0]

    def text_and_flaws(self) -> tuple[str, ExceptionFlaw]:
        """The text, and how it differs from that of the runtime: 0 if it does not."""
        return self._session._written_text("cdacq_session_write_exception", self.address)


class Thread:
    """A thread of the target: `struct cdacq_thread`. `registers` maps DWARF numbers to the values that are known."""

    def __init__(self, session: Lookups, item: Any) -> None:
        self._session = session
        self.tid: int = item.tid
        """The kernel's id."""
        self.thread: int = item.thread
        """The address of the runtime's Thread; 0 if the runtime does not know the thread."""
        self.managed_id: int = item.managed_id
        """The runtime's id; 0 if it is not known."""
        self.signal: int = item.signal
        self.died: bool = item.died
        """Of a core: the thread's signal ended the process."""
        self.name: str | None = _decode.text(item.name)
        self.registers: dict[int, int] = _registers(item.registers)
        self.exception_address: int = item.exception
        """The exception that is being thrown or handled, the innermost; or 0."""
        self.last_thrown_address: int = item.last_thrown
        """The last exception, handled since unless it is `exception_address`; or 0."""
        self.last_thrown_is_fatal: bool = item.last_thrown_is_fatal
        self.state: int = item.state
        """Bits of the runtime (ThreadState and others); 0 if it is not known."""
        self.mode: int | _abi.ThreadMode = _decode.member(_abi.ThreadMode, item.mode)
        self.suspends_others: bool = item.suspends_others
        """The runtime has suspended the others for it, or is about to, as for a garbage collection."""
        self.delays_suspension: bool = item.delays_suspension
        """The runtime is about to suspend all threads, and waits for this one."""
        self.call: records.SystemCall | None = _system_call(item.call.contents) if item.call else None
        """The system call that it was in; None: it was in none, or that is not known."""

    def __repr__(self) -> str:
        return f"<cdacq.Thread {self.tid} {self.name}>"

    @property
    def exception(self) -> ExceptionObject | None:
        """The exception that is being thrown or handled. Raises Error if it cannot be read."""
        return self._session.exception(self.exception_address) if self.exception_address else None

    @property
    def last_thrown(self) -> ExceptionObject | None:
        """The last exception that was thrown. Raises Error if it cannot be read."""
        return self._session.exception(self.last_thrown_address) if self.last_thrown_address else None

    def nested_exceptions(self) -> Listing[int]:
        """The addresses of the exceptions that the thread throws or handles: the innermost, then the one in whose
        handling it was thrown, and so on. 0 for one that the runtime has not made yet."""
        with self._session._inside() as handle:
            return visit("cdacq_session_visit_nested_exceptions", handle, self.thread,
                         item=lambda at: int(_decode.copy(at, _abi.NestedException).object),
                         pending=self._session._pending)

    def frames(self, *, explicit: bool = False, awaiting: bool = False, variables: bool = False) -> Listing[Frame]:
        """The frames of the stack, from the innermost to the outermost; with `explicit` also the runtime's Frames, with
        `awaiting` also async methods that wait for what the thread does, or the thread for them; with `variables`,
        managed frames have their arguments and locals.

        If the walk ends early, iterating the listing raises Error after the last frame that was found.
        """
        return self._session.frames(self.registers, thread=self.thread, explicit=explicit, awaiting=awaiting,
                                    variables=variables)


class Lookups:
    """The look-ups of a session. Each raises Error if it fails, and ClosedError after the target was closed."""

    _pending: Pending

    @contextmanager
    def _inside(self) -> Iterator[Any]:
        raise NotImplementedError
        yield

    # ---- Methods

    def method_at(self, ip: int) -> records.Method:
        """What owns `ip`: a method (`is_managed`), a stub, or nothing (`answer`)."""
        found = _sized(_abi.Method)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_method_at", handle, _decode.address(ip), ctypes.byref(found))
            made: records.Method = _decode.method(ctypes.addressof(found), _decode.Strings())
            return made

    def methods_at(self, ips: Iterable[int]) -> list[records.Method]:
        """The same for many addresses, fast. A look-up that fails has the answer ERROR, and says why in `error`."""
        addresses = [_decode.address(ip) for ip in ips]
        count = len(addresses)
        array = (ctypes.c_uint64 * count)(*addresses)
        found = (_abi.Method * max(count, 1))()
        found[0].size = ctypes.sizeof(_abi.Method)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_methods_at", handle, array, count, found)
            return _decode.many_methods(memoryview(found).cast("B")[:count * _decode.METHOD_SIZE], _decode.Strings())

    def methods(self, *, stubs: bool = False, r2r: str = "prepared") -> Listing[records.Method]:
        """Every method of the process, by start address.

        `stubs`: stubs too. `r2r`: of ReadyToRun images the "prepared" methods, "all", or "none". A code range that
        cannot be read is an element with the answer ERROR.
        """
        size = 0
        error_at = _abi.Method.error.offset
        no_error = bytes(ctypes.sizeof(ctypes.c_void_p))
        string_at, errors = ctypes.string_at, {}
        parts: list[bytes] = []

        def item(address: int) -> None:
            nonlocal size
            size = size or min(ctypes.c_size_t.from_address(address).value, _decode.METHOD_SIZE)
            raw = string_at(address, size)
            if raw[error_at:error_at + len(no_error)] != no_error:  # valid until the visitor returns
                errors[len(parts)] = _decode.text(string_at(int.from_bytes(
                    raw[error_at:error_at + len(no_error)], sys.byteorder))) or ""
            parts.append(raw)

        with self._inside() as handle:
            listing = visit("cdacq_session_visit_methods", handle, _visit_flags(stubs, r2r), item=item,
                            pending=self._pending)
            if size < _decode.METHOD_SIZE:
                parts = [part.ljust(_decode.METHOD_SIZE, b"\0") for part in parts]
            made = _decode.many_methods(b"".join(parts), _decode.Strings(), errors)
        return Listing(made, listing.error)

    def code_ranges(self) -> Listing[records.CodeRange]:
        """The ranges of the runtime's range section map, by address."""
        with self._inside() as handle:
            return visit("cdacq_session_visit_code_ranges", handle,
                         item=_item(_abi.CodeRangeInfo, _code_range), pending=self._pending)

    def check_layout(self) -> None:
        """Raises Error if the runtime lays out something in a way that this build does not know, and says what."""
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_check_layout", handle)

    def check_code_range(self, address: int) -> bool:
        """Raises Error if methods in the code range around `address` cannot be found. False: no range contains it."""
        with self._inside() as handle, self._pending.collecting():
            return call("cdacq_session_check_code_range", handle, _decode.address(address)) == Status.OK

    def code_kind(self, address: int) -> CodeKind | None:
        """GetCodeKind: the kind of code at an address; None if the runtime has none there."""
        kind = ctypes.c_int()
        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_code_kind_at", handle, _decode.address(address), ctypes.byref(kind))
        return None if status == Status.NOT_MANAGED else _decode.member(CodeKind, kind.value)

    # ---- The ExecutionManager contract

    def block_at(self, ip: int) -> Block | None:
        """GetCodeBlockHandle: the block of the method that owns `ip`; None if no method does."""
        handle_of_block = _abi.Block()
        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_code_block_at", handle, _decode.address(ip), ctypes.byref(handle_of_block))
        return None if status == Status.NOT_MANAGED else Block(self, ip, handle_of_block)

    def _address_of(self, name: str, address: int) -> int | None:
        found = ctypes.c_uint64()
        with self._inside() as handle, self._pending.collecting():
            status = call(name, handle, _decode.address(address), ctypes.byref(found))
        return None if status == Status.NOT_MANAGED else found.value

    def find_ready_to_run_module(self, address: int) -> int | None:
        """FindReadyToRunModule: the Module whose ReadyToRun image contains an address; None if none does."""
        return self._address_of("cdacq_session_ready_to_run_module_at", address)

    def non_virtual_entry_to_method_desc(self, entry_point: int) -> int | None:
        """NonVirtualEntry2MethodDesc: the MethodDesc that an entry point enters; None if it enters none."""
        return self._address_of("cdacq_session_non_virtual_entry_to_method_desc", entry_point)

    def jit_manager_info(self, kind: CodeKind = CodeKind.JITTED) -> records.JitManagerInfo | None:
        """GetJitManagerInfo: the manager of JITTED or INTERPRETER code; None if the target has none."""
        found = _sized(_abi.JitManagerInfo)
        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_get_jit_manager_info", handle, operator.index(kind), ctypes.byref(found))
        return None if status == Status.NOT_MANAGED else _jit_manager(found)

    def code_heaps(self, kind: CodeKind = CodeKind.JITTED) -> Listing[records.CodeHeap]:
        """GetCodeHeapInfos: the code heaps of the manager of one kind of code."""
        with self._inside() as handle:
            return visit("cdacq_session_visit_code_heaps", handle, operator.index(kind),
                         item=_item(_abi.CodeHeapInfo, _code_heap), pending=self._pending)

    def function_table_entries(self, table: int) -> Listing[int]:
        """GetDynamicFunctionTableEntries: the RUNTIME_FUNCTIONs that a runtime for Windows registers for a heap."""
        with self._inside() as handle:
            return visit("cdacq_session_visit_function_table_entries", handle,
                         ctypes.c_uint64(_decode.address(table)), item=int, pending=self._pending,
                         visitor=_abi.Visit)

    # ---- Source lines

    def il_offset(self, address: int) -> int | None:
        """The IL offset of the code at an address; None if no method owns it, or has no map from code to IL."""
        found = ctypes.c_int32(_abi.OFFSET_UNKNOWN)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_il_offset_at", handle, _decode.address(address), ctypes.byref(found))
        return _decode.il_offset(found.value)

    def source_at(self, address: int) -> records.Source | None:
        """The file and line of the code at an address, or why they are not known; None if no method owns it."""
        found = _sized(_abi.Source)
        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_source_at", handle, _decode.address(address), ctypes.byref(found))
            return None if status == Status.NOT_MANAGED else _source(found)

    def variable_places(self, ip: int) -> list[records.VariablePlace] | None:
        """Where the arguments and locals of the method at `ip` are; None if no variables are known there."""
        found: list[records.VariablePlace] = []

        def visitor(address: int, _context: object) -> int:
            item = _decode.copy(address, _abi.VariablePlace)
            found.append(records.VariablePlace(
                _decode.member(VariableKind, item.kind), item.number, _decode.text(item.name), _decode.text(item.type),
                _decode.text(item.location), _decode.text(item.problem)))
            return 0

        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_visit_variable_places", handle, _decode.address(ip),
                          _abi.Visitor(self._pending.guard(visitor, 1)), None)
        return None if status == Status.NOT_MANAGED else found

    def pdbs(self) -> Listing[records.PdbInfo]:
        """The PDB of every assembly that is mapped as a file of its own, in no particular order."""
        with self._inside() as handle:
            return visit("cdacq_session_visit_pdbs", handle, item=_item(_abi.PdbInfo, _pdb), pending=self._pending)

    # ---- Exceptions, threads, frames

    def exception(self, address: int) -> ExceptionObject:
        """The exception object at an address. It is not checked that the object is an exception."""
        found = _sized(_abi.Exception_)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_get_exception", handle, _decode.address(address), ctypes.byref(found))
            return ExceptionObject(self, found)

    def _written_text(self, name: str, *arguments: Any) -> tuple[str, ExceptionFlaw]:
        parts: list[bytes] = []
        flaws = ctypes.c_uint()

        def write(address: int, length: int, _context: object) -> int:
            parts.append(ctypes.string_at(address, length))
            return 0

        with self._inside() as handle, self._pending.collecting():
            call(name, handle, *arguments, _abi.Write(self._pending.guard(write, 1)), None, ctypes.byref(flaws))
        return b"".join(parts).decode("utf-8", "surrogateescape"), ExceptionFlaw(flaws.value)

    def activity(self) -> records.Activity:
        """What the runtime does at this moment: many calls in a second show whether it collects garbage all the time."""
        found = _sized(_abi.Activity)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_get_activity", handle, ctypes.byref(found))
            made: records.Activity = _activity(found)
            return made

    def end(self) -> records.End:
        """How the runtime ended the process."""
        found = _sized(_abi.End)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_get_end", handle, ctypes.byref(found))
            made: records.End = _end(found)
            return made

    def last_words(self) -> str:
        """What the runtime wrote to standard error as it ended the process; "" if it did not end it."""
        return self.last_words_and_flaws()[0]

    def last_words_and_flaws(self) -> tuple[str, ExceptionFlaw]:
        """The text, and how it differs from that of the runtime: 0 if it does not."""
        return self._written_text("cdacq_session_write_last_words")

    def stress_log(self) -> records.StressLog:
        """The runtime's stress log, without its messages. Raises Error if the runtime does not publish it."""
        found = _sized(_abi.StressLog)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_get_stress_log", handle, ctypes.byref(found))
            made: records.StressLog = _stress_log(found)
            return made

    def stress_messages(self) -> Listing[records.StressMessage]:
        """The messages of the stress log, the newest first. One with a `problem` says what cannot be read."""
        with self._inside() as handle:
            return visit("cdacq_session_visit_stress_log", handle, item=_stress_message, pending=self._pending)

    def threads(self) -> Listing[Thread]:
        """The threads: the one that died, then the others in the order of the core or of /proc."""
        with self._inside() as handle:
            return visit("cdacq_session_visit_threads", handle,
                         item=lambda address: Thread(self, _decode.copy(address, _abi.Thread)), pending=self._pending)

    def frames(self, registers: dict[int, int], *, thread: int = 0, explicit: bool = False,
               caller: bool = False, awaiting: bool = False, variables: bool = False, limit: int = 0) -> Listing[Frame]:
        """The frames of a stack from registers on: DWARF numbers to values.

        `thread` is the address of the runtime's Thread, which leads to its Frames; 0: the walk uses none. `caller`: the
        program counter is a return address. `awaiting`: async methods that wait for what the thread does, or the thread
        for them, are among the frames. `variables`: frames have their arguments and locals. With `limit` the walk ends after that many frames.
        """
        context = _sized(_abi.Thread)
        context.thread = _decode.address(thread)
        limit = operator.index(limit)
        flags = (FramesFlags.EXPLICIT if explicit else 0) | (FramesFlags.CALLER if caller else 0) | (
            FramesFlags.ASYNC if awaiting else 0)
        found: list[Frame] = []

        error = None
        with self._inside() as handle, self._pending.collecting():
            def visitor(address: int, _context: object) -> int:
                found.append(Frame(_decode.copy(address, _abi.Frame),
                                   self._variables(handle, address) if variables else None))
                return int(len(found) == limit)

            try:
                call("cdacq_session_visit_frames", handle, ctypes.byref(context) if thread else None,
                     ctypes.byref(registers_struct(registers)), flags,
                     _abi.Visitor(self._pending.guard(visitor, 1)), None)
            except Error as raised:
                if not found:
                    raise
                error = raised
        return Listing(found, error)

    def _variables(self, handle: Any, frame: int) -> list[records.Variable] | None:
        """Those of a frame that is being visited."""
        found: list[records.Variable] = []

        def visitor(address: int, _context: object) -> int:
            item = _decode.copy(address, _abi.Variable)
            found.append(records.Variable(
                _decode.member(VariableKind, item.kind), _decode.member(VariableState, item.state), item.number,
                _decode.text(item.name), _decode.text(item.type), _decode.text(item.problem),
                _value(item.value.contents) if item.value else None,
                _value(item.target.contents) if item.target else None))
            return 0

        try:
            status = call("cdacq_session_visit_variables", handle, ctypes.byref(_abi.Frame.from_address(frame)),
                          _abi.Visitor(self._pending.guard(visitor, 1)), None)
        except Error:
            return None
        return None if status == Status.NOT_MANAGED else found

    # ---- Objects

    def object_at(self, address: int) -> records.Object:
        """The object at an address. It is not checked that there is one."""
        found = _sized(_abi.Object)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_get_object", handle, _decode.address(address), ctypes.byref(found))
            made: records.Object = _object(found)
            return made

    def field(self, address: int, name: str) -> records.Value | None:
        """An instance field of an object, by its name in the metadata; None if there is none of that name."""
        found = _sized(_abi.Value)
        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_get_field", handle, _decode.address(address), _decode.encode(name),
                          ctypes.byref(found))
            return None if status == Status.NOT_MANAGED else _value(found)

    def fields(self, address: int, struct: int = 0) -> list[records.Field]:
        """All instance fields of an object, those of base types first. With `struct`, the MethodTable of a struct
        (`Value.method_table`), those of the struct at the address (`Value.address`)."""
        found: list[records.Field] = []
        with self._inside() as handle, self._pending.collecting():
            visit = _abi.Visitor(self._pending.guard(_field_visitor(found), 1))
            if struct:
                call("cdacq_session_visit_struct_fields", handle, _decode.address(struct), _decode.address(address),
                     visit, None)
            else:
                call("cdacq_session_visit_fields", handle, _decode.address(address), visit, None)
        return found

    def value_fields(self, value: records.Value) -> list[records.Field]:
        """The fields of a struct, also of one that is in a register."""
        found: list[records.Field] = []
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_visit_value_fields", handle, ctypes.byref(_value_struct(value)),
                 _abi.Visitor(self._pending.guard(_field_visitor(found), 1)), None)
        return found

    def is_object(self, address: int) -> bool:
        """Whether there is an object at the address, as far as its type tells."""
        with self._inside() as handle, self._pending.collecting():
            return call("cdacq_session_check_object", handle, _decode.address(address)) != Status.NOT_MANAGED

    def boxed(self, address: int) -> records.Value | None:
        """The value in a box; None: the object is none."""
        found = _sized(_abi.Value)
        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_get_boxed", handle, _decode.address(address), ctypes.byref(found))
            return None if status == Status.NOT_MANAGED else _value(found)

    def unwrap(self, value: records.Value) -> records.Value | None:
        """The value in a Nullable<T>, None for null. Any other value is returned as it is."""
        found, has_value = _sized(_abi.Value), ctypes.c_bool()
        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_get_nullable", handle, ctypes.byref(_value_struct(value)),
                          ctypes.byref(has_value), ctypes.byref(found))
            if status == Status.NOT_MANAGED:
                return value
            return _value(found) if has_value.value else None

    def value_text(self, value: records.Value) -> str | None:
        """The text of a value, such as the name of an enum's member; None: it has none, as a reference, or most
        structs."""
        parts: list[bytes] = []

        def write(data: int, length: int, _context: object) -> int:
            parts.append(ctypes.string_at(data, length))
            return 0

        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_write_value", handle, ctypes.byref(_value_struct(value)),
                          _abi.Write(self._pending.guard(write, 1)), None)
        return None if status == Status.NOT_MANAGED else _decode.text(b"".join(parts))

    def delegate(self, address: int) -> records.Delegate | None:
        """What a delegate calls; None: the object is none, or it calls no single method."""
        found = _sized(_abi.Delegate)
        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_get_delegate", handle, _decode.address(address), ctypes.byref(found))
            return None if status == Status.NOT_MANAGED else _delegate(found)

    def items(self, address: int, limit: int = 1 << 20) -> list[records.Item] | None:
        """At most `limit` items of an array or a collection; None: the object is none that the library knows."""
        found: list[records.Item] = []

        def visitor(item: int, _context: object) -> int:
            one = _decode.copy(item, _abi.Item)
            key = _value(one.key.contents) if one.key else None
            found.append(records.Item(one.index, _decode.text(one.problem), key, _value(one.value.contents)))
            return 0

        with self._inside() as handle, self._pending.collecting():
            status = call("cdacq_session_visit_items", handle, _decode.address(address),
                          _decode.number(limit, "a limit"), None, _abi.Visitor(self._pending.guard(visitor, 1)), None)
        return None if status == Status.NOT_MANAGED else found

    def element(self, address: int, index: int) -> records.Value:
        """An element of an array; those of several dimensions are in the order of memory."""
        index = operator.index(index)
        if not 0 <= index < 1 << 32:
            raise IndexError(index)
        found = _sized(_abi.Value)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_get_element", handle, _decode.address(address), index, ctypes.byref(found))
            made: records.Value = _value(found)
            return made

    def string(self, address: int, limit: int = 1 << 20) -> str:
        """The text of a string, at most `limit` UTF-16 units of it. Any characters: escape it before you print it."""
        parts: list[bytes] = []

        def write(data: int, length: int, _context: object) -> int:
            parts.append(ctypes.string_at(data, length))
            return 0

        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_write_string", handle, _decode.address(address), _decode.number(limit, "a limit", 32),
                 _abi.Write(self._pending.guard(write, 1)), None)
        return b"".join(parts).decode("utf-8", "surrogateescape")

    # ---- The heap

    def _problem_callback(self, problems: list[str]) -> Any:
        """A callback that appends each problem."""
        def take(text: int, _context: object) -> int:
            problems.append(_decode.text(ctypes.string_at(text)) or "")
            return 0
        return _abi.Problem(self._pending.guard(take, 1))

    def heap(self, with_objects: bool = True, with_references: bool = False) -> records.Heap:
        """The GC heap, with all its objects unless `with_objects` is false, and their references. Stop a process: else it
        changes meanwhile."""
        info = _sized(_abi.HeapInfo)
        segments: list[records.HeapSegment] = []
        problems: list[str] = []
        arrays = ctypes.c_void_p()

        def take_segment(address: int, _context: object) -> int:
            segments.append(_heap_segment(_abi.HeapSegment.from_address(address)))
            return 0

        visitor = _sized(_abi.HeapVisitor)
        visitor.segment = _abi.Visitor(self._pending.guard(take_segment, 1))
        visitor.problem = self._problem_callback(problems)
        with self._inside() as handle, self._pending.collecting():
            if with_objects or with_references:
                call("cdacq_session_read_heap", handle, _abi.HeapReadFlags.REFERENCES if with_references else 0, ctypes.byref(visitor),
                     ctypes.byref(arrays), ctypes.byref(info))
            else:
                call("cdacq_session_visit_heap", handle, ctypes.byref(visitor), ctypes.byref(info))
        return records.Heap(info.is_server, info.has_regions, info.is_under_way, info.heap_count, info.problem_count,
                            segments, problems, _abi.OomReason(info.oom_reason), info.oom_bytes,
                            info.missing_bytes,
                            *_decode.heap_arrays(arrays.value))

    def load_contexts(self) -> list[records.LoadContext]:
        """The assembly load contexts that have assemblies."""
        found: list[records.LoadContext] = []

        def take(address: int, _context: object) -> int:
            found.append(_load_context(_abi.LoadContext.from_address(address)))
            return 0

        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_visit_load_contexts", handle, _abi.Visitor(self._pending.guard(take, 1)), None)
        return found

    def roots(self) -> records.Roots:
        """What keeps objects: static fields, stacks, handles, finalizer queues. Stop a process, or its stacks are missing."""
        roots: list[records.HeapRoot] = []
        problems: list[str] = []

        def take_root(address: int, _context: object) -> int:
            roots.append(_heap_root(_abi.HeapRoot.from_address(address)))
            return 0

        visitor = _sized(_abi.RootsVisitor)
        visitor.root = _abi.Visitor(self._pending.guard(take_root, 1))
        visitor.problem = self._problem_callback(problems)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_visit_roots", handle, ctypes.byref(visitor))
        return records.Roots(roots, problems)

    def references(self, address: int) -> list[tuple[int, int]]:
        """The references of an object: offsets, for reference_name(), and the objects."""
        found: list[tuple[int, int]] = []

        def take(offset: int, target: int, _context: object) -> int:
            found.append((offset, target))
            return 0

        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_visit_references", handle, _decode.address(address), _abi.Take(self._pending.guard(take, 1)),
                 None)
        return found

    def reference_name(self, address: int, offset: int) -> str | None:
        """How an object has the reference at an offset: "_items", "[3].value". None: it is not known."""
        name = ctypes.c_void_p()
        with self._inside() as handle:
            call("cdacq_session_get_reference_name", handle, _decode.address(address), _decode.number(offset, "an offset", 64),
                 ctypes.byref(name))
            return _decode.text(ctypes.string_at(name.value)) if name.value else None

    def static_name(self, method_table: int, token: int) -> str | None:
        """The name of a static field with its type, as of a HeapRoot."""
        name = ctypes.c_void_p()
        with self._inside() as handle:
            call("cdacq_session_get_static_name", handle, _decode.address(method_table), _decode.number(token, "a token", 32),
                 ctypes.byref(name))
            return _decode.text(ctypes.string_at(name.value)) if name.value else None

    def event_name(self, method_table: int, field: str) -> str | None:
        """The event of a type that keeps its delegates in a field of that name: "Ns.Type.Event". None: there is none."""
        name = ctypes.c_void_p()
        with self._inside() as handle:
            call("cdacq_session_get_event_name", handle, _decode.address(method_table), field.encode(), ctypes.byref(name))
            return _decode.text(ctypes.string_at(name.value)) if name.value else None

    def async_operations(self) -> records.AsyncOperations:
        """Every pending async operation, found on the heap, the most frequent first. Stop a process: else it changes
        meanwhile."""
        info = _sized(_abi.AsyncInfo)
        found = records.AsyncOperations([], [], [])
        strings = _decode.Strings()

        def take_chain(address: int, _context: object) -> int:
            item = _abi.AsyncChain.from_address(address)
            methods = [_decode.method(item.methods + i * _decode.METHOD_SIZE, strings) for i in range(item.method_count)]
            found.chains.append(records.AsyncChain(methods, item.count, _decode.text(item.waits_for) or "", item.object,
                                                   item.first_object, item.operation, item.completes, item.is_cycle))
            return 0

        def take_failed(address: int, _context: object) -> int:
            found.failed.append(_failed_task(_abi.FailedTask.from_address(address)))
            return 0

        visitor = _sized(_abi.AsyncVisitor)
        visitor.chain = _abi.Visitor(self._pending.guard(take_chain, 1))
        visitor.failed = _abi.Visitor(self._pending.guard(take_failed, 1))
        visitor.problem = self._problem_callback(found.problems)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_visit_async", handle, ctypes.byref(visitor), ctypes.byref(info))
        return found

    def work(self) -> records.Work:
        """The work items of the thread pool, the timers and the HTTP requests in flight. Stop a process: else they change
        meanwhile."""
        info = _sized(_abi.WorkInfo)
        found = records.Work([], [], [], [])

        def take_item(address: int, _context: object) -> int:
            item = _abi.WorkItem.from_address(address)
            found.items.append(records.WorkItem(records.WorkKind(item.kind), _decode.text(item.method), _decode.text(item.type),
                                                item.count, item.object))
            return 0

        def take_timer(address: int, _context: object) -> int:
            item = _abi.Timer.from_address(address)
            found.timers.append(records.Timer(_decode.text(item.callback), item.period_ms, item.count, item.first_due_ms,
                                              item.last_due_ms, item.is_exact, item.object))
            return 0

        def take_request(address: int, _context: object) -> int:
            item = _abi.HttpRequest.from_address(address)
            found.requests.append(records.HttpRequest(item.is_served, _decode.text(item.request),
                                                      item.elapsed_ms if item.has_elapsed else None, item.is_exact,
                                                      item.object))
            return 0

        visitor = _sized(_abi.WorkVisitor)
        visitor.item = _abi.Visitor(self._pending.guard(take_item, 1))
        visitor.timer = _abi.Visitor(self._pending.guard(take_timer, 1))
        visitor.request = _abi.Visitor(self._pending.guard(take_request, 1))
        visitor.problem = self._problem_callback(found.problems)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_visit_work", handle, ctypes.byref(visitor), ctypes.byref(info))
        return found

    def strings(self) -> list[records.HeapString]:
        """Every string of the heap. Those that are equal have the same hash. Stop a process: else it changes meanwhile."""
        strings: list[records.HeapString] = []

        def take(address: int, _context: object) -> int:
            item = _abi.HeapString.from_address(address)
            strings.append(records.HeapString(item.address, item.byte_size, item.length, (item.hash[0], item.hash[1])))
            return 0

        visitor = _abi.Visitor(self._pending.guard(take, 1))
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_visit_strings", handle, visitor, None, None, None)
        return strings

    def memory(self) -> records.MemoryUse:
        """The memory of the process by what it is for, in bytes."""
        found = _sized(_abi.MemoryUse)
        with self._inside() as handle:
            call("cdacq_session_get_memory_use", handle, ctypes.byref(found))
        return records.MemoryUse(found.is_resident, found.gc, found.code, found.loader, found.stacks, found.other,
                                 found.files, found.swapped)

    def type_name(self, method_table: int) -> str | None:
        """The name of a MethodTable's type; "Free" for that of free memory in the heap."""
        name = ctypes.c_void_p()
        with self._inside() as handle:
            call("cdacq_session_get_type_name", handle, _decode.address(method_table), ctypes.byref(name))
            return _decode.text(ctypes.string_at(name.value)) if name.value else None

    # ---- Locks

    def lock_at(self, address: int) -> records.Lock:
        """The lock of the object at an address. It is not checked that there is an object."""
        found = _sized(_abi.Lock)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_session_get_lock", handle, _decode.address(address), ctypes.byref(found))
            made: records.Lock = _lock(found)
            return made

    def waits(self) -> records.Waits:
        """The locks, what each thread waits for, deadlocks, and the thread pool. All stacks are walked."""
        graph = ctypes.c_void_p()
        with self._inside() as handle:
            call("cdacq_wait_graph_create", handle, ctypes.byref(graph))
            try:
                problem = self._fill(handle, graph)
                locks, waits, deadlocks = (
                    visit(name, graph, item=item, pending=self._pending).items
                    for name, item in (("cdacq_wait_graph_visit_locks", _item(_abi.Lock, _lock)),
                                       ("cdacq_wait_graph_visit_waits", _wait),
                                       ("cdacq_wait_graph_visit_deadlocks", _deadlock)))
                thread_pool = _thread_pool(graph)
            finally:
                _abi.library().cdacq_wait_graph_destroy(graph)
        return records.Waits(locks, waits, deadlocks, problem, thread_pool)

    def _fill(self, handle: Any, graph: Any) -> str | None:
        library = _abi.library()
        threads = 0
        problem = None

        def add_frame(frame: int, _context: object) -> int:
            library.cdacq_wait_graph_add_frame(graph, _abi.Frame.from_address(frame))
            return 0
        each_frame = _abi.Visitor(add_frame)

        def add_thread(thread: int, _context: object) -> int:
            nonlocal threads
            threads += 1
            item = _abi.Thread.from_address(thread)
            library.cdacq_wait_graph_add_thread(graph, item)
            library.cdacq_session_visit_frames(handle, item, None, 0, each_frame, None, None)
            return 0

        with self._pending.collecting():
            try:
                call("cdacq_session_visit_threads", handle, _abi.Visitor(self._pending.guard(add_thread, 1)), None)
            except Error as error:
                if not threads:
                    raise
                problem = error.message
        try:
            call("cdacq_wait_graph_complete", graph)
        except Error as error:
            return error.message
        return problem

    # ---- Files for perf

    def _write(self, name: str, output: str | os.PathLike[str] | IO[bytes], flags: int,
               left_out: Callable[[records.Method], object] | None, *inputs: Any) -> records.Written:
        _decode.function(left_out, "left_out")
        if isinstance(output, (str, bytes, os.PathLike)):
            with open(output, "wb") as file:
                return self._write(name, file, flags, left_out, *inputs)
        binary = output
        if not hasattr(binary, "write"):
            raise _decode.wrong_type(binary, "a path or a binary file")

        def write(address: int, length: int, _context: object) -> int:
            data = memoryview(ctypes.string_at(address, length))
            while data:
                done = binary.write(data)
                if done == 0:
                    raise OSError("the output took no bytes")
                data = data[len(data) if done is None else done:]
            return 0

        def leave_out(address: int, _context: object) -> int:
            assert left_out is not None
            left_out(_decode.method(address, _decode.Strings()))
            return 0

        sink = _sized(_abi.Sink)
        sink.write = _abi.Write(self._pending.guard(write, 1))
        if left_out is not None:
            sink.left_out = _abi.Visitor(self._pending.guard(leave_out, 1))
        written = _sized(_abi.Written)
        with self._inside() as handle, self._pending.collecting():
            call(name, handle, *inputs, flags, ctypes.byref(sink), ctypes.byref(written))
        made: records.Written = _written(written)
        return made

    def write_perf_map(self, output: str | os.PathLike[str] | IO[bytes], *, stubs: bool = False, r2r: str = "prepared",
                       left_out: Callable[[records.Method], object] | None = None) -> records.Written:
        """Writes a perf map to a path or a binary file. `stubs` and `r2r` are as in `methods`.

        `left_out` is called with each method that could not be written; its `error` says why.
        """
        return self._write("cdacq_session_write_perf_map", output, _visit_flags(stubs, r2r), left_out)

    def write_jitdump(self, output: str | os.PathLike[str] | IO[bytes], *, stubs: bool = False, r2r: str = "prepared",
                      debug: bool = False, samply: bool = False,
                      left_out: Callable[[records.Method], object] | None = None) -> records.Written:
        """Writes a jitdump to a path or a binary file, with `debug` also lines and call-frame information.

        `samply` adds these and, in samply's own records, the lines again. Otherwise as `write_perf_map`.
        """
        flags = _visit_flags(stubs, r2r)
        if debug or samply:
            flags |= _abi.JitdumpWriteFlags.DEBUG
        if samply:
            flags |= _abi.JitdumpWriteFlags.SAMPLY
        return self._write("cdacq_session_write_jitdump", output, flags, left_out)

    def write_elf(self, output: str | os.PathLike[str] | IO[bytes], *, stubs: bool = False, r2r: str = "prepared",
                  code: bool = False, left_out: Callable[[records.Method], object] | None = None) -> records.Written:
        """Writes an ELF file of the managed code: symbols and call-frame information, with `code` also the bytes.

        gdb reads it with add-symbol-file. Otherwise as `write_perf_map`.
        """
        flags = _visit_flags(stubs, r2r) | (_abi.ElfFlags.CODE if code else 0)
        return self._write("cdacq_session_write_elf", output, flags, left_out)

    def write_elf_of_file(self, path: str, output: str | os.PathLike[str] | IO[bytes], *, stubs: bool = False,
                          r2r: str = "prepared", code: bool = False,
                          left_out: Callable[[records.Method], object] | None = None) -> records.Written:
        """Writes an ELF file of the code in the mappings of the file `path`, at the offsets in that file, for perf."""
        flags = _visit_flags(stubs, r2r) | (_abi.ElfFlags.CODE if code else 0)
        return self._write("cdacq_session_write_elf_of_file", output, flags, left_out, _decode.encode(os.fspath(path)))

    def code_files(self) -> Listing[records.CodeFile]:
        """The mapped files, in no order, and last compiled code that is in none."""
        with self._inside() as handle:
            return visit("cdacq_session_visit_code_files", handle, item=_item(_abi.CodeFile, _code_file),
                         pending=self._pending)
