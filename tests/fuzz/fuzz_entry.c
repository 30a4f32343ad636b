/*
 * fuzz_entry.c: a small process with precodes of every kind, an interpreted method and a range list, in whose
 * structures the input overwrites bytes; then every entry point and every address is asked about. The first byte
 * selects width, byte order, version of PrecodeStubs and layout; each further three bytes are an offset and a value.
 */
#include <stdlib.h>

#include "mocktarget/mocktarget.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENTRY_MAX = 16, PLACE_MAX = 32 };

struct sample {
    struct mock *mock;
    uint64_t entries[ENTRY_MAX];
    size_t entry_count;
    struct {
        uint64_t address, size;
    } places[PLACE_MAX];
    size_t place_count;
};

static void add_place(struct sample *sample, uint64_t address, uint64_t size)
{
    if (sample->place_count < PLACE_MAX) {
        sample->places[sample->place_count].address = address;
        sample->places[sample->place_count++].size = size;
    }
}

static void add_object(struct sample *sample, uint64_t address, const char *type)
{
    add_place(sample, address, mock_size_of(sample->mock, type));
}

static void add_entry(struct sample *sample, uint64_t entry)
{
    if (sample->entry_count < ENTRY_MAX)
        sample->entries[sample->entry_count++] = entry;
}

static void add_precodes(struct sample *sample, unsigned version)
{
    struct mock *mock = sample->mock;
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
    struct mock_precodes *fixups = mock_precodes_create(mock, true, 1, true);
    for (enum mock_precode kind = 0; kind < MOCK_PRECODE_COUNT; kind++) {
        if (version == 1 && kind == MOCK_PRECODE_THIS_PTR_RET_BUF)
            continue;
        uint64_t entry = mock_precode(kind == MOCK_PRECODE_FIXUP ? fixups : stubs, kind, 0x1000 + 8 * (uint64_t)kind);
        uint64_t data = mock_precode_data(mock, entry);
        add_entry(sample, entry);
        add_place(sample, entry & ~UINT64_C(3), mock_precode_size(mock));
        add_place(sample, data, mock_precode_size(mock));
        if (kind == MOCK_PRECODE_INTERPRETER)
            add_object(sample, mock_get(mock, data, "InterpreterPrecodeData.ByteCodeAddr"), "InterpByteCodeStart");
    }
    add_object(sample, stubs->section, "RangeSection");
    add_object(sample, fixups->list, "CodeRangeMapRangeList");
}

static void add_interpreter(struct sample *sample)
{
    struct mock *mock = sample->mock;
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000, .interpreter = true});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x2000});
    add_entry(sample, start);
    add_entry(sample, mock_stub(heap, 1, 40));
    uint64_t header = mock_error(mock) ? 0 : mock_method_header(heap, start);
    add_object(sample, header, "InterpreterRealCodeHeader");
    add_place(sample, mock_get(mock, header, "InterpreterRealCodeHeader.GCInfo"), 8);
    add_object(sample, heap->section, "RangeSection");
    add_object(sample, heap->node, "CodeHeapListNode");
    add_place(sample, start - 8, 16);
}

static struct sample build(uint8_t choice)
{
    unsigned version = 1 + choice / 4 % 3;
    struct mock_options options = {
        .pointer_size = choice & 1 ? 8 : 4,
        .big_endian = choice & 2,
        .precode_version = version,
        .seed = choice / 12,
        .unwind = MOCK_UNWIND_HEADER,
        .code_pointer_flags = choice % 5 == 1 ? (choice & 1 ? 2 : 1) : 0,
    };
    struct sample sample = {.mock = mock_create(&options)};
    if (!sample.mock)
        abort();
    add_precodes(&sample, version);
    add_interpreter(&sample);
    mock_publish(sample.mock, NULL);
    if (mock_error(sample.mock))
        abort();
    return sample;
}

/* The address of a byte, by its number among all spans. */
static void overwrite(struct sample *sample, unsigned where, uint8_t value)
{
    uint64_t total = 0, at;
    for (size_t i = 0; i < sample->place_count; i++)
        total += sample->places[i].size;
    at = where % total;
    for (size_t i = 0; i < sample->place_count; at -= sample->places[i++].size)
        if (at < sample->places[i].size) {
            mock_write(sample->mock, sample->places[i].address + at, &value, 1);
            return;
        }
}

/* An answer is untouched unless there is one, and a failure says why. */
static void ask(struct cdacq_session *session, uint64_t entry)
{
    struct cdacq_error error = {0};
    struct cdacq_method method = {.size = sizeof method};
    uint64_t method_desc = 0;
    enum cdacq_status status = cdacq_session_non_virtual_entry_to_method_desc(session, entry, &method_desc, &error);
    if ((status == CDACQ_OK) != (method_desc != 0) || (status < 0 && !error.message[0]))
        abort();
    status = cdacq_session_method_at(session, entry, &method, &error);
    if (status == CDACQ_OK && method.answer != CDACQ_ANSWER_MANAGED)
        abort();
    cdacq_session_methods_at(session, &entry, 1, &method, NULL);
    if (method.ip != entry)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct sample sample = build(size ? data[0] : 0);
    uint64_t descriptor;
    if (cdacq_target_open_memory(mock_memory(sample.mock), NULL, &target, NULL) < 0 ||
        cdacq_session_create(target, &session, NULL) < 0)
        abort(); /* nothing of it is damaged yet */
    descriptor = target->layout.globals[G_PlatformMetadata];
    add_object(&sample, descriptor, "PlatformMetadata");
    for (size_t i = 1; i + 3 <= size && i < 300; i += 3)
        overwrite(&sample, load_u16(data + i, false), data[i + 2]);
    if (mock_error(sample.mock))
        abort();
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sample.entry_count; i++)
            for (uint64_t offset = 0; offset < 24; offset += 4)
                ask(session, sample.entries[i] + offset);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(sample.mock);
    return 0;
}
