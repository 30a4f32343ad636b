#include "src/cli/base/type_sums.h"

#include <inttypes.h>

void type_sum_write_name(struct output *out, const struct type_sum *type)
{
    if (type->name)
        output_note(out, type->name);
    else
        output_printf(out, "? (MethodTable 0x%" PRIx64 ")", type->method_table);
}

void type_sum_write_members(struct json_writer *w, const struct type_sum *type)
{
    json_note(w, "type", type->name);
    json_address(w, "method_table", type->method_table);
    json_number(w, "count", type->sum.count);
    json_number(w, "bytes", type->sum.bytes);
}
