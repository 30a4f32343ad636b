#include "src/files/symbol_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "src/files/curl.h"
#include "src/files/symbol_key.h"
#include "util/clock.h"
#include "util/part_file.h"

enum { PATH_SIZE = 4096, URL_SIZE = SYMBOL_KEY_URL_MAX + 3 * SYMBOL_KEY_PART_SIZE, WHY_SIZE = 640 };

/* ---- The folder ---- */

bool symbol_server_set_cache(struct symbol_server *server, const char *cache)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char path[PATH_SIZE];
    int length = 0;
    if (cache)
        length = snprintf(path, sizeof path, "%s", cache);
    else if (xdg && xdg[0] == '/')
        length = snprintf(path, sizeof path, "%s/cdacq", xdg);
    else if (home && home[0] == '/')
        length = snprintf(path, sizeof path, "%s/.cache/cdacq", home);
    else
        return true;
    if (length <= 0 || length >= (int)sizeof path)
        return true; /* fetching says that there is none */
    server->cache = strdup(path);
    return server->cache != NULL;
}

void symbol_server_deinit(struct symbol_server *server)
{
    free(server->cache);
    free(server->fetched_path);
    free(server->fetched_url);
    free(server->refused_key);
}

static bool is_own_folder(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Whether only root and this user can change what a folder holds, or where a link leads. */
static bool is_safe(const struct stat *st)
{
    return (st->st_uid == 0 || st->st_uid == geteuid()) &&
           (S_ISLNK(st->st_mode) || !(st->st_mode & (S_IWGRP | S_IWOTH)) || st->st_mode & S_ISVTX);
}

/* The same of all that an absolute path goes through. The last two folders may be made. What is not there is safe. */
static bool is_safe_path(const char *path, bool make)
{
    char part[PATH_SIZE] = "/";
    struct stat st;
    size_t end = 0;
    do {
        const char *rest = path + end, *next = *rest ? strchr(rest + 1, '/') : NULL;
        memcpy(part, path, MAX(end, (size_t)1));
        if (make && end && !next)
            (void)mkdir(part, 0700);
        if (lstat(part, &st) < 0)
            return true; /* to open it fails, too */
        if (!is_safe(&st))
            return false;
        end = !*rest ? 0 : next ? (size_t)(next - path) : strlen(path);
    } while (end);
    return true;
}

/* Opens a folder. -1 with errno set, or where others may write to it or lead its path elsewhere: !*ret_is_own. */
static int open_own(const char *folder, bool make, bool *ret_is_own)
{
    char path[PATH_SIZE] = "", real[PATH_SIZE];
    *ret_is_own = true;
    if (folder[0] != '/' && !getcwd(path, sizeof path))
        return -1;
    size_t length = strlen(path);
    if (snprintf(path + length, sizeof path - length, "/%s", folder) >= (int)(sizeof path - length)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    *ret_is_own = is_safe_path(path, make);
    if (!*ret_is_own || !realpath(path, real))
        return -1;
    *ret_is_own = is_safe_path(real, false);
    int fd = *ret_is_own ? open(real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0 || is_own_folder(fd))
        return fd;
    close(fd);
    *ret_is_own = false;
    return -1;
}

/* Opens the folder, which is used by path, too. `make`: makes it and the one it is in. -1, and `why`, on failure. */
static int open_cache(const struct symbol_server *server, bool make, char *why, size_t size)
{
    bool is_own;
    if (!server->cache) {
        snprintf(why, size, "there is no folder for what is fetched: neither XDG_CACHE_HOME nor HOME is set");
        return -1;
    }
    int fd = open_own(server->cache, make, &is_own);
    if (!is_own)
        snprintf(why, size, "the folder for what is fetched belongs to others, or others may write to it: %.200s",
                 server->cache);
    else if (fd < 0)
        snprintf(why, size, "the folder for what is fetched cannot be opened: %.200s: %s", server->cache,
                 strerror(errno));
    return fd;
}

/* The path of a file in the folder, or of the folders that it is in. False: it is too long. */
static bool format_path(const struct symbol_server *server, const struct symbol_key *key, char *ret, size_t size)
{
    int length = snprintf(ret, size, "%s/%s/%s/%s", server->cache, key->name, key->middle, key->name);
    return length > 0 && length < (int)size;
}

/* A copy of an earlier fetch. Only this user has ever written to the folder. */
static char *find_copy(const struct symbol_server *server, const struct symbol_key *key)
{
    char path[PATH_SIZE], why[WHY_SIZE];
    struct stat st;
    CLEANUP_CLOSE int fd = open_cache(server, false, why, sizeof why);
    if (fd < 0 || !format_path(server, key, path, sizeof path))
        return NULL;
    bool found = fstatat(fd, path + strlen(server->cache) + 1, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
    return found ? strdup(path) : NULL;
}

/* A folder in an open one, made where there is none. */
static int open_folder(int above, const char *name)
{
    (void)mkdirat(above, name, 0700);
    return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The folder in which a file has its name. */
static int open_place(int cache, const struct symbol_key *key)
{
    CLEANUP_CLOSE int outer = open_folder(cache, key->name);
    return outer < 0 ? -1 : open_folder(outer, key->middle);
}

/* Gives a complete file its name. False with errno set. */
static bool place(int cache, const char *temporary, const struct symbol_key *key)
{
    CLEANUP_CLOSE int inner = open_place(cache, key);
    return inner >= 0 && renameat(cache, temporary, inner, key->name) == 0;
}

static void remove_copy(const struct symbol_server *server, const struct cdacq_need *need)
{
    struct symbol_key key;
    char why[WHY_SIZE];
    if (!symbol_key_read(need->symbol_key, &key))
        return;
    CLEANUP_CLOSE int cache = open_cache(server, false, why, sizeof why);
    CLEANUP_CLOSE int inner = cache < 0 ? -1 : open_place(cache, &key);
    if (inner >= 0)
        (void)unlinkat(inner, key.name, 0);
}

/* ---- Fetching ---- */

static void tell(const struct symbol_server *server, const struct cdacq_need *need, const char *url, bool is_absent,
                 const char *why)
{
    if (server->failed)
        server->failed(need, url, is_absent, why, server->context);
}

/* Says once why no server is asked any more. */
static void tell_once(struct symbol_server *server, const struct cdacq_need *need, const char *why)
{
    if (!server->told)
        tell(server, need, server->urls[0], false, why);
    server->told = true;
}

/* Why no server is asked, or NULL. */
static const char *bound_reached(const struct symbol_server *server)
{
    return server->unreachable >= SERVER_UNREACHABLE_MAX ? "too often, there was no answer; no server is asked any more"
           : server->requests >= SERVER_REQUESTS_MAX     ? "no server is asked any more: 1,000 requests were made"
           : server->bytes >= SERVER_ALL_MAX             ? "no server is asked any more: 4 GiB were fetched"
           : server->time >= SERVER_ALL_SECONDS_MAX * NS_PER_SECOND
               ? "no server is asked any more: it took 15 minutes until now"
               : NULL;
}

struct progress {
    const struct symbol_server *server;
    const struct cdacq_need *need;
};

static void report(void *context, uint64_t done)
{
    const struct progress *progress = context;
    progress->server->fetching(progress->need, done, 0, progress->server->context);
}

/* Reads a URL into an open file. */
static enum curl_outcome read_url(struct symbol_server *server, const struct cdacq_need *need, const char *url, int fd,
                                  char *why, size_t why_size)
{
    struct progress progress = {server, need};
    uint64_t size, began = monotonic_ns();
    if (server->fetching)
        report(&progress, 0);
    enum curl_outcome outcome = curl_read(
        &(struct curl_request){
            .url = url,
            .fd = fd,
            .size_max = MIN(server->file_max, SERVER_ALL_MAX - server->bytes),
            .seconds_max = SERVER_SECONDS_MAX,
            .progress = server->fetching ? report : NULL,
            .context = &progress,
        },
        &size, why, why_size);
    if (server->fetching)
        server->fetching(NULL, 0, 0, server->context);
    server->requests++;
    server->bytes += size;
    server->time += monotonic_ns() - began;
    server->unreachable = outcome == CURL_MISSING       ? SERVER_UNREACHABLE_MAX
                          : outcome == CURL_UNREACHABLE ? server->unreachable + 1
                                                        : 0;
    server->told |= outcome == CURL_MISSING; /* it is said now */
    return outcome;
}

/* Fetches a URL into the folder. */
static enum curl_outcome fetch_url(struct symbol_server *server, const struct cdacq_need *need,
                                   const struct symbol_key *key, const char *url, char *why, size_t why_size)
{
    char temporary[PART_NAME_SIZE];
    CLEANUP_CLOSE int cache = open_cache(server, true, why, why_size);
    if (cache < 0) {
        server->unreachable = SERVER_UNREACHABLE_MAX;
        server->told = true;
        return CURL_FAILED;
    }
    part_files_clean(cache);
    CLEANUP_CLOSE int fd = part_file_create(cache, 0600, temporary);
    if (fd < 0) {
        snprintf(why, why_size, "it cannot be stored: %s", strerror(errno));
        return CURL_FAILED;
    }
    enum curl_outcome outcome = read_url(server, need, url, fd, why, why_size);
    if (outcome == CURL_DONE && !place(cache, temporary, key)) {
        snprintf(why, why_size, "it cannot be stored: %s", strerror(errno));
        outcome = CURL_FAILED;
    }
    if (outcome != CURL_DONE)
        (void)unlinkat(cache, temporary, 0);
    return outcome;
}

/* Asks one server for a file, under the name in lower case and, if it has none, as the target has it. */
static enum curl_outcome ask(struct symbol_server *server, const struct cdacq_need *need, const struct symbol_key *key,
                             const char *base)
{
    char url[URL_SIZE], why[WHY_SIZE] = "";
    size_t length = strlen(base);
    while (length && base[length - 1] == '/')
        length--;
    const char *names[] = {key->name, strcmp(key->name, key->plain_name) != 0 ? key->plain_name : NULL};
    enum curl_outcome outcome = CURL_ABSENT;
    for (size_t i = 0; outcome == CURL_ABSENT && i < ARRAY_SIZE(names) && names[i] && !bound_reached(server); i++) {
        snprintf(url, sizeof url, "%.*s/%s/%s/%s", (int)length, base, names[i], key->middle, names[i]);
        outcome = fetch_url(server, need, key, url, why, sizeof why);
    }
    if (outcome == CURL_DONE) {
        free(server->fetched_url);
        server->fetched_url = strdup(url);
    } else {
        tell(server, need, url, outcome == CURL_ABSENT, why);
    }
    return outcome;
}

char *symbol_server_fetch(void *context, const struct cdacq_need *need, bool cached)
{
    struct symbol_server *server = context;
    struct symbol_key key;
    const char *bound = NULL;
    if (!symbol_key_read(need->symbol_key, &key))
        return NULL;
    char *path = find_copy(server, &key);
    if (path)
        return path;
    if (cached) {
        if (!server->told_stopped)
            tell(server, need, server->urls[0], false, "no server is asked while the process is stopped");
        server->told_stopped = true;
        return NULL;
    }
    bool is_refused = server->refused_key && strcmp(server->refused_key, need->symbol_key) == 0;
    for (size_t i = is_refused ? server->refused_next : 0; server->urls[i] && !(bound = bound_reached(server)); i++)
        if (ask(server, need, &key, server->urls[i]) == CURL_DONE) {
            free(server->fetched_path);
            path = find_copy(server, &key);
            server->fetched_path = path ? strdup(path) : NULL;
            server->fetched_from = i;
            return path;
        }
    if (bound)
        tell_once(server, need, bound);
    return NULL;
}

bool symbol_server_refuse(void *context, const struct cdacq_need *need, const char *path, const char *why)
{
    struct symbol_server *server = context;
    bool was_fetched = server->fetched_path && strcmp(path, server->fetched_path) == 0;
    if (!why[0])
        why = "it is not the file that is wanted";
    if (!was_fetched) {
        tell(server, need, path, false, why);
        return false;
    }
    remove_copy(server, need);
    tell(server, need, server->fetched_url ? server->fetched_url : path, false, why);
    free(server->refused_key);
    server->refused_key = strdup(need->symbol_key);
    server->refused_next = server->fetched_from + 1;
    return server->refused_key && server->urls[server->refused_next];
}
