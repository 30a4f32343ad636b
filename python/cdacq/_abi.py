"""The C declarations of libcdacq for ctypes: structs, enumerations, functions, and finding the library.

Private to the package. tests/python/test_abi.py compares every struct, field, constant and function of this file with
the public headers, by a C program that prints them.
"""
from __future__ import annotations

import ctypes
import enum
import os
from collections.abc import Callable
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, c_bool, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t,
                    c_uint, c_uint16, c_uint32, c_uint64, c_void_p)
from typing import Any

SONAME = "libcdacq.so.0"
MESSAGE_SIZE = 512
OFFSET_UNKNOWN = -2**31
BOUND_BY_SIZE = 2**64 - 1
JITDUMP_LAST = 2**64 - 1

Visitor = CFUNCTYPE(c_int, c_void_p, c_void_p)  # every visitor: (item, context)
Write = CFUNCTYPE(c_int, c_void_p, c_size_t, c_void_p)  # (bytes, size, context)
Visited = CFUNCTYPE(None, c_void_p, c_void_p)  # (method, context)
Fetching = CFUNCTYPE(None, c_void_p, c_void_p, c_uint64, c_uint64)  # (context, need, done, total)
FindFile = CFUNCTYPE(c_bool, c_void_p, c_void_p, c_void_p, c_size_t)
DescribeNeed = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_size_t)
Progress = CFUNCTYPE(None, c_void_p, c_uint64, c_uint64)
SpanAt = CFUNCTYPE(c_bool, c_void_p, c_uint64, POINTER(c_uint64), POINTER(c_uint64), POINTER(c_void_p))
Read = CFUNCTYPE(c_size_t, c_void_p, c_uint64, c_void_p, c_size_t)


# ---- Enumerations: the names without their prefix in C, which is given beside them -------------------------------


class Status(enum.IntEnum):
    """The result of a call of the library; `text` says what it means."""
    OK = 0
    NOT_MANAGED = 1
    STOPPED = 2
    END = 3
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
        """The general meaning of the status."""
        return static_text("cdacq_status_text", self)


class CodeKind(enum.IntEnum):
    """The kind of code at an address, of a method or a stub."""
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

    @property
    def text(self) -> str:
        """"jit", "r2r", "interpreter", or the runtime's name of the kind of stub."""
        return static_text("cdacq_code_kind_text", self)


class OpenFlags(enum.IntFlag):
    STOP = 1 << 0
    RECORD = 1 << 1
    DEBUGINFOD = 1 << 2
    PARTIAL = 1 << 3
    PREAD = 1 << 4
    KEEP = 1 << 5


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


class DescriptorItemKind(enum.IntEnum):
    """What a value of the descriptor is."""
    TYPE = 0
    FIELD = 1
    GLOBAL = 2
    CONTRACT = 3


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


class JitType(enum.IntEnum):
    """The manager that a block belongs to, with the values of the specification."""
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


class FrameKind(enum.IntEnum):
    """What the code of a frame is."""
    NATIVE = 0
    MANAGED = 1
    FUNCLET = 2
    STUB = 3
    SIGNAL = 4
    EXPLICIT = 5


class FrameSource(enum.IntEnum):
    """How a frame was found. Frames by GUESS can be wrong, and others can be missing."""
    CONTEXT = 0
    UNWIND = 1
    CFI = 2
    FRAME = 3
    GUESS = 4


class FuncletKind(enum.IntEnum):
    """The kind of a funclet."""
    NONE = 0
    CATCH = 1
    FILTER = 2
    FINALLY = 3
    FAULT = 4


class ThreadMode(enum.IntEnum):
    """What a thread did at the moment at which it is seen: `enum cdacq_thread_mode`."""
    UNKNOWN = 0
    KERNEL = 1
    """In a system call, as threads are that wait."""
    USER = 2
    """In no system call: it ran, or could have."""


class ThreadState(enum.IntFlag):
    """Some bits of the runtime's state of a thread."""
    BACKGROUND = 0x200
    LEAVES = 0x10000
    POOL = 0x1000000
    WAITING = 0x2000000


class FramesFlags(enum.IntFlag):
    EXPLICIT = 1 << 0
    CALLER = 1 << 1


class ExceptionFlaw(enum.IntFlag):
    """How the text of an exception differs from that of the runtime."""
    OVERRIDDEN = 1 << 0
    CUT = 1 << 1
    MISSING = 1 << 2
    INFERRED = 1 << 3


class EndKind(enum.IntEnum):
    """How the runtime ended a process."""
    NONE = 0
    UNHANDLED = 1
    OUT_OF_MEMORY = 2
    FAIL_FAST = 3
    STACK_OVERFLOW = 4
    FATAL = 5
    TERMINATED = 6


class ElfFlags(enum.IntFlag):
    CODE = 1 << 16


class JitdumpWriteFlags(enum.IntFlag):
    DEBUG = 1 << 17
    SAMPLY = 1 << 18


class LockKind(enum.IntEnum):
    """The kind of a lock: the monitor of an object, a System.Threading.Lock or a ReaderWriterLockSlim."""
    MONITOR = 0
    LOCK = 1
    READER_WRITER = 2


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


