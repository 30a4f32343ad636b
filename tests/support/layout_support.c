#include "tests/support/layout_support.h"

#include <stdlib.h>

#include "descriptors/descriptor.h"
#include "descriptors/embedded.h"
#include "descriptors/json.h"
#include "mocktarget/mocktarget.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"

void layout_of_net8_x64(struct layout *ret)
{
    struct descriptor descriptor = {0};
    struct cdacq_error error;
    const uint64_t none[256] = {0};
    for (size_t i = 0; i < embedded_descriptor_count; i++) {
        const struct embedded_file *file = &embedded_descriptors[i];
        struct json *root;
        if (strcmp(file->name, "coreclr-8.0-linux-x64.json") != 0)
            continue;
        if (json_parse((const char *)file->data, file->size, file->name, &root, &error) < 0 ||
            descriptor_add(&descriptor, root, file->name, (struct pointer_data){none, ARRAY_SIZE(none), true},
                           MERGE_ADD, &error) < 0)
            abort();
        json_free(root);
    }
    if (layout_bind(&descriptor, 8, 0, ret, &error) < 0)
        abort();
    descriptor_deinit(&descriptor);
}

void layout_of_net11_x64(struct layout *ret)
{
    struct mock *mock = mock_create(&(struct mock_options){.version = MOCK_NET_11});
    struct cdacq_target *target;
    if (!mock)
        abort();
    mock_publish(mock, NULL);
    if (mock_error(mock) || cdacq_target_open_memory(mock_memory(mock), NULL, &target, NULL) < 0)
        abort();
    *ret = target->layout;
    for (unsigned i = 0; i < G_COUNT; i++)
        if (ret->globals[i] > UINT32_MAX && i != G_HashMapValueMask) { /* an address in the mock */
            ret->globals[i] = 0;
            ret->global_present[i] = false;
        }
    cdacq_target_close(target);
    mock_destroy(mock);
}
