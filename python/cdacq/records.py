"""The records in which answers are returned: tuples with names. What is not known is None or 0."""
from __future__ import annotations

import struct
from typing import NamedTuple

from ._abi import (Answer, CallKind, ClauseKind, CodeHeapType, CodeKind, CoreFilter, DescriptorItemKind, EndKind,
                   ExceptionFlaw, Generation, HandleKind, LockKind, NeedKind, OomReason, RootKind, Status, StressFlaw, TargetKind,
                   ValueKind, VariableKind, VariableState, Verdict, WaitKind, WaitSource, WorkKind)


class Need(NamedTuple):
    """Something that is missing: a file, a descriptor or a PDB."""
    kind: NeedKind
    path: str | None
    """Of a file, as the target names it; of a PDB its name alone."""
    build_id: str | None
    """Of an ELF file, in hex: the key for debuginfod."""
    symbol_key: str | None
    """NAME/KEY/NAME: the key for symbol servers."""


class TargetInfo(NamedTuple):
    """What a target is: `struct cdacq_target_info`."""
    kind: TargetKind
    pid: int
    problem_status: Status
    """Of a target that was opened with `partial`: the status that opening would have failed with."""
    problem: str | None
    architecture: str | None
    operating_system: str | None
    """unix or win; None before .NET 10."""
    elf_machine: str | None
    pointer_size: int
    big_endian: bool
    native_aot: bool
    runtime_count: int
    runtime: int
    """Index of the runtime in use."""
    runtime_path: str | None
    runtime_base: int
    runtime_build_id: str | None
    runtime_release: str | None
    runtime_version: str | None
    runtime_file_version: str | None
    descriptor_address: int
    descriptor_origin: str | None
    descriptor_missing: str | None
    """The first part of the descriptor that the target lacks, and why."""
    supplement: str | None
    schema: int
    missing_filter: CoreFilter
    """Bits of coredump_filter that a core was written without, as it seems."""
    writer: str | None
    """The program that wrote the core."""
    segment_count: int
    dumped_size: int
    missing_size: int
    truncated: bool
    truncation: str | None


class ProcessInfo(NamedTuple):
    """The process of a target, apart from its runtime: `struct cdacq_process_info`."""
    pid: int
    program: str | None
    name: str | None
    arguments: str | None
    arguments_cut: bool
    is_stopped: bool
    """A running process: a signal such as SIGSTOP had stopped it, when it was first asked about."""
    is_frozen: bool
    """A running process: the freezer of its control group holds it, as `docker pause` makes it."""
    time_s: int
    """A core: when its file was last written to, since 1970."""
    signal: int
    signal_code: int
    has_signal_address: bool
    signal_address: int
    sender_pid: int
    sender_uid: int
    abort_message: str | None
    """A core: what glibc printed before it ended the process, such as a failed assertion of native code."""


class Stops(NamedTuple):
    """How often and for how long a process was stopped: `struct cdacq_stops`."""
    count: int
    total_ns: int
    longest_ns: int


class Process(NamedTuple):
    """A .NET process of this machine: `struct cdacq_process`."""
    pid: int
    inner_pid: int
    uid: int
    thread_count: int
    name: str | None
    program: str | None
    arguments: str | None
    arguments_cut: bool
    container: str | None
    runtime_path: str | None


class ThreadTime(NamedTuple):
    """A thread of a process: `struct cdacq_thread_time`."""
    tid: int
    processor_time_ns: int
    """Since it began, in the program and in the kernel."""
    delay_ns: int
    """How long it was ready to run and no processor was free; 0: not known."""
    runs: int
    """How often it was given a processor; 0: not known."""
    ready: bool
    """At that moment, it ran, or was ready to run."""


class ProcessorLimit(NamedTuple):
    """The limit on the processor time of a process: `struct cdacq_processor_limit`."""
    quota_ns: int
    """What its control group may use in each period; 0: there is no limit, or it is not known."""
    period_ns: int
    periods: int
    """In which the group wanted to run, since it was made."""
    throttled_periods: int
    """Of these, those in which it had used its quota, and was held back."""
    throttled_time_ns: int
    """How long it was held back, the sum of all processors."""


class MemoryLimit(NamedTuple):
    """The limit on the memory of a process, in bytes: `struct cdacq_memory_limit`."""
    limit: int
    """Of the control group that is nearest to its limit; 0: there is none, or it is not known."""
    used: int
    """By the group, without what the kernel can free of cached files."""


