/*
 * image.c: an ELF image with two segments: a read-only one with headers, build-id, symbols, hash tables and the JSON,
 * and a writable one with the dynamic section, the descriptor and its pointer data. Addresses in the second differ from
 * offsets in the file. Source: ELF gABI chapters 4, 5; the GNU hash section as glibc's dl-lookup.c reads it.
 */
#include "mocktarget/image.h"

#include <elf.h>

enum { PAGE = 4096, BUCKET_COUNT = 3, BLOOM_SHIFT = 6, BLOOM_WORDS = 2, FIRST_HASHED = 1, NOTE_SIZE = 16 + 20 };

/* The first one is the descriptor's. */
static const char *const names[] = {
    "DotNetRuntimeContractDescriptor",
    "coreclr_set_error_writer",
    "coreclr_initialize",
    "coreclr_execute_assembly",
    "coreclr_shutdown",
    "g_CLREngineMetrics",
    "MetaDataGetDispenser",
};

enum { SYMBOL_COUNT = sizeof names / sizeof *names };

/* Addresses relative to the image. */
struct parts {
    uint64_t base, note, symtab, strtab, strtab_size, gnu_hash, hash, json, text_end;
    uint64_t data, dynamic, header, pointers, data_end;
    uint64_t data_offset; /* of the second segment, in the file */
    const char *sorted[SYMBOL_COUNT];
};

static uint32_t gnu_hash(const char *name)
{
    uint32_t hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (uint8_t)*name;
    return hash;
}

static uint32_t sysv_hash(const char *name)
{
    uint32_t hash = 0;
    for (; *name; name++) {
        hash = (hash << 4) + (uint8_t)*name;
        uint32_t high = hash & 0xf0000000;
        hash = (hash ^ high >> 24) & ~high;
    }
    return hash;
}

static const char *first_symbol(enum mock_symbols symbols)
{
    return symbols == MOCK_SYMBOLS_NONE     ? "SomethingElse"
           : symbols == MOCK_SYMBOLS_NATIVE ? "DotNetRuntimeDebugHeader"
                                            : names[0];
}

static void sort_symbols(const char **sorted, const char *first)
{
    size_t count = 0;
    for (uint32_t bucket = 0; bucket < BUCKET_COUNT; bucket++)
        for (size_t i = 0; i < SYMBOL_COUNT; i++) {
            const char *name = i ? names[i] : first;
            if (gnu_hash(name) % BUCKET_COUNT == bucket)
                sorted[count++] = name;
        }
}

static uint64_t take(uint64_t *at, uint64_t size, uint64_t alignment)
{
    uint64_t place = align_up(*at, alignment);
    *at = place + size;
    return place;
}

static uint64_t symbol_size(const struct mock *mock)
{
    return mock->word == 8 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static void plan_parts(struct mock *mock, const struct image_plan *plan, struct parts *parts)
{
    uint64_t word = mock->word, at = 0;
    parts->strtab_size = 1;
    for (size_t i = 0; i < SYMBOL_COUNT; i++)
        parts->strtab_size += strlen(parts->sorted[i]) + 1;
    take(&at, (word == 8 ? sizeof(Elf64_Ehdr) + 4 * sizeof(Elf64_Phdr) : sizeof(Elf32_Ehdr) + 4 * sizeof(Elf32_Phdr)),
         1);
    parts->note = take(&at, NOTE_SIZE, 4);
    parts->symtab = take(&at, (SYMBOL_COUNT + 1) * symbol_size(mock), 8);
    parts->strtab = take(&at, parts->strtab_size, 1);
    parts->gnu_hash = take(&at, 16 + BLOOM_WORDS * word + (BUCKET_COUNT + SYMBOL_COUNT) * 4, 8);
    parts->hash = take(&at, (2 + BUCKET_COUNT + SYMBOL_COUNT + 1) * 4, 8);
    parts->json = take(&at, plan->json_size, 1 + mock_random(mock, 2));
    parts->text_end = align_up(at, PAGE);
    /* The second segment follows immediately in the file, but some pages later in memory. */
    at = parts->text_end + PAGE * (1 + mock_random(mock, 3));
    parts->data = at;
    parts->data_offset = parts->text_end;
    parts->dynamic = take(&at, 10 * 2 * word, 8);
    parts->header = take(&at, plan->header_size, 8);
    parts->pointers = take(&at, plan->pointers_size, 8);
    parts->data_end = align_up(at, PAGE);
}

/* ---- Headers ---- */

/* Writes consecutive numbers, one for each letter: b, h and i have 1, 2 and 4 bytes, w is a pointer. */
static void put(struct mock *mock, uint64_t *at, const char *widths, const uint64_t *values)
{
    for (; *widths; widths++, values++) {
        unsigned width = *widths == 'b' ? 1 : *widths == 'h' ? 2 : *widths == 'i' ? 4 : mock->word;
        mock_write_uint(mock, *at, width, *values);
        *at += width;
    }
}

#define PUT(mock, at, widths, ...) put(mock, at, widths, (const uint64_t[]){__VA_ARGS__})

static void put_elf_header(struct mock *mock, uint64_t at)
{
    bool wide = mock->word == 8;
    const uint8_t ident[EI_NIDENT] = {
        ELFMAG0,   ELFMAG1, ELFMAG2, ELFMAG3, wide ? ELFCLASS64 : ELFCLASS32, mock->big ? ELFDATA2MSB : ELFDATA2LSB,
        EV_CURRENT};
    uint64_t header_size = wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    mock_write(mock, at, ident, sizeof ident);
    at += sizeof ident;
    PUT(mock, &at, "hhiwwwihhhhhh", ET_DYN, mock->options.machine, EV_CURRENT, 0, header_size, 0, 0, header_size,
        wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr), 4, 0, 0, 0);
}

