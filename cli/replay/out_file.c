/* SPDX-License-Identifier: MIT */
/*
 * Writing beside the file and renaming. A symbolic link keeps pointing where it did: what it points
 * to is replaced. The new file has the mode of the one that it replaces, or what the umask leaves.
 */
#include "out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * `temporary`, NULL where the path is written to as it is, becomes `target`. Every function below
 * returns false with errno set.
 */
struct out_file {
    int fd;
    char *temporary;
    char *target;
};

static enum redbucket_status system_error(int code, struct redbucket_error *error)
{
    *error = (struct redbucket_error){.status = REDBUCKET_ERROR_SYSTEM, .position = -1};
    snprintf(error->message, sizeof(error->message), "%s", strerror(code));
    return REDBUCKET_ERROR_SYSTEM;
}

/* The mode that a file has which is made now. */
static mode_t new_mode(void)
{
    const mode_t mask = umask(0);

    umask(mask);
    return 0666 & ~mask;
}

static bool open_beside(struct out_file *file, mode_t mode)
{
    const size_t size = strlen(file->target) + sizeof(".XXXXXX");
    char *name = malloc(size);

    if (!name)
        return false;
    snprintf(name, size, "%s.XXXXXX", file->target);
    file->fd = mkstemp(name);
    if (file->fd < 0) {
        const int code = errno;

        free(name);
        errno = code;
        return false;
    }
    file->temporary = name;
    return fchmod(file->fd, mode) == 0;
}

static bool out_open(struct out_file *file, const char *path)
{
    const bool standard = strcmp(path, "-") == 0;
    struct stat about;
    bool there;

    *file = (struct out_file){.fd = -1};
    if (standard) {
        file->fd = dup(STDOUT_FILENO);
        return file->fd >= 0;
    }
    there = stat(path, &about) == 0;
    if (there && !S_ISREG(about.st_mode)) {
        file->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return file->fd >= 0;
    }
    file->target = there ? realpath(path, NULL) : strdup(path);
    return file->target && open_beside(file, there ? about.st_mode & 07777 : new_mode());
}

static bool write_all(int fd, struct rbk_span bytes)
{
    while (bytes.len > 0) {
        const ssize_t written = write(fd, bytes.bytes, bytes.len);

        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            bytes.bytes += written;
            bytes.len -= (size_t)written;
        }
    }
    return true;
}

/* The file gets its name. */
static bool commit(struct out_file *file)
{
    const int fd = file->fd;

    if (file->temporary && fsync(fd) != 0)
        return false;
    file->fd = -1;
    if (close(fd) != 0)
        return false;
    if (!file->temporary)
        return true;
    if (rename(file->temporary, file->target) != 0)
        return false;
    free(file->temporary);
    file->temporary = NULL;
    return true;
}

/* What is left of it goes away. */
static void discard(struct out_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->target);
}

enum redbucket_status rbk_out_file_check(const char *path, struct redbucket_error *error)
{
    struct out_file file;
    const bool done = out_open(&file, path);
    const int code = errno;

    discard(&file);
    return done ? REDBUCKET_OK : system_error(code, error);
}

enum redbucket_status rbk_out_file_write(const char *path, struct rbk_span bytes,
                                         struct redbucket_error *error)
{
    struct out_file file;
    const bool done = out_open(&file, path) && write_all(file.fd, bytes) && commit(&file);
    const int code = errno;

    discard(&file);
    return done ? REDBUCKET_OK : system_error(code, error);
}
