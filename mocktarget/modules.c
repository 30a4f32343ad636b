/*
 * modules.c: Modules with their PE images, and the structures that lead from a MethodDesc to its module and token.
 * Source: dotnet/runtime docs/design/datacontracts/{Loader,RuntimeTypeSystem}.md; ECMA-335 II.25 for the images.
 */
#include <stdio.h>

#include "mocktarget/mock.h"

enum { LAYOUT_MAPPED = 1, FLAT_TEXT = MOCK_PE_HEADERS, MAPPED_TEXT = 0x2000, OPTIMIZATION_ALLOWED = 0x800 };

/* ---- PE images: little-endian on every target ---- */

static void le(struct mock *mock, uint64_t address, unsigned width, uint64_t value)
{
    uint8_t bytes[8];
    store_u64(bytes, value, false);
    mock_write(mock, address, bytes, width);
}

static void write_directory(struct mock *mock, uint64_t directories, unsigned i, uint32_t rva, uint32_t size)
{
    le(mock, directories + i * 8, 4, rva);
    le(mock, directories + i * 8 + 4, 4, size);
}

static void write_clr_header(struct mock *mock, uint64_t address, const struct mock_pe *pe)
{
    le(mock, address, 4, MOCK_CLR_HEADER);
    le(mock, address + 4, 2, 2); /* runtime version 2.5 */
    le(mock, address + 6, 2, 5);
    write_directory(mock, address + 8, 0, pe->metadata, pe->metadata_size);
    le(mock, address + 16, 4, pe->managed_native ? 4 : 1); /* IL library, or IL only */
    write_directory(mock, address + 64, 0, pe->managed_native, pe->managed_native_size);
}

static void zero(struct mock *mock, uint64_t address, uint64_t size)
{
    uint8_t *bytes = mock_bytes_at(mock, address, size);
    if (bytes)
        memset(bytes, 0, size);
}

void mock_pe_write(struct mock *mock, uint64_t address, const struct mock_pe *pe, bool flat)
{
    bool wide = mock->word == 8;
    uint64_t coff = address + 0x84, optional = coff + 20, directories = optional + (wide ? 112 : 96);
    uint64_t section = directories + 16 * 8, clr = address + pe->clr - (flat ? pe->text - pe->text_offset : 0);
    zero(mock, address, MOCK_PE_HEADERS);
    mock_write(mock, address, "MZ", 2);
    le(mock, address + 0x3c, 4, 0x80);
    mock_write(mock, address + 0x80, "PE\0", 4);
    le(mock, coff, 2, wide ? 0x8664 : 0x14c);
    le(mock, coff + 2, 2, 1);
    le(mock, coff + 4, 4, 0x80000000 | mock_random(mock, 0x7fffffff));
    le(mock, coff + 16, 2, section - optional);
    le(mock, coff + 18, 2, 0x2022);
    le(mock, optional, 2, wide ? 0x20b : 0x10b);
    le(mock, optional + 32, 4, 0x1000); /* SectionAlignment, FileAlignment */
    le(mock, optional + 36, 4, 0x200);
    le(mock, optional + 56, 4, pe->size);
    le(mock, optional + 60, 4, MOCK_PE_HEADERS);
    le(mock, directories - 4, 4, 16);
    write_directory(mock, directories, 14, pe->clr, MOCK_CLR_HEADER);
    mock_write(mock, section, ".text\0\0", 8);
    le(mock, section + 8, 4, pe->size - pe->text);
    le(mock, section + 12, 4, pe->text);
    le(mock, section + 16, 4, align_up(pe->size - pe->text, 0x200));
    le(mock, section + 20, 4, pe->text_offset);
    le(mock, section + 36, 4, 0x60000020); /* code, execute, read */
    zero(mock, clr, MOCK_CLR_HEADER);
    write_clr_header(mock, clr, pe);
}

/* ---- Modules ---- */

/* UTF-16 in the target's byte order, as the runtime stores paths. */
static uint64_t put_utf16(struct mock *mock, const char *text)
{
    size_t length = strlen(text);
    uint64_t at = mock_alloc(mock, 2 * (length + 1), 2);
    for (size_t i = 0; i < length; i++)
        mock_write_uint(mock, at + 2 * i, 2, (uint8_t)text[i]);
    return at;
}

uint64_t mock_module_object(struct mock *mock, const char *path)
{
    uint64_t module = mock_object(mock, T_Module, 0);
    uint64_t text = put_utf16(mock, path);
    mock_put(mock, module, F_Module_Path, text);
    mock_put(mock, module, F_Module_DynamicILBlobTable, 0);
    mock_put(mock, module, F_Module_Flags, OPTIMIZATION_ALLOWED);
    return module;
}

