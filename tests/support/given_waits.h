/*
 * given_waits.h: waits that a test builds by hand, where the files of the command line that it includes after this one
 * would visit those of a graph.
 */
#ifndef CDACQ_TESTS_SUPPORT_GIVEN_WAITS_H
#define CDACQ_TESTS_SUPPORT_GIVEN_WAITS_H

#include "cdacq.h"

static const struct cdacq_wait *given_waits;
static size_t given_count;

static enum cdacq_status visit_given_waits(const struct cdacq_wait_graph *graph,
                                           int (*visit)(const struct cdacq_wait *wait, void *context), void *context,
                                           struct cdacq_error *err)
{
    (void)graph, (void)err;
    for (size_t i = 0; i < given_count; i++)
        (void)visit(&given_waits[i], context);
    return CDACQ_OK;
}

#define cdacq_wait_graph_visit_waits visit_given_waits

#endif
