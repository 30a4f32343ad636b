# mypy: ignore-errors
"""Managed frames in gdb: `python import cdacq.gdb`.

Adds to gdb's `bt` the frames of managed code with their names, files and lines, and the commands below `cdacq`. Memory
and registers come from gdb, so that this works for cores, processes and gdbserver.
"""
from __future__ import annotations

import bisect
import os
import re
import shlex
from collections.abc import Iterator
from typing import Any

import gdb
import gdb.unwinder
from gdb.FrameDecorator import FrameDecorator

from ._abi import library
from ._debugger import (MACHINES, POINTERS, REGISTERS, Core, Debugger, Intervals, data, file_name, name_text, printable,
                        read_core)
from ._lookups import Frame
from .errors import Error
from .target import Mapping

_MAPPING = re.compile(r"\s*0x([0-9a-f]+)\s+0x([0-9a-f]+)\s+0x[0-9a-f]+\s+0x([0-9a-f]+)"
                      r"(?:\s+[r-][w-][x-][ps](?=\s|$))?(?:\s+(\S.*?) ?|\s*)$")
_MASK = (1 << 64) - 1
_UNREADABLE = "?"  # instead of a name that gdb refuses to give
STOP_FRAMES_MAX = 64  # that a stop looks at for new code


def parse_mappings(text: str) -> Iterator[Mapping]:
    """What `info proc mappings` prints. From gdb 16 on, each line ends with a blank; before, it can only be the path's."""
    lines = [parts for line in text.split("\n") if (parts := _MAPPING.match(line))]
    has_blank = all(parts[0].endswith(" ") for parts in lines)
    for parts in lines:
        path = parts[4] and parts[4] + " " * (not has_blank and parts[0].endswith(" "))
        yield Mapping(int(parts[1], 16), int(parts[2], 16), int(parts[3], 16), path or None)


def _output(command: str) -> str:
    """What a command of gdb prints. gdb refuses bytes that are not UTF-8, such as those of a file's name."""
    try:
        text: str = gdb.execute(command, to_string=True)
    except UnicodeDecodeError as error:
        text = os.fsdecode(error.object)
    return text


def _name(thread: Any) -> str | None:
    """A thread's name. The kernel keeps 15 bytes of it; they can end within a character."""
    try:
        name: str | None = thread.name
    except UnicodeDecodeError as error:
        name = os.fsdecode(error.object)
    return name


class _Gdb(Debugger):
    def __init__(self) -> None:
        super().__init__()
        self._walks: dict[int, _Walk] = {}
        self._held: Intervals | None = None

    def read(self, address: int, size: int) -> bytes:
        if self._held is not None:  # gdb reads on from a file through what the core has
            index = bisect.bisect_right(self._held, (address, _MASK)) - 1
            end = self._held[index][1] if index >= 0 else 0
            size = max(min(size, end - address), 0)
        if not size:
            return b""
        try:
            return bytes(gdb.selected_inferior().read_memory(address, size))
        except (gdb.MemoryError, gdb.error):
            return b""

    def mappings(self) -> list[Mapping]:
        path = _core_file()
        core = read_core(path) if path else None
        found = core.mappings if core else []  # gdb prints them, and has no other way to pass them on
        if not found:
            try:
                found = list(parse_mappings(_output("info proc mappings")))
            except gdb.error:
                pass
        if not any(mapping.path for mapping in found):
            found = list(self._shared_libraries())
        self._paths = tuple({mapping.path: None for mapping in found if mapping.path})
        self._held = _held(core)
        return found

    def held(self) -> Intervals | None:
        return self._held

    def roots(self) -> tuple[str, ...]:
        root = gdb.parameter("sysroot") or ""
        return () if root.startswith("target:") else (root.rstrip("/"),)

    def _shared_libraries(self) -> Iterator[Mapping]:
        """For targets that do not list mappings: the runtime, from its header to the end of its code."""
        for line in _output("info sharedlibrary").splitlines():
            parts = re.match(r"0x([0-9a-f]+)\s+0x([0-9a-f]+)\s.*?(/\S*libcoreclr\.so)$", line)
            if parts:
                at = int(parts[1], 16) & ~0xFFF
                for _ in range(1 << 14):
                    if self.read(at, 4) == b"\x7fELF":
                        yield Mapping(at, int(parts[2], 16), 0, parts[3])
                        break
                    at -= 0x1000

    def thread_ids(self) -> list[tuple[int, str | None]]:
        return [(_tid(thread), _name(thread)) for thread in sorted(gdb.selected_inferior().threads(),
                                                                   key=lambda thread: thread.num)]

    def died(self) -> tuple[int, int] | None:
        signal, threads = gdb.convenience_variable("_exitsignal"), self.thread_ids()
        return (threads[0][0], int(signal)) if self._held is not None and signal is not None and threads else None

    def selected_thread_id(self) -> int:
        thread = gdb.selected_thread()
        if thread is None:
            raise gdb.GdbError("No thread is selected.")
        return _tid(thread)

    def registers(self, tid: int) -> dict[int, int]:
        selected = gdb.selected_thread()
        thread = next((t for t in gdb.selected_inferior().threads() if _tid(t) == tid), None)
        if thread is None:
            raise gdb.GdbError(f"There is no thread {tid}.")
        if thread.num == selected.num:
            return _registers(gdb.newest_frame(), self.machine)
        frame = gdb.selected_frame()
        thread.switch()
        try:
            return _registers(gdb.newest_frame(), self.machine)
        finally:
            selected.switch()
            frame.select()

    def selected_pc(self) -> tuple[int, bool]:
        return gdb.selected_frame().pc(), _is_call(gdb.selected_frame())

    def evaluate(self, expression: str) -> int:
        return int(gdb.parse_and_eval(expression))

    @property
    def machine(self) -> int:
        name = gdb.selected_inferior().architecture().name()
        return next((MACHINES[part] for part in re.split("[:/]", name) if part in MACHINES), 0)

    @property
    def pid(self) -> int:
        pid: int = gdb.selected_inferior().pid
        return pid

    def changed(self) -> None:
        super().changed()
        self._walks.clear()

    # ---- Unwinding

    def walk(self, tid: int) -> _Walk | None:
        return self._walks.get(tid)

    def begin_walk(self, tid: int, registers: dict[int, int], caller: bool) -> _Walk:
        """The frames from registers on, added to what is known of the thread's stack."""
        thread = self.threads().get(tid)
        try:
            listing = self.target().frames(registers, thread=thread.thread if thread else 0, caller=caller)
            frames, complete = listing.items, listing.error is None
        except Error:
            frames, complete = [], False
        walk = self._walks.setdefault(tid, _Walk())
        walk.add(frames, complete)
        return walk


