/*
 * layout.h: the fields and globals that the contracts read, bound once at open to their offsets in this runtime. After
 * that a read is a table access. Only this file knows widths, names for messages and what may be absent. A bound layout
 * is immutable.
 *
 * The table is generated from layout.def: T_RangeSection is a type, F_RangeSection_Flags a field, G_StubCodeBlockLast
 * a global, each spelled as the runtime spells it, so that one search joins specification, descriptor and code.
 */
#ifndef CDACQ_DESCRIPTORS_LAYOUT_H
#define CDACQ_DESCRIPTORS_LAYOUT_H

#include "cdacq/error.h"
#include "descriptors/runtime_info.h"
#include "util/base.h"

struct descriptor;

enum layout_type {
#define CDAC_TYPE(type) T_##type,
#include "descriptors/layout.def"
    T_COUNT
};

enum layout_field {
#define CDAC_FIELD(type, kind, field, contract, need) F_##type##_##field,
#include "descriptors/layout.def"
    F_COUNT
};

enum layout_global {
#define CDAC_GLOBAL(kind, name, contract, need) G_##name,
#include "descriptors/layout.def"
    G_COUNT
};

/*
 * The contracts that read rows of layout.def, and parts of contracts that only some of their versions need; one bit
 * each in `needed`. A contract is usable only if none of its parts in `needed` lacks a required name.
 */
enum layout_contract {
    LAYOUT_ExecutionManager,
    LAYOUT_RangeSections, /* of ExecutionManager: the code of CoreCLR */
    LAYOUT_ReadyToRun,    /* of ExecutionManager: what describes code in images */
    LAYOUT_NativeCode,    /* of ExecutionManager: the code of NativeAOT */
    LAYOUT_AuxiliarySymbols,
    LAYOUT_PlatformMetadata,
    LAYOUT_PrecodeStubs,
    LAYOUT_RuntimeTypeSystem,
    LAYOUT_CodeVersions,
    LAYOUT_Loader,
    LAYOUT_EcmaMetadata,
    LAYOUT_DebugInfo,
    LAYOUT_Thread,
    LAYOUT_Frames, /* of Thread: what only CoreCLR has of a thread */
    LAYOUT_StackWalk,
    LAYOUT_Object,
    LAYOUT_SyncBlock,
    LAYOUT_Exception,
    LAYOUT_RuntimeInfo,
    LAYOUT_StressLog,
    LAYOUT_GC,
    LAYOUT_CONTRACT_COUNT
};

struct layout_slot {
    uint32_t offset;
    uint8_t width; /* 0 for INLINE */
    bool present;
};

struct layout {
    struct layout_slot fields[F_COUNT];
    uint32_t sizes[T_COUNT]; /* bytes; 0 where unknown */
    uint64_t globals[G_COUNT];
    bool global_present[G_COUNT];
    uint32_t usable; /* a bit for each contract that lacks no required name; opening clears unsupported versions */
    unsigned schema; /* of the descriptor */
    unsigned pointer_size;
    const struct descriptor *descriptor; /* set when a target is opened: for fields of managed types */
    enum architecture architecture;      /* likewise */
    unsigned code_pointer_flags;         /* of PlatformMetadata; set when a target is opened */
};

/*
 * Binds every row. Fails with FIELD when a contract in `needed` lacks required names, which the message lists as far as
 * they fit, or when the declared type of one of its rows has another width. Such a row of any other contract is absent.
 */
enum cdacq_status layout_bind(const struct descriptor *descriptor, unsigned pointer_size, uint32_t needed,
                              struct layout *ret, struct cdacq_error *err);

/* Whether it is that of a CoreCLR of .NET 11 or newer, which publishes what the rows PUBLISHED of layout.def say. */
bool layout_is_of_11(const struct layout *layout);

/*
 * Writes the names that CoreCLR publishes since .NET 11 but this runtime, which is newer, does not, as far as they fit.
 * Returns how many there are: 0 for other runtimes.
 */
size_t layout_unpublished(const struct layout *layout, char *buffer, size_t size);

/* Writes the required names that `contract` lacks, as far as they fit, and returns how many there are. */
size_t layout_missing(const struct layout *layout, enum layout_contract contract, char *buffer, size_t size);

/* A field of a managed type that the descriptor has by the name of the type and its own. */
struct managed_field {
    uint32_t offset; /* from the start of the object */
    uint8_t width;   /* 0: a reference, or not declared */
};

/* False if the descriptor does not have it, which is usual: runtimes publish few. */
bool layout_managed_field(const struct layout *layout, const char *type, const char *name, struct managed_field *ret);

/* "RangeSection.Flags", a static string. */
const char *layout_field_name(enum layout_field field);
const char *layout_type_name(enum layout_type type);

#endif
