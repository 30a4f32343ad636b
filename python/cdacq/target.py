"""Opening a target; targets and sessions."""
from __future__ import annotations

import ctypes
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import IO, Any, NamedTuple

from . import _abi, _decode, records
from ._abi import NameStyle, OpenFlags, Verdict
from ._calls import Gate, Listing, Pending, call, visit
from ._lookups import Lookups, _item, _sized, registers_struct
from ._report import run_report

_need = _decode.decoder(_abi.Need, records.Need)
_target_info = _decode.decoder(_abi.TargetInfo, records.TargetInfo)
_stops = _decode.decoder(_abi.Stops, records.Stops)
_process_info = _decode.decoder(_abi.ProcessInfo, records.ProcessInfo)
_runtime = _decode.decoder(_abi.RuntimeInfo, records.RuntimeInfo)
_process = _decode.decoder(_abi.Process, records.Process)
_processor_limit = _decode.decoder(_abi.ProcessorLimit, records.ProcessorLimit)
_thread_time = _decode.decoder(_abi.ThreadTime, records.ThreadTime)
_contract = _decode.decoder(_abi.ContractInfo, records.ContractInfo)
_mapped_file = _decode.decoder(_abi.MappedFile, records.MappedFile)
_descriptor_item = _decode.decoder(_abi.DescriptorItem, records.DescriptorItem)


class Mapping(NamedTuple):
    """A mapping of a target whose memory the caller provides. `path` is None for anonymous memory."""
    begin: int
    end: int
    file_offset: int = 0
    path: str | None = None


class MemoryThread(NamedTuple):
    """A thread of a target whose memory the caller provides. `registers` maps DWARF numbers to values."""
    tid: int
    """The kernel's id, by which the runtime knows the thread."""
    registers: dict[int, int] | None = None
    name: str | None = None
    signal: int = 0
    died: bool = False


class Memory(NamedTuple):
    """Memory that the caller provides, such as that of a debugger: the `callbacks` of `open`.

    `read(address, size)` returns the bytes from `address` up to the first that cannot be read: at most `size`, none if
    the first cannot be read. A host that can only succeed or fail as a whole may return none for a partly readable
    range. The library keeps the bytes; open the target again to see a process's later state. `span_at(address)` may
    be given instead, for memory that is at hand: it returns the begin and the bytes of the widest readable span that
    contains the address, or None; they must not change until the target is closed.

    The runtime is found by the mapping at file offset 0 of libcoreclr.so or of a single-file application, or by
    `descriptor_address` of `open`. Callbacks run within calls on the target, and must not use it. What they raise
    leaves the call that called them; what they could not read then stays missing.
    """
    read: Callable[[int, int], bytes] | None = None
    mappings: Sequence[Mapping] = ()
    pid: int = 0
    elf_machine: int = 0
    """EM_* of the process; 0: taken from the runtime's image."""
    span_at: Callable[[int], tuple[int, Any] | None] | None = None
    threads: Sequence[MemoryThread] = ()
    """What `Target.threads` returns, with what the runtime knows of them."""
    held: Sequence[tuple[int, int]] | None = None
    """Where there is memory, as (begin, end); no callback is called for other addresses. None: not known."""


class _Kept:
    """What C points to while a target is open: arrays, strings, callbacks."""

    def __init__(self, pending: Pending) -> None:
        self.pending = pending
        self._kept: list[Any] = []

    def keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value

    def strings(self, values: Iterable[str | os.PathLike[str]]) -> tuple[Any, int]:
        array = [_decode.encode(os.fspath(value)) for value in values]
        return self.keep((ctypes.c_char_p * len(array))(*array)), len(array)


def _one_or_more(value: Any) -> list[Any]:
    return [value] if isinstance(value, (str, bytes, os.PathLike)) else list(value)


def _write_text(text: str | os.PathLike[str], address: int, size: int) -> bool:
    raw = _decode.encode(os.fspath(text)) + b"\0"
    if len(raw) > size:
        return False
    ctypes.memmove(address, raw, len(raw))
    return True