class _Walk:
    """The frames that walks of one thread found, by program counter and stack pointer."""

    def __init__(self) -> None:
        self.frames: dict[tuple[int, int], tuple[Frame, Frame | None]] = {}
        self.outermost: set[tuple[int, int]] = set()

    def add(self, frames: list[Frame], complete: bool) -> None:
        if complete and frames:
            self.outermost.add((frames[-1].pc, frames[-1].sp))
        for frame, caller in zip(frames, [*frames[1:], None]):
            self.frames.setdefault((frame.pc, frame.sp), (frame, caller))


def _core_file() -> str | None:
    found = re.search(r"^Local core dump file:\s+`(.*)', file type", _output("info files"), re.M)
    return found[1] if found else None


def _held(core: Core | None) -> Intervals | None:
    """Where the core has memory, if there is one. Elsewhere gdb shows what files have now, and does not say so. What
    gdb lists has what the core lacks, too."""
    if core is None:
        return None
    return sorted(core.held or ((int(begin, 16), int(end, 16)) for begin, end in re.findall(
        r"^\s*0x([0-9a-f]+) - 0x([0-9a-f]+) is load", _output("info files"), re.M)))


def _tid(thread: Any) -> int:
    pid, lwp, tid = thread.ptid
    found: int = lwp or tid or pid
    return found


def _registers(frame: Any, machine: int) -> dict[int, int]:
    """The registers of a frame, or of one that is to be unwound. gdb does not know those that calls destroy."""
    found = {}
    for number, name in enumerate(REGISTERS.get(machine, ())):
        try:
            found[number] = int(frame.read_register(name)) & _MASK
        except gdb.error:
            pass
    return found


debugger = _Gdb()


class _FrameId:
    def __init__(self, sp: Any, pc: Any) -> None:
        self.sp = sp
        self.pc = pc


def _is_native(pc: int) -> bool:
    """A shared library, whose code gdb unwinds by itself."""
    return _solib_name(pc) is not None


def _solib_name(pc: int) -> str | None:
    """The file of the shared library at an address. gdb does not give its name if that is not UTF-8."""
    try:
        name: str | None = gdb.current_progspace().solib_name(pc)
    except UnicodeDecodeError:
        name = _UNREADABLE
    return name


