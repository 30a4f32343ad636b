/*
 * metadata.h: the physical layout of .NET metadata: streams, heaps, tables, and the rows that naming a method needs.
 * Reads the compressed `#~` and the uncompressed `#-` tables (these with their indirection tables, which
 * Reflection.Emit and edit-and-continue write). Opening reads only the headers, and a row or a search only its own
 * bytes. Nothing is allocated except for long blobs.
 *
 * The input is not trusted: row counts must fit their stream, and indexes are checked when used. A row id (`rid`)
 * counts from 1, and 0 is none; a token is table << 24 | rid. Every function returns CDACQ_OK, ERR_FORMAT
 * (malformed), ERR_MEMORY (the source lacks these bytes) or ERR_FUEL (a linear search of more than METADATA_SCAN_CAP
 * rows); outputs are unchanged on failure. An opened `struct metadata` is immutable; threads may share it if they may
 * share its source. Source: ECMA-335 II.22 (tables), II.24 (physical layout); dotnet/runtime
 * docs/design/specs/PortablePdb-Metadata.md (the tables of portable PDBs).
 */
#ifndef CDACQ_FORMATS_METADATA_H
#define CDACQ_FORMATS_METADATA_H

#include "formats/bytes.h"

enum metadata_table {
    METADATA_MODULE = 0x00,
    METADATA_TYPE_REF = 0x01,
    METADATA_TYPE_DEF = 0x02,
    METADATA_FIELD_PTR = 0x03,
    METADATA_FIELD = 0x04,
    METADATA_METHOD_PTR = 0x05,
    METADATA_METHOD_DEF = 0x06,
    METADATA_PARAM_PTR = 0x07,
    METADATA_PARAM = 0x08,
    METADATA_INTERFACE_IMPL = 0x09,
    METADATA_MEMBER_REF = 0x0a,
    METADATA_CONSTANT = 0x0b,
    METADATA_CUSTOM_ATTRIBUTE = 0x0c,
    METADATA_FIELD_MARSHAL = 0x0d,
    METADATA_DECL_SECURITY = 0x0e,
    METADATA_CLASS_LAYOUT = 0x0f,
    METADATA_FIELD_LAYOUT = 0x10,
    METADATA_STAND_ALONE_SIG = 0x11,
    METADATA_EVENT_MAP = 0x12,
    METADATA_EVENT_PTR = 0x13,
    METADATA_EVENT = 0x14,
    METADATA_PROPERTY_MAP = 0x15,
    METADATA_PROPERTY_PTR = 0x16,
    METADATA_PROPERTY = 0x17,
    METADATA_METHOD_SEMANTICS = 0x18,
    METADATA_METHOD_IMPL = 0x19,
    METADATA_MODULE_REF = 0x1a,
    METADATA_TYPE_SPEC = 0x1b,
    METADATA_IMPL_MAP = 0x1c,
    METADATA_FIELD_RVA = 0x1d,
    METADATA_ENC_LOG = 0x1e,
    METADATA_ENC_MAP = 0x1f,
    METADATA_ASSEMBLY = 0x20,
    METADATA_ASSEMBLY_PROCESSOR = 0x21,
    METADATA_ASSEMBLY_OS = 0x22,
    METADATA_ASSEMBLY_REF = 0x23,
    METADATA_ASSEMBLY_REF_PROCESSOR = 0x24,
    METADATA_ASSEMBLY_REF_OS = 0x25,
    METADATA_FILE = 0x26,
    METADATA_EXPORTED_TYPE = 0x27,
    METADATA_MANIFEST_RESOURCE = 0x28,
    METADATA_NESTED_CLASS = 0x29,
    METADATA_GENERIC_PARAM = 0x2a,
    METADATA_METHOD_SPEC = 0x2b,
    METADATA_GENERIC_PARAM_CONSTRAINT = 0x2c,
    /* of portable PDBs */
    METADATA_DOCUMENT = 0x30,
    METADATA_METHOD_DEBUG_INFORMATION = 0x31,
    METADATA_LOCAL_SCOPE = 0x32,
    METADATA_LOCAL_VARIABLE = 0x33,
    METADATA_LOCAL_CONSTANT = 0x34,
    METADATA_IMPORT_SCOPE = 0x35,
    METADATA_STATE_MACHINE_METHOD = 0x36,
    METADATA_CUSTOM_DEBUG_INFORMATION = 0x37,
    METADATA_TABLE_COUNT = 0x38,
};