class Activity(NamedTuple):
    """What the runtime does at one moment: `struct cdacq_activity`."""
    suspended: bool
    """The threads of managed code are suspended, or are about to be, as for a garbage collection."""
    suspension_partly: bool
    """Only the part of a collection that moves or frees objects counts."""
    suspension_known: bool
    thread_count: int
    throwing: int
    """Threads that throw an exception or handle one."""
    thrown: int
    """Threads whose last exception is another one than at the call before."""


class RuntimeInfo(NamedTuple):
    """A runtime of the process."""
    path: str | None
    base: int
    build_id: str | None
    version: str | None
    descriptor_address: int
    in_use: bool
    problem: str | None
    """Why a runtime that was to be used cannot be read."""


class ContractInfo(NamedTuple):
    """A contract that the runtime publishes."""
    name: str
    version: str
    origin: str
    supported: bool
    """This build of the library reads that version."""
    known: str
    """The versions that it reads."""


class MappedFile(NamedTuple):
    """A file that is mapped into the target."""
    path: str
    begin: int
    end: int
    missing_size: int
    """Bytes of the file that the target itself lacks."""
    local_path: str | None
    """The file on this machine that supplies them."""
    verified: bool
    problem: str | None
    build_id: str | None
    symbol_key: str | None


class DescriptorItem(NamedTuple):
    """A value of the merged descriptor. A FIELD belongs to the TYPE before it."""
    kind: DescriptorItemKind
    name: str
    type: str | None
    text: str | None
    value: int
    """The size of a type, the offset of a field, the value of a global; two's complement if negative."""
    has_value: bool
    origin: str | None
    overrides: str | None


class Method(NamedTuple):
    """What owns an address, or one element of a list of methods: `struct cdacq_method`."""
    ip: int
    answer: Answer
    kind: CodeKind
    runtime: int
    """The number of the runtime whose code it is: of `runtime` of `open`."""
    module_verified: bool
    cold: bool
    prepared_unknown: bool
    """The name lacks nothing; `error` says that it cannot be read whether ReadyToRun code is prepared."""
    async_thunk: bool
    """The runtime's own code (since .NET 11), which stands for the method that is named, and calls its code."""
    name: str | None
    module: str | None
    method_desc: int
    """0 for ReadyToRun code that the runtime has not prepared, or if `prepared_unknown`."""
    tier: str | None
    token: int
    il_offset: int | None
    code_start: int
    code_size: int
    """The size of the whole hot part, including funclets."""
    cold_start: int
    cold_size: int
    offset: int
    """From code_start; in the cold part code_size plus the offset from cold_start."""
    funclet_start: int
    file: str | None
    source_url: str | None
    line: int
    """From 1, in `file`; 0 if not known."""
    column: int
    error: str | None
    """Why the look-up failed, why there is no name, or what is missing."""

    @property
    def is_managed(self) -> bool:
        """Whether a method owns the address."""
        return self.answer == Answer.MANAGED

    @property
    def code_end(self) -> int:
        """The end of the hot part."""
        return self.code_start + self.code_size


class CodeRange(NamedTuple):
    """A range of the runtime's range section map."""
    begin: int
    end: int
    kind: str
    """"jit", "r2r", "stubs" or "interpreter"."""
    module: str | None
    collectible: bool


class RegionInfo(NamedTuple):
    """The hot and the cold part of a block."""
    hot_size: int
    cold_start: int
    cold_size: int


class DebugInfo(NamedTuple):
    """The blob that maps a block's code to its IL; address 0 if there is none."""
    address: int
    has_flag_byte: bool


class GCInfo(NamedTuple):
    """The GC info of a block; version 0 if it is not known."""
    address: int
    version: int


class ExceptionClause(NamedTuple):
    """An exception clause of a method. Offsets are relative to the method."""
    kind: ClauseKind
    flags: int
    duplicated: bool
    try_start: int
    try_end: int
    handler_start: int
    handler_end: int
    filter_offset: int
    class_token: int
    type_handle: int
    module: int
    """The Module of `class_token`; 0 if there is none or it is not known."""
    is_catch_all: bool
    """IsCatchAllHandler: whether a TYPED clause catches System.Object."""
    is_catch_all_known: bool


class JitManagerInfo(NamedTuple):
    """A JIT manager of the target."""
    kind: CodeKind
    address: int
    heap_list: int


