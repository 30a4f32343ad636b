#include "contracts/unwind/gc_info_x86.h"

enum {
    VERSION_MIN = 2,
    VERSION_MAX = 4,
    MORE = 0x80,          /* a byte follows */
    NUMBER_BYTES_MAX = 5, /* 32 bits, seven a byte */
    PUSHED_MAX = 1 << 20, /* words */
    FRAME_MAX = 1 << 26,  /* words */
    EPILOGS_MAX = 4,      /* a head has no greater number */
    FOLLOWS = UINT32_MAX, /* a number that is after the head */
};

/* What the first byte of a head stands for. */
enum {
    AT_END = 1,
    EDI = 2,
    ESI = 4,
    EBX = 8,
    EBP = 0x10,
    FRAME = 0x20,
    INTERRUPTIBLE = 0x40,
    HANDLERS = 0x80, /* not needed */
    LIFETIMES = 0x100,
};

static const struct usual_head {
    uint8_t prolog_size, epilog_size, epilog_count;
    uint16_t flags;
    uint8_t arguments, frame, untracked; /* words, words, variables */
} usual_heads[128] = {
    {0, 1, 1, 0, 0, 0, 0},      {0, 1, 1, 0x1, 0, 0, 0},     {0, 1, 2, 0, 0, 0, 0},      {0, 1, 3, 0, 0, 0, 0},
    {0, 3, 1, 0x1, 1, 0, 0},    {0, 3, 1, 0x1, 1, 0, 1},     {0, 3, 1, 0x1, 2, 0, 0},    {0, 3, 1, 0x1, 2, 0, 1},
    {0, 3, 1, 0x1, 2, 0, 2},    {0, 3, 1, 0x1, 3, 0, 0},     {0, 3, 1, 0x1, 4, 0, 0},    {0, 3, 1, 0x1, 4, 0, 1},
    {1, 0, 0, 0x100, 0, 1, 0},  {1, 0, 0, 0x100, 1, 1, 0},   {1, 2, 1, 0x100, 0, 1, 0},  {1, 2, 1, 0x4, 0, 0, 0},
    {1, 2, 1, 0x1, 0, 1, 0},    {1, 2, 1, 0x9, 0, 0, 0},     {1, 2, 1, 0x5, 0, 0, 0},    {1, 2, 2, 0x4, 0, 0, 0},
    {1, 2, 3, 0x4, 0, 0, 0},    {1, 4, 1, 0x5, 1, 0, 0},     {1, 4, 1, 0x5, 1, 0, 1},    {1, 4, 1, 0x5, 2, 0, 0},
    {1, 4, 1, 0x5, 2, 0, 2},    {1, 4, 2, 0x4, 1, 0, 0},     {2, 3, 1, 0x104, 0, 1, 0},  {2, 3, 1, 0xc, 0, 0, 0},
    {2, 3, 1, 0x6, 0, 0, 0},    {2, 3, 1, 0x46, 0, 0, 0},    {2, 3, 1, 0x5, 0, 1, 0},    {2, 3, 1, 0x105, 0, 1, 0},
    {2, 3, 1, 0xd, 0, 0, 0},    {2, 3, 1, 0x7, 0, 0, 0},     {2, 3, 2, 0x6, 0, 0, 0},    {2, 3, 3, 0x6, 0, 0, 0},
    {2, 5, 1, 0x6, 1, 0, 0},    {2, 5, 1, 0x6, 2, 0, 0},     {2, 5, 1, 0x7, 1, 0, 0},    {2, 5, 1, 0x7, 1, 0, 1},
    {2, 5, 1, 0x7, 2, 0, 0},    {2, 5, 1, 0x7, 2, 0, 1},     {2, 5, 1, 0x7, 2, 0, 2},    {2, 6, 1, 0x15f, 0, 1, 0},
    {2, 7, 1, 0x1be, 0, 0, 0},  {2, 7, 1, 0x1bf, 0, 1, 0},   {3, 4, 1, 0x6, 0, 1, 0},    {3, 4, 1, 0xe, 0, 0, 0},
    {3, 4, 1, 0x7, 0, 1, 0},    {3, 4, 1, 0xf, 0, 0, 0},     {3, 4, 2, 0x6, 0, 1, 0},    {3, 4, 2, 0xe, 0, 0, 0},
    {3, 6, 1, 0xe, 1, 0, 0},    {3, 6, 1, 0xe, 2, 0, 0},     {3, 6, 1, 0xf, 1, 0, 0},    {3, 6, 1, 0xf, 1, 0, 1},
    {3, 6, 1, 0xf, 2, 0, 0},    {3, 6, 1, 0xf, 2, 0, 2},     {3, 6, 2, 0xe, 1, 0, 0},    {3, 8, 1, 0x15e, 0, 9, 2},
    {4, 5, 1, 0xe, 0, 1, 0},    {4, 5, 1, 0x1e, 0, 0, 0},    {4, 5, 1, 0xf, 0, 1, 0},    {4, 5, 1, 0x1f, 0, 0, 0},
    {4, 5, 2, 0x1e, 0, 0, 0},   {4, 7, 1, 0x1e, 1, 0, 0},    {4, 7, 1, 0x1e, 2, 0, 0},   {4, 7, 1, 0x1f, 1, 0, 0},
    {4, 7, 1, 0x1f, 1, 0, 1},   {4, 7, 1, 0x1f, 2, 0, 0},    {5, 4, 1, 0x4f, 0, 0, 0},   {5, 6, 1, 0x1e, 0, 1, 0},
    {5, 6, 1, 0x7, 0, 2, 0},    {5, 6, 1, 0x7, 0, 4, 0},     {5, 6, 1, 0x1f, 0, 1, 0},   {5, 6, 1, 0x11f, 0, 1, 0},
    {5, 6, 1, 0x11f, 1, 1, 0},  {5, 6, 1, 0x1f, 2, 1, 0},    {5, 8, 1, 0x1f, 1, 1, 0},   {6, 0, 0, 0x3e, 0, 0, 0},
    {6, 0, 0, 0x7e, 0, 0, 0},   {6, 4, 1, 0x130, 0, 2, 0},   {6, 4, 1, 0x131, 0, 2, 0},  {6, 6, 1, 0x36, 0, 1, 0},
    {6, 6, 1, 0x37, 0, 1, 0},   {6, 7, 1, 0xf, 0, 2, 0},     {7, 4, 1, 0x4e, 0, 0, 0},   {7, 5, 1, 0x134, 0, 3, 0},
    {7, 5, 1, 0x134, 0, 5, 0},  {7, 8, 1, 0x11e, 0, 3, 0},   {7, 8, 1, 0x1f, 0, 2, 0},   {7, 8, 1, 0x11f, 0, 2, 0},
    {7, 8, 2, 0x11e, 0, 3, 0},  {7, 10, 1, 0x11e, 2, 6, 1},  {7, 10, 1, 0x1f, 1, 2, 0},  {7, 10, 1, 0x11f, 1, 2, 1},
    {7, 10, 1, 0x1f, 2, 2, 0},  {7, 10, 1, 0x11f, 2, 3, 0},  {8, 3, 1, 0x5, 0, 1, 1},    {8, 6, 1, 0x37, 0, 2, 0},
    {9, 4, 1, 0x7, 0, 1, 1},    {9, 7, 1, 0x3f, 0, 2, 0},    {9, 7, 1, 0x1bf, 0, 0, 0},  {10, 5, 1, 0x5, 0, 4, 1},
    {10, 5, 1, 0xf, 0, 1, 1},   {11, 6, 1, 0x7, 0, 4, 1},    {12, 5, 1, 0x35, 0, 1, 0},  {13, 8, 1, 0x15e, 0, 9, 0},
    {13, 8, 1, 0x1f, 0, 2, 1},  {13, 10, 1, 0x15e, 2, 6, 1}, {14, 7, 1, 0x17f, 0, 1, 0}, {16, 7, 1, 0x1be, 0, 4, 0},
    {16, 7, 1, 0x1bf, 0, 0, 0}, {16, 7, 1, 0x1bf, 0, 1, 0},  {16, 7, 1, 0xbf, 0, 3, 0},  {16, 7, 1, 0xbf, 0, 4, 0},
    {16, 7, 1, 0x1bf, 0, 4, 0}, {16, 7, 1, 0x1bf, 0, 5, 0},  {16, 7, 1, 0x1bf, 0, 6, 0}, {16, 7, 2, 0x1be, 0, 4, 0},
    {16, 9, 1, 0x1bf, 1, 4, 1}, {16, 9, 1, 0x1bf, 2, 4, 1},  {19, 7, 1, 0x1ff, 0, 5, 0}, {24, 7, 1, 0x1bf, 0, 5, 0},
    {45, 9, 1, 0x3f, 1, 0, 0},  {51, 7, 1, 0x13e, 0, 13, 0}, {51, 7, 1, 0x13f, 0, 1, 0}, {51, 7, 1, 0x3f, 0, 11, 0},
};