class WaitSource(enum.IntEnum):
    """How the object of a wait was found. One found by SCAN is a guess."""
    NOTHING = 0
    STATE = 1
    FRAME = 2
    SCAN = 3


class WaitEndless(enum.IntEnum):
    """Whether a wait lasts until what it waits for happens; the package has it as a bool or None."""
    UNKNOWN = 0
    YES = 1
    NO = 2


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
        """The text of the kind, such as "load"."""
        return static_text("cdacq_jitdump_kind_text", self)


class JitdumpStrings(enum.IntEnum):
    FILES = 0
    FUNCTION_NAMES = 1


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
    UNTOLD = 11

    @property
    def text(self) -> str:
        """The text of the verdict, such as "name-differs"."""
        return static_text("cdacq_verdict_text", self)

    @property
    def meaning(self) -> str:
        """What the verdict means."""
        return static_text("cdacq_verdict_meaning", self)

    @property
    def is_contradiction(self) -> bool:
        """Whether the file contradicts the target."""
        return bool(library().cdacq_verdict_is_contradiction(self))


# enum of C: the class, and the prefix of its constants
ENUMS: dict[str, tuple[type[enum.IntEnum] | type[enum.IntFlag], str]] = {
    "cdacq_status": (Status, "CDACQ_"),
    "cdacq_code_kind": (CodeKind, "CDACQ_CODE_"),
    "cdacq_open_flags": (OpenFlags, "CDACQ_OPEN_"),
    "cdacq_name_style": (NameStyle, "CDACQ_NAMES_"),
    "cdacq_need_kind": (NeedKind, "CDACQ_NEED_"),
    "cdacq_target_kind": (TargetKind, "CDACQ_TARGET_"),
    "cdacq_descriptor_item_kind": (DescriptorItemKind, "CDACQ_ITEM_"),
    "cdacq_answer": (Answer, "CDACQ_ANSWER_"),
    "cdacq_visit_flags": (VisitFlags, "CDACQ_VISIT_"),
    "cdacq_jit_type": (JitType, "CDACQ_JIT_TYPE_"),
    "cdacq_clause_kind": (ClauseKind, "CDACQ_CLAUSE_"),
    "cdacq_code_heap_type": (CodeHeapType, "CDACQ_CODE_HEAP_"),
    "cdacq_thread_mode": (ThreadMode, "CDACQ_MODE_"),
    "cdacq_thread_state": (ThreadState, "CDACQ_THREAD_"),
    "cdacq_frame_kind": (FrameKind, "CDACQ_FRAME_"),
    "cdacq_frame_source": (FrameSource, "CDACQ_FRAME_BY_"),
    "cdacq_funclet_kind": (FuncletKind, "CDACQ_FUNCLET_"),
    "cdacq_frames_flags": (FramesFlags, "CDACQ_FRAMES_"),
    "cdacq_exception_flaw": (ExceptionFlaw, "CDACQ_EXCEPTION_"),
    "cdacq_jitdump_write_flags": (JitdumpWriteFlags, "CDACQ_WRITE_"),
    "cdacq_lock_kind": (LockKind, "CDACQ_LOCK_"),
    "cdacq_value_kind": (ValueKind, "CDACQ_VALUE_"),
    "cdacq_wait_kind": (WaitKind, "CDACQ_WAIT_"),
    "cdacq_wait_source": (WaitSource, "CDACQ_WAIT_BY_"),
    "cdacq_wait_endless": (WaitEndless, "CDACQ_ENDLESS_"),
    "cdacq_end_kind": (EndKind, "CDACQ_END_"),
    "cdacq_elf_flags": (ElfFlags, "CDACQ_ELF_"),
    "cdacq_jitdump_flags": (JitdumpFlags, "CDACQ_JITDUMP_"),
    "cdacq_jitdump_kind": (JitdumpKind, "CDACQ_JITDUMP_"),
    "cdacq_jitdump_strings": (JitdumpStrings, "CDACQ_JITDUMP_"),
    "cdacq_verdict": (Verdict, "CDACQ_VERDICT_"),
}


# ---- Structs: in the order of the headers ------------------------------------------------------------------------

STRUCTS: dict[str, type[Structure]] = {}


def struct(name: str, *fields: tuple[str, Any]) -> type[Structure]:
    """Declares `struct name` with its fields as (name, type)."""
    declared = type(name, (Structure,), {"_fields_": list(fields)})
    STRUCTS[name] = declared
    return declared


Error = struct("cdacq_error", ("status", c_int), ("address", c_uint64), ("message", c_char * MESSAGE_SIZE))

Need = struct("cdacq_need", ("size", c_size_t), ("kind", c_int), ("path", c_char_p), ("build_id", c_char_p),
              ("symbol_key", c_char_p))
Options = struct(
    "cdacq_options", ("size", c_size_t), ("flags", c_uint), ("runtime", c_uint), ("sysroots", POINTER(c_char_p)),
    ("sysroot_count", c_size_t), ("module_paths", POINTER(c_char_p)), ("module_path_count", c_size_t),
    ("descriptors", POINTER(c_char_p)), ("descriptor_count", c_size_t), ("descriptor_address", c_uint64),
    ("names", c_int), ("find_file", FindFile), ("find_file_context", c_void_p), ("describe_need", DescribeNeed),
    ("describe_need_context", c_void_p), ("store_max", c_uint64), ("progress", Progress),
    ("progress_context", c_void_p), ("work_max", c_uint64), ("memory_max", c_uint64),
    ("fetching", Fetching), ("fetching_context", c_void_p))
