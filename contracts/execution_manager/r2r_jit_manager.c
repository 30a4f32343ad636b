#include "contracts/execution_manager/r2r_jit_manager.h"

#include "contracts/code_info/gc_info.h"

/* The image, unless it could not be read: then the reader fails with the reason, each time. */
static const struct r2r_image *usable(const struct r2r_image *image, struct field_reader *reader)
{
    return reader_fail_again(&reader->raw, &image->failure) ? NULL : image;
}

const struct r2r_image *r2r_jit_manager_image(struct execution_manager *manager, struct field_reader *reader,
                                              const struct range_section *section)
{
    struct r2r_image *first = atomic_load_explicit(&manager->images, memory_order_acquire);
    for (struct r2r_image *image = first; image; image = image->next)
        if (image->base == section->begin && image->module == section->r2r_module && image->end == section->end)
            return usable(image, reader);
    struct r2r_image *image = reader_failed(&reader->raw) ? NULL : r2r_image_open(reader, section);
    if (!image)
        return NULL;
    /* Sections that all name one large image must not cost its tables each time. */
    if (atomic_fetch_add(&manager->functions, image->functions.count) + image->functions.count >
        R2R_FUNCTION_TOTAL_MAX) {
        image->failure.status = CDACQ_ERR_FUEL;
        image->failure.what = "ReadyToRun images: runtime functions of all";
    }
    /* Two threads may open the same image; both copies are right, and one more in the list does no harm. */
    image->next = first;
    while (!atomic_compare_exchange_weak_explicit(&manager->images, &image->next, image, memory_order_release,
                                                  memory_order_acquire))
        ;
    return usable(image, reader);
}

const struct r2r_image *r2r_jit_manager_image_of(const struct execution_manager *manager,
                                                 const struct code_block *block)
{
    const struct r2r_image *image = atomic_load_explicit(&manager->images, memory_order_acquire);
    while (image && (image->module != block->module || image->base != block->unwind_base || image->failure.status < 0))
        image = image->next;
    return image;
}

uint32_t r2r_jit_manager_start_of(const struct r2r_image *image, const struct r2r_entries *entries,
                                  struct field_reader *reader, uint32_t function)
{
    for (uint32_t i = function + 1; i-- > 0 && reader_step(&reader->raw, "ReadyToRun method start");)
        if (r2r_image_is_start(image, entries, reader, i))
            return i;
    return UINT32_MAX;
}

/* Behind the last function of the method that starts at `start`: the next start, or the end of the hot code. */
static uint32_t end_of(const struct r2r_image *image, const struct r2r_entries *entries, struct field_reader *reader,
                       uint32_t start)
{
    uint32_t end = start + 1;
    while (end < image->first_cold && reader_step(&reader->raw, "ReadyToRun method end") &&
           !r2r_image_is_start(image, entries, reader, end))
        end++;
    return end;
}

static uint64_t address_of(const struct r2r_image *image, uint32_t function)
{
    return image->functions.address + (uint64_t)function * image->functions.entry_size;
}

bool r2r_jit_manager_block_at(const struct r2r_image *image, struct field_reader *reader, uint32_t start,
                              struct code_block *ret)
{
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    if (!entries)
        return false;
    uint32_t end = end_of(image, entries, reader, start);
    struct code_block block = {
        .start = image->base + unwind_table_begin(reader, &image->functions, start),
        .unwind_base = image->base,
        .runtime_functions = address_of(image, start),
        .runtime_function_count = end - start,
        .module = image->module,
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
 * The GC info lies behind the unwind data of the method's first function. False without failing where it is not known
 * where those end.
 */
static bool gc_info_behind(const struct r2r_image *image, struct field_reader *reader, uint32_t function, uint64_t *ret)
{
    uint64_t address;
    uint32_t size;
    if (!unwind_table_data(reader, &image->functions, function, &address, &size))
        return false;
    *ret = address + size;
    return true;
}

bool r2r_jit_manager_gc_info(const struct r2r_image *image, struct field_reader *reader, const struct code_block *block,
                             uint64_t *ret, uint32_t *ret_version)
{
    uint64_t function = image ? r2r_jit_manager_function_of(image, block) : 0;
    if (!image || function >= image->functions.count || !gc_info_behind(image, reader, (uint32_t)function, ret)) {
        reader_fail(&reader->raw, CDACQ_ERR_FIELD, block->start, "unwind data of this architecture");
        return false;
    }
    *ret_version = image->gc_info_version;
    return true;
}

/* The length of the code of a method that starts at a function, by its GC info; 0 where that cannot be told. */
static uint32_t code_length(const struct r2r_image *image, struct field_reader *reader, uint32_t function)
{
    uint64_t gc_info;
    bool found = image->gc_info_version && gc_info_behind(image, reader, function, &gc_info);
    /* Where the unwind data cannot be read, or are none, the image's tables say how long the method is. */
    if (!found)
        reader_recover(&reader->raw, ~FAILURE(CDACQ_ERR_FUEL));
    return found ? gc_info_code_length(reader, gc_info, image->gc_info_version) : 0;
}

/*
 * Behind the function that ends exactly where the method's code does; 0 where none does: then the length is no length.
 */
static uint32_t function_ending_at(const struct r2r_image *image, struct field_reader *reader, uint32_t first,
                                   uint32_t end)
{
    for (uint32_t i = first; i < image->first_cold && reader_step(&reader->raw, "ReadyToRun functions"); i++) {
        uint32_t function_end =
            unwind_table_begin(reader, &image->functions, i) + unwind_table_length(reader, &image->functions, i);
        if (function_end >= end)
            return function_end == end ? i + 1 : 0;
    }
    return 0;
}

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
    uint32_t length = code_length(image, reader, start);
    if (!length || relative - begin >= length)
        return false; /* not known, or another method's that was not prepared */
    uint32_t end = function_ending_at(image, reader, start, begin + length);
    if (!end || end <= function)
        return false;
    *ret = (struct code_block){
        .start = image->base + begin,
        .hot_size = length,
        .offset = relative - begin,
        .method_desc = method_desc,
        .unwind_base = image->base,
        .runtime_functions = address_of(image, start),
        .runtime_function_count = end - start,
        .module = image->module,
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

bool r2r_jit_manager_find(const struct r2r_image *image, struct field_reader *reader, uint64_t ip,
                          struct code_block *ret)
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
    uint32_t start = entries ? r2r_jit_manager_start_of(image, entries, reader, hot) : UINT32_MAX;
    if (start == UINT32_MAX || !r2r_jit_manager_block_at(image, reader, start, &block))
        return false;
    block.ip = ip;
    block.cold = cold;
    block.offset = cold ? block.hot_size + (ip - block.cold_start) : ip - block.start;
    *ret = block;
    return true;
}

void r2r_jit_manager_entry(const struct r2r_image *image, struct field_reader *reader, struct code_block *block)
{
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    uint64_t function = r2r_jit_manager_function_of(image, block);
    if (entries && function < image->functions.count)
        block->entry_kind = (uint8_t)r2r_entry(entries, (uint32_t)function, &block->entry, &block->component);
}
