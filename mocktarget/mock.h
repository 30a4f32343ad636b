/*
 * mock.h: what the files of the mock share: the address space (space.c), layouts (layout.c) and the expected answers
 * (expected.c). layout.def gives the names; F_RangeSection_Flags here and in the readers are two enumerations of one
 * list.
 */
#ifndef CDACQ_MOCKTARGET_MOCK_H
#define CDACQ_MOCKTARGET_MOCK_H

#include "mocktarget/mocktarget.h"
#include "util/arena.h"
#include "util/base.h"
#include "cdacq/target.h"
#include "util/text.h"
#include "util/vector.h"

enum mock_type {
#define CDAC_TYPE(type) T_##type,
#include "descriptors/layout.def"
    T_COUNT
};

enum mock_field {
#define CDAC_FIELD(type, kind, field, contract, need) F_##type##_##field,
#include "descriptors/layout.def"
    F_COUNT
};

enum mock_global {
#define CDAC_GLOBAL(kind, name, contract, need) G_##name,
#include "descriptors/layout.def"
    G_COUNT
};

/* A mapped interval of the address space. */
struct mock_span {
    uint64_t begin, size;
    uint8_t *bytes;
    unsigned access; /* enum mock_access */
    char *path;      /* NULL if no file is mapped */
    uint64_t file_offset;
};

struct mock_range {
    uint64_t begin, end;
};

struct mock_slot {
    uint32_t offset;
    uint8_t width; /* 0: inline */
    bool present;  /* in this layout */
    bool hidden;   /* not published */
};

/* Where the fragments of a section are. */
struct mock_fragments {
    uint64_t section, first;
    size_t count;
    struct mock_range range;
};

enum {
    MOCK_CONTRACT_MAX = 48,
    MOCK_SUB_DESCRIPTOR_MAX = 4,
    MOCK_PRECODE_CODE = 24,
    MOCK_STORE_TABLES = 45, /* of read-write metadata */
    MOCK_CONTEXT = 0x4d0,
    MOCK_STRESS_HEADER = 16,
    MOCK_BLOCK_RANGES = 10
};

/* How this target's precodes look: fixup precodes, [1], and all others, [0]. */
struct mock_precode_machine {
    uint64_t page, stride;
    uint8_t types[MOCK_PRECODE_COUNT];
    uint8_t type_offset, type_width, type_shift; /* versions 1 and 2 */
    uint8_t code[2][MOCK_PRECODE_CODE];          /* version 3 */
    uint8_t ignored[2][MOCK_PRECODE_CODE];
};

struct mock_contract {
    char name[40], version[16];
};

struct mock_sub_descriptor {
    char name[40];
    uint64_t variable; /* holds the descriptor's address */
};

DEFINE_VECTOR(mock_spans, struct mock_span);
DEFINE_VECTOR(mock_ranges, struct mock_range);
DEFINE_VECTOR(mock_sections, struct mock_fragments);
DEFINE_VECTOR(mock_expected, struct mock_function);

struct mock {
    struct mock_options options;
    unsigned word; /* bytes of a pointer */
    bool big, failed;
    bool is_net11;
    bool has_net11_offsets; /* its layouts are those of .NET 11.0.0 for linux-x64 */
    char error[240];
    uint64_t random;

    struct mock_spans spans; /* sorted by begin */
    struct mock_ranges holes;
    uint64_t next;                  /* where the next span may begin */
    uint64_t heap_cursor, heap_end; /* of mock_alloc */
    struct cdacq_memory memory;     /* of the memory carrier */
    struct cdacq_mapping *mappings;

    struct mock_slot fields[F_COUNT];
    uint32_t sizes[T_COUNT];
    bool size_hidden[T_COUNT], type_hidden[T_COUNT];
    uint64_t globals[G_COUNT];
    bool global_set[G_COUNT];
    struct mock_contract contracts[MOCK_CONTRACT_MAX];
    size_t contract_count;
    struct mock_sub_descriptor sub_descriptors[MOCK_SUB_DESCRIPTOR_MAX];
    size_t sub_descriptor_count;
    bool published;

    uint64_t map, jit_manager, interpreter_manager;
    struct mock_sections sections;
    struct arena kept; /* copies of arguments, and objects returned to tests */
    struct mock_precode_machine precode_machine;
    struct mock_r2r *images;
    struct mock_expected functions;
};

/* Records the first failure. Returns 0, so that callers can return its result. */
uint64_t mock_fail(struct mock *mock, const char *format, ...) PRINTF_LIKE(2, 3);

/* A number below `bound`; always 0 for seed 0. */
uint64_t mock_random(struct mock *mock, uint64_t bound);

/*
 * A copy that lives as long as the mock, or, if `data` is NULL, memory that is not initialised. NULL if the mock has
 * failed, which it also does when out of memory.
 */
void *mock_keep(struct mock *mock, const void *data, size_t size);

/* The index of the first span that ends after `address`. */
size_t mock_span_index(const struct mock *mock, uint64_t address);

void mock_space_free(struct mock *mock); /* the spans, and what has been kept */

/* Returns `stored`; the mock fails if it is false. */
bool mock_stored(struct mock *mock, bool stored);

/* The bytes of [address, address + size). NULL, and the mock fails, if they are not in one span. */
uint8_t *mock_bytes_at(struct mock *mock, uint64_t address, uint64_t size);

