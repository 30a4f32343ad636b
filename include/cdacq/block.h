/*
 * cdacq/block.h: the ExecutionManager contract: code blocks and all that the runtime knows of them.
 */
#ifndef CDACQ_BLOCK_H
#define CDACQ_BLOCK_H

#include <cdacq/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * GetCodeBlockHandle and its companions, named as the specification names them
 * (dotnet/runtime docs/design/datacontracts/ExecutionManager.md). The handle is a plain value and may be copied. It is valid
 * while its target is open. Pass only a handle that cdacq_session_get_code_block has filled: the other calls do not
 * check it. Its content belongs to the library, and its size never changes.
 */
struct cdacq_block {
    uint64_t opaque[16];
};

/* The block that owns `ip`. CDACQ_NOT_MANAGED when no method does, at its real end too. */
CDACQ_API enum cdacq_status cdacq_session_get_code_block(struct cdacq_session *session, uint64_t ip,
                                                         struct cdacq_block *ret, struct cdacq_error *err);

/* GetMethodDesc: 0 for ReadyToRun code that the runtime has not prepared. */
CDACQ_API uint64_t cdacq_block_get_method_desc(const struct cdacq_block *block);

/* GetStartAddress: of the method's hot code. */
CDACQ_API uint64_t cdacq_block_get_start_address(const struct cdacq_block *block);

/* GetRelativeOffset: bytes from the start; in a cold part the hot length plus the offset there. */
CDACQ_API uint64_t cdacq_block_get_relative_offset(const struct cdacq_block *block);

/* GetJITType, with the specification's values. */
enum cdacq_jit_type {
    CDACQ_JIT_TYPE_UNKNOWN = 0,
    CDACQ_JIT_TYPE_JIT = 1,
    CDACQ_JIT_TYPE_READY_TO_RUN = 2,
    CDACQ_JIT_TYPE_INTERPRETER = 3,
};

CDACQ_API enum cdacq_jit_type cdacq_block_get_jit_type(const struct cdacq_block *block);

/*
 * The calls below read more of the target, so each can fail on its own: MEMORY and FIELD name the type, the field and
 * the address of what is missing, and the other calls answer all the same.
 */

/*
 * GetMethodRegionInfo: sizes in bytes of the whole hot part, funclets included, and of the cold part; cold start and
 * size are 0 where the method is not split. The code's length comes from the GC info, as the runtime has it, and must
 * be what the unwind information says: CORRUPT where it is not. Where the GC info is missing the latter is taken alone.
 */
CDACQ_API enum cdacq_status cdacq_block_get_method_region_info(const struct cdacq_block *block,
                                                               struct cdacq_session *session, uint64_t *ret_hot_size,
                                                               uint64_t *ret_cold_start, uint64_t *ret_cold_size,
                                                               struct cdacq_error *err);

/*
 * GetUnwindInfo: the address of the RUNTIME_FUNCTION that covers the block's ip; 0 for methods that have none: of the
 * interpreter, and of a JIT without funclets (x86 for Windows before .NET 10).
 */
CDACQ_API enum cdacq_status cdacq_block_get_unwind_info(const struct cdacq_block *block, struct cdacq_session *session,
                                                        uint64_t *ret, struct cdacq_error *err);

/* GetUnwindInfoBaseAddress: what the addresses in it are relative to. */
CDACQ_API uint64_t cdacq_block_get_unwind_info_base_address(const struct cdacq_block *block);

/*
 * GetFuncletStartAddress: where the function that covers the block's ip starts: the start address in the method's
 * body, else a funclet's; in a cold part the start of what lies there of the one or the other.
 */
CDACQ_API enum cdacq_status cdacq_block_get_funclet_start_address(const struct cdacq_block *block,
                                                                  struct cdacq_session *session, uint64_t *ret,
                                                                  struct cdacq_error *err);

/* IsFunclet: whether the block's ip is in a handler, a filter or a finally block; not in the cold part of a body. */
CDACQ_API enum cdacq_status cdacq_block_is_funclet(const struct cdacq_block *block, struct cdacq_session *session,
                                                   bool *ret, struct cdacq_error *err);

/* IsFilterFunclet: whether it is in a filter. */
CDACQ_API enum cdacq_status cdacq_block_is_filter_funclet(const struct cdacq_block *block,
                                                          struct cdacq_session *session, bool *ret,
                                                          struct cdacq_error *err);

/*
 * GetDebugInfo: the address of the blob that maps the method's code to its IL, 0 where it has none (dynamic methods),
 * and whether a byte of flags precedes it. The format is that of dotnet/runtime
 * docs/design/datacontracts/DebugInfo.md.
 */
CDACQ_API enum cdacq_status cdacq_block_get_debug_info(const struct cdacq_block *block, struct cdacq_session *session,
                                                       uint64_t *ret, bool *ret_has_flag_byte, struct cdacq_error *err);

/*
 * GetGCInfo: the address of the method's GC info, and the version of its format, 0 where that is not known (dotnet/
 * runtime docs/design/datacontracts/GCInfo.md).
 */
CDACQ_API enum cdacq_status cdacq_block_get_gc_info(const struct cdacq_block *block, struct cdacq_session *session,
                                                    uint64_t *ret, uint32_t *ret_version, struct cdacq_error *err);

enum cdacq_clause_kind { CDACQ_CLAUSE_TYPED, CDACQ_CLAUSE_FILTER, CDACQ_CLAUSE_FINALLY, CDACQ_CLAUSE_FAULT };

