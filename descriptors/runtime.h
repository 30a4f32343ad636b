/*
 * runtime.h: finding the .NET runtimes of a target, and putting together the descriptor of one of them.
 */
#ifndef CDACQ_DESCRIPTORS_RUNTIME_H
#define CDACQ_DESCRIPTORS_RUNTIME_H

#include "descriptors/contract_descriptor.h"
#include "descriptors/supplement.h"
#include "target/image.h"

enum { RUNTIME_MAX = 16 };

/* An image that publishes a descriptor, or should. */
struct runtime {
    struct image image;
    bool has_image;               /* false where only the descriptor's address was given */
    uint64_t descriptor_address;  /* 0: the image exports none */
    struct supplement supplement; /* its root is NULL where none is for this runtime */
};

struct runtimes {
    struct runtime *items;
    size_t count;
    const char *problem_path; /* an image named libcoreclr.so that could not be used, NULL */
    struct cdacq_error problem;
};

void runtimes_deinit(struct runtimes *runtimes);

/*
 * Finds every mapped image that exports DotNetRuntimeContractDescriptor: the ones named libcoreclr.so first; when there
 * is none, or `all` are wanted, others too (a single-file app has the runtime in its executable, a NativeAOT library
 * its own). Numbers do not depend on `all`. Free `items`.
 */
enum cdacq_status runtimes_find(struct target *target, bool all, struct runtimes *ret, struct cdacq_error *err);

/*
 * Reads the descriptor of `runtime`, where it has one, then adds its supplement, then lets the files in `overrides`
 * override both.
 */
enum cdacq_status runtime_read_descriptor(struct target *target, const struct runtime *runtime,
                                          const char *const *overrides, size_t override_count,
                                          struct descriptor *descriptor, struct contract_descriptor_info *ret,
                                          struct cdacq_error *err);

#endif
