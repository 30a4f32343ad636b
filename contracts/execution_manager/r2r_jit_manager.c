/*
 * r2r_jit_manager.c: the ReadyToRun JIT manager: code that was compiled ahead of time, in mapped images.
 * Source: dotnet/runtime docs/design/datacontracts/ExecutionManager.md, "R2R JitManager".
 */
#include "contracts/execution_manager/exception_clauses.h"
#include "contracts/execution_manager/jit_manager.h"
#include "contracts/ready_to_run/r2r_method_bounds.h"
#include "contracts/ready_to_run/r2r_method_info.h"

static uint64_t address_of(const struct r2r_image *image, uint32_t function)
{
    return image->functions.address + (uint64_t)function * image->functions.entry_size;
}

/* The block of the hot functions [start, end), whatever method they are; its ip is its start. */
static struct code_block block_of(const struct r2r_image *image, struct reader *reader, uint32_t start, uint32_t end)
{
    uint64_t address = image->base + unwind_table_begin(reader, &image->functions, start);
    return (struct code_block){
        .manager = &r2r_jit_manager,
        .image = image,
        .ip = address,
        .start = address,
        .unwind_base = image->base,
        .runtime_functions = address_of(image, start),
        .runtime_function_count = end - start,
        .kind = CDACQ_CODE_READY_TO_RUN,
        .unverified = image->unverified,
    };
}

/* Fails if the address is not in that part of the block, as in an image whose tables contradict each other. */
static bool set_address(struct reader *reader, struct code_block *block, uint64_t ip, bool cold)
{
    block->ip = ip;
    block->cold = cold;
    block->offset = cold ? block->hot_size + (ip - block->cold_start) : ip - block->start;
    bool is_in = cold ? ip - block->cold_start < block->cold_size : ip - block->start < block->hot_size;
    return is_in || reader_fail(reader, CDACQ_ERR_CORRUPT, ip, "ReadyToRun functions of the method");
}

/* The method that starts at hot function `start`. */
static bool method_at(const struct r2r_image *image, struct reader *reader, uint32_t start, struct code_block *ret)
{
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    if (!entries)
        return false;
    uint32_t end = r2r_method_end(image, reader, start, r2r_next_start(image, entries, reader, start));
    struct code_block block = block_of(image, reader, start, end);
    block.unverified |= entries->unverified;
    block.hot_size = r2r_functions_size(image, reader, start, end);
    struct r2r_cold_part cold = r2r_method_cold_part(image, reader, start);
    if (cold.count) {
        block.cold_start = image->base + cold.rva;
        block.cold_size = cold.size;
        block.cold_functions = address_of(image, cold.first);
        block.cold_function_count = cold.count;
    }
    block.entry_kind = (uint8_t)r2r_entry(entries, start, &block.entry, &block.component);
    block.method_desc = r2r_image_method_desc(image, reader, start, &block.prepared_unknown);
    if (reader_failed(reader))
        return false;
    *ret = block;
    return true;
}

/*
 * The function with which the method of a cold function starts. UINT32_MAX if that is not known. The reader fails if
 * the map does not say so both ways: by the cold function, and by the hot one.
 */
static uint32_t start_of_cold(const struct r2r_image *image, const struct r2r_entries *entries, struct reader *reader,
                              uint32_t function)
{
    uint32_t hot, begin, end, start = UINT32_MAX;
    bool has_hot = hot_cold_hot_of(&image->hot_cold, function, &hot);
    if (has_hot)
        start = r2r_method_start(image, entries, reader, hot);
    if (has_hot && start == UINT32_MAX)
        return start; /* the runtime has not prepared the method, and the image has no tables */
    if (has_hot && hot_cold_cold_of(&image->hot_cold, start, &begin, &end) && function >= begin && function < end)
        return start;
    reader_fail(reader, CDACQ_ERR_CORRUPT, image->base + unwind_table_begin(reader, &image->functions, function),
                "the hot part of cold code");
    return UINT32_MAX;
}

