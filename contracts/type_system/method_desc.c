#include "contracts/type_system/method_desc.h"

enum {
    CLASSIFICATION_MASK = 7,
    TOKEN_BITS = 24,
    NAME_MAX_SIZE = 4096,
    SIGNATURE_MAX_SIZE = 64 * 1024,
    ARGUMENT_MAX = 256,
    INSTANTIATED_KIND_MASK = 7, /* InstantiatedMethodDesc.Flags2 */
    INSTANTIATED_UNSHARED = 2,
    INSTANTIATED_SHARED = 3,
    INSTANTIATED_WRAPPER_STUB = 4, /* also of methods that are not generic, of types that are */
    DYNAMIC_IS_IL_STUB = 0x8000,   /* StoredSigMethodDesc.ExtendedFlags */
};

/* MethodDesc.Flags: what follows the MethodDesc, in this order. */
enum {
    HAS_NON_VTABLE_SLOT = 0x08,
    HAS_METHOD_IMPL = 0x10,
    HAS_NATIVE_CODE_SLOT = 0x20,
    HAS_ASYNC_METHOD_DATA = 0x40,
};

/* AsyncMethodData.Flags */
enum {
    ASYNC_CALL = 0x01,
    ASYNC_VARIANT = 0x04,
    /*
     * Also set for async variants of methods that the runtime does not suspend. These are compiled from the method's
     * IL, and stack traces of 11.0.0 show them.
     */
    ASYNC_THUNK = 0x10,
    ASYNC_RETURN_DROPPING_THUNK = 0x20,
};

/* The methoddef rid: the chunk's range bits above the remainder bits of the MethodDesc. */
static uint32_t read_rid(struct reader *reader, uint64_t chunk, uint64_t address)
{
    uint64_t remainder_bits = reader->layout->globals[G_MethodDescTokenRemainderBitCount];
    if (remainder_bits == 0 || remainder_bits >= TOKEN_BITS)
        return (uint32_t)reader_fail(reader, CDACQ_ERR_CORRUPT, 0, "MethodDescTokenRemainderBitCount");
    uint32_t all = (UINT32_C(1) << TOKEN_BITS) - 1;
    uint32_t range =
        (uint32_t)read_field(reader, chunk, F_MethodDescChunk_FlagsAndTokenRange) & (all >> remainder_bits);
    uint32_t remainder = (uint32_t)read_field(reader, address, F_MethodDesc_Flags3AndTokenRemainder) &
                         (all >> (TOKEN_BITS - remainder_bits));
    return range << remainder_bits | remainder;
}

bool method_desc_read(struct reader *reader, uint64_t address, struct method_desc *ret)
{
    const struct layout *layout = reader->layout;
    uint64_t index = read_field(reader, address, F_MethodDesc_ChunkIndex);
    uint64_t chunk = address - index * layout->globals[G_MethodDescAlignment] - layout->sizes[T_MethodDescChunk];
    struct method_desc method = {
        .address = address,
        .method_table = read_field(reader, chunk, F_MethodDescChunk_MethodTable),
        .classification = read_field(reader, address, F_MethodDesc_Flags) & CLASSIFICATION_MASK,
    };
    uint32_t rid = read_rid(reader, chunk, address);
    if (method.classification != METHOD_DYNAMIC && !reader_failed(reader)) {
        method.token = 0x06000000 | rid;
        method.module = read_field(reader, method.method_table, F_MethodTable_Module);
        if (!rid && method.classification != METHOD_ARRAY)
            reader_fail(reader, CDACQ_ERR_CORRUPT, address, "MethodDesc: token");
    }
    if (reader_failed(reader))
        return false;
    *ret = method;
    return true;
}

uint32_t method_desc_arguments(struct reader *reader, const struct method_desc *method, uint64_t *ret)
{
    if (method->classification != METHOD_INSTANTIATED || !has_field(reader, F_InstantiatedMethodDesc_PerInstInfo) ||
        !has_field(reader, F_InstantiatedMethodDesc_NumGenericArgs) ||
        !has_field(reader, F_InstantiatedMethodDesc_Flags2))
        return 0;
    uint64_t kind = read_field(reader, method->address, F_InstantiatedMethodDesc_Flags2) & INSTANTIATED_KIND_MASK;
    uint64_t count = read_field(reader, method->address, F_InstantiatedMethodDesc_NumGenericArgs);
    bool instance = kind == INSTANTIATED_UNSHARED || kind == INSTANTIATED_SHARED ||
                    (kind == INSTANTIATED_WRAPPER_STUB && count != 0);
    *ret = read_field(reader, method->address, F_InstantiatedMethodDesc_PerInstInfo);
    if (reader_failed(reader) || !instance)
        return 0;
    if (count == 0 || count > ARGUMENT_MAX)
        return (uint32_t)reader_fail(reader, CDACQ_ERR_CORRUPT, method->address,
                                     "InstantiatedMethodDesc.NumGenericArgs");
    if (!*ret)
        reader_fail(reader, CDACQ_ERR_CORRUPT, method->address, "InstantiatedMethodDesc.PerInstInfo");
    return *ret ? (uint32_t)count : 0;
}

