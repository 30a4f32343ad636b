"""Reads a .NET process from outside, through the runtime's data contracts. For example::

    import cdacq

    with cdacq.open("core") as target:
        for thread in target.threads():
            for frame in thread.frames():
                print(frame.index, frame.name)

The package calls libcdacq, which CDACQ_LIBRARY may name; without it the library of the same installation is used, else
libcdacq.so.0 wherever the system finds it. Failures raise Error, whose `status` says why.
"""
import sys as _sys

# `python3 -m cdacq.NAME` would import from the current folder, to which strangers may write cores. This comes before any
# other import, also that of __future__.
if _sys.argv[:1] == ["-m"] and not getattr(_sys.flags, "safe_path", False) and not _sys.flags.isolated:
    del _sys.path[0]

from . import records
from ._abi import (BOUND_BY_SIZE, Answer, CallKind, ClauseKind, CodeHeapType, CodeKind, CoreFilter, DescriptorItemKind, EndKind,
                   ExceptionFlaw, FrameKind, FrameSource, FuncletKind, Generation, HandleKind, JitdumpKind, JitType,
                   LockKind, NameStyle, NeedKind, OomReason, RootKind, Status, StressFlaw, TargetKind, ThreadMode, ThreadState,
                   ValueKind, VariableKind, VariableState, Verdict, WaitKind, WaitSource, WorkKind)
from ._abi import library as _library
from ._calls import Listing
from ._lookups import Block, ExceptionObject, Frame, Thread
from .errors import ClosedError, Error
from .jitdump import Jitdump, JitdumpRecord
from .records import (Activity, CodeFile, CodeHeap, CodeRange, Comparison, ContractInfo, DebugInfo, Delegate, DescriptorItem, End, ExceptionClause,
                      ExceptionFrame, Field, GCInfo, Heap, HeapRoot, HeapSegment, HttpRequest, Item, JitdumpDebugInfo, JitdumpEntry,
                      JitdumpFunction, JitdumpHeader,
                      JitdumpInlineCall, JitdumpLineRecord, JitdumpLoad, JitdumpMove, JitdumpPlace, JitdumpRange,
                      JitdumpSamplyDebugInfo2, JitdumpSamplyPositions, JitdumpUnwindingInfo, JitManagerInfo, LoadContext, Lock,
                      MappedFile, MemoryLimit, Method, Need, Object, PdbInfo, Process, ProcessInfo, ProcessorLimit, RegionInfo,
                      Roots, RuntimeInfo, Source, Stops, StressLog, StressMessage, SystemCall, TargetInfo, Task, ThreadPool,
                      Timer, Value, Variable, VariablePlace, Verification, Wait, Waits, Work, WorkItem, Written)
from .target import (
    Mapping, Memory, MemoryThread, RuntimeSession, Session, Target, find_perf_map, memory_limit, open, processes, processor_limit,
    stress_facilities, thread_times)


def version() -> str:
    """The version of the library."""
    raw: bytes = _library().cdacq_version()
    return raw.decode()


__all__ = [
    "Activity", "Answer", "BOUND_BY_SIZE", "Block", "CallKind", "ClauseKind", "ClosedError", "CodeFile", "CodeHeap", "CodeHeapType", "CodeKind",
    "CodeRange", "Comparison", "ContractInfo", "CoreFilter", "DebugInfo", "Delegate", "DescriptorItem",
    "DescriptorItemKind", "End", "EndKind", "Error", "ExceptionClause", "ExceptionFlaw", "ExceptionFrame",
    "ExceptionObject", "Field", "Frame", "FrameKind", "FrameSource", "FuncletKind", "GCInfo", "Generation",
    "HandleKind", "Heap", "HeapRoot", "HeapSegment", "HttpRequest", "Item", "JitManagerInfo", "JitType", "Jitdump", "JitdumpDebugInfo", "JitdumpEntry",
    "JitdumpFunction", "JitdumpHeader", "JitdumpInlineCall", "JitdumpKind", "JitdumpLineRecord", "JitdumpLoad",
    "JitdumpMove", "JitdumpPlace", "JitdumpRange", "JitdumpRecord", "JitdumpSamplyDebugInfo2", "JitdumpSamplyPositions",
    "JitdumpUnwindingInfo", "Listing", "LoadContext", "Lock", "LockKind", "MappedFile", "Mapping", "Memory", "MemoryLimit", "MemoryThread", "Method",
    "NameStyle", "Need", "NeedKind", "Object", "OomReason", "PdbInfo", "Process", "ProcessInfo", "ProcessorLimit", "RegionInfo",
    "RootKind", "Roots", "RuntimeInfo", "RuntimeSession", "Session", "Source", "Status", "Stops", "StressFlaw", "StressLog", "StressMessage",
    "SystemCall", "Target", "TargetInfo", "TargetKind", "Task", "Thread", "ThreadMode", "ThreadPool", "ThreadState",
    "Timer", "Value", "ValueKind", "Variable", "VariableKind", "VariablePlace", "VariableState", "Verdict", "Verification", "Wait", "WaitKind", "WaitSource", "Waits", "Work", "WorkItem", "WorkKind", "Written",
    "find_perf_map", "memory_limit", "open", "processes", "processor_limit", "records", "stress_facilities", "thread_times", "version",
]
