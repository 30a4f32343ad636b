/*
 * mocktarget.h: a synthetic .NET process for tests: an address space, a contract descriptor that describes it, and the
 * runtime's code bookkeeping in it, written as the runtime writes it. It never includes a reader of these structures,
 * so that a mistake on one side does not hide a mistake on the other.
 *
 *     struct mock *mock = mock_create(&(struct mock_options){.pointer_size = 4, .big_endian = true, .seed = 7});
 *     struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
 *     uint64_t start = mock_method(heap, &(struct mock_method){.size = 100, .method_desc = 0x1234});
 *     mock_publish(mock, NULL);
 *     if (mock_error(mock))
 *         errx(1, "%s", mock_error(mock));
 *     ... mock_memory(mock) or mock_write_core(mock, path, &error) ...
 *     mock_destroy(mock);
 *
 * Rules that hold throughout:
 * - A target address is a uint64_t, a range is [begin, end), a size is in bytes. Names of types, fields and globals are
 *   the runtime's: "RangeSection.Flags".
 * - The first failure (out of memory, memory that overlaps, a name that does not exist) is recorded. Every later call
 *   does nothing and returns 0 or NULL, and mock_error() returns the message, so that a test checks only once.
 * - The same options and the same calls give the same bytes. The seed chooses the order and padding of fields, the
 *   contents of unused memory, addresses, and the spelling of values in the descriptor. Seed 0 is the plainest layout.
 * - mock_functions() lists the answers that a test expects for the code in the target.
 *
 * docs/mocktarget.md is the guide. This header is installed as cdacq/mocktarget.h, which needs no other header.
 *
 * Threads: a mock belongs to one thread while it is built; afterwards its memory may be read from many.
 * Source: dotnet/runtime docs/design/datacontracts; src/coreclr/vm/{codeman,hash}.cpp for the rules of writing.
 */
#ifndef CDACQ_MOCKTARGET_H
#define CDACQ_MOCKTARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cdacq_memory;
struct cdacq_error;

/* ---- A mock ---------------------------------------------------------------------------------------------------- */

struct mock;

/* How the target states the length of a function; this, the width and the byte order determine its architecture. */
enum mock_unwind {
    MOCK_UNWIND_END_ADDRESS,     /* RuntimeFunction.EndAddress: x64 */
    MOCK_UNWIND_FUNCTION_LENGTH, /* UnwindInfo.FunctionLength: x86 */
    MOCK_UNWIND_HEADER,          /* the first word of the unwind data: 32-bit arm or arm64 */
    MOCK_UNWIND_RISCV64,         /* the same; 64 bits only */
    MOCK_UNWIND_LOONGARCH64,
};

/*
 * What .NET 11.0.0 for linux-x64 publishes: schema 2, whose contracts start again at version "c1"; its names, numbers
 * and contract versions, and no others; different numbers of stub kinds. Its nibble maps are those of version 2. A mock
 * of x64 with an even seed has the runtime's offsets and sizes, too, unless an option makes it another build.
 */
enum { MOCK_NET_11 = 11 };
#define MOCK_NET_11_VERSION "11.0.0" /* what it says of itself */

struct mock_options {
    unsigned pointer_size; /* 4 or 8; 0 is 8 */
    bool big_endian;
    uint64_t seed;
    enum mock_unwind unwind;
    unsigned version;            /* of ExecutionManager: 1 (linear nibble maps) or 2, or MOCK_NET_11; 0 is 2 */
    unsigned code_pointer_flags; /* PlatformMetadata.CodePointerFlags */
    unsigned precode_version;    /* of PrecodeStubs: 1, 2 or 3; 0 is 3 */
    uint16_t machine;            /* EM_* of ELF files; 0: one that has this width and byte order */
    uint64_t base;               /* the lowest address to allocate from; 0: a default */
    size_t span_size;            /* spans of memory have at most that many bytes; 0: no bound */
    bool no_funclets;            /* as x86 before .NET 10: FeatureEHFunclets 0; only with FUNCTION_LENGTH */
    unsigned hash_slots;         /* HashMapSlotsPerBucket; 0 is 4 */
    bool interpreter;   /* of .NET 11: a build with an interpreter and portable entry points, which that one is not */
    bool cold_jit_code; /* the JIT can split methods: heaps have BottomEndAddress and TopStartAddress */
};

/* NULL when out of memory or an option is not valid. */
struct mock *mock_create(const struct mock_options *options);
void mock_destroy(struct mock *mock);

