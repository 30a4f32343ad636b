/*
 * method_data.c: the data that describe a method's code, whether JIT-compiled or in an image: unwind data and
 * RUNTIME_FUNCTIONs, GC info, exception clauses.
 */
#include "mocktarget/mock.h"

bool mock_is_arm(const struct mock *mock)
{
    return mock->options.unwind == MOCK_UNWIND_HEADER && mock->word == 4;
}

uint64_t mock_length_unit(const struct mock *mock)
{
    return mock->options.unwind >= MOCK_UNWIND_HEADER ? mock->word / 2 : 1;
}

enum { X64_CODES_MAX = 6, EPILOGS_MAX = 3, CODE_WORDS_MAX = 3 };

uint64_t mock_unwind_size(const struct mock *mock)
{
    uint64_t header = 8 + 4 * EPILOGS_MAX + 4 * CODE_WORDS_MAX + 4;
    return MAX(align_up(mock->sizes[T_UnwindInfo], 4), header);
}

/* UNWIND_INFO: version and flags, prologue, number of codes, frame register; codes, a multiple of four; the handler. */
static uint64_t write_unwind_info_x64(struct mock *mock, uint64_t unwind, bool chained)
{
    enum { VERSION_1 = 1, HANDLERS = 3 << 3, CHAININFO = 4 << 3 };
    uint64_t codes = mock_random(mock, X64_CODES_MAX);
    mock_write_uint(mock, unwind, 1, VERSION_1 | (chained ? CHAININFO : HANDLERS));
    mock_write_uint(mock, unwind + 1, 1, mock_random(mock, 30));
    mock_write_uint(mock, unwind + 2, 1, codes);
    mock_write_uint(mock, unwind + 3, 1, 0);
    return unwind + 4 + align_up(2 * codes, 4) + 4;
}

/*
 * The header, with a second word if the counts do not fit the first; a scope for each epilog, unless bit 21 says that
 * the header describes the only one; the codes; the handler.
 */
static uint64_t write_unwind_header(struct mock *mock, uint64_t unwind, uint64_t units)
{
    unsigned arm = mock_is_arm(mock);
    uint64_t only = mock_random(mock, 2), epilogs = mock_random(mock, EPILOGS_MAX + 1);
    uint64_t codes = 1 + mock_random(mock, CODE_WORDS_MAX), first = units | 1 << 20 | only << 21, at = unwind;
    if (units >= 1 << 18)
        mock_fail(mock, "a function of %llu instructions is too long", (unsigned long long)units);
    if (mock_random(mock, 3)) {
        mock_write_uint(mock, at, 4, first | epilogs << (22 + arm) | codes << (27 + arm));
        at += 4;
    } else {
        mock_write_uint(mock, at, 4, first);
        mock_write_uint(mock, at + 4, 4, epilogs | codes << 16);
        at += 8;
    }
    at += only ? 0 : 4 * epilogs;
    mock_write_uint(mock, at, 1, 0xe4); /* "end": an empty prolog, but not a phantom one */
    return at + 4 * codes + 4;
}

uint64_t mock_unwind_write(struct mock *mock, uint64_t unwind, uint64_t length, bool chained)
{
    if (mock->options.unwind == MOCK_UNWIND_END_ADDRESS)
        return write_unwind_info_x64(mock, unwind, chained);
    if (mock->options.unwind != MOCK_UNWIND_FUNCTION_LENGTH)
        return write_unwind_header(mock, unwind, length / mock_length_unit(mock));
    if (mock->options.no_funclets)
        return unwind; /* the GC info takes the place of the unwind data */
    mock_put(mock, unwind, F_UnwindInfo_FunctionLength, length);
    return unwind + mock->fields[F_UnwindInfo_FunctionLength].offset + 4;
}

void mock_unwind_make_fragment(struct mock *mock, uint64_t unwind)
{
    uint64_t first = mock_read_uint(mock, unwind, 4), epilogs = first >> 22 & 0x1f, size = 4;
    if (mock->options.unwind != MOCK_UNWIND_HEADER || mock->word == 4)
        return;
    if (!(first >> 27)) {
        epilogs = mock_read_uint(mock, unwind + 4, 4) & 0xffff;
        size = 8;
    }
    mock_write_uint(mock, unwind + size + (first >> 21 & 1 ? 0 : 4 * epilogs), 1, 0xe5); /* end_c: no prolog */
}