Mapping = struct("cdacq_mapping", ("size", c_size_t), ("begin", c_uint64), ("end", c_uint64),
                 ("file_offset", c_uint64), ("path", c_char_p))
Registers = struct("cdacq_registers", ("size", c_size_t), ("known", c_uint64), ("values", c_uint64 * 64))
MemoryThread = struct("cdacq_memory_thread", ("size", c_size_t), ("tid", c_int), ("signal", c_int), ("died", c_bool),
                      ("name", c_char_p), ("registers", POINTER(Registers)))
Memory = struct("cdacq_memory", ("size", c_size_t), ("context", c_void_p), ("span_at", SpanAt),
                ("mappings", POINTER(Mapping)), ("mapping_count", c_size_t), ("read", Read), ("pid", c_int),
                ("elf_machine", c_uint16), ("threads", POINTER(MemoryThread)), ("thread_count", c_size_t),
                ("held", POINTER(Mapping)), ("held_count", c_size_t))
TargetInfo = struct(
    "cdacq_target_info", ("size", c_size_t), ("kind", c_int), ("pid", c_int), ("pointer_size", c_uint),
    ("big_endian", c_bool), ("architecture", c_char_p), ("elf_machine", c_char_p), ("runtime_count", c_uint),
    ("runtime", c_uint), ("runtime_path", c_char_p), ("runtime_base", c_uint64), ("runtime_build_id", c_char_p),
    ("runtime_release", c_char_p), ("runtime_version", c_char_p), ("runtime_file_version", c_char_p),
    ("descriptor_address", c_uint64), ("descriptor_origin", c_char_p), ("supplement", c_char_p), ("schema", c_uint),
    ("writer", c_char_p), ("segment_count", c_uint64), ("dumped_size", c_uint64), ("missing_size", c_uint64),
    ("truncated", c_bool), ("problem_status", c_int), ("problem", c_char_p), ("native_aot", c_bool),
    ("truncation", c_char_p), ("operating_system", c_char_p), ("descriptor_missing", c_char_p))
ProcessInfo = struct(
    "cdacq_process_info", ("size", c_size_t), ("pid", c_int), ("program", c_char_p), ("name", c_char_p),
    ("arguments", c_char_p), ("arguments_cut", c_bool), ("signal", c_int), ("signal_code", c_int),
    ("has_signal_address", c_bool), ("signal_address", c_uint64), ("sender_pid", c_int), ("sender_uid", c_uint),
    ("time", c_int64), ("is_stopped", c_bool), ("abort_message", c_char_p),
    ("is_frozen", c_bool))
Stops = struct("cdacq_stops", ("size", c_size_t), ("count", c_uint64), ("total", c_uint64), ("longest", c_uint64))
RuntimeInfo = struct("cdacq_runtime_info", ("size", c_size_t), ("path", c_char_p), ("base", c_uint64),
                     ("build_id", c_char_p), ("version", c_char_p), ("descriptor_address", c_uint64),
                     ("in_use", c_bool))
ThreadTime = struct("cdacq_thread_time", ("size", c_size_t), ("tid", c_int), ("processor_time", c_uint64))
Process = struct("cdacq_process", ("size", c_size_t), ("pid", c_int), ("inner_pid", c_int), ("uid", c_uint),
                 ("thread_count", c_uint), ("name", c_char_p), ("program", c_char_p), ("arguments", c_char_p),
                 ("arguments_cut", c_bool), ("container", c_char_p), ("runtime_path", c_char_p))
ContractInfo = struct("cdacq_contract_info", ("size", c_size_t), ("name", c_char_p), ("version", c_char_p),
                      ("origin", c_char_p), ("supported", c_bool), ("known", c_char_p))
ModuleInfo = struct("cdacq_module_info", ("size", c_size_t), ("path", c_char_p), ("begin", c_uint64),
                    ("end", c_uint64), ("missing_size", c_uint64), ("local_path", c_char_p), ("build_id", c_char_p),
                    ("symbol_key", c_char_p), ("problem", c_char_p), ("verified", c_bool))
DescriptorItem = struct("cdacq_descriptor_item", ("size", c_size_t), ("kind", c_int), ("name", c_char_p),
                        ("type", c_char_p), ("text", c_char_p), ("value", c_uint64), ("has_value", c_bool),
                        ("origin", c_char_p), ("overrides", c_char_p))

Method = struct(
    "cdacq_method", ("size", c_size_t), ("ip", c_uint64), ("answer", c_int), ("kind", c_int),
    ("method_desc", c_uint64), ("code_start", c_uint64), ("code_size", c_uint64), ("cold_start", c_uint64),
    ("cold_size", c_uint64), ("offset", c_uint64), ("funclet_start", c_uint64), ("token", c_uint32),
    ("il_offset", c_int32), ("line", c_uint32), ("cold", c_bool), ("module_verified", c_bool), ("name", c_char_p),
    ("name_length", c_size_t), ("module", c_char_p), ("tier", c_char_p), ("file", c_char_p), ("error", c_char_p),
    ("source_url", c_char_p), ("column", c_uint32), ("prepared_unknown", c_uint64))
