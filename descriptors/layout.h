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

#include "descriptors/runtime_info.h"
#include "descriptors/descriptor.h"

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

/* The contracts that read rows of layout.def; one bit each in `needed`. */
enum layout_contract {
    LAYOUT_ExecutionManager,
    LAYOUT_ReadyToRun, /* of ExecutionManager: what describes code in images */
    LAYOUT_PlatformMetadata,
    LAYOUT_PrecodeStubs,
    LAYOUT_RuntimeTypeSystem,
    LAYOUT_CodeVersions,
    LAYOUT_Loader,
    LAYOUT_EcmaMetadata,
    LAYOUT_DebugInfo,
    LAYOUT_Thread,
    LAYOUT_StackWalk,
    LAYOUT_Object,
    LAYOUT_SyncBlock,
    LAYOUT_Exception,
    LAYOUT_RuntimeInfo,
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
    enum architecture architecture; /* set when a target is opened */
    unsigned code_pointer_flags;    /* of PlatformMetadata; set when a target is opened */
};

/*
 * Binds every row. Fails with FIELD when a contract in `needed` lacks required names, which the message lists as far as
 * they fit, or when the declared type of one of its rows has another width. Such a row of any other contract is absent.
 */
enum cdacq_status layout_bind(const struct descriptor *descriptor, unsigned pointer_size, uint32_t needed,
                              struct layout *ret, struct cdacq_error *err);

/* Writes the required names that `contract` lacks, as far as they fit, and returns how many there are. */
size_t layout_missing(const struct layout *layout, enum layout_contract contract, char *buffer, size_t size);

/* "RangeSection.Flags", a static string. */
const char *layout_field_name(enum layout_field field);
const char *layout_type_name(enum layout_type type);

#endif
