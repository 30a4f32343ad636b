/*
 * supplement.h: what we know of runtimes that do not say it themselves: a JSON descriptor for each, embedded in the
 * library. .NET 8 publishes no descriptor at all, 9 one without ExecutionManager, 10 leaves some fields out.
 *
 * Which runtime a supplement is for is data in the file, about the image and nothing else:
 *
 *     "$match": {"runtime": ".NET 8.0", "elf_machine": 62, "symbols": {"g_dacTable": 1256, "Other": null}}
 *
 * All symbols must be exported with exactly that size, or, where null stands, not at all. Its indirect values index the
 * array of pointers that is the exported object "$pointer_data". The runtime fills that at start: it is read from the
 * target's memory, never from a file.
 */
#ifndef CDACQ_DESCRIPTORS_SUPPLEMENT_H
#define CDACQ_DESCRIPTORS_SUPPLEMENT_H

#include "descriptors/descriptor.h"
#include "target/image.h"

struct supplement {
    const char *name;    /* of the file; static */
    const char *runtime; /* ".NET 8.0"; part of `root` */
    struct json *root;   /* free with supplement_deinit */
};

/*
 * The supplement for the runtime in `image`. ret->root is NULL where there is none. Fails only with NOMEM, or when an
 * embedded file is malformed.
 */
enum cdacq_status supplement_find(const struct image *image, struct supplement *ret, struct cdacq_error *err);
void supplement_deinit(struct supplement *supplement);

/* Adds it to a descriptor, by the rule that what is there stays. MEMORY where its pointer data is not in the target. */
enum cdacq_status supplement_add(const struct supplement *supplement, const struct image *image,
                                 struct descriptor *descriptor, struct cdacq_error *err);

#endif
