/*
 * output_folder.h: a folder for files whose paths come from a target. No component of such a path is followed if it is
 * a link, so nothing is written outside of the folder.
 */
#ifndef CDACQ_CLI_COMMANDS_OUTPUT_FOLDER_H
#define CDACQ_CLI_COMMANDS_OUTPUT_FOLDER_H

#include "src/cli/base/output.h"

struct output_folder {
    const char *path;
    int fd;
    bool is_new; /* it was made here */
    char *last;  /* the path of the folder below it that was opened last: most files are in that of the one before */
    int last_fd;
    int error; /* why nothing more can be written, such as that the disk is full, which was said; 0: not known */
};

/* Makes the folder if there is none. Returns false, with a message, if it cannot be used. */
bool output_folder_open(struct output_folder *folder, const char *path);

/* Removes the folder again if it was made for nothing. */
void output_folder_close(struct output_folder *folder);

/* Whether a path of the target can be one below the folder: it is absolute, and no component is empty, "." or "..". */
bool output_folder_takes(const char *path);

/*
 * Opens the folder that `path` is in, and makes what is missing of it. What killed runs have left in it is removed.
 * Returns a descriptor, which the caller closes;
 * -1 with a message, or without one for the reason of folder->error. *ret_name is the last component of `path`.
 */
int output_folder_of(struct output_folder *folder, const char *path, const char **ret_name);

/* A file in the folder. It appears under its name, in place of what had that, when it is complete. */
struct folder_file {
    struct output out; /* takes the contents */
    const char *path;  /* as the caller gave it */
    const char *name;
    int folder;                /* a descriptor of the folder that it is in, which the caller closes after the end */
    int held;                  /* keeps the file locked until it has its name */
    char part[PART_NAME_SIZE]; /* its name until it is complete */
};

/* Begins the file at `name` in an open folder. False with a message. folder_file_end() ends it. */
bool folder_file_begin(struct output_folder *folder, int in, const char *path, const char *name, unsigned mode,
                       struct folder_file *ret);

/* Puts the file in its place if it is wanted; removes it otherwise. False, with a message, if not all was written. */
bool folder_file_end(struct output_folder *folder, struct folder_file *file, bool wanted);

/* Says that `path` cannot be written, for the reason in errno: once, if that is one of all files. Returns false. */
bool output_folder_complain(struct output_folder *folder, const char *path);

#endif