/* The first failure as one line, or NULL. */
const char *mock_error(const struct mock *mock);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

enum mock_access { MOCK_EXECUTE = 1, MOCK_WRITE = 2, MOCK_READ = 4 };

/*
 * Maps [begin, begin + size), with contents chosen by the seed. If `begin` is 0, the mock chooses free addresses. Fails
 * if it overlaps a mapping. `path`, which may be NULL, is copied. Returns begin.
 */
uint64_t mock_map(struct mock *mock, uint64_t begin, uint64_t size, unsigned access, const char *path,
                  uint64_t file_offset);

/* Zeroed memory from the mock's own heap. */
uint64_t mock_alloc(struct mock *mock, uint64_t size, uint64_t alignment);

void mock_write(struct mock *mock, uint64_t address, const void *bytes, size_t size);
/* `width` is 1, 2, 4 or 8; in the target's byte order. */
void mock_write_uint(struct mock *mock, uint64_t address, unsigned width, uint64_t value);
void mock_write_pointer(struct mock *mock, uint64_t address, uint64_t value);
uint64_t mock_read_uint(struct mock *mock, uint64_t address, unsigned width);
uint64_t mock_read_pointer(struct mock *mock, uint64_t address);

/* Removes [begin, begin + size) from the target, as if it had not been dumped. */
void mock_unmap(struct mock *mock, uint64_t begin, uint64_t size);

/*
 * Moves everything that `other` has mapped into `mock`: two runtimes in one process. Both are complete and have the
 * same width and byte order. `other` keeps its expected answers, and the caller still destroys it.
 */
void mock_join(struct mock *mock, struct mock *other);

/* ---- Structures of the runtime ----------------------------------------------------------------------------------- */

/*
 * A new object of a type with `extra` bytes after it, for arrays at its end. Its fields are 0, the bytes between them
 * are not.
 */
uint64_t mock_new(struct mock *mock, const char *type, uint64_t extra);

/* A field of the object at `address`, "RangeSection.Flags". */
void mock_set(struct mock *mock, uint64_t address, const char *field, uint64_t value);
uint64_t mock_get(struct mock *mock, uint64_t address, const char *field);
uint32_t mock_offset_of(struct mock *mock, const char *field);
uint32_t mock_size_of(struct mock *mock, const char *type);

/* Bytes of a pointer. */
unsigned mock_pointer_size(const struct mock *mock);

/* ---- The descriptor ---------------------------------------------------------------------------------------------- */

/* Sets a global, which the descriptor then publishes. */
void mock_global(struct mock *mock, const char *name, uint64_t value);

/*
 * Sets the version that the descriptor states, spelled as a number if it is one, otherwise as a string. NULL removes
 * the contract.
 */
void mock_contract(struct mock *mock, const char *name, const char *version);

/*
 * Leaves a name out of the descriptor: a field "RangeSection.Flags", a size "Bucket.!", a type with all its fields
 * "RangeSection", a global, or a contract with everything that belongs to it "RuntimeTypeSystem".
 */
void mock_hide(struct mock *mock, const char *name);

/*
 * A sub-descriptor: a descriptor of its own, in plain memory, with the JSON and the pointer data given. The main
 * descriptor points to a variable that points to it; the variable's address is returned. `json` NULL: the variable is
 * null, as in a runtime before the garbage collector is initialised.
 */
uint64_t mock_sub_descriptor(struct mock *mock, const char *name, const char *json, const uint64_t *pointers,
                             size_t pointer_count);

enum mock_symbols {
    MOCK_SYMBOLS_GNU_HASH, /* DT_GNU_HASH only */
    MOCK_SYMBOLS_HASH,     /* DT_HASH only */
    MOCK_SYMBOLS_BOTH,
    MOCK_SYMBOLS_NONE,   /* the image does not export the descriptor */
    MOCK_SYMBOLS_NATIVE, /* likewise, but what NativeAOT exports */
};

struct mock_publish_options {
    enum mock_symbols symbols;
    const char *path; /* of the image; NULL: /mock/libcoreclr.so */
    unsigned schema;  /* "version" in the JSON; 0: as in this version of .NET */
    const char *json; /* instead of what the mock would write */
    bool no_image;    /* put the descriptor into plain memory, so that only its address leads to it */
};

/*
 * Writes the descriptor into an ELF image that exports it. Call it once, after everything else; memory may still be
 * written afterwards. Returns the descriptor's address. `options` may be NULL.
 */
