/*
 * lines.c: a program whose debug information the tests read. It is compiled in several ways, always without .eh_frame,
 * so that its stack needs .debug_frame. It writes the address of each call of note(), its line, and whether that is in
 * the second file; then it waits. Functions that the tests look for by name are not static.
 */
#include <stdio.h>
#include <unistd.h>

#define FRAME __attribute__((noinline))

void note(int line, int in_other_file);
void wait_for_test(void);
void inner(volatile int *number);
void outer(volatile int *number);

FRAME void note(int line, int in_other_file)
{
    printf("%lx %d %d\n", (unsigned long)__builtin_return_address(0) - 1, line, in_other_file);
}

FRAME void wait_for_test(void)
{
    printf("end\n");
    fflush(stdout);
    for (;;)
        pause();
}

FRAME void outer(volatile int *number)
{
    volatile int room[20] = {0};
    note(__LINE__, 0);
    room[*number % 20] = 1;
    note(__LINE__, 0);
    inner(&room[3]);
    note(__LINE__, 0);
}

int main(void)
{
    volatile int number = 7;
    note(__LINE__, 0);
    outer(&number);
    return number;
}

/* From here on in another file, and far from the lines above. */
#line 70000 "folder/other.c"
FRAME void inner(volatile int *number)
{
    note(__LINE__, 1);
    *number += 1;
    note(__LINE__, 1);
    wait_for_test();
    note(__LINE__, 1);
}
