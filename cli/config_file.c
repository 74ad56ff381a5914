/* SPDX-License-Identifier: MIT */
/*
 * Finds the configuration file and reads its bytes: -c, $REDBUCKET_CONFIG, redbucket.conf here,
 * /etc/redbucket.conf. A file that was named must be there; the other two may be missing, but one
 * that is there and can't be read is an error, or its limits would be forgotten in silence.
 */
#include "config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One byte more than may be, to see that there is more. */
#define BUFFER_SIZE (CLI_CONFIG_BYTES_MAX + 1)

/* Reads up to BUFFER_SIZE bytes; false with errno. Works on pipes too. */
static bool read_bytes(int fd, char *buffer, size_t *len)
{
    size_t used = 0;

    while (used < BUFFER_SIZE) {
        const ssize_t got = read(fd, buffer + used, BUFFER_SIZE - used);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    *len = used;
    return true;
}

static int parse_bytes(const char *path, const char *buffer, size_t len, struct cli_config *config)
{
    struct cli_config_fault fault;
    const enum redbucket_status status = rbk_config_parse(buffer, len, config, &fault);

    if (status == REDBUCKET_OK)
        return CLI_DONE;
    if (fault.line == 0)
        return rbk_cli_fail(rbk_cli_exit_of(status), path, "%s", fault.message);
    return rbk_cli_fail(CLI_USAGE, NULL, "%s:%d: %s", path, fault.line, fault.message);
}

static int load_fd(const char *path, int fd, struct cli_config *config)
{
    char *buffer = malloc(BUFFER_SIZE);
    size_t len;
    int result;

    if (buffer == NULL)
        result = rbk_cli_fail(CLI_STORE, path, "out of memory");
    else if (!read_bytes(fd, buffer, &len))
        result =
            rbk_cli_fail(CLI_USAGE, path, "%s, expected a configuration file", strerror(errno));
    else
        result = parse_bytes(path, buffer, len, config);
    free(buffer);
    return result;
}

/* Where a file that needn't be there isn't, *found stays false. */
static int load(const char *path, bool needed, struct cli_config *config, bool *found)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    int result;

    if (fd < 0 && !needed && (errno == ENOENT || errno == ENOTDIR))
        return CLI_DONE;
    if (fd < 0)
        return rbk_cli_fail(CLI_USAGE, path, "%s, expected a configuration file", strerror(errno));
    *found = true;
    result = load_fd(path, fd, config);
    close(fd);
    return result;
}

int rbk_config_find(const char *option, struct cli_config *config, const char **path)
{
    static const char *const usual[] = {"redbucket.conf", "/etc/redbucket.conf"};
    const char *named = option != NULL ? option : getenv("REDBUCKET_CONFIG");
    bool found = false;
    int result = CLI_DONE;

    memset(config, 0, sizeof(*config));
    *path = NULL;
    if (named != NULL && (named[0] != '\0' || option != NULL)) {
        *path = named;
        return load(named, true, config, &found);
    }
    for (size_t i = 0; i < 2 && result == CLI_DONE && !found; i++) {
        result = load(usual[i], false, config, &found);
        if (found)
            *path = usual[i];
    }
    return result;
}
