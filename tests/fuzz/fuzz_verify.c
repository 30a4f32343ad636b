/*
 * fuzz_verify.c: any bytes as a jitdump or perf map that is compared with a small process of known addresses: methods
 * that stay and methods that can be released, one of them gone, stubs, an image. The first byte selects the process;
 * the rest is the file. Every record is reported once, in order, and the totals agree.
 */
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "cdacq.h"
#include "mocktarget/mocktarget.h"
#include "src/lookup/opened_session.h"
#include "tests/support/metadata_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Known to make_corpus.py, which names them in its files. */
enum { STAYS = 0x40000000, RELEASED = 0x40100000, IMAGE = 0x40200000, PROCESSES = 4 };

static struct process {
    struct mock *mock;
    struct cdacq_target *target;
} processes[PROCESSES];

/* N.T with static methods Even() and one of an odd name, (string). */
static uint8_t *write_metadata(size_t *ret_size)
{
    static const uint8_t none[] = {0, 0, 1}, string[] = {0, 1, 1, 0x0e};
    struct metadata_writer writer;
    metadata_writer_init(&writer);
    METADATA_ROW(&writer, METADATA_TYPE_DEF, 1, metadata_writer_string(&writer, "T"),
                 metadata_writer_string(&writer, "N"), 0, 1, 1);
    METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0x16, metadata_writer_string(&writer, "Even"),
                 metadata_writer_blob(&writer, none, sizeof none), 1);
    METADATA_ROW(&writer, METADATA_METHOD_DEF, 0, 0, 0x16, metadata_writer_string(&writer, "O\\d\xc3\xa4\x01"),
                 metadata_writer_blob(&writer, string, sizeof string), 1);
    uint8_t *metadata = metadata_writer_finish(&writer, ret_size);
    metadata_writer_deinit(&writer);
    return metadata;
}

/* Seven methods, the last one without a name, and stubs. Returns the start of the one before the stubs. */
static uint64_t fill_heap(struct mock_heap *heap, uint64_t method_descs, uint64_t stride)
{
    static const uint64_t funclets[] = {20, 30};
    uint64_t last = 0;
    for (unsigned i = 0; i < 6; i++)
        last = mock_method(heap, &(struct mock_method){.size = 40,
                                                       .funclets = funclets,
                                                       .funclet_count = i == 2 ? 2 : 0,
                                                       .method_desc = method_descs + i % 2 * stride});
    mock_stub(heap, 6, 64);
    mock_method(heap, &(struct mock_method){.size = 5000, .method_desc = 0x1230});
    return last;
}

static struct process build(unsigned choice)
{
    static const uint64_t hot[] = {64}, cold[] = {32};
    size_t size;
    uint64_t stride;
    CLEANUP_FREE uint8_t *metadata = write_metadata(&size);
    struct mock *mock = mock_create(&(struct mock_options){
        .pointer_size = choice & 1 ? 8 : 4, .big_endian = choice & 2, .version = 1 + choice % 2});
    struct process process = {.mock = mock};
    if (!mock)
        abort();
    uint64_t module = mock_module(
        mock, &(struct mock_module_options){.path = "/mock/a.dll", .metadata = metadata, .metadata_size = size});
    uint64_t method_descs = mock_method_descs(mock, mock_method_table(mock, module, 2), 1, 2, &stride);
    struct mock_heap *stays = mock_heap_create(mock, &(struct mock_heap_options){.begin = STAYS, .size = 0x8000}),
                     *released = mock_heap_create(
                         mock, &(struct mock_heap_options){.begin = RELEASED, .size = 0x4000, .collectible = true});
    struct mock_r2r *image = mock_r2r_create(mock, &(struct mock_r2r_options){.begin = IMAGE,
                                                                              .tables = MOCK_R2R_METHODDEFS,
                                                                              .thunk_size = 32,
                                                                              .metadata = metadata,
                                                                              .metadata_size = size});
    if (mock_error(mock))
        abort();
    fill_heap(stays, method_descs, stride);
    mock_code_free(released, fill_heap(released, method_descs, stride));
    for (uint32_t rid = 1; rid < 3; rid++)
        mock_r2r_method(image, &(struct mock_r2r_method){
                                   .hot = hot, .hot_count = 1, .cold = cold, .cold_count = rid % 2, .rid = rid});
    mock_r2r_finish(image);
    mock_publish(mock, NULL);
    if (mock_error(mock) || cdacq_target_open_memory(mock_memory(mock), NULL, &process.target, NULL) != CDACQ_OK)
        abort();
    return process;
}

static volatile uint64_t sink;

struct tally {
    struct cdacq_verification sum;
    uint64_t offset;
};

static int count(const struct cdacq_comparison *comparison, void *context)
{
    struct tally *tally = context;
    if ((unsigned)comparison->verdict >= CDACQ_VERDICT_COUNT)
        abort();
    tally->sum.counts[comparison->verdict]++;
    if (cdacq_verdict_is_contradiction(comparison->verdict)) {
        tally->sum.contradictions++;
        if (!comparison->detail)
            abort();
    }
    if (comparison->detail && strchr(comparison->detail, '\n'))
        abort();
    if (comparison->verdict == CDACQ_VERDICT_MISSING_FROM_FILE)
        return !comparison->method;
    if (comparison->offset < tally->offset || tally->sum.counts[CDACQ_VERDICT_MISSING_FROM_FILE])
        abort();
    tally->offset = comparison->offset + 1;
    tally->sum.records++;
    if (comparison->verdict == CDACQ_VERDICT_MATCH &&
        (!comparison->method || comparison->method->answer != CDACQ_ANSWER_MANAGED))
        abort();
    for (size_t i = 0; comparison->name && i < comparison->name_length; i++)
        sink += (unsigned char)comparison->name[i]; /* each byte is there */
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char path[64];
    struct tally tally = {0};
    struct cdacq_verification sum = {.size = sizeof sum};
    struct cdacq_error error = {0};
    if (!size)
        return 0;
    if (fd < 0 && (fd = memfd_create("records", MFD_CLOEXEC)) < 0)
        abort();
    struct process *process = &processes[data[0] % PROCESSES];
    if (!process->target)
        *process = build(data[0] % PROCESSES);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ftruncate(fd, 0) < 0 || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)(size - 1))
        abort();
    enum cdacq_status status = cdacq_target_verify(process->target, path, count, &tally, &sum, &error);
    if (status == CDACQ_ERR_FORMAT) {
        if (!error.message[0])
            abort();
        return 0;
    }
    if (status != CDACQ_OK || sum.records != tally.sum.records || sum.contradictions != tally.sum.contradictions ||
        memcmp(sum.counts, tally.sum.counts, sizeof sum.counts) != 0)
        abort();
    return 0;
}
