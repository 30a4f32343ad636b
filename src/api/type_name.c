#include "src/api/type_name.h"

#include "contracts/type_system/type_handle.h"
#include "util/text.h"

const char *type_name(struct cdacq_session *session, uint64_t method_table, enum cdacq_status *ret_status)
{
    struct text text = {0};
    struct reader *reader = &session->resolver.reader;
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    enum cdacq_status status = type_handle_name(&session->resolver.modules, method_table, &text);
    const char *name =
        status == CDACQ_OK && text.length ? resolver_intern(&session->resolver, text.data, text.length) : NULL;
    reader_leave(reader, &outer);
    text_deinit(&text);
    if (ret_status)
        *ret_status = name ? CDACQ_OK : status < 0 ? status : CDACQ_ERR_MODULE;
    return name;
}
