/*
 * cmd_object.c: shows objects by their addresses: type, size, and every field with its value, or what an array, a
 * collection or a string contains.
 */
#include <inttypes.h>
#include <stdio.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/read_failures.h"
#include "src/cli/commands/ip_input.h"
#include "src/cli/commands/object_view.h"
#include "util/base.h"

struct object_options {
    struct address_options addresses;
    bool referrers;
};

struct work {
    struct cdacq_target *target;
    struct cdacq_session *session;
    struct output out;
    bool json, all, referrers;
    struct object_heap heap;
    struct cdacq_target *stops; /* --stop: the process, which is stopped for each object; or NULL */
    bool stopped;               /* it cannot be stopped any more */
    bool changes;               /* a process: what is known of its heap is forgotten after each object */
    uint64_t bad;               /* texts that are no addresses */
    uint64_t shown, without_answer, problems;
};

static void put_error(struct work *work, const char *address, const char *why)
{
    work->without_answer++;
    if (work->json)
        object_write_error_json(&work->out, address, why);
    else
        object_write_error_text(&work->out, address, why);
}

static void put_object(struct work *work, uint64_t address)
{
    struct object_view view = {.session = work->session,
                               .out = &work->out,
                               .all = work->all,
                               .fields_left = OBJECT_FIELDS_MAX,
                               .heap = &work->heap,
                               .with_referrers = work->referrers,
                               .object.size = sizeof view.object};
    struct cdacq_error error;
    char text[24];
    enum cdacq_status status = cdacq_session_check_object(work->session, address, &error);
    if (status == CDACQ_OK)
        status = cdacq_session_get_object(work->session, address, &view.object, &error);
    if (status != CDACQ_OK) {
        snprintf(text, sizeof text, "0x%" PRIx64, address);
        put_error(work, text, status < 0 ? error.message : "no object is at this address");
        return;
    }
    if (work->json)
        object_view_write_json(&view);
    else
        object_view_write_text(&view);
    work->shown++;
    work->problems += view.problems;
}

static void take_address(void *context, uint64_t address)
{
    struct work *work = context;
    if (work->stops && !target_stop(work->stops)) {
        work->stopped = true;
        return;
    }
    if (!work->stops)
        cdacq_target_refresh(work->target, NULL); /* all that is shown of an object is of one epoch */
    put_object(work, address);
    target_let_go(work->stops);
    if (work->changes)
        object_heap_deinit(&work->heap);
}

static void take_bad(void *context, uint64_t line, const struct bad_ip *bad)
{
    struct work *work = context;
    char text[64];
    if (++work->bad <= READ_FAILURES_MAX)
        ip_complain(line, bad);
    snprintf(text, sizeof text, "%.*s", (int)MIN(bad->length, sizeof text - 1), bad->text);
    put_error(work, text, bad->problem);
}

static int show_all(const void *given, const struct opened_target *opened)
{
    const struct object_options *asked = given;
    const struct address_options *options = &asked->addresses;
    const struct common_options *common = &options->common;
    struct work work = {.target = opened->target,
                        .session = opened->session,
                        .json = common->json,
                        .all = common->all,
                        .referrers = asked->referrers,
                        .stops = stop_is_wanted(common, opened->name) ? opened->target : NULL,
                        .changes = target_is_pid(opened->name)};
    struct ip_taker taker = {
        .context = &work, .take = take_address, .take_bad = take_bad, .out = &work.out, .stopped = &work.stopped};
    if (!output_open_private_stream(&work.out, common->output))
        return EXIT_FAILED;
    bool ok = ip_feed(options->ips.items, options->ips.count, &taker);
    object_heap_deinit(&work.heap);
    if (!work.shown && work.without_answer)
        message("no address is that of an object");
    ok = output_close(&work.out) && ok;
    ok = ok && !work.stopped && (work.shown || !work.without_answer);
    return !ok ? EXIT_FAILED : work.without_answer || work.problems ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int run(const void *options)
{
    const struct target_use use = {.run = show_all, .flags = CDACQ_OPEN_KEEP, .stops_itself = true};
    return target_run(options, &use);
}

const struct option_row object_rows[] = {
    {"referrers", NULL, "show the objects that refer to each; all of the heap is read for it",
     TO_FLAG(struct object_options, referrers)},
    {0},
};

const struct command command_object = {
    .name = "object",
    .section = SECTION_PROCESS,
    RUNS(run, struct object_options),
    .operands = OPERANDS({TARGET_OPERAND}, {"ADDRESS", OPERAND_ADDRESS, OPTIONAL, .repeats = true, .or_stdin = true,
                                            TO_WORDS(struct object_options, addresses.ips)}),
    .options = OPTIONS(whole_rows, json_rows, output_rows, target_rows, object_rows),
    .summary = "show objects: type, size, every field with its value, what collections contain",
    .details = "ADDRESS is that of an object, in hex. Enums are shown by name, structs with their fields, references\n"
               "with the type of the object. Arrays, List, Queue, Stack, HashSet, Dictionary and\n"
               "ConcurrentDictionary are shown by what they contain.\n",
};
