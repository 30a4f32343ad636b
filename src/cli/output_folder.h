/*
 * output_folder.h: a folder for files whose paths come from a target. No component of such a path is followed if it is
 * a link, so nothing is written outside of the folder.
 */
#ifndef CDACQ_CLI_OUTPUT_FOLDER_H
#define CDACQ_CLI_OUTPUT_FOLDER_H

#include <stdbool.h>

struct output_folder {
    const char *path;
    int fd;
};

/* Makes the folder if there is none. Returns false, with a message, if it cannot be used. */
bool output_folder_open(struct output_folder *folder, const char *path);
void output_folder_close(struct output_folder *folder);

/* Whether a path of the target can be one below the folder: it is absolute, and no component is empty, "." or "..". */
bool output_folder_takes(const char *path);

/*
 * Opens the folder that `path` is in, and makes what is missing of it. Returns a descriptor, which the caller closes;
 * -1 with a message. *ret_name is the last component of `path`.
 */
int output_folder_of(const struct output_folder *folder, const char *path, const char **ret_name);

/* Says that `path` cannot be written, for the reason in errno. Returns false. */
bool output_folder_complain(const struct output_folder *folder, const char *path);

#endif
