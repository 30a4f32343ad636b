/*
 * mocktarget.h: a synthetic .NET process for tests: an address space, a contract descriptor that describes it, and the
 * runtime's code bookkeeping in it, written as the runtime writes it. It takes the part of the runtime and never
 * includes a reader of these structures, so that a mistake on one side does not cancel itself out on the other.
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
 *  - A target address is a uint64_t, a range is [begin, end), a size is in bytes. Names of types, fields and globals
 *    are the runtime's: "RangeSection.Flags".
 *  - The first failure (out of memory, memory that overlaps, a name that is none) is remembered, every later verb does
 *    nothing and returns 0 or NULL, and mock_error() tells what it was: a test asks once.
 *  - The same options and the same calls give the same bytes. The seed decides the order and padding of fields, what
 *    fills unused memory, where things lie, and how the descriptor spells its values; seed 0 is the plainest of all
 *    layouts.
 *  - The code in the target is also listed as the answers that a test expects (mock_functions).
 *
 * docs/mocktarget.md is the guide. Installed it is cdacq/mocktarget.h, which needs no other header.
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

/* How the target tells the length of a function: which architecture it is, but for its width and byte order. */
enum mock_unwind {
    MOCK_UNWIND_END_ADDRESS,     /* RuntimeFunction.EndAddress: x64 */
    MOCK_UNWIND_FUNCTION_LENGTH, /* UnwindInfo.FunctionLength: x86 */
    MOCK_UNWIND_HEADER,          /* the first word of the unwind data: arm with 32 bits, arm64 with 64 */
    MOCK_UNWIND_RISCV64,         /* the same; 64 bits alone */
    MOCK_UNWIND_LOONGARCH64,
};

/*
 * What .NET 11 publishes: schema 2, whose contracts are counted anew as "c1"; the names and declared types of its
 * datadescriptor.inc; other numbers of stub kinds. Its nibble maps are those of version 2.
 */
enum { MOCK_NET_11 = 11 };

struct mock_options {
    unsigned pointer_size; /* 4 or 8; 0 is 8 */
    bool big_endian;
    uint64_t seed;
    enum mock_unwind unwind;
    unsigned version;            /* of ExecutionManager: 1 (linear nibble maps) or 2, or MOCK_NET_11; 0 is 2 */
    unsigned code_pointer_flags; /* PlatformMetadata.CodePointerFlags */
    unsigned precode_version;    /* of PrecodeStubs: 1, 2 or 3; 0 is 3 */
    uint16_t machine;            /* EM_* of ELF files; 0: a usual one of that width and order */
    uint64_t base;               /* where memory is handed out from; 0: a usual place */
    size_t run_size;             /* memory is readable in runs of at most that many bytes; 0: no bound */
    bool no_funclets;            /* as x86 was before .NET 10: FeatureEHFunclets 0; with FUNCTION_LENGTH alone */
    unsigned hash_slots;         /* HashMapSlotsPerBucket; 0 is 4 */
};

/* NULL when out of memory or an option is not valid. */
struct mock *mock_create(const struct mock_options *options);
void mock_destroy(struct mock *mock);

/* The first failure as one line, or NULL. */
const char *mock_error(const struct mock *mock);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

enum mock_access { MOCK_EXECUTE = 1, MOCK_WRITE = 2, MOCK_READ = 4 };

/*
 * Maps [begin, begin + size), filled with what the seed gives; begin 0 picks a free place. What overlaps anything is
 * refused. `path`, which may be NULL, is copied. Returns begin.
 */
uint64_t mock_map(struct mock *mock, uint64_t begin, uint64_t size, unsigned access, const char *path,
                  uint64_t file_offset);

/* Zeroed memory, from the mock's own heap. */
uint64_t mock_alloc(struct mock *mock, uint64_t size, uint64_t alignment);

void mock_write(struct mock *mock, uint64_t address, const void *bytes, size_t size);
/* `width` is 1, 2, 4 or 8; in the target's byte order. */
void mock_write_uint(struct mock *mock, uint64_t address, unsigned width, uint64_t value);
void mock_write_pointer(struct mock *mock, uint64_t address, uint64_t value);
uint64_t mock_read_uint(struct mock *mock, uint64_t address, unsigned width);
uint64_t mock_read_pointer(struct mock *mock, uint64_t address);