CodeRangeInfo = struct("cdacq_code_range_info", ("size", c_size_t), ("begin", c_uint64), ("end", c_uint64),
                       ("kind", c_char_p), ("module", c_char_p), ("collectible", c_bool))

Block = struct("cdacq_block", ("opaque", c_uint64 * 16))
ExceptionClause = struct(
    "cdacq_exception_clause", ("size", c_size_t), ("kind", c_int), ("flags", c_uint32), ("duplicated", c_bool),
    ("try_start", c_uint32), ("try_end", c_uint32), ("handler_start", c_uint32), ("handler_end", c_uint32),
    ("filter_offset", c_uint32), ("class_token", c_uint32), ("type_handle", c_uint64),
    ("module", c_uint64), ("is_catch_all", c_bool), ("is_catch_all_known", c_bool))
JitManagerInfo = struct("cdacq_jit_manager_info", ("size", c_size_t), ("kind", c_int), ("address", c_uint64),
                        ("heap_list", c_uint64))
CodeHeapInfo = struct(
    "cdacq_code_heap_info", ("size", c_size_t), ("type", c_int), ("node", c_uint64), ("heap", c_uint64),
    ("begin", c_uint64), ("end", c_uint64), ("map_base", c_uint64), ("header_map", c_uint64),
    ("loader_heap", c_uint64), ("base", c_uint64), ("current", c_uint64))

Source = struct(
    "cdacq_source", ("size", c_size_t), ("il_offset", c_int32), ("line", c_uint32), ("column", c_uint32),
    ("end_line", c_uint32), ("end_column", c_uint32), ("file", c_char_p), ("url", c_char_p), ("pdb", c_char_p),
    ("pdb_embedded", c_bool), ("problem", c_char_p), ("verified", c_bool))
PdbInfo = struct("cdacq_pdb_info", ("size", c_size_t), ("module", c_char_p), ("base", c_uint64), ("key", c_char_p),
                 ("path", c_char_p), ("embedded", c_bool), ("refused", c_bool), ("problem", c_char_p))

Exception_ = struct("cdacq_exception", ("size", c_size_t), ("address", c_uint64), ("type", c_char_p),
                    ("inner", c_uint64), ("hresult", c_int32), ("frame_count", c_uint32), ("thrown", c_bool))
ExceptionFrame = struct("cdacq_exception_frame", ("size", c_size_t), ("ip", c_uint64), ("method_desc", c_uint64),
                        ("last_of_foreign", c_bool))
NestedException = struct("cdacq_nested_exception", ("size", c_size_t), ("info", c_uint64), ("object", c_uint64))
End = struct("cdacq_end", ("size", c_size_t), ("kind", c_int), ("tid", c_int), ("exception", c_uint64),
             ("message", c_uint64), ("source", c_uint64), ("flaws", c_uint))

Thread = struct(
    "cdacq_thread", ("size", c_size_t), ("tid", c_int), ("thread", c_uint64), ("managed_id", c_uint32),
    ("signal", c_int), ("died", c_bool), ("name", c_char_p), ("registers", POINTER(Registers)),
    ("exception", c_uint64), ("last_thrown", c_uint64), ("last_thrown_is_fatal", c_bool), ("state", c_uint32),
    ("mode", c_int), ("suspends_others", c_bool), ("delays_suspension", c_bool))
Frame = struct(
    "cdacq_frame", ("size", c_size_t), ("index", c_uint), ("kind", c_int), ("by", c_int), ("funclet", c_int),
    ("is_call", c_bool), ("pc", c_uint64), ("sp", c_uint64), ("cfa", c_uint64), ("method", c_void_p),
    ("symbol", c_char_p), ("symbol_offset", c_uint64), ("module", c_char_p), ("module_offset", c_uint64),
    ("frame", c_uint64), ("frame_name", c_char_p), ("registers", POINTER(Registers)), ("after_gap", c_bool),
    ("files_unverified", c_bool))

Object = struct(
    "cdacq_object", ("size", c_size_t), ("address", c_uint64), ("method_table", c_uint64), ("type", c_char_p),
    ("byte_size", c_uint64), ("is_string", c_bool), ("is_array", c_bool), ("length", c_uint32), ("rank", c_uint32),
    ("element_size", c_uint32))
Value = struct("cdacq_value", ("size", c_size_t), ("kind", c_int), ("width", c_uint32), ("address", c_uint64),
               ("bits", c_uint64))

Lock = struct(
    "cdacq_lock", ("size", c_size_t), ("kind", c_int), ("object", c_uint64), ("type", c_char_p), ("held", c_bool),
    ("thin", c_bool), ("owner_id", c_uint32), ("owner", c_uint64), ("owner_tid", c_int), ("recursion", c_uint32),
    ("waiters", c_uint32), ("sync_block", c_uint64), ("readers", c_uint32))
