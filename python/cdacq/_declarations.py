"""The public headers for ctypes. Made by scripts/make-python-abi: do not edit."""
from __future__ import annotations

import enum
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_bool, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t,
                    c_uint, c_uint16, c_uint32, c_uint64, c_void_p)
from typing import Any

__all__ = ["Activity", "Answer", "AsyncChain", "AsyncInfo", "AsyncVisitor", "BOUND_BY_SIZE", "BeforeStop", "Block",
           "CallKind", "ClauseKind", "CodeFile", "CodeHeapInfo", "CodeHeapType", "CodeKind", "CodeRangeInfo",
           "Comparison", "CompleteCore", "CompleteFlags", "Contents", "ContractInfo", "CoreFilter", "Deadlock",
           "Delegate", "DescribeNeed", "DescriptorItem", "DescriptorItemKind", "ENUMS", "ERROR_MESSAGE_SIZE",
           "ElfFlags", "End", "EndKind", "Error", "ExceptionClause", "ExceptionFlaw", "ExceptionFrame", "Exception_",
           "FUNCTIONS", "FailedTask", "FetchFailed", "Fetching", "Field", "FindFile", "Frame", "FrameKind",
           "FrameSource", "FramesFlags", "FuncletKind", "Generation", "HandleKind", "HeapArrays", "HeapInfo",
           "HeapObject", "HeapReadFlags", "HeapRoot", "HeapSegment", "HeapString", "HeapVisitor", "HttpRequest", "Item",
           "JITDUMP_LAST", "JitManagerInfo", "JitType", "JitdumpDebugInfo", "JitdumpEntry", "JitdumpFlags",
           "JitdumpFunction", "JitdumpHeader", "JitdumpInlineCall", "JitdumpKind", "JitdumpLineRecord", "JitdumpLoad",
           "JitdumpMove", "JitdumpPlace", "JitdumpRange", "JitdumpRecord", "JitdumpRecordAs", "JitdumpRecordOpaque",
           "JitdumpSamplyDebugInfo2", "JitdumpSamplyPositions", "JitdumpStrings", "JitdumpUnwindingInfo",
           "JitdumpWriteFlags", "LoadContext", "Lock", "LockKind", "MappedFile", "Mapping", "Memory", "MemoryLimit",
           "MemoryThread", "MemoryUse", "Method", "NameStyle", "Need", "NeedKind", "NestedException", "OFFSET_UNKNOWN",
           "Object", "OomReason", "OpenFlags", "Options", "PdbInfo", "Problem", "Process", "ProcessInfo",
           "ProcessorLimit", "Progress", "Read", "Reference", "Registers", "RootKind", "RootsVisitor", "RuntimeInfo",
           "STRUCTS", "Sample", "SamplerFlags", "Sink", "Source", "SpanAt", "Status", "Stops", "StressFlaw",
           "StressLog", "StressMessage", "SystemCall", "TargetInfo", "TargetKind", "Task", "Thread", "ThreadMode",
           "ThreadPool", "ThreadState", "ThreadTime", "Timer", "UnfilledFile", "Value", "ValueKind", "Variable",
           "VariableKind", "VariablePlace", "VariableState", "Verdict", "Verification", "Visit", "VisitFlags",
           "VisitReference", "VisitVariable", "Visited", "Visitor", "Wait", "WaitEndless", "WaitKind", "WaitSource",
           "WorkInfo", "WorkItem", "WorkKind", "WorkVisitor", "Write", "Written"]

ERROR_MESSAGE_SIZE = 512
JITDUMP_LAST = 2**64 - 1
OFFSET_UNKNOWN = -2**31
BOUND_BY_SIZE = 2**64 - 1

Visitor = CFUNCTYPE(c_int, c_void_p, c_void_p)
Problem = CFUNCTYPE(c_int, c_void_p, c_void_p)
Reference = CFUNCTYPE(c_int, c_uint64, c_uint64, c_uint64, c_void_p)
Write = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)
Visited = CFUNCTYPE(None, c_void_p, c_void_p)
FindFile = CFUNCTYPE(c_bool, c_void_p, c_void_p, c_size_t, c_void_p)
DescribeNeed = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p)
Progress = CFUNCTYPE(None, c_uint64, c_uint64, c_void_p)
Fetching = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64, c_void_p)
FetchFailed = CFUNCTYPE(None, c_void_p, c_void_p, c_bool, c_void_p, c_void_p)
BeforeStop = CFUNCTYPE(None, c_void_p, c_void_p)
SpanAt = CFUNCTYPE(c_bool, c_uint64, POINTER(c_uint64), POINTER(c_uint64), POINTER(c_void_p), c_void_p)
Read = CFUNCTYPE(c_size_t, c_uint64, c_void_p, c_size_t, c_void_p)
Visit = CFUNCTYPE(c_int, c_uint64, c_void_p)
VisitReference = CFUNCTYPE(c_int, c_uint64, c_uint64, c_void_p)
VisitVariable = CFUNCTYPE(c_int, c_void_p, c_void_p)


class JitType(enum.IntEnum):
    """The result of GetJITType, with the values of the specification."""
    UNKNOWN = 0
    JIT = 1
    READY_TO_RUN = 2
    INTERPRETER = 3


class ClauseKind(enum.IntEnum):
    """The kind of an exception clause."""
    TYPED = 0
    FILTER = 1
    FINALLY = 2
    FAULT = 3


class CodeHeapType(enum.IntEnum):
    """The kind of a code heap."""
    UNKNOWN = 0
    LOADER = 1
    HOST = 2


class CodeKind(enum.IntEnum):
    """The kind of code at an address."""
    UNKNOWN = 0
    JUMP_STUB = 1
    DYNAMIC_HELPER = 2
    STUB_PRECODE = 3
    FIXUP_PRECODE = 4
    VSD_DISPATCH_STUB = 5
    VSD_RESOLVE_STUB = 6
    VSD_LOOKUP_STUB = 7
    VSD_VTABLE_STUB = 8
    CALL_COUNTING_STUB = 9
    METHOD_CALL_THUNK = 10
    JITTED = 11
    READY_TO_RUN = 12
    INTERPRETER = 13
    WRAPPER_STUB = 14
    SHUFFLE_THUNK = 15
    THE_PRE_STUB = 16
    STUB_LINK_STUB = 17
    COPIED_WRITE_BARRIERS = 18
    NATIVE_AOT = 19

    @property
    def text(self) -> str:
        """"jit", "r2r", "interpreter", "aot", the runtime's name of a stub kind."""
        from ._abi import static_text
        return static_text("cdacq_code_kind_text", self)


class Status(enum.IntEnum):
    """The result of a call."""
    OK = 0
    NOT_MANAGED = 1
    STOPPED = 2
    DONE = 3
    ERR_NOMEM = -1
    ERR_ARGUMENT = -2
    ERR_IO = -3
    ERR_FORMAT = -4
    ERR_NO_RUNTIME = -5
    ERR_NO_DESCRIPTOR = -6
    ERR_DESCRIPTOR = -7
    ERR_CONTRACT = -8
    ERR_FIELD = -9
    ERR_MEMORY = -10
    ERR_FUEL = -11
    ERR_CORRUPT = -12
    ERR_MODULE = -13
    ERR_CHANGED = -14

    @property
    def text(self) -> str:
        """The general meaning of a status."""
        from ._abi import static_text
        return static_text("cdacq_status_text", self)


class ExceptionFlaw(enum.IntFlag):
    """How a text differs from that of the runtime: a bit each."""
    OVERRIDDEN = 1 << 0
    CUT = 1 << 1
    MISSING = 1 << 2
    INFERRED = 1 << 3
    UNVERIFIED = 1 << 4


class Generation(enum.IntEnum):
    """Where an object is."""
    GENERATION_0 = 0
    GENERATION_1 = 1
    GENERATION_2 = 2
    GENERATION_LOH = 3
    GENERATION_POH = 4
    GENERATION_FROZEN = 5
    GENERATION_COUNT = 6

    @property
    def text(self) -> str:
        """"0", "1", "2", "loh", "poh", "frozen"."""
        from ._abi import static_text
        return static_text("cdacq_generation_text", self)


class OomReason(enum.IntEnum):
    """Why the GC could not allocate, as it numbers it."""
    NONE = 0
    BUDGET = 1
    CANT_COMMIT = 2
    CANT_RESERVE = 3
    LOH = 4
    LOW_MEM = 5
    UNPRODUCTIVE_FULL_GC = 6
    COUNT = 7

    @property
    def text(self) -> str:
        """In words."""
        from ._abi import static_text
        return static_text("cdacq_oom_reason_text", self)