/* Of the usual calls in methods without a frame pointer: the distance from the entry before; in bits 6 and 7 what the
 * call removes. */
static const uint8_t usual_calls[80] = {
    0x0a, 0x0c, 0x4c, 0x0a, 0x0c, 0x0e, 0x10, 0x0b, 0x0d, 0x08, 0x4c, 0x11, 0x0e, 0x12, 0x10, 0x11,
    0x4a, 0x0a, 0x0f, 0x13, 0x08, 0x15, 0x4d, 0x0c, 0x0d, 0x23, 0x1b, 0x14, 0x0f, 0x0a, 0x09, 0x12,
    0x16, 0x07, 0x09, 0x0c, 0x0c, 0x0e, 0x1a, 0x18, 0x17, 0x1f, 0x13, 0x0a, 0x0e, 0x48, 0x0b, 0x4a,
    0x07, 0x13, 0x49, 0x19, 0x11, 0x21, 0x8d, 0x10, 0x0f, 0x14, 0x0c, 0x48, 0x20, 0x10, 0x0f, 0x1e,
    0x0c, 0x16, 0x12, 0x22, 0x1d, 0x0c, 0x0e, 0x0a, 0x49, 0x10, 0x15, 0x4a, 0x0a, 0x4c, 0x09, 0x07,
};

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