uint64_t mock_publish(struct mock *mock, const struct mock_publish_options *options);

/* ---- The range section map --------------------------------------------------------------------------------------- */

enum mock_section_flags {
    MOCK_SECTION_COLLECTIBLE = 1,
    MOCK_SECTION_CODE_HEAP = 2,
    MOCK_SECTION_RANGE_LIST = 4,
    MOCK_SECTION_INTERPRETER = 8,
};

struct mock_section {
    uint64_t begin, end;
    uint32_t flags; /* enum mock_section_flags */
    uint64_t heap_list, r2r_module, range_list;
};

/*
 * Adds a range to the map; returns the address of its RangeSection. Pointers that lead to a collectible section are
 * tagged. The functions below that create code do this themselves.
 */
uint64_t mock_section_add(struct mock *mock, const struct mock_section *section);

/* Marks a section as being deleted: its range holds no code any more. */
void mock_section_delete(struct mock *mock, uint64_t section);

/*
 * The first of the section's fragments, which are contiguous, one for each chunk; their number and size. And the size
 * of a chunk.
 */
uint64_t mock_section_fragments(const struct mock *mock, uint64_t section, size_t *ret_count, uint64_t *ret_stride);
uint64_t mock_chunk_size(const struct mock *mock);
unsigned mock_map_levels(const struct mock *mock);

/*
 * The address of the RangeSectionMap, and of the slot for `address` in a table of a level (1 is innermost); 0 if there
 * is no table.
 */
uint64_t mock_map_address(const struct mock *mock);
uint64_t mock_map_slot(struct mock *mock, uint64_t address, unsigned level);

/* ---- JIT-compiled code ------------------------------------------------------------------------------------------- */

struct mock_heap_options {
    uint64_t begin; /* of the range; 0: a free place */
    uint64_t size;
    bool collectible;   /* a heap of dynamic methods */
    bool interpreter;   /* of interpreted byte code: its methods have no funclets */
    uint64_t map_slack; /* bytes before the range that the nibble map covers */
};

struct mock_heap {
    uint64_t begin, end; /* of the range */
    bool interpreter;
    uint64_t section, node; /* its RangeSection and CodeHeapListNode */
    uint64_t map_base, header_map;
    uint64_t cursor; /* the first free byte */
    uint64_t last_start;
    uint64_t top; /* where the cold parts begin */
    struct mock *mock;
};

/* A range of code with a nibble map. The mock owns it, and all other objects that these functions return. */
struct mock_heap *mock_heap_create(struct mock *mock, const struct mock_heap_options *options);

enum mock_clause_flags {
    MOCK_CLAUSE_TYPED = 0,
    MOCK_CLAUSE_FILTER = 1,
    MOCK_CLAUSE_FINALLY = 2,
    MOCK_CLAUSE_FAULT = 4,
    MOCK_CLAUSE_DUPLICATED = 8,
    MOCK_CLAUSE_CACHED_CLASS = 0x10000000, /* JIT-compiled code alone */
};

/* An exception clause; offsets are relative to the method's start. */
struct mock_clause {
    uint32_t flags; /* enum mock_clause_flags */
    uint32_t try_start, try_end, handler_start, handler_end;
    uint64_t what; /* the offset of a FILTER, the TypeHandle of a CACHED_CLASS, otherwise the class token */
};

struct mock_method {
    uint64_t size;            /* of the method's body; rounded up to the unit of its unwind data */
    const uint64_t *funclets; /* their sizes; they follow the body */
    size_t funclet_count;
    uint64_t method_desc;
    unsigned alignment;                /* of the start; 0 is 16; at least 4 */
    uint64_t skip;                     /* free bytes before it */
    uint64_t tail;                     /* bytes of its block after the code */
    uint64_t cold;                     /* of the body's cold part, which all funclets follow; with cold_jit_code */
    const struct mock_clause *clauses; /* copied */
    size_t clause_count;
    bool no_debug_info, no_gc_info;
};

/* Returns the start of the code. */
uint64_t mock_method(struct mock_heap *heap, const struct mock_method *method);

/* The EEJitManager; and the InterpreterJitManager, or 0 before the first heap of the interpreter. */
uint64_t mock_jit_manager(const struct mock *mock);
uint64_t mock_interpreter_manager(const struct mock *mock);

/* The RealCodeHeader, or InterpreterRealCodeHeader, of the method that starts at `start`. */
uint64_t mock_method_header(struct mock_heap *heap, uint64_t start);