class CodeHeap(NamedTuple):
    """A code heap. What is not known is 0."""
    type: CodeHeapType
    node: int
    heap: int
    begin: int
    end: int
    map_base: int
    header_map: int
    loader_heap: int
    base: int
    current: int


class Source(NamedTuple):
    """What an address was compiled from."""
    il_offset: int | None
    line: int
    """From 1; 0 if no line is known."""
    column: int
    end_line: int
    end_column: int
    file: str | None
    url: str | None
    pdb: str | None
    pdb_embedded: bool
    problem: str | None
    """Why there is no line."""
    verified: bool
    """False if a file was used that nothing in the target could confirm."""


class PdbInfo(NamedTuple):
    """The PDB of an assembly."""
    module: str
    base: int
    key: str | None
    path: str | None
    embedded: bool
    refused: bool
    problem: str | None


class ExceptionFrame(NamedTuple):
    """A frame that an exception object recorded. The first one threw."""
    ip: int
    """In the instruction; in a caller, one less than the return address."""
    method_desc: int
    last_of_foreign: bool


class End(NamedTuple):
    """How the runtime ended a process. Addresses are 0 where there is none."""
    kind: EndKind
    tid: int
    """Of the thread that died; 0: none did."""
    exception: int
    """The address of the object that was not caught, or that FailFast was called with; of TERMINATED, of the last one
    that the thread threw."""
    message: int
    """The address of the string that FailFast was called with."""
    source: int
    flaws: ExceptionFlaw


class StressLog(NamedTuple):
    """The runtime's log of its own events: `struct cdacq_stress_log`."""
    address: int
    is_on: bool
    """False: the process was started without it."""
    facilities: int
    level: int
    max_size_per_thread: int
    max_size_total: int
    chunk_count: int
    ticks_per_second: int
    start_time_ns: int
    """Since 1970; 0: not published."""


class StressMessage(NamedTuple):
    """A message of the stress log, or what cannot be read of it: `struct cdacq_stress_message`."""
    address: int
    tid: int
    time_ns: int
    """Since the start of the log."""
    facilities: int
    """Bits; `cdacq.stress_facilities` has their names."""
    arguments: tuple[int, ...]
    format: str | None
    text: str | None
    """None: it cannot be read, and `problem` says why."""
    flaws: StressFlaw
    problem: str | None


class Object(NamedTuple):
    """An object of the target."""
    address: int
    method_table: int
    type: str | None
    byte_size: int
    is_string: bool
    is_array: bool
    length: int
    """UTF-16 units of a string; elements of an array, in all dimensions."""
    rank: int
    element_size: int


class Value(NamedTuple):
    """The value of a field or an element: `struct cdacq_value`."""
    kind: ValueKind
    width: int
    address: int
    bits: int
    method_table: int
    """Of a struct or an enum; 0: another type, or not known."""

    @property
    def value(self) -> bool | int | float | str | None:
        """As a value of Python: a bool, an int, a float or a character; the address of an object; None of a struct."""
        if self.kind == ValueKind.STRUCT:
            return None
        if self.kind == ValueKind.BOOLEAN:
            return bool(self.bits)
        if self.kind == ValueKind.CHARACTER:
            return chr(self.bits)
        if self.kind == ValueKind.SIGNED:
            return self.bits - (self.bits >> 63 << 64)
        if self.kind == ValueKind.REAL:
            real: float = struct.unpack({2: "<e", 4: "<f", 8: "<d"}[self.width],
                                        self.bits.to_bytes(8, "little")[:self.width])[0]
            return real
        return self.bits


class AsyncChain(NamedTuple):
    """Equal chains of pending async methods: `struct cdacq_async_chain`."""
    methods: list[Method]
    """Where each awaits, from the innermost."""
    count: int
    waits_for: str
    object: int
    first_object: int
    operation: int
    completes: int
    is_cycle: bool


class FailedTask(NamedTuple):
    """Failed tasks that nobody has observed: `struct cdacq_failed_task`."""
    count: int
    address: int
    exception: int
    method: str | None
    type: str | None


class AsyncOperations(NamedTuple):
    """The pending async operations."""
    chains: list[AsyncChain]
    failed: list[FailedTask]
    problems: list[str]
    """What was left out, the first 1,000."""


