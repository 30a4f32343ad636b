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

/* The methoddef rid: the chunk's range bits above the remainder bits of the MethodDesc. */
static uint32_t read_rid(struct field_reader *reader, uint64_t chunk, uint64_t address)
{
    uint64_t remainder_bits = reader->layout->globals[G_MethodDescTokenRemainderBitCount];
    if (remainder_bits == 0 || remainder_bits >= TOKEN_BITS)
        return (uint32_t)reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, 0, "MethodDescTokenRemainderBitCount");
    uint32_t all = (UINT32_C(1) << TOKEN_BITS) - 1;
    uint32_t range =
        (uint32_t)read_field(reader, chunk, F_MethodDescChunk_FlagsAndTokenRange) & (all >> remainder_bits);
    uint32_t remainder = (uint32_t)read_field(reader, address, F_MethodDesc_Flags3AndTokenRemainder) &
                         (all >> (TOKEN_BITS - remainder_bits));
    return range << remainder_bits | remainder;
}

bool method_desc_read(struct field_reader *reader, uint64_t address, struct method_desc *ret)
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
    if (method.classification != METHOD_DYNAMIC && !reader_failed(&reader->raw)) {
        method.token = 0x06000000 | rid;
        method.module = read_field(reader, method.method_table, F_MethodTable_Module);
        if (!rid && method.classification != METHOD_ARRAY)
            reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, address, "MethodDesc: token");
    }
    if (reader_failed(&reader->raw))
        return false;
    *ret = method;
    return true;
}

uint32_t method_desc_arguments(struct field_reader *reader, const struct method_desc *method, uint64_t *ret)
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
    if (reader_failed(&reader->raw) || !instance)
        return 0;
    if (count == 0 || count > ARGUMENT_MAX)
        return (uint32_t)reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, method->address,
                                     "InstantiatedMethodDesc.NumGenericArgs");
    if (!*ret)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, method->address, "InstantiatedMethodDesc.PerInstInfo");
    return *ret ? (uint32_t)count : 0;
}

bool method_desc_is_il_stub(struct field_reader *reader, const struct method_desc *method)
{
    return has_field(reader, F_StoredSigMethodDesc_ExtendedFlags) &&
           (read_field(reader, method->address, F_StoredSigMethodDesc_ExtendedFlags) & DYNAMIC_IS_IL_STUB);
}

bool method_desc_dynamic_name(struct field_reader *reader, const struct method_desc *method, char **ret)
{
    uint64_t name = read_field(reader, method->address, F_DynamicMethodDesc_MethodName);
    if (!reader_failed(&reader->raw) && !name)
        reader_fail(&reader->raw, CDACQ_ERR_CORRUPT, method->address, "DynamicMethodDesc.MethodName");
    return !reader_failed(&reader->raw) && reader_string(&reader->raw, name, NAME_MAX_SIZE, ret);
}

bool method_desc_stored_signature(struct field_reader *reader, const struct method_desc *method, struct window *ret)
{
    if (!has_field(reader, F_StoredSigMethodDesc_Sig) || !has_field(reader, F_StoredSigMethodDesc_cSig))
        return false;
    uint64_t address = read_field(reader, method->address, F_StoredSigMethodDesc_Sig);
    uint64_t size = read_field(reader, method->address, F_StoredSigMethodDesc_cSig);
    return !reader_failed(&reader->raw) && address && size && size <= SIGNATURE_MAX_SIZE &&
           reader_window(&reader->raw, address, size, "StoredSigMethodDesc.Sig", ret);
}
