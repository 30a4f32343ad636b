#include "util/file_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "util/file.h"
#include "util/file_system.h"
#include "util/helper.h"
#include "util/same_file.h"

enum {
    LINKS_MAX = 40, /* on the way to a file, as the kernel has it */
    DEPTH_MAX = 128,
    PATH_ROOM = 2 * PATH_MAX, /* of a path with the text of a link in it */
    AGAIN_MAX = 16,           /* times that the kernel asks to try again, because something was renamed meanwhile */
    GROUPS_MAX = 64,
    STATUS_ROOM = 16 * 1024,
    SELF_ROOM = 64,
    PROGRAM_HEAD = 4096,
};

struct file_reader {
    uid_t user;
    gid_t groups[GROUPS_MAX];
    size_t group_count;
};

const struct file_root file_root_machine = {.fd = AT_FDCWD, .name = "", .is_local = true};

/* Who follows a path: this process, which must not leave local file systems, or the helper, which may wait. */
enum follower { FROM_HERE, FROM_HELPER };

/* The user's own directories are not watched. */
static bool is_watched(const struct file_root *root, enum follower follower)
{
    return follower == FROM_HERE && (root->confined || root->fd == AT_FDCWD);
}

/* ---- The kernel's way: openat2(2), since Linux 5.6 ---- */

/* The kernel's struct open_how and its flags, which older headers lack. */
struct how {
    uint64_t flags, mode, resolve;
};

enum { RESOLVE_ONE_MOUNT = 0x01, RESOLVE_NO_MAGIC_LINKS = 0x02, RESOLVE_BELOW_ROOT = 0x10 };

#ifndef SYS_openat2
#define SYS_openat2 437 /* of all machines */
#endif

/* The kernel has no such call, or a filter (seccomp) forbids it. */
static bool is_missing(int error)
{
    return error == ENOSYS || error == EPERM;
}

/* EXDEV: the path leads to another mount, and `is_watched` forbids it. */
static int resolve(const struct file_root *root, const char *path, int flags, bool is_watched)
{
    static atomic_bool missing;
    const struct how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                            .resolve = RESOLVE_NO_MAGIC_LINKS | (root->confined ? RESOLVE_BELOW_ROOT : 0) |
                                       (is_watched ? RESOLVE_ONE_MOUNT : 0)};
    if (atomic_load_explicit(&missing, memory_order_relaxed)) {
        errno = ENOSYS;
        return -1;
    }
    for (unsigned i = 0; i < AGAIN_MAX; i++) {
        long fd = syscall(SYS_openat2, root->fd, path, &how, sizeof how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) {
            if (fd < 0 && is_missing(errno))
                atomic_store_explicit(&missing, true, memory_order_relaxed);
            return (int)fd;
        }
    }
    return -1;
}

/* ---- Step by step, where the kernel cannot, or the directories must be looked at ---- */

static bool is_member(const struct file_reader *reader, gid_t group)
{
    for (size_t i = 0; i < reader->group_count; i++)
        if (reader->groups[i] == group)
            return true;
    return false;
}

enum permission { MAY_SEARCH = 1, MAY_READ = 4 };

/* Whether the reader may read a file, or search a directory. If not, errno says so. */
static bool is_permitted(const struct file_reader *reader, const struct stat *st, unsigned permission)
{
    unsigned shift = !reader ? 0 : st->st_uid == reader->user ? 6 : is_member(reader, st->st_gid) ? 3 : 0;
    if (!reader || (st->st_mode >> shift & permission) == permission)
        return true;
    errno = EACCES;
    return false;
}

/* The directories from the root to where the walk is: ".." is the one before, whatever is renamed meanwhile. */
struct walk {
    const struct file_root *root;
    bool is_watched; /* no directory is entered that is not on a local file system */
    int folders[DEPTH_MAX];
    dev_t devices[DEPTH_MAX]; /* likewise */
    size_t depth;
    unsigned links;
    char left[PATH_ROOM]; /* of the path */
};

static int here(const struct walk *walk)
{
    return walk->depth ? walk->folders[walk->depth - 1] : walk->root->fd;
}

/*
 * Looks at what was found. EXDEV: it is not on a local file system. The same device is the same file system, as long as
 * the directory before is open.
 */
