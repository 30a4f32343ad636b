/*
 * signature.h: a cursor over the bytes of a signature. Failure is sticky: after the first bad or missing byte the
 * cursor is at its end and every read returns 0. Pure; a cursor belongs to one thread. Source: ECMA-335 II.23.2; the
 * runtime's own elements: dotnet/runtime src/coreclr/inc/corhdr.h.
 */
#ifndef CDACQ_FORMATS_NAMES_SIGNATURE_H
#define CDACQ_FORMATS_NAMES_SIGNATURE_H

#include "util/base.h"

enum element_type {
    ELEMENT_END = 0x00,
    ELEMENT_VOID = 0x01,
    ELEMENT_BOOLEAN = 0x02,
    ELEMENT_CHAR = 0x03,
    ELEMENT_I1 = 0x04,
    ELEMENT_U1 = 0x05,
    ELEMENT_I2 = 0x06,
    ELEMENT_U2 = 0x07,
    ELEMENT_I4 = 0x08,
    ELEMENT_U4 = 0x09,
    ELEMENT_I8 = 0x0a,
    ELEMENT_U8 = 0x0b,
    ELEMENT_R4 = 0x0c,
    ELEMENT_R8 = 0x0d,
    ELEMENT_STRING = 0x0e,
    ELEMENT_PTR = 0x0f,
    ELEMENT_BYREF = 0x10,
    ELEMENT_VALUETYPE = 0x11,
    ELEMENT_CLASS = 0x12,
    ELEMENT_VAR = 0x13,
    ELEMENT_ARRAY = 0x14,
    ELEMENT_GENERICINST = 0x15,
    ELEMENT_TYPEDBYREF = 0x16,
    ELEMENT_I = 0x18,
    ELEMENT_U = 0x19,
    ELEMENT_FNPTR = 0x1b,
    ELEMENT_OBJECT = 0x1c,
    ELEMENT_SZARRAY = 0x1d,
    ELEMENT_MVAR = 0x1e,
    ELEMENT_CMOD_REQD = 0x1f,
    ELEMENT_CMOD_OPT = 0x20,
    ELEMENT_INTERNAL = 0x21,                /* followed by a type handle: a pointer of the target */
    ELEMENT_CMOD_INTERNAL = 0x22,           /* followed by a byte (required or not) and a type handle */
    ELEMENT_VAR_ZAPSIG = 0x3b,              /* followed by the rid of a GenericParam */
    ELEMENT_NATIVE_VALUETYPE_ZAPSIG = 0x3d, /* followed by the type, whose native layout is meant */
    ELEMENT_CANON_ZAPSIG = 0x3e,            /* System.__Canon */
    ELEMENT_MODULE_ZAPSIG = 0x3f,           /* followed by a module index and a type with tokens of that module */
    ELEMENT_SENTINEL = 0x41,
    ELEMENT_PINNED = 0x45,
};

/* The first byte of a method signature. */
enum {
    SIGNATURE_KIND_MASK = 0x0f,
    SIGNATURE_VARARG = 0x05,
    SIGNATURE_UNMANAGED = 0x09,
    SIGNATURE_GENERIC = 0x10,
    SIGNATURE_HAS_THIS = 0x20,
    SIGNATURE_EXPLICIT_THIS = 0x40,
};

enum {
    SIGNATURE_DEPTH_CAP = 64, /* types within types */
    SIGNATURE_RANK_CAP = 32,  /* dimensions of an array: the runtime's own cap */
};

struct signature {
    const uint8_t *at, *end;
    uint8_t pointer_size; /* 0: type handles do not occur */
    bool big_endian;      /* of type handles */
    bool failed;
};

static inline struct signature signature_at(const void *data, size_t length, unsigned pointer_size, bool big_endian)
{
    struct signature s = {.pointer_size = (uint8_t)pointer_size, .big_endian = big_endian};
    s.at = data;
    s.end = length ? s.at + length : s.at;
    return s;
}

static inline uint32_t signature_fail(struct signature *s)
{
    s->failed = true;
    s->at = s->end;
    return 0;
}

static inline uint8_t signature_byte(struct signature *s)
{
    if (UNLIKELY(s->at == s->end))
        return (uint8_t)signature_fail(s);
    return *s->at++;
}

/* The next byte, which is not taken; ELEMENT_END at the end. */
static inline uint8_t signature_peek(const struct signature *s)
{
    return s->at == s->end ? ELEMENT_END : *s->at;
}

