#include "contracts/objects/exception.h"

#include "contracts/objects/object.h"

enum {
    FRAME_LAST_OF_FOREIGN = 1, /* StackTraceElement.Flags */
    FRAME_IS_CALL = 2,         /* Ip is one less than the return address */
    FRAME_IS_CONTINUATION = 8, /* Ip is where a suspended async method resumes (.NET 11) */
};

/* The bytes of a stack trace. False if there are none. */
static bool find_bytes(struct reader *reader, uint64_t trace, struct object_array *ret)
{
    bool is_array = object_array_read(reader, trace, ret);
    if (is_array && ret->element_size == reader->pointer_size && ret->count) {
        trace = read_pointer(reader, ret->elements);
        is_array = object_array_read(reader, trace, ret);
    }
    if (!is_array || ret->element_size != 1)
        reader_fail(reader, CDACQ_ERR_CORRUPT, trace, "Exception._stackTrace");
    return !reader_failed(reader);
}

/*
 * NativeAOT keeps an array of addresses and uses the first ones. They are return addresses, and marks between the
 * stacks of throws.
 */
static void read_addresses(struct reader *reader, uint64_t object, uint64_t trace, struct exception *ret)
{
    struct object_array array;
    uint64_t count = read_field(reader, object, F_Exception__idxFirstFreeStackTraceEntry);
    ret->thrown = count != 0;
    if (!count || reader_failed(reader))
        return;
    if (!object_array_read(reader, trace, &array) || array.element_size != reader->pointer_size || count > array.count)
        reader_fail(reader, CDACQ_ERR_CORRUPT, trace, "Exception._corDbgStackTrace");
    ret->frame_count = reader_failed(reader) ? 0 : (uint32_t)count;
    ret->frames = array.elements;
}

static void read_frames(struct reader *reader, uint64_t trace, struct exception *ret)
{
    const struct layout *layout = reader->layout;
    uint32_t header = layout->sizes[T_StackTraceArrayHeader], size = layout->sizes[T_StackTraceElement];
    struct object_array bytes;
    if (!size || !has_field(reader, F_StackTraceArrayHeader_Size) || !has_field(reader, F_StackTraceElement_Ip) ||
        !find_bytes(reader, trace, &bytes) || bytes.count < header)
        return;
    uint64_t count = read_field(reader, bytes.elements, F_StackTraceArrayHeader_Size);
    if (count > (bytes.count - header) / size)
        reader_fail(reader, CDACQ_ERR_CORRUPT, bytes.elements, "StackTraceArrayHeader.Size");
    ret->frame_count = reader_failed(reader) ? 0 : (uint32_t)count;
    ret->frames = bytes.elements + header;
}

bool exception_read(struct reader *reader, uint64_t address, struct exception *ret)
{
    struct exception exception = {.address = address, .method_table = object_method_table(reader, address)};
    exception.message = read_field(reader, address, F_Exception__message);
    exception.inner = read_field(reader, address, F_Exception__innerException);
    exception.stack_trace_string = read_field(reader, address, F_Exception__stackTraceString);
    exception.remote_stack_trace = read_field(reader, address, F_Exception__remoteStackTraceString);
    exception.hresult = (int32_t)read_field(reader, address, F_Exception__HResult);
    uint64_t trace = read_field(reader, address, F_Exception__stackTrace);
    if (trace && !reader_failed(reader)) {
        exception.thrown = true;
        if (has_field(reader, F_Exception__idxFirstFreeStackTraceEntry))
            read_addresses(reader, address, trace, &exception);
        else
            read_frames(reader, trace, &exception);
    }
    if (reader_failed(reader))
        return false;
    *ret = exception;
    return true;
}

/* An address of NativeAOT. */
static bool address_at(struct reader *reader, const struct exception *exception, uint32_t index,
                       struct exception_frame *ret)
{
    enum { SEPARATOR = 1 };
    unsigned width = reader->pointer_size;
    uint64_t at = exception->frames + (uint64_t)index * width;
    *ret = (struct exception_frame){.ip = read_pointer(reader, at)};
    ret->is_separator = ret->ip == SEPARATOR;
    ret->last_of_foreign =
        !ret->is_separator && index + 1 < exception->frame_count && read_pointer(reader, at + width) == SEPARATOR;
    return !reader_failed(reader);
}

bool exception_frame_at(struct reader *reader, const struct exception *exception, uint32_t index,
                        struct exception_frame *ret)
{
    if (has_field(reader, F_Exception__idxFirstFreeStackTraceEntry) && index < exception->frame_count)
        return address_at(reader, exception, index, ret);
    *ret = (struct exception_frame){0};
    uint64_t element = exception->frames + (uint64_t)index * reader->layout->sizes[T_StackTraceElement];
    if (index >= exception->frame_count)
        reader_fail(reader, CDACQ_ERR_ARGUMENT, element, "StackTraceElement");
    ret->ip = read_field(reader, element, F_StackTraceElement_Ip);
    ret->method_desc = read_field(reader, element, F_StackTraceElement_MethodDesc);
    uint64_t flags = read_field(reader, element, F_StackTraceElement_Flags);
    ret->last_of_foreign = flags & FRAME_LAST_OF_FOREIGN;
    ret->faulted = !(flags & (FRAME_IS_CALL | FRAME_IS_CONTINUATION));
    return !reader_failed(reader);
}