class HeapReadFlags(enum.IntFlag):
    """What else cdacq_session_read_heap() reads."""
    REFERENCES = 1 << 0


class RootKind(enum.IntEnum):
    """What keeps an object from outside of the heap."""
    STATIC = 0
    THREAD_STATIC = 1
    LOCAL = 2
    HANDLE = 3
    FINALIZER = 4
    DEPENDENT = 5
    FINALIZABLE = 6
    COUNT = 7

    @property
    def text(self) -> str:
        """"static", "thread-static", "local", "handle", "finalizer", "dependent", "finalizable" or "unknown"."""
        from ._abi import static_text
        return static_text("cdacq_root_kind_text", self)


class HandleKind(enum.IntEnum):
    """Kinds of handles, as the runtime numbers them."""
    WEAK_SHORT = 0
    WEAK_LONG = 1
    STRONG = 2
    PINNED = 3
    VARIABLE = 4
    REFCOUNTED = 5
    DEPENDENT = 6
    ASYNC_PINNED = 7
    SIZED_REF = 8
    WEAK_NATIVE_COM = 9
    WEAK_INTERIOR_POINTER = 10
    CROSS_REFERENCE = 11
    COUNT = 12

    @property
    def text(self) -> str:
        """"strong", "weak short", "async pinned" and so on."""
        from ._abi import static_text
        return static_text("cdacq_handle_kind_text", self)


class JitdumpFlags(enum.IntFlag):
    FOLLOW = 1 << 0
    CODE = 1 << 1


class JitdumpKind(enum.IntEnum):
    """The kind of a record in a jitdump."""
    HEADER = 0
    LOAD = 1
    MOVE = 2
    DEBUG_INFO = 3
    CLOSE = 4
    UNWINDING_INFO = 5
    SAMPLY_DEBUG_INFO2 = 6
    SAMPLY_TIER = 7
    SAMPLY_SOURCE = 8
    UNKNOWN = 9
    SAMPLY_POSITIONS = 10

    @property
    def text(self) -> str:
        """The text of a kind, such as "load"."""
        from ._abi import static_text
        return static_text("cdacq_jitdump_kind_text", self)


class JitdumpStrings(enum.IntEnum):
    """The string lists of SAMPLY_JIT_CODE_DEBUG_INFO2."""
    FILES = 0
    FUNCTION_NAMES = 1


class EndKind(enum.IntEnum):
    """How the runtime ended a process."""
    NONE = 0
    UNHANDLED = 1
    OUT_OF_MEMORY = 2
    FAIL_FAST = 3
    STACK_OVERFLOW = 4
    FATAL = 5
    TERMINATED = 6


class LockKind(enum.IntEnum):
    """The kind of a lock: the monitor of an object, a System.Threading.Lock or a ReaderWriterLockSlim."""
    MONITOR = 0
    LOCK = 1
    READER_WRITER = 2


class WaitKind(enum.IntEnum):
    """What a thread waits for."""
    ENTER = 0
    PULSE = 1
    TASK = 2
    TASKS = 3
    EVENT = 4
    SEMAPHORE = 5
    JOIN = 6
    HANDLE = 7
    FOREGROUND = 8
    INITIALIZER = 9
    SLEEP = 10
    FINALIZERS = 11
    PROCESS = 12


class WaitSource(enum.IntEnum):
    """How the library found the object of a wait."""
    NOTHING = 0
    STATE = 1
    FRAME = 2
    SCAN = 3


class WaitEndless(enum.IntEnum):
    """Whether only what a thread waits for ends its wait."""
    UNKNOWN = 0
    YES = 1
    NO = 2


class ValueKind(enum.IntEnum):
    """What a field or an element holds."""
    BOOLEAN = 0
    CHARACTER = 1
    SIGNED = 2
    UNSIGNED = 3
    REAL = 4
    REFERENCE = 5
    POINTER = 6
    STRUCT = 7


class JitdumpWriteFlags(enum.IntFlag):
    DEBUG = 1 << 17
    SAMPLY = 1 << 18


class ElfFlags(enum.IntFlag):
    CODE = 1 << 16


class Verdict(enum.IntEnum):
    """The result of comparing a record of a jitdump or perf map with the target."""
    MATCH = 0
    FREED = 1
    REPLACED = 2
    STUB = 3
    LATER = 4
    UNKNOWN_TO_TARGET = 5
    NAME_DIFFERS = 6
    RANGE_DIFFERS = 7
    BYTES_DIFFER = 8
    MISSING_FROM_FILE = 9
    DAMAGED = 10
    NOT_COMPARED = 11

    @property
    def text(self) -> str:
        """The text ("name-differs") and the meaning of a verdict."""
        from ._abi import static_text
        return static_text("cdacq_verdict_text", self)

    @property
    def meaning(self) -> str:
        """The text ("name-differs") and the meaning of a verdict."""
        from ._abi import static_text
        return static_text("cdacq_verdict_meaning", self)

    @property
    def is_contradiction(self) -> bool:
        """True for UNKNOWN_TO_TARGET, NAME_DIFFERS, RANGE_DIFFERS and BYTES_DIFFER: the file contradicts the target."""
        from ._abi import library
        return bool(library().cdacq_verdict_is_contradiction(self))


class SamplerFlags(enum.IntFlag):
    RUNNING = 1 << 0


class Answer(enum.IntEnum):
    """What an address is in."""
    NONE = 0
    MANAGED = 1
    STUB = 2
    ERROR = 3


class VisitFlags(enum.IntFlag):
    STUBS = 1 << 0
    R2R_ALL = 1 << 1
    R2R_NONE = 1 << 2


class ThreadState(enum.IntFlag):
    """Some bits of the runtime's state of a thread."""
    BACKGROUND = 0x200
    EXITING = 0x10000
    POOL = 0x1000000
    WAITING = 0x2000000


class ThreadMode(enum.IntEnum):
    """What a thread did at the moment that the target shows."""
    UNKNOWN = 0
    KERNEL = 1
    USER = 2


class CallKind(enum.IntEnum):
    """What a system call does, or waits for."""
    OTHER = 0
    READ = 1
    WRITE = 2
    RECEIVE = 3
    SEND = 4
    ACCEPT = 5
    CONNECT = 6
    POLL = 7
    LOCK = 8
    CHILD = 9
    SLEEP = 10
    FUTEX = 11


class FrameKind(enum.IntEnum):
    """What the code of a frame is."""
    NATIVE = 0
    MANAGED = 1
    FUNCLET = 2
    STUB = 3
    SIGNAL = 4
    EXPLICIT = 5
    ASYNC = 6


class FrameSource(enum.IntEnum):
    """How a frame was found."""
    CONTEXT = 0
    UNWIND = 1
    CFI = 2
    FRAME = 3
    GUESS = 4
    AWAIT = 5


class FuncletKind(enum.IntEnum):
    """The kind of a funclet."""
    NONE = 0
    CATCH = 1
    FILTER = 2
    FINALLY = 3
    FAULT = 4


class FramesFlags(enum.IntFlag):
    EXPLICIT = 1 << 0
    CALLER = 1 << 1
    ASYNC = 1 << 2


class StressFlaw(enum.IntFlag):
    """What may be wrong with the text of a message: a bit each."""
    NO_ARGUMENT = 1 << 0
    MISSING = 1 << 1
    CUT = 1 << 2
    CHANGEABLE = 1 << 3
    UNVERIFIED = 1 << 4


class OpenFlags(enum.IntFlag):
    STOP = 1 << 0
    RECORD = 1 << 1
    DEBUGINFOD = 1 << 2
    PARTIAL = 1 << 3
    PREAD = 1 << 4
    KEEP = 1 << 5
    ALL_RUNTIMES = 1 << 6
    NATIVE = 1 << 7


class NameStyle(enum.IntEnum):
    """The style of method names."""
    CSHARP = 0
    SOS = 1
    IL = 2
    SOURCE = 3


class NeedKind(enum.IntEnum):
    """What is missing."""
    FILE = 0
    DESCRIPTOR = 1
    DESCRIPTOR_ADDRESS = 2
    PDB = 3


class TargetKind(enum.IntEnum):
    """What a target is."""
    CORE = 0
    PROCESS = 1
    MEMORY = 2
    IMAGE = 3


class CoreFilter(enum.IntFlag):
    """Memory that the kernel and gdb leave out of a core if a bit of /proc/PID/coredump_filter is not set (core(5))."""
    PRIVATE = 1 << 0
    SHARED = 1 << 1


class DescriptorItemKind(enum.IntEnum):
    """What a value of the descriptor is."""
    TYPE = 0
    FIELD = 1
    GLOBAL = 2
    CONTRACT = 3


