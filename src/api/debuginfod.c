#include "src/api/debuginfod.h"

#include "util/library.h"

/* The interface of debuginfod_find_executable(3), declared here because its header may not be installed. */
struct client;

struct debuginfod {
    struct client *(*begin)(void);
    void (*end)(struct client *);
    int (*find_executable)(struct client *, const unsigned char *, int, char **);
    int (*find_debuginfo)(struct client *, const unsigned char *, int, char **);
};

static const struct library library = {
    .file = "libdebuginfod.so.1",
    .package = "libdebuginfod1",
    .names = (const char *const[]){"debuginfod_begin", "debuginfod_end", "debuginfod_find_executable",
                                   "debuginfod_find_debuginfo", NULL},
};

static char *fetch(const uint8_t *build_id, size_t size, bool debug_file)
{
    char *path = NULL;
    struct debuginfod debuginfod;
    char why[200];
    if (!library_load(&library, &debuginfod, why, sizeof why))
        return NULL;
    struct client *client = debuginfod.begin();
    if (!client)
        return NULL;
    int fd = (debug_file ? debuginfod.find_debuginfo : debuginfod.find_executable)(client, build_id, (int)size, &path);
    if (fd >= 0)
        close(fd);
    else
        path = NULL;
    debuginfod.end(client);
    return path;
}

char *debuginfod_fetch(const uint8_t *build_id, size_t size)
{
    return fetch(build_id, size, false);
}

char *debuginfod_fetch_debug_file(const uint8_t *build_id, size_t size)
{
    return fetch(build_id, size, true);
}
