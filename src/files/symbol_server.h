/*
 * symbol_server.h: fetches files by the keys of symbol servers (NAME/KEY/NAME) into a folder, in which they are found
 * the next time. Only the key (symbol_key.h) comes from the target; the rest of a URL is the opener's. A file has its
 * name in the folder only once it is complete. Nothing here looks at contents: whoever searches compares them.
 * Threads: under the lock of the file policy.
 */
#ifndef CDACQ_FILES_SYMBOL_SERVER_H
#define CDACQ_FILES_SYMBOL_SERVER_H

#include "cdacq/target.h"
#include "util/base.h"

/* Bounds for one target. */
enum {
    SERVER_REQUESTS_MAX = 1000,
    SERVER_UNREACHABLE_MAX = 3, /* requests without an answer, after which no more are made */
    SERVER_SECONDS_MAX = 300,   /* for one file */
    SERVER_ALL_SECONDS_MAX = 900,
};
#define SERVER_FILE_MAX (UINT64_C(512) << 20) /* bytes */
#define SERVER_ALL_MAX  (UINT64_C(4) << 30)

/* What struct cdacq_options says of it. A zeroed struct asks nobody. */
struct symbol_server {
    char **urls;       /* NULL-terminated; NULL where there are none */
    char *cache;       /* the folder; NULL: not known */
    uint64_t file_max; /* bytes of one file */
    void (*fetching)(const struct cdacq_need *file, uint64_t done, uint64_t total, void *context);
    void (*failed)(const struct cdacq_need *file, const char *url, bool is_absent, const char *why, void *context);
    void *context; /* of both, which may be NULL */
    /* What was done so far. */
    unsigned requests, unreachable;
    uint64_t bytes, time;             /* nanoseconds */
    bool told;                        /* that no server is asked any more */
    bool told_stopped;                /* that none is asked while the process is stopped */
    char *fetched_path, *fetched_url; /* of the last file that was fetched */
    size_t fetched_from;              /* the index of its server */
    char *refused_key;                /* of the last file that was fetched and refused; */
    size_t refused_next;              /* servers from this one on are left to ask for it */
};

/* Sets the folder where the opener gives none: XDG_CACHE_HOME/cdacq or ~/.cache/cdacq. False when out of memory. */
bool symbol_server_set_cache(struct symbol_server *server, const char *cache);

void symbol_server_deinit(struct symbol_server *server);

/* For struct file_server. The context is a struct symbol_server. */
char *symbol_server_fetch(void *context, const struct cdacq_need *need, bool cached);
bool symbol_server_refuse(void *context, const struct cdacq_need *need, const char *path, const char *why);

#endif
