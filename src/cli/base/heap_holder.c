#include "src/cli/base/heap_holder.h"

#include <inttypes.h>
#include <stdlib.h>

#include "util/base.h"

static void write_holder(const struct heap_holder *holder, struct output *out)
{
    const struct heap_holder_hop *last = &holder->hops[holder->hop_count - 1];
    output_printf(out, "%14" PRIu64 " bytes (%u%%) in %" PRIu64 " object%s", holder->bytes, holder->percent,
                  holder->count, plural(holder->count));
    if (holder->most)
        output_note_between(out, ", mostly ", holder->most, "");
    output_note_between(out, "\n               below ", holder->root, "\n");
    output_printf(out, "               at 0x%016" PRIx64 " ", last->address);
    output_note(out, last->type ? last->type : "?");
    for (size_t i = 1; i < holder->hop_count; i++)
        output_note_between(out, i == 1 ? " (by " : ", ", holder->hops[i].by, "");
    output_literal(out, holder->hop_count > 1 ? ")\n" : "\n");
}

void heap_holders_write_text(const struct heap_holders *holders, struct output *out)
{
    for (unsigned i = 0; i < holders->count; i++)
        write_holder(&holders->items[i], out);
}

void heap_root_write_json(struct json_writer *w, enum cdacq_root_kind kind, const char *text)
{
    json_begin_object(w, "root");
    json_string(w, "kind", cdacq_root_kind_text(kind));
    json_note(w, "text", text);
    json_end_object(w);
}

void heap_hop_write_json(struct json_writer *w, uint64_t address, const char *type, const char *by)
{
    json_begin_object(w, NULL);
    json_address(w, "address", address);
    json_note(w, "type", type);
    json_note(w, "by", by);
    json_end_object(w);
}

void heap_holders_write_json(const struct heap_holders *holders, struct json_writer *w)
{
    json_begin_array(w, "holders");
    for (unsigned i = 0; i < holders->count; i++) {
        const struct heap_holder *holder = &holders->items[i];
        json_begin_object(w, NULL);
        heap_root_write_json(w, holder->kind, holder->root);
        json_begin_array(w, "path");
        for (size_t n = 0; n < holder->hop_count; n++)
            heap_hop_write_json(w, holder->hops[n].address, holder->hops[n].type, holder->hops[n].by);
        json_end_array(w);
        json_number(w, "objects", holder->count);
        json_number(w, "bytes", holder->bytes);
        json_number(w, "percent", holder->percent);
        json_note(w, "most", holder->most);
        json_end_object(w);
    }
    json_end_array(w);
}

void heap_holders_deinit(struct heap_holders *holders)
{
    for (unsigned i = 0; i < holders->count; i++) {
        struct heap_holder *holder = &holders->items[i];
        for (size_t n = 0; n < holder->hop_count; n++) {
            free(holder->hops[n].type);
            free(holder->hops[n].by);
        }
        free(holder->root);
        free(holder->most);
    }
    *holders = (struct heap_holders){0};
}
