#include "contracts/unwind/xdata.h"

enum {
    ONE_EPILOG = 1 << 21,
    FRAGMENT = 1 << 22, /* of arm; on arm64 the number of epilogs begins here */
    FRAGMENT_WORDS_SHIFT = 28,
};

bool xdata_read(struct reader *reader, const struct unwind_function *function, unsigned words_shift, struct xdata *ret)
{
    uint64_t address = function->unwind_data;
    uint32_t header = read_u32(reader, address);
    unsigned words = header >> words_shift, epilogs = header >> (words_shift - 5) & 31;
    address += 4;
    if (!words && !epilogs) {
        uint32_t second = read_u32(reader, address);
        address += 4;
        words = second >> 16 & 0xff;
        epilogs = second & 0xffff;
    }
    if (header >> 18 & 3)
        reader_fail(reader, CDACQ_ERR_CORRUPT, function->unwind_data, "unwind data: version");
    ret->length = header & 0x3ffff;
    ret->fragment = words_shift == FRAGMENT_WORDS_SHIFT && header & FRAGMENT;
    ret->one_epilog = header & ONE_EPILOG;
    if (ret->one_epilog) {
        ret->epilog = epilogs;
    } else {
        ret->scopes = address;
        ret->scope_count = epilogs;
        address += 4 * (uint64_t)epilogs;
    }
    ret->size = 4 * words;
    return !reader_failed(reader) && reader_copy(reader, address, ret->bytes, ret->size);
}