class WorkItem(NamedTuple):
    """Equal work items of the thread pool: `struct cdacq_work_item`."""
    kind: WorkKind
    method: str | None
    type: str | None
    count: int
    object: int


class Timer(NamedTuple):
    """Timers with one callback and period: `struct cdacq_timer`."""
    callback: str | None
    period_ms: int
    """-1: they fire once."""
    count: int
    first_due_ms: int
    last_due_ms: int
    is_exact: bool
    object: int


class HttpRequest(NamedTuple):
    """An HTTP request in flight: `struct cdacq_http_request`."""
    is_served: bool
    request: str | None
    elapsed_ms: int | None
    is_exact: bool
    object: int


class Work(NamedTuple):
    """What a process has yet to do."""
    items: list[WorkItem]
    timers: list[Timer]
    requests: list[HttpRequest]
    problems: list[str]
    """What was left out, the first 1,000."""


class HeapSegment(NamedTuple):
    """A part of the GC heap: `struct cdacq_heap_segment`."""
    address: int
    begin: int
    end: int
    committed: int
    reserved: int
    generation: Generation
    heap: int


class HeapString(NamedTuple):
    """A string of the heap: `struct cdacq_heap_string`."""
    address: int
    byte_size: int
    length: int
    """UTF-16 units."""
    hash: tuple[int, int]


class MemoryUse(NamedTuple):
    """The memory of a process in bytes: `struct cdacq_memory_use`."""
    is_resident: bool
    """What is in RAM; otherwise what the core has."""
    gc: int
    code: int
    loader: int
    stacks: int
    other: int
    files: int
    swapped: int


class UnfilledFile(NamedTuple):
    """A file that a complete core lacks bytes of, or that nothing confirms: `struct cdacq_unfilled_file`."""
    path: str
    missing_size: int
    problem: str
    unverified: bool


class CompleteCore(NamedTuple):
    """What was written: `struct cdacq_complete_core`."""
    file_size: int
    filled_size: int
    unverified_size: int
    missing_size: int
    segment_count: int
    files: list[UnfilledFile]


class Heap(NamedTuple):
    """The GC heap. The arrays are read-only buffers of the library's memory, which numpy.frombuffer takes without a copy;
    those of objects have an element for each, in the order of the walk."""
    is_server: bool
    has_regions: bool
    is_under_way: bool
    """A garbage collection moved objects at that moment: parts of the heap are inconsistent."""
    heap_count: int
    problem_count: int
    segments: list[HeapSegment]
    problems: list[str]
    """What was left out, the first 1,000."""
    oom_reason: OomReason
    """Of the last allocation that the GC could not make."""
    oom_bytes: int
    missing_bytes: int
    """Of the segments, from where the target has no memory on."""
    addresses: memoryview
    """64 bits an object."""
    byte_sizes: memoryview
    """64 bits an object."""
    types: memoryview
    """32 bits an object: its place in `method_tables`."""
    generations: memoryview
    """8 bits an object: enum Generation."""
    method_tables: memoryview
    """64 bits a type, for Session.type_name()."""
    free_type: int | None
    """The type of free memory between objects, which is among them."""
    first_references: memoryview
    """64 bits an object, and one more: where its references begin in `targets`. Empty without references."""
    targets: memoryview
    """64 bits a reference: the address that it has."""


class LoadContext(NamedTuple):
    """An assembly load context: `struct cdacq_load_context`."""
    address: int
    allocator: int
    """If it can be unloaded, the LoaderAllocator object: whatever keeps this object keeps the context. Else 0."""
    name: str | None
    is_unloading: bool
    assembly_count: int


class HeapRoot(NamedTuple):
    """What keeps an object from outside of the heap: `struct cdacq_heap_root`."""
    kind: RootKind
    keeps: bool
    """False for weak handles, and for objects whose finalizers have not run."""
    is_interior: bool
    address: int
    object: int
    dependent: int
    handle: HandleKind
    """Of a handle."""
    method_table: int
    token: int
    """With `method_table`, for Session.static_name()."""
    tid: int
    frame: int
    method: str | None


class Roots(NamedTuple):
    """All roots, and what was not searched."""
    roots: list[HeapRoot]
    problems: list[str]


class Field(NamedTuple):
    """A field of an object or a struct: `struct cdacq_field`."""
    name: str | None
    type: str | None
    owner: str | None
    """The type that declares it."""
    offset: int
    problem: str | None
    """Why the value cannot be read."""
    value: Value