/* [begin, begin + size) is not in the target, as if it had not been dumped. */
void mock_forget(struct mock *mock, uint64_t begin, uint64_t size);

/*
 * Moves all that `other` has mapped into `mock`: two runtimes in one process. Both are of one width and byte order, and
 * are complete; `other` keeps its expected answers, and is still the caller's to destroy.
 */
void mock_join(struct mock *mock, struct mock *other);

/* ---- Structures of the runtime ----------------------------------------------------------------------------------- */

/* A new object of a type, its fields 0, what is between them not. `extra` bytes follow it, for arrays at its end. */
uint64_t mock_new(struct mock *mock, const char *type, uint64_t extra);

/* A field of the object at `address`, "RangeSection.Flags". */
void mock_set(struct mock *mock, uint64_t address, const char *field, uint64_t value);
uint64_t mock_get(struct mock *mock, uint64_t address, const char *field);
uint32_t mock_offset_of(struct mock *mock, const char *field);
uint32_t mock_size_of(struct mock *mock, const char *type);

/* ---- The descriptor ---------------------------------------------------------------------------------------------- */

/* Sets a global and has it published. */
void mock_global(struct mock *mock, const char *name, uint64_t value);

/* The version that the descriptor states, as a number where it is one, else as a text; NULL: no such contract. */
void mock_contract(struct mock *mock, const char *name, const char *version);

/*
 * Keeps a name out of the descriptor: a field "RangeSection.Flags", a size "Bucket.!", a type with all its fields
 * "RangeSection", a global, or a contract with all that belongs to it "RuntimeTypeSystem".
 */
void mock_hide(struct mock *mock, const char *name);

/*
 * A sub-descriptor: a descriptor of its own, in plain memory, with the JSON and the pointer data given. The main one
 * leads to it through a variable, whose address is returned. `json` NULL: the variable holds null, as the runtime's
 * does until the garbage collector is initialised.
 */
uint64_t mock_sub_descriptor(struct mock *mock, const char *name, const char *json, const uint64_t *pointers,
                             size_t pointer_count);

enum mock_symbols {
    MOCK_SYMBOLS_GNU_HASH, /* DT_GNU_HASH alone */
    MOCK_SYMBOLS_HASH,     /* DT_HASH alone */
    MOCK_SYMBOLS_BOTH,
    MOCK_SYMBOLS_NONE, /* the image does not export the descriptor */
};

struct mock_publish_options {
    enum mock_symbols symbols;
    const char *path; /* of the image; NULL: /mock/libcoreclr.so */
    unsigned schema;  /* "version" in the JSON; 0: that of the version of .NET */
    const char *json; /* instead of what the mock would write */
    bool no_image;    /* put the descriptor into plain memory: it can be found by its address alone */
};

/*
 * Writes the descriptor into an ELF image that exports it. Once, and last, though memory may still be written to.
 * Returns the descriptor's address. `options` may be NULL.
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
 * Puts a range into the map; returns the address of its RangeSection. Pointers that lead to a collectible section are
 * tagged. The other verbs do this by themselves.
 */
uint64_t mock_section_add(struct mock *mock, const struct mock_section *section);

/* Marks a section as being deleted: nothing in its range is code any more. */
void mock_section_delete(struct mock *mock, uint64_t section);

/*
 * The first of the section's fragments, which stand one behind the other, one for each chunk; and the size of a chunk.
 */
uint64_t mock_section_fragments(const struct mock *mock, uint64_t section, size_t *ret_count, uint64_t *ret_stride);
uint64_t mock_chunk_size(const struct mock *mock);
unsigned mock_map_levels(const struct mock *mock);

/*
 * Address of the RangeSectionMap, and of the slot of a level for an address (1 is innermost); 0 where no table is
 * there.
 */
uint64_t mock_map_address(const struct mock *mock);
uint64_t mock_map_slot(struct mock *mock, uint64_t address, unsigned level);

/* ---- JIT-compiled code ------------------------------------------------------------------------------------------- */

