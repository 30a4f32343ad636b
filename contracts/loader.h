/*
 * loader.h: the Loader and EcmaMetadata contracts: from a Module to its image, its path and its metadata, which is read
 * row by row from the target. An image may be mapped by RVA or flat, as in its file. Modules of Reflection.Emit have no
 * image; the runtime keeps a copy of their metadata. Where something was added to a module while the process ran, the
 * rows that its image or its copy lacks are those of read_write_metadata.h. Modules are kept by module_cache.h; they
 * belong to the thread of their reader.
 * Source: dotnet/runtime docs/design/datacontracts/{Loader,EcmaMetadata}.md.
 */
#ifndef CDACQ_CONTRACTS_LOADER_H
#define CDACQ_CONTRACTS_LOADER_H

#include "cdacq/error.h"
#include "contracts/read_write_metadata.h"
#include "formats/metadata.h"
#include "formats/pe.h"

struct reader;

/* Target memory as the source of a format reader. */
struct target_bytes {
    uint64_t base;
    const uint8_t *metadata;  /* all of the image's metadata, or NULL if it is not in one span that does not change */
    bool metadata_unverified; /* it is of a file that nothing confirmed */
    uint64_t missing;         /* the last address that could not be read, or 0 */
    uint8_t *joined;          /* a copy of bytes that are not contiguous */
    size_t joined_size;
};

/* Which files are mapped where, answered by the layer above: no contract searches for a file. */
struct module_files {
    /* The path of the file mapped at `address`, or NULL. Valid as long as the cache. */
    const char *(*path_at)(void *context, uint64_t address);
    /*
     * Where the next file called NAME.dll is mapped; `position` is 0 at first. False if there are no more, or if the
     * reader, whose fuel the search costs, fails.
     */
    bool (*next_assembly)(void *context, struct reader *reader, const char *name, size_t length, size_t *position,
                          uint64_t *ret_base);
    /*
     * The pointer at `address`, in the data of an image that the target maps, as the loader relocated it: taken from
     * the image's file, where the target lacks that memory. False, and the reader may have failed, if it cannot be had.
     */
    bool (*relocated_pointer)(void *context, struct reader *reader, uint64_t address, uint64_t *ret);
    void *context;
};

enum module_form {
    MODULE_LOADED,     /* what the runtime loaded */
    MODULE_IMAGE,      /* an image without its Module */
    MODULE_READ_WRITE, /* the metadata to which the process has added; only module_metadata() uses it */
};

struct module_cache;

struct module {
    struct module_cache *cache; /* that keeps it */
    struct reader *reader;
    const struct module **failed; /* is set to this module when its metadata cannot be read */
    enum module_form form;
    uint64_t address;         /* of the Module */
    uint64_t base;            /* of the image; 0 if it has none */
    char *path;               /* escaped, printable; NULL if not known */
    bool unverified;          /* its image's bytes come from a file that nothing confirmed */
    enum cdacq_status status; /* OK: `metadata` is open */
    struct cdacq_error error;
    struct target_bytes source;
    struct pe pe;
    struct bytes_extent part;
    struct bytes metadata_bytes;
    struct metadata metadata;
    struct read_write_metadata read_write; /* of MODULE_READ_WRITE */
};

/*
 * Opens what is at the module's address or, for MODULE_IMAGE, its base: `form` and the members before it are set, and
 * for MODULE_READ_WRITE the path. `status` is the result. Starts tasks of the reader.
 */
void module_open(struct module *module, const struct module_files *files);
void module_deinit(struct module *module);

/*
 * Whether the running process has the headers of the image that was opened: its file may have been unmapped, and
 * another one mapped in its place, since the files were listed. True where there is no image.
 */
bool module_is_mapped(const struct module *module, struct reader *reader);

/*
 * TryGetSymbolStream: the PDB that the program gave to the runtime with an assembly in memory (Assembly.Load). False if
 * there is none, or if the runtime does not describe where it is. True, too, if that cannot be read: the reader fails.
 */
bool module_get_symbol_stream(const struct module *module, uint64_t *ret_address, uint32_t *ret_size);

/* Reports that the module's metadata could not be read; `status` is what the metadata reader returned. */
void module_report(const struct module *module, enum cdacq_status status, struct cdacq_error *err);

#endif
