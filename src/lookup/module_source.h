/*
 * module_source.h: a session's view of a PDB that is usable. kept_sources.h has the table of them.
 */
#ifndef CDACQ_LOOKUP_MODULE_SOURCE_H
#define CDACQ_LOOKUP_MODULE_SOURCE_H

#include "src/files/module_pdb.h"
#include "src/files/source_link.h"
#include "src/lookup/kept_sources.h"

struct module_source {
    const struct module_pdb *pdb;
    struct source_link link;
    const struct source_document **documents; /* by rid; NULL until first needed */
};

static inline struct image_key module_source_key(struct module_source *const *source)
{
    return (*source)->pdb->image;
}

DEFINE_HASH_TABLE_FUNCTIONS(module_sources, struct module_source *, struct image_key, module_source_key, hash_image_key,
                            equal_image_keys);

#endif