void mock_module_place(struct mock *mock, uint64_t module, uint64_t base, uint32_t size, bool flat)
{
    uint64_t assembly = mock_object(mock, T_PEAssembly, 0), image = mock_object(mock, T_PEImage, 0);
    uint64_t layout = mock_object(mock, T_PEImageLayout, 0);
    mock_put(mock, layout, F_PEImageLayout_Base, base);
    mock_put(mock, layout, F_PEImageLayout_Size, size);
    mock_put(mock, layout, F_PEImageLayout_Flags, (flat ? 0x172 : 6 | LAYOUT_MAPPED));
    mock_put(mock, image, F_PEImage_LoadedImageLayout, layout);
    mock_put(mock, assembly, F_PEAssembly_PEImage, image);
    mock_put(mock, assembly, F_PEAssembly_MDImportIsRW, 0);
    mock_put(mock, module, F_Module_PEAssembly, assembly);
    mock_put(mock, module, F_Module_Base, base);
}

uint64_t mock_module(struct mock *mock, const struct mock_module_options *options)
{
    const char *path = options->path ? options->path : "/mock/module.dll";
    uint64_t module = mock_module_object(mock, path);
    if (!options->metadata)
        return module;
    uint32_t content = MOCK_CLR_HEADER + (uint32_t)align_up(options->metadata_size, 16);
    struct mock_pe pe = {
        .size = (uint32_t)align_up(MAPPED_TEXT + content, 0x1000),
        .text = MAPPED_TEXT,
        .text_offset = FLAT_TEXT,
        .clr = MAPPED_TEXT,
        .metadata = MAPPED_TEXT + MOCK_CLR_HEADER,
        .metadata_size = (uint32_t)options->metadata_size,
    };
    uint32_t file_size = FLAT_TEXT + (uint32_t)align_up(pe.size - pe.text, 0x200);
    uint32_t size = options->flat ? file_size : pe.size;
    uint64_t base = mock_map(mock, 0, size, MOCK_READ, path, 0);
    mock_pe_write(mock, base, &pe, options->flat);
    uint64_t text = base + (options->flat ? pe.text_offset : pe.text);
    mock_write(mock, text + MOCK_CLR_HEADER, options->metadata, options->metadata_size);
    mock_module_place(mock, module, base, size, options->flat);
    return module;
}

/* ---- Types and methods ---- */

uint64_t mock_method_table(struct mock *mock, uint64_t module, uint32_t typedef_rid)
{
    uint64_t table = mock_object(mock, T_MethodTable, 0);
    mock_put(mock, table, F_MethodTable_Module, module);
    mock_put(mock, table, F_MethodTable_MTFlags2, (uint64_t)typedef_rid << 8 | mock_random(mock, 256));
    mock_put_optional(mock, table, F_MethodTable_TypeDefRid, typedef_rid);
    mock_put(mock, table, F_MethodTable_BaseSize, 0x18);
    return table;
}

/* A chunk with room for `count` objects of `stride` bytes; returns the first. */
static uint64_t new_chunk(struct mock *mock, uint64_t method_table, uint32_t token_range, size_t count, uint64_t stride)
{
    uint64_t chunk = mock_object(mock, T_MethodDescChunk, count * stride);
    uint64_t alignment = mock->globals[G_MethodDescAlignment];
    if ((count - 1) * stride / alignment > UINT8_MAX)
        return mock_fail(mock, "%zu MethodDescs are too many for a chunk", count);
    mock_put(mock, chunk, F_MethodDescChunk_MethodTable, method_table);
    /* Flags are above the upper bits of the token, if these leave room. */
    uint64_t flags = 24 - mock->globals[G_MethodDescTokenRemainderBitCount] <= 14 ? mock_random(mock, 2) << 14 : 0;
    mock_put(mock, chunk, F_MethodDescChunk_FlagsAndTokenRange, token_range | flags);
    return chunk + mock->sizes[T_MethodDescChunk];
}

/* The fields that every MethodDesc has. */
static void put_method_desc(struct mock *mock, uint64_t desc, uint64_t remainder, uint64_t flags)
{
    mock_put(mock, desc, F_MethodDesc_Flags3AndTokenRemainder, remainder);
    mock_put(mock, desc, F_MethodDesc_ChunkIndex, 0);
    mock_put(mock, desc, F_MethodDesc_Flags, flags);
    mock_put(mock, desc, F_MethodDesc_CodeData, 0);
}