Task = struct("cdacq_task", ("size", c_size_t), ("object", c_uint64), ("type", c_char_p), ("status", c_char_p),
              ("method", c_char_p), ("tid", c_int))
Wait = struct(
    "cdacq_wait", ("size", c_size_t), ("kind", c_int), ("by", c_int), ("tid", c_int), ("thread", c_uint64),
    ("managed_id", c_uint32), ("name", c_char_p), ("object", c_uint64), ("type", c_char_p), ("has_timeout", c_bool),
    ("timeout", c_int32), ("blocker_tid", c_int), ("blocker_id", c_uint32), ("blocker_name", c_char_p),
    ("tasks", c_void_p), ("task_count", c_size_t), ("endless", c_int), ("readers", c_uint32),
    ("has_pending_continuation", c_bool))
ThreadPool = struct(
    "cdacq_thread_pool", ("size", c_size_t), ("object", c_uint64), ("workers", c_uint32), ("busy", c_uint32),
    ("waiting", c_uint32), ("has_limits", c_bool), ("min_workers", c_uint32), ("max_workers", c_uint32),
    ("has_queued", c_bool), ("queued", c_uint64), ("starves", c_bool))
Deadlock = struct("cdacq_deadlock", ("size", c_size_t), ("waits", POINTER(c_void_p)), ("count", c_size_t))

JitdumpHeader = struct("cdacq_jitdump_header", ("version", c_uint32), ("total_size", c_uint32),
                       ("elf_mach", c_uint32), ("pad1", c_uint32), ("pid", c_uint32), ("flags", c_uint64),
                       ("big_endian", c_bool), ("restart", c_char_p))
JitdumpLoad = struct(
    "cdacq_jitdump_load", ("pid", c_uint32), ("tid", c_uint32), ("vma", c_uint64), ("code_addr", c_uint64),
    ("code_size", c_uint64), ("code_index", c_uint64), ("name", c_void_p), ("name_length", c_size_t),
    ("code", c_void_p), ("code_offset", c_uint64), ("debug_info", c_uint64), ("unwinding_info", c_uint64),
    ("samply_debug_info2", c_uint64))
JitdumpMove = struct("cdacq_jitdump_move", ("pid", c_uint32), ("tid", c_uint32), ("vma", c_uint64),
                     ("old_code_addr", c_uint64), ("new_code_addr", c_uint64), ("code_size", c_uint64),
                     ("code_index", c_uint64), ("load", c_uint64))
JitdumpDebugInfo = struct("cdacq_jitdump_debug_info", ("code_addr", c_uint64), ("nr_entry", c_uint64))
JitdumpUnwindingInfo = struct(
    "cdacq_jitdump_unwinding_info", ("unwind_data_size", c_uint64), ("eh_frame_hdr_size", c_uint64),
    ("mapped_size", c_uint64), ("unwinding_data", c_void_p), ("unwinding_data_offset", c_uint64),
    ("fde_count", c_uint64))
JitdumpSamplyDebugInfo2 = struct(
    "cdacq_jitdump_samply_debug_info2", ("file_count", c_uint32), ("file_list_size", c_uint32),
    ("function_names_count", c_uint32), ("function_names_list_size", c_uint32), ("function_count", c_uint32),
    ("inline_call_record_count", c_uint32), ("range_count", c_uint32), ("line_record_count", c_uint32))

JitdumpSamplyPositions = struct(
    "cdacq_jitdump_samply_positions", ("code_addr", c_uint64), ("code_offset_count", c_uint64),
    ("source_position_count", c_uint64), ("string_count", c_uint64))


class JitdumpOpaque(Structure):
    _fields_ = [("bytes", c_void_p), ("size", c_size_t), ("big_endian", c_bool)]


class JitdumpAs(Union):
    _fields_ = [("header", JitdumpHeader), ("load", JitdumpLoad), ("move", JitdumpMove),
                ("debug_info", JitdumpDebugInfo), ("unwinding_info", JitdumpUnwindingInfo),
                ("samply_debug_info2", JitdumpSamplyDebugInfo2), ("samply_positions", JitdumpSamplyPositions)]


JitdumpRecord = struct(
    "cdacq_jitdump_record", ("size", c_size_t), ("kind", c_int), ("id", c_uint32), ("offset", c_uint64),
    ("total_size", c_uint64), ("timestamp", c_uint64), ("error", c_char_p), ("has_fields", c_bool),
    ("opaque", JitdumpOpaque), ("as", JitdumpAs))
JitdumpEntry = struct("cdacq_jitdump_entry", ("size", c_size_t), ("code_addr", c_uint64), ("line", c_uint32),
                      ("discrim", c_uint32), ("name", c_void_p), ("name_length", c_size_t))
JitdumpFunction = struct("cdacq_jitdump_function", ("size", c_size_t), ("function_name_index", c_uint32),
                         ("file_index", c_uint32), ("start_line", c_uint32), ("start_column", c_uint32),
                         ("flags", c_uint32))
JitdumpInlineCall = struct("cdacq_jitdump_inline_call", ("size", c_size_t), ("depth", c_uint32),
                           ("range_count", c_uint32), ("function_index", c_uint32), ("call_line_number", c_uint32),
                           ("call_column_number", c_uint32))