struct cursor {
    struct reader *reader;
    uint64_t at;
};

static uint32_t next(struct cursor *cursor)
{
    return read_u8(cursor->reader, cursor->at++);
}

static uint32_t next_word(struct cursor *cursor)
{
    cursor->at += 4;
    return read_u32(cursor->reader, cursor->at - 4);
}

static uint32_t damaged(struct cursor *cursor, const char *what)
{
    reader_fail(cursor->reader, CDACQ_ERR_CORRUPT, cursor->at, what);
    return 0;
}

/* A number of seven bits a byte, the highest first. Of a signed one only the length is of interest. */
static uint32_t next_number(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < NUMBER_BYTES_MAX && !reader_failed(cursor->reader); i++) {
        uint32_t byte = next(cursor);
        value = value << 7 | (byte & 0x7f);
        if (!(byte & MORE))
            return value <= UINT32_MAX ? (uint32_t)value : damaged(cursor, "GC info: number");
    }
    return damaged(cursor, "GC info: number");
}

/* ---- The head --------------------------------------------------------------------------------------------------- */

/* The head as its bytes build it up. */
struct head {
    struct gc_info_x86 info;
    uint32_t arguments, frame; /* words */
    uint32_t untracked, lifetimes, no_gc_regions;
    bool has_cookie, is_synchronized, is_reverse;
};

static void begin_head(const struct usual_head *usual, struct head *ret)
{
    *ret = (struct head){
        .info = {.prolog_size = usual->prolog_size,
                 .epilog_size = usual->epilog_size,
                 .epilog_count = usual->epilog_count,
                 .epilog_at_end = usual->flags & AT_END,
                 .saves_edi = usual->flags & EDI,
                 .saves_esi = usual->flags & ESI,
                 .saves_ebx = usual->flags & EBX,
                 .saves_ebp = usual->flags & EBP,
                 .has_frame = usual->flags & FRAME,
                 .interruptible = usual->flags & INTERRUPTIBLE},
        .arguments = usual->arguments,
        .frame = usual->frame,
        .untracked = usual->untracked,
        .lifetimes = usual->flags & LIFETIMES ? FOLLOWS : 0,
    };
}

