/*
 * proc_net.h: the addresses of a socket, from the kernel's tables of sockets in the network namespace of a process.
 * Source: proc_pid_net(5); Linux net/ipv4/tcp_ipv4.c, net/ipv6/tcp_ipv6.c, net/unix/af_unix.c.
 */
#ifndef CDACQ_TARGET_PROC_NET_H
#define CDACQ_TARGET_PROC_NET_H

#include <stdio.h>

#include "util/arena.h"
#include "util/base.h"
#include "util/hash_table.h"
#include "target/work.h"

/* A line of /proc/PID/net/tcp and its like, or of /proc/PID/net/unix. */
struct proc_net_socket {
    uint64_t inode;
    char local[128], peer[128]; /* empty: none */
};

/* False for a line that is none of a socket, such as the first. */
bool proc_net_inet_line(const char *line, struct proc_net_socket *ret);
bool proc_net_unix_line(const char *line, struct proc_net_socket *ret);

struct proc_net_row {
    uint64_t inode;
    const char *local, *peer;
    bool is_unix;
    bool is_ambiguous; /* lines differ about it */
};

DEFINE_HASH_TABLE_TYPE(proc_net_rows, struct proc_net_row);

/*
 * The tables of a process, which are read once: when a socket is first looked for. The kernel takes milliseconds for
 * each. Begin with {.pid = , .work = }.
 */
struct proc_net {
    int pid;
    struct work *work; /* which each line takes steps of */
    bool is_read;
    bool unix_is_cut; /* lines of net/unix are missing, so that none of it can be relied on */
    uint32_t lines;   /* of all tables */
    struct proc_net_rows rows;
    struct arena texts;
};

void proc_net_deinit(struct proc_net *net);

/* Adds the lines of a table to the rows. Only for proc_net_find() and tests. */
void proc_net_add(struct proc_net *net, FILE *table, bool is_unix);

/*
 * The addresses of a socket, which are empty if they are not known: also if two lines differ about it, as the name of a
 * unix socket may hold what looks like a line.
 */
void proc_net_find(struct proc_net *net, uint64_t inode, char *ret_local, size_t local_size, char *ret_peer,
                   size_t peer_size);

#endif
