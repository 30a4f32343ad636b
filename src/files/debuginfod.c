#include "src/files/debuginfod.h"

#include "util/library.h"
#include "util/text.h"

/* The interface of debuginfod_find_executable(3), declared here because its header may not be installed. */
struct client;
typedef int find_file(struct client *client, const unsigned char *build_id, int size, char **ret_path);

struct debuginfod {
    struct client *(*begin)(void);
    void (*end)(struct client *);
    void (*set_progress)(struct client *, int (*)(struct client *, long, long));
    find_file *find_executable, *find_debuginfo;
};

static const struct library library = {
    .file = "libdebuginfod.so.1",
    .package = "libdebuginfod1",
    .names = (const char *const[]){"debuginfod_begin", "debuginfod_end", "debuginfod_set_progressfn",
                                   "debuginfod_find_executable", "debuginfod_find_debuginfo", NULL},
};

enum { BUILD_ID_MAX = 64 };

struct fetch {
    const struct debuginfod_listener *listener;
    struct cdacq_need file;
};

static _Thread_local const struct fetch *current; /* the client calls report() in the thread that fetches */

/* Reports progress. `done` is passed only once the total is known: before, it may count the client's waits. */
static int report(struct client *client, long done, long total)
{
    (void)client;
    bool known = done >= 0 && total > 0;
    current->listener->fetching(&current->file, known ? (uint64_t)done : 0, known ? (uint64_t)total : 0,
                                current->listener->context);
    return 0;
}

static char *fetch_with(const struct debuginfod *debuginfod, find_file *find, const struct fetch *fetch,
                        const uint8_t *build_id, size_t size)
{
    char *path = NULL;
    const struct debuginfod_listener *listener = fetch->listener;
    struct client *client = debuginfod->begin();
    if (!client)
        return NULL;
    current = fetch;
    if (listener->fetching)
        debuginfod->set_progress(client, report);
    int fd = find(client, build_id, (int)size, &path);
    debuginfod->end(client);
    if (listener->fetching)
        listener->fetching(NULL, 0, 0, listener->context);
    if (fd < 0)
        return NULL;
    close(fd);
    return path;
}

static char *fetch_file(void *context, const char *path, const uint8_t *build_id, size_t size, bool debug_file)
{
    struct debuginfod debuginfod;
    char hex[2 * BUILD_ID_MAX + 1], why[200];
    if (size > BUILD_ID_MAX || !library_load(&library, &debuginfod, why, sizeof why))
        return NULL;
    text_hex(hex, build_id, size);
    const struct fetch fetch = {
        .listener = context,
        .file = {.size = sizeof fetch.file, .kind = CDACQ_NEED_FILE, .path = path, .build_id = hex},
    };
    return fetch_with(&debuginfod, debug_file ? debuginfod.find_debuginfo : debuginfod.find_executable, &fetch,
                      build_id, size);
}

char *debuginfod_fetch(void *context, const char *path, const uint8_t *build_id, size_t size)
{
    return fetch_file(context, path, build_id, size, false);
}

char *debuginfod_fetch_debug_file(void *context, const char *path, const uint8_t *build_id, size_t size)
{
    return fetch_file(context, path, build_id, size, true);
}
