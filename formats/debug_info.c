#include "formats/debug_info.h"

#include "util/binary_search.h"

enum {
    FLAG_PATCHPOINT = 1, /* EXTRA_DEBUG_INFO_FLAGS of the flag byte */
    FLAG_RICH = 2,
    NUMBER_NIBBLES_MAX = 11,                /* of 32 bits, three at a time */
    HEADER_MAX = 40,                        /* bytes of seven numbers */
    LOCALS_MAX = 1024 * 1024,               /* of one PatchpointInfo */
    IL_OFFSET_BIAS = DEBUG_INFO_EPILOG,     /* the least il_offset is stored as 0 */
    SECOND_BOUNDS_FOLLOW = (int)UINT32_MAX, /* in place of the size of the bounds: instrumented code of .NET 10 */
};

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

/* Numbers of three bits a nibble, the highest first; of each byte the low nibble comes first. */
struct nibbles {
    const uint8_t *data;
    size_t size, at; /* `at` counts nibbles */
    bool failed;
};

static uint32_t read_number(struct nibbles *nibbles)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < NUMBER_NIBBLES_MAX && nibbles->at / 2 < nibbles->size; i++, nibbles->at++) {
        unsigned nibble = nibbles->data[nibbles->at / 2] >> 4 * (nibbles->at % 2) & 15;
        value = value << 3 | (nibble & 7);
        if (!(nibble & 8)) {
            nibbles->at++;
            return value;
        }
    }
    nibbles->failed = true;
    return 0;
}

/* Bytes that the numbers so far take. */
static size_t bytes_read(const struct nibbles *nibbles)
{
    return (nibbles->at + 1) / 2;
}

/* `count` bits, at most 32, the lowest first. */
static uint32_t read_bits(const uint8_t *data, size_t size, uint64_t *bit, unsigned count)
{
    uint64_t value = 0;
    unsigned have = 0;
    if (LIKELY(*bit / 8 + sizeof value <= size)) {
        value = load_u64(data + *bit / 8, false) >> *bit % 8;
        have = count;
    }
    for (; have < count; have = MIN(have + 8 - (unsigned)(*bit + have) % 8, count))
        value |= (uint64_t)(data[(*bit + have) / 8] >> (*bit + have) % 8) << have;
    *bit += count;
    return (uint32_t)(value & ((UINT64_C(1) << count) - 1));
}

/* ---- Bounds ----------------------------------------------------------------------------------------------------- */

typedef bool bound_found(const struct debug_info_bound *bound, void *context);

static bool each_of_nibbles(const uint8_t *data, size_t size, bound_found *found, void *context)
{
    /* ICorDebugInfo::SourceTypes */
    enum { STACK_EMPTY = 2, CALL_INSTRUCTION = 16 };
    struct nibbles nibbles = {.data = data, .size = size};
    uint32_t count = read_number(&nibbles), native_offset = 0;
    for (uint32_t i = 0; i < count && !nibbles.failed; i++) {
        uint32_t delta = read_number(&nibbles), il_offset = read_number(&nibbles), source = read_number(&nibbles);
        if (nibbles.failed || __builtin_add_overflow(native_offset, delta, &native_offset))
            return false;
        struct debug_info_bound bound = {
            .native_offset = native_offset,
            .il_offset = (int32_t)(il_offset + (uint32_t)IL_OFFSET_BIAS),
            .source = (source & CALL_INSTRUCTION ? DEBUG_INFO_CALL_INSTRUCTION : 0u) |
                      (source & STACK_EMPTY ? DEBUG_INFO_STACK_EMPTY : 0u),
        };
        if (!found(&bound, context))
            return true;
    }
    return !nibbles.failed;
}