class Variable(NamedTuple):
    """An argument or a local of a frame: `struct cdacq_variable`."""
    kind: VariableKind
    state: VariableState
    number: int
    name: str | None
    type: str | None
    problem: str | None
    """Why it is not known."""
    value: Value | None
    """Only if it is known. In a register it has no address."""
    target: Value | None
    """What a by-ref refers to."""


class VariablePlace(NamedTuple):
    """Where an argument or a local is at an address of its method: `struct cdacq_variable_place`."""
    kind: VariableKind
    number: int
    name: str | None
    type: str | None
    location: str | None
    """None: the code does not hold it there, or `problem`."""
    problem: str | None
    """Why it is not known."""


class Item(NamedTuple):
    """An item of a collection, or an element of an array: `struct cdacq_item`."""
    index: int
    problem: str | None
    """Why it cannot be read."""
    key: Value | None
    value: Value


class Delegate(NamedTuple):
    """What a delegate calls: `struct cdacq_delegate`."""
    target: int
    """The object that the method is called on; 0: none."""
    entry: int
    method_desc: int
    method: str | None


class SystemCall(NamedTuple):
    """A system call that a thread was in."""
    kind: CallKind
    number: int
    name: str | None
    descriptor: int
    """That it uses; -1: none, or not known."""
    child: int
    """The process that it waits for, by its pid here; of a core, as the thread knew it. 0: any, or not known."""
    file: str | None
    """Of a running process: what the descriptor leads to."""
    local: str | None
    peer: str | None
    """Of a socket: the other end's address."""
    holder: int
    """Of a wait for a file lock: the process that holds it, by its pid here; 0: not known."""


class Lock(NamedTuple):
    """A lock: the monitor of an object, a System.Threading.Lock or a ReaderWriterLockSlim."""
    kind: LockKind
    object: int
    type: str | None
    held: bool
    thin: bool
    owner_id: int
    """The runtime's id of the thread that holds it; 0: none, or not known."""
    owner: int
    owner_tid: int
    recursion: int
    waiters: int
    sync_block: int
    readers: int
    """Threads that hold a ReaderWriterLockSlim to read; the owner is the one of them that may upgrade."""


class Task(NamedTuple):
    """A Task that a thread waits for, or what such a task awaits: a task, or another source of a value."""
    object: int
    type: str | None
    status: str | None
    method: str | None
    tid: int
    file: str | None
    """Where the method awaits."""
    line: int
    others: int
    """Further tasks that it waits for (Task.WhenAll), and which no element shows."""


class Wait(NamedTuple):
    """What a thread waits for."""
    kind: WaitKind
    by: WaitSource
    tid: int
    thread: int
    managed_id: int
    name: str | None
    object: int
    type: str | None
    timeout_ms: int | None
    """Of the whole wait; -1: without end; None: not known."""
    blocker_tid: int
    """The thread that has to go on first; 0: none, or not known."""
    blocker_id: int
    blocker_name: str | None
    tasks: list[Task]
    endless: bool | None
    """It has no timeout, and no CancellationToken ends it; None: not known."""
    readers: int
    """Threads that hold the ReaderWriterLockSlim to read; 0 for other waits."""
    has_pending_continuation: bool
    """What the async method of the last task awaited has completed, but the rest of the method has not begun to run."""
    is_cycle: bool
    """The last of `tasks` awaits one of those before it: none of them can complete."""
    process: int
    """The pid of the process for whose end the thread waits; 0: not known."""


class ThreadPool(NamedTuple):
    """The runtime's thread pool."""
    object: int
    """The PortableThreadPool; 0: not known."""
    workers: int
    busy: int
    """Workers that run a work item."""
    waiting: int
    """Of these, those that sleep or wait for something."""
    min_workers: int | None
    max_workers: int | None
    queued: int | None
    """Work items that no worker has begun to run; None: not known."""
    starves: bool
    """Work items are queued, and every worker that the pool allows to run is waiting."""


class Waits(NamedTuple):
    """What all threads wait for."""
    locks: list[Lock]
    waits: list[Wait]
    deadlocks: list[list[Wait]]
    """Threads: each waits for the next, and the last for the first."""
    problem: str | None
    """Why something may be missing."""
    thread_pool: ThreadPool | None
    """None: no thread is one of its workers."""


