/*
 * r2r_jit_manager.c: the ReadyToRun JIT manager: code that was compiled ahead of time, in mapped images.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "R2R JitManager".
 */
#include "contracts/execution_manager/jit_manager.h"
#include "contracts/ready_to_run/r2r_method_bounds.h"
#include "contracts/ready_to_run/r2r_method_info.h"

static uint64_t address_of(const struct r2r_image *image, uint32_t function)
{
    return image->functions.address + (uint64_t)function * image->functions.entry_size;
}

/* The method that starts at hot function `start`; ret->ip is its start. */
static bool method_at(const struct r2r_image *image, struct field_reader *reader, uint32_t start,
                      struct code_block *ret)
{
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    if (!entries)
        return false;
    uint32_t end = r2r_method_end(image, entries, reader, start);
    struct code_block block = {
        .manager = &r2r_jit_manager,
        .image = image,
        .start = image->base + unwind_table_begin(reader, &image->functions, start),
        .unwind_base = image->base,
        .runtime_functions = address_of(image, start),
        .runtime_function_count = end - start,
        .kind = CDACQ_CODE_READY_TO_RUN,
        .unverified = image->unverified || entries->unverified,
    };
    block.ip = block.start;
    for (uint32_t i = start; i < end; i++)
        block.hot_size += unwind_table_length(reader, &image->functions, i);
    uint32_t cold_begin, cold_end;
    if (hot_cold_cold_of(&image->hot_cold, start, &cold_begin, &cold_end)) {
        uint32_t begin = unwind_table_begin(reader, &image->functions, cold_begin);
        uint32_t last = unwind_table_begin(reader, &image->functions, cold_end - 1);
        block.cold_start = image->base + begin;
        block.cold_size = last - begin + unwind_table_length(reader, &image->functions, cold_end - 1);
        block.cold_functions = address_of(image, cold_begin);
        block.cold_function_count = cold_end - cold_begin;
    }
    block.entry_kind = (uint8_t)r2r_entry(entries, start, &block.entry, &block.component);
    block.method_desc = r2r_image_method_desc(image, reader, start);
    if (reader_failed(&reader->raw))
        return false;
    *ret = block;
    return true;
}

static bool is_in_thunks(const struct r2r_image *image, uint64_t relative)
{
    return relative >= image->thunks_rva && relative - image->thunks_rva < image->thunks_size;
}

/* How many functions a method that is found without the tables may have before the address's own. */
enum { PREPARED_FUNCLETS_MAX = 16 };

/*
 * A method that the runtime has prepared, told without the image's tables, which are large: the runtime's map knows its
 * start, its GC info its length. Only where both agree with the runtime functions; false says nothing.
 */
static bool find_prepared(const struct r2r_image *image, struct field_reader *reader, uint32_t function,
                          uint32_t relative, struct code_block *ret)
{
    /* A MethodDesc is all that it finds: where that cannot be named, the tables say more. */
    uint32_t types = 1u << LAYOUT_RuntimeTypeSystem | 1u << LAYOUT_Loader | 1u << LAYOUT_EcmaMetadata;
    uint64_t method_desc = 0;
    uint32_t start = function + 1;
    if ((reader->layout->usable & types) != types)
        return false;
    unsigned tries = has_funclets(reader) ? PREPARED_FUNCLETS_MAX : 1;
    for (unsigned i = 0; i < tries && start && !method_desc; i++)
        method_desc = r2r_image_method_desc(image, reader, --start);
    if (!method_desc)
        return false;
    uint32_t begin = unwind_table_begin(reader, &image->functions, start);
    uint32_t length = r2r_method_length(image, reader, start);
    if (!length || relative - begin >= length)
        return false; /* not known, or another method's that was not prepared */
    uint32_t end = r2r_method_end_by_length(image, reader, start, length);
    if (!end || end <= function)
        return false;
    *ret = (struct code_block){
        .manager = &r2r_jit_manager,
        .image = image,
        .start = image->base + begin,
        .hot_size = length,
        .offset = relative - begin,
        .method_desc = method_desc,
        .unwind_base = image->base,
        .runtime_functions = address_of(image, start),
        .runtime_function_count = end - start,
        .kind = CDACQ_CODE_READY_TO_RUN,
        .unverified = image->unverified,
    };
    return !reader_failed(&reader->raw);
}

/* Whether the tables have been read, and could be: what can be told without them is told without them else. */
static bool has_tables(const struct r2r_image *image)
{
    const struct r2r_entries *entries =
        atomic_load_explicit(&((struct r2r_image *)(uintptr_t)image)->entries, memory_order_acquire);
    return entries && entries->failure.status >= 0;
}