class CompleteFlags(enum.IntFlag):
    UNVERIFIED = 1 << 0


class VariableKind(enum.IntEnum):
    """What a variable is."""
    THIS = 0
    PARAMETER = 1
    LOCAL = 2
    CAPTURED = 3


class VariableState(enum.IntEnum):
    """Whether the value of a variable is known."""
    KNOWN = 0
    OPTIMIZED_OUT = 1
    UNKNOWN = 2


class WorkKind(enum.IntEnum):
    """What a work item is."""
    OTHER = 0
    TASK = 1
    ASYNC = 2
    CALLBACK = 3

    @property
    def text(self) -> str:
        """"task"."""
        from ._abi import static_text
        return static_text("cdacq_work_kind_text", self)


class Method(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("ip", c_uint64),
        ("answer", c_int),
        ("kind", c_int),
        ("runtime", c_uint),
        ("module_verified", c_bool),
        ("cold", c_bool),
        ("prepared_unknown", c_bool),
        ("async_thunk", c_bool),
        ("name", c_char_p),
        ("name_length", c_size_t),
        ("module", c_char_p),
        ("method_desc", c_uint64),
        ("tier", c_char_p),
        ("token", c_uint32),
        ("il_offset", c_int32),
        ("code_start", c_uint64),
        ("code_size", c_uint64),
        ("cold_start", c_uint64),
        ("cold_size", c_uint64),
        ("offset", c_uint64),
        ("funclet_start", c_uint64),
        ("file", c_char_p),
        ("source_url", c_char_p),
        ("line", c_uint32),
        ("column", c_uint32),
        ("error", c_char_p),
    ]


class AsyncChain(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("methods", c_void_p),
        ("method_count", c_size_t),
        ("count", c_uint64),
        ("waits_for", c_char_p),
        ("object", c_uint64),
        ("operation", c_uint64),
        ("first_object", c_uint64),
        ("completes", c_uint64),
        ("is_cycle", c_bool),
    ]


class FailedTask(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("count", c_uint64),
        ("address", c_uint64),
        ("exception", c_uint64),
        ("method", c_char_p),
        ("type", c_char_p),
    ]


class AsyncInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("chain_count", c_uint64),
        ("method_count", c_uint64),
        ("failed_count", c_uint64),
        ("problem_count", c_uint64),
    ]


class AsyncVisitor(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("chain", Visitor),
        ("failed", Visitor),
        ("problem", Problem),
        ("context", c_void_p),
    ]


class Block(Structure):
    _fields_ = [
        ("opaque", c_uint64 * 16),
    ]


class ExceptionClause(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("flags", c_uint32),
        ("duplicated", c_bool),
        ("try_start", c_uint32),
        ("try_end", c_uint32),
        ("handler_start", c_uint32),
        ("handler_end", c_uint32),
        ("filter_offset", c_uint32),
        ("class_token", c_uint32),
        ("type_handle", c_uint64),
        ("module", c_uint64),
        ("is_catch_all", c_bool),
        ("is_catch_all_known", c_bool),
    ]


class JitManagerInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("address", c_uint64),
        ("heap_list", c_uint64),
    ]


class CodeHeapInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("type", c_int),
        ("node", c_uint64),
        ("heap", c_uint64),
        ("begin", c_uint64),
        ("end", c_uint64),
        ("map_base", c_uint64),
        ("header_map", c_uint64),
        ("loader_heap", c_uint64),
        ("base", c_uint64),
        ("current", c_uint64),
    ]


class Error(Structure):
    _fields_ = [
        ("status", c_int),
        ("address", c_uint64),
        ("message", c_char * 512),
    ]


class Exception_(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("address", c_uint64),
        ("type", c_char_p),
        ("inner", c_uint64),
        ("hresult", c_int32),
        ("frame_count", c_uint32),
        ("thrown", c_bool),
    ]


class ExceptionFrame(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("ip", c_uint64),
        ("method_desc", c_uint64),
        ("last_of_foreign", c_bool),
    ]


class NestedException(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("info", c_uint64),
        ("object", c_uint64),
    ]


class HeapSegment(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("address", c_uint64),
        ("begin", c_uint64),
        ("end", c_uint64),
        ("committed", c_uint64),
        ("reserved", c_uint64),
        ("generation", c_int),
        ("heap", c_uint32),
    ]


class HeapObject(Structure):
    _fields_ = [
        ("address", c_uint64),
        ("method_table", c_uint64),
        ("byte_size", c_uint64),
        ("generation", c_int),
        ("is_free", c_bool),
    ]


class HeapInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("is_server", c_bool),
        ("has_regions", c_bool),
        ("is_under_way", c_bool),
        ("heap_count", c_uint32),
        ("problem_count", c_uint64),
        ("oom_reason", c_int),
        ("oom_bytes", c_uint64),
        ("missing_bytes", c_uint64),
    ]


class HeapVisitor(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("segment", Visitor),
        ("object", Visitor),
        ("reference", Reference),
        ("problem", Problem),
        ("context", c_void_p),
    ]


class HeapArrays(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("object_count", c_size_t),
        ("addresses", POINTER(c_uint64)),
        ("byte_sizes", POINTER(c_uint64)),
        ("types", POINTER(c_uint32)),
        ("generations", c_void_p),
        ("type_count", c_size_t),
        ("method_tables", POINTER(c_uint64)),
        ("free_type", c_uint32),
        ("reference_count", c_size_t),
        ("first_references", POINTER(c_uint64)),
        ("targets", POINTER(c_uint64)),
    ]


class HeapString(Structure):
    _fields_ = [
        ("address", c_uint64),
        ("byte_size", c_uint64),
        ("length", c_uint32),
        ("hash", c_uint64 * 2),
    ]


class MemoryUse(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("is_resident", c_bool),
        ("gc", c_uint64),
        ("code", c_uint64),
        ("loader", c_uint64),
        ("stacks", c_uint64),
        ("other", c_uint64),
        ("files", c_uint64),
        ("swapped", c_uint64),
    ]


class HeapRoot(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("keeps", c_bool),
        ("is_interior", c_bool),
        ("address", c_uint64),
        ("object", c_uint64),
        ("dependent", c_uint64),
        ("handle", c_int),
        ("method_table", c_uint64),
        ("token", c_uint32),
        ("tid", c_int),
        ("frame", c_uint),
        ("method", c_char_p),
    ]


class RootsVisitor(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("root", Visitor),
        ("problem", Problem),
        ("context", c_void_p),
    ]


class LoadContext(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("address", c_uint64),
        ("allocator", c_uint64),
        ("name", c_char_p),
        ("is_unloading", c_bool),
        ("assembly_count", c_uint32),
    ]


class JitdumpHeader(Structure):
    _fields_ = [
        ("version", c_uint32),
        ("total_size", c_uint32),
        ("elf_mach", c_uint32),
        ("pad1", c_uint32),
        ("pid", c_uint32),
        ("flags", c_uint64),
        ("big_endian", c_bool),
        ("restart", c_char_p),
    ]


class JitdumpLoad(Structure):
    _fields_ = [
        ("pid", c_uint32),
        ("tid", c_uint32),
        ("vma", c_uint64),
        ("code_addr", c_uint64),
        ("code_size", c_uint64),
        ("code_index", c_uint64),
        ("name", c_void_p),
        ("name_length", c_size_t),
        ("code", c_void_p),
        ("code_offset", c_uint64),
        ("debug_info", c_uint64),
        ("unwinding_info", c_uint64),
        ("samply_debug_info2", c_uint64),
    ]


class JitdumpMove(Structure):
    _fields_ = [
        ("pid", c_uint32),
        ("tid", c_uint32),
        ("vma", c_uint64),
        ("old_code_addr", c_uint64),
        ("new_code_addr", c_uint64),
        ("code_size", c_uint64),
        ("code_index", c_uint64),
        ("load", c_uint64),
    ]


class JitdumpDebugInfo(Structure):
    _fields_ = [
        ("code_addr", c_uint64),
        ("nr_entry", c_uint64),
    ]


class JitdumpUnwindingInfo(Structure):
    _fields_ = [
        ("unwind_data_size", c_uint64),
        ("eh_frame_hdr_size", c_uint64),
        ("mapped_size", c_uint64),
        ("unwinding_data", c_void_p),
        ("unwinding_data_offset", c_uint64),
        ("fde_count", c_uint64),
    ]


class JitdumpSamplyDebugInfo2(Structure):
    _fields_ = [
        ("file_count", c_uint32),
        ("file_list_size", c_uint32),
        ("function_names_count", c_uint32),
        ("function_names_list_size", c_uint32),
        ("function_count", c_uint32),
        ("inline_call_record_count", c_uint32),
        ("range_count", c_uint32),
        ("line_record_count", c_uint32),
    ]