struct mock_heap_options {
    uint64_t begin; /* of the range; 0: a free place */
    uint64_t size;
    bool collectible;   /* a heap of dynamic methods */
    bool interpreter;   /* of byte code that is interpreted: its methods have no funclets */
    uint64_t map_slack; /* the nibble map begins that many bytes before the range */
};

struct mock_heap {
    uint64_t begin, end; /* of the range */
    bool interpreter;
    uint64_t section, node; /* its RangeSection and CodeHeapListNode */
    uint64_t map_base, header_map;
    uint64_t cursor; /* the first free byte */
    uint64_t last_start;
    struct mock *mock;
};

/* A range of code with a nibble map. It is the mock's; so is what other verbs return. */
struct mock_heap *mock_heap_create(struct mock *mock, const struct mock_heap_options *options);

enum mock_clause_flags {
    MOCK_CLAUSE_TYPED = 0,
    MOCK_CLAUSE_FILTER = 1,
    MOCK_CLAUSE_FINALLY = 2,
    MOCK_CLAUSE_FAULT = 4,
    MOCK_CLAUSE_DUPLICATED = 8,
    MOCK_CLAUSE_CACHED_CLASS = 0x10000000, /* JIT-compiled code alone */
};

/* What handles exceptions of a part of a method; offsets count from its start. */
struct mock_clause {
    uint32_t flags; /* enum mock_clause_flags */
    uint32_t try_start, try_end, handler_start, handler_end;
    uint64_t what; /* of a FILTER its offset, of a CACHED_CLASS its TypeHandle, else the class token */
};

struct mock_method {
    uint64_t size;            /* of the method's body; rounded up to what its unwind information can tell */
    const uint64_t *funclets; /* their sizes; they follow the body */
    size_t funclet_count;
    uint64_t method_desc;
    unsigned alignment;                /* of the start; 0 is 16; at least 4 */
    uint64_t skip;                     /* bytes that stay free before it */
    uint64_t tail;                     /* bytes of its block behind the code */
    const struct mock_clause *clauses; /* copied */
    size_t clause_count;
    bool no_debug_info, no_gc_info;
};

/* Returns the start of the code. */
uint64_t mock_method(struct mock_heap *heap, const struct mock_method *method);

/* The EEJitManager; and the interpreter's, once there is a heap of its own. */
uint64_t mock_jit_manager(const struct mock *mock);
uint64_t mock_interpreter_manager(const struct mock *mock);

/* The RealCodeHeader, or InterpreterRealCodeHeader, of the method that starts at `start`. */
uint64_t mock_method_header(struct mock_heap *heap, uint64_t start);

/* A block of stubs, `kind` being the runtime's number for them (StubCodeBlockKind). */
uint64_t mock_stub(struct mock_heap *heap, unsigned kind, uint64_t size);

/* Frees a method or stub block, as the runtime does for dynamic methods. */
void mock_code_free(struct mock_heap *heap, uint64_t start);

/* The rules by which the runtime writes its nibble map, for a map on its own. */
void mock_nibble_set(struct mock *mock, uint64_t header_map, uint64_t map_base, uint64_t start, uint64_t size);
void mock_nibble_delete(struct mock *mock, uint64_t header_map, uint64_t map_base, uint64_t start);

/*
 * A range of stubs that a range list tells the kind of. Returns the section; *ret_begin, which may be NULL, the range.
 */
uint64_t mock_range_list(struct mock *mock, uint64_t size, unsigned kind, bool collectible, uint64_t *ret_begin);

/* ---- Precodes ---- */

/*
 * Pages of code and pages of data take turns, all of a range list. The pieces of a code page are all the same code;
 * what one stands for is in the data page behind it, at the same place. Pieces that are not in use have data of zeros.
 */
enum mock_precode {
    MOCK_PRECODE_STUB,
    MOCK_PRECODE_PINVOKE,
    MOCK_PRECODE_FIXUP, /* in precodes of their own */
    MOCK_PRECODE_THIS_PTR_RET_BUF,
    MOCK_PRECODE_UM_ENTRY,
    MOCK_PRECODE_INTERPRETER,
    MOCK_PRECODE_DYNAMIC_HELPER,
    MOCK_PRECODE_COUNT
};

