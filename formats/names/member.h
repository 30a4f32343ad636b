/*
 * member.h: what a member is in C#, from its name in the metadata: an operator, a conversion, an accessor of a
 * property or an event, the implementation of an interface's member, or a plain method. Writes the member's name:
 *
 *     operator +    explicit operator checked int    Name.get    this[int, string].set    Changed.add
 *     System.IComparable<Ns.Shape>.CompareTo
 *
 * These are the words of C#'s grammar; the accessors are those that Visual Studio's call stack shows.
 */
#ifndef CDACQ_FORMATS_NAMES_MEMBER_H
#define CDACQ_FORMATS_NAMES_MEMBER_H

#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

enum member_kind {
    MEMBER_PLAIN,
    MEMBER_ACCESSOR,
    MEMBER_INDEXER,
    MEMBER_OPERATOR,
    MEMBER_CONVERSION,
};

struct member {
    enum member_kind kind;
    const char *word; /* `get`, `+`, `implicit` */
    bool checked;
    size_t interface; /* of the name: its bytes before the dot that precedes the member's own name; 0: there is none */
    size_t stem, length; /* the name without a prefix such as `get_` begins at `stem` */
    char name[METADATA_STRING_CAP];
};

static inline bool name_begins(const char *name, size_t length, const char *prefix)
{
    return length >= strlen(prefix) && memcmp(name, prefix, strlen(prefix)) == 0;
}

static inline bool name_equals(const char *name, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(name, word, length) == 0;
}

/* Reads the member that a method is. False, and the name fails, if its name cannot be read. */
bool member_read(struct namer *n, const struct named_method *method, struct member *ret);

/* Writes its name. `type` is the spelling of types; `list` of the parameters of an indexer. */
void member_put(struct namer *n, const struct named_method *method, const struct member *member,
                const struct parameter_style *list);

#endif