class JitdumpHeader(NamedTuple):
    """The header of a jitdump."""
    version: int
    total_size: int
    elf_mach: int
    pad1: int
    pid: int
    flags: int
    big_endian: bool
    restart: str | None
    """None at first; later why reading has restarted."""


class JitdumpLoad(NamedTuple):
    """JIT_CODE_LOAD"""
    pid: int
    tid: int
    vma: int
    code_addr: int
    code_size: int
    code_index: int
    name: str | None
    code: bytes | None
    """None unless the jitdump was opened with `code`, or if some of it is missing."""
    code_offset: int
    debug_info: int
    unwinding_info: int
    samply_debug_info2: int


class JitdumpMove(NamedTuple):
    """JIT_CODE_MOVE"""
    pid: int
    tid: int
    vma: int
    old_code_addr: int
    new_code_addr: int
    code_size: int
    code_index: int
    load: int


class JitdumpDebugInfo(NamedTuple):
    """JIT_CODE_DEBUG_INFO; its entries are those of JitdumpRecord.entries()."""
    code_addr: int
    nr_entry: int


class JitdumpUnwindingInfo(NamedTuple):
    """JIT_CODE_UNWINDING_INFO"""
    unwind_data_size: int
    eh_frame_hdr_size: int
    mapped_size: int
    unwinding_data: bytes | None
    unwinding_data_offset: int
    fde_count: int


class JitdumpSamplyDebugInfo2(NamedTuple):
    """SAMPLY_JIT_CODE_DEBUG_INFO2; counts as stored in the file."""
    file_count: int
    file_list_size: int
    function_names_count: int
    function_names_list_size: int
    function_count: int
    inline_call_record_count: int
    range_count: int
    line_record_count: int


class JitdumpSamplyPositions(NamedTuple):
    """The SAMPLY_JIT_CODE_DEBUG_INFO2 that samply reads."""
    code_addr: int
    code_offset_count: int
    source_position_count: int
    string_count: int


class JitdumpEntry(NamedTuple):
    """A debug entry of a JIT_CODE_DEBUG_INFO."""
    code_addr: int
    line: int
    discrim: int
    name: str | None


class JitdumpFunction(NamedTuple):
    """A function in samply's debug info."""
    function_name_index: int
    file_index: int
    start_line: int
    start_column: int
    flags: int


class JitdumpInlineCall(NamedTuple):
    """A call that was inlined, in samply's debug info."""
    depth: int
    range_count: int
    function_index: int
    call_line_number: int
    call_column_number: int


class JitdumpRange(NamedTuple):
    """A range of an inlined call."""
    start_offset: int
    code_size: int


class JitdumpLineRecord(NamedTuple):
    """A line in samply's debug info."""
    code_offset: int
    file_index: int
    line_number: int
    column_number: int


class JitdumpPlace(NamedTuple):
    """Where a function of a jitdump is, after it was moved."""
    code_index: int
    load: int
    vma: int
    code_addr: int
    code_size: int
    timestamp: int
    damaged: int
    """Of Jitdump.find(): how many records of the file are damaged, so that the answer may be wrong."""
    problem: str | None
    """What is wrong with the first of them."""


class Written(NamedTuple):
    """What was written to a perf map, jitdump or ELF file."""
    bytes: int
    methods: int
    stubs: int
    left_out: int
    unverified: int
    functions: int
    """Of an ELF file: functions with call-frame information."""
    functions_left_out: int
    without_epilogs: int


class CodeFile(NamedTuple):
    """A mapped file as perf knows it, and whether it has managed code."""
    path: str | None
    """None: compiled code in memory that no file backs."""
    former_path: str | None
    """The path that it had, if it was deleted or replaced since, which the kernel adds to `path`."""
    has_code: bool
    may_execute: bool
    """One of its mappings can be executed, or that is not known."""
    local_path: str | None


class Comparison(NamedTuple):
    """A record of a jitdump or perf map, or a method that it lacks, and how they compare with the target."""
    verdict: Verdict
    offset: int
    line: int
    timestamp: int
    address: int
    code_size: int
    name: str | None
    method: Method | None
    detail: str | None


class Verification(NamedTuple):
    """The totals of a comparison."""
    perf_map: bool
    records: int
    contradictions: int
    names_not_compared: int
    code_not_compared: int
    advice: str | None
    cut: str | None
    methods_problem: str | None
    counts: dict[Verdict, int]


