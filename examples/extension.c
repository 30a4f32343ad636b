/*
 * extension CORE [IP...]: a small debugger extension. A debugger has the target's memory and its list of modules; an
 * extension reaches both through the debugger's functions. The first half of this file is just enough of a debugger to
 * show a core. The second half uses libcdacq and does not depend on cores: it needs only debugger_read, the modules and
 * the machine, which lldb, gdb and others offer.
 *
 * Prints the method, unwind info, GC info and exception clauses of each IP, or the code heaps if there is none. It
 * compiles as C and C++ against an installed copy:
 *     cc extension.c $(pkg-config --cflags --libs libcdacq)
 */
#include <cdacq.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The debugger: a core of this machine's class and byte order ---- */

enum { SEGMENTS_MAX = 65536, NOTES_MAX = 64 << 20 };

struct debugger {
    int fd;
    Elf64_Ehdr header;
    Elf64_Phdr *segments; /* header.e_phnum of them */
    char *notes;          /* the segment that holds NT_FILE; the modules' paths point into it */
    struct cdacq_mapping *modules;
    size_t module_count;
};

/* Every debugger has such a function: it copies memory and returns how much of it there was. */
static size_t debugger_read(uint64_t address, void *buffer, size_t size, void *context)
{
    const struct debugger *debugger = (const struct debugger *)context;
    for (unsigned i = 0; i < debugger->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &debugger->segments[i];
        if (segment->p_type != PT_LOAD || address < segment->p_vaddr || address - segment->p_vaddr >= segment->p_filesz)
            continue;
        uint64_t offset = address - segment->p_vaddr, left = segment->p_filesz - offset;
        ssize_t n = pread(debugger->fd, buffer, size < left ? size : (size_t)left, (off_t)(segment->p_offset + offset));
        size_t done = n > 0 ? (size_t)n : 0;
        /* The rest may be in the next segment. */
        return done && done == left && done < size
                   ? done + debugger_read(address + done, (char *)buffer + done, size - done, context)
                   : done;
    }
    return 0;
}

/* NT_FILE: count, page size, {begin, end, page} of each, then their paths. */
static void list_modules(struct debugger *debugger, const char *note, size_t size)
{
    const uint64_t *words = (const uint64_t *)(const void *)note;
    if (size < 16 || words[0] > (size - 16) / 24)
        return;
    const char *path = note + 16 + words[0] * 24, *end = note + size;
    debugger->modules = (struct cdacq_mapping *)calloc((size_t)words[0] + 1, sizeof *debugger->modules);
    for (uint64_t i = 0; debugger->modules && i < words[0]; i++) {
        size_t length = strnlen(path, (size_t)(end - path));
        if (path + length == end)
            return;
        struct cdacq_mapping *module = &debugger->modules[debugger->module_count++];
        module->size = sizeof *module;
        module->begin = words[2 + 3 * i];
        module->end = words[3 + 3 * i];
        module->file_offset = words[4 + 3 * i] * words[1];
        module->path = path;
        path += length + 1;
    }
}

static void read_notes(struct debugger *debugger, const Elf64_Phdr *segment)
{
    size_t size = segment->p_filesz < NOTES_MAX ? (size_t)segment->p_filesz : 0;
    char *notes = (char *)malloc(size + 1);
    if (!notes || pread(debugger->fd, notes, size, (off_t)segment->p_offset) != (ssize_t)size)
        size = 0;
    for (size_t at = 0; size - at >= sizeof(Elf64_Nhdr);) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        size_t desc = at + sizeof note + (((size_t)note.n_namesz + 3) & ~(size_t)3);
        size_t next = desc + (((size_t)note.n_descsz + 3) & ~(size_t)3);
        if (next > size)
            break;
        if (note.n_type == NT_FILE && !debugger->modules) {
            memmove(notes, notes + desc, note.n_descsz); /* aligns it; no other note is needed */
            debugger->notes = notes;
            list_modules(debugger, notes, note.n_descsz);
            return;
        }
        at = next;
    }
    free(notes);
}

static int debugger_open(struct debugger *debugger, const char *path)
{
    memset(debugger, 0, sizeof *debugger);
    debugger->fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf64_Ehdr *header = &debugger->header;
    if (debugger->fd < 0 || pread(debugger->fd, header, sizeof *header, 0) != (ssize_t)sizeof *header ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_type != ET_CORE)
        return 0;
    size_t size = header->e_phnum * sizeof *debugger->segments;
    debugger->segments = (Elf64_Phdr *)malloc(size + 1);
    if (!debugger->segments || pread(debugger->fd, debugger->segments, size, (off_t)header->e_phoff) != (ssize_t)size)
        return 0;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (debugger->segments[i].p_type == PT_NOTE && !debugger->notes)
            read_notes(debugger, &debugger->segments[i]);
    return 1;
}