static bool each_of_bits(const uint8_t *data, size_t size, unsigned source_bits, bound_found *found, void *context)
{
    struct nibbles nibbles = {.data = data, .size = size};
    uint32_t count = read_number(&nibbles), native_offset = 0;
    uint32_t native_bits = read_number(&nibbles), il_bits = read_number(&nibbles);
    if (nibbles.failed || native_bits >= 32 || il_bits >= 32)
        return false;
    unsigned width = source_bits + ++native_bits + ++il_bits;
    uint64_t bit = 8 * (uint64_t)bytes_read(&nibbles);
    if (bit + (uint64_t)count * width > 8 * (uint64_t)size)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        struct debug_info_bound bound = {.source = read_bits(data, size, &bit, source_bits)};
        if (__builtin_add_overflow(native_offset, read_bits(data, size, &bit, native_bits), &native_offset))
            return false;
        bound.native_offset = native_offset;
        bound.il_offset = (int32_t)(read_bits(data, size, &bit, il_bits) + (uint32_t)IL_OFFSET_BIAS);
        if (!found(&bound, context))
            return true;
    }
    return true;
}

static bool each_of_packed(const uint8_t *data, size_t size, bound_found *found, void *context)
{
    return each_of_bits(data, size, 2, found, context);
}

static bool each_of_chunked(const uint8_t *data, size_t size, bound_found *found, void *context)
{
    return each_of_bits(data, size, 3, found, context);
}

/* ---- Headers ---------------------------------------------------------------------------------------------------- */

struct chunk_sizes {
    uint32_t bounds, uninstrumented, vars;
};

static void sizes_of_nibbles(struct nibbles *nibbles, struct chunk_sizes *ret)
{
    ret->bounds = read_number(nibbles);
    ret->vars = read_number(nibbles);
}

static void sizes_of_packed(struct nibbles *nibbles, struct chunk_sizes *ret)
{
    ret->bounds = read_number(nibbles);
    if (ret->bounds == (uint32_t)SECOND_BOUNDS_FOLLOW) {
        ret->bounds = read_number(nibbles);
        ret->uninstrumented = read_number(nibbles);
    }
    ret->vars = read_number(nibbles);
}

static void sizes_of_chunked(struct nibbles *nibbles, struct chunk_sizes *ret)
{
    uint32_t first = read_number(nibbles);
    bool fat = first == 0;
    ret->bounds = fat ? read_number(nibbles) : first;
    ret->vars = read_number(nibbles);
    ret->uninstrumented = fat ? read_number(nibbles) : 0;
    for (unsigned i = 0; i < 3 && fat; i++)
        (void)read_number(nibbles); /* patchpoints, rich info, async info: they follow the bounds */
}

struct debug_info_encoding {
    void (*read_sizes)(struct nibbles *nibbles, struct chunk_sizes *ret);
    bool (*each)(const uint8_t *data, size_t size, bound_found *found, void *context);
    uint8_t patchpoint_size;        /* of a PatchpointInfo without locals */
    uint8_t patchpoint_local_count; /* the offset in it */
    bool vars_before_uninstrumented;
    bool number_first; /* of a variable its number comes before its range */
    int8_t number_min; /* the number of a variable that is stored as 0 */
    uint8_t xmm0;      /* the number of that register: .NET 10 counts the registers of APX before it */
};

const struct debug_info_encoding debug_info_nibbles = {sizes_of_nibbles, each_of_nibbles, 32, 8,
                                                       .number_min = -4, .xmm0 = 16};
const struct debug_info_encoding debug_info_packed = {sizes_of_packed,  each_of_packed, 40, 16,
                                                      .number_min = -4, .xmm0 = 32};
const struct debug_info_encoding debug_info_chunked = {
    sizes_of_chunked,     each_of_chunked,  .vars_before_uninstrumented = true,
    .number_first = true, .number_min = -6, .xmm0 = 16};

