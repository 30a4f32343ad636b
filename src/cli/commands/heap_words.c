#include "src/cli/commands/heap_words.h"

#include <stdio.h>
#include <string.h>

#include "util/base.h"
#include "util/text.h"

const char *heap_word_kind_text(enum heap_word_kind kind)
{
    static const char *const texts[] = {"none", "timer", "event", "async"};
    return texts[kind];
}

static const char *type_name_of(struct heap_graph *graph, uint32_t object)
{
    const char *name = object == GRAPH_NONE ? NULL : heap_graph_type_name(graph, graph->type_of.items[object]);
    return name ? name : "";
}

/* ---- Timers ----------------------------------------------------------------------------------------------------- */

/* The timers of a queue are a list: those on the way to another one say nothing. */
static bool is_timer(struct heap_graph *graph, const struct heap_step *step)
{
    static const char name[] = "System.Threading.TimerQueueTimer";
    return strcmp(type_name_of(graph, step->object), name) == 0 && strcmp(type_name_of(graph, step->next), name) != 0;
}

/* ---- Async methods ---------------------------------------------------------------------------------------------- */

/* The last type argument in the name of a type: "C" of "A`2[B,C]". NULL: there is none. */
static const char *last_argument(const char *name)
{
    const char *found = NULL;
    unsigned depth = 0;
    for (const char *p = name; *p; p++) {
        if (*p == '[' && !depth++)
            found = p + 1;
        else if (*p == ',' && depth == 1)
            found = p + 1;
        else if (*p == ']' && depth)
            depth--;
    }
    return found;
}

/*
 * The method of a state machine, whose name C# makes of it: "Ns.Type+<Method>d__3", with "`1[..]" if it is generic.
 * False: it is not such a name.
 */
static bool form_method(const char *machine, char *ret, size_t size)
{
    const char *end = machine + strcspn(machine, "[,]"), *name = NULL, *close = NULL;
    for (const char *p = machine; p + 1 < end; p++)
        if (p[0] == '+' && p[1] == '<')
            name = p + 2;
    for (const char *p = name; name && p < end; p++)
        if (*p == '>')
            close = p; /* the last: "<<Main>b__0>d" is of a lambda expression */
    if (!close || close == name)
        return false;
    snprintf(ret, size, "async method %.*s.%.*s", (int)MIN(name - 2 - machine, (ptrdiff_t)INT16_MAX), machine,
             (int)MIN(close - name, (ptrdiff_t)INT16_MAX), name);
    return true;
}

/* A box continues an async method that waits; so does a Continuation of .NET 11, whose type does not name it. */
static bool is_async(struct heap_graph *graph, const struct heap_step *step, struct heap_word *ret)
{
    const char *name = type_name_of(graph, step->object), *machine;
    if (string_begins_with(name, "System.Runtime.CompilerServices.") && strstr(name, "StateMachineBox`1[")) {
        machine = last_argument(name);
        if (!machine || !form_method(machine, ret->text, sizeof ret->text))
            snprintf(ret->text, sizeof ret->text, "async method");
        return true;
    }
    if (!string_begins_with(name, "Continuation_") && strcmp(name, "System.Runtime.CompilerServices.Continuation") != 0)
        return false;
    snprintf(ret->text, sizeof ret->text, "async method");
    return true;
}

/* ---- Events ----------------------------------------------------------------------------------------------------- */

/* A field-like event of C# keeps its delegates in a field of its name. */
static bool is_event(struct heap_graph *graph, const struct heap_step *step, struct heap_word *ret)
{
    const char *field = step->by, *event;
    uint64_t method_table = 0;
    if (field && step->holder != GRAPH_NONE) {
        method_table = graph->types.items[graph->type_of.items[step->holder]].method_table;
    } else if (step->root && (step->root->kind == CDACQ_ROOT_STATIC || step->root->kind == CDACQ_ROOT_THREAD_STATIC)) {
        const char *name, *dot = NULL;
        method_table = step->root->type;
        if (method_table &&
            cdacq_session_get_static_name(graph->session, method_table, step->root->token, &name, NULL) == CDACQ_OK)
            dot = strrchr(name, '.');
        field = dot ? dot + 1 : NULL;
    }
    if (!method_table || !field || strpbrk(field, ".[") ||
        cdacq_session_get_event_name(graph->session, method_table, field, &event, NULL) != CDACQ_OK)
        return false;
    snprintf(ret->text, sizeof ret->text, "event %s", event);
    return true;
}

void heap_word_of(struct heap_graph *graph, const struct heap_step *step, struct heap_word *ret)
{
    ret->kind = HEAP_WORD_NONE;
    if (is_timer(graph, step)) {
        ret->kind = HEAP_WORD_TIMER;
        snprintf(ret->text, sizeof ret->text, "a timer");
    } else if (is_async(graph, step, ret)) {
        ret->kind = HEAP_WORD_ASYNC;
    } else if (is_event(graph, step, ret)) {
        ret->kind = HEAP_WORD_EVENT;
    }
}
