/* SPDX-License-Identifier: MIT */
/*
 * The file behind a shm: store. The loop in rbk_shm_file_open has two ends: a name that leads to a
 * good file, and a file of ours that got the name. All else is an error or another turn.
 */
#include "shm_file.h"

#include "embedded.h"
#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY    "/dev/shm"
#define SIZE_DEFAULT ((size_t)16 << 20)
#define MODE_DEFAULT 0600u

/* Read as a number, it differs on a machine of the other byte order. */
#define MAGIC 0x5245444255434b54u

/* Bump when the meaning of bytes changes and no size does. */
#define VERSION 1u

/* Mutexes of two C libraries have little in common but their size. */
#ifdef __GLIBC__
#define LIBC 1u
#else
#define LIBC 2u
#endif

#define FORMAT                                                                                  \
    ((uint64_t)VERSION << 56 | (uint64_t)LIBC << 48 | (uint64_t)sizeof(pthread_mutex_t) << 32 | \
     (uint64_t)sizeof(struct rbk_shm_header) << 8 | sizeof(long))

_Static_assert(sizeof(struct rbk_shm_lock) == 64, "a lock has a cache line");
_Static_assert(offsetof(struct rbk_shm_header, locks) == 512, "locks begin on a cache line");
_Static_assert(sizeof(struct rbk_shm_header) == 8192, "the table begins on a page");

/* Turns of the loop before giving up: each means that another process made or removed the file at
 * just this moment. */
#define TURNS 100

struct opening {
    const struct rbk_shm_wanted *wanted;
    char path[sizeof DIRECTORY + 256];
    char boot[RBK_SHM_BOOT_LEN + 4];
    uint64_t time_namespace;
    struct rbk_shm_file *file;
    struct redbucket_error *error;
};

static enum redbucket_status fail(const struct opening *opening, enum redbucket_status status,
                                  const char *what)
{
    return rbk_fail(opening->error, status, -1, "shm:%s: %s", opening->wanted->name, what);
}

static enum redbucket_status fail_missing(const struct opening *opening)
{
    return fail(opening, REDBUCKET_ERROR_UNAVAILABLE, "there is no such store");
}

static enum redbucket_status fail_system(const struct opening *opening, const char *what)
{
    char text[320];
    int number = errno;

    (void)snprintf(text, sizeof text, "shm:%.200s: %s", opening->wanted->name, what);
    return rbk_fail_system(opening->error, number, text);
}

/* This boot's name, and the time namespace that this process lives in. */
static enum redbucket_status learn_clock(struct opening *opening)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, opening->boot, RBK_SHM_BOOT_LEN);
    struct stat stat_buffer;

    if (fd >= 0)
        (void)close(fd);
    if (len != RBK_SHM_BOOT_LEN)
        return fail(opening, REDBUCKET_ERROR_SYSTEM, "can't read this boot's id from /proc");
    /* Kernels before 5.6 have no time namespaces: 0. */
    if (stat("/proc/self/ns/time", &stat_buffer) == 0)
        opening->time_namespace = stat_buffer.st_ino;
    return REDBUCKET_OK;
}

/* Same boot: same clock, whatever else. */
static bool of_this_boot(const struct opening *opening, const struct rbk_shm_header *header)
{
    return memcmp(header->boot, opening->boot, RBK_SHM_BOOT_LEN) == 0 &&
           header->clock == CLOCK_BOOTTIME;
}

static enum redbucket_status check_file(const struct opening *opening, const struct stat *file)
{
    if (!S_ISREG(file->st_mode))
        return fail(opening, REDBUCKET_ERROR_FOREIGN, "is not a regular file");
    if (file->st_uid != geteuid() && file->st_uid != 0)
        return rbk_fail(opening->error, REDBUCKET_ERROR_FOREIGN, -1,
                        "shm:%s: belongs to user %u, neither to us nor to root",
                        opening->wanted->name, (unsigned)file->st_uid);
    return REDBUCKET_OK;
}

static enum redbucket_status check_header(const struct opening *opening, const struct stat *file,
                                          const struct rbk_shm_header *header)
{
    if (header->magic != MAGIC)
        return fail(opening, REDBUCKET_ERROR_FOREIGN, "is not a store of this library");
    if (header->format != FORMAT)
        return fail(opening, REDBUCKET_ERROR_FOREIGN,
                    "was made by another version or build of this library");
    if (header->size != (uint64_t)file->st_size)
        return rbk_fail(opening->error, REDBUCKET_ERROR_FOREIGN, -1,
                        "shm:%s: is damaged: has %llu bytes and was made with %llu",
                        opening->wanted->name, (unsigned long long)file->st_size,
                        (unsigned long long)header->size);
    return REDBUCKET_OK;
}