enum {
    METADATA_COLUMN_CAP = 9,       /* Assembly and AssemblyRef have the most */
    METADATA_STRING_CAP = 4096,    /* compilers and the runtime write at most 1023 bytes */
    METADATA_BLOB_CAP = 64 * 1024, /* of a signature */
    METADATA_SCAN_CAP = 1 << 20,   /* rows that one linear search reads */
};

struct metadata_table_layout {
    uint64_t offset; /* of row 1 in the blob */
    uint32_t rows;
    uint8_t row_size;
    uint8_t column_offset[METADATA_COLUMN_CAP];
    uint8_t column_width[METADATA_COLUMN_CAP]; /* 2 or 4 */
};

struct metadata_heap {
    uint64_t offset;
    uint32_t size;
};

struct metadata {
    struct bytes bytes; /* all of it, from "BSJB"; must outlive this */
    bool uncompressed;  /* a `#-` stream */
    uint64_t sorted;    /* a bit for each table, from the stream */
    struct metadata_heap strings, guids, blobs;
    struct metadata_heap pdb; /* the #Pdb stream; only a portable PDB has one */
    struct metadata_table_layout tables[METADATA_TABLE_COUNT];
};

static inline uint32_t metadata_token(enum metadata_table table, uint32_t rid)
{
    return (uint32_t)table << 24 | rid;
}

static inline uint32_t metadata_rid(uint32_t token)
{
    return token & 0xffffff;
}

static inline uint32_t metadata_token_table(uint32_t token)
{
    return token >> 24;
}

enum cdacq_status metadata_open(const struct bytes *bytes, struct metadata *ret);

/* 0 for an absent table. */
static inline uint32_t metadata_row_count(const struct metadata *metadata, enum metadata_table table)
{
    return metadata->tables[table].rows;
}

/*
 * How many rows a search by key in `table` may read. Tables of a `#~` stream are sorted by definition, those of a `#-`
 * stream if it says so.
 */
uint32_t metadata_search_cost(const struct metadata *metadata, enum metadata_table table);

/* ---- Heaps ---- */

/*
 * The string at `index`, not NUL-terminated: any bytes. It is in a window of the source or in `buffer`, and is valid
 * until the next call on the metadata.
 */
enum cdacq_status metadata_string(const struct metadata *metadata, uint32_t index, char buffer[METADATA_STRING_CAP],
                                  const char **ret, size_t *ret_length);

/* Whether the string at `index` is exactly `string`. */
enum cdacq_status metadata_string_equals(const struct metadata *metadata, uint32_t index, const char *string,
                                         size_t length, bool *ret);

/* A copy of a blob. Must not be moved once filled. The caller first sets `allocated` to NULL. */
struct metadata_blob {
    const uint8_t *data;
    size_t length;
    uint8_t *allocated;
    uint8_t small[256];
};

enum cdacq_status metadata_blob_read(const struct metadata *metadata, uint32_t index, struct metadata_blob *ret);

/* Where in the source the bytes of a blob of any length are. They are inside the heap. */
enum cdacq_status metadata_blob_extent(const struct metadata *metadata, uint32_t index, uint64_t *ret_offset,
                                       uint32_t *ret_length);

/* The GUID at `index` of #GUID, which counts from 1. */
enum cdacq_status metadata_guid(const struct metadata *metadata, uint32_t index, uint8_t ret[16]);
void metadata_blob_deinit(struct metadata_blob *blob);
#define CLEANUP_METADATA_BLOB __attribute__((cleanup(metadata_blob_deinit)))

/*
 * ---- Rows ----
 *
 * Each struct holds the first columns of a row, in their order (II.22). Names, signatures and the like are indexes into
 * their heaps; a list is the first rid of it; any other reference is a token, of rid 0 for none.
 */