/* Moves *offset past the flag byte and what it announces. */
static bool skip_flagged(const struct debug_info_encoding *encoding, const struct bytes *bytes, uint64_t *offset)
{
    const uint8_t *flag_byte = bytes_window(bytes, *offset, 1);
    uint32_t count;
    if (!flag_byte)
        return false;
    unsigned flags = *flag_byte;
    *offset += 1;
    if (flags & FLAG_PATCHPOINT) {
        if (!bytes_u32(bytes, *offset + encoding->patchpoint_local_count, &count) || count > LOCALS_MAX)
            return false;
        *offset += encoding->patchpoint_size + 4 * (uint64_t)count;
    }
    if (flags & FLAG_RICH) {
        if (!bytes_u32(bytes, *offset, &count))
            return false;
        *offset += 4 + (uint64_t)count;
    }
    return true;
}

uint32_t debug_info_xmm0(const struct debug_info_encoding *encoding)
{
    return encoding->xmm0;
}

bool debug_info_has_flags(const struct debug_info_encoding *encoding)
{
    return encoding->patchpoint_size != 0;
}

bool debug_info_open(const struct debug_info_encoding *encoding, const struct bytes *bytes, bool has_flag_byte,
                     struct debug_info *ret)
{
    uint64_t offset = 0;
    uint8_t header[HEADER_MAX];
    struct chunk_sizes sizes = {0};
    if (has_flag_byte && debug_info_has_flags(encoding) && !skip_flagged(encoding, bytes, &offset))
        return false;
    struct nibbles nibbles = {.data = header};
    const uint8_t *window = bytes_window(bytes, offset, HEADER_MAX);
    if (window) {
        memcpy(header, window, HEADER_MAX);
        nibbles.size = HEADER_MAX;
    }
    /* A blob may be shorter, and memory may end after it. */
    while (nibbles.size < HEADER_MAX && (window = bytes_window(bytes, offset + nibbles.size, 1)))
        header[nibbles.size++] = *window;
    encoding->read_sizes(&nibbles, &sizes);
    if (nibbles.failed || sizes.bounds > DEBUG_INFO_CHUNK_MAX || sizes.uninstrumented > DEBUG_INFO_CHUNK_MAX)
        return false;
    *ret = (struct debug_info){.encoding = encoding,
                               .bytes = bytes,
                               .offset = offset + bytes_read(&nibbles),
                               .size = sizes.bounds,
                               .variables_size = sizes.vars};
    ret->variables_offset = ret->offset + sizes.bounds;
    if (!encoding->vars_before_uninstrumented)
        ret->variables_offset += sizes.uninstrumented;
    if (sizes.uninstrumented) {
        ret->offset += sizes.bounds + (encoding->vars_before_uninstrumented ? (uint64_t)sizes.vars : 0);
        ret->size = sizes.uninstrumented;
    }
    return true;
}

bool debug_info_each(const struct debug_info *info, bound_found *found, void *context)
{
    if (!info->size)
        return true;
    const uint8_t *data = bytes_window(info->bytes, info->offset, info->size);
    return data && info->encoding->each(data, info->size, found, context);
}

/* ---- Variables -------------------------------------------------------------------------------------------------- */

