/*
 * target_name.h: what TARGET names: a core, a process, or standard input.
 */
#ifndef CDACQ_CLI_BASE_TARGET_NAME_H
#define CDACQ_CLI_BASE_TARGET_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Whether TARGET is "-". */
bool target_is_stdin(const char *name);

/* Whether it is an ELF image, such as libcoreclr.so, which has no code of a process. */
bool target_is_image(const char *name);

/* The same of a file. A message says so. */
bool target_is_refused(const char *name);

/* Whether TARGET is a pid: digits. A core of that name is "./1234". */
bool target_is_pid(const char *name);

/* The pid. 0 if no process can have the number. */
int target_pid(const char *name);

/* Whether it is the path of a regular file. */
bool target_is_file(const char *name);

enum { FILE_HEADER_SIZE = 18 }; /* bytes: up to the type of an ELF file */

/*
 * Reads the header of a regular file. Returns the type of an ELF file (ET_CORE and others); ET_NONE for what is none,
 * or cannot be read, with a header of zeros then. Never waits for a pipe or a device.
 */
unsigned file_elf_type(const char *path, uint8_t header[FILE_HEADER_SIZE]);

/* The size of a file; 0 if there is none. */
uint64_t path_size(const char *path);

/* TARGET as messages and results name it. */
const char *target_display_name(const char *name);

#endif
