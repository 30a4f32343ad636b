/*
 * fuzz_native_aot.c: a small NativeAOT program in which the input overwrites bytes, each by an offset and a value; then
 * every function, name, type and thread is asked for. An answer covers its address, and a failed name leaves no text.
 */
#include <stdlib.h>

#include "contracts/native_aot/aot_name.h"
#include "contracts/native_aot/aot_thread.h"
#include "target/image.h"
#include "tests/support/aot_program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(struct text *text, bool is_named)
{
    if (!is_named && text->length)
        abort();
    text_clear(text);
}

static bool check_function(const struct aot_function *function, void *context)
{
    uint64_t *last = context;
    if (function->begin >= function->end || function->method > function->begin || function->begin < *last)
        abort();
    *last = function->begin;
    return true;
}

static void ask_code(struct aot_program *program, struct text *text)
{
    struct reader *reader = &program->reader;
    for (uint64_t at = AOT_CODE; at < AOT_CODE + AOT_CODE_SIZE; at += 16) {
        struct aot_function function;
        reader_begin(reader, FUEL_LOOKUP);
        if (aot_function_at(&program->aot, reader, at, &function) && (at < function.begin || at >= function.end))
            abort();
        uint64_t end = reader_failed(reader) ? 0 : aot_method_end(&program->aot, reader, at);
        if (end && end <= at)
            abort();
        for (enum aot_name_style style = AOT_STACK_TRACE; style <= AOT_CSHARP; style++) {
            reader_begin(reader, FUEL_LOOKUP);
            check_text(text, aot_name_method(&program->aot, reader, at, style, text) == CDACQ_OK);
        }
    }
    uint64_t last = 0, begin, end;
    reader_begin(reader, FUEL_INDEX);
    aot_code_range(reader, &begin, &end);
    reader_begin(reader, FUEL_INDEX);
    aot_functions_each(&program->aot, reader, AOT_CODE, UINT64_MAX, check_function, &last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct aot_program *program = malloc(sizeof *program);
    struct text text = {0};
    if (!program)
        abort();
    aot_program_init(program);
    for (size_t i = 0; i + 3 <= size; i += 3)
        *aot_program_at(program, AOT_BASE + load_u16(data + i, false) % AOT_SIZE) = data[i + 2];
    struct reader *reader = &program->reader;
    ask_code(program, &text);
    for (enum aot_program_type type = 0; type < AOT_TYPES; type++) {
        reader_begin(reader, FUEL_LOOKUP);
        check_text(&text, aot_name_type(&program->aot, reader, aot_program_type(type), &text) == CDACQ_OK);
    }
    reader_begin(reader, FUEL_LOOKUP);
    uint64_t object = aot_managed_thread(&program->aot, reader, AOT_THREAD);
    if (object && !reader_failed(reader))
        (void)aot_managed_thread_id(reader, object);
    text_deinit(&text);
    aot_program_deinit(program);
    free(program);
    return 0;
}
