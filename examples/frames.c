/*
 * frames CORE: the frames of every thread. A program that has a thread's registers itself, as a debugger does, passes
 * them instead of NULL. Build it against an installed copy with
 *     cc frames.c $(pkg-config --cflags --libs libcdacq)
 */
#include <cdacq.h>
#include <inttypes.h>
#include <stdio.h>

static int show_frame(const struct cdacq_frame *frame, void *context)
{
    const char *mark = frame->by == CDACQ_FRAME_BY_GUESS ? "?" : "";
    (void)context;
    if (frame->method && frame->method->name)
        printf("  #%u%s %s +%#" PRIx64 "\n", frame->index, mark, frame->method->name, frame->method->offset);
    else
        printf("  #%u%s %s (%s+%#" PRIx64 ")\n", frame->index, mark, frame->symbol ? frame->symbol : "-",
               frame->module ? frame->module : "-", frame->module_offset);
    return 0;
}

static int show_thread(const struct cdacq_thread *thread, void *context)
{
    struct cdacq_error error;
    printf("thread %d%s\n", thread->tid, thread->died ? " (died)" : "");
    if (cdacq_session_visit_frames(context, thread, NULL, 0, show_frame, NULL, &error) < 0)
        printf("  ... %s\n", error.message);
    return 0;
}

int main(int argc, char **argv)
{
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;
    int exit_code = 0;
    if (argc != 2) {
        printf("cdacq %s\nusage: %s CORE\n", cdacq_version(), argv[0]);
        return argc == 1 ? 0 : 64;
    }
    if (cdacq_target_open_core(argv[1], NULL, &target, &error) < 0 ||
        cdacq_session_create(target, &session, &error) < 0 ||
        cdacq_session_visit_threads(session, show_thread, session, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        exit_code = 2;
    }
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return exit_code;
}
