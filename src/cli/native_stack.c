#include "src/cli/native_stack.h"

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/cli.h"
#include "src/cli/console.h"
#include "src/cli/memory.h"

enum { FRAME_MAX = 4096 };

/* The functions of libdw in use. */
#define DWFL_FUNCTIONS(X)           \
    X(dwfl_begin)                   \
    X(dwfl_end)                     \
    X(dwfl_errmsg)                  \
    X(dwfl_report_begin)            \
    X(dwfl_report_end)              \
    X(dwfl_report_elf)              \
    X(dwfl_core_file_report)        \
    X(dwfl_core_file_attach)        \
    X(dwfl_linux_proc_report)       \
    X(dwfl_linux_proc_attach)       \
    X(dwfl_linux_proc_find_elf)     \
    X(dwfl_build_id_find_elf)       \
    X(dwfl_standard_find_debuginfo) \
    X(dwfl_getthreads)              \
    X(dwfl_thread_getframes)        \
    X(dwfl_thread_tid)              \
    X(dwfl_frame_pc)                \
    X(dwfl_getmodules)              \
    X(dwfl_module_getelf)           \
    X(dwfl_addrmodule)              \
    X(dwfl_module_info)             \
    X(dwfl_module_addrinfo)

struct libdw {
    void *handle;
#define MEMBER(name) __typeof__(&name) name;
    DWFL_FUNCTIONS(MEMBER)
#undef MEMBER
};

struct walk {
    struct libdw dw;
    Dwfl *dwfl;
    const struct native_stack_visitor *visitor;
    pid_t tid;
    unsigned frames;
};

static bool load_libdw(struct libdw *dw)
{
    dw->handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!dw->handle) {
        message("stacks need libdw (Debian package libdw1): %s", dlerror());
        return false;
    }
