#include "contracts/ready_to_run/r2r_images.h"

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/ready_to_run/r2r_image.h"
#include "target/reader.h"

const struct r2r_image *r2r_images_get(struct r2r_images *images, struct reader *reader,
                                       const struct range_section *section)
{
    _Atomic(struct r2r_image *) *bucket =
        &images->buckets[section->begin * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (ARRAY_SIZE(images->buckets) - 1)];
    struct r2r_image *first = atomic_load_explicit(bucket, memory_order_acquire);
    for (struct r2r_image *image = first; image; image = image->next)
        if (image->base == section->begin && image->module == section->r2r_module && image->end == section->end)
            return reader_fail_again(reader, &image->failure) ? NULL : image;
    struct r2r_image *image = reader_failed(reader) ? NULL : r2r_image_open(reader, section);
    if (!image)
        return NULL;
    /* Bounds the memory for sections that all name one large image. */
    if (atomic_fetch_add(&images->functions, image->functions.count) + image->functions.count >
        R2R_FUNCTION_TOTAL_MAX) {
        image->failure.status = CDACQ_ERR_FUEL;
        image->failure.what = "ReadyToRun images: runtime functions of all";
    }
    /* Two threads may open the same image; a second copy in the list does no harm. */
    image->next = first;
    while (
        !atomic_compare_exchange_weak_explicit(bucket, &image->next, image, memory_order_release, memory_order_acquire))
        ;
    return reader_fail_again(reader, &image->failure) ? NULL : image;
}

void r2r_images_deinit(struct r2r_images *images)
{
    for (size_t i = 0; i < ARRAY_SIZE(images->buckets); i++) {
        struct r2r_image *image = atomic_exchange(&images->buckets[i], NULL);
        while (image) {
            struct r2r_image *next = image->next;
            r2r_image_free(image);
            image = next;
        }
    }
}
