/*
 * cdacq/block.h: the ExecutionManager contract: code blocks, their unwind, debug and GC info, and the code heaps.
 */
#ifndef CDACQ_BLOCK_H
#define CDACQ_BLOCK_H

#include <cdacq/session.h>

CDACQ_BEGIN_DECLS

/*
 * The handle that GetCodeBlockHandle returns. It is a plain value that may be copied, valid while its target is open,
 * and usable with every session of that target. Pass only a handle that cdacq_session_code_block_at has filled: the
 * other calls do not check it. Its content is private to the library and its size never changes. The functions are
 * named as in the specification, dotnet/runtime docs/design/datacontracts/ExecutionManager.md.
 *
 * Each call on a running process reads its memory again, and then reads what the answer rests on a second time. It
 * fails with CHANGED if the process changes that again and again, and with IO if it has ended. The list of code heaps
 * is not read a second time.
 *
 * Every call that returns a status can fail with MEMORY, FIELD, CORRUPT, FUEL or NOMEM, and then leaves its
 * outputs untouched. A visit also returns CDACQ_STOPPED.
 */
struct cdacq_block {
    uint64_t opaque[16];
};

/* GetCodeBlockHandle: the block of the method that owns `ip`. CDACQ_NOT_MANAGED: no method owns it. */
CDACQ_API enum cdacq_status cdacq_session_code_block_at(struct cdacq_session *session, uint64_t ip,
                                                        struct cdacq_block *ret, struct cdacq_error *err);

/* GetMethodDesc: 0 for ReadyToRun code that the runtime has not prepared, or if that cannot be read. */
CDACQ_API uint64_t cdacq_block_get_method_desc(const struct cdacq_block *block);

/* GetStartAddress: the start of the method's hot part. */
CDACQ_API uint64_t cdacq_block_get_start_address(const struct cdacq_block *block);

/* GetRelativeOffset: bytes from the start; in the cold part the size of the hot part plus the offset from its start. */
CDACQ_API uint64_t cdacq_block_get_relative_offset(const struct cdacq_block *block);

/* The result of GetJITType, with the values of the specification. */
enum cdacq_jit_type {
    CDACQ_JIT_TYPE_UNKNOWN = 0,
    CDACQ_JIT_TYPE_JIT = 1,
    CDACQ_JIT_TYPE_READY_TO_RUN = 2,
    CDACQ_JIT_TYPE_INTERPRETER = 3,
};

/* GetJITType: the manager that the block belongs to. */
CDACQ_API enum cdacq_jit_type cdacq_block_get_jit_type(const struct cdacq_block *block);

/*
 * The calls below read more of the target, so each can fail independently of the others. MEMORY and FIELD name the
 * type, the field and the address of what is missing.
 */

/*
 * GetMethodRegionInfo: the sizes in bytes of the whole hot part, including funclets, and of the cold part. Start and
 * size of the cold part are 0 when the method is not split. The GC info and the unwind information must agree on the
 * size of the code, otherwise CORRUPT. If the GC info is missing, the unwind information alone gives it.
 */
CDACQ_API enum cdacq_status cdacq_block_get_method_region_info(const struct cdacq_block *block,
                                                               struct cdacq_session *session, uint64_t *ret_hot_size,
                                                               uint64_t *ret_cold_start, uint64_t *ret_cold_size,
                                                               struct cdacq_error *err);

/*
 * GetUnwindInfo: the address of the RUNTIME_FUNCTION that covers the block's ip. 0 for interpreted methods and for
 * methods of a JIT without funclets (x86 on Windows before .NET 10), which have none.
 */
CDACQ_API enum cdacq_status cdacq_block_get_unwind_info(const struct cdacq_block *block, struct cdacq_session *session,
                                                        uint64_t *ret, struct cdacq_error *err);

/* GetUnwindInfoBaseAddress: the base of the relative addresses in the unwind info. */
CDACQ_API uint64_t cdacq_block_get_unwind_info_base_address(const struct cdacq_block *block);

/*
 * GetFuncletStartAddress: the start of the function that covers the block's ip: the method's body or a funclet. In the
 * cold part it is the start of the cold code of that function.
 */
CDACQ_API enum cdacq_status cdacq_block_get_funclet_start_address(const struct cdacq_block *block,
                                                                  struct cdacq_session *session, uint64_t *ret,
                                                                  struct cdacq_error *err);