/* A compressed unsigned integer (II.23.2). */
static inline uint32_t signature_uint(struct signature *s)
{
    uint32_t first = signature_byte(s);
    if (first < 0x80)
        return first;
    size_t more = first < 0xc0 ? 1 : 3;
    if ((first & 0xe0) == 0xe0 || (size_t)(s->end - s->at) < more)
        return signature_fail(s);
    uint32_t value = first & (more == 1 ? 0x3f : 0x1f);
    while (more--)
        value = value << 8 | *s->at++;
    return value;
}

/* A compressed signed integer (II.23.2): the sign is in the lowest bit, below a number of 6, 13 or 28 bits. */
static inline int32_t signature_int(struct signature *s)
{
    uint8_t first = s->at == s->end ? 0 : *s->at;
    uint32_t negative = first < 0x80 ? UINT32_C(0x40) : first < 0xc0 ? UINT32_C(0x2000) : UINT32_C(0x10000000);
    uint32_t value = signature_uint(s);
    return (int32_t)(value >> 1) - (value & 1 ? (int32_t)negative : 0);
}

/* TypeDefOrRefOrSpecEncoded (II.23.2.8) as a token. */
static inline uint32_t signature_token(struct signature *s)
{
    static const uint8_t tables[] = {0x02, 0x01, 0x1b};
    uint32_t coded = signature_uint(s);
    if ((coded & 3) == 3 || coded >> 2 > 0xffffff || !(coded >> 2))
        return signature_fail(s);
    return (uint32_t)tables[coded & 3] << 24 | coded >> 2;
}

/* The type handle after ELEMENT_INTERNAL. */
static inline uint64_t signature_handle(struct signature *s)
{
    if ((s->pointer_size != 4 && s->pointer_size != 8) || s->end - s->at < s->pointer_size)
        return signature_fail(s);
    uint64_t handle = s->pointer_size == 8 ? load_u64(s->at, s->big_endian) : load_u32(s->at, s->big_endian);
    s->at += s->pointer_size;
    return handle;
}

/* Takes custom modifiers and PINNED, which change no name. */
static inline void signature_skip_modifiers(struct signature *s)
{
    for (;;) {
        switch (signature_peek(s)) {
        case ELEMENT_CMOD_REQD:
        case ELEMENT_CMOD_OPT:
            s->at++;
            signature_token(s);
            break;
        case ELEMENT_CMOD_INTERNAL:
            s->at++;
            signature_byte(s);
            signature_handle(s);
            break;
        case ELEMENT_PINNED:
            s->at++;
            break;
        default:
            return;
        }
    }
}

/* ArrayShape (II.23.2.13); returns the rank. */
static inline uint32_t signature_array_shape(struct signature *s)
{
    uint32_t rank = signature_uint(s);
    if (rank == 0 || rank > SIGNATURE_RANK_CAP)
        return signature_fail(s);
    for (unsigned list = 0; list < 2; list++) { /* sizes, then lower bounds: integers of the same widths */
        uint32_t count = signature_uint(s);
        if (count > rank)
            return signature_fail(s);
        while (count--)
            signature_uint(s);
    }
    return s->failed ? 0 : rank;
}

struct signature_header {
    uint8_t kind;  /* calling convention: the low four bits */
    uint8_t flags; /* the upper four: SIGNATURE_HAS_THIS, SIGNATURE_EXPLICIT_THIS */
    bool generic;
    uint32_t generic_count;
    uint32_t parameter_count; /* not counting the return type, which comes next */
};

/* Takes the head of a method signature. Other signatures (fields, locals, properties) are errors. */
static inline struct signature_header signature_method(struct signature *s)
{
    struct signature_header header = {0};
    uint8_t first = signature_byte(s);
    header.kind = first & SIGNATURE_KIND_MASK;
    header.flags = (uint8_t)(first & ~SIGNATURE_KIND_MASK);
    header.generic = first & SIGNATURE_GENERIC;
    if (header.kind > SIGNATURE_VARARG && header.kind != SIGNATURE_UNMANAGED)
        signature_fail(s);
    if (header.generic)
        header.generic_count = signature_uint(s);
    header.parameter_count = signature_uint(s);
    return header;
}

static inline void signature_skip_uint(struct signature *s)
{
    size_t size = s->at == s->end ? 1 : *s->at < 0x80 ? 1 : *s->at < 0xc0 ? 2 : 4;
    if (UNLIKELY((size_t)(s->end - s->at) < size))
        signature_fail(s);
    else
        s->at += size;
}