#define LOOK_UP(name)                                                \
    if (!(dw->name = (__typeof__(&name))dlsym(dw->handle, #name))) { \
        message("stacks need a newer libdw: it lacks %s", #name);    \
        return false;                                                \
    }
    DWFL_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    return true;
}

/*
 * For find_elf: libdwfl's callbacks have no context of the caller.
 */
static const struct cdacq_options *find_options;
static const struct libdw *find_libdw;

static int open_at(const char *directory, const char *path, char **ret_name)
{
    char *name;
    if (asprintf(&name, "%s/%s", directory, path) < 0)
        return -1;
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        free(name);
    else
        *ret_name = name;
    return fd;
}

static int find_elf(Dwfl_Module *module, void **userdata, const char *module_name, Dwarf_Addr base, char **file_name,
                    Elf **elf)
{
    const struct cdacq_options *options = find_options;
    const char *slash = strrchr(module_name, '/');
    int fd = -1;
    if (strstr(module_name, "/../"))
        return -1; /* would lead out of a sysroot; a mapping has no such path */
    for (size_t i = 0; fd < 0 && module_name[0] == '/' && i < options->sysroot_count; i++)
        fd = open_at(options->sysroots[i], module_name, file_name);
    for (size_t i = 0; fd < 0 && slash && i < options->module_path_count; i++)
        fd = open_at(options->module_paths[i], slash + 1, file_name);
    if (fd >= 0)
        return fd;
    fd = find_libdw->dwfl_build_id_find_elf(module, userdata, module_name, base, file_name, elf);
    if (fd < 0 && !*elf)
        fd = find_libdw->dwfl_linux_proc_find_elf(module, userdata, module_name, base, file_name, elf);
    return fd;
}

static int visit_frame(Dwfl_Frame *dwfl_frame, void *context)
{
    struct walk *walk = context;
    const struct libdw *dw = &walk->dw;
    struct native_frame frame = {.index = walk->frames};
    Dwarf_Addr pc;
    bool is_activation = true;
    if (walk->frames++ == FRAME_MAX) {
        walk->visitor->broken(walk->tid, "too many frames", walk->visitor->context);
        return DWARF_CB_ABORT;
    }
    if (!dw->dwfl_frame_pc(dwfl_frame, &pc, &is_activation)) {
        walk->visitor->broken(walk->tid, dw->dwfl_errmsg(-1), walk->visitor->context);
        return DWARF_CB_ABORT;
    }
    frame.pc = pc;
    frame.is_call = !is_activation;
    Dwfl_Module *module = dw->dwfl_addrmodule(walk->dwfl, pc - frame.is_call);
    if (module) {
        GElf_Sym symbol;
        GElf_Off offset = 0;
        frame.symbol = dw->dwfl_module_addrinfo(module, pc - frame.is_call, &offset, &symbol, NULL, NULL, NULL);
        frame.symbol_offset = offset + (frame.symbol && frame.is_call);
        frame.module = dw->dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    }
    walk->visitor->frame(walk->tid, &frame, walk->visitor->context);
    return DWARF_CB_OK;
}

static int visit_thread(Dwfl_Thread *thread, void *context)
{
    struct walk *walk = context;
    walk->tid = walk->dw.dwfl_thread_tid(thread);
    walk->frames = 0;
    walk->visitor->thread(walk->tid, walk->visitor->context);
    /* 0: the outermost frame was reached; 1: visit_frame stopped and reported why; -1: libdwfl cannot go on. */
    if (walk->dw.dwfl_thread_getframes(thread, visit_frame, walk) < 0)
        walk->visitor->broken(walk->tid, walk->dw.dwfl_errmsg(-1), walk->visitor->context);
    return DWARF_CB_OK;
}

/* A module of a core whose file was found. */
struct core_module {
    char *name, *path;
    Dwarf_Addr start;
};

struct core_modules {
    const struct walk *walk;
    struct core_module *items;
    size_t count;
    bool unreachable; /* libdwfl does not find some module by its addresses */
};

static int list_module(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr start, void *context)
{
    (void)userdata;
    struct core_modules *modules = context;
    const struct libdw *dw = &modules->walk->dw;
    const char *path = NULL;
    Dwarf_Addr end = start;
    GElf_Addr bias;
    dw->dwfl_module_getelf(module, &bias); /* finds the file */
    dw->dwfl_module_info(module, NULL, NULL, &end, NULL, NULL, &path, NULL);
    modules->unreachable |= dw->dwfl_addrmodule(modules->walk->dwfl, start + (end - start) / 2) != module;
    if (path && path[0] == '/') {
        modules->items = reallocate(modules->items, (modules->count + 1) * sizeof *modules->items);
        modules->items[modules->count].name = strdup(name);
        modules->items[modules->count].path = strdup(path);
        modules->items[modules->count++].start = start;
    }
    return DWARF_CB_OK;
}

/*
 * Reports the modules of a core. libdwfl also reports the core's segments, and loses modules where one segment holds
 * the end of one file and the beginning of the next, as createdump writes them. Then the modules are reported alone.
 */
static bool report_core(struct walk *walk, Elf *elf, const Dwfl_Callbacks *callbacks)
{
    const struct libdw *dw = &walk->dw;
    struct core_modules modules = {.walk = walk};
    dw->dwfl_report_begin(walk->dwfl);
    if (dw->dwfl_core_file_report(walk->dwfl, elf, NULL) < 0 || dw->dwfl_report_end(walk->dwfl, NULL, NULL) != 0)
        return false;
    dw->dwfl_getmodules(walk->dwfl, list_module, &modules, 0);
    bool reported = true;
    if (modules.unreachable && modules.count) {
        dw->dwfl_end(walk->dwfl);
        walk->dwfl = dw->dwfl_begin(callbacks);
        reported = walk->dwfl != NULL;
        if (reported)
            dw->dwfl_report_begin(walk->dwfl);
        for (size_t i = 0; reported && i < modules.count; i++)
            dw->dwfl_report_elf(walk->dwfl, modules.items[i].name, modules.items[i].path, -1, modules.items[i].start,
                                true);
        reported = reported && dw->dwfl_report_end(walk->dwfl, NULL, NULL) == 0;
    }
    for (size_t i = 0; i < modules.count; i++) {
        free(modules.items[i].name);
        free(modules.items[i].path);
    }
    free(modules.items);
    return reported;
}

/* A core's modules and threads. *ret_elf and *ret_fd are the caller's to close, after dwfl_end. */
static bool attach_core(struct walk *walk, const char *core, const Dwfl_Callbacks *callbacks, Elf **ret_elf,
                        int *ret_fd)
{
    elf_version(EV_CURRENT);
    *ret_fd = open(core, O_RDONLY | O_CLOEXEC);
    *ret_elf = *ret_fd >= 0 ? elf_begin(*ret_fd, ELF_C_READ_MMAP, NULL) : NULL;
    if (!*ret_elf) {
        message("%s: %s", core, *ret_fd < 0 ? strerror(errno) : elf_errmsg(-1));
        return false;
    }
    if (!report_core(walk, *ret_elf, callbacks) || walk->dw.dwfl_core_file_attach(walk->dwfl, *ret_elf) < 0) {
        message("%s: cannot read stacks: %s", core, walk->dw.dwfl_errmsg(-1));
        return false;
    }
    return true;
}

static bool attach_process(struct walk *walk, pid_t pid)
{
    const struct libdw *dw = &walk->dw;
    dw->dwfl_report_begin(walk->dwfl);
    int failure = dw->dwfl_linux_proc_report(walk->dwfl, pid);
    if (!failure)
        failure = dw->dwfl_report_end(walk->dwfl, NULL, NULL);
    if (!failure)
        failure = dw->dwfl_linux_proc_attach(walk->dwfl, pid, false);
    if (failure)
        message("process %d: cannot read stacks: %s", pid, failure > 0 ? strerror(failure) : dw->dwfl_errmsg(-1));
    return !failure;
}

bool native_stack_visit(const char *core, pid_t pid, const struct cdacq_options *options,
                        const struct native_stack_visitor *visitor)
{
    static char *debuginfo_path;
    struct walk walk = {.visitor = visitor};
    if (!load_libdw(&walk.dw))
        return false;
    /* libdw asks these servers by itself; it must not without --debuginfod. */
    if (!(options->flags & CDACQ_OPEN_DEBUGINFOD))
        unsetenv("DEBUGINFOD_URLS");
    find_options = options;
    find_libdw = &walk.dw;
    const Dwfl_Callbacks callbacks = {
        .find_elf = find_elf,
        .find_debuginfo = walk.dw.dwfl_standard_find_debuginfo,
        .debuginfo_path = &debuginfo_path,
    };
    walk.dwfl = walk.dw.dwfl_begin(&callbacks);
    Elf *elf = NULL;
    int fd = -1;
    bool attached = walk.dwfl && (core ? attach_core(&walk, core, &callbacks, &elf, &fd) : attach_process(&walk, pid));
    if (attached && walk.dw.dwfl_getthreads(walk.dwfl, visit_thread, &walk) < 0) {
        message("%s: cannot read stacks: %s", core ? core : "process", walk.dw.dwfl_errmsg(-1));
        attached = false;
    }
    if (walk.dwfl)
        walk.dw.dwfl_end(walk.dwfl);
    elf_end(elf);
    if (fd >= 0)
        close(fd);
    return attached;
}