struct mock_precodes {
    uint64_t begin, end;    /* of the range */
    uint64_t section, list; /* its RangeSection and CodeRangeMapRangeList */
    uint64_t next;          /* piece that is free */
    struct mock *mock;
};

/* A range with that many pages of code, of fixup precodes or of all others. */
struct mock_precodes *mock_precodes_create(struct mock *mock, bool fixup, size_t pages, bool collectible);

/* A precode; returns its entry point, a code pointer. */
uint64_t mock_precode(struct mock_precodes *precodes, enum mock_precode kind, uint64_t method_desc);

/* The data of the precode at an address, and the distance from one precode to the next. */
uint64_t mock_precode_data(const struct mock *mock, uint64_t address);
uint64_t mock_precode_size(const struct mock *mock);

/* Publishes PrecodeMachineDescriptor as values, as supplements do, and no PlatformMetadata. */
void mock_precode_values(struct mock *mock);

/* A PortableEntryPoint, for targets that set FeaturePortableEntrypoints. */
uint64_t mock_portable_entry_point(struct mock *mock, uint64_t method_desc);

/* ---- Hash maps --------------------------------------------------------------------------------------------------- */

/* Writes an empty HashMap with that many buckets at `map`, which has room for a HashMap. */
void mock_hash_map_init(struct mock *mock, uint64_t map, uint32_t bucket_count);

/* Inserts by the runtime's rule. `key` and `value` are what is stored; false when the map is full. */
bool mock_hash_map_insert(struct mock *mock, uint64_t map, uint64_t key, uint64_t value);

/* The same for a map of pointers: the value is stored shifted right by one. */
bool mock_ptr_hash_map_insert(struct mock *mock, uint64_t map, uint64_t key, uint64_t pointer);

/* ---- ReadyToRun images ------------------------------------------------------------------------------------------- */

enum mock_r2r_tables {
    MOCK_R2R_NO_HEADER,      /* nothing but what ReadyToRunInfo points to: only prepared methods can be told apart */
    MOCK_R2R_METHODDEFS = 1, /* section 103 */
    MOCK_R2R_INSTANCES = 2,  /* section 109 */
};

struct mock_r2r_options {
    const char *path;      /* NULL: /mock/r2r.dll */
    uint64_t begin;        /* 0: a free place */
    unsigned tables;       /* enum mock_r2r_tables */
    uint32_t bucket_count; /* of the map from entry points to MethodDescs; 0: roomy */
    uint64_t thunk_size;   /* of the delay-load thunks; 0: none */
    bool composite;        /* a component of a composite image, whose ReadyToRunInfo has the map and the header */
    uint16_t major, minor; /* of the image's format, which also tells the version of its GC info; 0: some that exist */
    bool sentinel_counted; /* NumRuntimeFunctions counts the sentinel too */
    const void *metadata;  /* copied into the image; may be NULL */
    size_t metadata_size;
};

struct mock_r2r {
    uint64_t begin, end;
    uint64_t section, module, info; /* RangeSection, Module, ReadyToRunInfo; known once finished, the module before */
    uint64_t functions;             /* RUNTIME_FUNCTIONs */
    uint32_t function_count, first_cold;
    uint64_t hot_cold_map, entry_point_map;
    uint64_t thunks, thunks_end;
    uint64_t header, methoddefs, instances; /* READYTORUN_HEADER and the two tables; 0 where there are none */
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
    const void *instance; /* its signature, where it is in the table of instances; NULL where not */
    size_t instance_size;
    bool fixups; /* its entry says that fixups follow */
    const struct mock_clause *clauses;
    size_t clause_count;
    bool no_debug_info;
};

/* Adds a method behind the last one; returns its number. Everything is copied. */
size_t mock_r2r_method(struct mock_r2r *r2r, const struct mock_r2r_method *method);

/* Lays the image out and puts it into the map. */
void mock_r2r_finish(struct mock_r2r *r2r);

/* The start of method `number` of a finished image. */
uint64_t mock_r2r_start(const struct mock_r2r *r2r, size_t number);