/* The first `size` / 4 columns of a row, which `ret`, a struct of as many uint32_t, receives. */
enum cdacq_status metadata_row(const struct metadata *metadata, enum metadata_table table, uint32_t rid, void *ret,
                               size_t size);

#define METADATA_ROW_READER(name, table)                                                           \
    static inline enum cdacq_status metadata_##name(const struct metadata *metadata, uint32_t rid, \
                                                    struct metadata_##name *ret)                   \
    {                                                                                              \
        return metadata_row(metadata, METADATA_##table, rid, ret, sizeof *ret);                    \
    }

struct metadata_module {
    uint32_t generation, name;
    uint32_t mvid; /* index into #GUID, from 1 */
};

struct metadata_type_ref {
    uint32_t scope; /* Module, ModuleRef, AssemblyRef, or the TypeRef that encloses it */
    uint32_t name, namespace_name;
};

struct metadata_type_def {
    uint32_t flags, name, namespace_name;
    uint32_t extends; /* TypeDef, TypeRef or TypeSpec */
};

struct metadata_method_def {
    uint32_t rva, impl_flags, flags, name, signature;
};

struct metadata_member_ref {
    uint32_t parent; /* TypeDef, TypeRef, ModuleRef, MethodDef or TypeSpec */
    uint32_t name, signature;
};

struct metadata_param {
    uint32_t flags, sequence, name;
};

struct metadata_custom_attribute {
    uint32_t parent;
    uint32_t constructor; /* MethodDef or MemberRef */
    uint32_t value;
};

struct metadata_module_ref {
    uint32_t name;
};

struct metadata_type_spec {
    uint32_t signature;
};

struct metadata_stand_alone_sig {
    uint32_t signature;
};

enum { ASSEMBLY_FLAG_PUBLIC_KEY = 1 }; /* of a reference: the key is whole, not its token */

struct metadata_assembly {
    uint32_t hash_algorithm, version[4], flags, key, name, culture;
};

struct metadata_assembly_ref {
    uint32_t version[4], flags, key, name, culture;
};

struct metadata_document {
    uint32_t name; /* index into #Blob: a document name blob */
    uint32_t hash_algorithm, hash;
    uint32_t language; /* index into #GUID */
};

struct metadata_method_debug_information {
    uint32_t document; /* rid; 0 if the sequence points name their documents, or if there are none */
    uint32_t sequence_points;
};

struct metadata_local_scope {
    uint32_t method;        /* rid of a MethodDef */
    uint32_t import_scope;  /* rid */
    uint32_t variables;     /* the first rid of its list; that of the next scope ends it */
    uint32_t constants;     /* likewise */
    uint32_t start, length; /* IL offsets */
};

struct metadata_local_variable {
    uint32_t attributes, index, name;
};

struct metadata_custom_debug_information {
    uint32_t parent; /* token */
    uint32_t kind;   /* index into #GUID */
    uint32_t value;  /* index into #Blob */
};

struct metadata_generic_param {
    uint32_t number, flags;
    uint32_t owner; /* TypeDef or MethodDef */
    uint32_t name;
};

METADATA_ROW_READER(module, MODULE)
METADATA_ROW_READER(type_ref, TYPE_REF)
METADATA_ROW_READER(type_def, TYPE_DEF)
METADATA_ROW_READER(method_def, METHOD_DEF)
METADATA_ROW_READER(member_ref, MEMBER_REF)
METADATA_ROW_READER(param, PARAM)
METADATA_ROW_READER(custom_attribute, CUSTOM_ATTRIBUTE)
METADATA_ROW_READER(module_ref, MODULE_REF)
METADATA_ROW_READER(type_spec, TYPE_SPEC)
METADATA_ROW_READER(stand_alone_sig, STAND_ALONE_SIG)
METADATA_ROW_READER(assembly, ASSEMBLY)
METADATA_ROW_READER(assembly_ref, ASSEMBLY_REF)
METADATA_ROW_READER(generic_param, GENERIC_PARAM)
METADATA_ROW_READER(document, DOCUMENT)
METADATA_ROW_READER(method_debug_information, METHOD_DEBUG_INFORMATION)
METADATA_ROW_READER(local_scope, LOCAL_SCOPE)
METADATA_ROW_READER(local_variable, LOCAL_VARIABLE)
METADATA_ROW_READER(custom_debug_information, CUSTOM_DEBUG_INFORMATION)

enum cdacq_status metadata_mvid(const struct metadata *metadata, uint8_t ret[16]);

/* The name (index into #Strings) of the assembly; 0 if the metadata describes a module without one. */
enum cdacq_status metadata_assembly_name(const struct metadata *metadata, uint32_t *ret_name);

/* ---- Relations ---- */

/*
 * The first row of `table` whose `column` holds `key`, as it is stored; *ret_rid is 0 if there is none. In a sorted
 * table the others follow it.
 */
enum cdacq_status metadata_find_row(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                    uint32_t key, uint32_t *ret_rid);

/* The TypeDef that owns a MethodDef. */
enum cdacq_status metadata_method_owner(const struct metadata *metadata, uint32_t method, uint32_t *ret_type);

/* The TypeDef that encloses a TypeDef; 0 for a type that is not nested. */
enum cdacq_status metadata_enclosing(const struct metadata *metadata, uint32_t type, uint32_t *ret_type);

/* The generic parameters of a TypeDef or MethodDef. Those of a nested type begin with those of the enclosing type. */
struct metadata_generics {
    uint32_t owner; /* coded, as the table stores it */
    uint32_t first; /* rid; 0 if the table is not sorted and has to be searched for each */
    uint32_t count;
};

enum cdacq_status metadata_generics(const struct metadata *metadata, uint32_t owner_token,
                                    struct metadata_generics *ret);

/* The rid of parameter `number`, from 0; *ret_rid is 0 if there is none. */
enum cdacq_status metadata_generics_at(const struct metadata *metadata, const struct metadata_generics *generics,
                                       uint32_t number, uint32_t *ret_rid);

/*
 * The methods of a TypeDef: elements [begin, end) of the MethodPtr table, or of MethodDef if there is no MethodPtr
 * (only a `#-` stream has one).
 */
enum cdacq_status metadata_methods(const struct metadata *metadata, uint32_t type, uint32_t *ret_begin,
                                   uint32_t *ret_end);

/* The fields of a TypeDef: rids [begin, end). FORMAT if the table is indirect. */
enum cdacq_status metadata_fields(const struct metadata *metadata, uint32_t type, uint32_t *ret_begin,
                                  uint32_t *ret_end);

/* The Param of parameter `number` of a MethodDef, from 1; *ret_rid is 0 if there is none, or if there is ParamPtr. */
enum cdacq_status metadata_parameter(const struct metadata *metadata, uint32_t method, uint32_t number,
                                     uint32_t *ret_rid);

/* The row of metadata_find_row() that follows *rid (0: the first); *rid becomes 0 at the end. */
enum cdacq_status metadata_next_row(const struct metadata *metadata, enum metadata_table table, unsigned column,
                                    uint32_t key, uint32_t *rid);

/*
 * The TypeDef of the next NestedClass row after *rid (0: the first) that has this enclosing TypeDef; *rid becomes 0 at
 * the end. The table is not sorted by it: all calls together look at each row.
 */
enum cdacq_status metadata_next_nested(const struct metadata *metadata, uint32_t enclosing, uint32_t *rid,
                                       uint32_t *ret_type);

/* The next CustomAttribute after *rid (0: the first) of a MethodDef, TypeDef or Param; *rid becomes 0 at the end. */
enum cdacq_status metadata_next_attribute(const struct metadata *metadata, uint32_t parent_token, uint32_t *rid);

/* The same for the MethodImpls of a TypeDef. */
enum cdacq_status metadata_next_method_impl(const struct metadata *metadata, uint32_t type, uint32_t *rid);

struct metadata_method_impl {
    uint32_t type;              /* rid of the TypeDef */
    uint32_t body, declaration; /* MethodDef or MemberRef */
};

METADATA_ROW_READER(method_impl, METHOD_IMPL)

/* A MethodDef or MemberRef, as a MemberRef: the parent of a MethodDef is the type that owns it. FORMAT for others. */
enum cdacq_status metadata_method_reference(const struct metadata *metadata, uint32_t token,
                                            struct metadata_member_ref *ret);

#endif
