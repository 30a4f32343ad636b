/*
 * hosts.c: a native program that hosts several .NET runtimes, each from a libcoreclr.so of its own.
 *
 *   hosts ASSEMBLY-FOLDER {FRAMEWORK-FOLDER}... -- {WORD}...
 *
 * The word "0:CallBack" calls Hosted.Entry.CallBack of runtime 0, whose callback runs the next word, within the one
 * before. "+" runs the words after it in a thread of their own. After the last word, the thread waits. "READY" is
 * printed when all threads wait.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNTIMES = 4, LIST_SIZE = 1 << 20 };

typedef int initialize(const char *program, const char *domain, int count, const char **keys, const char **values,
                       void **host, unsigned *id);
typedef int create_delegate(void *host, unsigned id, const char *assembly, const char *type, const char *method,
                            void **ret);
typedef int entry(int depth, int (*back)(int depth));

struct runtime {
    create_delegate *create;
    void *host;
    unsigned id;
};

static struct runtime runtimes[RUNTIMES];
static char **words;
static int running;

static void *die(const char *what, const char *why)
{
    fprintf(stderr, "hosts: %s: %s\n", what, why);
    exit(3);
}

/* The assemblies of a framework, and the library's own. */
static char *list_assemblies(const char *framework, const char *folder)
{
    char *list = calloc(1, LIST_SIZE);
    size_t length = 0;
    DIR *files = opendir(framework);
    if (!list || !files)
        die(framework, "cannot be listed");
    for (const struct dirent *file; (file = readdir(files));) {
        size_t name = strlen(file->d_name);
        if (name > 4 && strcmp(file->d_name + name - 4, ".dll") == 0 && length < LIST_SIZE - PATH_MAX)
            length += (size_t)snprintf(list + length, LIST_SIZE - length, "%s/%s:", framework, file->d_name);
    }
    closedir(files);
    snprintf(list + length, LIST_SIZE - length, "%s/Hosted.dll", folder);
    return list;
}

static void start(struct runtime *runtime, const char *framework, const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/libcoreclr.so", framework);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die(path, dlerror());
    initialize *init = (initialize *)dlsym(library, "coreclr_initialize");
    runtime->create = (create_delegate *)dlsym(library, "coreclr_create_delegate");
    char *list = list_assemblies(framework, folder);
    const char *keys[] = {"TRUSTED_PLATFORM_ASSEMBLIES", "NATIVE_DLL_SEARCH_DIRECTORIES", "APP_PATHS",
                          "System.Globalization.Invariant"};
    const char *values[] = {list, framework, folder, "true"};
    int status = init("/proc/self/exe", "hosts", 4, keys, values, &runtime->host, &runtime->id);
    if (status < 0)
        die(framework, "coreclr_initialize failed");
    free(list);
}

static int back(int depth);

static int run_word(int i)
{
    struct runtime *runtime = &runtimes[words[i][0] - '0'];
    entry *method = NULL;
    if (runtime->create(runtime->host, runtime->id, "Hosted", "Hosted.Entry", words[i] + 2, (void **)&method) < 0)
        die(words[i], "no such method");
    return method(i, back);
}

/* The native function at the end of a thread. */
__attribute__((noinline)) static int wait_for_good(void)
{
    if (__atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST) == 0) {
        printf("READY %d\n", getpid());
        fflush(stdout);
    }
    return 1 + pause(); /* not as the last call, so that this function has a frame */
}

__attribute__((noinline)) static int back(int depth)
{
    int next = depth + 1;
    return 1 + (words[next] && strcmp(words[next], "+") != 0 ? run_word(next) : wait_for_good());
}

static void *run_thread(void *word)
{
    run_word((int)((char **)word - words));
    return NULL;
}

int main(int count, char **arguments)
{
    int i = 2, number = 0;
    for (; i < count && strcmp(arguments[i], "--") != 0 && number < RUNTIMES; i++)
        start(&runtimes[number++], arguments[i], arguments[1]);
    words = arguments + i + 1;
    running = 1;
    for (char **word = words; *word; word++)
        running += strcmp(*word, "+") == 0;
    for (char **word = words; *word; word++) {
        pthread_t thread;
        if (strcmp(*word, "+") == 0 && pthread_create(&thread, NULL, run_thread, word + 1) != 0)
            die("pthread_create", "failed");
    }
    return run_word(0);
}