enum { PREPARED_FUNCLETS_MAX = 16 }; /* that are tried before the address's own function */

/*
 * Finds a prepared method without the image's tables, which are large: the runtime's map has its start, its GC info its
 * length. Both must agree with the runtime functions; false proves nothing.
 */
static bool find_prepared(const struct r2r_image *image, struct reader *reader, uint32_t function, uint32_t relative,
                          struct code_block *ret)
{
    /* This finds a MethodDesc only. If a MethodDesc cannot be named, the tables say more. */
    uint32_t types = 1u << LAYOUT_RuntimeTypeSystem | 1u << LAYOUT_Loader | 1u << LAYOUT_EcmaMetadata;
    uint64_t method_desc = 0;
    uint32_t start = function + 1;
    uint64_t unknown; /* the tables say more */
    if ((reader->layout->usable & types) != types)
        return false;
    unsigned tries = has_funclets(reader) ? PREPARED_FUNCLETS_MAX : 1;
    for (unsigned i = 0; i < tries && start && !method_desc; i++)
        method_desc = r2r_image_method_desc(image, reader, --start, &unknown);
    if (!method_desc)
        return false;
    uint32_t begin = unwind_table_begin(reader, &image->functions, start);
    uint32_t length = r2r_method_length(image, reader, start);
    if (!length || relative - begin >= length)
        return false; /* unknown, or the address belongs to another method, which was not prepared */
    uint32_t end = r2r_method_end_by_length(image, reader, start, length, image->first_cold);
    if (!end || end <= function)
        return false;
    *ret = block_of(image, reader, start, end);
    ret->hot_size = length;
    ret->method_desc = method_desc;
    return !reader_failed(reader);
}

/* Whether the tables were read without failure. If not, a look-up first tries without them. */
static bool has_tables(const struct r2r_image *image)
{
    const struct r2r_entries *entries =
        atomic_load_explicit(&((struct r2r_image *)(uintptr_t)image)->entries, memory_order_acquire);
    return entries && entries->failure.status >= 0;
}