class JitdumpSamplyPositions(Structure):
    _fields_ = [
        ("code_addr", c_uint64),
        ("code_offset_count", c_uint64),
        ("source_position_count", c_uint64),
        ("string_count", c_uint64),
    ]


class JitdumpRecordOpaque(Structure):
    _fields_ = [
        ("bytes", c_void_p),
        ("size", c_size_t),
        ("big_endian", c_bool),
    ]


class JitdumpRecordAs(Union):
    _fields_ = [
        ("header", JitdumpHeader),
        ("load", JitdumpLoad),
        ("move", JitdumpMove),
        ("debug_info", JitdumpDebugInfo),
        ("unwinding_info", JitdumpUnwindingInfo),
        ("samply_debug_info2", JitdumpSamplyDebugInfo2),
        ("samply_positions", JitdumpSamplyPositions),
    ]


class JitdumpRecord(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("id", c_uint32),
        ("offset", c_uint64),
        ("total_size", c_uint64),
        ("timestamp", c_uint64),
        ("error", c_char_p),
        ("has_fields", c_bool),
        ("opaque", JitdumpRecordOpaque),
        ("as", JitdumpRecordAs),
    ]


class JitdumpEntry(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("code_addr", c_uint64),
        ("line", c_uint32),
        ("discrim", c_uint32),
        ("name", c_void_p),
        ("name_length", c_size_t),
    ]


class JitdumpFunction(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("function_name_index", c_uint32),
        ("file_index", c_uint32),
        ("start_line", c_uint32),
        ("start_column", c_uint32),
        ("flags", c_uint32),
    ]


class JitdumpInlineCall(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("depth", c_uint32),
        ("range_count", c_uint32),
        ("function_index", c_uint32),
        ("call_line_number", c_uint32),
        ("call_column_number", c_uint32),
    ]


class JitdumpRange(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("start_offset", c_uint32),
        ("code_size", c_uint32),
    ]


class JitdumpLineRecord(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("code_offset", c_uint32),
        ("file_index", c_uint32),
        ("line_number", c_uint32),
        ("column_number", c_uint32),
    ]


class JitdumpPlace(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("code_index", c_uint64),
        ("load", c_uint64),
        ("vma", c_uint64),
        ("code_addr", c_uint64),
        ("code_size", c_uint64),
        ("timestamp", c_uint64),
        ("damaged", c_uint64),
        ("problem", c_char_p),
    ]


class End(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("tid", c_int),
        ("exception", c_uint64),
        ("message", c_uint64),
        ("source", c_uint64),
        ("flaws", c_uint),
    ]


class Lock(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("object", c_uint64),
        ("type", c_char_p),
        ("held", c_bool),
        ("thin", c_bool),
        ("owner_id", c_uint32),
        ("owner", c_uint64),
        ("owner_tid", c_int),
        ("recursion", c_uint32),
        ("waiters", c_uint32),
        ("sync_block", c_uint64),
        ("readers", c_uint32),
    ]


class Task(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("object", c_uint64),
        ("type", c_char_p),
        ("status", c_char_p),
        ("method", c_char_p),
        ("tid", c_int),
        ("file", c_char_p),
        ("line", c_uint32),
        ("others", c_uint32),
    ]


class Wait(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("by", c_int),
        ("tid", c_int),
        ("thread", c_uint64),
        ("managed_id", c_uint32),
        ("name", c_char_p),
        ("object", c_uint64),
        ("type", c_char_p),
        ("has_timeout", c_bool),
        ("timeout_ms", c_int32),
        ("blocker_tid", c_int),
        ("blocker_id", c_uint32),
        ("blocker_name", c_char_p),
        ("tasks", c_void_p),
        ("task_count", c_size_t),
        ("endless", c_int),
        ("readers", c_uint32),
        ("has_pending_continuation", c_bool),
        ("is_cycle", c_bool),
        ("process", c_int),
    ]


class Deadlock(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("waits", POINTER(c_void_p)),
        ("count", c_size_t),
    ]


class ThreadPool(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("object", c_uint64),
        ("workers", c_uint32),
        ("busy", c_uint32),
        ("waiting", c_uint32),
        ("has_limits", c_bool),
        ("min_workers", c_uint32),
        ("max_workers", c_uint32),
        ("has_queued", c_bool),
        ("queued", c_uint64),
        ("starves", c_bool),
    ]


class Object(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("address", c_uint64),
        ("method_table", c_uint64),
        ("type", c_char_p),
        ("byte_size", c_uint64),
        ("is_string", c_bool),
        ("is_array", c_bool),
        ("length", c_uint32),
        ("rank", c_uint32),
        ("element_size", c_uint32),
    ]


class Value(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("width", c_uint32),
        ("address", c_uint64),
        ("bits", c_uint64),
        ("method_table", c_uint64),
    ]


class Field(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("type", c_char_p),
        ("owner", c_char_p),
        ("offset", c_uint32),
        ("problem", c_char_p),
        ("value", POINTER(Value)),
    ]


class Delegate(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("target", c_uint64),
        ("entry", c_uint64),
        ("method_desc", c_uint64),
        ("method", c_char_p),
    ]


class Contents(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("count", c_uint64),
        ("is_array", c_bool),
        ("has_keys", c_bool),
        ("rank", c_uint32),
        ("lengths", c_uint32 * 32),
        ("lower_bounds", c_int32 * 32),
    ]


class Item(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("index", c_uint64),
        ("problem", c_char_p),
        ("key", POINTER(Value)),
        ("value", POINTER(Value)),
    ]


class Sink(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("write", Write),
        ("left_out", Visitor),
        ("visited", Visited),
        ("context", c_void_p),
    ]


class Written(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("bytes", c_uint64),
        ("methods", c_uint64),
        ("stubs", c_uint64),
        ("left_out", c_uint64),
        ("unverified", c_uint64),
        ("functions", c_uint64),
        ("functions_left_out", c_uint64),
        ("without_epilogs", c_uint64),
    ]


class CodeFile(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("path", c_char_p),
        ("former_path", c_char_p),
        ("has_code", c_bool),
        ("may_execute", c_bool),
        ("local_path", c_char_p),
        ("local_file", c_void_p),
    ]


class Comparison(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("verdict", c_int),
        ("offset", c_uint64),
        ("line", c_uint64),
        ("timestamp", c_uint64),
        ("address", c_uint64),
        ("code_size", c_uint64),
        ("name", c_void_p),
        ("name_length", c_size_t),
        ("method", c_void_p),
        ("detail", c_char_p),
    ]


class Verification(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("perf_map", c_bool),
        ("records", c_uint64),
        ("contradictions", c_uint64),
        ("names_not_compared", c_uint64),
        ("code_not_compared", c_uint64),
        ("advice", c_char_p),
        ("cut", c_char * 512),
        ("methods_problem", c_char * 512),
        ("counts", c_uint64 * len(Verdict)),
    ]


class Process(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("pid", c_int),
        ("inner_pid", c_int),
        ("uid", c_uint),
        ("thread_count", c_uint),
        ("name", c_char_p),
        ("program", c_char_p),
        ("arguments", c_char_p),
        ("arguments_cut", c_bool),
        ("container", c_char_p),
        ("runtime_path", c_char_p),
    ]


class ThreadTime(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("tid", c_int),
        ("processor_time_ns", c_uint64),
        ("delay_ns", c_uint64),
        ("runs", c_uint64),
        ("ready", c_bool),
    ]


class ProcessorLimit(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("quota_ns", c_uint64),
        ("period_ns", c_uint64),
        ("periods", c_uint64),
        ("throttled_periods", c_uint64),
        ("throttled_time_ns", c_uint64),
    ]


class MemoryLimit(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("limit", c_uint64),
        ("used", c_uint64),
    ]


class Registers(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("known", c_uint64),
        ("values", c_uint64 * 64),
    ]


class SystemCall(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("number", c_uint),
        ("name", c_char_p),
        ("descriptor", c_int),
        ("child", c_int),
        ("file", c_char_p),
        ("local", c_char_p),
        ("peer", c_char_p),
        ("holder", c_int),
    ]


class Thread(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("tid", c_int),
        ("thread", c_uint64),
        ("managed_id", c_uint32),
        ("signal", c_int),
        ("died", c_bool),
        ("name", c_char_p),
        ("registers", POINTER(Registers)),
        ("exception", c_uint64),
        ("last_thrown", c_uint64),
        ("last_thrown_is_fatal", c_bool),
        ("state", c_uint32),
        ("mode", c_int),
        ("suspends_others", c_bool),
        ("delays_suspension", c_bool),
        ("call", POINTER(SystemCall)),
    ]