/* IsFunclet: whether the block's ip is in a handler, filter or finally funclet; false in the cold part of the body. */
CDACQ_API enum cdacq_status cdacq_block_is_funclet(const struct cdacq_block *block, struct cdacq_session *session,
                                                   bool *ret, struct cdacq_error *err);

/* IsFilterFunclet: whether the block's ip is in a filter funclet. */
CDACQ_API enum cdacq_status cdacq_block_is_filter_funclet(const struct cdacq_block *block,
                                                          struct cdacq_session *session, bool *ret,
                                                          struct cdacq_error *err);

/*
 * GetDebugInfo: the address of the blob that maps the method's code to its IL, 0 for a method without one (a dynamic
 * method), and whether the blob starts with a byte of flags. Format: dotnet/runtime
 * docs/design/datacontracts/DebugInfo.md.
 */
CDACQ_API enum cdacq_status cdacq_block_get_debug_info(const struct cdacq_block *block, struct cdacq_session *session,
                                                       uint64_t *ret, bool *ret_has_flag_byte, struct cdacq_error *err);

/*
 * GetGCInfo: the address of the method's GC info, and the version of its format, 0 when not known. Format:
 * dotnet/runtime docs/design/datacontracts/GCInfo.md.
 */
CDACQ_API enum cdacq_status cdacq_block_get_gc_info(const struct cdacq_block *block, struct cdacq_session *session,
                                                    uint64_t *ret, uint32_t *ret_version, struct cdacq_error *err);

/*
 * IsGcSafe: whether a garbage collection can begin at the block's ip: the ip is a safe point (what a call returns to)
 * or in code that is interruptible. The contract counts both; .NET 8 itself stops threads in interruptible code only.
 * On x86 only the latter counts. Fails with CORRUPT if the method has no GC info, or its version is not known.
 */
CDACQ_API enum cdacq_status cdacq_block_is_gc_safe(const struct cdacq_block *block, struct cdacq_session *session,
                                                   bool *ret, struct cdacq_error *err);

/*
 * GetStackParameterSize: the number of bytes of arguments that the method removes from the stack when it returns. 0 for
 * funclets, and on every architecture but x86.
 */
CDACQ_API enum cdacq_status cdacq_block_get_stack_parameter_size(const struct cdacq_block *block,
                                                                 struct cdacq_session *session, uint32_t *ret,
                                                                 struct cdacq_error *err);

/* The kind of an exception clause. */
enum cdacq_clause_kind { CDACQ_CLAUSE_TYPED, CDACQ_CLAUSE_FILTER, CDACQ_CLAUSE_FINALLY, CDACQ_CLAUSE_FAULT };

/*
 * One exception clause of a method. Offsets are relative to the method, as those of GetRelativeOffset. A TYPED clause
 * of an async thunk in a ReadyToRun image has neither a token nor a type.
 */
struct cdacq_exception_clause {
    size_t size;
    enum cdacq_clause_kind kind;
    uint32_t flags;     /* as stored in the target */
    bool duplicated;    /* the handler is a copy of a finally block inside the method's body, not a funclet */
    uint32_t try_start; /* the protected code is [try_start, try_end) */
    uint32_t try_end;
    uint32_t handler_start;
    uint32_t handler_end;
    uint32_t filter_offset; /* start of the filter of a FILTER clause */
    uint32_t class_token;   /* of a TYPED clause: token in the module that declares the method; 0 in dynamic methods */
    uint64_t type_handle;   /* of a TYPED clause of a dynamic method; otherwise 0 */
    uint64_t module;   /* address of the Module of class_token; 0 if there is no token or the Module is not known */
    bool is_catch_all; /* IsCatchAllHandler: a TYPED clause that catches System.Object */
    bool is_catch_all_known; /* false if that could not be read, and for other clauses */
};

/* GetExceptionClauses: calls `visit` for each clause, in the runtime's order of search. */
CDACQ_API enum cdacq_status
cdacq_block_visit_exception_clauses(const struct cdacq_block *block, struct cdacq_session *session,
                                    int (*visit)(const struct cdacq_exception_clause *clause, void *context),
                                    void *context, struct cdacq_error *err);

/*
 * GetCodeKind: the kind of code at an address, of a method or a stub; CDACQ_CODE_UNKNOWN for a stub of an unknown kind.
 * CDACQ_NOT_MANAGED, with CDACQ_CODE_UNKNOWN in *ret: the runtime has no code at the address.
 */
