/*
 * native_aot_manager.c: the code of a NativeAOT program: one range of its image, whose methods its call-frame
 * information describes. The runtime has no MethodDescs for them.
 */
#include "contracts/code_lookup/range_section_map.h"
#include "contracts/execution_manager/exception_clauses.h"
#include "contracts/execution_manager/jit_manager.h"

static const struct aot_image *image_of(const struct section_reader *section)
{
    return &section->managers->aot;
}

/* The block of the method that begins at `begin`, at one of its addresses. False if the reader fails. */
static bool block_of(const struct section_reader *section, uint64_t begin, uint64_t ip, struct code_block *ret)
{
    uint64_t end = aot_method_end(image_of(section), section->reader, begin);
    if (end <= ip || begin < section->section->begin || end > section->section->end)
        return reader_fail(section->reader, CDACQ_ERR_CORRUPT, begin, "the functions of a method");
    *ret = (struct code_block){.manager = section->manager,
                               .aot = &section->managers->aot,
                               .ip = ip,
                               .start = begin,
                               .hot_size = end - begin,
                               .unwind_base = begin,
                               .offset = ip - begin,
                               .kind = CDACQ_CODE_NATIVE_AOT};
    return true;
}

static bool find(const struct section_reader *section, uint64_t ip, struct code_block *ret)
{
    struct aot_function function;
    return aot_function_at(image_of(section), section->reader, ip, &function) &&
           block_of(section, function.method, ip, ret);
}

/* The method whose functions are being visited. */
struct method_visit {
    block_part_visitor *visit;
    void *context;
    uint64_t begin, end; /* 0: none yet */
};

static bool end_method(struct method_visit *visit)
{
    return !visit->end || visit->visit(visit->begin, visit->end, PART_HOT, PART_NO_NUMBER, visit->context);
}

static bool visit_function(const struct aot_function *function, void *context)
{
    struct method_visit *visit = context;
    if (function->method != visit->begin || !visit->end) {
        if (!end_method(visit))
            return false;
        visit->begin = function->begin;
    }
    visit->end = function->end;
    return true;
}

static void each(const struct section_reader *section, block_part_visitor *visit, void *context)
{
    struct method_visit methods = {.visit = visit, .context = context};
    if (aot_functions_each(image_of(section), section->reader, section->section->begin, section->section->end,
                           visit_function, &methods))
        (void)end_method(&methods);
}

static size_t part_count(const struct section_reader *section)
{
    return aot_function_count(image_of(section), section->reader);
}

static bool block_at(const struct section_reader *section, uint64_t begin, uint32_t number, struct code_block *ret)
{
    (void)number;
    return find(section, begin, ret);
}

struct function_visit {
    block_function_visitor *visit;
    void *context;
};

static bool pass_function(const struct aot_function *function, void *context)
{
    const struct function_visit *visit = context;
    return visit->visit(function->begin, function->kind == AOT_FILTER, visit->context);
}

static bool functions(struct reader *reader, const struct code_block *block, block_function_visitor *visit,
                      void *context)
{
    struct function_visit passed = {visit, context};
    return aot_functions_each(block->aot, reader, block->start, block->start + block->hot_size, pass_function, &passed);
}

static uint64_t not_described(struct reader *reader, const struct code_block *block, const char *what)
{
    return reader_fail(reader, CDACQ_ERR_CONTRACT, block->start, what);
}

static bool gc_info(struct reader *reader, const struct code_block *block, uint64_t *ret, uint32_t *ret_version)
{
    *ret = *ret_version = 0;
    return not_described(reader, block, "GC info, which NativeAOT does not publish");
}

static bool debug_info(struct reader *reader, const struct code_block *block, uint64_t *ret, bool *ret_has_flag_byte)
{
    (void)reader;
    (void)block;
    *ret = 0; /* the code has no map to IL */
    *ret_has_flag_byte = false;
    return true;
}

static bool clauses(struct reader *reader, const struct code_block *block, struct exception_clauses *ret)
{
    *ret = (struct exception_clauses){0};
    return not_described(reader, block, "exception clauses, which NativeAOT does not publish");
}

const struct jit_manager_ops native_aot_manager = {
    .range_kind = "aot",
    .method_kind = CDACQ_CODE_NATIVE_AOT,
    .by_call_frames = true,
    .find = find,
    .each = each,
    .part_count = part_count,
    .block_at = block_at,
    .functions = functions,
    .gc_info = gc_info,
    .debug_info = debug_info,
    .clauses = clauses,
};
