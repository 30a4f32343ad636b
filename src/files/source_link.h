/*
 * source_link.h: the Source Link map of a PDB, from the path of a document to the URL of its text. Keys compare without
 * regard to the case of ASCII letters; the longest key that fits counts. Source: dotnet/designs
 * accepted/2020/diagnostics/source-link.md.
 */
#ifndef CDACQ_FILES_SOURCE_LINK_H
#define CDACQ_FILES_SOURCE_LINK_H

#include "descriptors/json.h"
#include "util/text.h"

struct source_link {
    struct json *json;             /* NULL: there is no map */
    size_t entry_count, key_bytes; /* of its keys */
};

/* Reads the JSON of a PDB. What is malformed is no map. */
void source_link_init(struct source_link *link, const void *json, size_t size);
void source_link_deinit(struct source_link *link);

/* How many bytes of keys are compared, at most, with a path of this length. */
size_t source_link_price(const struct source_link *link, size_t length);

/* Appends the URL of a document, or nothing if the map has none. */
void source_link_url(const struct source_link *link, const char *path, size_t length, struct text *url);

#endif
