/*
 * block CORE IP: prints what the ExecutionManager contract says about the code at an address. Each question can fail
 * separately.
 */
#include <cdacq.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int print_clause(const struct cdacq_exception_clause *clause, void *context)
{
    (void)context;
    printf("try [%#" PRIx32 ", %#" PRIx32 ") handler [%#" PRIx32 ", %#" PRIx32 ")\n", clause->try_start,
           clause->try_end, clause->handler_start, clause->handler_end);
    return 0;
}

static enum cdacq_status print_block(struct cdacq_session *session, uint64_t ip, struct cdacq_error *error)
{
    struct cdacq_block block;
    uint64_t hot_size, cold_start, cold_size, unwind_info, debug_info, funclet;
    bool has_flag_byte;
    enum cdacq_status status = cdacq_session_code_block_at(session, ip, &block, error);
    if (status != CDACQ_OK)
        return status;
    printf("jit type %d, method desc %#" PRIx64 ", start %#" PRIx64 ", offset %#" PRIx64 "\n",
           (int)cdacq_block_get_jit_type(&block), cdacq_block_get_method_desc(&block),
           cdacq_block_get_start_address(&block), cdacq_block_get_relative_offset(&block));
    if (cdacq_block_get_method_region_info(&block, session, &hot_size, &cold_start, &cold_size, error) == CDACQ_OK)
        printf("hot %#" PRIx64 ", cold %#" PRIx64 " +%#" PRIx64 "\n", hot_size, cold_start, cold_size);
    if (cdacq_block_get_unwind_info(&block, session, &unwind_info, error) == CDACQ_OK)
        printf("unwind info %#" PRIx64 "\n", unwind_info);
    if (cdacq_block_get_funclet_start_address(&block, session, &funclet, error) == CDACQ_OK)
        printf("function %#" PRIx64 "\n", funclet);
    if (cdacq_block_get_debug_info(&block, session, &debug_info, &has_flag_byte, error) == CDACQ_OK)
        printf("debug info %#" PRIx64 "\n", debug_info);
    return cdacq_block_visit_exception_clauses(&block, session, print_clause, NULL, error);
}

int main(int argc, char **argv)
{
    struct cdacq_error error;
    struct cdacq_target *target = NULL;
    struct cdacq_session *session = NULL;

    if (argc != 3) {
        fprintf(stderr, "usage: %s CORE IP\n", argv[0]);
        return 64;
    }
    int failed = cdacq_target_open_core(argv[1], NULL, &target, &error) < 0 ||
                 cdacq_session_create(target, &session, &error) < 0 ||
                 print_block(session, strtoull(argv[2], NULL, 16), &error) != CDACQ_OK;
    if (failed)
        fprintf(stderr, "%s\n", error.message);
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    return failed ? 2 : 0;
}
