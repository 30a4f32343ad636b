/*
 * mutant_bases.h: the files that mutants are made of (mutants.c). Each is a file in memory, with a path below /proc and
 * a mapping of its bytes, which are changed in place and restored.
 */
#ifndef CDACQ_TESTS_FUZZ_MUTANT_BASES_H
#define CDACQ_TESTS_FUZZ_MUTANT_BASES_H

#include "cdacq.h"
#include "util/base.h"
#include "util/vector.h"
#include "tests/support/mock_support.h"

enum base_kind {
    BASE_CORE,
    BASE_PACKED,  /* a compressed core */
    BASE_JITDUMP, /* jitdump */
    BASE_MAP,     /* perf map: FILE.map */
    BASE_TEXT,    /* what `filter` reads: FILE.txt */
    BASE_FOLDED,  /* what `flame` reads: FILE.folded */
    BASE_JSON,    /* a descriptor */
    BASE_IMAGE,   /* ELF or PE */
    BASE_PDB,     /* portable PDB */
};

enum { BASE_MAX = 128 };

/* A segment of a core. */
struct part {
    uint64_t begin, offset, size;
};

DEFINE_VECTOR(parts, struct part);
DEFINE_VECTOR(numbers, uint64_t);

struct base {
    enum base_kind kind;
    char *name;     /* without folders */
    uint8_t *bytes; /* a shared mapping of `fd` */
    size_t size;
    int fd;
    char path[32];
    bool wide, big;
    struct parts parts;      /* of a core, by address */
    struct numbers pointers; /* of a core: file offsets of words that point into it */
    struct numbers texts;    /* file offsets where JSON begins */
    struct numbers metadata; /* file offsets where metadata begin */
    struct cdacq_mapping *mappings;
    size_t mapping_count;
};

extern struct base bases[BASE_MAX];
extern size_t base_count;

/* Each ends the program with a message if it cannot add a base. */
void bases_add_file(const char *path);
void bases_add_synthetic(void);
/* Texts that mention addresses of the cores, and folded stacks. Call it after the cores were added. */
void bases_add_texts(void);
/* The smallest core, compressed in each way. */
void bases_add_packed(void);
/* Lists the file mappings that the cores name. */
void bases_list_mappings(void);

uint64_t base_word(const struct base *base, uint64_t offset);
const struct part *base_part_at(const struct base *base, uint64_t address);
/* The address of a byte of a core. 0 if it has none. */
uint64_t base_address(const struct base *base, uint64_t offset);
/* What some pointer of a core points to, or a little more. */
uint64_t base_any_target(const struct base *base, struct random *random);
uint64_t numbers_any(const struct numbers *numbers, struct random *random);
/* Any base of a kind, or NULL. */
struct base *bases_any(struct random *random, enum base_kind kind);

/* Changes 1 to 6 places of a base by its structure. base_restore() takes all changes back. */
void base_mutate(struct base *base, struct random *random);
void base_restore(struct base *base);
/* Whether a change is before the segments' bytes, where the headers and notes of a core are. */
bool base_headers_changed(const struct base *base);

#endif