JitdumpRange = struct("cdacq_jitdump_range", ("size", c_size_t), ("start_offset", c_uint32), ("code_size", c_uint32))
JitdumpLineRecord = struct("cdacq_jitdump_line_record", ("size", c_size_t), ("code_offset", c_uint32),
                           ("file_index", c_uint32), ("line_number", c_uint32), ("column_number", c_uint32))
JitdumpPlace = struct("cdacq_jitdump_place", ("size", c_size_t), ("code_index", c_uint64), ("load", c_uint64),
                      ("vma", c_uint64), ("code_addr", c_uint64), ("code_size", c_uint64), ("timestamp", c_uint64),
                      ("damaged", c_uint64), ("problem", c_char_p))

Sink = struct("cdacq_sink", ("size", c_size_t), ("context", c_void_p), ("write", Write), ("left_out", Visitor),
              ("visited", Visited))
Written = struct("cdacq_written", ("size", c_size_t), ("bytes", c_uint64), ("methods", c_uint64), ("stubs", c_uint64),
                 ("left_out", c_uint64), ("unverified", c_uint64), ("functions", c_uint64),
                 ("functions_left_out", c_uint64), ("without_epilogs", c_uint64))
MappedFile = struct("cdacq_mapped_file", ("size", c_size_t), ("path", c_char_p), ("local_path", c_char_p),
                    ("has_code", c_bool), ("may_execute", c_uint64))
Comparison = struct(
    "cdacq_comparison", ("size", c_size_t), ("verdict", c_int), ("offset", c_uint64), ("line", c_uint64),
    ("timestamp", c_uint64), ("address", c_uint64), ("code_size", c_uint64), ("name", c_void_p),
    ("name_length", c_size_t), ("method", c_void_p), ("detail", c_char_p))
Verification = struct(
    "cdacq_verification", ("size", c_size_t), ("perf_map", c_bool), ("records", c_uint64),
    ("contradictions", c_uint64), ("names_not_compared", c_uint64), ("code_not_compared", c_uint64),
    ("advice", c_char_p), ("cut", c_char * MESSAGE_SIZE), ("methods_problem", c_char * MESSAGE_SIZE),
    ("counts", c_uint64 * len(Verdict)))


# ---- Functions: result, then parameters --------------------------------------------------------------------------