/* A program header. */
struct segment {
    uint32_t type, flags;
    uint64_t offset, vaddr, size, alignment;
};

static void put_segment(struct mock *mock, uint64_t *at, const struct segment *s)
{
    if (mock->word == 8)
        PUT(mock, at, "iiwwwwww", s->type, s->flags, s->offset, s->vaddr, s->vaddr, s->size, s->size, s->alignment);
    else
        PUT(mock, at, "iwwwwwiw", s->type, s->offset, s->vaddr, s->vaddr, s->size, s->size, s->flags, s->alignment);
}

static void put_headers(struct mock *mock, const struct parts *parts)
{
    uint64_t at = parts->base + (mock->word == 8 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr));
    put_elf_header(mock, parts->base);
    const struct segment segments[] = {
        {.type = PT_LOAD, .flags = PF_R | PF_X, .size = parts->text_end, .alignment = PAGE},
        {.type = PT_LOAD,
         .flags = PF_R | PF_W,
         .offset = parts->data_offset,
         .vaddr = parts->data,
         .size = parts->data_end - parts->data,
         .alignment = PAGE},
        {.type = PT_DYNAMIC,
         .flags = PF_R | PF_W,
         .offset = parts->data_offset + (parts->dynamic - parts->data),
         .vaddr = parts->dynamic,
         .size = 10 * 2 * mock->word,
         .alignment = 8},
        {.type = PT_NOTE,
         .flags = PF_R,
         .offset = parts->note,
         .vaddr = parts->note,
         .size = NOTE_SIZE,
         .alignment = 4},
    };
    for (size_t i = 0; i < ARRAY_SIZE(segments); i++)
        put_segment(mock, &at, &segments[i]);

    at = parts->base + parts->note;
    PUT(mock, &at, "iiibbbb", 4, 20, NT_GNU_BUILD_ID, 'G', 'N', 'U', 0);
    for (unsigned i = 0; i < 20; i++)
        mock_write_uint(mock, at + i, 1, mock->options.seed ? mock_random(mock, 256) : i);
}

/* ---- Symbols ---- */

static void put_symbol(struct mock *mock, uint64_t at, uint32_t name, uint64_t value, uint64_t size)
{
    uint32_t info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), section = 1;
    if (mock->word == 8)
        PUT(mock, &at, "ibbhww", name, info, 0, section, value, size);
    else
        PUT(mock, &at, "iwwbbh", name, value, size, info, 0, section);
}

static void put_symbols(struct mock *mock, const struct parts *parts, const struct image_plan *plan)
{
    uint64_t size = symbol_size(mock), strings = parts->base + parts->strtab;
    uint32_t name = 1;
    for (uint64_t i = 0; i < size; i++)
        mock_write_uint(mock, parts->base + parts->symtab + i, 1, 0);
    mock_write(mock, strings, "", 1);
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        bool descriptor = strcmp(parts->sorted[i], names[0]) == 0;
        put_symbol(mock, parts->base + parts->symtab + (i + 1) * size, name,
                   descriptor ? parts->header : parts->data + 16 * i, descriptor ? plan->header_size : 8);
        mock_write(mock, strings + name, parts->sorted[i], strlen(parts->sorted[i]) + 1);
        name += (uint32_t)strlen(parts->sorted[i]) + 1;
    }
}