static void flip(bool *flag)
{
    *flag = !*flag;
}

/* A byte from 0x3b to 0x4e. */
static void change_flag(uint32_t byte, struct head *head)
{
    struct gc_info_x86 *info = &head->info;
    bool *const flags[] = {
        &info->saves_edi, &info->saves_esi,     &info->saves_ebx,      &info->saves_ebp,
        &info->has_frame, &info->interruptible, &info->double_aligned,
    };
    uint32_t number = byte - 0x3b;
    if (number < ARRAY_SIZE(flags))
        flip(flags[number]);
    else if (byte == 0x46)
        head->lifetimes = ~head->lifetimes;
    else if (byte == 0x47)
        head->untracked = FOLLOWS;
    else if (byte == 0x48)
        flip(&info->caller_pops);
    else if (byte == 0x4a)
        flip(&head->has_cookie);
    else if (byte == 0x4b)
        flip(&head->is_synchronized);
    else if (byte == 0x4e)
        flip(&head->is_reverse);
    /* the others have no part in the frame */
}

/* What follows 0x4f: what the method returns, or how many regions of it no collection may interrupt. */
static void change_more(struct cursor *cursor, uint32_t byte, struct head *head)
{
    if (byte > 9)
        damaged(cursor, "GC info: head");
    if (byte >= 4)
        head->no_gc_regions = byte == 9 ? FOLLOWS : byte - 4;
}

static void change(struct cursor *cursor, uint32_t byte, struct head *head)
{
    struct gc_info_x86 *info = &head->info;
    if (byte < 0x08)
        head->frame = byte;
    else if (byte < 0x11)
        head->arguments = byte - 0x08;
    else if (byte < 0x22)
        info->prolog_size = byte - 0x11;
    else if (byte < 0x2d)
        info->epilog_size = byte - 0x22;
    else if (byte < 0x37) {
        info->epilog_count = (byte - 0x2d) / 2;
        info->epilog_at_end = (byte - 0x2d) & 1;
    } else if (byte < 0x3b)
        head->untracked = byte - 0x37;
    else if (byte < 0x50)
        change_flag(byte, head);
    else if (byte < 0x60)
        head->frame = head->frame << 4 | (byte & 15);
    else if (byte < 0x70)
        head->arguments = head->arguments << 4 | (byte & 15);
    else if (byte < 0x78)
        info->prolog_size = info->prolog_size << 3 | (byte & 7);
    else
        info->epilog_size = info->epilog_size << 3 | (byte & 7);
    if (byte == 0x4f || head->frame > FRAME_MAX || head->arguments > UINT16_MAX || info->prolog_size > UINT16_MAX ||
        info->epilog_size > UINT16_MAX)
        damaged(cursor, "GC info: head");
}

static void skip_numbers(struct cursor *cursor, uint64_t count)
{
    while (count-- && reader_step(cursor->reader, "GC info"))
        next_number(cursor);
}

/* The numbers and tables between the head's bytes and the table of pushes. */
static void read_rest(struct cursor *cursor, struct head *head)
{
    struct gc_info_x86 *info = &head->info;
    bool has_offset = head->untracked == FOLLOWS || head->lifetimes == FOLLOWS || head->no_gc_regions;
    if (head->untracked == FOLLOWS)
        head->untracked = next_number(cursor);
    if (head->lifetimes == FOLLOWS)
        head->lifetimes = next_number(cursor);
    skip_numbers(cursor, (uint64_t)head->has_cookie + 2 * head->is_synchronized + head->is_reverse);
    if (head->no_gc_regions == FOLLOWS)
        head->no_gc_regions = next_number(cursor);
    if (info->epilog_count > 1 || (info->epilog_count && !info->epilog_at_end)) {
        info->epilogs = cursor->at;
        skip_numbers(cursor, info->epilog_count);
    }
    if (has_offset) {
        uint32_t offset = next_number(cursor);
        info->pushes = cursor->at + offset;
        info->regions = cursor->at;
        info->region_count = head->no_gc_regions;
        return;
    }
    skip_numbers(cursor, (uint64_t)2 * head->no_gc_regions + head->untracked + (uint64_t)3 * head->lifetimes);
    info->pushes = cursor->at;
}

