# mypy: ignore-errors
"""Managed code in lldb: `command script import cdacq.lldb`, or the path of this file.

Adds the commands below `cdacq`. `cdacq stack` and `cdacq symbols` name managed frames: the latter gives lldb symbols,
lines and call-frame information, so that `bt` has them. Memory and registers come from lldb.
"""
from __future__ import annotations

import os
import shlex
import sys

if __package__ in (None, ""):  # imported by its path
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    __package__ = "cdacq"
    sys.path = [path for path in sys.path if os.path.abspath(path or ".") != os.path.dirname(os.path.abspath(__file__))]

import lldb  # noqa: E402

from cdacq._abi import library  # noqa: E402
from cdacq._debugger import MACHINES, REGISTERS, Debugger, printable, relocated, subtract  # noqa: E402
from cdacq.errors import Error  # noqa: E402
from cdacq.target import Mapping  # noqa: E402

_MASK = (1 << 64) - 1


class _Failed(Exception):
    """What a command reports."""


class _Lldb(Debugger):
    def __init__(self) -> None:
        super().__init__()
        self.process = None
        self._stop = None
        self._lacking = []
        self._symbols = None

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

    def read(self, address, size):
        for begin, end in self._lacking:
            if begin < address + size and address < end:
                size = max(begin - address, 0)
        if not size:
            return b""
        error = lldb.SBError()
        data = self.process.ReadMemory(address, size, error)
        return data if error.Success() and data else b""

    def mappings(self):
        """Native images from lldb's list of modules, and the files that it knows of the other regions."""
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
            if not path or not path.startswith("/") or any(m.begin < end and begin < m.end for m in images):
                continue
            base = first.setdefault(path, begin)
            found[begin] = Mapping(begin, end, begin - base, path)
        self._paths = tuple({mapping.path: None for mapping in found.values()})
        self._lacking = self._not_in_core(found.values())
        return sorted(found.values())

    def _not_in_core(self, mappings):
        """Where a core lacks memory that the process has written: lldb may show what the file has there."""
        if "core" not in (self.process.GetPluginName() or ""):
            return []
        held, regions, info = [], self.process.GetMemoryRegions(), lldb.SBMemoryRegionInfo()
        for i in range(regions.GetSize()):
            regions.GetMemoryRegionAtIndex(i, info)
            if info.IsReadable():
                held.append((info.GetRegionBase(), info.GetRegionEnd()))
        return subtract([interval for mapping in mappings if mapping.path and not mapping.file_offset
                         for interval in relocated(mapping.path, mapping.begin)], held)

    def thread_ids(self):
        return [(thread.GetThreadID(), thread.GetName()) for thread in self.process]

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
        return value.GetValueAsUnsigned() & _MASK

    def _addresses(self, arguments):
        if arguments:
            return [self.evaluate(argument) for argument in arguments]
        return [self.process.GetSelectedThread().GetSelectedFrame().GetPC()]

    def symbols(self, arguments):
        """cdacq symbols: gives lldb symbols, lines and call-frame information of the managed code."""
        target = self.process.GetTarget()
        if self._symbols is not None:
            target.RemoveModule(self._symbols[0])
            os.unlink(self._symbols[1])
            self._symbols = None
        path = self.write_symbols()
        module = target.AddModule(path, None, None)
        if not module.IsValid():
            os.unlink(path)
            raise _Failed("lldb does not take the ELF file")
        self._symbols = module, path
        target.SetModuleLoadAddress(module, 0)
        yield f"{module.GetNumSymbols()} symbols of managed code are loaded."

    def commands(self):
        return {**super().commands(), "symbols": self.symbols}


debugger = _Lldb()


def _run(name, context, argument, result):
    try:
        debugger.use(context)
        for line in debugger.commands()[name](shlex.split(argument)):
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
            return documentation.partition(": ")[2]

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
