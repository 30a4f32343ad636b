/*
 * r2r_file.c: a ReadyToRun image from a file: its sections placed as a loader places them, and the runtime's structures
 * filled from its header. Source: Microsoft PE format; ECMA-335 II.25; dotnet/runtime
 * docs/design/coreclr/botr/readytorun-format.md; src/coreclr/vm/readytoruninfo.cpp.
 */
#include "mocktarget/mock.h"

enum {
    PE_OFFSET = 0x3c,
    PE32_PLUS = 0x20b,
    CLR_DIRECTORY = 14,
    MANAGED_NATIVE_HEADER = 64,
    R2R_HEADER = 16,
    R2R_SECTION = 12,
    RUNTIME_FUNCTIONS = 102,
    EXCEPTION_INFO = 104,
    DEBUG_INFO = 105,
    THUNKS = 106,
    HOT_COLD_MAP = 120,
};

/* A file being loaded. A read outside it returns 0, and the mock fails. */
struct file {
    struct mock *mock;
    const uint8_t *bytes;
    size_t size;
};

static uint32_t file_u32(const struct file *file, uint64_t offset)
{
    if (offset + 4 > file->size)
        return (uint32_t)mock_fail(file->mock, "an image that ends at %zu", file->size);
    return load_u32(file->bytes + offset, false);
}

static uint16_t file_u16(const struct file *file, uint64_t offset)
{
    return (uint16_t)file_u32(file, offset);
}

/* Images hold little-endian numbers, whatever the mock's byte order. */
static uint32_t loaded_u32(struct mock *mock, uint64_t address)
{
    const uint8_t *bytes = mock_bytes_at(mock, address, 4);
    return bytes ? load_u32(bytes, false) : 0;
}

/* Maps headers and sections; returns the address of the CLR header, and SizeOfImage in *ret_size. */
static uint64_t place(const struct file *file, const struct mock_r2r_file_options *options, struct mock_r2r_file *ret,
                      uint32_t *ret_size)
{
    struct mock *mock = file->mock;
    uint64_t pe = file_u32(file, PE_OFFSET), optional = pe + 24, section = optional + file_u16(file, pe + 20);
    uint64_t directories = optional + (file_u16(file, optional) == PE32_PLUS ? 112 : 96);
    uint32_t image_size = file_u32(file, optional + 56), headers_size = file_u32(file, optional + 60);
    ret->begin = mock_map(mock, options->begin, align_up(image_size, 4096), MOCK_READ | MOCK_EXECUTE,
                          options->path ? options->path : "/mock/file.dll", 0);
    ret->end = ret->begin + align_up(image_size, 4096);
    uint8_t *image = mock_bytes_at(mock, ret->begin, image_size);
    if (!image)
        return 0;
    memset(image, 0, image_size);
    memcpy(image, file->bytes, MIN((size_t)headers_size, file->size));
    for (unsigned i = 0; i < file_u16(file, pe + 6) && !mock->failed; i++, section += 40) {
        uint32_t rva = file_u32(file, section + 12), offset = file_u32(file, section + 20);
        uint32_t size = MIN(file_u32(file, section + 8), file_u32(file, section + 16));
        if ((uint64_t)rva + size > image_size || (uint64_t)offset + size > file->size)
            return mock_fail(mock, "a section at %#x outside the image", rva);
        memcpy(image + rva, file->bytes + offset, size);
    }
    *ret_size = image_size;
    return ret->begin + file_u32(file, directories + CLR_DIRECTORY * 8);
}

/* The address of a section's directory in the ReadyToRun header; 0 if there is none. */
static uint64_t find_section(struct mock *mock, uint64_t header, uint32_t type)
{
    uint32_t count = loaded_u32(mock, header + 12);
    for (uint64_t at = header + R2R_HEADER; count-- && !mock->failed; at += R2R_SECTION)
        if (loaded_u32(mock, at) == type)
            return at + 4;
    return 0;
}

static void fill_info(struct mock *mock, struct mock_r2r_file *file, uint64_t header, uint32_t bucket_count)
{
    uint64_t functions = find_section(mock, header, RUNTIME_FUNCTIONS);
    uint64_t thunks = find_section(mock, header, THUNKS), hot_cold = find_section(mock, header, HOT_COLD_MAP);
    uint64_t info = file->info;
    uint32_t entry_size = mock->sizes[T_RuntimeFunction];
    uint64_t table = file->functions = file->begin + loaded_u32(mock, functions);
    file->function_count = loaded_u32(mock, functions + 4) / entry_size;
    if (file->function_count &&
        loaded_u32(mock, table + (uint64_t)(file->function_count - 1) * entry_size) == UINT32_MAX)
        file->function_count--;
    mock_put(mock, info, F_ReadyToRunInfo_CompositeInfo, info);
    mock_put(mock, info, F_ReadyToRunInfo_ReadyToRunHeader, header);
    mock_put(mock, info, F_ReadyToRunInfo_RuntimeFunctions, table);
    mock_put(mock, info, F_ReadyToRunInfo_NumRuntimeFunctions, file->function_count);
    if (hot_cold) {
        mock_put(mock, info, F_ReadyToRunInfo_NumHotColdMap, loaded_u32(mock, hot_cold + 4) / 4);
        mock_put(mock, info, F_ReadyToRunInfo_HotColdMap, file->begin + loaded_u32(mock, hot_cold));
    }
    /* The runtime points at the directories in the image. */
    mock_put(mock, info, F_ReadyToRunInfo_DelayLoadMethodCallThunks, thunks);
    mock_put(mock, info, F_ReadyToRunInfo_DebugInfoSection, find_section(mock, header, DEBUG_INFO));
    mock_put(mock, info, F_ReadyToRunInfo_ExceptionInfoSection, find_section(mock, header, EXCEPTION_INFO));
    file->entry_point_map = mock_address_of(mock, info, F_ReadyToRunInfo_EntryPointToMethodDescMap);
    mock_hash_map_init(mock, file->entry_point_map, bucket_count ? bucket_count : 5);
}

struct mock_r2r_file mock_r2r_load(struct mock *mock, const struct mock_r2r_file_options *options)
{
    struct mock_r2r_file file = {0};
    struct file source = {mock, options->bytes, options->size};
    if (mock->options.seed || mock->big)
        mock_fail(mock, "an image from a file needs seed 0 and little-endian memory");
    uint32_t size = 0;
    uint64_t clr = mock->failed ? 0 : place(&source, options, &file, &size);
    uint64_t header = mock->failed ? 0 : file.begin + loaded_u32(mock, clr + MANAGED_NATIVE_HEADER);
    if (mock->failed || loaded_u32(mock, header) != 0x00525452) {
        mock_fail(mock, "no ReadyToRun image");
        return (struct mock_r2r_file){0};
    }
    file.module = mock_module_object(mock, options->path ? options->path : "/mock/file.dll");
    mock_module_place(mock, file.module, file.begin, size, false);
    file.info = mock_object(mock, T_ReadyToRunInfo, 0);
    mock_put(mock, file.module, F_Module_ReadyToRunInfo, file.info);
    fill_info(mock, &file, header, options->bucket_count);
    file.section =
        mock_section_add(mock, &(struct mock_section){.begin = file.begin, .end = file.end, .r2r_module = file.module});
    return file;
}