static bool look_at(const struct walk *walk, int fd, struct stat *ret)
{
    if (!walk->is_watched)
        return fstat(fd, ret) == 0;
    dev_t before = walk->depth ? walk->devices[walk->depth - 1] : walk->root->device;
    bool is_known = file_system_look(fd, ret);
    if ((is_known && before && before == ret->st_dev) ||
        (file_system_is_local(fd, walk->root->process) && (is_known || fstat(fd, ret) == 0)))
        return true;
    errno = EXDEV;
    return false;
}

static bool enter(struct walk *walk, int folder, const struct stat *st)
{
    if (walk->depth == DEPTH_MAX) {
        close(folder);
        errno = ELOOP;
        return false;
    }
    walk->devices[walk->depth] = st->st_dev;
    walk->folders[walk->depth++] = folder;
    return true;
}

/* Looks at a directory, and enters it. */
static bool look_and_enter(struct walk *walk, int folder)
{
    struct stat st;
    if (folder < 0)
        return false;
    if (look_at(walk, folder, &st))
        return enter(walk, folder, &st);
    int saved = errno;
    close(folder);
    errno = saved;
    return false;
}

static void leave_all(struct walk *walk)
{
    int saved = errno;
    while (walk->depth)
        close(walk->folders[--walk->depth]);
    errno = saved;
}