def _options(kept: _Kept, flags: OpenFlags, runtime: int, sysroots: Any, module_paths: Any, descriptors: Any,
             descriptor_address: int, names: NameStyle, find_file: Any, describe_need: Any, store_max: int,
             progress: Any, work_max: int, memory_max: int, fetching: Any, symbol_servers: Any,
             symbol_cache: str | os.PathLike[str] | None, fetch_failed: Any) -> Any:
    options = _sized(_abi.Options)
    options.work_max, options.memory_max = (_decode.number(most, "a bound") for most in (work_max, memory_max))
    options.flags, options.runtime = flags, _decode.number(runtime, "the index of a runtime", 32)
    options.names = _decode.number(names, "a style of names", 31)
    options.sysroots, options.sysroot_count = kept.strings(_one_or_more(sysroots))
    options.module_paths, options.module_path_count = kept.strings(_one_or_more(module_paths))
    options.descriptors, options.descriptor_count = kept.strings(_one_or_more(descriptors))
    options.symbol_servers, options.symbol_server_count = kept.strings(_one_or_more(symbol_servers))
    if symbol_cache is not None:
        options.symbol_cache = kept.keep(_decode.encode(os.fspath(symbol_cache)))
    options.descriptor_address, options.store_max = (
        _decode.address(descriptor_address), _decode.number(store_max, "a size"))
    need = _item(_abi.Need, _need)
    for name, function in (("find_file", find_file), ("describe_need", describe_need), ("progress", progress),
                           ("fetching", fetching), ("fetch_failed", fetch_failed)):
        _decode.function(function, name)

    if find_file is not None:
        def find(address: int, path: int, size: int, _context: object) -> bool:
            found = find_file(need(address))
            return found is not None and _write_text(found, path, size)
        options.find_file = kept.keep(_abi.FindFile(kept.pending.guard(find, False)))
    if describe_need is not None:
        def describe(address: int, text: int, size: int, _context: object) -> None:
            described = describe_need(need(address))
            if described is not None:
                _write_text(described, text, size)
        options.describe_need = kept.keep(_abi.DescribeNeed(kept.pending.guard(describe, None)))
    if progress is not None:
        def report(done: int, total: int, _context: object) -> None:
            progress(done, total)
        options.progress = kept.keep(_abi.Progress(kept.pending.guard(report, None)))
    if fetching is not None:
        def fetch(address: int | None, done: int, total: int, _context: object) -> None:
            fetching(need(address) if address else None, done, total)
        options.fetching = kept.keep(_abi.Fetching(kept.pending.guard(fetch, None)))
    if fetch_failed is not None:
        def fail(address: int, url: int, absent: bool, why: int, _context: object) -> None:
            texts = (_decode.text(ctypes.string_at(text)) for text in (url, why))
            fetch_failed(need(address), next(texts), absent, next(texts))
        options.fetch_failed = kept.keep(_abi.FetchFailed(kept.pending.guard(fail, None)))
    return options


def _pinned(content: Any) -> Any:
    """What has the address of the bytes of `content`, or of a copy of a read-only buffer."""
    if isinstance(content, bytes):
        return ctypes.c_char_p(content)
    raw = memoryview(content).cast("B")
    array = ctypes.c_char * len(raw)
    return array.from_buffer_copy(raw) if raw.readonly else array.from_buffer(raw)


def _of_type(kind: Any, items: Sequence[Any]) -> Sequence[Any]:
    for item in items:
        if not isinstance(item, kind):
            raise _decode.wrong_type(item, f"a {kind.__name__}")
    return items


