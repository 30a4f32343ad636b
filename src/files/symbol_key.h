/*
 * symbol_key.h: keys of symbol servers, NAME/KEY/NAME, as a part of a URL and as a path. What they are made of comes
 * from the target: each part becomes one name, in which only letters, digits and "-._~" are not escaped, and which is
 * neither "." nor "..". Pure functions. Source: dotnet/symstore docs/specs/SSQP_Key_Conventions.md.
 */
#ifndef CDACQ_FILES_SYMBOL_KEY_H
#define CDACQ_FILES_SYMBOL_KEY_H

#include "util/base.h"

enum { SYMBOL_KEY_PART_SIZE = 256, SYMBOL_KEY_URL_MAX = 1024 };

struct symbol_key {
    char name[SYMBOL_KEY_PART_SIZE]; /* in lower case, as strings in keys are */
    char middle[SYMBOL_KEY_PART_SIZE];
    char plain_name[SYMBOL_KEY_PART_SIZE]; /* as the target has it: servers of plain files may have that */
};

/* False: it is no key, or too long. */
bool symbol_key_read(const char *text, struct symbol_key *ret);

/*
 * Whether it is a URL of http or https, of at most SYMBOL_KEY_URL_MAX bytes, that can stand before a key. A URL
 * with a user or password is refused.
 */
bool symbol_key_is_url(const char *url);

#endif
