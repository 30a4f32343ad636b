/*
 * fuzz_proc_net.c: any bytes as a line of the kernel's tables of sockets and of file locks. The addresses end within
 * their room.
 */
#include "target/proc_locks.h"
#include "target/proc_net.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct proc_net_socket *found)
{
    if (!memchr(found->local, 0, sizeof found->local) || !memchr(found->peer, 0, sizeof found->peer))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proc_net_socket found;
    char *line = malloc(size + 1);
    if (!line)
        return 0;
    if (size)
        memcpy(line, data, size);
    line[size] = '\0';
    if (proc_net_inet_line(line, &found))
        check(&found);
    if (proc_net_unix_line(line, &found))
        check(&found);
    struct proc_lock lock;
    (void)proc_lock_line(line, &lock);
    free(line);
    return 0;
}