def _memory(kept: _Kept, callbacks: Memory) -> Any:
    memory = _sized(_abi.Memory)
    array = (_abi.Mapping * max(len(callbacks.mappings), 1))()
    for item, mapping in zip(array, _of_type(Mapping, callbacks.mappings)):
        item.size = ctypes.sizeof(_abi.Mapping)
        item.begin, item.end, item.file_offset = mapping.begin, mapping.end, mapping.file_offset
        item.path = None if mapping.path is None else kept.keep(_decode.encode(os.fspath(mapping.path)))
    memory.mappings, memory.mapping_count = kept.keep(array), len(callbacks.mappings)
    threads = (_abi.MemoryThread * max(len(callbacks.threads), 1))()
    for item, thread in zip(threads, _of_type(MemoryThread, callbacks.threads)):
        item.size = ctypes.sizeof(_abi.MemoryThread)
        item.tid, item.signal, item.died = thread.tid, thread.signal, thread.died
        item.name = None if thread.name is None else kept.keep(_decode.encode(thread.name))
        if thread.registers is not None:
            item.registers = ctypes.pointer(kept.keep(registers_struct(thread.registers)))
    memory.threads, memory.thread_count = kept.keep(threads), len(callbacks.threads)
    if callbacks.held is not None:
        held = (_abi.Mapping * max(len(callbacks.held), 1))()
        for item, (begin, end) in zip(held, callbacks.held):
            item.size, item.begin, item.end = ctypes.sizeof(_abi.Mapping), begin, end
        memory.held, memory.held_count = kept.keep(held), len(callbacks.held)
    memory.pid, memory.elf_machine = callbacks.pid, callbacks.elf_machine
    if callbacks.read is not None:
        reader = _decode.function(callbacks.read, "read")

        def read(address: int, buffer: int, size: int, _context: object) -> int:
            data = reader(address, size)
            if len(data) > size:
                raise ValueError(f"read({address:#x}, {size}) returned {len(data)} bytes")
            ctypes.memmove(buffer, bytes(data), len(data))
            return len(data)
        memory.read = kept.keep(_abi.Read(kept.pending.guard(read, 0)))
    if callbacks.span_at is not None:
        finder = _decode.function(callbacks.span_at, "span_at")
        spans: dict[int, tuple[Any, Any, int]] = {}

        def span_at(address: int, begin: Any, end: Any, data: Any, _context: object) -> bool:
            found = finder(address)
            if found is None:
                return False
            start, content = found
            if start not in spans or spans[start][0] is not content:  # pinned once
                spans[start] = content, kept.keep(_pinned(content)), len(content)
            _, pinned, length = spans[start]
            if not start <= address < start + length:
                raise ValueError(f"span_at({address:#x}) returned a span that does not contain it")
            begin[0], end[0], data[0] = start, start + length, ctypes.cast(pinned, ctypes.c_void_p).value
            return True
        memory.span_at = kept.keep(_abi.SpanAt(kept.pending.guard(span_at, False)))
    return memory


class _Origin(NamedTuple):
    """Where a target is from."""
    text: str
    """For people."""
    report: list[str] | None
    """The arguments of `cdacq report`; None if the command line cannot open it."""


def _description(source: Any, image: bool) -> str:
    if source is None:
        return "memory"
    if isinstance(source, int):
        return f"process {source}"
    name = getattr(source, "name", "a file") if hasattr(source, "fileno") else os.fspath(source)
    return f"{'image' if image else 'core'} {name!r}"


def _report_arguments(source: Any, options: dict[str, Any], flags: list[str]) -> list[str] | None:
    if not isinstance(source, (int, str, bytes, os.PathLike)):
        return None
    named = [f"{name}={os.fsdecode(value)}" for name, values in options.items() for value in _one_or_more(values)]
    return [*flags, *named, str(source) if isinstance(source, int) else os.path.abspath(os.fsdecode(source))]


