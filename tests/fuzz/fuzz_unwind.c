/*
 * fuzz_unwind.c: any bytes as code, unwind data and stack of a frame of managed code. The first eight bytes are the
 * registers in small: where the program counter, the function's begin and end, the unwind data and the stack pointer
 * are in the memory that follows; the last of them chooses the architecture. A frame that is unwound has moved up the
 * stack; one that is not is untouched.
 */
#include "contracts/unwind/unwinder.h"
#include "target/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    BASE = 0x10000,
    HEADER = 8,
    WALK_MAX = 16,
    INTERRUPTED = 1,
    ARM64 = 2,
    PACKED = 4,
    ARM = 8,
    FUNCLET = 16,
    X86 = 32
};

struct bytes_at {
    const uint8_t *data;
    size_t size;
};

static bool span_at(void *context, uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes)
{
    const struct bytes_at *bytes = context;
    if (address < BASE || address - BASE >= bytes->size)
        return false;
    *ret_begin = BASE;
    *ret_end = BASE + bytes->size;
    *ret_bytes = bytes->data;
    return true;
}

static void walk(const struct unwinder *unwinder, struct reader *reader, const struct unwind_function *function,
                 bool interrupted, struct registers registers)
{
    for (unsigned i = 0; i < WALK_MAX; i++) {
        struct registers before = registers;
        reader_begin(reader, FUEL_LOOKUP);
        bool unwound = unwinder->unwind(reader, function, interrupted, &registers);
        if (unwound == reader_failed(reader))
            abort();
        if (!unwound && memcmp(&before, &registers, sizeof before))
            abort();
        if (!unwound)
            return;
        if (registers.values[unwinder->sp] < before.values[unwinder->sp] + !interrupted)
            abort();
        registers.values[unwinder->pc] = before.values[unwinder->pc]; /* as if it were recursive */
        interrupted = false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct target *target;
    struct reader reader;
    if (size < HEADER)
        return 0;
    struct bytes_at bytes = {data + HEADER, size - HEADER};
    struct cdacq_memory memory = {.size = sizeof memory, .context = &bytes, .span_at = span_at};
    if (memory_open(&memory, NULL, false, &target, NULL) != CDACQ_OK)
        abort();
    reader_init(&reader, target, 8, false);
    const struct unwinder *unwinder = data[7] & X86     ? &unwinder_x86
                                      : data[7] & ARM   ? &unwinder_arm
                                      : data[7] & ARM64 ? &unwinder_arm64
                                                        : &unwinder_x64;
    struct unwind_function function = {
        .base = BASE,
        .begin = BASE + data[1],
        .end = BASE + data[1] + data[2],
        .unwind_data = BASE + data[3],
        .method = BASE + (data[7] & PACKED ? 0 : data[1]),
        .gc_info = BASE + data[3],
        .gc_info_version = 4,
        .funclet = data[7] & FUNCLET,
        .packed = data[7] & PACKED && bytes.size >= 4 ? load_u32(bytes.data, false) : 0,
    };
    struct registers registers = {0};
    for (unsigned i = 0; i < REGISTER_MAX; i++)
        if (data[5] >> i % 8 & 1)
            register_set(&registers, i, BASE + 4 * (uint64_t)data[6] + i);
    register_set(&registers, unwinder->pc, function.begin + data[0]);
    register_set(&registers, unwinder->sp, BASE + 4 * (uint64_t)data[4]);
    walk(unwinder, &reader, &function, data[7] & INTERRUPTED, registers);
    target_destroy(target);
    return 0;
}
