/*
 * standalone_driver.c: main() of a fuzz target where there is no libFuzzer: runs it once over the empty input and over
 * every file that it is given, or that is in a folder it is given. A failure ends the process, as under libFuzzer.
 */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t inputs;

static void run_file(const char *path, size_t size)
{
    /* Exactly the input's size, so that AddressSanitizer sees a read of one byte too many. */
    uint8_t *data = malloc(size ? size : 1);
    FILE *file = fopen(path, "rb");
    if (!data || !file || fread(data, 1, size, file) != size)
        err(1, "%s", path);
    fclose(file);
    fprintf(stderr, "%s\n", path); /* before it runs, so that the last line names the input that failed */
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
}

static void run(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        err(1, "%s", path);
    if (!S_ISDIR(st.st_mode)) {
        run_file(path, (size_t)st.st_size);
        return;
    }
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);
    if (n < 0)
        err(1, "%s", path);
    for (int i = 0; i < n; i++) {
        char *inner;
        if (asprintf(&inner, "%s/%s", path, entries[i]->d_name) < 0)
            err(1, "%s", path);
        if (entries[i]->d_name[0] != '.')
            run(inner);
        free(inner);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++)
        run(argv[i]);
    printf("%zu inputs\n", inputs);
    return 0;
}