def _open_handle(source: Any, callbacks: Memory | None, image: bool, kept: _Kept, options: Any) -> Any:
    handle = ctypes.c_void_p()
    out = ctypes.byref(options), ctypes.byref(handle)
    with kept.pending.collecting():
        if callbacks is not None:
            call("cdacq_target_open_memory", ctypes.byref(kept.keep(_memory(kept, callbacks))), *out)
        elif image:
            call("cdacq_target_open_image", _decode.encode(os.fspath(source)), *out)
        elif isinstance(source, int):
            call("cdacq_target_open_pid", source, *out)
        elif hasattr(source, "fileno"):
            name = getattr(source, "name", None)
            call("cdacq_target_open_core_fd", source.fileno(), _decode.encode(
                name if isinstance(name, str) else f"file {source.fileno()}"), *out)
        else:
            call("cdacq_target_open_core", _decode.encode(os.fspath(source)), *out)
    return handle


def open(source: str | os.PathLike[str] | int | IO[bytes] | None = None, *, callbacks: Memory | None = None,
         image: bool = False, stop: bool = False, record: bool = False, debuginfod: bool = False,
         partial: bool = False, pread: bool = False, keep: bool = False, runtime: int = 0, all_runtimes: bool = False,
         sysroots: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
         module_paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
         descriptors: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (), descriptor_address: int = 0,
         names: NameStyle = NameStyle.CSHARP,
         find_file: Callable[[records.Need], str | os.PathLike[str] | None] | None = None,
         describe_need: Callable[[records.Need], str | None] | None = None, store_max: int = 0,
         progress: Callable[[int, int], object] | None = None, work_max: int = 0, memory_max: int = 0,
         fetching: Callable[[records.Need | None, int, int], object] | None = None,
         symbol_servers: str | Iterable[str] = (), symbol_cache: str | os.PathLike[str] | None = None,
         fetch_failed: Callable[[records.Need, str, bool, str], object] | None = None) -> Target:
    """Opens a target; close it, or use it in a `with` statement. Raises Error.

    `source` is the path of a core, an open file that provides one (a pipe too, which is read to its end), the id of a
    process, or, with `image`, the path of libcoreclr.so or of a single-file application. `callbacks` is given instead
    for memory that the caller provides.

    `stop`: stop the process until the target is closed, which the stacks of a process need. `record`: record what is
    read, for `write_snapshot`. `debuginfod`: ask the servers in DEBUGINFOD_URLS for missing ELF files. `partial`: also
    open a target in which no method can be found; `info` then says why. `pread`: read the core with pread and map
    nothing, for files that may change. `keep`: of a running process, keep what was read until `refresh`. `runtime`: the
    index of the runtime to use. `all_runtimes`: look-ups and stacks are answered by all runtimes of the process, and
    `of_runtime` has what belongs to one of them. `sysroots`, `module_paths`: where the target's files are on this machine.
    `descriptors`: JSON files that override the published descriptor. `names`: the style of method names.

    `find_file` is called with each Need and returns a path or None; `describe_need` returns a text for the message
    that reports the need; `progress` is called with the bytes read and their total while a core is unpacked;
    `fetching` is called with a Need, the bytes and their total (0: not yet known) while a file is fetched, and with
    None when the fetch has ended; `fetch_failed` is called with a Need, a URL, whether the symbol server has no such
    file, and why it was not fetched. `symbol_servers`: URLs of symbol servers to ask for missing files and PDBs by the
    program curl; `symbol_cache`: the folder of fetched files, by default ~/.cache/cdacq.
    `store_max` is the maximal size of the temporary file, in bytes. `work_max` and `memory_max` bound the steps and the
    memory of all calls together; 0: no bound; BOUND_BY_SIZE: what a core of its size may need. Callbacks must not use
    the target.
    """
    if (source is None) == (callbacks is None):
        raise TypeError("open takes either a source or callbacks")
    if callbacks is not None and not isinstance(callbacks, Memory):
        raise _decode.wrong_type(callbacks, "a Memory")
    if isinstance(source, int):
        _decode.process_id(source)
    flags = OpenFlags(0)
    for wanted, flag in ((stop, OpenFlags.STOP), (record, OpenFlags.RECORD), (debuginfod, OpenFlags.DEBUGINFOD),
                         (partial, OpenFlags.PARTIAL), (pread, OpenFlags.PREAD), (keep, OpenFlags.KEEP),
                         (all_runtimes, OpenFlags.ALL_RUNTIMES)):
        flags |= flag if wanted else OpenFlags(0)
    sysroots, module_paths, descriptors, symbol_servers = map(
        _one_or_more, (sysroots, module_paths, descriptors, symbol_servers))  # each may be read only once
    kept = _Kept(Pending())
    options = _options(kept, flags, runtime, sysroots, module_paths, descriptors, descriptor_address, names, find_file,
                       describe_need, store_max, progress, work_max, memory_max, fetching, symbol_servers,
                       symbol_cache, fetch_failed)
    is_process = isinstance(source, int) and callbacks is None
    origin = _Origin(_description(source, image), None if image else _report_arguments(source, {
        "--sysroot": sysroots, "--module-path": module_paths, "--descriptor": descriptors,
        "--symbol-server": symbol_servers, "--symbol-cache": () if symbol_cache is None else symbol_cache,
        "--descriptor-address": f"{descriptor_address:x}" if descriptor_address else (),
        "--runtime": str(int(runtime)) if runtime else ()}, ["--debuginfod"] if debuginfod else []))
    return Target(_open_handle(source, callbacks, image, kept, options), kept, is_process or record, origin)