/*
 * A ReadyToRun image from a file, as crossgen2 writes it, loaded and put into the map; its contents are what they are,
 * so nothing in mock_functions() tells of them. The mock must have seed 0, whose structures are laid out as in such
 * files, and the image's architecture.
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

/* ---- Tables of ReadyToRun images, for a buffer on its own -------------------------------------------------------- */

/* Bytes that grow; `data` is for free(). */
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
    bool flat; /* the image is laid out as its file, else as a loader does */
};

/* A Module whose PE image holds the metadata. Returns the Module's address. */
uint64_t mock_module(struct mock *mock, const struct mock_module_options *options);

/* A MethodTable of `module` for the TypeDef with that rid. */
uint64_t mock_method_table(struct mock *mock, uint64_t module, uint32_t typedef_rid);

/* The same over `count` type arguments, which are type handles. */
uint64_t mock_generic_method_table(struct mock *mock, uint64_t module, uint32_t typedef_rid, const uint64_t *arguments,
                                   size_t count);

/* What the flags of a MethodTable say besides: a type that has an element type of its own. */
void mock_make_primitive(struct mock *mock, uint64_t method_table);

/*
 * The MethodTable of an array of `rank` dimensions, 0 for a vector; the handle of a pointer or reference (by its
 * element type).
 */
uint64_t mock_array_method_table(struct mock *mock, uint64_t module, uint64_t element, unsigned rank);
uint64_t mock_type_desc(struct mock *mock, uint8_t element_type, uint64_t argument);

/*
 * `count` MethodDescs in one chunk for the MethodDefs from `rid` on, which share a token range; the first one's
 * address.
 */
uint64_t mock_method_descs(struct mock *mock, uint64_t method_table, uint32_t rid, size_t count, uint64_t *ret_stride);

/* A MethodDesc over `count` type arguments of the method. */
uint64_t mock_instantiated_method_desc(struct mock *mock, uint64_t method_table, uint32_t rid,
                                       const uint64_t *arguments, size_t count);

/*
 * Gives a method another version of its code, compiled for a tier by the runtime's number; `code` is a code pointer.
 * The first version's tier (all ones: not known) is told with a `code` of 0.
 */
void mock_code_version(struct mock *mock, uint64_t method_desc, uint64_t code, uint32_t tier);

/* A MethodDesc of a dynamic method. */
uint64_t mock_dynamic_method_desc(struct mock *mock, const char *name);

/*
 * The same with a signature, which is copied. `table`: whose module its tokens belong to. `stub`: one of the runtime's
 * own.
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

/* A run of code: a method's body, one of its funclets, a part of it that is cold, or stubs. */
struct mock_function {
    uint64_t begin, end;
    enum mock_code code;
    const char *stub_kind; /* of stubs: the name of their CodeKind */
    uint64_t method;       /* where the method's hot code starts */
    uint64_t method_desc;  /* 0: not prepared */
    uint64_t offset;       /* GetRelativeOffset of `begin` */
    uint64_t hot_size, cold_start, cold_size;
    uint64_t unwind_info; /* its RUNTIME_FUNCTION */
    uint32_t rid;
    bool cold;
    bool funclet;        /* as the runtime decides it */
    uint64_t debug_info; /* of the method; 0: none */
    uint64_t gc_info;    /* of the method; 0: none */
    unsigned gc_info_version;
    const struct mock_clause *clauses; /* of the method; the mock's */
    size_t clause_count;
};

/* All that is code, sorted by begin. Good until the next verb. */
const struct mock_function *mock_functions(struct mock *mock, size_t *ret_count);

/* What is at `address`; NULL where nothing is. */
const struct mock_function *mock_function_at(struct mock *mock, uint64_t address);

/* ---- Carriers ---------------------------------------------------------------------------------------------------- */

/* The target as memory for cdacq_target_open_memory: good until the next verb. */
const struct cdacq_memory *mock_memory(struct mock *mock);

/* The target as an ELF core file. False on failure; *err, which may be NULL, says why. */
bool mock_write_core(struct mock *mock, const char *path, struct cdacq_error *err);

#ifdef __cplusplus
}
#endif

#endif