/* The root directory of this program. qemu-user takes "/" for the folder of the emulated program's libraries. */
static int open_own_root(void)
{
    int fd = open("/proc/self/root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* To where an absolute path begins. */
static bool begin_at_root(struct walk *walk)
{
    leave_all(walk);
    return walk->root->confined || look_and_enter(walk, open_own_root());
}

static bool go_up(struct walk *walk)
{
    if (walk->depth && walk->root->confined) {
        close(walk->folders[--walk->depth]);
        return true;
    }
    if (walk->root->confined)
        return true;
    return look_and_enter(walk, openat(here(walk), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Puts the text of a link in front of what is left of the path. Links of /proc may be more than their text. */
static bool follow_link(struct walk *walk, int link)
{
    char text[PATH_ROOM];
    struct statfs fs;
    ssize_t length = readlinkat(link, "", text, PATH_MAX);
    if (length < 0)
        return false;
    errno = ELOOP;
    if (++walk->links > LINKS_MAX || fstatfs(link, &fs) < 0 || fs.f_type == 0x9fa0 /* PROC_SUPER_MAGIC */)
        return false;
    int needed = snprintf(text + length, sizeof text - (size_t)length, "%s", walk->left);
    errno = ENAMETOOLONG;
    if (!length || length >= PATH_MAX || needed < 0 || (size_t)(length + needed) >= sizeof text)
        return false;
    memcpy(walk->left, text, (size_t)(length + needed) + 1);
    return text[0] != '/' || begin_at_root(walk);
}

/* Takes the first component of what is left. False: there is none any more. *ret_is_last: it may be any file. */
static bool next_component(struct walk *walk, char ret[NAME_MAX + 1], bool *ret_is_last)
{
    const char *at = walk->left + strspn(walk->left, "/");
    size_t length = strcspn(at, "/");
    if (!length || length > NAME_MAX)
        return false;
    memcpy(ret, at, length);
    ret[length] = '\0';
    *ret_is_last = !at[length];
    memmove(walk->left, at + length, strlen(at + length) + 1);
    return true;
}

/* Whether the reader may search the directory in which the walk is. */
static bool may_search(const struct walk *walk)
{
    struct stat st;
    return !walk->root->reader || (fstat(here(walk), &st) == 0 && is_permitted(walk->root->reader, &st, MAY_SEARCH));
}

/* The descriptor of what the path leads to, with `flags`. */
static int walk_to_end(struct walk *walk, int flags)
{
    char name[NAME_MAX + 1];
    bool is_last = false;
    struct stat st;
    while (next_component(walk, name, &is_last)) {
        if (!may_search(walk))
            return -1;
        if (strcmp(name, ".") == 0)
            continue;
        if (strcmp(name, "..") == 0) {
            if (!go_up(walk))
                return -1;
            continue;
        }
        int fd = openat(here(walk), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return -1;
        bool is_seen = look_at(walk, fd, &st);
        if (!is_seen || S_ISLNK(st.st_mode)) {
            bool followed = is_seen && follow_link(walk, fd);
            int saved = errno;
            close(fd);
            errno = saved;
            if (!followed)
                return -1;
        } else if (is_last && flags == O_PATH) {
            return fd;
        } else if (is_last) {
            close(fd);
            return openat(here(walk), name, flags | O_NOFOLLOW | O_CLOEXEC);
        } else if (!enter(walk, fd, &st)) {
            return -1;
        }
    }
    if (walk->left[strspn(walk->left, "/")]) { /* a component that no file can have */
        errno = ENAMETOOLONG;
        return -1;
    }
    return openat(here(walk), ".", O_PATH | O_CLOEXEC); /* a directory */
}

static int walk_to(const struct file_root *root, const char *path, int flags, bool is_watched)
{
    struct walk walk = {.root = root, .is_watched = is_watched};
    if (strlen(path) >= PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (is_watched && path[0] != '/' && !root->confined && !file_system_is_local(root->fd, 0)) {
        errno = EXDEV;
        return -1;
    }
    strcpy(walk.left, path);
    int fd = path[0] == '/' && !begin_at_root(&walk) ? -1 : walk_to_end(&walk, flags);
    leave_all(&walk);
    return fd;
}

/* EXDEV: what the path leads to is not on a local file system, and only the helper may follow it. */
static int reach(const struct file_root *root, const char *path, int flags, enum follower follower)
{
    bool watched = is_watched(root, follower);
    if (!root->confined && root->fd != AT_FDCWD)
        path += strspn(path, "/");
    if (root->fd == -1 || !path[0]) {
        errno = ENOENT;
        return -1;
    }
    if (watched && !root->is_local) {
        errno = EXDEV;
        return -1;
    }
    bool is_one_step = !root->reader && !(watched && path[0] != '/' && !root->confined);
    int fd = is_one_step ? resolve(root, path, flags, watched) : -1;
    bool is_left = fd < 0 && (!is_one_step || is_missing(errno) || (watched && errno == EXDEV));
    return is_left ? walk_to(root, path, flags, watched) : fd;
}

/* ---- Opening what was found ---- */

/* Whether reading a regular file of this file system asks the kernel, and may have effects. */
static bool is_of_kernel(int fd)
{
    static const unsigned kernel[] = {
        0x9fa0 /* proc */,         0x62656572 /* sysfs */,    0x64626720 /* debugfs */,  0x74726163 /* tracefs */,
        0x73636673 /* security */, 0x63677270 /* cgroup 2 */, 0x27e0eb /* cgroup */,     0xcafe4a11 /* bpf */,
        0x6165676c /* pstore */,   0x62656570 /* configfs */, 0xde5e81e4 /* efivarfs */, 0x42494e4d /* binfmt_misc */,
        0xf97cff8c /* selinux */,  0x6e736673 /* nsfs */,     0x65735543 /* fusectl */,
    };
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(kernel); i++)
        if ((unsigned)fs.f_type == kernel[i])
            return true;
    return false;
}

/* Opens a file that was found, for reading. ENOENT: there is no /proc. */
static int open_found(int place, struct stat *ret)
{
    char self[SELF_ROOM];
    snprintf(self, sizeof self, "/proc/self/fd/%d", place);
    return file_open(self, ret);
}

/* Without /proc. What was found is a regular file; what is opened now may be another one. */
static int open_again(const struct file_root *root, const char *path, const struct stat *found, struct stat *ret)
{
    CLEANUP_CLOSE int fd = reach(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, FROM_HERE);
    if (fd < 0 || fstat(fd, ret) < 0)
        return -1;
    if (!is_same_file(found, ret)) {
        errno = EINVAL;
        return -1;
    }
    int opened = fd;
    fd = -1;
    return opened;
}

static bool is_readable_file(int place, const struct stat *st)
{
    if (S_ISREG(st->st_mode) && !is_of_kernel(place))
        return true;
    errno = EINVAL;
    return false;
}

/* ---- By the helper: functions that begin with "far" run there ---- */

struct path_question {
    bool is_confined, has_root, has_reader;
    struct file_reader reader;
    char path[PATH_MAX];
};

static void answer_stat(const struct stat *st, struct helper_answer *ret)
{
    memcpy(ret->bytes, st, sizeof *st);
    ret->size = sizeof *st;
}

/* Finds what is at a path. Without a path: looks at what is open. */
static int far_find(const void *question, size_t size, int fd, struct helper_answer *ret)
{
    struct path_question asked = {.path = ""};
    struct stat st;
    memcpy(&asked, question, MIN(size, sizeof asked - 1));
    const struct file_root root = {.fd = asked.has_root ? fd : AT_FDCWD,
                                   .confined = asked.is_confined,
                                   .reader = asked.has_reader ? &asked.reader : NULL};
    ret->fd = asked.path[0] ? reach(&root, asked.path, O_PATH, FROM_HELPER) : fd;
    if (ret->fd < 0 || fstat(ret->fd, &st) < 0)
        return errno;
    answer_stat(&st, ret);
    return 0;
}

/* Copies bytes to memory that has room for them. Returns an errno. */
static int far_read(int fd, uint8_t *bytes, size_t size, struct helper_answer *ret)
{
    for (size_t done = 0; done < size;) {
        size_t wanted = MIN(size - done, (size_t)HELPER_UNIT), n = file_read_at(fd, done, bytes + done, wanted);
        done += n;
        if (n < wanted && errno)
            return errno;
        if (n < wanted) /* the file has become shorter */
            return 0;
        helper_progress(ret, n);
    }
    return 0;
}

/* Copies a file that was found, or the first bytes of it. Its descriptor has the mode and the times of the file. */
static int far_copy(const void *question, size_t size, int fd, struct helper_answer *ret)
{
    uint64_t most;
    struct stat st;
    memcpy(&most, question, MIN(size, sizeof most));
    if (fstat(fd, &st) < 0 || !is_readable_file(fd, &st))
        return errno;
    CLEANUP_CLOSE int file = open_found(fd, &st);
    if (file < 0)
        return errno;
    uint64_t length = MIN((uint64_t)MAX(st.st_size, (off_t)0), most);
    if (length > ret->most || length > SIZE_MAX / 2)
        return EFBIG;
    answer_stat(&st, ret);
    ret->fd = file_in_memory("cdacq");
    if (ret->fd < 0 || !length)
        return ret->fd < 0 ? errno : 0;
    void *bytes = MAP_FAILED;
    if (ftruncate(ret->fd, (off_t)length) == 0)
        bytes = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, 0);
    if (bytes == MAP_FAILED)
        return errno;
    int error = far_read(file, bytes, (size_t)length, ret);
    (void)munmap(bytes, (size_t)length);
    const struct timespec times[] = {st.st_atim, st.st_mtim};
    if (!error && (fchmod(ret->fd, st.st_mode & 0777) < 0 || futimens(ret->fd, times) < 0))
        error = errno;
    return error;
}

/* Asks for a descriptor and its fstat(). */
static int ask_helper(helper_work *work, const void *question, size_t size, int fd, struct stat *ret)
{
    struct helper_call call = {.work = work,
                               .question = question,
                               .question_size = size,
                               .question_fd = fd,
                               .answer = ret,
                               .answer_room = sizeof *ret};
    return helper_ask(&call) ? call.answer_fd : -1;
}

static int find_by_helper(const struct file_root *root, const char *path, struct stat *ret)
{
    struct path_question question = {
        .is_confined = root->confined, .has_root = root->fd != AT_FDCWD, .has_reader = root->reader != NULL};
    size_t length = strlen(path);
    if (length >= sizeof question.path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (root->reader)
        question.reader = *root->reader;
    memcpy(question.path, path, length);
    return ask_helper(far_find, &question, offsetof(struct path_question, path) + length,
                      question.has_root ? root->fd : -1, ret);
}

static int copy_by_helper(int place, uint64_t most, struct stat *ret)
{
    return ask_helper(far_copy, &most, sizeof most, place, ret);
}

/* ---- Finding and opening, by this process or by the helper ---- */

/* *ret_is_far: it is not on a local file system. */
static int find(const struct file_root *root, const char *path, struct stat *ret, bool *ret_is_far)
{
    CLEANUP_CLOSE int place = reach(root, path, O_PATH, FROM_HERE);
    *ret_is_far = place < 0 && errno == EXDEV && is_watched(root, FROM_HERE);
    if (*ret_is_far)
        return find_by_helper(root, path, ret);
    if (place < 0 || fstat(place, ret) < 0)
        return -1;
    int found = place;
    place = -1;
    return found;
}

int file_root_find(const struct file_root *root, const char *path, struct stat *ret)
{
    bool is_far;
    return find(root, path, ret, &is_far);
}

int file_root_open_known(const struct file_root *root, const char *path,
                         bool (*knows)(const struct stat *st, const void *context), const void *context,
                         struct stat *ret)
{
    struct stat found;
    bool is_far;
    CLEANUP_CLOSE int place = find(root, path, &found, &is_far);
    if (place < 0 || (!is_far && !is_readable_file(place, &found)))
        return -1;
    if (!(knows && knows(&found, context)) && !is_permitted(root->reader, &found, MAY_READ))
        return -1;
    if (is_far)
        return copy_by_helper(place, UINT64_MAX, ret);
    int fd = open_found(place, ret);
    return fd < 0 && errno == ENOENT ? open_again(root, path, &found, ret) : fd;
}

int file_root_open_file(const struct file_root *root, const char *path, struct stat *ret)
{
    return file_root_open_known(root, path, NULL, NULL, ret);
}

bool file_real_path(int fd, char *ret, size_t size)
{
    char self[SELF_ROOM];
    struct stat there, st;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(self, ret, size);
    if (length <= 0 || (size_t)length >= size || (!file_system_look(fd, &st) && fstat(fd, &st) < 0))
        return false;
    ret[length] = '\0';
    CLEANUP_CLOSE int place = ret[0] == '/' ? file_root_find(&file_root_machine, ret, &there) : -1;
    return place >= 0 && is_same_file(&there, &st);
}

/* ---- Roots ---- */

static void look_at_root(struct file_root *root)
{
    struct stat st;
    root->is_local = root->fd >= 0 && root->confined && file_system_is_local(root->fd, root->process);
    if (root->is_local && file_system_look(root->fd, &st))
        root->device = st.st_dev;
}

bool file_root_open(struct file_root *root, const char *directory, bool confined)
{
    *root = (struct file_root){.name = directory, .confined = confined};
    root->fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    look_at_root(root);
    return root->fd >= 0;
}

static void read_groups(const char *line, struct file_reader *ret)
{
    char *end;
    for (;; line = end) {
        unsigned long group = strtoul(line, &end, 10);
        if (end == line || ret->group_count == GROUPS_MAX || memchr(line, '\n', (size_t)(end - line)))
            return;
        ret->groups[ret->group_count++] = (gid_t)group;
    }
}

/* The last id in a line of /proc/PID/status, by which access to files is decided. */
static bool read_file_id(const char *status, const char *line, unsigned *ret)
{
    const char *at = strstr(status, line);
    return at && sscanf(at + strlen(line), "%*u %*u %*u %u", ret) == 1;
}

/*
 * Finds the user of a process; *ret is NULL if that is root, or who runs this program. False: it is not known.
 */
static bool find_reader(int pid, struct file_reader **ret)
{
    char path[SELF_ROOM];
    unsigned user, group;
    CLEANUP_FREE char *status = malloc(STATUS_ROOM);
    *ret = NULL;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    if (!status || !file_read_text(AT_FDCWD, path, status, STATUS_ROOM) || !read_file_id(status, "\nUid:", &user) ||
        !read_file_id(status, "\nGid:", &group))
        return false;
    if (!user || user == geteuid())
        return true;
    struct file_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return false;
    reader->user = user;
    reader->groups[reader->group_count++] = group;
    const char *groups = strstr(status, "\nGroups:");
    if (groups)
        read_groups(groups + strlen("\nGroups:"), reader);
    *ret = reader;
    return true;
}

bool file_root_open_process(struct file_root *root, int pid)
{
    char outside[PATH_MAX];
    *root = (struct file_root){.fd = -1, .confined = true, .process = pid};
    snprintf(root->room, sizeof root->room, "/proc/%d/root", pid);
    root->name = root->room;
    if (!find_reader(pid, &root->reader))
        return false;
    root->fd = open(root->room, O_PATH | O_DIRECTORY | O_CLOEXEC);
    ssize_t length = readlink(root->room, outside, sizeof outside);
    if (length > 1 && (size_t)length < sizeof outside)
        root->outside = strndup(outside, (size_t)length);
    look_at_root(root);
    return root->fd >= 0;
}

void file_root_close(struct file_root *root)
{
    if (root->fd >= 0)
        close(root->fd);
    free(root->outside);
    free(root->reader);
    *root = (struct file_root){.fd = -1, .name = ""};
}

const char *file_root_inside(const struct file_root *root, const char *path)
{
    size_t length = root->outside ? strlen(root->outside) : 0;
    return length && strncmp(path, root->outside, length) == 0 && path[length] == '/' ? path + length : path;
}

bool file_root_is_own(const struct file_root *root, int pid)
{
    char path[SELF_ROOM], own[SELF_ROOM], other[SELF_ROOM];
    struct stat here, there;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    ssize_t length = readlink("/proc/self/ns/mnt", own, sizeof own);
    if (root->reader || length <= 0 || readlink(path, other, sizeof other) != length ||
        memcmp(own, other, (size_t)length) != 0)
        return false;
    CLEANUP_CLOSE int machine = open_own_root();
    return machine >= 0 && root->is_local && fstat(machine, &here) == 0 && fstat(root->fd, &there) == 0 &&
           is_same_file(&here, &there);
}

/* ---- Paths that the user gives ---- */

/* The process whose part of /proc a path is in; 0: in none. *ret_rest is what comes after "/proc/PID". */
static int process_of(const char *path, const char **ret_rest)
{
    static const char proc[] = "/proc/";
    if (strncmp(path, proc, strlen(proc)) != 0)
        return 0;
    char *end;
    const char *number = path + strlen(proc);
    long pid = number[0] >= '1' && number[0] <= '9' ? strtol(number, &end, 10) : 0;
    if (pid <= 0 || pid > INT_MAX || *end != '/')
        return 0;
    *ret_rest = end;
    return (int)pid;
}

/* Looks at what a link of /proc/PID leads to. -1 with errno set. */
static int find_of_process(int pid, const char *path, struct stat *ret, bool *ret_is_far)
{
    const struct path_question nothing = {.path = ""};
    CLEANUP_CLOSE int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    *ret_is_far = !file_system_is_local(place, pid);
    if (*ret_is_far)
        return ask_helper(far_find, &nothing, offsetof(struct path_question, path), place, ret);
    if (fstat(place, ret) < 0)
        return -1;
    int found = place;
    place = -1;
    return found;
}

/* What the process has opened. */
static int open_of_process(int pid, const char *path, struct stat *ret)
{
    struct file_root root = {.fd = -1};
    struct stat found;
    bool is_far = false, known = find_reader(pid, &root.reader);
    CLEANUP_CLOSE int place = known ? find_of_process(pid, path, &found, &is_far) : -1;
    bool opens =
        place >= 0 && (is_far || is_readable_file(place, &found)) && is_permitted(root.reader, &found, MAY_READ);
    int fd = !opens ? -1 : is_far ? copy_by_helper(place, UINT64_MAX, ret) : open_found(place, ret);
    file_root_close(&root);
    return fd;
}

int file_open_program(int pid)
{
    char path[SELF_ROOM];
    struct stat st;
    bool is_far;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    CLEANUP_CLOSE int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    is_far = !file_system_is_local(place, pid);
    return is_far ? copy_by_helper(place, PROGRAM_HEAD, &st) : open_found(place, &st);
}

int file_open_regular(const char *path, struct stat *ret)
{
    const char *rest;
    struct file_root root;
    int pid = process_of(path, &rest);
    if (pid && strncmp(rest, "/root/", strlen("/root/")) == 0) {
        int fd = file_root_open_process(&root, pid) ? file_root_open_file(&root, rest + strlen("/root"), ret) : -1;
        int saved = errno;
        file_root_close(&root);
        errno = saved;
        return fd;
    }
    if (pid)
        return open_of_process(pid, path, ret);
    struct stat found;
    CLEANUP_CLOSE int place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0 || fstat(place, &found) < 0)
        return -1;
    if (!S_ISREG(found.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    int fd = open_found(place, ret);
    return fd < 0 && errno == ENOENT ? file_open(path, ret) : fd; /* without /proc, whose files are trusted then */
}