class _Unwinder(gdb.unwinder.Unwinder):
    """Unwinds managed code, the runtime's stubs, and native code that only a Frame of the runtime leads out of."""

    def __init__(self) -> None:
        super().__init__("cdacq")
        self._busy = False

    def __call__(self, pending: Any) -> Any:
        if self._busy:
            return None
        self._busy = True
        try:
            return self._unwind(pending)
        except (Error, gdb.error):  # no runtime: not our process; or no registers
            return None
        finally:
            self._busy = False

    def _unwind(self, pending: Any) -> Any:
        machine = debugger.machine
        thread = gdb.selected_thread()
        if machine not in REGISTERS or thread is None:
            return None
        pc_number, sp_number = POINTERS[machine]
        names = REGISTERS[machine]
        pc, sp = (int(pending.read_register(names[number])) & _MASK for number in (pc_number, sp_number))
        tid = _tid(thread)
        known = debugger.walk(tid)
        if known is None:
            debugger.target()
            known = debugger.begin_walk(tid, _registers(pending, machine), pending.level() > 0)
        if (pc, sp) not in known.frames and not _is_native(pc):
            known = debugger.begin_walk(tid, _registers(pending, machine), pending.level() > 0)
        frame, caller = known.frames.get((pc, sp), (None, None))
        if frame is None or (caller is None and (pc, sp) not in known.outermost):
            return None
        if frame.method is None and (caller is None or caller.by.name != "FRAME") and _is_native(pc):
            return None
        start = frame.method.code_start if frame.method else pc
        types = {number: pending.read_register(names[number]).type for number in (pc_number, sp_number)}
        registers = caller.registers if caller else {pc_number: 0, sp_number: frame.cfa or sp + 8}
        info = pending.create_unwind_info(_FrameId(gdb.Value(registers[sp_number]).cast(types[sp_number]),
                                                   gdb.Value(start or pc).cast(types[pc_number])))
        for number, value in registers.items():
            if number < len(names):
                kind = types.get(number) or pending.read_register(names[number]).type
                info.add_saved_register(names[number], gdb.Value(value).cast(kind))
        return info


def _file_of(objfile: Any) -> str | None:
    try:
        path: str | None = objfile.filename
    except UnicodeDecodeError:
        path = _UNREADABLE
    return path


def _is_call(frame: Any) -> bool:
    """Whether a call returns to the frame's program counter. A signal interrupts a frame elsewhere."""
    newer = frame.newer()
    return newer is not None and newer.type() != gdb.SIGTRAMP_FRAME


class _ManagedFrame(FrameDecorator):
    """A managed frame in `bt`."""

    def __init__(self, base: Any, name: str, file: str | None, line: int) -> None:
        super().__init__(base)
        self._name, self._file, self._line = name, file, line

    def function(self) -> str:
        return self._name

    def filename(self) -> str | None:
        return self._file

    def line(self) -> int | None:
        return self._line or None

    def frame_args(self) -> None:
        return None

    def frame_locals(self) -> None:
        return None


class _NamelessFrame(FrameDecorator):
    """A native frame without a symbol, which gdb shows without `??` when there is a filter, or without a file."""

    def __init__(self, base: Any, name: str) -> None:
        super().__init__(base)
        self._name = name

    def function(self) -> str:
        return self._name

    def filename(self) -> None:
        return None


def _decorate(base: Any) -> Any:
    frame = base.inferior_frame()
    machine = debugger.machine
    thread = gdb.selected_thread()
    if machine not in REGISTERS or thread is None or frame.type() == gdb.INLINE_FRAME:
        return base
    try:
        known = debugger.walk(_tid(thread))
        sp = int(frame.read_register(REGISTERS[machine][POINTERS[machine][1]])) & _MASK
        found, _ = known.frames.get((frame.pc(), sp), (None, None)) if known else (None, None)
    except (Error, gdb.error):
        found = None
    decorated = _managed(base, frame, found)
    if decorated is None and frame.name() is None:
        native = ""
        if found and found.symbol and not _is_native(frame.pc()):
            native = f"{data(found.symbol)} ({file_name(found.module or '?')})"
        return _NamelessFrame(base, native or "??")
    if decorated is None and _solib_name(frame.pc()) == _UNREADABLE:
        return _NamelessFrame(base, frame.name())
    return decorated or base


def _managed(base: Any, frame: Any, found: Frame | None) -> Any:
    pc = frame.pc()
    try:
        method = found.method if found else None
        if found is None and not _is_native(pc):
            method = debugger.target().method_at(pc - _is_call(frame))
        if method is None or not (method.name or method.is_managed or method.answer.name == "STUB"):
            return None
    except (Error, gdb.error):
        return None
    name = name_text(method) or (f"stub <{method.kind.text}>" if method.answer.name == "STUB" else "??")
    if found and found.funclet.name != "NONE":
        name = f"[{found.funclet.name.lower()}] {name}"
    if found and found.by.name == "GUESS":
        name += " [guess]"
    return _ManagedFrame(base, printable(name), method.file and printable(method.file), method.line)


