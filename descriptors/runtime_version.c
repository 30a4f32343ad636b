#include "descriptors/runtime_version.h"

#include <ctype.h>
#include <stdio.h>

#include "descriptors/runtime.h"
#include "descriptors/runtime_info.h"
#include "target/reader.h"
#include "util/base.h"

/* The runtime's build puts this into every image. */
static const char mark[] = "@(#)Version ";

enum { SCAN_MAX = 16 * 1024 * 1024 }; /* bytes of a segment; libcoreclr's have up to 6 MB */

/* Copies the leading digits and dots. */
static void copy_version(char *ret, size_t size, const char *text, size_t length)
{
    size_t n = 0;
    while (n < length && n + 1 < size && (isdigit((unsigned char)text[n]) || text[n] == '.'))
        n++;
    memcpy(ret, text, n);
    ret[n] = '\0';
}

/* "10.0" from "10.0.12"; "" where there is no second number. */
static void copy_release(char ret[16], const char *version)
{
    const char *dot = strchr(version, '.'), *end = dot ? dot + 1 : version;
    while (isdigit((unsigned char)*end))
        end++;
    size_t length = dot && end > dot + 1 ? (size_t)(end - version) : 0;
    snprintf(ret, 16, "%.*s", (int)MIN(length, (size_t)15), version);
}

/* Compilers may put the constant string into a writable segment, so all segments are searched. */
static void find_file_version(const struct image *image, char *ret, size_t size)
{
    struct reader reader;
    ret[0] = '\0';
    for (size_t i = 0; i < image->segment_count && !ret[0]; i++) {
        const struct image_segment *segment = &image->segments[i];
        struct span span;
        uint64_t address = image->base + segment->vaddr;
        uint64_t end = add_saturated(address, MIN(segment->file_size, (uint64_t)SCAN_MAX));
        while (address < end && !ret[0]) {
            if (!image->target->ops->memory_at(image->target, address, &span)) {
                address = add_saturated(align_down(address, PAGE_SIZE), PAGE_SIZE);
                continue;
            }
            size_t length = (size_t)(MIN(span.end, end) - address);
            const uint8_t *bytes = span.bytes + (address - span.begin);
            const char *found = memmem(bytes, length, mark, sizeof mark - 1);
            if (found) {
                char text[64] = "";
                reader_init(&reader, image->target, 8, false);
                reader_try_copy(&reader, address + (uint64_t)((const uint8_t *)found - bytes) + sizeof mark - 1, text,
                                sizeof text - 1);
                copy_version(ret, size, text, sizeof text - 1);
            }
            address += length;
        }
    }
}

/* The folder's name: .../Microsoft.NETCore.App/10.0.12/libcoreclr.so */
static void find_path_version(const char *path, char *ret, size_t size)
{
    const char *base = path_basename(path);
    ret[0] = '\0';
    if (base - path < 2)
        return;
    const char *folder = base - 1;
    while (folder > path && folder[-1] != '/')
        folder--;
    copy_version(ret, size, folder, (size_t)(base - 1 - folder));
}

void runtime_version_of_path(const char *path, char ret[16])
{
    char version[32];
    find_path_version(path, version, sizeof version);
    copy_release(ret, version);
}

/* What the runtime itself publishes: "11.0.0", or "11.0.0-rc.2.26502.107". Text of another form is not used. */
static void take_published(const struct descriptor *descriptor, struct runtime_version *version)
{
    static const char characters[] = "0123456789.-+abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *text = product_version_find(descriptor);
    size_t major = text ? strspn(text, "0123456789") : 0;
    if (!major || text[major] != '.' || !isdigit((unsigned char)text[major + 1]) || text[strspn(text, characters)] ||
        strlen(text) >= sizeof version->version)
        return;
    copy_release(version->release, text);
    snprintf(version->version, sizeof version->version, "%s", text);
}

void runtime_version_find(const struct runtime *runtime, const struct descriptor *descriptor,
                          struct runtime_version *ret)
{
    struct runtime_version version = {0};
    char by_symbols[16] = "", by_path[16] = "", path_version[32] = "";
    if (runtime->supplement.runtime)
        copy_release(by_symbols, runtime->supplement.runtime + strcspn(runtime->supplement.runtime, "0123456789"));
    if (runtime->has_image) {
        find_file_version(&runtime->image, version.file_version, sizeof version.file_version);
        find_path_version(runtime->image.path, path_version, sizeof path_version);
    }
    copy_release(version.of_image, version.file_version);
    copy_release(by_path, path_version);
    /* One source can be wrong: a folder may be renamed, and symbol sizes of two releases may coincide. */
    if (version.of_image[0] && (!strcmp(version.of_image, by_symbols) || !strcmp(version.of_image, by_path)))
        memcpy(version.release, version.of_image, sizeof version.of_image);
    else if (by_symbols[0] && !strcmp(by_symbols, by_path))
        memcpy(version.release, by_symbols, sizeof by_symbols);
    if (version.release[0] && !strcmp(by_path, version.release))
        memcpy(version.version, path_version, sizeof path_version);
    if (descriptor)
        take_published(descriptor, &version);
    *ret = version;
}