void mock_runtime_function(struct mock *mock, uint64_t entry, uint64_t begin, uint64_t length, uint64_t unwind)
{
    uint64_t thumb = mock->options.code_pointer_flags & 1; /* code addresses of arm have bit 0 set in the table */
    mock_put(mock, entry, F_RuntimeFunction_BeginAddress, begin | thumb);
    if (mock->fields[F_RuntimeFunction_EndAddress].present)
        mock_put(mock, entry, F_RuntimeFunction_EndAddress, begin + length);
    mock_put(mock, entry, F_RuntimeFunction_UnwindData, unwind);
}

/* ---- GC info ---- */

/* Fills bits from the lowest upwards. */
static void put_bits(uint8_t *bytes, unsigned *at, uint64_t value, unsigned count)
{
    for (unsigned i = 0; i < count; i++, ++*at)
        bytes[*at / 8] = (uint8_t)((bytes[*at / 8] & ~(1 << *at % 8)) | (value >> i & 1) << *at % 8);
}

/* x86: seven bits a byte, the highest first. */
static void put_length_x86(uint8_t *bytes, uint64_t length)
{
    unsigned shift = 0;
    while (length >> shift > 0x7f)
        shift += 7;
    for (; shift; shift -= 7)
        *bytes++ = (uint8_t)(0x80 | (length >> shift & 0x7f));
    *bytes = length & 0x7f;
}

/*
 * A slim header (one flag) or a fat one (ten), up to version 3 with the kind of return value, then the length in
 * instructions. The length is written in groups of bits, each followed by a bit that says whether another group
 * follows.
 * Source: src/coreclr/gcinfo/gcinfoencoder.cpp, src/coreclr/inc/gcinfotypes.h; for x86 src/coreclr/jit/gcencode.cpp.
 */
static void put_gc_info(struct mock *mock, uint8_t *bytes, uint64_t length, unsigned version, bool arm)
{
    unsigned at = 0, fat = (unsigned)mock_random(mock, 2), bits = arm ? 7 : 8;
    put_bits(bytes, &at, fat, 1);
    put_bits(bytes, &at, mock_random(mock, 1 << 10), fat ? 10 : 1);
    if (version < 4)
        put_bits(bytes, &at, mock_random(mock, 4), fat && !arm ? 4 : 2);
    do {
        put_bits(bytes, &at, length, bits);
        length >>= bits;
        put_bits(bytes, &at, length != 0, 1);
    } while (length);
}

void mock_gc_info_write(struct mock *mock, uint64_t address, uint64_t code_length, unsigned version)
{
    uint8_t *bytes = mock_bytes_at(mock, address, MOCK_GC_INFO_SIZE);
    if (bytes && mock->options.unwind == MOCK_UNWIND_FUNCTION_LENGTH)
        put_length_x86(bytes, code_length);
    else if (bytes)
        put_gc_info(mock, bytes, code_length / mock_length_unit(mock), version, mock_is_arm(mock));
}

void mock_gc_info_write_interpreted(struct mock *mock, uint64_t address, uint64_t code_length, unsigned version)
{
    uint8_t *bytes = mock_bytes_at(mock, address, MOCK_GC_INFO_SIZE);
    if (bytes)
        put_gc_info(mock, bytes, code_length, version, false);
}

/* ---- Exception clauses ---- */

uint64_t mock_clause_size(const struct mock *mock, bool r2r)
{
    return mock->sizes[r2r ? T_R2RExceptionClause : T_EEExceptionClause];
}

void mock_clauses_write(struct mock *mock, uint64_t address, const struct mock_clause *clauses, size_t count, bool r2r)
{
#define PUT_CLAUSE(field, value) \
    mock_put(mock, address, r2r ? F_R2RExceptionClause_##field : F_EEExceptionClause_##field, value)
    for (size_t i = 0; i < count; i++, address += mock_clause_size(mock, r2r)) {
        PUT_CLAUSE(Flags, clauses[i].flags);
        PUT_CLAUSE(TryStartPC, clauses[i].try_start);
        PUT_CLAUSE(TryEndPC, clauses[i].try_end);
        PUT_CLAUSE(HandlerStartPC, clauses[i].handler_start);
        PUT_CLAUSE(HandlerEndPC, clauses[i].handler_end);
        /* A union of a pointer and 32 bits. */
        uint64_t last =
            mock_address_of(mock, address, r2r ? F_R2RExceptionClause_ClassToken : F_EEExceptionClause_TypeHandle);
        if (clauses[i].flags & MOCK_CLAUSE_CACHED_CLASS)
            mock_write_pointer(mock, last, clauses[i].what);
        else
            mock_write_uint(mock, last, 4, clauses[i].what);
    }
#undef PUT_CLAUSE
}