/* The address of `size` free bytes, which are not taken yet. */
uint64_t mock_free_place(struct mock *mock, uint64_t size, uint64_t alignment);

/* ---- Layouts ---- */

void mock_layout(struct mock *mock);

/* A row of layout.def. */
struct mock_row {
    const char *name;     /* a field's is "RangeSection.Flags" */
    const char *contract; /* a type's is the contract that needs its size; NULL if none does */
    const char *kind;     /* as descriptors spell it; NULL for an inline field */
    enum mock_type type;  /* of a field */
};

extern const struct mock_row mock_type_rows[T_COUNT], mock_field_rows[F_COUNT], mock_global_rows[G_COUNT];

uint64_t mock_object(struct mock *mock, enum mock_type type, uint64_t extra);
void mock_put(struct mock *mock, uint64_t object, enum mock_field field, uint64_t value);
uint64_t mock_fetch(struct mock *mock, uint64_t object, enum mock_field field);
/* The address of a field. 0, and the mock fails, if this layout lacks it. */
uint64_t mock_address_of(struct mock *mock, uint64_t object, enum mock_field field);

/* The same for a field that not every release has: nothing is written where this layout lacks it. */
void mock_put_optional(struct mock *mock, uint64_t object, enum mock_field field, uint64_t value);

/* ---- .NET 11 ---- */

/* Whether .NET 11.0.0 for linux-x64 publishes a name; a size of 0 is not published. A field is "RangeSection.Flags". */
bool net11_field(const char *name, uint64_t *ret_offset);
bool net11_type(const char *name, uint64_t *ret_size);
bool net11_number(const char *name, uint64_t *ret);
bool net11_pointer(const char *name);

struct net11_text {
    const char *name, *text; /* NULL: the end of a list */
};

/* Globals that are strings; and contracts with their versions. */
extern const struct net11_text net11_strings[], net11_contracts[];

/* ---- Code ---- */

/* Whether the architecture is 32-bit arm. */
bool mock_is_arm(const struct mock *mock);

/* The unit of function lengths; sizes are rounded up to it. */
uint64_t mock_length_unit(const struct mock *mock);

/* The size of a function's unwind data; and writing them, which returns the address where GC info may follow. */
uint64_t mock_unwind_size(const struct mock *mock);
/* `chained`: it continues the unwind info of another function, as that of a cold part does. Recorded on x64 only. */
uint64_t mock_unwind_write(struct mock *mock, uint64_t unwind, uint64_t length, bool chained);

enum { MOCK_GC_INFO_SIZE = 16 };

/* Writes the head of GC info of version 2 to 5 for code of that length. */
/* Makes the unwind data at `unwind` that of a fragment, on arm64. */
void mock_unwind_make_fragment(struct mock *mock, uint64_t unwind);
void mock_gc_info_write(struct mock *mock, uint64_t address, uint64_t code_length, unsigned version);
void mock_gc_info_write_interpreted(struct mock *mock, uint64_t address, uint64_t code_length, unsigned version);

/* Writes a JIT manager, and a variable of the given global that points to it. */
uint64_t mock_new_manager(struct mock *mock, const char *global);

/* A RUNTIME_FUNCTION; `begin` and `unwind` are relative. */
void mock_runtime_function(struct mock *mock, uint64_t entry, uint64_t begin, uint64_t length, uint64_t unwind);

/* The size of a clause of JIT-compiled code or of an image; and a method's clauses. */
uint64_t mock_clause_size(const struct mock *mock, bool r2r);
void mock_clauses_write(struct mock *mock, uint64_t address, const struct mock_clause *clauses, size_t count, bool r2r);

void mock_expect(struct mock *mock, const struct mock_function *function);
/* The CodeKind for the number in front of a stub block or in a range list. */
const char *mock_stub_kind(const struct mock *mock, unsigned number);
/* Removes the methods and stubs that start in [begin, end). */
void mock_expect_nothing(struct mock *mock, uint64_t begin, uint64_t end);

/* Chooses how precodes look and describes it in the PrecodeMachineDescriptor. */
void mock_precode_machine_write(struct mock *mock, uint64_t descriptor);

/* ---- Images ---- */

/* The size of the headers and section table of mock_pe_write, after which a flat image's section begins. */
enum { MOCK_PE_HEADERS = 0x400, MOCK_CLR_HEADER = 72 };

struct mock_pe {
    uint32_t size;        /* of the image in memory */
    uint32_t text;        /* RVA of the one section */
    uint32_t text_offset; /* of its bytes in a file */
    uint32_t clr;         /* RVA of the CLR header, MOCK_CLR_HEADER bytes */
    uint32_t metadata, metadata_size;
    uint32_t managed_native, managed_native_size;
};

/* Writes the headers at `address`, and the CLR header where the image, mapped or flat, has it. */
void mock_pe_write(struct mock *mock, uint64_t address, const struct mock_pe *pe, bool flat);

/* A Module; and the structures that link it to an image at `base`. */
uint64_t mock_module_object(struct mock *mock, const char *path);
void mock_module_place(struct mock *mock, uint64_t module, uint64_t base, uint32_t size, bool flat);

void mock_images_free(struct mock *mock);

#endif
