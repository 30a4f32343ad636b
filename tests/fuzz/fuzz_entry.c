/*
 * fuzz_entry.c: a small process with precodes of every kind, an interpreted method and a range list, in whose
 * structures the input overwrites bytes; then every entry point and every address is asked about. The first byte
 * chooses width, byte order, version of PrecodeStubs and layout; each further three are a place and a value.
 */
#include <stdlib.h>

#include "mocktarget/mocktarget.h"
#include "src/api/handles.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENTRY_MAX = 16, PLACE_MAX = 32 };

struct scene {
    struct mock *mock;
    uint64_t entries[ENTRY_MAX];
    size_t entry_count;
    struct {
        uint64_t address, size;
    } places[PLACE_MAX];
    size_t place_count;
};

static void add_place(struct scene *scene, uint64_t address, uint64_t size)
{
    if (scene->place_count < PLACE_MAX) {
        scene->places[scene->place_count].address = address;
        scene->places[scene->place_count++].size = size;
    }
}

static void add_object(struct scene *scene, uint64_t address, const char *type)
{
    add_place(scene, address, mock_size_of(scene->mock, type));
}

static void add_entry(struct scene *scene, uint64_t entry)
{
    if (scene->entry_count < ENTRY_MAX)
        scene->entries[scene->entry_count++] = entry;
}

static void add_precodes(struct scene *scene, unsigned version)
{
    struct mock *mock = scene->mock;
    struct mock_precodes *stubs = mock_precodes_create(mock, false, 1, false);
    struct mock_precodes *fixups = mock_precodes_create(mock, true, 1, true);
    for (enum mock_precode kind = 0; kind < MOCK_PRECODE_COUNT; kind++) {
        if (version == 1 && kind == MOCK_PRECODE_THIS_PTR_RET_BUF)
            continue;
        uint64_t entry = mock_precode(kind == MOCK_PRECODE_FIXUP ? fixups : stubs, kind, 0x1000 + 8 * (uint64_t)kind);
        uint64_t data = mock_precode_data(mock, entry);
        add_entry(scene, entry);
        add_place(scene, entry & ~UINT64_C(3), mock_precode_size(mock));
        add_place(scene, data, mock_precode_size(mock));
        if (kind == MOCK_PRECODE_INTERPRETER)
            add_object(scene, mock_get(mock, data, "InterpreterPrecodeData.ByteCodeAddr"), "InterpByteCodeStart");
    }
    add_object(scene, stubs->section, "RangeSection");
    add_object(scene, fixups->list, "CodeRangeMapRangeList");
}

static void add_interpreter(struct scene *scene)
{
    struct mock *mock = scene->mock;
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x2000, .interpreter = true});
    uint64_t start = mock_method(heap, &(struct mock_method){.size = 90, .method_desc = 0x2000});
    add_entry(scene, start);
    add_entry(scene, mock_stub(heap, 1, 40));
    uint64_t header = mock_error(mock) ? 0 : mock_method_header(heap, start);
    add_object(scene, header, "InterpreterRealCodeHeader");
    add_place(scene, mock_get(mock, header, "InterpreterRealCodeHeader.GCInfo"), 8);
    add_object(scene, heap->section, "RangeSection");
    add_object(scene, heap->node, "CodeHeapListNode");
    add_place(scene, start - 8, 16);
}

static struct scene build(uint8_t choice)
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
    struct scene scene = {.mock = mock_create(&options)};
    if (!scene.mock)
        abort();
    add_precodes(&scene, version);
    add_interpreter(&scene);
    mock_publish(scene.mock, NULL);
    if (mock_error(scene.mock))
        abort();
    return scene;
}

/* A byte of the places, counted through. */
static void overwrite(struct scene *scene, unsigned where, uint8_t value)
{
    uint64_t total = 0, at;
    for (size_t i = 0; i < scene->place_count; i++)
        total += scene->places[i].size;
    at = where % total;
    for (size_t i = 0; i < scene->place_count; at -= scene->places[i++].size)
        if (at < scene->places[i].size) {
            mock_write(scene->mock, scene->places[i].address + at, &value, 1);
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
    struct scene scene = build(size ? data[0] : 0);
    uint64_t descriptor;
    if (cdacq_target_open_memory(mock_memory(scene.mock), NULL, &target, NULL) < 0 ||
        cdacq_session_create(target, &session, NULL) < 0)
        abort(); /* nothing of it is damaged yet */
    descriptor = target->layout.globals[G_PlatformMetadata];
    add_object(&scene, descriptor, "PlatformMetadata");
    for (size_t i = 1; i + 3 <= size && i < 300; i += 3)
        overwrite(&scene, load_u16(data + i, false), data[i + 2]);
    if (mock_error(scene.mock))
        abort();
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < scene.entry_count; i++)
            for (uint64_t offset = 0; offset < 24; offset += 4)
                ask(session, scene.entries[i] + offset);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    mock_destroy(scene.mock);
    return 0;
}