static bool find_in(const struct r2r_image *image, struct reader *reader, uint64_t ip, struct code_block *ret)
{
    uint64_t relative = ip - image->base;
    if (relative - image->thunks.rva < image->thunks.size) {
        *ret = (struct code_block){.ip = ip,
                                   .start = image->base + image->thunks.rva,
                                   .offset = relative - image->thunks.rva,
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
        return false; /* between two functions, or after the last one */
    bool cold = function >= image->first_cold;
    if (!has_tables(image) && !image->hot_cold.pair_count &&
        find_prepared(image, reader, function, (uint32_t)relative, ret))
        return set_address(reader, ret, ip, false);
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    if (!entries)
        return false;
    uint32_t start =
        cold ? start_of_cold(image, entries, reader, function) : r2r_method_start(image, entries, reader, function);
    return start != UINT32_MAX && method_at(image, reader, start, ret) && set_address(reader, ret, ip, cold);
}

static const struct r2r_image *image_of(const struct section_reader *section)
{
    return r2r_images_get(&section->managers->images, section->reader, section->section);
}

static bool find(const struct section_reader *section, uint64_t ip, struct code_block *ret)
{
    const struct r2r_image *image = image_of(section);
    return image && find_in(image, section->reader, ip, ret);
}

/* The delay-load thunks, which no runtime function covers, in their place among the functions. */
struct thunk_visit {
    const struct r2r_image *image;
    block_part_visitor *visit;
    void *context;
    bool done;
};

/* Visits the thunks if they begin before a function that begins at `begin`. False ends the visit of the image. */
static bool visit_thunks(struct thunk_visit *visit, uint64_t begin)
{
    uint64_t thunks = visit->image->base + visit->image->thunks.rva;
    if (visit->done || !visit->image->thunks.size || thunks > begin)
        return true;
    visit->done = true;
    return visit->visit(thunks, thunks + visit->image->thunks.size, PART_STUB, PART_NO_NUMBER, visit->context);
}

/* The number of a part is the function with which its method starts. */
static void each(const struct section_reader *section, block_part_visitor *visit, void *context)
{
    struct reader *reader = section->reader;
    const struct r2r_image *image = image_of(section);
    const struct r2r_entries *entries = image ? r2r_image_entries(image, reader) : NULL;
    struct thunk_visit thunks = {image, visit, context, false};
    uint32_t start = UINT32_MAX, end = 0, next_start = 0; /* of the hot method, and after it */
    bool is_after_last = true;
    if (!entries)
        return;
    for (uint32_t i = 0; i < image->functions.count && reader_step(reader, "ReadyToRun functions"); i++) {
        bool cold = i >= image->first_cold;
        if (!cold && i >= end && (end || r2r_image_is_start(image, entries, reader, i))) {
            if (i >= next_start)
                next_start = r2r_next_start(image, entries, reader, i);
            start = i;
            end = r2r_method_end(image, reader, i, next_start);
        }
        if (cold)
            start = start_of_cold(image, entries, reader, i);
        bool is_before_next = unwind_table_is_before_next(reader, &image->functions, i);
        bool is_in_order = is_after_last && is_before_next; /* if not, a look-up says so */
        is_after_last = is_before_next;
        if (start == UINT32_MAX)
            continue;
        uint64_t begin = image->base + unwind_table_begin(reader, &image->functions, i);
        enum block_part_kind kind = !is_in_order ? PART_UNKNOWN : cold ? PART_COLD : PART_HOT;
        if (!visit_thunks(&thunks, begin) ||
            !visit(begin, begin + unwind_table_length(reader, &image->functions, i), kind, start, context))
            return;
    }
    visit_thunks(&thunks, UINT64_MAX);
}

static size_t part_count(const struct section_reader *section)
{
    const struct r2r_image *image = image_of(section);
    return image ? image->functions.count : 0;
}

static bool block_at(const struct section_reader *section, uint64_t begin, uint32_t number, struct code_block *ret)
{
    struct reader *reader = section->reader;
    const struct r2r_image *image = image_of(section);
    if (!image || !method_at(image, reader, number, ret))
        return false;
    bool cold = image->first_cold < image->functions.count &&
                begin - image->base >= unwind_table_begin(reader, &image->functions, image->first_cold);
    return set_address(reader, ret, begin, cold);
}

static bool gc_info(struct reader *reader, const struct code_block *block, uint64_t *ret, uint32_t *ret_version)
{
    const struct r2r_image *image = block->image;
    uint64_t function = r2r_image_function_at(image, block->runtime_functions);
    if (function >= image->functions.count || !r2r_method_gc_info(image, reader, (uint32_t)function, ret))
        return reader_fail(reader, CDACQ_ERR_FIELD, block->start, "unwind data of this architecture");
    *ret_version = image->gc_info_version;
    return true;
}

static bool debug_info(struct reader *reader, const struct code_block *block, uint64_t *ret, bool *ret_has_flag_byte)
{
    *ret_has_flag_byte = false;
    return r2r_method_debug_info(block->image, reader,
                                 (uint32_t)r2r_image_function_at(block->image, block->runtime_functions), ret);
}

static bool clauses(struct reader *reader, const struct code_block *block, struct exception_clauses *ret)
{
    ret->form = &clause_form_r2r;
    return r2r_method_clauses(block->image, reader, (uint32_t)(block->start - block->image->base), &ret->address,
                              &ret->count);
}

const struct jit_manager_ops r2r_jit_manager = {
    .range_kind = "r2r",
    .method_kind = CDACQ_CODE_READY_TO_RUN,
    .jit_type = CDACQ_JIT_TYPE_READY_TO_RUN,
    .in_images = true,
    .find = find,
    .each = each,
    .part_count = part_count,
    .block_at = block_at,
    .gc_info = gc_info,
    .debug_info = debug_info,
    .clauses = clauses,
};
