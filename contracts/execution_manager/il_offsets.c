#include "contracts/execution_manager/il_offsets.h"

#include "contracts/ready_to_run/r2r_image.h"
#include "target/reader.h"
#include "target/registers.h"

/* Target memory from an address on, as a source of bytes. */
struct memory_source {
    struct reader *reader;
    uint64_t address;
    struct window copy; /* of bytes that are not in one span */
    uint64_t missing;   /* the end of what was last asked for in vain; 0: nothing was */
};

static const void *memory_window(void *context, uint64_t offset, size_t count)
{
    struct memory_source *source = context;
    uint64_t address = source->address + offset;
    const uint8_t *bytes = reader_try_view(source->reader, address, count);
    uint8_t last;
    if (bytes)
        return bytes;
    if (count == 1 || !reader_try_copy(source->reader, address + count - 1, &last, 1)) {
        source->missing = address + count - 1;
        return NULL;
    }
    window_deinit(&source->copy);
    return reader_window(source->reader, address, count, "debug info", &source->copy) ? source->copy.bytes : NULL;
}

/* The encoding changed with version 16 of images; a newer or unknown one has the runtime's own. */
static const struct debug_info_encoding *encoding_of_image(const struct r2r_image *image,
                                                           const struct debug_info_encoding *runtime)
{
    if (image->major_version == 16)
        return &debug_info_packed;
    return image->major_version && image->major_version < 16 ? &debug_info_nibbles : runtime;
}

/* The debug info of a block that is being read. */
struct block_debug_info {
    struct memory_source source;
    struct bytes bytes;
    struct debug_info info;
};

/*
 * Opens the debug info of a method's block, which the caller closes in either case. *ret_exists: it has some. False: it
 * is damaged, or the reader fails.
 */
static bool open_debug_info(const struct debug_info_encoding *encoding, struct reader *reader,
                            const struct code_block *block, struct block_debug_info *ret, bool *ret_exists)
{
    uint64_t address;
    bool has_flag_byte;
    *ret = (struct block_debug_info){.source.reader = reader};
    *ret_exists = false;
    if (block->image)
        encoding = encoding_of_image(block->image, encoding);
    if (!encoding)
        return reader_fail(reader, CDACQ_ERR_CONTRACT, block->start, "DebugInfo");
    if (!block->manager->debug_info(reader, block, &address, &has_flag_byte))
        return false;
    ret->source.address = address;
    ret->bytes = (struct bytes){.window = memory_window, .context = &ret->source, .size = UINT64_MAX - address};
    *ret_exists = address != 0;
    return !address || debug_info_open(encoding, &ret->bytes, has_flag_byte, &ret->info);
}

/* Fails the reader if the debug info is damaged, and frees. Returns whether the reader has not failed. */
static bool close_debug_info(struct block_debug_info *opened, bool is_whole)
{
    struct memory_source *source = &opened->source;
    if (!is_whole && !reader_failed(source->reader))
        reader_fail(source->reader, source->missing ? CDACQ_ERR_MEMORY : CDACQ_ERR_CORRUPT,
                    source->missing ? source->missing : source->address, "debug info");
    window_deinit(&source->copy);
    return !reader_failed(source->reader);
}

bool block_il_map(const struct debug_info_encoding *encoding, struct reader *reader, const struct code_block *block,
                  struct il_map *ret)
{
    struct block_debug_info opened;
    struct il_map map = {0};
    bool exists, is_whole = open_debug_info(encoding, reader, block, &opened, &exists);
    if (is_whole && exists)
        is_whole = debug_info_il_map(&opened.info, &map);
    if (!close_debug_info(&opened, is_whole)) {
        il_map_deinit(&map);
        return false;
    }
    *ret = map;
    return true;
}

/* ---- Variables ---- */

struct variable_search {
    uint32_t native_offset;
    int32_t il_offset; /* of the last bound at or before it */
    struct block_variables *found;
    uint32_t xmm0; /* the number of that register; 0: the machine has none */
    bool failed;
};

static bool note_bound(const struct debug_info_bound *bound, void *context)
{
    struct variable_search *search = context;
    if (bound->native_offset > search->native_offset)
        return false;
    if (!(bound->source & DEBUG_INFO_CALL_INSTRUCTION))
        search->il_offset = bound->il_offset;
    return true;
}

/* The number of a register of a value, in which xmm0 has the same number for all runtimes. */
static uint32_t register_number(const struct variable_search *search, uint32_t number)
{
    bool is_xmm = search->xmm0 && number >= search->xmm0 && number - search->xmm0 < REGISTER_XMM_COUNT;
    return is_xmm ? BLOCK_XMM0 + (number - search->xmm0) : number < BLOCK_XMM0 ? number : UINT32_MAX;
}

static bool note_variable(const struct debug_info_variable *variable, void *context)
{
    enum { FOUND_MAX = 64 * 1024 };
    struct variable_search *search = context;
    if (search->native_offset < variable->begin || search->native_offset >= variable->end)
        return true;
    struct debug_info_variable copy = *variable;
    bool has_second = copy.place == DEBUG_INFO_REG_REG;
    if (has_second || copy.place == DEBUG_INFO_REG || copy.place == DEBUG_INFO_REG_FP)
        copy.registers[0] = register_number(search, copy.registers[0]);
    if (has_second)
        copy.registers[1] = register_number(search, copy.registers[1]);
    search->failed = search->found->count >= FOUND_MAX || !block_variables_append(search->found, copy);
    return !search->failed;
}

bool block_variables_read(const struct debug_info_encoding *encoding, struct reader *reader,
                          const struct code_block *block, uint32_t native_offset, struct block_variables *ret,
                          const char **ret_problem)
{
    struct block_debug_info opened;
    struct variable_search search = {
        .native_offset = native_offset, .il_offset = DEBUG_INFO_PROLOG, .found = ret}; /* before the first bound */
    bool exists, is_whole = open_debug_info(encoding, reader, block, &opened, &exists);
    if (is_whole && exists)
        is_whole = debug_info_each(&opened.info, note_bound, &search);
    if (is_whole && exists && reader->layout->architecture == ARCHITECTURE_X64)
        search.xmm0 = debug_info_xmm0(opened.info.encoding);
    bool in_body = search.il_offset != DEBUG_INFO_PROLOG && search.il_offset != DEBUG_INFO_EPILOG;
    *ret_problem = !exists    ? "the method has no debug info"
                   : !in_body ? "the debug info does not say it for a prolog or an epilog"
                              : NULL;
    if (is_whole && exists && in_body)
        is_whole = debug_info_variables(&opened.info, note_variable, &search) && !search.failed;
    return close_debug_info(&opened, is_whole);
}