class _FrameFilter:
    """Names managed frames in `bt`."""

    def __init__(self) -> None:
        self.name = "cdacq"
        self.priority = 100
        self.enabled = True
        gdb.frame_filters[self.name] = self

    def filter(self, frames: Any) -> Any:
        for base in frames:
            if base.inferior_frame().pc() == 0 and base.inferior_frame().level() > 0:
                return  # beyond the outermost frame
            yield _decorate(base)


class _Prefix(gdb.Command):
    """Managed code of the process: methods, stacks, exceptions."""

    def __init__(self) -> None:
        super().__init__("cdacq", gdb.COMMAND_STACK, prefix=True)


class _Command(gdb.Command):
    def __init__(self, name: str, *completion: int) -> None:
        self.__doc__ = debugger.commands()[name].__doc__
        super().__init__(f"cdacq {name}", gdb.COMMAND_STACK, *completion)
        self._name = name

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            for line in debugger.run(self._name, gdb.string_to_argv(argument)):
                gdb.write(printable(line) + "\n")
        except (Error, gdb.error) as error:
            raise gdb.GdbError(printable(str(error))) from None


class _Stack(_Command):
    def complete(self, text: str, word: str | None) -> list[str]:
        return ["all"] if "all".startswith(word or "") else []  # gdb 16 has none if there is nothing to complete


class _Symbols(gdb.Command):
    """cdacq symbols: gives gdb symbols, lines and call-frame information of the managed code.

    Then `list`, `info symbol`, `x/i`, `up` and `break *ADDRESS` have its names. They are given again after a stop at
    which the selected thread's stack has frames in newer code."""

    def __init__(self) -> None:
        super().__init__("cdacq symbols", gdb.COMMAND_FILES, gdb.COMPLETE_NONE)
        self._path: str | None = None
        gdb.events.gdb_exiting.connect(lambda event: self._remove())

    def _remove(self) -> None:
        if self._path and os.path.exists(self._path):
            os.unlink(self._path)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if argument.strip():
            raise gdb.GdbError("usage: cdacq symbols")
        try:
            self.load()
        except Error as error:
            raise gdb.GdbError(printable(str(error))) from None

    def stopped(self) -> None:
        """Loads the symbols again if the selected thread runs code that they do not have."""
        if self._path is None:
            return
        try:
            frame, unknown = gdb.newest_frame(), False
            for _ in range(STOP_FRAMES_MAX):
                if frame is None or unknown:
                    break
                pc = frame.pc()
                unknown = (not _is_native(pc) and
                           "No symbol matches" in gdb.execute(f"info symbol {pc:#x}", to_string=True) and
                           debugger.target().method_at(pc).is_managed)
                frame = frame.older()
            if unknown:
                self.load()
        except (Error, gdb.error):  # the symbols that were loaded stay
            pass

    def load(self) -> None:
        path = debugger.write_symbols()
        self.forget()
        self._path = path
        confirm = gdb.parameter("confirm")
        gdb.execute("set confirm off")
        try:
            gdb.execute(f"add-symbol-file {shlex.quote(path)}", to_string=True)
        finally:
            gdb.execute(f"set confirm {'on' if confirm else 'off'}")

    def forget(self) -> None:
        if self._path is None:
            return
        path, self._path = self._path, None
        os.unlink(path)
        if any(_file_of(objfile) == path for objfile in gdb.objfiles()):
            gdb.execute(f"remove-symbol-file {shlex.quote(path)}", to_string=True)


def _changed(_event: object = None) -> None:
    debugger.changed()


def _install() -> None:
    library()  # fails here, once, if it cannot be loaded
    gdb.unwinder.register_unwinder(None, _Unwinder(), replace=True)
    _FrameFilter()
    _Prefix()
    for name in debugger.commands():
        if name == "stack":
            _Stack(name)
        else:
            _Command(name, gdb.COMPLETE_EXPRESSION if name != "threads" and name != "report" else gdb.COMPLETE_NONE)
    symbols = _Symbols()
    for event in ("stop", "cont", "exited", "memory_changed", "register_changed", "new_objfile", "clear_objfiles"):
        registry = getattr(gdb.events, event, None)
        if registry is not None:
            registry.connect(_changed)
    gdb.events.stop.connect(lambda event: symbols.stopped())


_install()
