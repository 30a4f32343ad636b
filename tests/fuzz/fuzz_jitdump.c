/*
 * fuzz_jitdump.c: any bytes as a jitdump. Each record is decoded from an allocation of exactly its bytes, all its lists
 * are walked, and it must begin where the previous one ended. In the first byte, bit 0 requests code, and bit 1 looks
 * up moved functions after every record. The second byte selects the steps in which a followed file grows; it must give
 * the same records as the whole file.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

#include "formats/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WITH_CODE = 1, WITH_PLACES = 2, GROW_MAX = 64 };

static volatile uint64_t sink;

static void use(const void *bytes, uint64_t size)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < size; i++)
        sum += ((const uint8_t *)bytes)[i];
    sink += sum;
}

static void use_string(const char *string, size_t length)
{
    if (memchr(string, '\0', length) || string[length])
        abort();
    use(string, length);
}

static void walk_lists(const struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_entry entry = {.size = sizeof entry};
    struct cdacq_jitdump_function function = {.size = sizeof function};
    struct cdacq_jitdump_inline_call call = {.size = sizeof call};
    struct cdacq_jitdump_range range = {.size = sizeof range};
    struct cdacq_jitdump_line_record line = {.size = sizeof line};
    const char *string;
    size_t length;
    uint64_t count = 0;
    for (uint64_t cursor = 0; cdacq_jitdump_record_next_entry(record, &cursor, &entry, NULL) == CDACQ_OK; count++)
        use_string(entry.name, entry.name_length);
    if (record->kind == CDACQ_JITDUMP_DEBUG_INFO && record->has_fields && !record->error &&
        count != record->as.debug_info.nr_entry)
        abort();
    for (unsigned list = 0; list < 3; list++)
        for (uint64_t cursor = 0; cdacq_jitdump_record_next_string(record, (enum cdacq_jitdump_strings)list, &cursor,
                                                                   &string, &length, NULL) == CDACQ_OK;)
            use_string(string, length);
    for (uint32_t i = 0; cdacq_jitdump_record_get_function(record, i, &function, NULL) == CDACQ_OK; i++)
        sink += function.flags;
    for (uint32_t i = 0; cdacq_jitdump_record_get_inline_call(record, i, &call, NULL) == CDACQ_OK; i++)
        sink += call.depth;
    for (uint32_t i = 0; cdacq_jitdump_record_get_range(record, i, &range, NULL) == CDACQ_OK; i++)
        sink += range.code_size;
    for (uint32_t i = 0; cdacq_jitdump_record_get_line_record(record, i, &line, NULL) == CDACQ_OK; i++)
        sink += line.file_index;
}

static void check(const struct cdacq_jitdump_record *record)
{
    if (record->error && (!record->error[0] || strchr(record->error, '\n')))
        abort();
    if (!record->has_fields && !record->error)
        abort();
    walk_lists(record);
    if (record->kind == CDACQ_JITDUMP_LOAD && record->has_fields) {
        const struct cdacq_jitdump_load *load = &record->as.load;
        if (load->name)
            use_string(load->name, load->name_length);
        else if (!record->error)
            abort();
        if (load->code)
            use(load->code, load->code_size);
        if (load->debug_info >= record->offset || load->unwinding_info >= record->offset)
            abort();
    }
    if (record->kind == CDACQ_JITDUMP_UNWINDING_INFO && record->has_fields && record->as.unwinding_info.unwinding_data)
        use(record->as.unwinding_info.unwinding_data, record->as.unwinding_info.unwind_data_size);
}

/* Runs only the decoder. Returns the number of records, including the header. */
static size_t decode_all(const uint8_t *data, size_t size)
{
    struct cdacq_jitdump_record header, record;
    struct cdacq_error error;
    if (jitdump_decode_header(data, size, &header, &error) != CDACQ_OK || header.total_size > size)
        return 0;
    size_t count = 1;
    for (uint64_t offset = header.total_size; range_fits(offset, JITDUMP_PREFIX_SIZE, size);
         offset += record.total_size, count++) {
        bool big = header.as.header.big_endian;
        jitdump_decode_prefix(data + offset, big, offset, &record);
        if (record.total_size < JITDUMP_PREFIX_SIZE || !range_fits(offset, record.total_size, size))
            break;
        uint8_t *copy = malloc((size_t)record.total_size);
        if (!copy)
            abort();
        memcpy(copy, data + offset, (size_t)record.total_size);
        record.error =
            jitdump_decode(copy, (size_t)record.total_size, big, &record, &error) == CDACQ_OK ? NULL : error.message;
        check(&record);
        free(copy);
    }
    return count;
}

static int count_place(const struct cdacq_jitdump_place *place, void *context)
{
    (void)context;
    return place->load == 0;
}

/* What the reader has of the file at present, from `offset` on, which is moved. */
static size_t read_present(struct cdacq_jitdump *jitdump, unsigned options, uint64_t *offset)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_error error = {0};
    enum cdacq_status status;
    size_t count = 0;
    while ((status = cdacq_jitdump_next(jitdump, &record, &error)) == CDACQ_OK) {
        if (record.offset != *offset || (record.kind == CDACQ_JITDUMP_HEADER && record.as.header.restart))
            abort();
        check(&record);
        *offset += record.total_size;
        count++;
        if (options & WITH_PLACES && cdacq_jitdump_visit_places(jitdump, count_place, NULL, NULL) != CDACQ_OK)
            abort();
    }
    if (status < 0 && !error.message[0])
        abort();
    return count;
}

static size_t read_all(int fd, const uint8_t *data, size_t size, unsigned options, size_t piece)
{
    struct cdacq_jitdump *jitdump;
    char path[64];
    unsigned flags = (options & WITH_CODE ? CDACQ_JITDUMP_CODE : 0u) | (piece ? CDACQ_JITDUMP_FOLLOW : 0u);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ftruncate(fd, 0) < 0 || (!piece && pwrite(fd, data, size, 0) != (ssize_t)size) ||
        cdacq_jitdump_open(path, flags, &jitdump, NULL) != CDACQ_OK)
        abort();
    uint64_t offset = 0;
    size_t count = piece ? 0 : read_present(jitdump, options, &offset);
    for (size_t done = 0; piece && done < size; done += piece) {
        size_t n = MIN(piece, size - done);
        if (pwrite(fd, data + done, n, (off_t)done) != (ssize_t)n)
            abort();
        count += read_present(jitdump, options, &offset);
    }
    cdacq_jitdump_close(jitdump);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (size < 2)
        return 0;
    if (fd < 0 && (fd = memfd_create("jitdump", MFD_CLOEXEC)) < 0)
        abort();
    unsigned options = data[0];
    size_t piece = MAX((size_t)data[1] + 1, size / GROW_MAX + 1);
    data += 2;
    size -= 2;
    size_t expected = decode_all(data, size);
    if (read_all(fd, data, size, options, 0) != expected || read_all(fd, data, size, options, piece) != expected)
        abort();
    return 0;
}
