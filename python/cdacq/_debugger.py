"""What the extensions of gdb and lldb have in common: a target over their memory, and the commands. Private."""
from __future__ import annotations

import io
import os
import re
import struct
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ._abi import (Answer, EndKind, ExceptionFlaw, FrameKind, FrameSource, FuncletKind, Status, ValueKind, VariableKind,
                   VariableState)
from ._lookups import Frame, Thread
from .errors import Error
from .records import Method, Value, Variable, VariablePlace
from .target import Mapping, Memory, MemoryThread, Target, open

# The registers that a walk needs, by their DWARF numbers.
REGISTERS: dict[int, tuple[str, ...]] = {
    62: ("rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
         "rip"),
    183: (*(f"x{i}" for i in range(31)), "sp", "pc"),
}
POINTERS = {62: (16, 7), 183: (32, 31)}  # the numbers of the program counter and the stack pointer
MACHINES = {"x86-64": 62, "x86_64": 62, "amd64": 62, "aarch64": 183, "arm64": 183}


Intervals = list[tuple[int, int]]
NOTES_MAX = 256 << 20  # bytes
VALUE_INDENT_MAX = 8  # of the fields of structs in structs
FIELDS_MAX = 2048  # of the structs in one frame
STRING_SHOWN = 100  # UTF-16 units
ET_CORE, PT_LOAD, PT_NOTE, PN_XNUM, NT_PRSTATUS, NT_FILE = 4, 1, 4, 0xFFFF, 1, 0x46494C45