_HANDLE = c_void_p
_OUT = POINTER(c_void_p)
_ERR = POINTER(Error)
_U64 = POINTER(c_uint64)
_U32 = POINTER(c_uint32)
_BOOL = POINTER(c_bool)
_VISIT = (Visitor, c_void_p, _ERR)

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cdacq_version": (c_char_p,),
    "cdacq_status_text": (c_char_p, c_int),
    "cdacq_code_kind_text": (c_char_p, c_int),
    "cdacq_visit_processes": (c_int, *_VISIT),
    "cdacq_visit_thread_times": (c_int, c_int, *_VISIT),
    "cdacq_target_open_core": (c_int, c_char_p, POINTER(Options), _OUT, _ERR),
    "cdacq_target_open_core_fd": (c_int, c_int, c_char_p, POINTER(Options), _OUT, _ERR),
    "cdacq_target_open_pid": (c_int, c_int, POINTER(Options), _OUT, _ERR),
    "cdacq_target_open_image": (c_int, c_char_p, POINTER(Options), _OUT, _ERR),
    "cdacq_target_open_memory": (c_int, POINTER(Memory), POINTER(Options), _OUT, _ERR),
    "cdacq_target_close": (None, _HANDLE),
    "cdacq_target_get_info": (c_int, _HANDLE, POINTER(TargetInfo), _ERR),
    "cdacq_target_truncation": (c_char_p, _HANDLE),
    "cdacq_target_get_process_info": (c_int, _HANDLE, POINTER(ProcessInfo), _ERR),
    "cdacq_target_visit_runtimes": (c_int, _HANDLE, *_VISIT),
    "cdacq_target_visit_contracts": (c_int, _HANDLE, *_VISIT),
    "cdacq_target_visit_modules": (c_int, _HANDLE, *_VISIT),
    "cdacq_target_visit_descriptor": (c_int, _HANDLE, *_VISIT),
    "cdacq_target_write_snapshot": (c_int, _HANDLE, c_char_p, _U64, _ERR),
    "cdacq_target_verify": (c_int, _HANDLE, c_char_p, Visitor, c_void_p, POINTER(Verification), _ERR),
    "cdacq_session_create": (c_int, _HANDLE, _OUT, _ERR),
    "cdacq_session_destroy": (None, _HANDLE),
    "cdacq_session_memory": (c_size_t, _HANDLE),
    "cdacq_session_text_verified": (c_bool, _HANDLE),
    "cdacq_session_method_at": (c_int, _HANDLE, c_uint64, POINTER(Method), _ERR),
    "cdacq_session_methods_at": (c_int, _HANDLE, _U64, c_size_t, POINTER(Method), _ERR),
    "cdacq_session_visit_methods": (c_int, _HANDLE, c_uint, *_VISIT),
    "cdacq_session_visit_code_ranges": (c_int, _HANDLE, *_VISIT),
    "cdacq_session_check_code_range": (c_int, _HANDLE, c_uint64, _ERR),
    "cdacq_session_get_code_block": (c_int, _HANDLE, c_uint64, POINTER(Block), _ERR),
    "cdacq_block_get_method_desc": (c_uint64, POINTER(Block)),
    "cdacq_block_get_start_address": (c_uint64, POINTER(Block)),
    "cdacq_block_get_relative_offset": (c_uint64, POINTER(Block)),
    "cdacq_block_get_jit_type": (c_int, POINTER(Block)),
    "cdacq_block_get_method_region_info": (c_int, POINTER(Block), _HANDLE, _U64, _U64, _U64, _ERR),
    "cdacq_block_get_unwind_info": (c_int, POINTER(Block), _HANDLE, _U64, _ERR),
    "cdacq_block_get_unwind_info_base_address": (c_uint64, POINTER(Block)),
    "cdacq_block_get_funclet_start_address": (c_int, POINTER(Block), _HANDLE, _U64, _ERR),
    "cdacq_block_is_funclet": (c_int, POINTER(Block), _HANDLE, _BOOL, _ERR),
    "cdacq_block_is_filter_funclet": (c_int, POINTER(Block), _HANDLE, _BOOL, _ERR),
    "cdacq_block_get_debug_info": (c_int, POINTER(Block), _HANDLE, _U64, _BOOL, _ERR),
    "cdacq_block_get_gc_info": (c_int, POINTER(Block), _HANDLE, _U64, _U32, _ERR),
    "cdacq_block_is_gc_safe": (c_int, POINTER(Block), _HANDLE, _BOOL, _ERR),
    "cdacq_block_get_stack_parameter_size": (c_int, POINTER(Block), _HANDLE, _U32, _ERR),
    "cdacq_block_visit_exception_clauses": (c_int, POINTER(Block), _HANDLE, *_VISIT),
    "cdacq_session_get_code_kind": (c_int, _HANDLE, c_uint64, POINTER(c_int), _ERR),
    "cdacq_session_find_ready_to_run_module": (c_int, _HANDLE, c_uint64, _U64, _ERR),
    "cdacq_session_get_jit_manager_info": (c_int, _HANDLE, c_int, POINTER(JitManagerInfo), _ERR),
    "cdacq_session_visit_code_heaps": (c_int, _HANDLE, c_int, *_VISIT),
    "cdacq_session_visit_function_table_entries": (c_int, _HANDLE, c_uint64, *_VISIT),
    "cdacq_session_non_virtual_entry_to_method_desc": (c_int, _HANDLE, c_uint64, _U64, _ERR),
    "cdacq_session_il_offset": (c_int, _HANDLE, c_uint64, POINTER(c_int32), _ERR),
    "cdacq_session_source_at": (c_int, _HANDLE, c_uint64, POINTER(Source), _ERR),
    "cdacq_session_visit_pdbs": (c_int, _HANDLE, *_VISIT),
    "cdacq_session_get_exception": (c_int, _HANDLE, c_uint64, POINTER(Exception_), _ERR),
    "cdacq_session_visit_exception_frames": (c_int, _HANDLE, c_uint64, *_VISIT),
    "cdacq_session_visit_nested_exceptions": (c_int, _HANDLE, c_uint64, *_VISIT),
    "cdacq_session_write_exception": (c_int, _HANDLE, c_uint64, Write, c_void_p, POINTER(c_uint), _ERR),
    "cdacq_session_visit_threads": (c_int, _HANDLE, *_VISIT),
    "cdacq_session_visit_frames": (c_int, _HANDLE, POINTER(Thread), POINTER(Registers), c_uint, *_VISIT),
    "cdacq_jitdump_kind_text": (c_char_p, c_int),
    "cdacq_jitdump_open": (c_int, c_char_p, c_uint, _OUT, _ERR),
    "cdacq_jitdump_close": (None, _HANDLE),
    "cdacq_jitdump_next": (c_int, _HANDLE, POINTER(JitdumpRecord), _ERR),
    "cdacq_jitdump_record_next_entry": (c_int, POINTER(JitdumpRecord), _U64, POINTER(JitdumpEntry), _ERR),
    "cdacq_jitdump_record_next_string": (c_int, POINTER(JitdumpRecord), c_int, _U64, POINTER(c_void_p),
                                         POINTER(c_size_t), _ERR),
    "cdacq_jitdump_record_get_function": (c_int, POINTER(JitdumpRecord), c_uint32, POINTER(JitdumpFunction), _ERR),
    "cdacq_jitdump_record_get_inline_call": (c_int, POINTER(JitdumpRecord), c_uint32, POINTER(JitdumpInlineCall),
                                             _ERR),
    "cdacq_jitdump_record_get_range": (c_int, POINTER(JitdumpRecord), c_uint32, POINTER(JitdumpRange), _ERR),
    "cdacq_jitdump_record_get_line_record": (c_int, POINTER(JitdumpRecord), c_uint32, POINTER(JitdumpLineRecord),
                                             _ERR),
    "cdacq_jitdump_visit_places": (c_int, _HANDLE, *_VISIT),
    "cdacq_jitdump_check_end": (c_int, _HANDLE, _ERR),
    "cdacq_jitdump_find": (c_int, _HANDLE, c_uint64, c_uint64, POINTER(JitdumpRecord), POINTER(JitdumpPlace), _ERR),
    "cdacq_jitdump_find_file": (c_int, c_int, c_char_p, c_size_t, _ERR),
    "cdacq_perf_map_find_file": (c_int, c_int, c_char_p, c_size_t, _ERR),
    "cdacq_session_write_perf_map": (c_int, _HANDLE, c_uint, POINTER(Sink), POINTER(Written), _ERR),
    "cdacq_session_write_jitdump": (c_int, _HANDLE, c_uint, POINTER(Sink), POINTER(Written), _ERR),
    "cdacq_target_refresh": (c_int, _HANDLE, _ERR),
    "cdacq_target_stop": (c_int, _HANDLE, _ERR),
    "cdacq_target_resume": (None, _HANDLE),
    "cdacq_target_get_stops": (c_int, _HANDLE, POINTER(Stops), _ERR),
    "cdacq_target_bound_reached": (c_bool, _HANDLE, c_char_p, c_size_t),
    "cdacq_session_get_object": (c_int, _HANDLE, c_uint64, POINTER(Object), _ERR),
    "cdacq_session_get_field": (c_int, _HANDLE, c_uint64, c_char_p, POINTER(Value), _ERR),
    "cdacq_session_get_element": (c_int, _HANDLE, c_uint64, c_uint32, POINTER(Value), _ERR),
    "cdacq_session_write_string": (c_int, _HANDLE, c_uint64, c_uint32, Write, c_void_p, _ERR),
    "cdacq_session_get_lock": (c_int, _HANDLE, c_uint64, POINTER(Lock), _ERR),
    "cdacq_wait_graph_create": (c_int, _HANDLE, _OUT, _ERR),
    "cdacq_wait_graph_destroy": (None, _HANDLE),
    "cdacq_wait_graph_add_thread": (None, _HANDLE, c_void_p),
    "cdacq_wait_graph_add_frame": (None, _HANDLE, c_void_p),
    "cdacq_wait_graph_complete": (c_int, _HANDLE, _ERR),
    "cdacq_wait_graph_visit_locks": (c_int, _HANDLE, *_VISIT),
    "cdacq_wait_graph_visit_waits": (c_int, _HANDLE, *_VISIT),
    "cdacq_wait_graph_visit_deadlocks": (c_int, _HANDLE, *_VISIT),
    "cdacq_wait_graph_get_thread_pool": (c_int, _HANDLE, c_void_p, _ERR),
    "cdacq_session_write_elf": (c_int, _HANDLE, c_uint, POINTER(Sink), POINTER(Written), _ERR),
    "cdacq_session_write_elf_of_file": (c_int, _HANDLE, c_char_p, c_uint, POINTER(Sink), POINTER(Written), _ERR),
    "cdacq_session_visit_mapped_files": (c_int, _HANDLE, *_VISIT),
    "cdacq_session_get_end": (c_int, _HANDLE, POINTER(End), _ERR),
    "cdacq_session_write_last_words": (c_int, _HANDLE, Write, c_void_p, POINTER(c_uint), _ERR),
    "cdacq_verdict_text": (c_char_p, c_int),
    "cdacq_verdict_meaning": (c_char_p, c_int),
    "cdacq_verdict_is_contradiction": (c_bool, c_int),
}