uint64_t mock_method_descs(struct mock *mock, uint64_t method_table, uint32_t rid, size_t count, uint64_t *ret_stride)
{
    unsigned bits = (unsigned)mock->globals[G_MethodDescTokenRemainderBitCount];
    uint64_t stride = mock->sizes[T_MethodDesc];
    if (rid >> bits != (rid + count - 1) >> bits)
        return mock_fail(mock, "rids %#x and %zu more do not share a token range", rid, count - 1);
    uint64_t first = new_chunk(mock, method_table, rid >> bits, count, stride);
    for (size_t i = 0; i < count; i++) {
        uint64_t desc = first + i * stride;
        uint64_t remainder = (rid + i) & ((1u << bits) - 1);
        remainder |= mock_random(mock, 16) << bits;
        put_method_desc(mock, desc, remainder, mock_random(mock, 2) << 3); /* IL, perhaps with a slot of its own */
        mock_put(mock, desc, F_MethodDesc_ChunkIndex, i * stride / mock->globals[G_MethodDescAlignment]);
    }
    if (ret_stride)
        *ret_stride = stride;
    return mock->failed ? 0 : first;
}

static uint64_t write_handles(struct mock *mock, const uint64_t *handles, size_t count)
{
    uint64_t array = mock_alloc(mock, MAX(count, (size_t)1) * mock->word, mock->word);
    for (size_t i = 0; i < count; i++)
        mock_write_pointer(mock, array + i * mock->word, handles[i]);
    return array;
}

uint64_t mock_generic_method_table(struct mock *mock, uint64_t module, uint32_t typedef_rid, const uint64_t *arguments,
                                   size_t count)
{
    enum { GENERIC_INSTANCE = 0x10 };
    uint64_t table = mock_method_table(mock, module, typedef_rid);
    size_t dictionaries = 1 + mock_random(mock, 3); /* one for each type in the hierarchy; the last is its own */
    uint64_t info = mock_alloc(mock, (1 + dictionaries) * mock->word, mock->word);
    mock_put(mock, info, F_GenericsDictInfo_NumDicts, dictionaries);
    mock_put(mock, info, F_GenericsDictInfo_NumTypeArgs, count);
    uint64_t own = write_handles(mock, arguments, count);
    for (size_t i = 1; i <= dictionaries; i++)
        mock_write_pointer(mock, info + i * mock->word, i == dictionaries ? own : 0x10 * i);
    mock_put(mock, table, F_MethodTable_PerInstInfo, info + mock->word);
    mock_put(mock, table, F_MethodTable_MTFlags, GENERIC_INSTANCE);
    return table;
}

void mock_make_primitive(struct mock *mock, uint64_t method_table)
{
    mock_put(mock, method_table, F_MethodTable_MTFlags, 0x70000);
}

uint64_t mock_array_method_table(struct mock *mock, uint64_t module, uint64_t element, unsigned rank)
{
    uint64_t table = mock_method_table(mock, module, 0);
    mock_put(mock, table, F_MethodTable_PerInstInfo, element);
    mock_put(mock, table, F_MethodTable_BaseSize, 3 * mock->word + 8 * rank);
    mock_put(mock, table, F_MethodTable_MTFlags, rank ? 0x80080000 : 0x800a0000);
    return table;
}

uint64_t mock_type_desc(struct mock *mock, uint8_t element_type, uint64_t argument)
{
    uint64_t desc = mock_object(mock, T_ParamTypeDesc, 0);
    mock_put(mock, desc, F_TypeDesc_TypeAndFlags, element_type | mock_random(mock, 256) << 8);
    mock_put(mock, desc, F_ParamTypeDesc_TypeArg, argument);
    return desc | 2;
}

/* A MethodDesc alone in its chunk, with `extra` bytes after it. With a `count`, it has type arguments. */
static uint64_t new_method_desc(struct mock *mock, uint64_t method_table, uint32_t rid, const uint64_t *arguments,
                                size_t count, uint64_t flags, uint64_t extra)
{
    enum { CLASSIFICATION_INSTANTIATED = 5 };
    unsigned bits = (unsigned)mock->globals[G_MethodDescTokenRemainderBitCount];
    uint64_t size = mock->sizes[count ? T_InstantiatedMethodDesc : T_MethodDesc];
    uint64_t desc = new_chunk(mock, method_table, rid >> bits, 1, size + extra);
    put_method_desc(mock, desc, rid & ((1u << bits) - 1), flags | (count ? CLASSIFICATION_INSTANTIATED : 0));
    if (count) {
        mock_put(mock, desc, F_InstantiatedMethodDesc_PerInstInfo, write_handles(mock, arguments, count));
        mock_put(mock, desc, F_InstantiatedMethodDesc_NumGenericArgs, count);
        mock_put(mock, desc, F_InstantiatedMethodDesc_Flags2, 2 + mock_random(mock, 2)); /* unshared, or shared */
    }
    return mock->failed ? 0 : desc;
}