/* Where the AsyncMethodData of a MethodDesc is; 0 if it has none. Only methods with IL have variants. */
static uint64_t async_method_data(const struct layout *layout, uint64_t address, uint64_t flags)
{
    bool is_il = (flags & CLASSIFICATION_MASK) == METHOD_IL;
    if (!(flags & HAS_ASYNC_METHOD_DATA) || (!is_il && (flags & CLASSIFICATION_MASK) != METHOD_INSTANTIATED))
        return 0;
    return address + layout->sizes[is_il ? T_MethodDesc : T_InstantiatedMethodDesc] +
           (flags & HAS_NON_VTABLE_SLOT ? layout->sizes[T_NonVtableSlot] : 0) +
           (flags & HAS_METHOD_IMPL ? layout->sizes[T_MethodImpl] : 0) +
           (flags & HAS_NATIVE_CODE_SLOT ? layout->sizes[T_NativeCodeSlot] : 0);
}

static bool describes_async_methods(const struct reader *reader)
{
    const uint32_t *sizes = reader->layout->sizes;
    return has_field(reader, F_AsyncMethodData_Flags) && sizes[T_MethodDesc] && sizes[T_InstantiatedMethodDesc] &&
           sizes[T_NonVtableSlot] && sizes[T_MethodImpl] && sizes[T_NativeCodeSlot];
}

struct method_async_kind method_desc_async_kind(struct reader *reader, uint64_t address)
{
    if (!describes_async_methods(reader))
        return (struct method_async_kind){0};
    uint64_t data = async_method_data(reader->layout, address, read_field(reader, address, F_MethodDesc_Flags));
    uint64_t flags = data ? read_field(reader, data, F_AsyncMethodData_Flags) : 0;
    bool drops_result = flags & ASYNC_RETURN_DROPPING_THUNK;
    return (struct method_async_kind){
        .is_variant = flags & ASYNC_VARIANT,
        .drops_result = drops_result,
        .is_thunk = drops_result || (flags & (ASYNC_THUNK | ASYNC_CALL)) == ASYNC_THUNK,
    };
}

bool method_desc_is_il_stub(struct reader *reader, const struct method_desc *method)
{
    return has_field(reader, F_StoredSigMethodDesc_ExtendedFlags) &&
           (read_field(reader, method->address, F_StoredSigMethodDesc_ExtendedFlags) & DYNAMIC_IS_IL_STUB);
}

bool method_desc_is_hidden(struct reader *reader, const struct method_desc *method)
{
    return method->classification == METHOD_DYNAMIC ? method_desc_is_il_stub(reader, method)
                                                    : method_desc_async_kind(reader, method->address).is_thunk;
}

bool method_desc_dynamic_name(struct reader *reader, const struct method_desc *method, char **ret)
{
    uint64_t name = read_field(reader, method->address, F_DynamicMethodDesc_MethodName);
    if (!reader_failed(reader) && !name)
        reader_fail(reader, CDACQ_ERR_CORRUPT, method->address, "DynamicMethodDesc.MethodName");
    return !reader_failed(reader) && reader_string(reader, name, NAME_MAX_SIZE, ret);
}

bool method_desc_stored_signature(struct reader *reader, const struct method_desc *method, struct window *ret)
{
    if (!has_field(reader, F_StoredSigMethodDesc_Sig) || !has_field(reader, F_StoredSigMethodDesc_cSig))
        return false;
    uint64_t address = read_field(reader, method->address, F_StoredSigMethodDesc_Sig);
    uint64_t size = read_field(reader, method->address, F_StoredSigMethodDesc_cSig);
    return !reader_failed(reader) && address && size && size <= SIGNATURE_MAX_SIZE &&
           reader_window(reader, address, size, "StoredSigMethodDesc.Sig", ret);
}