# ---- The library -------------------------------------------------------------------------------------------------

_library: Any = None


def _missing(name: str) -> Callable[..., Any]:
    def call(*_: object) -> Any:
        raise NotImplementedError(f"{name}: this libcdacq is older than the Python package and does not have it")
    return call


def _near() -> list[str]:
    """PREFIX/lib/python3/dist-packages/cdacq belongs to the library in PREFIX/lib or PREFIX/lib/TRIPLET."""
    lib = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    if os.path.basename(lib) != "lib":
        return []
    try:
        folders = ["", *sorted(name for name in os.listdir(lib) if name.endswith("-linux-gnu"))]
    except OSError:
        return []
    prefix = os.path.dirname(lib)
    paths = [os.path.join(lib, folder, SONAME) for folder in folders] + [os.path.join(prefix, "lib64", SONAME)]
    return [path for path in paths if os.path.exists(path)]


def _load() -> Any:
    chosen = os.environ.get("CDACQ_LIBRARY")
    if chosen:
        return ctypes.CDLL(chosen)
    for name in [*_near(), SONAME]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    raise OSError(f"{SONAME} cannot be loaded: install libcdacq, or set CDACQ_LIBRARY to its path")


def library() -> Any:
    """The shared library, loaded at the first call. Raises OSError if it cannot be loaded."""
    global _library
    if _library is None:
        loaded = _load()
        for name, (result, *parameters) in FUNCTIONS.items():
            try:
                function = getattr(loaded, name)
            except AttributeError:
                setattr(loaded, name, _missing(name))
                continue
            function.restype, function.argtypes = result, parameters
        _library = loaded
    return _library


def static_text(function: str, value: int) -> str:
    """The text that the library has for a value of an enumeration."""
    text: bytes = getattr(library(), function)(int(value))
    return text.decode()
