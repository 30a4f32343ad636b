/*
 * execution_manager_api.c: the ExecutionManager contract as cdacq.h offers it: a thin layer over contracts/.
 */
#include "contracts/execution_manager.h"

#include <inttypes.h>

#include "contracts/non_virtual_entry.h"
#include "src/door.h"

_Static_assert(sizeof(struct code_block) <= sizeof(struct cdacq_code_block), "a handle holds a block");

static struct code_block block_of(const struct cdacq_code_block *handle)
{
    struct code_block block;
    memcpy(&block, handle->opaque, sizeof block);
    return block;
}

enum cdacq_status cdacq_get_code_block(struct cdacq_session *session, uint64_t ip, struct cdacq_code_block *ret,
                                       struct cdacq_error *err)
{
    struct reader *reader = &session->reader;
    struct code_block block;
    reader_begin(reader, FUEL_LOOKUP);
    if (execution_manager_find(&session->target->manager, reader, ip, &block) && code_block_is_method(&block)) {
        *ret = (struct cdacq_code_block){0};
        memcpy(ret->opaque, &block, sizeof block);
        return CDACQ_OK;
    }
    enum cdacq_status status = reader_status(reader, err);
    return status < 0 ? status : error_set(err, CDACQ_NOT_MANAGED, ip, "%s", cdacq_status_text(CDACQ_NOT_MANAGED));
}

uint64_t cdacq_get_method_desc(const struct cdacq_code_block *block)
{
    return block_of(block).method_desc;
}

uint64_t cdacq_get_start_address(const struct cdacq_code_block *block)
{
    return block_of(block).start;
}

uint64_t cdacq_get_relative_offset(const struct cdacq_code_block *block)
{
    return block_of(block).offset;
}

enum cdacq_code_kind cdacq_get_jit_type(const struct cdacq_code_block *block)
{
    return block_of(block).kind;
}

void cdacq_get_method_region_info(const struct cdacq_code_block *block, uint64_t *ret_hot_size,
                                  uint64_t *ret_cold_start, uint64_t *ret_cold_size)
{
    struct code_block inner = block_of(block);
    *ret_hot_size = inner.hot_size;
    *ret_cold_start = inner.cold_start;
    *ret_cold_size = inner.cold_size;
}

uint64_t cdacq_get_unwind_info_base_address(const struct cdacq_code_block *block)
{
    return block_of(block).unwind_base;
}

/* The unwind entry of the block's ip and where its function starts: both getters ask for one of the two. */
static enum cdacq_status unwind_info(struct cdacq_session *session, const struct cdacq_code_block *handle,
                                     uint64_t *ret_entry, uint64_t *ret_start, struct cdacq_error *err)
{
    struct code_block block = block_of(handle);
    reader_begin(&session->reader, FUEL_LOOKUP);
    if (execution_manager_unwind_info(&session->reader, &block, ret_entry, ret_start))
        return CDACQ_OK;
    enum cdacq_status status = reader_status(&session->reader, err);
    return status < 0 ? status : error_set(err, CDACQ_ERR_CORRUPT, block.ip, "no unwind info covers the address");
}

enum cdacq_status cdacq_get_unwind_info(struct cdacq_session *session, const struct cdacq_code_block *block,
                                        uint64_t *ret, struct cdacq_error *err)
{
    uint64_t start, entry;
    enum cdacq_status status = unwind_info(session, block, &entry, &start, err);
    if (status >= 0)
        *ret = entry;
    return status;
}

enum cdacq_status cdacq_get_funclet_start_address(struct cdacq_session *session, const struct cdacq_code_block *block,
                                                  uint64_t *ret, struct cdacq_error *err)
{
    uint64_t start, entry;
    enum cdacq_status status = unwind_info(session, block, &entry, &start, err);
    if (status >= 0)
        *ret = start;
    return status;
}

enum cdacq_status cdacq_non_virtual_entry_to_method_desc(struct cdacq_session *session, uint64_t entry_point,
                                                         uint64_t *ret, struct cdacq_error *err)
{
    struct reader *reader = &session->reader;
    reader_begin(reader, FUEL_LOOKUP);
    if (execution_manager_entry_method_desc(&session->target->manager, reader, entry_point, ret))
        return CDACQ_OK;
    enum cdacq_status status = reader_status(reader, err);
    return status < 0 ? status
                      : error_set(err, CDACQ_NOT_MANAGED, entry_point,
                                  "0x%" PRIx64 " enters no method with a MethodDesc", entry_point);
}