/* What handles exceptions of a part of a method. Offsets count from the method's start, as relative offsets do. */
struct cdacq_exception_clause {
    size_t size;
    enum cdacq_clause_kind kind;
    uint32_t flags;     /* as they stand in the target */
    bool duplicated;    /* its handler is a copy of another one's, in the method's body: a finally block, no funclet */
    uint32_t try_start; /* protected are offsets [try_start, try_end) */
    uint32_t try_end;
    uint32_t handler_start;
    uint32_t handler_end;
    uint32_t filter_offset; /* of a FILTER */
    uint32_t class_token;   /* of a TYPED clause: of the module that declares the method; 0 for dynamic methods */
    uint64_t type_handle;   /* of a TYPED clause of a dynamic method; else 0 */
};

/*
 * GetExceptionClauses: calls `visit` for each clause, in the order in which the runtime searches them. It returns 0 to
 * go on; anything else ends the visit with CDACQ_STOPPED.
 */
CDACQ_API enum cdacq_status
cdacq_block_visit_exception_clauses(const struct cdacq_block *block, struct cdacq_session *session,
                                    int (*visit)(const struct cdacq_exception_clause *clause, void *context),
                                    void *context, struct cdacq_error *err);

/*
 * GetCodeKind: what kind of code is at an address: a method's or a stub's, CDACQ_CODE_UNKNOWN for stubs of a kind that
 * is not known. CDACQ_NOT_MANAGED, with CDACQ_CODE_UNKNOWN in *ret, where it is no code that the runtime knows.
 */
CDACQ_API enum cdacq_status cdacq_session_get_code_kind(struct cdacq_session *session, uint64_t address,
                                                        enum cdacq_code_kind *ret, struct cdacq_error *err);

/*
 * FindReadyToRunModule: the Module whose ReadyToRun image holds an address, of code or data; CDACQ_NOT_MANAGED: none.
 */
CDACQ_API enum cdacq_status cdacq_session_find_ready_to_run_module(struct cdacq_session *session, uint64_t address,
                                                                   uint64_t *ret, struct cdacq_error *err);

/* A JIT manager of the target. */
struct cdacq_jit_manager_info {
    size_t size;               /* sizeof(struct cdacq_jit_manager_info) of the caller */
    enum cdacq_code_kind kind; /* CDACQ_CODE_JITTED or CDACQ_CODE_INTERPRETER */
    uint64_t address;
    uint64_t heap_list; /* the first CodeHeapListNode; 0 where the runtime does not describe its list */
};

/* GetJitManagerInfo, of the manager of a kind of code. CDACQ_NOT_MANAGED: the target has none. */
CDACQ_API enum cdacq_status cdacq_session_get_jit_manager_info(struct cdacq_session *session, enum cdacq_code_kind kind,
                                                               struct cdacq_jit_manager_info *ret,
                                                               struct cdacq_error *err);

enum cdacq_code_heap_type {
    CDACQ_CODE_HEAP_UNKNOWN, /* the runtime does not describe it */
    CDACQ_CODE_HEAP_LOADER,  /* of code that stays */
    CDACQ_CODE_HEAP_HOST,    /* of dynamic methods, which can be freed one by one */
};

/* A heap of code. Addresses; 0 where not known. */
struct cdacq_code_heap_info {
    size_t size;
    enum cdacq_code_heap_type type;
    uint64_t node;       /* its CodeHeapListNode */
    uint64_t heap;       /* its CodeHeap */
    uint64_t begin, end; /* of its used part */
    uint64_t map_base, header_map;
    uint64_t loader_heap;   /* of a LOADER heap */
    uint64_t base, current; /* of a HOST heap */
};

/*
 * GetCodeHeapInfos, of the manager of a kind of code: in the order of the runtime's list, or by address where the
 * runtime does not describe that. `visit` as above. Where some cannot be read the others are told, and the status says
 * why there may be more.
 */
CDACQ_API enum cdacq_status cdacq_session_visit_code_heaps(struct cdacq_session *session, enum cdacq_code_kind kind,
                                                           int (*visit)(const struct cdacq_code_heap_info *heap,
                                                                        void *context),
                                                           void *context, struct cdacq_error *err);

/*
 * NonVirtualEntry2MethodDesc: the address of the MethodDesc that `entry_point` enters. It is a code pointer as it
 * stands in a slot, a delegate or a call instruction (a Thumb bit and pointer authentication are taken off): the start
 * of a method's code or, as in the specification, any address in it; or the start of a precode that stands for the
 * method. Where the target has portable entry points it is the address of one. CDACQ_NOT_MANAGED, and *ret untouched,
 * where it enters no method that has a MethodDesc: outside of all code, a stub that stands for no method, or ReadyToRun
 * code that the runtime has not prepared. Failures: MEMORY, FIELD, CORRUPT, FUEL as everywhere; CONTRACT where
 * `entry_point` may be a precode and the target publishes PrecodeStubs in no version that this build reads. Source:
 * dotnet/runtime docs/design/datacontracts/ExecutionManager.md and PrecodeStubs.md.
 */
CDACQ_API enum cdacq_status cdacq_session_non_virtual_entry_to_method_desc(struct cdacq_session *session,
                                                                           uint64_t entry_point, uint64_t *ret,
                                                                           struct cdacq_error *err);

#ifdef __cplusplus
}
#endif

#endif
