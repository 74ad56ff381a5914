/* SPDX-License-Identifier: MIT */
/*
 * What the environment names is taken as it is: a wrong path fails the tests rather than have them
 * use another server. An old Redis is never looked for on the path, where "redis-server" is new.
 */
#include "server_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    const char *name;
    const char *variable;
    const char *on_path;
    const char *fetched;
};

static const struct place places[TEST_SERVER_KINDS] = {
    [TEST_REDIS] = {"redis", "REDIS_SERVER", "redis-server", "redis/redis-server"},
    [TEST_VALKEY] = {"valkey", "VALKEY_SERVER", "valkey-server", "valkey/bin/valkey-server"},
    [TEST_OLD_REDIS] = {"old-redis", "OLD_REDIS_SERVER", NULL, "old-redis/redis-server"},
};

const char *test_server_name(enum test_server_kind kind)
{
    return places[kind].name;
}

/* False also when it doesn't fit. */
static bool join(char path[PATH_MAX], const char *folder, size_t folder_len, const char *name)
{
    int len = snprintf(path, PATH_MAX, "%.*s/%s", (int)folder_len, folder, name);

    return len > 0 && len < PATH_MAX;
}

static bool find_on_path(const char *name, char path[PATH_MAX])
{
    const char *folder = getenv("PATH");

    while (folder != NULL && *folder != '\0') {
        size_t len = strcspn(folder, ":");

        if (len > 0 && join(path, folder, len, name) && access(path, X_OK) == 0)
            return true;
        folder += len + (folder[len] == ':');
    }
    return false;
}

bool test_server_program(enum test_server_kind kind, char path[PATH_MAX])
{
    const struct place *place = &places[kind];
    const char *said = getenv(place->variable);

    if (said != NULL && *said != '\0')
        return snprintf(path, PATH_MAX, "%s", said) < PATH_MAX;
    if (place->on_path != NULL && find_on_path(place->on_path, path))
        return true;
    return join(path, TEST_FETCHED, strlen(TEST_FETCHED), place->fetched) &&
           access(path, X_OK) == 0;
}

bool test_server_have(enum test_server_kind kind)
{
    char path[PATH_MAX];

    return kind == TEST_REDIS || test_server_program(kind, path);
}

/* One that speaks TLS names what it needs of OpenSSL. */
bool test_server_have_tls(enum test_server_kind kind)
{
    char path[PATH_MAX];
    char command[PATH_MAX + 32];

    if (kind == TEST_REDIS)
        return true;
    if (!test_server_program(kind, path))
        return false;
    snprintf(command, sizeof command, "grep -q SSL_CTX_new '%s'", path);
    return system(command) == 0;
}

unsigned test_server_version(const char *program)
{
    char command[PATH_MAX + 32];
    char line[256] = "";
    unsigned major = 0;
    unsigned minor = 0;
    unsigned patch = 0;
    FILE *output;

    snprintf(command, sizeof command, "'%s' --version", program);
    output = popen(command, "r");
    if (output == NULL)
        return 0;
    if (fgets(line, sizeof line, output) == NULL)
        line[0] = '\0';
    pclose(output);
    if (strstr(line, " v=") == NULL ||
        sscanf(strstr(line, " v="), " v=%u.%u.%u", &major, &minor, &patch) != 3)
        return 0;
    return major * 10000 + minor * 100 + patch;
}