/* A block of stubs, `kind` being the runtime's number for them (StubCodeBlockKind). */
uint64_t mock_stub(struct mock_heap *heap, unsigned kind, uint64_t size);

/* Frees a method or stub block, as the runtime does for dynamic methods. */
void mock_code_free(struct mock_heap *heap, uint64_t start);

/* Writes to a separate nibble map by the runtime's rules. */
void mock_nibble_set(struct mock *mock, uint64_t header_map, uint64_t map_base, uint64_t start, uint64_t size);
void mock_nibble_delete(struct mock *mock, uint64_t header_map, uint64_t map_base, uint64_t start);

/*
 * A range of stubs whose kind a range list states. Returns the section. *ret_begin is the begin of the range; it may be
 * NULL.
 */
uint64_t mock_range_list(struct mock *mock, uint64_t size, unsigned kind, bool collectible, uint64_t *ret_begin);

/* ---- Precodes ---- */

/*
 * A range list of alternating pages of code and data. All precodes of a code page have the same code; the data of each
 * is at the same offset in the data page that follows. The data of unused precodes are zero.
 */
enum mock_precode {
    MOCK_PRECODE_STUB,
    MOCK_PRECODE_PINVOKE,
    MOCK_PRECODE_FIXUP, /* in a struct mock_precodes of their own */
    MOCK_PRECODE_THIS_PTR_RET_BUF,
    MOCK_PRECODE_UM_ENTRY,
    MOCK_PRECODE_INTERPRETER,
    MOCK_PRECODE_DYNAMIC_HELPER,
    MOCK_PRECODE_COUNT
};

struct mock_precodes {
    uint64_t begin, end;    /* of the range */
    uint64_t section, list; /* its RangeSection and CodeRangeMapRangeList */
    uint64_t next;          /* the first unused precode */
    struct mock *mock;
};

/* A range with that many pages of code, for fixup precodes or for all other kinds. */
struct mock_precodes *mock_precodes_create(struct mock *mock, bool fixup, size_t pages, bool collectible);

/* A precode; returns its entry point, a code pointer. */
uint64_t mock_precode(struct mock_precodes *precodes, enum mock_precode kind, uint64_t method_desc);

/* The address of the data of the precode at `address`, and the distance from one precode to the next. */
uint64_t mock_precode_data(const struct mock *mock, uint64_t address);
uint64_t mock_precode_size(const struct mock *mock);

/* Publishes the fields of PrecodeMachineDescriptor as globals, as supplements do, and hides PlatformMetadata. */
void mock_precode_values(struct mock *mock);

/* A PortableEntryPoint, for targets that set FeaturePortableEntrypoints. */
uint64_t mock_portable_entry_point(struct mock *mock, uint64_t method_desc);

/* ---- Hash maps --------------------------------------------------------------------------------------------------- */

/* Writes an empty HashMap with that many buckets at `map`, the address of a HashMap object. */
void mock_hash_map_init(struct mock *mock, uint64_t map, uint32_t bucket_count);

/* Inserts by the runtime's rule. `key` and `value` are stored as they are. False if the map is full. */
bool mock_hash_map_insert(struct mock *mock, uint64_t map, uint64_t key, uint64_t value);

/* The same for a map of pointers: the value is stored shifted right by one. */
bool mock_ptr_hash_map_insert(struct mock *mock, uint64_t map, uint64_t key, uint64_t pointer);

/* ---- ReadyToRun images ------------------------------------------------------------------------------------------- */

enum mock_r2r_tables {
    MOCK_R2R_NO_HEADER,      /* only what ReadyToRunInfo points to: only prepared methods can be identified */
    MOCK_R2R_METHODDEFS = 1, /* section 103 */
    MOCK_R2R_INSTANCES = 2,  /* section 109 */
};

struct mock_r2r_options {
    const char *path;      /* NULL: /mock/r2r.dll */
    uint64_t begin;        /* 0: a free place */
    unsigned tables;       /* enum mock_r2r_tables */
    uint32_t bucket_count; /* of the map from entry points to MethodDescs; 0: enough */
    uint64_t thunk_size;   /* of the delay-load thunks; 0: none */
    bool composite; /* a component of a composite image; the ReadyToRunInfo of the latter has the map and the header */
    uint16_t major, minor; /* of the image's format, which determines the version of its GC info; 0: one that exists */
    bool sentinel_counted; /* NumRuntimeFunctions counts the sentinel too */
    const void *metadata;  /* copied into the image; may be NULL */
    size_t metadata_size;
};

