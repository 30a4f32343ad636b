/*
 * fuzz_core.c: any bytes as a core file: opening, reading at every address that the bytes name, threads, images at
 * every mapping, their symbols and relocated data, what files are known by. No file of the machine is looked at.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "src/files/file_match.h"
#include "target/core.h"
#include "target/image.h"
#include "target/target_process.h"
#include "target/threads.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint8_t sink;

/* A returned span must contain the address and be readable as a whole. */
static void touch(struct target *target, uint64_t address)
{
    struct span span;
    if (!target->ops->memory_at(target, address, &span))
        return;
    if (address < span.begin || address >= span.end || !span.bytes)
        abort();
    sink = span.bytes[0];
    sink = span.bytes[span.end - span.begin - 1];
    sink = span.bytes[address - span.begin];
}

/* Typed reads around an address, across whatever spans are there. */
static void read_around(struct target *target, uint64_t address, bool wide, bool big)
{
    struct reader reader;
    struct window window;
    char *string;
    reader_init(&reader, target, wide ? 8 : 4, big);
    reader_begin(&reader, 1000);
    for (unsigned width = 1; width <= 8; width *= 2)
        read_uint(&reader, address - 3 * width + 1, width);
    reader_begin(&reader, 1000);
    if (reader_window(&reader, address, 300, "window", &window)) {
        sink = window.bytes[0] ^ window.bytes[299];
        window_deinit(&window);
    }
    reader_begin(&reader, 1000);
    if (reader_string(&reader, address, 64, &string))
        free(string);
    reader_status(&reader, NULL);
}

/* Takes the input itself for the file behind a mapping, so that files fill what the core leaves out. */
static void put_file(struct mapped_file *file, const uint8_t *data, size_t size)
{
    if (!file || file->local_path)
        return;
    file->content = (struct file_candidate){.bytes = data, .size = size};
    file_candidate_add_constant(&file->content, 0, size / 2, size >> 3 & FILE_EXTENT_ALWAYS);
    file_candidate_add_constant(&file->content, size / 4, size, FILE_EXTENT_READ_ONLY);
    file->local_path = strdup("/x");
    atomic_store(&file->resolved, true);
}

static void open_image(struct target *target, const struct mapping *mapping)
{
    static const char *const names[] = {"DotNetRuntimeContractDescriptor", "g_dacTable", "a"};
    struct image image;
    if (image_open(target, mapping, &image, NULL) < 0)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        uint64_t address, size;
        uint8_t bytes[40];
        bool from_file;
        if (image_find_symbol(&image, names[i], &address, &size) &&
            image_read_relocated(&image, address, bytes, sizeof bytes, &from_file, NULL) >= 0)
            sink = bytes[0];
    }
}

/* The identity of a file, from as much of its first page as the core holds. */
static void identify(struct target *target, const struct mapped_file *file)
{
    struct file_identity identity = {0};
    identify_mapped_file(target, file, &identity);
    if (identity.build_id_size > sizeof identity.build_id ||
        strnlen(identity.key, sizeof identity.key) == sizeof identity.key ||
        strnlen(identity.text, sizeof identity.text) == sizeof identity.text || !identity.key[0] != !identity.text[0])
        abort();
}

/* There is a thread unless listing failed, or some with FORMAT: others cannot be read. Only the first can have died. */
static void list_threads(struct target *target)
{
    struct threads threads;
    struct cdacq_error error;
    enum cdacq_status status = target_threads(target, &threads, &error);
    if (status < 0 ? !error.message[0] || (threads.count && status != CDACQ_ERR_FORMAT) : !threads.count)
        abort();
    for (size_t i = 0; i < threads.count; i++)
        if ((i && threads.items[i].died) || !memchr(threads.items[i].name, 0, sizeof threads.items[i].name))
            abort();
    threads_deinit(&threads);
}

/* The texts end within their room. */
static void describe(struct target *target)
{
    static struct target_process process;
    process = (struct target_process){0};
    target->ops->process(target, &process);
    if (!memchr(process.name, 0, sizeof process.name) || !memchr(process.program, 0, sizeof process.program) ||
        !memchr(process.arguments, 0, sizeof process.arguments))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    char path[64];
    struct target *target;
    struct cdacq_error error;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    struct file_policy policy = {.pread = size & 8};
    pthread_mutex_init(&policy.lock, NULL);
    policy.no_own_paths = true; /* nothing on this machine is looked at */
    if (core_open(path, size & 8 ? &policy : NULL, size & 1, &target, &error) < 0) {
        if (!error.message[0] || error.status >= 0)
            abort();
        close(fd);
        return 0;
    }
    for (size_t i = 0; i + 8 <= size && i < 4096; i += 4) {
        touch(target, load_u64(data + i, false));
        touch(target, load_u64(data + i, true));
        touch(target, load_u32(data + i, false));
        touch(target, load_u32(data + i, true));
    }
    list_threads(target);
    describe(target);
    for (size_t i = 0; i < target->mapping_count; i++) {
        const struct mapping *mapping = &target->mappings[i];
        if (mapping->begin >= mapping->end || !mapping->path || strlen(mapping->path) > size)
            abort();
        if (i && mapping[-1].begin > mapping->begin)
            abort();
        touch(target, mapping->begin);
        put_file(mapping->file, data, size);
        touch(target, mapping->begin);
        touch(target, mapping->end - 1);
        if (i >= 32)
            continue;
        read_around(target, mapping->begin, size & 2, size & 4);
        read_around(target, mapping->end, size & 2, size & 4);
        open_image(target, mapping);
    }
    unsigned identified = 0;
    for (struct mapped_file *file = target->files; file; file = file->next) {
        if (identified++ < 32)
            identify(target, file);
        file->content.bytes = NULL; /* not its own */
    }
    target_destroy(target);
    close(fd);
    return 0;
}