static bool find_in(const struct r2r_image *image, struct field_reader *reader, uint64_t ip, struct code_block *ret)
{
    struct code_block block = {0};
    uint64_t relative = ip - image->base;
    if (is_in_thunks(image, relative)) {
        *ret = (struct code_block){.ip = ip,
                                   .start = image->base + image->thunks_rva,
                                   .offset = relative - image->thunks_rva,
                                   .kind = CDACQ_CODE_METHOD_CALL_THUNK,
                                   .unverified = image->unverified};
        return true;
    }
    if (relative > UINT32_MAX || !image->functions.count)
        return false;
    uint32_t function = unwind_table_find(reader, &image->functions, (uint32_t)relative);
    if (function == UINT32_MAX)
        return false;
    uint32_t into = (uint32_t)relative - unwind_table_begin(reader, &image->functions, function);
    if (into >= unwind_table_length(reader, &image->functions, function))
        return false; /* between two functions, or behind the last one */
    bool cold = function >= image->first_cold;
    uint32_t hot = function;
    if (cold && !hot_cold_hot_of(&image->hot_cold, function, &hot))
        return false;
    if (!has_tables(image) && !image->hot_cold.pair_count &&
        find_prepared(image, reader, function, (uint32_t)relative, &block)) {
        block.ip = ip;
        *ret = block;
        return true;
    }
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    uint32_t start = entries ? r2r_method_start(image, entries, reader, hot) : UINT32_MAX;
    if (start == UINT32_MAX || !method_at(image, reader, start, &block))
        return false;
    block.ip = ip;
    block.cold = cold;
    block.offset = cold ? block.hot_size + (ip - block.cold_start) : ip - block.start;
    *ret = block;
    return true;
}

static bool find(struct jit_managers *managers, struct field_reader *reader, const struct range_section *section,
                 uint64_t ip, struct code_block *ret)
{
    const struct r2r_image *image = r2r_images_get(&managers->images, reader, section);
    return image && find_in(image, reader, ip, ret);
}

/* The number of a run is the function with which its method starts. */
static void each(struct jit_managers *managers, struct field_reader *reader, const struct range_section *section,
                 block_part_visitor *visit, void *context)
{
    const struct r2r_image *image = r2r_images_get(&managers->images, reader, section);
    const struct r2r_entries *entries = image ? r2r_image_entries(image, reader) : NULL;
    uint32_t start = UINT32_MAX;
    if (!entries)
        return;
    for (uint32_t i = 0; i < image->functions.count && reader_step(&reader->raw, "ReadyToRun functions"); i++) {
        bool cold = i >= image->first_cold;
        uint32_t hot = i;
        if (!cold && r2r_image_is_start(image, entries, reader, i))
            start = i;
        if (cold) {
            start = UINT32_MAX;
            if (hot_cold_hot_of(&image->hot_cold, i, &hot))
                start = r2r_method_start(image, entries, reader, hot);
        }
        if (start == UINT32_MAX)
            continue;
        uint64_t begin = image->base + unwind_table_begin(reader, &image->functions, i);
        if (!visit(begin, begin + unwind_table_length(reader, &image->functions, i), cold ? PART_COLD : PART_HOT, start,
                   context))
            return;
    }
}

static bool block_at(struct jit_managers *managers, struct field_reader *reader, const struct range_section *section,
                     uint64_t begin, uint32_t number, struct code_block *ret)
{
    const struct r2r_image *image = r2r_images_get(&managers->images, reader, section);
    if (!image || !method_at(image, reader, number, ret))
        return false;
    uint64_t relative = begin - image->base;
    ret->cold = image->first_cold < image->functions.count &&
                relative >= unwind_table_begin(reader, &image->functions, image->first_cold);
    ret->ip = begin;
    ret->offset = ret->cold ? ret->hot_size + (begin - ret->cold_start) : begin - ret->start;
    return true;
}

static bool gc_info(struct field_reader *reader, const struct code_block *block, uint64_t *ret, uint32_t *ret_version)
{
    const struct r2r_image *image = block->image;
    uint64_t function = r2r_image_function_at(image, block->runtime_functions);
    if (function >= image->functions.count || !r2r_method_gc_info(image, reader, (uint32_t)function, ret))
        return reader_fail(&reader->raw, CDACQ_ERR_FIELD, block->start, "unwind data of this architecture");
    *ret_version = image->gc_info_version;
    return true;
}

static bool debug_info(struct field_reader *reader, const struct code_block *block, uint64_t *ret,
                       bool *ret_has_flag_byte)
{
    *ret_has_flag_byte = false;
    return r2r_method_debug_info(block->image, reader,
                                 (uint32_t)r2r_image_function_at(block->image, block->runtime_functions), ret);
}

static bool clauses(struct field_reader *reader, const struct code_block *block, struct exception_clauses *ret)
{
    ret->form = &clause_form_r2r;
    return r2r_method_clauses(block->image, reader, (uint32_t)(block->start - block->image->base), &ret->address,
                              &ret->count);
}

const struct jit_manager_ops r2r_jit_manager = {
    .range_kind = "r2r",
    .method_kind = CDACQ_CODE_READY_TO_RUN,
    .jit_type = CDACQ_JIT_TYPE_READY_TO_RUN,
    .heaps_variable = G_COUNT,
    .in_images = true,
    .find = find,
    .each = each,
    .block_at = block_at,
    .gc_info = gc_info,
    .debug_info = debug_info,
    .clauses = clauses,
};