bool gc_info_x86_read(struct reader *reader, uint64_t gc_info, unsigned version, struct gc_info_x86 *ret)
{
    struct cursor cursor = {reader, gc_info};
    struct head head;
    if (version < VERSION_MIN || version > VERSION_MAX)
        reader_fail(reader, CDACQ_ERR_CORRUPT, gc_info, "GC info: version");
    uint32_t code_size = next_number(&cursor), byte = next(&cursor);
    begin_head(&usual_heads[byte & 0x7f], &head);
    while (byte & MORE && reader_step(reader, "GC info")) {
        byte = next(&cursor);
        if (byte != (MORE | 0x4f)) {
            change(&cursor, byte & 0x7f, &head);
        } else {
            byte = next(&cursor);
            change_more(&cursor, byte & 0x7f, &head);
        }
    }
    read_rest(&cursor, &head);
    if ((head.info.has_frame || head.info.double_aligned) && !head.info.saves_ebp)
        damaged(&cursor, "GC info: frame pointer");
    if (head.info.epilog_count > EPILOGS_MAX)
        damaged(&cursor, "GC info: epilogs");
    if (reader_failed(reader))
        return false;
    *ret = head.info;
    ret->code_size = code_size;
    ret->arguments = 4 * head.arguments;
    ret->frame_size = 4 * head.frame;
    return true;
}

bool gc_info_x86_epilog(struct reader *reader, const struct gc_info_x86 *info, uint32_t offset, uint32_t *ret)
{
    struct cursor cursor = {reader, info->epilogs};
    uint64_t start = 0;
    bool found = false;
    if (!info->epilog_count)
        return false;
    if (!info->epilogs) {
        *ret = info->code_size - info->epilog_size;
        return info->epilog_size <= info->code_size && *ret < offset;
    }
    for (uint32_t i = 0; i < info->epilog_count && reader_step(reader, "epilogs"); i++) {
        start += next_number(&cursor);
        if (start >= offset)
            break;
        *ret = (uint32_t)start;
        found = true;
    }
    return found && !reader_failed(reader);
}

bool gc_info_x86_is_safe(struct reader *reader, const struct gc_info_x86 *info, uint32_t offset)
{
    struct cursor cursor = {reader, info->regions};
    uint32_t epilog;
    if (!info->interruptible || offset < info->prolog_size ||
        (gc_info_x86_epilog(reader, info, offset, &epilog) && offset - epilog < info->epilog_size))
        return false;
    for (uint32_t i = 0; i < info->region_count && reader_step(reader, "GC info: regions"); i++) {
        uint32_t start = next_number(&cursor), size = next_number(&cursor);
        if (offset >= start && offset - start < size)
            return false;
    }
    return !reader_failed(reader);
}

/* ---- What is pushed --------------------------------------------------------------------------------------------- */

/* The state of a scan: words pushed at an offset. */
struct pushed {
    uint32_t offset, target;
    int64_t words;
    bool done;
};

/* Goes on to the offset of an entry; false if the entry is beyond the target. */
static bool go_on(struct pushed *pushed, uint32_t distance)
{
    pushed->done = distance > pushed->target - pushed->offset;
    if (!pushed->done)
        pushed->offset += distance;
    return !pushed->done;
}

static void add(struct pushed *pushed, uint32_t distance, int64_t words)
{
    if (go_on(pushed, distance))
        pushed->words += words;
}

