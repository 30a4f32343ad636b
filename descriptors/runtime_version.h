/*
 * runtime_version.h: finds the version of a runtime: the one that its descriptor publishes (since .NET 11) or, without
 * one, from three sources: symbols whose sizes differ between releases, the version string in its image, and the
 * folder that it was loaded from.
 */
#ifndef CDACQ_DESCRIPTORS_RUNTIME_VERSION_H
#define CDACQ_DESCRIPTORS_RUNTIME_VERSION_H

struct descriptor;
struct runtime;

struct runtime_version {
    char release[16];      /* "10.0"; "" unless it is published, or two sources agree */
    char version[32];      /* "10.0.12": the published one, or the folder's name if it agrees with the release; or "" */
    char file_version[48]; /* "10.0.1226.42308", from the image; "" where unreadable */
    char of_image[16];     /* "10.0", the release that the image alone says */
};

/* `descriptor`: the runtime's; NULL: it was not read. */
void runtime_version_find(const struct runtime *runtime, const struct descriptor *descriptor,
                          struct runtime_version *ret);

/* The release ("10.0") that the folder of a runtime is named after; "" if its name is no version. */
void runtime_version_of_path(const char *path, char ret[16]);

#endif