CDACQ_API enum cdacq_status cdacq_session_code_kind_at(struct cdacq_session *session, uint64_t address,
                                                       enum cdacq_code_kind *ret, struct cdacq_error *err);

/*
 * FindReadyToRunModule: the address of the Module whose ReadyToRun image contains an address of code or data.
 * CDACQ_NOT_MANAGED: no such image contains it.
 */
CDACQ_API enum cdacq_status cdacq_session_ready_to_run_module_at(struct cdacq_session *session, uint64_t address,
                                                                 uint64_t *ret, struct cdacq_error *err);

/* A JIT manager of the target. */
struct cdacq_jit_manager_info {
    size_t size;               /* sizeof(struct cdacq_jit_manager_info) of the caller */
    enum cdacq_code_kind kind; /* CDACQ_CODE_JITTED or CDACQ_CODE_INTERPRETER */
    uint64_t address;
    uint64_t heap_list; /* the first CodeHeapListNode; 0 if the runtime does not describe the list */
};

/* GetJitManagerInfo: the manager of one kind of code. CDACQ_NOT_MANAGED: the target has none. */
CDACQ_API enum cdacq_status cdacq_session_get_jit_manager_info(struct cdacq_session *session, enum cdacq_code_kind kind,
                                                               struct cdacq_jit_manager_info *ret,
                                                               struct cdacq_error *err);

/* The kind of a code heap. */
enum cdacq_code_heap_type {
    CDACQ_CODE_HEAP_UNKNOWN, /* the runtime does not describe it */
    CDACQ_CODE_HEAP_LOADER,  /* LoaderCodeHeap: its code is not freed method by method */
    CDACQ_CODE_HEAP_HOST,    /* HostCodeHeap: dynamic methods, which are freed one by one */
};

/* A code heap. Every uint64_t is an address, 0 when not known. */
struct cdacq_code_heap_info {
    size_t size;
    enum cdacq_code_heap_type type;
    uint64_t node;       /* the CodeHeapListNode */
    uint64_t heap;       /* the CodeHeap */
    uint64_t begin, end; /* the range in use */
    uint64_t map_base, header_map;
    uint64_t loader_heap;   /* of a LOADER heap */
    uint64_t base, current; /* of a HOST heap */
};

/*
 * GetCodeHeapInfos: calls `visit` for each code heap of the manager of one kind of code, in the order of the runtime's
 * list, or by address if the runtime does not describe that list. Heaps that cannot be read are left out; the others
 * are visited, and the status says why there may be more.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_code_heaps(struct cdacq_session *session, enum cdacq_code_kind kind,
                                                           int (*visit)(const struct cdacq_code_heap_info *heap,
                                                                        void *context),
                                                           void *context, struct cdacq_error *err);

/*
 * GetDynamicFunctionTableEntries: calls `visit` with the address of each RUNTIME_FUNCTION of the code heap that the
 * DynamicFunctionTable at `table` describes: by descending start of the method, ascending within a method. Nothing is
 * visited if the target's runtime has no such tables, which only runtimes for Windows have, or if no heap matches.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_function_table_entries(struct cdacq_session *session, uint64_t table,
                                                                       int (*visit)(uint64_t entry, void *context),
                                                                       void *context, struct cdacq_error *err);

/*
 * NonVirtualEntry2MethodDesc: the address of the MethodDesc that `entry_point` enters. `entry_point` is a code pointer
 * from a slot, a delegate or a call instruction: the start of a method's code or, as in the specification, any address
 * in it, or the start of a precode of the method. In a target with portable entry points it is the address of such an
 * entry point. CDACQ_NOT_MANAGED, with *ret untouched, when it enters no method that has a MethodDesc: it is outside of
 * all code, in a stub that belongs to no method, or in ReadyToRun code that the runtime has not prepared. Fails with
 * MEMORY, also if the image's map of prepared methods cannot be read, FIELD, CORRUPT and FUEL, and with CONTRACT when
 * `entry_point` may be a precode and the target publishes no version of PrecodeStubs that this build reads. Source:
 * dotnet/runtime docs/design/datacontracts/ExecutionManager.md and PrecodeStubs.md.
 */
CDACQ_API enum cdacq_status cdacq_session_non_virtual_entry_to_method_desc(struct cdacq_session *session,
                                                                           uint64_t entry_point, uint64_t *ret,
                                                                           struct cdacq_error *err);

CDACQ_END_DECLS

#endif
