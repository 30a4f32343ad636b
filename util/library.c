#include "util/library.h"

#include <dlfcn.h>
#include <stdio.h>

bool library_load(const struct library *library, void *functions, char *why, size_t why_size)
{
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(why, why_size, "%s (Debian package %s) cannot be loaded", library->file, library->package);
        return false;
    }
    for (size_t i = 0; library->names[i]; i++) {
        void *address = dlsym(handle, library->names[i]);
        if (!address) {
            snprintf(why, why_size, "%s is too old: it lacks %s", library->file, library->names[i]);
            return false;
        }
        memcpy((uint8_t *)functions + i * sizeof address, &address, sizeof address);
    }
    return true;
}