uint64_t mock_instantiated_method_desc(struct mock *mock, uint64_t method_table, uint32_t rid,
                                       const uint64_t *arguments, size_t count)
{
    return new_method_desc(mock, method_table, rid, arguments, count, 0, 0);
}

uint64_t mock_async_method_desc(struct mock *mock, uint64_t method_table, uint32_t rid, const uint64_t *arguments,
                                size_t count, uint32_t flags)
{
    enum { HAS_ASYNC_METHOD_DATA = 0x40, SLOTS = 3 };
    static const struct {
        enum mock_type type;
        unsigned flag;
    } slots[SLOTS] = {{T_NonVtableSlot, 0x08}, {T_MethodImpl, 0x10}, {T_NativeCodeSlot, 0x20}};
    uint64_t has = HAS_ASYNC_METHOD_DATA, size = 0;
    for (unsigned i = 0; i < SLOTS; i++)
        if (mock_random(mock, 2)) {
            has |= slots[i].flag;
            size += mock->sizes[slots[i].type];
        }
    uint64_t desc =
        new_method_desc(mock, method_table, rid, arguments, count, has, size + mock->sizes[T_AsyncMethodData]);
    uint64_t data = desc + mock->sizes[count ? T_InstantiatedMethodDesc : T_MethodDesc] + size;
    mock_put(mock, data, F_AsyncMethodData_Flags, flags);
    return mock->failed ? 0 : desc;
}

void mock_code_version(struct mock *mock, uint64_t method_desc, uint64_t code, uint32_t tier)
{
    uint64_t data = mock_fetch(mock, method_desc, F_MethodDesc_CodeData);
    if (!data) {
        data = mock_object(mock, T_MethodDescCodeData, 0);
        mock_put(mock, data, F_MethodDescCodeData_OptimizationTier, UINT32_MAX);
        mock_put(mock, method_desc, F_MethodDesc_CodeData, data);
    }
    if (!code) {
        mock_put(mock, data, F_MethodDescCodeData_OptimizationTier, tier);
        return;
    }
    uint64_t state = mock_fetch(mock, data, F_MethodDescCodeData_VersioningState);
    if (!state) {
        state = mock_object(mock, T_MethodDescVersioningState, 0);
        mock_put(mock, data, F_MethodDescCodeData_VersioningState, state);
    }
    uint64_t node = mock_object(mock, T_NativeCodeVersionNode, 0);
    mock_put(mock, node, F_NativeCodeVersionNode_NativeCode, code);
    mock_put(mock, node, F_NativeCodeVersionNode_OptimizationTier, tier);
    mock_put(mock, node, F_NativeCodeVersionNode_ILVersionId, 0);
    mock_put(mock, node, F_NativeCodeVersionNode_Next,
             mock_fetch(mock, state, F_MethodDescVersioningState_NativeCodeVersionNode));
    mock_put(mock, state, F_MethodDescVersioningState_NativeCodeVersionNode, node);
}

uint64_t mock_dynamic_method_desc_of(struct mock *mock, uint64_t table, const char *name, bool stub,
                                     const void *signature, size_t size)
{
    enum { CLASSIFICATION_DYNAMIC = 7, LIGHTWEIGHT = 0x4000, IL_STUB = 0x8000 };
    uint64_t desc = new_chunk(mock, table, 0, 1, mock->sizes[T_DynamicMethodDesc]);
    uint64_t text = mock_alloc(mock, strlen(name) + 1, 1);
    uint64_t bytes = size ? mock_alloc(mock, size, 1) : 0;
    mock_write(mock, text, name, strlen(name) + 1);
    if (size)
        mock_write(mock, bytes, signature, size);
    put_method_desc(mock, desc, 0, CLASSIFICATION_DYNAMIC);
    mock_put(mock, desc, F_StoredSigMethodDesc_Sig, bytes);
    mock_put(mock, desc, F_StoredSigMethodDesc_cSig, size);
    mock_put(mock, desc, F_StoredSigMethodDesc_ExtendedFlags, stub ? IL_STUB : LIGHTWEIGHT);
    mock_put(mock, desc, F_DynamicMethodDesc_MethodName, text);
    return mock->failed ? 0 : desc;
}

uint64_t mock_dynamic_method_desc(struct mock *mock, const char *name)
{
    uint64_t table = mock_method_table(mock, mock_module_object(mock, ""), 0);
    return mock_dynamic_method_desc_of(mock, table, name, false, NULL, 0);
}