static enum redbucket_status check_wanted(const struct opening *opening, const struct stat *file)
{
    const struct rbk_shm_wanted *wanted = opening->wanted;
    unsigned mode = file->st_mode & 0777;

    if (wanted->size != 0 && wanted->size != (uint64_t)file->st_size)
        return rbk_fail(opening->error, REDBUCKET_ERROR_MISMATCH, -1,
                        "shm:%s: exists with a size of %llu bytes, not the %zu asked for",
                        wanted->name, (unsigned long long)file->st_size, wanted->size);
    if (wanted->mode != 0 && wanted->mode != mode)
        return rbk_fail(opening->error, REDBUCKET_ERROR_MISMATCH, -1,
                        "shm:%s: exists with mode %04o, not the %04o asked for", wanted->name, mode,
                        wanted->mode);
    return REDBUCKET_OK;
}

static enum redbucket_status map(const struct opening *opening, int fd, size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (bytes == MAP_FAILED)
        return fail_system(opening, "mmap");
    opening->file->header = bytes;
    opening->file->table = (unsigned char *)bytes + sizeof(struct rbk_shm_header);
    opening->file->size = size;
    opening->file->table_size = size - sizeof(struct rbk_shm_header);
    return REDBUCKET_OK;
}

static bool init_lock(struct rbk_shm_lock *lock)
{
    pthread_mutexattr_t attributes;

    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    bool done = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0 &&
                pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0 &&
                pthread_mutex_init(&lock->mutex, &attributes) == 0;

    (void)pthread_mutexattr_destroy(&attributes);
    return done;
}

/* Makes a store of the mapped file's zeros. */
static enum redbucket_status format(const struct opening *opening)
{
    struct rbk_shm_header *header = opening->file->header;
    struct rbk_table_plan plan;
    uint64_t secret[2];

    if (!rbk_table_plan(opening->file->table_size, RBK_TABLE_SHARDS_MAX, &plan))
        return fail(opening, REDBUCKET_ERROR_UNSUPPORTED, "can't be of this size");
    if (!rbk_embedded_secret(secret))
        return fail_system(opening, "getrandom");
    for (unsigned i = 0; i < RBK_TABLE_SHARDS_MAX; i++) {
        if (!init_lock(&header->locks[i]))
            return fail(opening, REDBUCKET_ERROR_UNSUPPORTED, "this system has no robust mutexes");
    }
    rbk_table_format(opening->file->table, opening->file->table_size, &plan, secret);
    memcpy(header->boot, opening->boot, RBK_SHM_BOOT_LEN);
    header->clock = CLOCK_BOOTTIME;
    header->time_namespace = opening->time_namespace;
    header->size = opening->file->size;
    header->format = FORMAT;
    header->magic = MAGIC;
    return REDBUCKET_OK;
}

/* Where a process may not write so large a file, trying to would end it by a signal. */
static bool may_write(size_t size)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           size <= limit.rlim_cur;
}

/* Allocates all space now: a write to a hole in a full file system would be a SIGBUS later. */
static enum redbucket_status fill(const struct opening *opening, int fd)
{
    size_t size = opening->wanted->size != 0 ? opening->wanted->size : SIZE_DEFAULT;
    unsigned mode = opening->wanted->mode != 0 ? opening->wanted->mode : MODE_DEFAULT;
    int number;

    do {
        number = may_write(size) ? posix_fallocate(fd, 0, (off_t)size) : EFBIG;
    } while (number == EINTR);
    errno = number;
    if (number != 0)
        return fail_system(opening, "can't allocate its space");
    if (fchmod(fd, mode) != 0)
        return fail_system(opening, "chmod");
    enum redbucket_status status = map(opening, fd, size);

    return status == REDBUCKET_OK ? format(opening) : status;
}

/* *again when somebody was faster. */
static enum redbucket_status give_name(const struct opening *opening, int fd, bool *again)
{
    char self[64];

    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, self, AT_FDCWD, opening->path, AT_SYMLINK_FOLLOW) == 0)
        return REDBUCKET_OK;
    *again = errno == EEXIST;
    return *again ? REDBUCKET_OK : fail_system(opening, "can't be given its name");
}