static void put_gnu_hash(struct mock *mock, const struct parts *parts)
{
    uint64_t at = parts->base + parts->gnu_hash, bits = mock->word * 8, bloom[BLOOM_WORDS] = {0};
    uint32_t buckets[BUCKET_COUNT] = {0};
    for (uint32_t i = 0; i < SYMBOL_COUNT; i++) {
        uint32_t hash = gnu_hash(parts->sorted[i]);
        bloom[hash / bits % BLOOM_WORDS] |= UINT64_C(1) << hash % bits | UINT64_C(1) << (hash >> BLOOM_SHIFT) % bits;
        if (!buckets[hash % BUCKET_COUNT])
            buckets[hash % BUCKET_COUNT] = i + FIRST_HASHED;
    }
    PUT(mock, &at, "iiii", BUCKET_COUNT, FIRST_HASHED, BLOOM_WORDS, BLOOM_SHIFT);
    put(mock, &at, "ww", bloom);
    for (unsigned i = 0; i < BUCKET_COUNT; i++)
        PUT(mock, &at, "i", buckets[i]);
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        uint32_t hash = gnu_hash(parts->sorted[i]);
        bool last = i + 1 == SYMBOL_COUNT || gnu_hash(parts->sorted[i + 1]) % BUCKET_COUNT != hash % BUCKET_COUNT;
        PUT(mock, &at, "i", (hash & ~1u) | last);
    }
}

static void put_hash(struct mock *mock, const struct parts *parts)
{
    uint64_t at = parts->base + parts->hash;
    uint32_t buckets[BUCKET_COUNT] = {0}, chains[SYMBOL_COUNT + 1] = {0};
    for (uint32_t i = 1; i <= SYMBOL_COUNT; i++) {
        uint32_t bucket = sysv_hash(parts->sorted[i - 1]) % BUCKET_COUNT;
        chains[i] = buckets[bucket];
        buckets[bucket] = i;
    }
    PUT(mock, &at, "ii", BUCKET_COUNT, SYMBOL_COUNT + 1);
    for (unsigned i = 0; i < BUCKET_COUNT; i++)
        PUT(mock, &at, "i", buckets[i]);
    for (unsigned i = 0; i <= SYMBOL_COUNT; i++)
        PUT(mock, &at, "i", chains[i]);
}

static void put_dynamic(struct mock *mock, const struct parts *parts, enum mock_symbols symbols)
{
    /* glibc relocates the addresses in the section, musl does not. */
    uint64_t at = parts->base + parts->dynamic, bias = mock_random(mock, 2) ? parts->base : 0;
    PUT(mock, &at, "ww", DT_SONAME, 1);
    if (symbols != MOCK_SYMBOLS_GNU_HASH)
        PUT(mock, &at, "ww", DT_HASH, bias + parts->hash);
    if (symbols != MOCK_SYMBOLS_HASH)
        PUT(mock, &at, "ww", DT_GNU_HASH, bias + parts->gnu_hash);
    PUT(mock, &at, "ww", DT_STRTAB, bias + parts->strtab);
    PUT(mock, &at, "ww", DT_SYMTAB, bias + parts->symtab);
    PUT(mock, &at, "ww", DT_STRSZ, parts->strtab_size);
    PUT(mock, &at, "ww", DT_SYMENT, symbol_size(mock));
    PUT(mock, &at, "ww", DT_NULL, 0);
}

void image_write(struct mock *mock, struct image_plan *plan)
{
    struct parts parts = {0};
    sort_symbols(parts.sorted, first_symbol(plan->symbols));
    plan_parts(mock, plan, &parts);
    parts.base = mock_free_place(mock, parts.data_end, PAGE);
    mock->next = parts.base + parts.data_end + PAGE;
    mock_map(mock, parts.base, parts.text_end, MOCK_READ | MOCK_EXECUTE, plan->path, 0);
    mock_map(mock, parts.base + parts.data, parts.data_end - parts.data, MOCK_READ | MOCK_WRITE, plan->path,
             parts.data_offset);
    put_headers(mock, &parts);
    put_symbols(mock, &parts, plan);
    put_gnu_hash(mock, &parts);
    put_hash(mock, &parts);
    put_dynamic(mock, &parts, plan->symbols);
    plan->json = parts.base + parts.json;
    plan->header = parts.base + parts.header;
    plan->pointers = parts.base + parts.pointers;
}