/* A signed number: the lowest bit is its sign. */
static int32_t read_signed(struct nibbles *nibbles)
{
    uint32_t value = read_number(nibbles);
    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

static void read_place(struct nibbles *nibbles, struct debug_info_variable *ret)
{
    switch (ret->place) {
    case DEBUG_INFO_REG:
    case DEBUG_INFO_REG_BYREF:
    case DEBUG_INFO_REG_FP:
    case DEBUG_INFO_FPSTK:
        ret->registers[0] = read_number(nibbles);
        break;
    case DEBUG_INFO_STK:
    case DEBUG_INFO_STK_BYREF:
    case DEBUG_INFO_STK2:
        ret->registers[0] = read_number(nibbles);
        ret->offset = read_signed(nibbles);
        break;
    case DEBUG_INFO_REG_REG:
        ret->registers[0] = read_number(nibbles);
        ret->registers[1] = read_number(nibbles);
        break;
    case DEBUG_INFO_REG_STK:
        ret->registers[0] = read_number(nibbles);
        ret->registers[1] = read_number(nibbles);
        ret->offset = read_signed(nibbles);
        break;
    case DEBUG_INFO_STK_REG:
        ret->offset = read_signed(nibbles);
        ret->registers[0] = read_number(nibbles);
        ret->registers[1] = read_number(nibbles);
        break;
    case DEBUG_INFO_FIXED_VA:
        ret->offset = (int32_t)read_number(nibbles);
        break;
    default: /* what follows cannot be read */
        nibbles->failed = true;
    }
}

bool debug_info_variables(const struct debug_info *info,
                          bool (*found)(const struct debug_info_variable *variable, void *context), void *context)
{
    const struct debug_info_encoding *encoding = info->encoding;
    if (!info->variables_size)
        return true;
    const uint8_t *data = info->variables_size <= DEBUG_INFO_CHUNK_MAX
                              ? bytes_window(info->bytes, info->variables_offset, info->variables_size)
                              : NULL;
    struct nibbles nibbles = {.data = data, .size = info->variables_size, .failed = !data};
    uint32_t count = data ? read_number(&nibbles) : 0;
    for (uint32_t i = 0; i < count && !nibbles.failed; i++) {
        uint32_t numbers[3]; /* the number, the begin and the length, in either order */
        for (unsigned j = 0; j < ARRAY_SIZE(numbers); j++)
            numbers[(j + (encoding->number_first ? 0 : 1)) % ARRAY_SIZE(numbers)] = read_number(&nibbles);
        struct debug_info_variable variable = {.begin = numbers[1],
                                               .number = (int32_t)(numbers[0] + (uint32_t)encoding->number_min)};
        bool wraps = __builtin_add_overflow(variable.begin, numbers[2], &variable.end);
        variable.place = read_number(&nibbles);
        read_place(&nibbles, &variable);
        if (nibbles.failed || wraps)
            return false;
        if (!found(&variable, context))
            return true;
    }
    return !nibbles.failed;
}

/* ---- IL offsets -------------------------------------------------------------------------------------------------- */

struct mapping_task {
    struct il_map points; /* with the special il_offsets still in them */
    int32_t greatest;     /* of all bounds */
    bool failed;
};

static bool map_bound(const struct debug_info_bound *bound, void *context)
{
    struct mapping_task *task = context;
    struct il_map *points = &task->points;
    struct il_point *last = points->count ? &points->items[points->count - 1] : NULL;
    task->greatest = MAX(task->greatest, bound->il_offset);
    if (bound->source & DEBUG_INFO_CALL_INSTRUCTION)
        return true;
    if (last && last->native_offset == bound->native_offset) {
        if (bound->il_offset < (int32_t)last->il_offset && bound->il_offset != DEBUG_INFO_NO_MAPPING)
            last->il_offset = (uint32_t)bound->il_offset;
        return true;
    }
    struct il_point point = {bound->native_offset, (uint32_t)bound->il_offset};
    task->failed = points->count >= IL_MAP_MAX || !il_map_append(points, point);
    return !task->failed;
}

bool debug_info_il_map(const struct debug_info *info, struct il_map *ret)
{
    struct mapping_task task = {0};
    if (!debug_info_each(info, map_bound, &task) || task.failed) {
        il_map_deinit(&task.points);
        return false;
    }
    for (size_t i = 0; i < task.points.count; i++) {
        uint32_t *il_offset = &task.points.items[i].il_offset;
        if ((int32_t)*il_offset < 0)
            *il_offset = (int32_t)*il_offset == DEBUG_INFO_EPILOG ? (uint32_t)task.greatest : 0;
    }
    *ret = task.points;
    return true;
}

uint32_t il_map_find(const struct il_point *points, size_t count, uint32_t native_offset)
{
    size_t after = lower_bound_in_memory(i, count, points[i].native_offset <= native_offset);
    return after ? points[after - 1].il_offset : 0;
}
