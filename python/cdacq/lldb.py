# mypy: ignore-errors
"""Managed code in lldb: `command script import cdacq.lldb`.

Adds the commands below `cdacq`. `cdacq stack` and `cdacq symbols` name managed frames: the latter gives lldb symbols,
lines and call-frame information, so that `bt` has them. Memory and registers come from lldb.
"""
from __future__ import annotations

import bisect
import os
import shlex

import lldb

from ._abi import library
from ._debugger import MACHINES, REGISTERS, Debugger, mapped_cores, printable, read_core
from .errors import Error
from .target import Mapping

_MASK = (1 << 64) - 1
FRAMES_MAX = 256  # that a stop looks at
LEVELS_MORE = 64  # that our walk may have up to a frame beyond twice those of lldb
BLOCK = 1 << 16  # bytes that are read at once: a call of lldb costs more than the bytes


class _Failed(Exception):
    """What a command reports."""


class _Lldb(Debugger):
    def __init__(self) -> None:
        super().__init__()
        self.process = None
        self._stop = None
        self._held = None
        self._intervals = []
        self._blocks = {}
        self._symbols = []

    def use(self, context) -> None:
        """The process of a command. What was read of it before its last stop is forgotten."""
        process = context.GetProcess()
        if not process or not process.IsValid():
            raise _Failed("there is no process")
        stop = process.GetUniqueID(), process.GetStopID()
        if stop != self._stop:
            self.changed()
        self.process, self._stop = process, stop

    @property
    def machine(self) -> int:
        return MACHINES.get(self.process.GetTarget().GetTriple().split("-")[0], 0)

    @property
    def pid(self) -> int:
        return self.process.GetProcessID() & 0x7FFFFFFF

    def changed(self):
        super().changed()
        self._intervals, self._blocks = [], {}

    def read(self, address, size):
        number = address // BLOCK
        if number not in self._blocks:
            self._blocks[number] = self._read_block(number * BLOCK, address)
        begin, data = self._blocks[number]
        if begin <= address and address + size <= begin + len(data):
            return data[address - begin:address - begin + size]
        return self._read(address, size)

    def _read_block(self, begin, address):
        """What can be read of a block around an address, without a gap."""
        index = bisect.bisect_right(self._intervals, (address, _MASK)) - 1
        if index < 0 or address >= self._intervals[index][1]:
            return begin, b""
        first, end = self._intervals[index]
        begin, end = max(begin, first), min(begin + BLOCK, end)
        return begin, self._read(begin, end - begin)

    def _read(self, address, size):
        error = lldb.SBError()
        data = self.process.ReadMemory(address, size, error)
        return data if error.Success() and data else b""

    def mappings(self):
        """Those of the core; without one, lldb's modules, and the files that it knows of the other regions."""
        core = self._core()
        found = core.mappings if core else self._of_regions()
        self._held = core.held if core else None
        if core:
            self._intervals = sorted(core.held)
        self._paths = tuple({mapping.path: None for mapping in found})
        return found

    def held(self):
        return self._held

    def _is_core(self):
        return "core" in (self.process.GetPluginName() or "")

    def _core(self):
        """lldb 14 passes on neither the mappings of a core nor its path, so they are read from the file."""
        if not self._is_core():
            return None
        tids = {thread.GetThreadID() for thread in self.process}
        for path in mapped_cores():
            core = read_core(path)
            if core.threads == tids:
                return core
        return None

    def _of_regions(self):
        target, found = self.process.GetTarget(), {}
        for module in target.module_iter():
            begin = module.GetObjectFileHeaderAddress().GetLoadAddress(target)
            path = module.GetFileSpec().fullpath
            if begin == lldb.LLDB_INVALID_ADDRESS or not path:
                continue
            end = begin
            for section in module.section_iter():
                start = section.GetLoadAddress(target)
                if start != lldb.LLDB_INVALID_ADDRESS:
                    end = max(end, start + section.GetByteSize())
            if end > begin:
                found[begin] = Mapping(begin, end, 0, path)
        images = sorted(found.values())
        regions, info = self.process.GetMemoryRegions(), lldb.SBMemoryRegionInfo()
        first = {}
        for i in range(regions.GetSize()):
            regions.GetMemoryRegionAtIndex(i, info)
            path, begin, end = info.GetName(), info.GetRegionBase(), info.GetRegionEnd()
            if info.IsReadable():
                self._intervals.append((begin, end))
            if not path or not path.startswith("/") or any(m.begin < end and begin < m.end for m in images):
                continue
            base = first.setdefault(path, begin)
            found[begin] = Mapping(begin, end, begin - base, path)
        self._intervals.sort()
        return sorted(found.values())

    def thread_ids(self):
        return [(thread.GetThreadID(), thread.GetName()) for thread in self.process]

    def died(self):
        for thread in self.process if self._is_core() else ():
            if thread.GetStopReason() == lldb.eStopReasonSignal and thread.GetStopReasonDataAtIndex(0):
                return thread.GetThreadID(), thread.GetStopReasonDataAtIndex(0)
        return None

    def selected_thread_id(self):
        return self.process.GetSelectedThread().GetThreadID()

    def registers(self, tid):
        thread = self.process.GetThreadByID(tid)
        if not thread.IsValid():
            raise _Failed(f"there is no thread {tid}")
        frame, found = thread.GetFrameAtIndex(0), {}
        for number, name in enumerate(REGISTERS.get(self.machine, ())):
            value = frame.FindRegister(name)
            if value.IsValid() and not value.GetError().Fail():
                found[number] = value.GetValueAsUnsigned() & _MASK
        return found

    def evaluate(self, expression):
        try:
            return int(expression, 0)
        except ValueError:
            pass
        frame = self.process.GetSelectedThread().GetSelectedFrame()
        if expression.startswith("$"):
            value = frame.FindRegister(expression[1:])
            value = frame.EvaluateExpression(expression) if not value.IsValid() else value
        else:
            value = frame.EvaluateExpression(expression)
        if not value.IsValid() or value.GetError().Fail():
            raise _Failed(f"{expression} has no value")
        return value.GetValueAsUnsigned()

    def selected_pc(self):
        """lldb does not tell which frames a signal has interrupted, but our walk does."""
        frame = self.process.GetSelectedThread().GetSelectedFrame()
        pc, sp, level = frame.GetPC(), frame.GetSP(), frame.GetFrameID()
        frames, _ = self.frames(self.selected_thread_id(), limit=2 * level + LEVELS_MORE) if level else ([], None)
        return pc, next((known.is_call for known in frames if (known.pc, known.sp) == (pc, sp)), level > 0)

    def symbols(self, arguments):
        """cdacq symbols: gives lldb symbols, lines and call-frame information of the managed code.

        Then `bt`, `up`, `source list`, `image lookup` and `disassemble` have them. They are given again after a stop
        at which the selected thread's stack has frames in newer code."""
        yield f"{self.load_symbols()} symbols of managed code are loaded."

    def _symbols_of(self, target):
        """The target and its module of symbols; None if it has none."""
        return next((pair for pair in self._symbols if pair[0] == target), None)

    def load_symbols(self):
        """The number of symbols."""
        target = self.process.GetTarget()
        path = self.write_symbols(code=self._is_core())  # lldb does not take from images what a core lacks
        try:
            module = target.AddModule(path, None, None)
        finally:
            os.unlink(path)  # lldb has mapped it
        if not module.IsValid():
            raise _Failed("lldb does not take the ELF file")
        known = self._symbols_of(target)
        if known:
            target.RemoveModule(known[1])
            known[1] = module
        else:
            self._symbols = [pair for pair in self._symbols if pair[0].IsValid()] + [[target, module]]
            interpreter, result = target.GetDebugger().GetCommandInterpreter(), lldb.SBCommandReturnObject()
            interpreter.HandleCommand(f"target stop-hook add -P {__name__}.StopHook", result)
        target.SetModuleLoadAddress(module, 0)
        return module.GetNumSymbols()

    def stopped(self, context):
        """Loads the symbols again if the selected thread runs code that they do not have."""
        if not self._symbols_of(context.GetTarget()):
            return
        frames = context.GetThread().frames if context.GetThread() else []
        unknown = [frame.GetPC() for frame in frames[:FRAMES_MAX] if not frame.GetModule().IsValid()]
        if unknown:
            self.use(context)
            if any(self.target().method_at(pc).is_managed for pc in unknown):
                self.load_symbols()

    def commands(self):
        return {**super().commands(), "symbols": self.symbols}