struct mock_r2r {
    uint64_t begin, end;
    uint64_t section, module,
        info;           /* RangeSection, Module, ReadyToRunInfo; only the module is set before mock_r2r_finish */
    uint64_t functions; /* RUNTIME_FUNCTIONs */
    uint32_t function_count, first_cold;
    uint64_t hot_cold_map, entry_point_map;
    uint64_t thunks, thunks_end;
    uint64_t header, methoddefs, instances; /* READYTORUN_HEADER and the two tables; 0 if absent */
    uint32_t methoddefs_size, instances_size;
    struct mock *mock;
    struct mock_r2r *next;
    struct mock_r2r_plan *plan;
};

struct mock_r2r *mock_r2r_create(struct mock *mock, const struct mock_r2r_options *options);

struct mock_r2r_method {
    const uint64_t *hot; /* sizes of the body and its funclets */
    size_t hot_count;
    const uint64_t *cold; /* of the cold part and its funclets */
    size_t cold_count;
    uint64_t skip;        /* padding before it */
    uint64_t method_desc; /* 0: the runtime has not prepared it */
    uint32_t rid;         /* 0: not in the table of MethodDefs */
    const void *instance; /* its signature in the table of instances; NULL if it is not there */
    size_t instance_size;
    bool fixups; /* its entry says that fixups follow */
    const struct mock_clause *clauses;
    size_t clause_count;
    bool no_debug_info;
    bool resumption_stub; /* a cell of the import sections is for it; the image needs a header */
};

/* Adds a method after the last one; returns its number. Everything is copied. */
size_t mock_r2r_method(struct mock_r2r *r2r, const struct mock_r2r_method *method);

/* Writes the image and adds it to the map. */
void mock_r2r_finish(struct mock_r2r *r2r);

/* The start of method `number` of a finished image. */
uint64_t mock_r2r_start(const struct mock_r2r *r2r, size_t number);

/*
 * Loads a ReadyToRun image from a file that crossgen2 wrote and adds it to the map. mock_functions() does not list its
 * contents. The mock must have the image's architecture and seed 0, whose structures are laid out as in such files.
 */
struct mock_r2r_file_options {
    const char *path; /* copied; NULL: /mock/file.dll */
    const void *bytes;
    size_t size;
    uint64_t begin;        /* 0: a free place */
    uint32_t bucket_count; /* of the map from entry points to MethodDescs; 0: 5 */
};

struct mock_r2r_file {
    uint64_t begin, end;
    uint64_t section, module, info, entry_point_map;
    uint64_t functions;      /* RUNTIME_FUNCTIONs */
    uint32_t function_count; /* without the sentinel */
};

struct mock_r2r_file mock_r2r_load(struct mock *mock, const struct mock_r2r_file_options *options);

/* ---- Tables of ReadyToRun images, in a separate buffer -------------------------------------------------------- */

/* A growing buffer; the caller frees `data`. */
struct mock_bytes {
    uint8_t *data;
    size_t size, capacity;
    bool failed;
};

void mock_bytes_put(struct mock_bytes *bytes, const void *data, size_t size);
void mock_native_unsigned(struct mock_bytes *bytes, uint32_t value);
void mock_native_signed(struct mock_bytes *bytes, int32_t value);

struct mock_element {
    const void *data; /* NULL: the array has no such element */
    size_t size;
    uint32_t hash; /* of a hash table's element */
};

/* A NativeArray with an index of 1, 2 or 4 bytes (index_size 0, 1, 2; 3: the least that fits). */
void mock_native_array(struct mock_bytes *bytes, const struct mock_element *elements, size_t count,
                       unsigned index_size);

/* A NativeHashtable of 2^bucket_bits buckets: the hash's bits above the lowest 8 choose the bucket. */
void mock_native_hashtable(struct mock_bytes *bytes, const struct mock_element *elements, size_t count,
                           unsigned bucket_bits, unsigned index_size);

/* ---- Types and modules ------------------------------------------------------------------------------------------- */

struct mock_module_options {
    const char *path;     /* of its file */
    const void *metadata; /* copied; NULL: no image */
    size_t metadata_size;
    bool flat; /* the image is laid out as in its file, otherwise as a loader does it */
};

/* A Module whose PE image holds the metadata. Returns the Module's address. */
uint64_t mock_module(struct mock *mock, const struct mock_module_options *options);