class Sample(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("thread", POINTER(Thread)),
        ("rounds", c_uint64),
        ("is_unchanged", c_bool),
        ("again", c_bool),
    ]


class CodeRangeInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("begin", c_uint64),
        ("end", c_uint64),
        ("kind", c_char_p),
        ("module", c_char_p),
        ("collectible", c_bool),
    ]


class Source(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("il_offset", c_int32),
        ("line", c_uint32),
        ("column", c_uint32),
        ("end_line", c_uint32),
        ("end_column", c_uint32),
        ("file", c_char_p),
        ("url", c_char_p),
        ("pdb", c_char_p),
        ("pdb_embedded", c_bool),
        ("problem", c_char_p),
        ("verified", c_bool),
    ]


class PdbInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("module", c_char_p),
        ("base", c_uint64),
        ("key", c_char_p),
        ("path", c_char_p),
        ("embedded", c_bool),
        ("refused", c_bool),
        ("problem", c_char_p),
        ("local_file", c_void_p),
    ]


class Activity(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("suspended", c_bool),
        ("suspension_partly", c_bool),
        ("suspension_known", c_bool),
        ("thread_count", c_uint32),
        ("throwing", c_uint32),
        ("thrown", c_uint32),
    ]


class Frame(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("index", c_uint),
        ("kind", c_int),
        ("by", c_int),
        ("funclet", c_int),
        ("is_call", c_bool),
        ("pc", c_uint64),
        ("sp", c_uint64),
        ("cfa", c_uint64),
        ("method", c_void_p),
        ("symbol", c_char_p),
        ("symbol_offset", c_uint64),
        ("module", c_char_p),
        ("module_offset", c_uint64),
        ("frame", c_uint64),
        ("frame_name", c_char_p),
        ("registers", POINTER(Registers)),
        ("after_gap", c_bool),
        ("files_verified", c_bool),
        ("object", c_uint64),
    ]


class StressLog(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("address", c_uint64),
        ("is_on", c_bool),
        ("facilities", c_uint32),
        ("level", c_uint32),
        ("max_size_per_thread", c_uint64),
        ("max_size_total", c_uint64),
        ("chunk_count", c_uint64),
        ("ticks_per_second", c_uint64),
        ("start_time_ns", c_int64),
    ]


class StressMessage(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("address", c_uint64),
        ("tid", c_uint64),
        ("time_ns", c_uint64),
        ("facilities", c_uint32),
        ("argument_count", c_uint32),
        ("arguments", POINTER(c_uint64)),
        ("format", c_char_p),
        ("text", c_char_p),
        ("flaws", c_uint),
        ("problem", c_char_p),
    ]


class Need(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("path", c_char_p),
        ("build_id", c_char_p),
        ("symbol_key", c_char_p),
    ]


class Options(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("flags", c_uint),
        ("runtime", c_uint),
        ("sysroots", POINTER(c_char_p)),
        ("sysroot_count", c_size_t),
        ("module_paths", POINTER(c_char_p)),
        ("module_path_count", c_size_t),
        ("symbol_servers", POINTER(c_char_p)),
        ("symbol_server_count", c_size_t),
        ("symbol_cache", c_char_p),
        ("descriptors", POINTER(c_char_p)),
        ("descriptor_count", c_size_t),
        ("descriptor_address", c_uint64),
        ("names", c_int),
        ("store_max", c_uint64),
        ("work_max", c_uint64),
        ("memory_max", c_uint64),
        ("find_file", FindFile),
        ("find_file_context", c_void_p),
        ("describe_need", DescribeNeed),
        ("describe_need_context", c_void_p),
        ("progress", Progress),
        ("progress_context", c_void_p),
        ("fetching", Fetching),
        ("fetch_failed", FetchFailed),
        ("fetching_context", c_void_p),
        ("before_stop", BeforeStop),
        ("before_stop_context", c_void_p),
    ]


class Mapping(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("begin", c_uint64),
        ("end", c_uint64),
        ("file_offset", c_uint64),
        ("path", c_char_p),
    ]


class MemoryThread(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("tid", c_int),
        ("signal", c_int),
        ("died", c_bool),
        ("name", c_char_p),
        ("registers", POINTER(Registers)),
    ]


class Memory(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("span_at", SpanAt),
        ("read", Read),
        ("context", c_void_p),
        ("mappings", POINTER(Mapping)),
        ("mapping_count", c_size_t),
        ("held", POINTER(Mapping)),
        ("held_count", c_size_t),
        ("pid", c_int),
        ("elf_machine", c_uint16),
        ("threads", POINTER(MemoryThread)),
        ("thread_count", c_size_t),
    ]


class TargetInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("pid", c_int),
        ("problem_status", c_int),
        ("problem", c_char_p),
        ("architecture", c_char_p),
        ("operating_system", c_char_p),
        ("elf_machine", c_char_p),
        ("pointer_size", c_uint),
        ("big_endian", c_bool),
        ("native_aot", c_bool),
        ("runtime_count", c_uint),
        ("runtime", c_uint),
        ("runtime_path", c_char_p),
        ("runtime_base", c_uint64),
        ("runtime_build_id", c_char_p),
        ("runtime_release", c_char_p),
        ("runtime_version", c_char_p),
        ("runtime_file_version", c_char_p),
        ("descriptor_address", c_uint64),
        ("descriptor_origin", c_char_p),
        ("descriptor_missing", c_char_p),
        ("supplement", c_char_p),
        ("schema", c_uint),
        ("missing_filter", c_uint),
        ("writer", c_char_p),
        ("segment_count", c_uint64),
        ("dumped_size", c_uint64),
        ("missing_size", c_uint64),
        ("truncated", c_bool),
        ("truncation", c_char_p),
    ]


class Stops(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("count", c_uint64),
        ("total_ns", c_uint64),
        ("longest_ns", c_uint64),
    ]


class ProcessInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("pid", c_int),
        ("program", c_char_p),
        ("name", c_char_p),
        ("arguments", c_char_p),
        ("arguments_cut", c_bool),
        ("is_stopped", c_bool),
        ("is_frozen", c_bool),
        ("time_s", c_int64),
        ("signal", c_int),
        ("signal_code", c_int),
        ("has_signal_address", c_bool),
        ("signal_address", c_uint64),
        ("sender_pid", c_int),
        ("sender_uid", c_uint),
        ("abort_message", c_char_p),
    ]


class RuntimeInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("path", c_char_p),
        ("base", c_uint64),
        ("build_id", c_char_p),
        ("version", c_char_p),
        ("descriptor_address", c_uint64),
        ("in_use", c_bool),
        ("problem", c_char_p),
    ]


class ContractInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("version", c_char_p),
        ("origin", c_char_p),
        ("supported", c_bool),
        ("known", c_char_p),
    ]


class MappedFile(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("path", c_char_p),
        ("begin", c_uint64),
        ("end", c_uint64),
        ("missing_size", c_uint64),
        ("local_path", c_char_p),
        ("local_file", c_void_p),
        ("verified", c_bool),
        ("problem", c_char_p),
        ("build_id", c_char_p),
        ("symbol_key", c_char_p),
    ]


class DescriptorItem(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("name", c_char_p),
        ("type", c_char_p),
        ("text", c_char_p),
        ("value", c_uint64),
        ("has_value", c_bool),
        ("origin", c_char_p),
        ("overrides", c_char_p),
    ]


class UnfilledFile(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("path", c_char_p),
        ("missing_size", c_uint64),
        ("problem", c_char_p),
        ("unverified", c_bool),
    ]


class CompleteCore(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("file_size", c_uint64),
        ("filled_size", c_uint64),
        ("missing_size", c_uint64),
        ("unverified_size", c_uint64),
        ("segment_count", c_uint64),
    ]


class Variable(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("state", c_int),
        ("number", c_uint32),
        ("name", c_char_p),
        ("type", c_char_p),
        ("problem", c_char_p),
        ("value", POINTER(Value)),
        ("target", POINTER(Value)),
    ]


class VariablePlace(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("number", c_uint32),
        ("name", c_char_p),
        ("type", c_char_p),
        ("location", c_char_p),
        ("problem", c_char_p),
    ]


class WorkItem(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("method", c_char_p),
        ("type", c_char_p),
        ("count", c_uint64),
        ("object", c_uint64),
    ]


class Timer(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("callback", c_char_p),
        ("period_ms", c_int64),
        ("count", c_uint64),
        ("first_due_ms", c_int64),
        ("last_due_ms", c_int64),
        ("is_exact", c_bool),
        ("object", c_uint64),
    ]


