/*
 * supplement.h: JSON descriptors, embedded in the library, of what runtimes do not publish themselves: .NET 8 publishes
 * no descriptor, 9 one without ExecutionManager, 10 leaves some fields out, and 11 two fields.
 *
 * Each file names the image that it belongs to:
 *
 *     "$match": {"runtime": ".NET 8.0", "elf_machine": 62, "symbols": {"g_dacTable": 1256, "Other": null}}
 *
 * The image must export each symbol with exactly that size; a symbol with null must not be exported. Indirect values
 * are indexes into the exported array of pointers that "$pointer_data" names. The runtime fills the array at start, so
 * it is read from the target's memory, never from a file.
 *
 * "$match" may also have "fields": {"Thread": {"OSId": 224}}. The runtime must publish these fields with exactly these
 * offsets: the symbols do not show a servicing version that lays out the type in another way.
 *
 * A file for a runtime that exports no such symbols names strings that it publishes, instead:
 *
 *     "$match": {"runtime": ".NET 11.0", "elf_machine": 62, "globals": {"RuntimeFlavor": "NativeAot"}}
 *
 * The runtime must publish each of them, and a RuntimeProductVersionString of that release.
 *
 * Servicing versions of a release add pointers to the array. "$pointer_data_added" has the indexes of those, in the
 * order in which they were added. An image whose array lacks the last of them matches, too, and the indexes are counted
 * as if all were there; an indirect value must not refer to one of them.
 */
#ifndef CDACQ_DESCRIPTORS_SUPPLEMENT_H
#define CDACQ_DESCRIPTORS_SUPPLEMENT_H

#include "cdacq/error.h"
#include "util/base.h"

struct descriptor;
struct image;
struct json;

struct supplement {
    const char *name;     /* of the file, static */
    const char *runtime;  /* ".NET 8.0"; part of `root` */
    struct json *root;    /* free with supplement_deinit */
    int missing_pointers; /* the array lacks this many of those that were added, the last ones */
    bool lacks_pointers;  /* it refers to pointers, and those of this servicing version are not known: none is used */
};

/*
 * Finds the supplement for the runtime in `image`. With `release` ("10.0"), the size of the array of pointers does not
 * matter, for a file that can do without it ("$pointer_data_optional"): a later servicing version may have another one.
 * ret->root is NULL where there is none. Fails only with NOMEM, or when an embedded file is malformed.
 */
enum cdacq_status supplement_find(const struct image *image, const char *release, struct supplement *ret,
                                  struct cdacq_error *err);

/* The same by what the runtime publishes. */
enum cdacq_status supplement_find_published(unsigned elf_machine, const struct descriptor *descriptor,
                                            struct supplement *ret, struct cdacq_error *err);
void supplement_deinit(struct supplement *supplement);

/* Whether the runtime's own descriptor has the fields that the supplement demands. */
bool supplement_fits(const struct supplement *supplement, const struct descriptor *descriptor);

/* Adds it to a descriptor, whose existing items stay. MEMORY where the target lacks its pointer data. */
enum cdacq_status supplement_add(const struct supplement *supplement, const struct image *image,
                                 struct descriptor *descriptor, struct cdacq_error *err);

#endif