/* Makes the file without a name, then gives it its name. *again when somebody was faster. */
static enum redbucket_status create(const struct opening *opening, bool *again)
{
    int fd = open(DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        return fail_system(opening, "can't make a file in " DIRECTORY);
    enum redbucket_status status = fill(opening, fd);

    if (status == REDBUCKET_OK)
        status = give_name(opening, fd, again);
    if (status != REDBUCKET_OK || *again)
        rbk_shm_file_close(opening->file);
    (void)close(fd);
    return status;
}

/* Waits for the lock on an old file, which is only ever held for a moment. */
static enum redbucket_status lock_file(const struct opening *opening, int fd)
{
    double until = rbk_embedded_now() + opening->wanted->timeout;

    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return fail_system(opening, "flock");
        if (rbk_embedded_now() > until)
            return fail(opening, REDBUCKET_ERROR_TIMEOUT,
                        "another process holds the lock to replace it");
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return REDBUCKET_OK;
}

/* Takes the name from a file that another boot left behind, unless somebody else just did. */
static enum redbucket_status discard(const struct opening *opening, int fd, const struct stat *file)
{
    struct stat named;
    enum redbucket_status status = lock_file(opening, fd);

    if (status != REDBUCKET_OK)
        return status;
    if (stat(opening->path, &named) == 0 && named.st_ino == file->st_ino &&
        named.st_dev == file->st_dev && unlink(opening->path) != 0)
        status = fail_system(opening, "is of another boot and can't be removed");
    /* Closing it isn't enough: another thread's child may have the descriptor as well. */
    (void)flock(fd, LOCK_UN);
    return status;
}

/* Checks and maps an open file. *again when it was of another boot and is gone. */
static enum redbucket_status adopt(const struct opening *opening, int fd, bool *again)
{
    struct rbk_shm_header header = {0};
    struct stat file;
    enum redbucket_status status;

    if (fstat(fd, &file) != 0)
        return fail_system(opening, "fstat");
    status = check_file(opening, &file);
    if (status != REDBUCKET_OK)
        return status;
    if (pread(fd, &header, offsetof(struct rbk_shm_header, locks), 0) < 0)
        return fail_system(opening, "read");
    status = check_header(opening, &file, &header);
    if (status != REDBUCKET_OK)
        return status;
    if (!of_this_boot(opening, &header)) {
        if (opening->wanted->no_other)
            return fail_missing(opening);
        status = discard(opening, fd, &file);
        *again = status == REDBUCKET_OK;
        return status;
    }
    if (header.time_namespace != opening->time_namespace)
        return fail(opening, REDBUCKET_ERROR_FOREIGN,
                    "belongs to another time namespace, whose clock is not ours");
    status = check_wanted(opening, &file);
    return status == REDBUCKET_OK ? map(opening, fd, (size_t)file.st_size) : status;
}

/* One turn: adopts what has the name, or makes it. */
static enum redbucket_status turn(const struct opening *opening, bool *again)
{
    int fd = open(opening->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0 && errno == ENOENT)
        return opening->wanted->no_other ? fail_missing(opening) : create(opening, again);
    if (fd < 0)
        return errno == ELOOP ? fail(opening, REDBUCKET_ERROR_FOREIGN, "is a symbolic link")
                              : fail_system(opening, "can't be opened");
    enum redbucket_status status = adopt(opening, fd, again);

    (void)close(fd);
    return status;
}

enum redbucket_status rbk_shm_file_open(const struct rbk_shm_wanted *wanted,
                                        struct rbk_shm_file *file, struct redbucket_error *error)
{
    struct opening opening = {.wanted = wanted, .file = file, .error = error};
    enum redbucket_status status = learn_clock(&opening);
    bool again = status == REDBUCKET_OK;

    *file = (struct rbk_shm_file){.header = NULL};
    (void)snprintf(opening.path, sizeof opening.path, DIRECTORY "/%s", wanted->name);
    for (int turns = 0; again && turns < TURNS; turns++) {
        again = false;
        status = turn(&opening, &again);
    }
    if (again)
        return fail(&opening, REDBUCKET_ERROR_SYSTEM, "other processes keep replacing it");
    return status;
}

void rbk_shm_file_close(struct rbk_shm_file *file)
{
    if (file->header != NULL)
        (void)munmap(file->header, file->size);
    file->header = NULL;
}