class HttpRequest(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("is_served", c_bool),
        ("request", c_char_p),
        ("has_elapsed", c_bool),
        ("is_exact", c_bool),
        ("elapsed_ms", c_int64),
        ("object", c_uint64),
    ]


class WorkInfo(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("has_queue", c_bool),
        ("item_count", c_uint64),
        ("timer_count", c_uint64),
        ("request_count", c_uint64),
        ("problem_count", c_uint64),
    ]


class WorkVisitor(Structure):
    _fields_ = [
        ("size", c_size_t),
        ("item", Visitor),
        ("timer", Visitor),
        ("request", Visitor),
        ("problem", Problem),
        ("context", c_void_p),
    ]


ENUMS: dict[str, tuple[type[enum.IntEnum] | type[enum.IntFlag], str]] = {
    "cdacq_jit_type": (JitType, "CDACQ_JIT_TYPE_"),
    "cdacq_clause_kind": (ClauseKind, "CDACQ_CLAUSE_"),
    "cdacq_code_heap_type": (CodeHeapType, "CDACQ_CODE_HEAP_"),
    "cdacq_code_kind": (CodeKind, "CDACQ_CODE_"),
    "cdacq_status": (Status, "CDACQ_"),
    "cdacq_exception_flaw": (ExceptionFlaw, "CDACQ_EXCEPTION_"),
    "cdacq_generation": (Generation, "CDACQ_"),
    "cdacq_oom_reason": (OomReason, "CDACQ_OOM_"),
    "cdacq_heap_read_flags": (HeapReadFlags, "CDACQ_HEAP_"),
    "cdacq_root_kind": (RootKind, "CDACQ_ROOT_"),
    "cdacq_handle_kind": (HandleKind, "CDACQ_HANDLE_"),
    "cdacq_jitdump_flags": (JitdumpFlags, "CDACQ_JITDUMP_"),
    "cdacq_jitdump_kind": (JitdumpKind, "CDACQ_JITDUMP_"),
    "cdacq_jitdump_strings": (JitdumpStrings, "CDACQ_JITDUMP_"),
    "cdacq_end_kind": (EndKind, "CDACQ_END_"),
    "cdacq_lock_kind": (LockKind, "CDACQ_LOCK_"),
    "cdacq_wait_kind": (WaitKind, "CDACQ_WAIT_"),
    "cdacq_wait_source": (WaitSource, "CDACQ_WAIT_BY_"),
    "cdacq_wait_endless": (WaitEndless, "CDACQ_ENDLESS_"),
    "cdacq_value_kind": (ValueKind, "CDACQ_VALUE_"),
    "cdacq_jitdump_write_flags": (JitdumpWriteFlags, "CDACQ_WRITE_"),
    "cdacq_elf_flags": (ElfFlags, "CDACQ_ELF_"),
    "cdacq_verdict": (Verdict, "CDACQ_VERDICT_"),
    "cdacq_sampler_flags": (SamplerFlags, "CDACQ_SAMPLE_"),
    "cdacq_answer": (Answer, "CDACQ_ANSWER_"),
    "cdacq_visit_flags": (VisitFlags, "CDACQ_VISIT_"),
    "cdacq_thread_state": (ThreadState, "CDACQ_THREAD_"),
    "cdacq_thread_mode": (ThreadMode, "CDACQ_MODE_"),
    "cdacq_call_kind": (CallKind, "CDACQ_CALL_"),
    "cdacq_frame_kind": (FrameKind, "CDACQ_FRAME_"),
    "cdacq_frame_source": (FrameSource, "CDACQ_FRAME_BY_"),
    "cdacq_funclet_kind": (FuncletKind, "CDACQ_FUNCLET_"),
    "cdacq_frames_flags": (FramesFlags, "CDACQ_FRAMES_"),
    "cdacq_stress_flaw": (StressFlaw, "CDACQ_STRESS_"),
    "cdacq_open_flags": (OpenFlags, "CDACQ_OPEN_"),
    "cdacq_name_style": (NameStyle, "CDACQ_NAMES_"),
    "cdacq_need_kind": (NeedKind, "CDACQ_NEED_"),
    "cdacq_target_kind": (TargetKind, "CDACQ_TARGET_"),
    "cdacq_core_filter": (CoreFilter, "CDACQ_FILTER_"),
    "cdacq_descriptor_item_kind": (DescriptorItemKind, "CDACQ_ITEM_"),
    "cdacq_complete_flags": (CompleteFlags, "CDACQ_COMPLETE_"),
    "cdacq_variable_kind": (VariableKind, "CDACQ_VARIABLE_"),
    "cdacq_variable_state": (VariableState, "CDACQ_VARIABLE_"),
    "cdacq_work_kind": (WorkKind, "CDACQ_WORK_"),
}