/* An entry of a method that is interruptible everywhere. */
static void interruptible_entry(struct cursor *cursor, struct pushed *pushed)
{
    uint32_t byte = next(cursor), number = byte >> 3 & 7, distance = byte & 7;
    if (byte < 0x80) { /* a register */
        go_on(pushed, distance);
    } else if (byte < 0xc0 && number < 6) { /* push of a reference, the number-th word */
        if (go_on(pushed, distance))
            pushed->words = number + 1;
    } else if (number < 6) {
        add(pushed, distance, -(int64_t)number);
    } else if (number == 6) {
        if (byte >= 0xc0)
            go_on(pushed, 8 * (distance + 1));
        else
            add(pushed, distance, 1);
    } else if (byte == 0xb8) {
        go_on(pushed, next_number(cursor));
    } else if (byte == 0xf8) {
        pushed->words = (int64_t)next_number(cursor) + 1;
    } else if (byte == 0xf9) {
        pushed->words += next_number(cursor);
    } else if (byte == 0xfc) {
        pushed->words -= next_number(cursor);
    } else if (byte == 0xfd) { /* references that are no longer any remain pushed */
        next_number(cursor);
    } else if (byte == 0xff) {
        pushed->done = true;
    } else if (byte != 0xbc && byte != 0xbf) { /* not a prefix */
        damaged(cursor, "GC info: pushes");
    }
}

/* An entry from 0xd0 on, of a method that is not: a call with its own numbers, or what belongs to a call. */
static void long_call_entry(struct cursor *cursor, uint32_t byte, struct pushed *pushed)
{
    static const uint8_t distances[] = {6, 8, 10, 12};
    if (byte < 0xe0) {
        uint32_t second = next(cursor);
        add(pushed, distances[second >> 6], -(int64_t)(second >> 3 & 7));
    } else if (byte < 0xf0) {
        pushed->words -= next_number(cursor);
        next_number(cursor);
    } else if (byte == 0xf0) {
        next_number(cursor);
    } else if (byte == 0xf8) {
        next(cursor);
        uint32_t distance = next_word(cursor), count = next_word(cursor);
        next_word(cursor);
        cursor->at += 4 + (uint64_t)read_u32(cursor->reader, cursor->at);
        add(pushed, distance, -(int64_t)count);
    } else if (byte == 0xff) {
        pushed->done = true;
    } else if (byte < 0xf4 || byte > 0xf7) {
        damaged(cursor, "GC info: pushes");
    }
}

/* An entry of a method without a frame pointer that is interruptible at calls only. */
static void call_entry(struct cursor *cursor, struct pushed *pushed)
{
    uint32_t byte = next(cursor);
    if (byte < 0x20)
        add(pushed, byte, 1);
    else if (byte == 0x20)
        pushed->words += next_number(cursor);
    else if (byte == 0x40)
        go_on(pushed, next_number(cursor));
    else if (byte > 0x40 && byte < 0x80)
        add(pushed, byte & 15, -(int64_t)(byte >> 4 & 3));
    else if (byte >= 0x80 && byte - 0x80 < ARRAY_SIZE(usual_calls))
        add(pushed, usual_calls[byte - 0x80] & 63, -(int64_t)(usual_calls[byte - 0x80] >> 6));
    else if (byte >= 0xd0)
        long_call_entry(cursor, byte, pushed);
    else
        damaged(cursor, "GC info: pushes");
}

bool gc_info_x86_pushed(struct reader *reader, const struct gc_info_x86 *info, uint32_t offset, uint32_t *ret)
{
    struct cursor cursor = {reader, info->pushes};
    struct pushed pushed = {.target = offset};
    pushed.done = info->has_frame && !info->interruptible;
    while (!pushed.done && reader_step(reader, "GC info: pushes")) {
        if (info->interruptible)
            interruptible_entry(&cursor, &pushed);
        else
            call_entry(&cursor, &pushed);
        if (pushed.words < 0 || pushed.words > PUSHED_MAX)
            damaged(&cursor, "GC info: pushes");
    }
    *ret = reader_failed(reader) ? 0 : 4 * (uint32_t)pushed.words;
    return !reader_failed(reader);
}
