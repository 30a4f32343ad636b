/*
 * mock_cores DIRECTORY: writes a core of a mock process for each machine whose processes the library reads, of both
 * byte orders where they exist. tests/hosts/compare.py has them read on two machines.
 */
#include <cdacq.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "mocktarget/mocktarget.h"

enum { METHODS = 40 };

static const struct {
    const char *name;
    uint16_t machine;
    unsigned pointer_size;
    bool big;
} machines[] = {
    {"x64", EM_X86_64, 8, false}, {"arm64", EM_AARCH64, 8, false}, {"arm", EM_ARM, 4, false},
    {"x86", EM_386, 4, false},    {"s390x", EM_S390, 8, true},     {"big-arm", EM_ARM, 4, true},
};

static struct mock *make(unsigned i)
{
    struct mock *mock = mock_create(&(struct mock_options){
        .machine = machines[i].machine,
        .pointer_size = machines[i].pointer_size,
        .big_endian = machines[i].big,
        .seed = 7 + i,
    });
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x20000});
    char name[32];
    for (unsigned k = 0; k < METHODS; k++) {
        uint64_t funclet = 24;
        struct mock_clause clause = {
            .try_start = 10, .try_end = 40, .handler_start = 100, .handler_end = 124, .what = 0x01000002};
        snprintf(name, sizeof name, "Emitted%u", k);
        mock_method(heap, &(struct mock_method){
                              .size = 100 + 16 * k,
                              .funclets = &funclet,
                              .funclet_count = k % 2,
                              .clauses = &clause,
                              .clause_count = k % 2,
                              .method_desc = mock_dynamic_method_desc(mock, name),
                          });
    }
    mock_publish(mock, NULL);
    return mock;
}

int main(int argc, char **argv)
{
    struct cdacq_error error = {0};
    char path[4096];
    for (unsigned i = 0; argc == 2 && i < sizeof machines / sizeof *machines; i++) {
        struct mock *mock = make(i);
        snprintf(path, sizeof path, "%s/%s.core", argv[1], machines[i].name);
        if (mock_error(mock) || !mock_write_core(mock, path, &error)) {
            fprintf(stderr, "%s: %s\n", machines[i].name, mock_error(mock) ? mock_error(mock) : error.message);
            return EXIT_FAILURE;
        }
        mock_destroy(mock);
    }
    return argc == 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