class Session(Lookups):
    """The look-ups of one Python thread at a time; others wait. Made by `Target.session`.

    A target has a session of its own, which its look-ups use. Further sessions let several threads look things up at
    once, in a core or in memory of the caller. Closed with its target, or before by `close` or `with`.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._pending = target._pending
        self._gate = Gate("session", exclusive=True)
        self._handle = ctypes.c_void_p()
        with target._using() as handle, self._pending.collecting():
            call("cdacq_session_create", handle, ctypes.byref(self._handle))
        target._sessions.add(self._handle.value)

    @contextmanager
    def _inside(self) -> Iterator[Any]:
        self._gate.enter()
        try:
            with self._target._using():
                yield self._handle
        finally:
            self._gate.leave()

    def close(self) -> None:
        """Destroys the session. May be called again."""
        if self._gate.close():
            self._target._destroy_session(self._handle.value)

    def of_runtime(self, runtime: int) -> RuntimeSession:
        """The look-ups of one runtime, if the target was opened with `all_runtimes`. Raises LookupError."""
        return RuntimeSession(self, runtime)

    def report(self) -> dict[str, Any]:
        """That of the target: see `Target.report`."""
        return self._target.report()

    def __repr__(self) -> str:
        closed = self._gate.closed or self._target._gate.closed
        return f"<cdacq.Session of {self._target._origin.text}{', closed' if closed else ''}>"

    def __del__(self) -> None:
        if hasattr(self, "_handle") and self._handle and not self._gate.closed:
            self.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()


class RuntimeSession(Lookups):
    """The look-ups of one of the runtimes that a session asks. Made by `of_runtime`; closed with that session."""

    def __init__(self, session: Session, runtime: int) -> None:
        self._session = session
        self._pending = session._pending
        with session._inside() as handle:
            self._handle = _abi.library().cdacq_session_of_runtime(
                handle, _decode.number(runtime, "the index of a runtime", 32))
        if not self._handle:
            raise LookupError(f"runtime {runtime} is not there, cannot be read, or is not asked")
        self._runtime = runtime

    def __repr__(self) -> str:
        return f"<cdacq.RuntimeSession of runtime {self._runtime} of {self._session._target._origin.text}>"

    @contextmanager
    def _inside(self) -> Iterator[Any]:
        with self._session._inside():
            yield self._handle

    @property
    def info(self) -> records.TargetInfo:
        """What the target is, with this runtime as the one in use."""
        found = _sized(_abi.TargetInfo)
        with self._inside() as handle, self._pending.collecting():
            call("cdacq_target_get_info", _abi.library().cdacq_session_target(handle), ctypes.byref(found))
            info: records.TargetInfo = _target_info(found)
            return info


class Target(Lookups):
    """An open target. Made by `open`. It has the look-ups of a session, and what concerns the target as a whole.

    Threads of Python may share a target: calls of one session wait for each other, and so do all calls on a running
    process or on a target with `record`. After `close`, every call on the target and what it made raises ClosedError.
    """

    def __init__(self, handle: Any, kept: _Kept, exclusive: bool, origin: _Origin) -> None:
        self._handle = handle
        self._origin = origin
        self._kept = kept
        self._pending = kept.pending
        self._gate = Gate("target", exclusive=exclusive)
        self._sessions: set[Any] = set()
        self._session: Session | None = None
        self._creating = threading.Lock()

    # ---- Lifetime

    @contextmanager
    def _using(self) -> Iterator[Any]:
        self._gate.enter()
        try:
            yield self._handle
        finally:
            self._gate.leave()

    @contextmanager
    def _inside(self) -> Iterator[Any]:
        with self._default._inside() as handle:
            yield handle

    @property
    def _default(self) -> Session:
        """The session that the look-ups of the target use. It is closed only with the target."""
        with self._creating:
            if self._session is None:
                self._session = Session(self)
            return self._session

    def of_runtime(self, runtime: int) -> RuntimeSession:
        """The look-ups of one runtime, if the target was opened with `all_runtimes`. Raises LookupError."""
        return self._default.of_runtime(runtime)

    @property
    def runtime_count(self) -> int:
        """How many runtimes the process has."""
        with self._using() as handle:
            return int(_abi.library().cdacq_target_runtime_count(handle))

    def session(self) -> Session:
        """Another session, for another thread."""
        return Session(self)

    def _destroy_session(self, handle: Any) -> None:
        if handle in self._sessions and not self._gate.closed:
            with self._using():
                self._sessions.discard(handle)
                _abi.library().cdacq_session_destroy(handle)

    def close(self) -> None:
        """Destroys all sessions, frees the target, and resumes a stopped process. May be called again."""
        if self._gate.close():
            for handle in self._sessions:
                _abi.library().cdacq_session_destroy(handle)
            self._sessions.clear()
            _abi.library().cdacq_target_close(self._handle)

    @property
    def closed(self) -> bool:
        """Whether the target was closed."""
        return self._gate.closed

    def __enter__(self) -> Target:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_gate") and not self._gate.closed:
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
            self.close()

    def __repr__(self) -> str:
        return f"<cdacq.Target of {self._origin.text}{', closed' if self._gate.closed else ''}>"

    # ---- What the target is

    @property
    def info(self) -> records.TargetInfo:
        """What the target is: process, runtime, descriptor, core."""
        found = _sized(_abi.TargetInfo)
        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_get_info", handle, ctypes.byref(found))
            info: records.TargetInfo = _target_info(found)
            return info

    @property
    def truncation(self) -> str | None:
        """Why only the beginning of a core was read; None if nothing is missing, or no reason is known."""
        with self._using() as handle:
            return _decode.text(_abi.library().cdacq_target_truncation(handle))

    @property
    def process(self) -> records.ProcessInfo:
        """The program, its arguments, and the signal that ended it."""
        found = _sized(_abi.ProcessInfo)
        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_get_process_info", handle, ctypes.byref(found))
            info: records.ProcessInfo = _process_info(found)
            return info

    def report(self) -> dict[str, Any]:
        """The report that `cdacq report --json` makes of the same core or process, with the same files.

        It is made by the command line, which opens the core or process again: a process must not be stopped by this
        target meanwhile. CDACQ_TOOL may name the program; without it the one of the same installation is used, else
        `cdacq` in PATH. Raises FileNotFoundError if there is none, ValueError if the target is an open file, an image or
        memory of the caller, which the command line cannot open, and Error if it has no report.
        """
        with self._using():
            pass  # it is not closed
        if self._origin.report is None:
            raise ValueError(f"cdacq report cannot open the {self._origin.text}: give open a path or a pid")
        return run_report(self._origin.report)

    def refresh(self) -> None:
        """Reads again what a running process can change, and the files that it maps now."""
        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_refresh", handle)

    def stop(self) -> None:
        """Stops a running process until `resume`, and begins an epoch as `refresh` does."""
        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_stop", handle)

    def resume(self) -> None:
        """Lets a stopped process run on. If it was opened with `stop`, nothing more may be asked after that."""
        with self._using() as handle:
            _abi.library().cdacq_target_resume(handle)

    @property
    def stops(self) -> records.Stops:
        """How often and for how long the process was stopped."""
        found = _sized(_abi.Stops)
        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_get_stops", handle, ctypes.byref(found))
            made: records.Stops = _stops(found)
            return made

    @property
    def bound_reached(self) -> str | None:
        """The bound of `work_max` or `memory_max` that was reached; None if none was."""
        buffer = ctypes.create_string_buffer(_abi.ERROR_MESSAGE_SIZE)
        with self._using() as handle:
            reached = _abi.library().cdacq_target_bound_reached(handle, buffer, len(buffer))
        return _decode.text(buffer.value) if reached else None

    def _visit(self, name: str, item: Callable[[int], Any]) -> Listing[Any]:
        with self._using() as handle:
            return visit(name, handle, item=item, pending=self._pending)

    def runtimes(self) -> Listing[records.RuntimeInfo]:
        """The runtimes of the process, in the order of `runtime` of `open`."""
        return self._visit("cdacq_target_visit_runtimes", _item(_abi.RuntimeInfo, _runtime))

    def contracts(self) -> Listing[records.ContractInfo]:
        """The contracts that the runtime publishes."""
        return self._visit("cdacq_target_visit_contracts", _item(_abi.ContractInfo, _contract))

    def mapped_files(self) -> Listing[records.MappedFile]:
        """The mapped files, and for each one the file on this machine that supplies what the target lacks."""
        return self._visit("cdacq_target_visit_mapped_files", _item(_abi.MappedFile, _mapped_file))

    def descriptor(self) -> Listing[records.DescriptorItem]:
        """The merged descriptor: every type, followed by its fields, then globals, then contracts."""
        return self._visit("cdacq_target_visit_descriptor", _item(_abi.DescriptorItem, _descriptor_item))

    # ---- Files

    def write_snapshot(self, path: str | os.PathLike[str]) -> int:
        """Writes a small core of what was read since the target was opened with `record`. Returns its size."""
        size = ctypes.c_uint64()
        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_write_snapshot", handle, _decode.encode(os.fspath(path)), ctypes.byref(size))
        return size.value

    def record_arguments(self) -> None:
        """Has a snapshot hold the command line."""
        with self._using() as handle:
            call("cdacq_target_record_arguments", handle)

    def environment(self) -> list[str]:
        """The variables that the process was started with, as "NAME=VALUE"; often, secrets are among them."""
        found: list[str] = []

        def take(variable: int, _context: object) -> int:
            found.append(_decode.text(ctypes.string_at(variable)) or "")
            return 0

        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_visit_environment", handle, _abi.VisitVariable(self._pending.guard(take, 1)), None)
        return found

    def record_memory(self, address: int, size: int) -> None:
        """Has a snapshot hold that memory, as far as the target has it."""
        with self._using() as handle:
            call("cdacq_target_record_memory", handle, _decode.address(address), _decode.address(size))

    def write_complete_core(self, path: str | os.PathLike[str], unverified: bool = False) -> records.CompleteCore:
        """Writes a core again with the pages of its mapped files filled in, from files that the core confirms;
        `unverified`: also from those that nothing confirms or contradicts."""
        made = _sized(_abi.CompleteCore)
        files: list[records.UnfilledFile] = []

        def take(address: int, _context: object) -> int:
            file = _abi.UnfilledFile.from_address(address)
            files.append(records.UnfilledFile(_decode.text(file.path) or "", file.missing_size,
                                              _decode.text(file.problem) or "", file.unverified))
            return 0

        visitor = _abi.Visitor(self._pending.guard(take, 1))
        flags = _abi.CompleteFlags.UNVERIFIED if unverified else 0
        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_write_complete_core", handle, _decode.encode(os.fspath(path)), flags, visitor, None,
                 ctypes.byref(made))
        return records.CompleteCore(made.file_size, made.filled_size, made.unverified_size, made.missing_size,
                                    made.segment_count, files)

    def verify(self, path: str | os.PathLike[str],
               each: Callable[[records.Comparison], object] | None = None) -> records.Verification:
        """Compares the target with a jitdump or perf map. Returns the totals.

        `each` is called for every record of the file in its order, then for every method that it lacks. It must not
        use the target; what it returns is ignored, and what it raises ends the comparison.
        """
        def visitor(address: int, _context: object) -> int:
            assert each is not None
            item = _decode.copy(address, _abi.Comparison)
            each(records.Comparison(
                _decode.member(Verdict, item.verdict), item.offset, item.line, item.timestamp, item.address,
                item.code_size, _decode.text_at(item.name, item.name_length),
                _decode.method(item.method, _decode.Strings()) if item.method else None, _decode.text(item.detail)))
            return 0

        found = _sized(_abi.Verification)
        callback = _abi.Visitor(self._pending.guard(visitor, 1)) if _decode.function(each, "each") else _abi.Visitor(0)
        with self._using() as handle, self._pending.collecting():
            call("cdacq_target_verify", handle, _decode.encode(os.fspath(path)), callback, None, ctypes.byref(found))
            return records.Verification(
                found.perf_map, found.records, found.contradictions, found.names_not_compared,
                found.code_not_compared, _decode.text(found.advice), _decode.text(found.cut) or None,
                _decode.text(found.methods_problem) or None, dict(zip(Verdict, found.counts)))


def find_perf_map(pid: int) -> str | None:
    """The path of the perf map of a running process; None if there is none, perhaps not yet."""
    path = ctypes.create_string_buffer(4096)
    if call("cdacq_perf_map_find_file", _decode.process_id(pid), path, len(path)) == Status.NOT_MANAGED:
        return None
    return _decode.text(path.value)


def processes(pid: int | None = None) -> Listing[records.Process]:
    """The .NET processes of this machine, by pid, those in containers included; or the one with a pid, if it is .NET."""
    if pid is not None:
        return visit("cdacq_visit_process", _decode.process_id(pid), item=_item(_abi.Process, _process),
                     pending=Pending())
    return visit("cdacq_visit_processes", item=_item(_abi.Process, _process), pending=Pending())


def thread_times(pid: int) -> Listing[records.ThreadTime]:
    """The processor time of each thread of a process: two calls show which threads were busy between them."""
    return visit("cdacq_visit_thread_times", _decode.process_id(pid), item=_item(_abi.ThreadTime, _thread_time),
                 pending=Pending())


def processor_limit(pid: int) -> records.ProcessorLimit:
    """The limit on the processor time of a process: two calls show whether it was held back between them."""
    found = _sized(_abi.ProcessorLimit)
    call("cdacq_get_processor_limit", _decode.process_id(pid), ctypes.byref(found))
    made: records.ProcessorLimit = _processor_limit(found)
    return made


def memory_limit(pid: int) -> records.MemoryLimit:
    """The limit on the memory of a process, and how much of it is used."""
    found = _sized(_abi.MemoryLimit)
    call("cdacq_get_memory_limit", _decode.process_id(pid), ctypes.byref(found))
    return records.MemoryLimit(found.limit, found.used)


def stress_facilities(facilities: int) -> list[str]:
    """The names of the facilities of a message of the stress log, as "GC"."""
    facility_name = _abi.library().cdacq_stress_facility_name
    return [facility_name(bit).decode() for bit in range(32) if facilities >> bit & 1]


__all__ = ["Mapping", "Memory", "MemoryThread", "Session", "Target", "memory_limit", "open", "processes", "processor_limit",
           "stress_facilities", "thread_times"]