STRUCTS: dict[str, type[Structure]] = {
    "cdacq_async_chain": AsyncChain,
    "cdacq_failed_task": FailedTask,
    "cdacq_async_info": AsyncInfo,
    "cdacq_async_visitor": AsyncVisitor,
    "cdacq_block": Block,
    "cdacq_exception_clause": ExceptionClause,
    "cdacq_jit_manager_info": JitManagerInfo,
    "cdacq_code_heap_info": CodeHeapInfo,
    "cdacq_error": Error,
    "cdacq_exception": Exception_,
    "cdacq_exception_frame": ExceptionFrame,
    "cdacq_nested_exception": NestedException,
    "cdacq_heap_segment": HeapSegment,
    "cdacq_heap_object": HeapObject,
    "cdacq_heap_info": HeapInfo,
    "cdacq_heap_visitor": HeapVisitor,
    "cdacq_heap_arrays": HeapArrays,
    "cdacq_heap_string": HeapString,
    "cdacq_memory_use": MemoryUse,
    "cdacq_heap_root": HeapRoot,
    "cdacq_roots_visitor": RootsVisitor,
    "cdacq_load_context": LoadContext,
    "cdacq_jitdump_header": JitdumpHeader,
    "cdacq_jitdump_load": JitdumpLoad,
    "cdacq_jitdump_move": JitdumpMove,
    "cdacq_jitdump_debug_info": JitdumpDebugInfo,
    "cdacq_jitdump_unwinding_info": JitdumpUnwindingInfo,
    "cdacq_jitdump_samply_debug_info2": JitdumpSamplyDebugInfo2,
    "cdacq_jitdump_samply_positions": JitdumpSamplyPositions,
    "cdacq_jitdump_record": JitdumpRecord,
    "cdacq_jitdump_entry": JitdumpEntry,
    "cdacq_jitdump_function": JitdumpFunction,
    "cdacq_jitdump_inline_call": JitdumpInlineCall,
    "cdacq_jitdump_range": JitdumpRange,
    "cdacq_jitdump_line_record": JitdumpLineRecord,
    "cdacq_jitdump_place": JitdumpPlace,
    "cdacq_end": End,
    "cdacq_lock": Lock,
    "cdacq_task": Task,
    "cdacq_wait": Wait,
    "cdacq_deadlock": Deadlock,
    "cdacq_thread_pool": ThreadPool,
    "cdacq_object": Object,
    "cdacq_value": Value,
    "cdacq_field": Field,
    "cdacq_delegate": Delegate,
    "cdacq_contents": Contents,
    "cdacq_item": Item,
    "cdacq_sink": Sink,
    "cdacq_written": Written,
    "cdacq_code_file": CodeFile,
    "cdacq_comparison": Comparison,
    "cdacq_verification": Verification,
    "cdacq_process": Process,
    "cdacq_thread_time": ThreadTime,
    "cdacq_processor_limit": ProcessorLimit,
    "cdacq_memory_limit": MemoryLimit,
    "cdacq_sample": Sample,
    "cdacq_method": Method,
    "cdacq_code_range_info": CodeRangeInfo,
    "cdacq_source": Source,
    "cdacq_pdb_info": PdbInfo,
    "cdacq_registers": Registers,
    "cdacq_system_call": SystemCall,
    "cdacq_thread": Thread,
    "cdacq_activity": Activity,
    "cdacq_frame": Frame,
    "cdacq_stress_log": StressLog,
    "cdacq_stress_message": StressMessage,
    "cdacq_need": Need,
    "cdacq_options": Options,
    "cdacq_mapping": Mapping,
    "cdacq_memory_thread": MemoryThread,
    "cdacq_memory": Memory,
    "cdacq_target_info": TargetInfo,
    "cdacq_stops": Stops,
    "cdacq_process_info": ProcessInfo,
    "cdacq_runtime_info": RuntimeInfo,
    "cdacq_contract_info": ContractInfo,
    "cdacq_mapped_file": MappedFile,
    "cdacq_descriptor_item": DescriptorItem,
    "cdacq_unfilled_file": UnfilledFile,
    "cdacq_complete_core": CompleteCore,
    "cdacq_variable": Variable,
    "cdacq_variable_place": VariablePlace,
    "cdacq_work_item": WorkItem,
    "cdacq_timer": Timer,
    "cdacq_http_request": HttpRequest,
    "cdacq_work_info": WorkInfo,
    "cdacq_work_visitor": WorkVisitor,
}


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cdacq_session_visit_async": (c_int, c_void_p, POINTER(AsyncVisitor), POINTER(AsyncInfo), POINTER(Error)),
    "cdacq_session_code_block_at": (c_int, c_void_p, c_uint64, POINTER(Block), POINTER(Error)),
    "cdacq_block_get_method_desc": (c_uint64, POINTER(Block)),
    "cdacq_block_get_start_address": (c_uint64, POINTER(Block)),
    "cdacq_block_get_relative_offset": (c_uint64, POINTER(Block)),
    "cdacq_block_get_jit_type": (c_int, POINTER(Block)),
    "cdacq_block_get_method_region_info": (c_int, POINTER(Block), c_void_p, POINTER(c_uint64), POINTER(c_uint64),
        POINTER(c_uint64), POINTER(Error)),
    "cdacq_block_get_unwind_info": (c_int, POINTER(Block), c_void_p, POINTER(c_uint64), POINTER(Error)),
    "cdacq_block_get_unwind_info_base_address": (c_uint64, POINTER(Block)),
    "cdacq_block_get_funclet_start_address": (c_int, POINTER(Block), c_void_p, POINTER(c_uint64), POINTER(Error)),
    "cdacq_block_is_funclet": (c_int, POINTER(Block), c_void_p, POINTER(c_bool), POINTER(Error)),
    "cdacq_block_is_filter_funclet": (c_int, POINTER(Block), c_void_p, POINTER(c_bool), POINTER(Error)),
    "cdacq_block_get_debug_info": (c_int, POINTER(Block), c_void_p, POINTER(c_uint64), POINTER(c_bool), POINTER(Error)),
    "cdacq_block_get_gc_info": (c_int, POINTER(Block), c_void_p, POINTER(c_uint64), POINTER(c_uint32), POINTER(Error)),
    "cdacq_block_is_gc_safe": (c_int, POINTER(Block), c_void_p, POINTER(c_bool), POINTER(Error)),
    "cdacq_block_get_stack_parameter_size": (c_int, POINTER(Block), c_void_p, POINTER(c_uint32), POINTER(Error)),
    "cdacq_block_visit_exception_clauses": (c_int, POINTER(Block), c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_code_kind_at": (c_int, c_void_p, c_uint64, POINTER(c_int), POINTER(Error)),
    "cdacq_session_ready_to_run_module_at": (c_int, c_void_p, c_uint64, POINTER(c_uint64), POINTER(Error)),
    "cdacq_session_get_jit_manager_info": (c_int, c_void_p, c_int, POINTER(JitManagerInfo), POINTER(Error)),
    "cdacq_session_visit_code_heaps": (c_int, c_void_p, c_int, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_visit_function_table_entries": (c_int, c_void_p, c_uint64, Visit, c_void_p, POINTER(Error)),
    "cdacq_session_non_virtual_entry_to_method_desc": (c_int, c_void_p, c_uint64, POINTER(c_uint64), POINTER(Error)),
    "cdacq_code_kind_text": (c_char_p, c_int),
    "cdacq_status_text": (c_char_p, c_int),
    "cdacq_session_get_exception": (c_int, c_void_p, c_uint64, POINTER(Exception_), POINTER(Error)),
    "cdacq_session_visit_exception_frames": (c_int, c_void_p, c_uint64, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_write_exception": (c_int, c_void_p, c_uint64, Write, c_void_p, POINTER(c_uint), POINTER(Error)),
    "cdacq_session_visit_nested_exceptions": (c_int, c_void_p, c_uint64, Visitor, c_void_p, POINTER(Error)),
    "cdacq_follower_create": (c_int, c_void_p, c_uint, POINTER(c_void_p), POINTER(Error)),
    "cdacq_follower_destroy": (None, c_void_p),
    "cdacq_follower_visit_methods": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_follower_write_jitdump": (c_int, c_void_p, POINTER(Sink), POINTER(Written), POINTER(Error)),
    "cdacq_follower_close_jitdump": (c_int, c_void_p, POINTER(Sink), POINTER(Written), POINTER(Error)),
    "cdacq_generation_text": (c_char_p, c_int),
    "cdacq_oom_reason_text": (c_char_p, c_int),
    "cdacq_session_visit_heap": (c_int, c_void_p, POINTER(HeapVisitor), POINTER(HeapInfo), POINTER(Error)),
    "cdacq_session_read_heap": (c_int, c_void_p, c_uint, POINTER(HeapVisitor), POINTER(c_void_p), POINTER(HeapInfo),
        POINTER(Error)),
    "cdacq_heap_arrays_destroy": (None, POINTER(HeapArrays)),
    "cdacq_session_visit_strings": (c_int, c_void_p, Visitor, c_void_p, POINTER(HeapInfo), POINTER(c_uint64),
        POINTER(Error)),
    "cdacq_session_get_memory_use": (c_int, c_void_p, POINTER(MemoryUse), POINTER(Error)),
    "cdacq_session_get_type_name": (c_int, c_void_p, c_uint64, POINTER(c_void_p), POINTER(Error)),
    "cdacq_session_visit_references": (c_int, c_void_p, c_uint64, VisitReference, c_void_p, POINTER(Error)),
    "cdacq_session_get_reference_name": (c_int, c_void_p, c_uint64, c_uint64, POINTER(c_void_p), POINTER(Error)),
    "cdacq_root_kind_text": (c_char_p, c_int),
    "cdacq_handle_kind_text": (c_char_p, c_int),
    "cdacq_session_visit_roots": (c_int, c_void_p, POINTER(RootsVisitor), POINTER(Error)),
    "cdacq_session_get_static_name": (c_int, c_void_p, c_uint64, c_uint32, POINTER(c_void_p), POINTER(Error)),
    "cdacq_session_get_event_name": (c_int, c_void_p, c_uint64, c_char_p, POINTER(c_void_p), POINTER(Error)),
    "cdacq_session_visit_load_contexts": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_jitdump_kind_text": (c_char_p, c_int),
    "cdacq_jitdump_open": (c_int, c_char_p, c_uint, POINTER(c_void_p), POINTER(Error)),
    "cdacq_jitdump_close": (None, c_void_p),
    "cdacq_jitdump_next": (c_int, c_void_p, POINTER(JitdumpRecord), POINTER(Error)),
    "cdacq_jitdump_check_end": (c_int, c_void_p, POINTER(Error)),
    "cdacq_jitdump_record_next_entry": (c_int, POINTER(JitdumpRecord), POINTER(c_uint64), POINTER(JitdumpEntry),
        POINTER(Error)),
    "cdacq_jitdump_record_next_string": (c_int, POINTER(JitdumpRecord), c_int, POINTER(c_uint64), POINTER(c_void_p),
        POINTER(c_size_t), POINTER(Error)),
    "cdacq_jitdump_record_get_function": (c_int, POINTER(JitdumpRecord), c_uint32, POINTER(JitdumpFunction),
        POINTER(Error)),
    "cdacq_jitdump_record_get_inline_call": (c_int, POINTER(JitdumpRecord), c_uint32, POINTER(JitdumpInlineCall),
        POINTER(Error)),
    "cdacq_jitdump_record_get_range": (c_int, POINTER(JitdumpRecord), c_uint32, POINTER(JitdumpRange), POINTER(Error)),
    "cdacq_jitdump_record_get_line_record": (c_int, POINTER(JitdumpRecord), c_uint32, POINTER(JitdumpLineRecord),
        POINTER(Error)),
    "cdacq_jitdump_visit_places": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_jitdump_find": (c_int, c_void_p, c_uint64, c_uint64, POINTER(JitdumpRecord), POINTER(JitdumpPlace),
        POINTER(Error)),
    "cdacq_jitdump_find_file": (c_int, c_int, c_char_p, c_size_t, POINTER(Error)),
    "cdacq_session_get_end": (c_int, c_void_p, POINTER(End), POINTER(Error)),
    "cdacq_session_write_last_words": (c_int, c_void_p, Write, c_void_p, POINTER(c_uint), POINTER(Error)),
    "cdacq_session_get_lock": (c_int, c_void_p, c_uint64, POINTER(Lock), POINTER(Error)),
    "cdacq_wait_graph_create": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "cdacq_wait_graph_destroy": (None, c_void_p),
    "cdacq_wait_graph_add_thread": (None, c_void_p, POINTER(Thread)),
    "cdacq_wait_graph_add_frame": (None, c_void_p, POINTER(Frame)),
    "cdacq_wait_graph_complete": (c_int, c_void_p, POINTER(Error)),
    "cdacq_wait_graph_visit_locks": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_wait_graph_visit_waits": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_wait_graph_visit_deadlocks": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_wait_graph_get_thread_pool": (c_int, c_void_p, POINTER(ThreadPool), POINTER(Error)),
    "cdacq_session_get_object": (c_int, c_void_p, c_uint64, POINTER(Object), POINTER(Error)),
    "cdacq_session_check_object": (c_int, c_void_p, c_uint64, POINTER(Error)),
    "cdacq_session_get_field": (c_int, c_void_p, c_uint64, c_char_p, POINTER(Value), POINTER(Error)),
    "cdacq_session_visit_fields": (c_int, c_void_p, c_uint64, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_visit_struct_fields": (c_int, c_void_p, c_uint64, c_uint64, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_visit_value_fields": (c_int, c_void_p, POINTER(Value), Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_get_boxed": (c_int, c_void_p, c_uint64, POINTER(Value), POINTER(Error)),
    "cdacq_session_get_nullable": (c_int, c_void_p, POINTER(Value), POINTER(c_bool), POINTER(Value), POINTER(Error)),
    "cdacq_session_write_value": (c_int, c_void_p, POINTER(Value), Write, c_void_p, POINTER(Error)),
    "cdacq_session_get_delegate": (c_int, c_void_p, c_uint64, POINTER(Delegate), POINTER(Error)),
    "cdacq_session_visit_items": (c_int, c_void_p, c_uint64, c_uint64, POINTER(Contents), Visitor, c_void_p,
        POINTER(Error)),
    "cdacq_session_get_element": (c_int, c_void_p, c_uint64, c_uint32, POINTER(Value), POINTER(Error)),
    "cdacq_session_write_string": (c_int, c_void_p, c_uint64, c_uint32, Write, c_void_p, POINTER(Error)),
    "cdacq_session_write_perf_map": (c_int, c_void_p, c_uint, POINTER(Sink), POINTER(Written), POINTER(Error)),
    "cdacq_session_write_jitdump": (c_int, c_void_p, c_uint, POINTER(Sink), POINTER(Written), POINTER(Error)),
    "cdacq_session_write_elf": (c_int, c_void_p, c_uint, POINTER(Sink), POINTER(Written), POINTER(Error)),
    "cdacq_session_write_elf_of_file": (c_int, c_void_p, c_char_p, c_uint, POINTER(Sink), POINTER(Written),
        POINTER(Error)),
    "cdacq_session_visit_code_files": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_verdict_text": (c_char_p, c_int),
    "cdacq_verdict_meaning": (c_char_p, c_int),
    "cdacq_verdict_is_contradiction": (c_bool, c_int),
    "cdacq_target_verify": (c_int, c_void_p, c_char_p, Visitor, c_void_p, POINTER(Verification), POINTER(Error)),
    "cdacq_perf_map_find_file": (c_int, c_int, c_char_p, c_size_t, POINTER(Error)),
    "cdacq_visit_processes": (c_int, Visitor, c_void_p, POINTER(Error)),
    "cdacq_visit_process": (c_int, c_int, Visitor, c_void_p, POINTER(Error)),
    "cdacq_visit_thread_times": (c_int, c_int, Visitor, c_void_p, POINTER(Error)),
    "cdacq_get_processor_limit": (c_int, c_int, POINTER(ProcessorLimit), POINTER(Error)),
    "cdacq_get_memory_limit": (c_int, c_int, POINTER(MemoryLimit), POINTER(Error)),
    "cdacq_sampler_create": (c_int, c_void_p, c_uint, POINTER(c_void_p), POINTER(Error)),
    "cdacq_sampler_destroy": (None, c_void_p),
    "cdacq_sampler_let_go": (None, c_void_p),
    "cdacq_sampler_visit": (c_int, c_void_p, c_uint64, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_create": (c_int, c_void_p, POINTER(c_void_p), POINTER(Error)),
    "cdacq_session_destroy": (None, c_void_p),
    "cdacq_session_of_runtime": (c_void_p, c_void_p, c_uint),
    "cdacq_session_target": (c_void_p, c_void_p),
    "cdacq_session_method_at": (c_int, c_void_p, c_uint64, POINTER(Method), POINTER(Error)),
    "cdacq_session_methods_at": (c_int, c_void_p, POINTER(c_uint64), c_size_t, POINTER(Method), POINTER(Error)),
    "cdacq_session_visit_methods": (c_int, c_void_p, c_uint, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_visit_code_ranges": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_check_layout": (c_int, c_void_p, POINTER(Error)),
    "cdacq_session_check_code_range": (c_int, c_void_p, c_uint64, POINTER(Error)),
    "cdacq_session_il_offset_at": (c_int, c_void_p, c_uint64, POINTER(c_int32), POINTER(Error)),
    "cdacq_session_source_at": (c_int, c_void_p, c_uint64, POINTER(Source), POINTER(Error)),
    "cdacq_session_visit_pdbs": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_visit_threads": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_get_activity": (c_int, c_void_p, POINTER(Activity), POINTER(Error)),
    "cdacq_session_visit_frames": (c_int, c_void_p, POINTER(Thread), POINTER(Registers), c_uint, Visitor, c_void_p,
        POINTER(Error)),
    "cdacq_session_get_stress_log": (c_int, c_void_p, POINTER(StressLog), POINTER(Error)),
    "cdacq_stress_facility_name": (c_char_p, c_uint),
    "cdacq_session_visit_stress_log": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_target_open_core": (c_int, c_char_p, POINTER(Options), POINTER(c_void_p), POINTER(Error)),
    "cdacq_target_open_core_fd": (c_int, c_int, c_char_p, POINTER(Options), POINTER(c_void_p), POINTER(Error)),
    "cdacq_target_open_pid": (c_int, c_int, POINTER(Options), POINTER(c_void_p), POINTER(Error)),
    "cdacq_target_open_image": (c_int, c_char_p, POINTER(Options), POINTER(c_void_p), POINTER(Error)),
    "cdacq_target_open_memory": (c_int, POINTER(Memory), POINTER(Options), POINTER(c_void_p), POINTER(Error)),
    "cdacq_target_bound_reached": (c_bool, c_void_p, c_char_p, c_size_t),
    "cdacq_target_close": (None, c_void_p),
    "cdacq_target_refresh": (c_int, c_void_p, POINTER(Error)),
    "cdacq_target_stop": (c_int, c_void_p, POINTER(Error)),
    "cdacq_target_resume": (None, c_void_p),
    "cdacq_target_get_stops": (c_int, c_void_p, POINTER(Stops), POINTER(Error)),
    "cdacq_target_get_info": (c_int, c_void_p, POINTER(TargetInfo), POINTER(Error)),
    "cdacq_target_truncation": (c_char_p, c_void_p),
    "cdacq_target_get_process_info": (c_int, c_void_p, POINTER(ProcessInfo), POINTER(Error)),
    "cdacq_target_visit_environment": (c_int, c_void_p, VisitVariable, c_void_p, POINTER(Error)),
    "cdacq_target_runtime_count": (c_uint, c_void_p),
    "cdacq_target_visit_runtimes": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_target_visit_contracts": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_local_file_open": (c_int, c_void_p, POINTER(c_int), POINTER(Error)),
    "cdacq_target_visit_mapped_files": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_target_visit_descriptor": (c_int, c_void_p, Visitor, c_void_p, POINTER(Error)),
    "cdacq_target_write_snapshot": (c_int, c_void_p, c_char_p, POINTER(c_uint64), POINTER(Error)),
    "cdacq_target_record_memory": (c_int, c_void_p, c_uint64, c_uint64, POINTER(Error)),
    "cdacq_target_record_arguments": (c_int, c_void_p, POINTER(Error)),
    "cdacq_target_write_complete_core": (c_int, c_void_p, c_char_p, c_uint, Visitor, c_void_p, POINTER(CompleteCore),
        POINTER(Error)),
    "cdacq_session_visit_variables": (c_int, c_void_p, POINTER(Frame), Visitor, c_void_p, POINTER(Error)),
    "cdacq_session_visit_variable_places": (c_int, c_void_p, c_uint64, Visitor, c_void_p, POINTER(Error)),
    "cdacq_work_kind_text": (c_char_p, c_int),
    "cdacq_session_visit_work": (c_int, c_void_p, POINTER(WorkVisitor), POINTER(WorkInfo), POINTER(Error)),
    "cdacq_version": (c_char_p,),
}
