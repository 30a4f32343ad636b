#include "target/proc_locks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "util/file.h"
#include "util/file_system.h"
#include "util/proc_file.h"

enum { LINES_MAX = 1 << 16, LINE_SIZE_MAX = 256, DESCRIPTOR_MAX = 4096, MOUNTS_MAX = 1 << 20 };

bool proc_lock_line(const char *line, struct proc_lock *ret)
{
    /* "1: FLOCK  ADVISORY  WRITE PID MAJOR:MINOR:INODE BEGIN END"; of one that waits, "1: -> FLOCK ..." */
    struct proc_lock lock;
    char kind[8];
    unsigned major, minor;
    const char *text = line + strspn(line, "0123456789"), arrow[] = "-> ";
    if (text == line || *text != ':')
        return false;
    text += 1 + strspn(text + 1, " ");
    lock.is_held = strncmp(text, arrow, strlen(arrow)) != 0;
    if (sscanf(text + (lock.is_held ? 0 : strlen(arrow)), "%7s %*15s %*15s %d %8x:%8x:%" SCNu64, kind, &lock.pid,
               &major, &minor, &lock.inode) != 5)
        return false;
    lock.is_flock = strcmp(kind, "FLOCK") == 0;
    lock.device = makedev(major, minor);
    *ret = lock;
    return lock.is_flock || strcmp(kind, "POSIX") == 0 || strcmp(kind, "OFDLCK") == 0;
}

static uint64_t number_after(const char *text, const char *key)
{
    const char *found = strstr(text, key);
    return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

/* The file that a descriptor leads to. False if that is not known. */
static bool find_file(int pid, int descriptor, struct proc_lock *ret)
{
    char name[32], text[DESCRIPTOR_MAX];
    size_t length;
    struct file_system_mount mount;
    snprintf(name, sizeof name, "fdinfo/%d", descriptor);
    CLEANUP_CLOSE int info = proc_file_open(pid, name);
    CLEANUP_CLOSE int file = info < 0 ? -1 : proc_file_open(pid, "mountinfo");
    CLEANUP_FREE char *mounts = file < 0 ? NULL : file_read_all(file, MOUNTS_MAX, &length);
    if (!mounts)
        return false;
    text[file_read_at(info, 0, text, sizeof text - 1)] = '\0';
    uint64_t id = number_after(text, "mnt_id:\t");
    ret->inode = number_after(text, "\nino:\t");
    for (const char *at = mounts; file_system_next_mount(&at, &mount);)
        if (mount.id == id) {
            ret->device = mount.device;
            return ret->inode != 0;
        }
    return false;
}

int proc_locks_find_holder(int pid, int descriptor, bool is_flock, struct work *work)
{
    struct proc_lock lock, wanted;
    char line[LINE_SIZE_MAX];
    int fd = find_file(pid, descriptor, &wanted) ? proc_file_open(0, "locks") : -1, found = 0;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "re");
    if (!file && fd >= 0)
        close(fd);
    bool is_one = file != NULL;
    for (unsigned i = 0; is_one && fgets(line, sizeof line, file); i++) {
        is_one = i < LINES_MAX && work_take_steps(work, WORK_OF_AN_ENTRY);
        if (!proc_lock_line(line, &lock) || !lock.is_held || lock.is_flock != is_flock ||
            lock.device != wanted.device || lock.inode != wanted.inode)
            continue;
        if (!is_flock && lock.pid == pid) /* which hinders other processes only */
            continue;
        is_one &= lock.pid > 0 && (!found || found == lock.pid);
        found = lock.pid;
    }
    if (file)
        fclose(file);
    return is_one ? found : 0;
}
