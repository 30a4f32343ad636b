/*
 * runtime.h: finds the .NET runtimes of a target and reads the descriptor of one of them.
 */
#ifndef CDACQ_DESCRIPTORS_RUNTIME_H
#define CDACQ_DESCRIPTORS_RUNTIME_H

#include "descriptors/supplement.h"
#include "target/image.h"

struct contract_descriptor_info;
struct descriptor;

enum { RUNTIME_MAX = 16 };

/* An image that publishes a descriptor, or is named libcoreclr.so. */
struct runtime {
    struct image image;
    bool has_image;               /* false where only the descriptor's address is known */
    bool is_loaded;               /* its segments are mapped where a loader puts them */
    uint64_t descriptor_address;  /* 0 where the image exports none */
    struct supplement supplement; /* its root is NULL where this runtime has none */
};

struct runtimes {
    struct runtime *items;
    size_t count;
    const char *problem_path; /* an image named libcoreclr.so that could not be opened, or NULL */
    struct cdacq_error problem;
    const char *native_path; /* an image that was compiled by NativeAOT and publishes no descriptor, or NULL */
};

void runtimes_deinit(struct runtimes *runtimes);

/*
 * Finds the images named libcoreclr.so and, when there are none or `all` is set, any other image that exports
 * DotNetRuntimeContractDescriptor: a single-file app has the runtime in its executable, a NativeAOT library has its
 * own. The order does not depend on `all`. Free the result with runtimes_deinit().
 */
enum cdacq_status runtimes_find(struct target *target, bool all, struct runtimes *ret, struct cdacq_error *err);

/*
 * Reads the descriptor of `runtime`, if it has one, and adds its supplement, which the descriptor may lead to. One that
 * does not fit it is dropped.
 */
enum cdacq_status runtime_read_descriptor(struct target *target, struct runtime *runtime, struct descriptor *descriptor,
                                          struct contract_descriptor_info *ret, struct cdacq_error *err);

/* Adds a JSON file of the user, which overrides existing items. */
enum cdacq_status runtime_override_descriptor(const char *path, struct descriptor *descriptor, struct cdacq_error *err);

#endif
