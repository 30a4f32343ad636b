#include "tests/support/unwind_support.h"

#include "src/lookup/opened_target.h"

void unwind_fixture_setup(struct unwind_fixture *f, int architecture, uint64_t seed)
{
    static const enum mock_unwind unwinds[ARCHITECTURE_COUNT] = {
        [ARCHITECTURE_X86] = MOCK_UNWIND_FUNCTION_LENGTH,
        [ARCHITECTURE_X64] = MOCK_UNWIND_END_ADDRESS,
        [ARCHITECTURE_ARM] = MOCK_UNWIND_HEADER,
        [ARCHITECTURE_ARM64] = MOCK_UNWIND_HEADER,
        [ARCHITECTURE_LOONGARCH64] = MOCK_UNWIND_LOONGARCH64,
        [ARCHITECTURE_RISCV64] = MOCK_UNWIND_RISCV64,
    };
    bool narrow = architecture == ARCHITECTURE_X86 || architecture == ARCHITECTURE_ARM;
    struct mock_options options = {.pointer_size = narrow ? 4 : 8, .seed = seed, .unwind = unwinds[architecture]};
    memset(f, 0, sizeof *f);
    f->mock = mock_create(&options);
    ck_assert_ptr_nonnull(f->mock);
    f->entry_size = mock_size_of(f->mock, "RuntimeFunction");
    f->base = mock_map(f->mock, 0, UNWIND_ROOM, MOCK_READ, NULL, 0);
    f->functions = mock_alloc(f->mock, (uint64_t)UNWIND_ENTRIES * f->entry_size, 4);
    f->target = mock_publish_and_open(f->mock);
    f->layout = f->target->layout;
    ck_assert_int_eq((int)f->layout.architecture, architecture);
    f->reader = mock_reader(f->target);
    f->reader.layout = &f->layout;
}

void unwind_fixture_teardown(struct unwind_fixture *f)
{
    cdacq_target_close(f->target);
    mock_destroy(f->mock);
}

void unwind_fixture_entry(struct unwind_fixture *f, uint32_t i, uint32_t begin, uint32_t length, uint32_t unwind_data)
{
    uint64_t entry = f->functions + (uint64_t)i * f->entry_size;
    mock_set(f->mock, entry, "RuntimeFunction.BeginAddress", begin);
    mock_set(f->mock, entry, "RuntimeFunction.UnwindData", unwind_data);
    if (f->layout.fields[F_RuntimeFunction_EndAddress].present)
        mock_set(f->mock, entry, "RuntimeFunction.EndAddress", begin + length);
}

void unwind_fixture_word(struct unwind_fixture *f, uint32_t offset, uint32_t value)
{
    mock_write_uint(f->mock, f->base + offset, 4, value);
}
