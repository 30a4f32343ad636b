/*
 * debug_file.h: where an image's symbols are besides its own tables: the compressed .gnu_debugdata of the file, and a
 * separate debug file. The latter is looked for by build-id below .build-id, by the name in .gnu_debuglink, in the
 * module directories and, if the policy fetches, over the network, by build-id or by the key of a symbol server. It is
 * used only if its build-id or, for an image without one, its checksum is the right one. Source: GDB's manual,
 * "Debugging Information in Separate Files" and "MiniDebugInfo".
 */
#ifndef CDACQ_TARGET_NATIVE_DEBUG_FILE_H
#define CDACQ_TARGET_NATIVE_DEBUG_FILE_H

#include "util/base.h"

struct elf_file;
struct file_candidate;
struct image;
struct work;

enum {
    DEBUG_DATA_MAX = 64 * 1024 * 1024,      /* bytes of .gnu_debugdata, decompressed; usual are 1 or 2 MB */
    DEBUG_CHECKSUM_MAX = 256 * 1024 * 1024, /* bytes of a debug file whose checksum is computed */
};

/*
 * Decompresses .gnu_debugdata. The result is allocated. NULL: there is none, it is damaged, or liblzma is not
 * installed. Thread-safe.
 */
uint8_t *debug_data_open(const struct elf_file *file, struct work *work, size_t *ret_size);

/*
 * Opens the debug file of an image. `file` is the image's own, if it was found. False if no file is accepted. The
 * caller closes *ret.
 */
bool debug_file_open(const struct image *image, const struct elf_file *file, struct file_candidate *ret);

#endif