/*
 * Takes types of the plain forms, at most `left`; returns how many of these remain. Tables hold tens of thousands of
 * signatures, and nearly all have no other forms.
 */
static inline uint64_t signature_skip_plain(struct signature *s, uint64_t left)
{
    enum { LEAF = 1, TOKEN, PREFIX, INSTANCE };
    static const uint8_t forms[256] = {
        [ELEMENT_VOID... ELEMENT_STRING] = LEAF,
        [ELEMENT_I] = LEAF,
        [ELEMENT_U] = LEAF,
        [ELEMENT_OBJECT] = LEAF,
        [ELEMENT_CANON_ZAPSIG] = LEAF,
        [ELEMENT_VALUETYPE] = TOKEN,
        [ELEMENT_CLASS] = TOKEN,
        [ELEMENT_PTR] = PREFIX,
        [ELEMENT_BYREF] = PREFIX,
        [ELEMENT_SZARRAY] = PREFIX,
        [ELEMENT_GENERICINST] = INSTANCE,
    };
    const uint8_t *p = s->at, *end = s->end;
    /* No form is longer than ten bytes, so that single bytes need no check. */
    while (left && end - p >= 10) {
        uint8_t form = forms[*p];
        if (form == LEAF) {
            p++;
            left--;
        } else if (form == PREFIX) {
            p++;
        } else if (form == TOKEN) {
            p += 1 + (p[1] < 0x80 ? 1 : p[1] < 0xc0 ? 2 : 4);
            left--;
        } else if (form == INSTANCE && (p[1] == ELEMENT_CLASS || p[1] == ELEMENT_VALUETYPE)) {
            const uint8_t *count = p + 2 + (p[2] < 0x80 ? 1 : p[2] < 0xc0 ? 2 : 4);
            if (*count >= 0x80)
                break;
            left += *count - UINT64_C(1);
            p = count + 1;
        } else {
            break;
        }
    }
    s->at = p;
    return left;
}

/*
 * Takes `count` types of any form. Most of the grammar is a prefix notation, in which a type adds to the number of
 * types that remain; the rest (arrays, function pointers) recurses.
 */
static inline void signature_skip_types(struct signature *s, uint32_t count, unsigned depth)
{
    struct signature_header header;
    uint64_t left = count;
    if (depth > SIGNATURE_DEPTH_CAP)
        signature_fail(s);
    left = signature_skip_plain(s, left);
    while (left && !s->failed) {
        if (left > (uint64_t)(s->end - s->at)) { /* each takes a byte at least */
            signature_fail(s);
            return;
        }
        left--;
        signature_skip_modifiers(s);
        uint8_t element = signature_byte(s);
        switch (element) {
        case ELEMENT_VOID ... ELEMENT_STRING:
        case ELEMENT_TYPEDBYREF:
        case ELEMENT_I:
        case ELEMENT_U:
        case ELEMENT_OBJECT:
        case ELEMENT_CANON_ZAPSIG:
            break;
        case ELEMENT_VALUETYPE:
        case ELEMENT_CLASS:
        case ELEMENT_VAR:
        case ELEMENT_MVAR:
        case ELEMENT_VAR_ZAPSIG:
            signature_skip_uint(s);
            break;
        case ELEMENT_INTERNAL:
            signature_handle(s);
            break;
        case ELEMENT_PTR:
        case ELEMENT_BYREF:
        case ELEMENT_SZARRAY:
        case ELEMENT_NATIVE_VALUETYPE_ZAPSIG:
            left++;
            break;
        case ELEMENT_MODULE_ZAPSIG:
            signature_skip_uint(s);
            left++;
            break;
        case ELEMENT_ARRAY:
            signature_skip_types(s, 1, depth + 1);
            signature_array_shape(s);
            break;
        case ELEMENT_GENERICINST:
            signature_skip_types(s, 1, depth + 1);
            left += signature_uint(s);
            break;
        case ELEMENT_FNPTR:
            header = signature_method(s);
            signature_skip_types(s, 1, depth + 1);
            while (header.parameter_count-- && !s->failed) {
                if (signature_peek(s) == ELEMENT_SENTINEL)
                    s->at++;
                signature_skip_types(s, 1, depth + 1);
            }
            break;
        default:
            signature_fail(s);
        }
        left = signature_skip_plain(s, left);
    }
}

static inline void signature_skip_type(struct signature *s)
{
    signature_skip_types(s, 1, 0);
}

#endif