static void debugger_close(struct debugger *debugger)
{
    if (debugger->fd >= 0)
        close(debugger->fd);
    free(debugger->segments);
    free(debugger->notes);
    free(debugger->modules);
}

/* Debuggers have caches of symbol files; this one takes a file from the path that the target used, if it exists. */
static bool debugger_find_file(const struct cdacq_need *file, char *path, size_t size, void *context)
{
    struct stat st;
    (void)context;
    return stat(file->path, &st) == 0 && snprintf(path, size, "%s", file->path) < (int)size;
}

/* ---- The extension ---- */

static int print_clause(const struct cdacq_exception_clause *clause, void *context)
{
    static const char *const kinds[] = {"typed", "filter", "finally", "fault"};
    ++*(unsigned *)context;
    printf("  clause        %s: try [%#" PRIx32 ", %#" PRIx32 "), handler [%#" PRIx32 ", %#" PRIx32 ")",
           kinds[clause->kind], clause->try_start, clause->try_end, clause->handler_start, clause->handler_end);
    if (clause->kind == CDACQ_CLAUSE_TYPED)
        printf(", class token %#" PRIx32, clause->class_token);
    printf("%s\n", clause->duplicated ? ", duplicated" : "");
    return 0;
}

/* Prints one method. A part that the core lacks is reported, and the rest is printed. */
static int print_method(struct cdacq_session *session, uint64_t ip)
{
    struct cdacq_error error;
    struct cdacq_method method;
    struct cdacq_block block;
    method.size = sizeof method;
    enum cdacq_status status = cdacq_session_method_at(session, ip, &method, &error);
    if (status != CDACQ_OK) {
        printf("%#" PRIx64 "  %s\n", ip, status < 0 ? error.message : cdacq_code_kind_text(method.kind));
        return status < 0;
    }
    printf("%#" PRIx64 "  %s +%#" PRIx64 " [%s]\n", ip, method.name ? method.name : method.error, method.offset,
           cdacq_code_kind_text(method.kind));
    printf("  code          [%#" PRIx64 ", %#" PRIx64 ")\n", method.code_start, method.code_start + method.code_size);
    if (cdacq_session_code_block_at(session, ip, &block, &error) != CDACQ_OK)
        return 1;
    uint64_t address;
    uint32_t version;
    bool is_funclet;
    if (cdacq_block_get_unwind_info(&block, session, &address, &error) == CDACQ_OK)
        printf("  unwind info   %#" PRIx64 ", relative to %#" PRIx64 "\n", address,
               cdacq_block_get_unwind_info_base_address(&block));
    else
        printf("  unwind info   %s\n", error.message);
    if (cdacq_block_is_funclet(&block, session, &is_funclet, &error) == CDACQ_OK)
        printf("  funclet       %s\n", is_funclet ? "yes" : "no");
    if (cdacq_block_get_gc_info(&block, session, &address, &version, &error) == CDACQ_OK)
        printf("  GC info       %#" PRIx64 ", version %" PRIu32 "\n", address, version);
    else
        printf("  GC info       %s\n", error.message);
    unsigned clauses = 0;
    if (cdacq_block_visit_exception_clauses(&block, session, print_clause, &clauses, &error) < 0)
        printf("  clause        %s\n", error.message);
    else if (!clauses)
        printf("  clause        none\n");
    return 0;
}

static int print_heap(const struct cdacq_code_heap_info *heap, void *context)
{
    static const char *const types[] = {"unknown", "loader", "host"};
    (void)context;
    printf("heap %#" PRIx64 "  code [%#" PRIx64 ", %#" PRIx64 ")  %s\n", heap->heap, heap->begin, heap->end,
           types[heap->type]);
    return 0;
}

int main(int argc, char **argv)
{
    struct debugger debugger;
    struct cdacq_memory memory;
    struct cdacq_options options;
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    int failures = 0;

    if (argc < 2 || !debugger_open(&debugger, argv[1])) {
        fprintf(stderr, "usage: %s CORE [IP...], a 64-bit core\n", argv[0]);
        return 64;
    }
    memset(&memory, 0, sizeof memory);
    memory.size = sizeof memory;
    memory.context = &debugger;
    memory.read = debugger_read;
    memory.mappings = debugger.modules;
    memory.mapping_count = debugger.module_count;
    memory.elf_machine = debugger.header.e_machine;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.find_file = debugger_find_file;
    if (cdacq_target_open_memory(&memory, &options, &target, &error) < 0 ||
        cdacq_session_create(target, &session, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        failures = 2;
    }
    for (int i = 2; session && i < argc; i++)
        failures |= print_method(session, strtoull(argv[i], NULL, 16));
    if (session && argc == 2 &&
        cdacq_session_visit_code_heaps(session, CDACQ_CODE_JITTED, print_heap, NULL, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        failures = 1;
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    debugger_close(&debugger);
    return failures;
}
