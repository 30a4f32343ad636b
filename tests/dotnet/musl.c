/*
 * musl.c: what libstdc++ and libgcc of a glibc system need and musl lacks, so that the runtime for musl runs where musl
 * is installed beside glibc. For tests/dotnet/musl.py.
 */
#include <link.h>
#include <locale.h>
#include <stdint.h>
#include <sys/random.h>
#include <time.h>

/* glibc's struct dl_find_object. */
struct found_object {
    unsigned long long flags;
    void *begin, *end;
    struct link_map *map;
    void *eh_frame;
    unsigned long long reserved[7];
};

struct search {
    uintptr_t address;
    struct found_object *ret;
    int found;
};

char __libc_single_threaded;
unsigned __cpu_model[4];

int __cpu_indicator_init(void)
{
    return 0;
}

/* Destructors of thread-local objects are not run: no thread of the tests ends. */
int __cxa_thread_atexit_impl(void (*destructor)(void *), void *object, void *image)
{
    (void)destructor, (void)object, (void)image;
    return 0;
}

size_t __strftime_l(char *text, size_t size, const char *format, const struct tm *time, locale_t locale)
{
    return strftime_l(text, size, format, time, locale);
}

uint32_t arc4random(void)
{
    uint32_t value = 0;
    (void)!getrandom(&value, sizeof value, 0);
    return value;
}

static int check_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;
    uintptr_t begin = UINTPTR_MAX, end = 0, eh_frame = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_GNU_EH_FRAME)
            eh_frame = at;
        if (header->p_type != PT_LOAD)
            continue;
        begin = at < begin ? at : begin;
        end = at + header->p_memsz > end ? at + header->p_memsz : end;
    }
    if (!eh_frame || search->address < begin || search->address >= end)
        return 0;
    *search->ret = (struct found_object){.begin = (void *)begin, .end = (void *)end, .eh_frame = (void *)eh_frame};
    search->found = 1;
    return 1;
}

int _dl_find_object(void *address, struct found_object *ret)
{
    struct search search = {(uintptr_t)address, ret, 0};
    dl_iterate_phdr(check_object, &search);
    return search.found ? 0 : -1;
}