debugger = _Lldb()


class StopHook:
    """What lldb calls after each stop."""

    def __init__(self, _target, _arguments, _dictionary):
        pass

    def handle_stop(self, context, stream):
        try:
            debugger.stopped(context)
        except (Error, _Failed) as error:
            stream.Print(f"cdacq: {printable(str(error))}\n")
        return True


def _run(name, context, argument, result):
    try:
        debugger.use(context)
        for line in debugger.run(name, shlex.split(argument)):
            result.AppendMessage(printable(line))
        result.SetStatus(lldb.eReturnStatusSuccessFinishResult)
    except (Error, _Failed, ValueError) as error:
        result.SetError(printable(str(error)))


def _command(name, documentation):
    class Command:
        """A command of lldb."""

        def __init__(self, session, _dictionary):
            pass

        def __call__(self, _debugger, argument, context, result):
            _run(name, context, argument, result)

        def get_short_help(self):
            return documentation.partition("\n")[0].partition(": ")[2]

        def get_long_help(self):
            return documentation
    Command.__name__ = f"Command_{name}"
    return Command


for _name, _function in debugger.commands().items():
    globals()[f"Command_{_name}"] = _command(_name, _function.__doc__)


def __lldb_init_module(of_lldb, _dictionary):
    library()  # fails here, once, if it cannot be loaded
    module = __name__
    of_lldb.HandleCommand('command container add -h "Managed code of the process" cdacq')
    for name in debugger.commands():
        of_lldb.HandleCommand(f"command script add -c {module}.Command_{name} cdacq {name}")
