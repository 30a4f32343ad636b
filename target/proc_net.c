#include "target/proc_net.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/proc_file.h"

enum {
    LINES_MAX = 1 << 16, /* of all tables */
    LINE_SIZE_MAX = 512,
    WORDS_V6 = 4,
    HEX_OF_WORD = 8,
};

DEFINE_U64_TABLE_FUNCTIONS(proc_net_rows, struct proc_net_row, inode);

/* Writes "127.0.0.1:80" for the kernel's "0100007F:0050", or nothing for an address of zeros without a port. */
static bool put_address(const char *text, char *ret, size_t size)
{
    uint32_t words[WORDS_V6] = {0};
    char address[INET6_ADDRSTRLEN];
    size_t digits = strcspn(text, ":");
    unsigned port;
    bool is_v6 = digits == (size_t)WORDS_V6 * HEX_OF_WORD;
    if ((!is_v6 && digits != HEX_OF_WORD) || sscanf(text + digits, ":%4x", &port) != 1)
        return false;
    for (size_t i = 0; i < digits / HEX_OF_WORD; i++) /* the kernel prints the words as numbers of this machine */
        if (sscanf(text + i * HEX_OF_WORD, "%8" SCNx32, &words[i]) != 1)
            return false;
    if (!inet_ntop(is_v6 ? AF_INET6 : AF_INET, words, address, sizeof address))
        return false;
    *ret = '\0';
    if (port || words[0] || words[1] || words[2] || words[3])
        snprintf(ret, size, is_v6 ? "[%s]:%u" : "%s:%u", address, port);
    return true;
}

bool proc_net_inet_line(const char *line, struct proc_net_socket *ret)
{
    char local[64], peer[64];
    struct proc_net_socket found = {.inode = 0};
    /* "0: LOCAL PEER ST TX:RX TR:WHEN RETRANSMITS UID TIMEOUT INODE" */
    if (sscanf(line, " %*[0-9]: %63[0-9A-Fa-f:] %63[0-9A-Fa-f:] %*s %*s %*s %*s %*s %*s %" SCNu64, local, peer,
               &found.inode) != 3 ||
        !put_address(local, found.local, sizeof found.local) || !put_address(peer, found.peer, sizeof found.peer))
        return false;
    *ret = found;
    return true;
}

bool proc_net_unix_line(const char *line, struct proc_net_socket *ret)
{
    static const char digits[] = "0123456789ABCDEFabcdef";
    static const uint8_t widths[] = {8, 8, 8, 4, 2};
    struct proc_net_socket found = {.inode = 0};
    /* "0000000000000000: REFERENCES PROTOCOL FLAGS TYPE ST INODE [PATH]" */
    size_t at = strspn(line, digits);
    if ((at != 8 && at != 16) || line[at++] != ':')
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(widths); at += widths[i++])
        if (line[at++] != ' ' || strspn(line + at, digits) != widths[i])
            return false;
    int path = 0;
    if (line[at] != ' ' || sscanf(line + at, "%" SCNu64 "%n", &found.inode, &path) != 1)
        return false;
    const char *text = line + at + path;
    if (*text && *text != ' ' && *text != '\n')
        return false;
    text += strspn(text, " ");
    snprintf(found.local, sizeof found.local, "%.*s", (int)strcspn(text, "\n"), text);
    *ret = found;
    return true;
}

/* False when out of memory. */
static bool add_row(struct proc_net *net, const struct proc_net_socket *socket, bool is_unix)
{
    const struct proc_net_row row = {
        .inode = socket->inode,
        .local = arena_string(&net->texts, socket->local, strlen(socket->local)),
        .peer = arena_string(&net->texts, socket->peer, strlen(socket->peer)),
        .is_unix = is_unix,
    };
    bool added;
    struct proc_net_row *known = NULL;
    if (!row.local || !row.peer || !(known = proc_net_rows_insert(&net->rows, row, &added)))
        return false;
    if (!added) /* the kernel may list a socket twice if it changes its tables meanwhile */
        known->is_ambiguous |= strcmp(known->local, row.local) || strcmp(known->peer, row.peer);
    return true;
}

void proc_net_add(struct proc_net *net, FILE *table, bool is_unix)
{
    char line[LINE_SIZE_MAX];
    bool goes_on = true;
    while (goes_on && fgets(line, sizeof line, table)) {
        struct proc_net_socket socket;
        goes_on = net->lines < LINES_MAX && work_take_steps(net->work, WORK_OF_AN_ENTRY);
        net->lines += goes_on;
        if (goes_on && (is_unix ? proc_net_unix_line : proc_net_inet_line)(line, &socket) && socket.inode)
            goes_on = add_row(net, &socket, is_unix);
    }
    net->unix_is_cut |= is_unix && (!goes_on || ferror(table));
}

static void read_tables(struct proc_net *net)
{
    static const char *const tables[] = {"net/tcp", "net/tcp6", "net/udp", "net/udp6", "net/unix"};
    for (size_t i = 0; i < ARRAY_SIZE(tables) && work_take_steps(net->work, WORK_OF_A_FILE); i++) {
        int fd = proc_file_open(net->pid, tables[i]);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
        if (!file && fd >= 0)
            close(fd);
        if (!file)
            continue;
        proc_net_add(net, file, i == ARRAY_SIZE(tables) - 1);
        fclose(file);
    }
}

void proc_net_find(struct proc_net *net, uint64_t inode, char *ret_local, size_t local_size, char *ret_peer,
                   size_t peer_size)
{
    if (!net->is_read)
        read_tables(net);
    net->is_read = true;
    const struct proc_net_row *row = proc_net_rows_find(&net->rows, inode);
    bool is_known = row && !row->is_ambiguous && !(row->is_unix && net->unix_is_cut);
    snprintf(ret_local, local_size, "%s", is_known ? row->local : "");
    snprintf(ret_peer, peer_size, "%s", is_known ? row->peer : "");
}

void proc_net_deinit(struct proc_net *net)
{
    proc_net_rows_deinit(&net->rows);
    arena_deinit(&net->texts);
}