def _segments(file: io.BufferedReader) -> list[tuple[int, int, int, int]]:
    """The type, file offset, address and size in the file of each segment."""
    header = file.read(64)
    if header[:6] != b"\x7fELF\x02\x01" or int.from_bytes(header[16:18], "little") != ET_CORE:
        return []
    offset, size, count = (int.from_bytes(header[at:at + width], "little") for at, width in
                           ((32, 8), (54, 2), (56, 2)))
    if count == PN_XNUM:  # the first section header has the number
        file.seek(int.from_bytes(header[40:48], "little") + 44)
        count = int.from_bytes(file.read(4), "little")
    file.seek(offset)
    table = file.read(size * count) if size == 56 else b""
    return [(kind, start, address, length) for kind, _, start, address, _, length, _, _ in
            struct.iter_unpack("<IIQQQQQQ", table[:len(table) // 56 * 56])]


def _notes(notes: bytes) -> Iterator[tuple[int, bytes]]:
    """The notes of a segment by their types."""
    at = 0
    while at + 12 <= len(notes):
        name, held, kind = struct.unpack_from("<III", notes, at)
        begin = at + 12 + (name + 3 & ~3)
        yield kind, notes[begin:begin + held]
        at = begin + (held + 3 & ~3)


def _file_note(note: bytes) -> list[Mapping]:
    count, page = struct.unpack_from("<QQ", note) if len(note) >= 16 else (0, 0)
    paths = note[16 + count * 24:].split(b"\0") if count <= (len(note) - 16) // 24 else []
    return sorted(Mapping(begin, end, at * page, os.fsdecode(path)) for (begin, end, at), path in
                  zip(struct.iter_unpack("<QQQ", note[16:16 + count * 24]), paths))


class Core(NamedTuple):
    """What a core says of itself; all of it is empty if the file is no core."""
    threads: set[int]
    """The kernel's ids."""
    mappings: list[Mapping]
    held: Intervals
    """Where the file has memory."""


def read_core(path: str) -> Core:
    """Reads the headers and notes of an ELF core of 64 bits, little-endian."""
    core = Core(set(), [], [])
    try:
        with io.open(path, "rb") as file:
            for kind, start, address, length in _segments(file):
                if kind == PT_LOAD and length:
                    core.held.append((address, address + length))
                if kind != PT_NOTE:
                    continue
                file.seek(start)
                for note_type, note in _notes(file.read(min(length, NOTES_MAX))):
                    if note_type == NT_PRSTATUS and len(note) >= 36:
                        core.threads.add(int.from_bytes(note[32:36], "little"))
                    elif note_type == NT_FILE:
                        core.mappings.extend(_file_note(note))
    except OSError:
        pass
    return core


def mapped_cores() -> list[str]:
    """The files that this process, a debugger, has mapped from their first byte; one of them may be its core."""
    found: dict[str, None] = {}
    with io.open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            parts = line.rstrip("\n").split(None, 5)
            if len(parts) == 6 and parts[2] == "00000000" and parts[5].startswith("/"):
                found[parts[5]] = None
    return list(found)


# Control characters, surrogates (which stand for bytes that are not UTF-8), and what rearranges a line.
_UNPRINTABLE = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
# What is invisible: Default_Ignorable_Code_Point of Unicode, the marks of annotations, the blank of Braille.
_INVISIBLE = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code >= 0xa0 and not 0xd800 <= code <= 0xdfff:
        return f"\\u{{{code:04x}}}"
    errors = "surrogateescape" if 0xdc80 <= code <= 0xdcff else "surrogatepass"
    return "".join(f"\\x{byte:02x}" for byte in found[0].encode("utf-8", errors))


def printable(text: str) -> str:
    """Text of the target, fit for a line of a terminal: escaped as the command line does (util/escape.c).

    A backslash stays, because much text is escaped already: the names of methods, messages. What is invisible stays, too:
    texts of exceptions may need it."""
    return _UNPRINTABLE.sub(_escape, text)


def note(text: str) -> str:
    """The same of a name or message, in which nothing is to be invisible."""
    return printable(_INVISIBLE.sub(_escape, text))


def data(text: str) -> str:
    """A name that nothing has escaped: a backslash is doubled, so that it does not look like an escape."""
    return note(text.replace("\\", "\\\\"))


def file_name(path: str) -> str:
    """The last component of a path that nothing has escaped."""
    return data(os.path.basename(path))


def lines_of(text: str) -> list[str]:
    """The lines of a text. Only a newline ends one: other separators are escaped."""
    return text.removesuffix("\n").split("\n")


def name_text(method: Method) -> str:
    """The name of a method, with a mark if it lacks type arguments; empty if it has none."""
    return f"{method.name}?" if method.name and method.error else method.name or ""


def method_text(method: Method) -> str:
    """One line about what owns an address."""
    if method.answer == Answer.ERROR:
        return f"error: {method.error}"
    if method.answer == Answer.NONE:
        return "not managed"
    if method.answer == Answer.STUB:
        return f"stub <{method.kind.text}>"
    kind = " ".join(filter(None, (method.kind.text, method.tier, method.async_thunk and "async thunk")))
    return " ".join([f"{name_text(method) or '?'} +{method.offset:#x}", f"[{kind}]", *place_words(method)])


def async_text(method: Method) -> str:
    """One line about an async method that waits."""
    return " ".join([name_text(method) or "?", *place_words(method)])


def place_words(method: Method) -> list[str]:
    """Where in its source an answer is, and what is doubtful about it."""
    words = []
    if method.il_offset is not None:
        words.append(f"IL_{method.il_offset:04x}")
    if method.line:
        words.append(f"{os.path.basename(method.file or '')}:{method.line}")
    if method.module:
        words.append(f"({os.path.basename(method.module)})")
    if method.error:
        words.append(f"({method.error})")
    if not method.module_verified:
        words.append("[unconfirmed file]")
    return words


def variable_text(variable: Variable | VariablePlace) -> str:
    """Its name and type: a name that is not known is that of the disassemblers."""
    letter = "V" if variable.kind == VariableKind.LOCAL else "A"
    return f"{variable.name or f'{letter}_{variable.number}'}: {variable.type or '?'}"


def flaws_text(flaws: ExceptionFlaw) -> Iterator[str]:
    """A line about how a text differs from that of the runtime, or may differ, if so."""
    words = [flaw.name.lower() for flaw in ExceptionFlaw if flaws & flaw and flaw.name]
    if flaws & ExceptionFlaw.UNVERIFIED:
        words[-1] = "unconfirmed files"
    if words:
        yield f"({', '.join(words)})"


def frame_text(frame: Frame) -> str:
    """One line about a frame, as `cdacq stack` writes it."""
    if frame.kind == FrameKind.ASYNC:
        return f"     [async] {async_text(frame.method)}" if frame.method else "     [async] ?"
    number = f"#{frame.index}{'?' if frame.by == FrameSource.GUESS else ''}"
    funclet = "" if frame.funclet == FuncletKind.NONE else f"[{frame.funclet.name.lower()}] "
    if frame.method:
        text = method_text(frame.method)
    elif frame.symbol:
        module = f" ({file_name(frame.module)})" if frame.module else ""
        text = f"{data(frame.symbol)} +{frame.symbol_offset:#x}{module}"
    elif frame.module:
        text = f"{file_name(frame.module)}+{frame.module_offset:#x}"
    else:
        text = "unknown code"
    signal = " [signal]" if frame.kind == FrameKind.SIGNAL else ""
    return f"{number:<4} {funclet}{frame.pc:#x} {text}{signal}"


class Debugger:
    """A debugger's process. A debugger derives from this; `changed` is called after each stop."""

    def __init__(self) -> None:
        self._target: Target | None = None
        self._failure: Error | None = None
        self._threads: dict[int, Thread] | None = None

    # ---- What a debugger provides

    def read(self, address: int, size: int) -> bytes:
        """Memory of the process, or b""."""
        raise NotImplementedError

    def mappings(self) -> list[Mapping]:
        """The files that are mapped into the process."""
        raise NotImplementedError

    def held(self) -> Intervals | None:
        """Where the core has memory, if that is known. Called after `mappings`."""
        return None

    def thread_ids(self) -> list[tuple[int, str | None]]:
        """The kernel's id and the name of each thread."""
        raise NotImplementedError

    def selected_thread_id(self) -> int:
        """The kernel's id of the thread that the user has selected."""
        raise NotImplementedError

    def died(self) -> tuple[int, int] | None:
        """The kernel's id of the thread that died and the signal that it died of; None: nothing shows that one did."""
        return None

    def registers(self, tid: int) -> dict[int, int]:
        """The registers of a thread's innermost frame, by their DWARF numbers."""
        raise NotImplementedError

    def selected_pc(self) -> tuple[int, bool]:
        """The program counter of the frame that the user has selected, and whether a call returns to it."""
        raise NotImplementedError

    def evaluate(self, expression: str) -> int:
        """The value of an expression of the user."""
        raise NotImplementedError

    machine = 0
    pid = 0

    # ---- The target

    def target(self) -> Target:
        """The process as a target. It is read again after each stop. Raises Error."""
        if self._failure:
            raise self._failure
        if self._target is None:
            try:
                self._target = self._open([MemoryThread(tid, name=name) for tid, name in self.thread_ids()])
            except Error as error:
                self._failure = error
                raise
        return self._target

    def _open(self, threads: list[MemoryThread]) -> Target:
        return open(callbacks=Memory(read=self.read, mappings=self.mappings(), pid=self.pid, elf_machine=self.machine,
                                     threads=threads, held=self.held()),
                    find_file=self.find_file)

    def find_file(self, need: Any) -> str | None:
        """Files are where the process has them, below the roots; PDBs are looked for beside their modules, too."""
        if need.path and os.path.isabs(need.path):
            paths: list[str] = [root + need.path for root in (*self.roots(), "")]
            return next((path for path in paths if os.path.exists(path)), None)
        if need.path and not os.path.isabs(need.path) and self._target is not None:
            return self._beside.get(need.path)
        return None

    def roots(self) -> tuple[str, ...]:
        """Folders below which the debugger looks for the files of the process."""
        return ()

    @property
    def _beside(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for mapping in self._paths:
            pdb = os.path.splitext(mapping)[0] + ".pdb"
            if os.path.exists(pdb):
                found.setdefault(os.path.basename(pdb), pdb)
        return found

    _paths: tuple[str, ...] = ()

    def changed(self) -> None:
        """The process has run, or another one is debugged: what was read of it is forgotten."""
        target, self._target, self._failure, self._threads = self._target, None, None, None
        if target is not None:
            target.close()

    def threads(self) -> dict[int, Thread]:
        """The threads by the kernel's ids, with what the runtime knows of them."""
        if self._threads is None:
            self._threads = {thread.tid: thread for thread in self.target().threads().items}
        return self._threads

    def frames(self, tid: int, limit: int = 0, awaiting: bool = False,
               variables: bool = False) -> tuple[list[Frame], Error | None]:
        """The stack of a thread, or as many of its frames, and why it is incomplete. `awaiting`: with async methods."""
        thread = self.threads().get(tid)
        try:
            listing = self.target().frames(self.registers(tid), thread=thread.thread if thread else 0,
                                           awaiting=awaiting, variables=variables, limit=limit)
        except Error as error:
            return [], error
        return listing.items, listing.error

    # ---- Commands: each yields lines

    def ip2method(self, arguments: list[str]) -> Iterator[str]:
        """cdacq ip2method [EXPRESSION...]: the methods that own addresses; without one, that of the selected frame."""
        for ip, at in self._addresses(arguments):
            yield f"{ip:#x} {method_text(self._method(ip, at))}"

    def inspect(self, arguments: list[str]) -> Iterator[str]:
        """cdacq inspect [EXPRESSION...]: the method at an address: code, tables, exception clauses, variables."""
        target = self.target()
        for ip, at in self._addresses(arguments):
            method = self._method(ip, at)
            yield f"{ip:#x} {method_text(method)}"
            block = target.block_at(at)
            if block is None:
                continue
            yield f"  code           [{method.code_start:#x}, {method.code_end:#x})"
            if method.cold_start:
                yield f"  cold part      [{method.cold_start:#x}, {method.cold_start + method.cold_size:#x})"
            yield f"  MethodDesc     {method.method_desc:#x}"
            for name, call in (("funclet", block.funclet_start_address), ("unwind info", block.unwind_info),
                               ("debug info", lambda: block.debug_info().address),
                               ("GC info", lambda: block.gc_info().address)):
                yield f"  {name:14} {_value(call)}"
            try:
                for clause in block.exception_clauses():
                    yield (f"  {clause.kind.name.lower():14} try [{clause.try_start:#x}, {clause.try_end:#x}), handler "
                           f"[{clause.handler_start:#x}, {clause.handler_end:#x})")
            except Error as error:
                yield f"  clauses        {error}"
            source = target.source_at(at)
            if source:
                yield f"  source         {f'{source.file}:{source.line}' if source.line else source.problem}"
            yield from self._places(at)

    def _places(self, at: int) -> Iterator[str]:
        try:
            places = self.target().variable_places(at) or []
        except Error as error:
            yield f"  variables      {error}"
            return
        for place in places:
            where = (f" ? {place.problem}" if place.problem
                     else f" at {place.location}" if place.location else ", not live here")
            yield f"  {'local' if place.kind == VariableKind.LOCAL else 'argument':14} {variable_text(place)}{where}"

    def _addresses(self, arguments: list[str]) -> Iterator[tuple[int, int]]:
        """Each address, and the one that is looked up: that of the call, where the address is what a call returns to."""
        for argument in arguments:
            ip = self.evaluate(argument) & (1 << 64) - 1
            yield ip, ip
        if not arguments:
            pc, is_call = self.selected_pc()
            yield pc, pc - is_call

    def _method(self, ip: int, at: int) -> Method:
        """The method at `at`, with the offset of `ip`, as in stacks."""
        method = self.target().method_at(at)
        return method._replace(offset=method.offset + (ip - at))

    def exception(self, arguments: list[str]) -> Iterator[str]:
        """cdacq exception [EXPRESSION]: the exception of the selected thread, or the one at an address."""
        if arguments:
            yield from self._exception(self.evaluate(arguments[0]))
            return
        thread = self.threads().get(self.selected_thread_id())
        if thread is None or not (thread.exception_address or thread.last_thrown_address):
            yield "The thread has no exception."
            return
        if not thread.exception_address:
            yield "The last exception that was thrown, which may have been handled since:"
        yield from self._exception(thread.exception_address or thread.last_thrown_address)

    def _exception(self, address: int) -> Iterator[str]:
        target = self.target()
        text, flaws = target.exception(address).text_and_flaws()
        yield from (*lines_of(text), *flaws_text(flaws))

    def list_threads(self, arguments: list[str]) -> Iterator[str]:
        """cdacq threads: the threads that the runtime knows, with their exceptions."""
        selected = self.selected_thread_id()
        for thread in self.threads().values():
            if not thread.thread:
                continue
            exception = ""
            if thread.exception_address:
                try:
                    exception = f"  {self.target().exception(thread.exception_address).type}"
                except Error as error:
                    exception = f"  {error}"
            name = f' "{data(thread.name)}"' if thread.name else ""
            yield (f"{'*' if thread.tid == selected else ' '} {thread.tid}{name}, managed {thread.managed_id}, "
                   f"Thread {thread.thread:#x}{exception}")

    def stack(self, arguments: list[str]) -> Iterator[str]:
        """cdacq stack [all]: the stack of the selected thread, or of all threads."""
        for tid in ([tid for tid, _ in self.thread_ids()] if arguments == ["all"] else [self.selected_thread_id()]):
            frames, error = self.frames(tid, awaiting=True)
            yield f"TID {tid}:"
            yield from map(frame_text, frames)
            if error:
                yield f"     ... cannot unwind further: {error}"
            yield ""

    def variables(self, arguments: list[str]) -> Iterator[str]:
        """cdacq variables [NUMBER]: the arguments and locals of the selected frame, or of one of `cdacq stack`."""
        frames, error = self.frames(self.selected_thread_id(), variables=True)
        if arguments:
            found = next((frame for frame in frames if str(frame.index) == arguments[0]), None)
        else:  # a method that calls itself has several frames with one pc
            (pc, _), sp = self.selected_pc(), self.evaluate("$sp") & (1 << 64) - 1
            found = next((frame for frame in frames if frame.pc == pc and frame.sp == sp), None)
        if found is None:
            yield (f"{f'There is no frame {arguments[0]}' if arguments else 'The selected frame is none that was found'}"
                   f"{f': {error}' if error else '.'}")
            return
        yield frame_text(found)
        if found.variables is None:
            yield "  The frame has no variables that can be found."
        left = [FIELDS_MAX]
        for variable in found.variables or []:
            yield from self._variable(variable, left)

    def _variable(self, variable: Variable, left: list[int]) -> Iterator[str]:
        begin = f"  {variable_text(variable)} = "
        value = variable.target or variable.value
        if variable.state == VariableState.OPTIMIZED_OUT:
            yield begin + "<optimized out>"
        elif value is None:
            yield f"{begin}? {variable.problem}"
        else:
            yield from self._value_lines(begin, value, "    ", left)

    def _value_lines(self, begin: str, value: Value, indent: str, left: list[int]) -> Iterator[str]:
        """A value on one line; a struct without a text of its own with its fields below it, of which some are `left`."""
        target = self.target()
        try:
            text = target.value_text(value)
            if text is None and value.kind == ValueKind.REFERENCE:
                text = self._reference(value.bits)
            if text is not None or len(indent) > VALUE_INDENT_MAX:
                yield begin + (data(text) if text is not None else "{...}")
                return
            fields = target.value_fields(value)
        except Error as error:
            yield f"{begin}? {error}"
            return
        yield begin.rstrip(" =")
        for field in fields:
            if not left[0]:
                yield f"{indent}..."
                return
            left[0] -= 1
            name = f"{indent}{field.name or '?'}: {field.type or '?'} = "
            if field.problem:
                yield f"{name}? {field.problem}"
            else:
                yield from self._value_lines(name, field.value, indent + "  ", left)

    def _reference(self, address: int) -> str:
        if not address:
            return "null"
        found = self.target().object_at(address)
        if found.is_string:
            cut = "..." if found.length > STRING_SHOWN else ""
            return f'{address:#x} "{self.target().string(address, STRING_SHOWN)}"{cut}'
        return f"{address:#x} {found.type or '?'}"

    def _ending(self) -> Iterator[str]:
        """How the process ended, which the registers of the thread that died lead to. They are taken once there is a
        target: the debugger may need it to find them."""
        died = self.died()
        if died is None:
            return
        try:
            thread = MemoryThread(died[0], registers=self.registers(died[0]), signal=died[1], died=True)
            with self._open([thread]) as target:
                words, flaws = target.last_words_and_flaws()
                end = target.end()
                title = "The runtime ended the process and wrote:"
                if end.kind == EndKind.TERMINATED:
                    title = (f"C++ ended the process (std::terminate). The last exception of TID {end.tid}, which may have been "
                             "handled before:")
                    words, flaws = target.exception(end.exception).text_and_flaws()
                if words:
                    yield from ("", title, *lines_of(words), *flaws_text(flaws))
        except Error as error:
            yield from ("", f"How the process ended cannot be read: {error}")

    def report(self, arguments: list[str]) -> Iterator[str]:
        """cdacq report: the runtime, how it ended the process, the exceptions, and the managed stacks."""
        target = self.target()
        info = target.info
        yield f".NET {data(info.runtime_version or info.runtime_release or '?')} ({data(info.runtime_path or '?')})"
        ending = list(self._ending())
        yield from ending
        stacks: dict[tuple[str, ...], list[int]] = {}
        for thread in self.threads().values():
            if not thread.thread:
                continue
            if thread.exception_address and not ending:
                yield from ("", f"TID {thread.tid} has the exception:", *self._exception(thread.exception_address))
            frames, error = self.frames(thread.tid)
            lines = [("? " if frame.by == FrameSource.GUESS else "") + frame_text(frame).split(" ", 1)[1].strip()
                     for frame in frames if frame.is_managed]
            if error:
                lines.append(f"... cannot unwind further: {error}")
            if lines:
                stacks.setdefault(tuple(lines), []).append(thread.tid)
        for frames, tids in sorted(stacks.items(), key=lambda item: -len(item[1])):
            yield from ("", f"TID {', '.join(map(str, tids))}:", *(f"  {line}" for line in frames))

    def write_symbols(self, code: bool = False) -> str:
        """Writes an ELF file of the managed code, for the debugger's own symbols. Returns its path.

        With `code`, it has the bytes of the code, unless some are missing: zeros in their place would look like code.
        """
        handle, path = tempfile.mkstemp(prefix="cdacq-", suffix=".elf")
        os.close(handle)
        try:
            if self.target().write_elf(path, code=code).without_epilogs and code:
                self.target().write_elf(path)
        except BaseException:  # also an interrupt
            os.unlink(path)
            raise
        return path

    def run(self, name: str, arguments: list[str]) -> Iterator[str]:
        """The lines of a command, whose arguments must be such as its documentation has."""
        command = self.commands()[name]
        most = {"exception": 1, "threads": 0, "report": 0, "symbols": 0, "stack": 1, "variables": 1}
        if len(arguments) > most.get(name, len(arguments)) or (name == "stack" and arguments not in ([], ["all"])):
            raise Error(Status.ERR_ARGUMENT, f"usage: {(command.__doc__ or name).partition(':')[0]}")
        return command(arguments)

    def commands(self) -> dict[str, Callable[[list[str]], Iterator[str]]]:
        """The commands by name."""
        return {"ip2method": self.ip2method, "inspect": self.inspect, "exception": self.exception,
                "threads": self.list_threads, "report": self.report, "stack": self.stack, "variables": self.variables}


def _value(call: Callable[[], int]) -> str:
    try:
        return f"{call():#x}"
    except Error as error:
        return str(error)