/* A MethodTable of `module` for the TypeDef with that rid. */
uint64_t mock_method_table(struct mock *mock, uint64_t module, uint32_t typedef_rid);

/* The same with `count` type arguments, which are type handles. */
uint64_t mock_generic_method_table(struct mock *mock, uint64_t module, uint32_t typedef_rid, const uint64_t *arguments,
                                   size_t count);

/* Sets the flags of a MethodTable to those of a type with an element type of its own. */
void mock_make_primitive(struct mock *mock, uint64_t method_table);

/*
 * The MethodTable of an array of `rank` dimensions, 0 for a vector; the handle of a pointer or reference (by its
 * element type).
 */
uint64_t mock_array_method_table(struct mock *mock, uint64_t module, uint64_t element, unsigned rank);
uint64_t mock_type_desc(struct mock *mock, uint8_t element_type, uint64_t argument);

/* `count` MethodDescs in one chunk for the MethodDefs from `rid` on, which share a token range. Returns the first. */
uint64_t mock_method_descs(struct mock *mock, uint64_t method_table, uint32_t rid, size_t count, uint64_t *ret_stride);

/* A MethodDesc with `count` type arguments for the method. */
uint64_t mock_instantiated_method_desc(struct mock *mock, uint64_t method_table, uint32_t rid,
                                       const uint64_t *arguments, size_t count);

/*
 * A MethodDesc of .NET 11 with AsyncMethodData, whose `flags` are the runtime's (AsyncMethodFlags). With a `count`, it
 * has type arguments for the method.
 */
uint64_t mock_async_method_desc(struct mock *mock, uint64_t method_table, uint32_t rid, const uint64_t *arguments,
                                size_t count, uint32_t flags);

/*
 * Gives a method another version of its code, compiled for a tier by the runtime's number; `code` is a code pointer.
 * With a `code` of 0, sets the tier of the first version (all ones: not known).
 */
void mock_code_version(struct mock *mock, uint64_t method_desc, uint64_t code, uint32_t tier);

/* A MethodDesc of a dynamic method. */
uint64_t mock_dynamic_method_desc(struct mock *mock, const char *name);

/*
 * The same with a signature, which is copied. `table` is a MethodTable of the module that its tokens belong to; `stub`
 * means an IL stub of the runtime.
 */
uint64_t mock_dynamic_method_desc_of(struct mock *mock, uint64_t table, const char *name, bool stub,
                                     const void *signature, size_t size);

/* ---- Expected answers -------------------------------------------------------------------------------------------- */

enum mock_code {
    MOCK_CODE_JIT,
    MOCK_CODE_R2R,
    MOCK_CODE_INTERPRETER,
    MOCK_CODE_STUB,
    MOCK_CODE_RANGE_LIST,
    MOCK_CODE_THUNK
};

/* A range of code: a method's body, a funclet, a cold part, or stubs. */
struct mock_function {
    uint64_t begin, end;
    enum mock_code code;
    const char *stub_kind; /* the name of the CodeKind of stubs */
    uint64_t method;       /* the start of the method's hot code */
    uint64_t method_desc;  /* 0: not prepared */
    uint64_t offset;       /* GetRelativeOffset of `begin` */
    uint64_t hot_size, cold_start, cold_size;
    uint64_t unwind_info; /* its RUNTIME_FUNCTION */
    uint32_t rid;
    bool cold;
    bool funclet;        /* as the runtime defines it */
    uint64_t debug_info; /* of the method; 0: none */
    uint64_t gc_info;    /* of the method; 0: none */
    unsigned gc_info_version;
    const struct mock_clause *clauses; /* of the method; the mock's */
    size_t clause_count;
};

/* All code, sorted by begin. Valid until the next call that changes the mock. */
const struct mock_function *mock_functions(struct mock *mock, size_t *ret_count);

/* The code at `address`; NULL if there is none. */
const struct mock_function *mock_function_at(struct mock *mock, uint64_t address);

/* ---- Carriers ---------------------------------------------------------------------------------------------------- */

/* The target as memory for cdacq_target_open_memory. Valid until the next call that changes the mock. */
const struct cdacq_memory *mock_memory(struct mock *mock);

/* Writes the target as an ELF core file. False on failure, with the reason in *err, which may be NULL. */
bool mock_write_core(struct mock *mock, const char *path, struct cdacq_error *err);

#ifdef __cplusplus
}
#endif

#endif
