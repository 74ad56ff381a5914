/* SPDX-License-Identifier: MIT */
/*
 * Reading what servers say about themselves. What a server doesn't say, or won't, is unknown and no
 * fault: managed servers refuse INFO, and some leave lines out.
 */
#include "redis/server.h"

#include "url.h"

#include <stdio.h>
#include <string.h>

/* No part of a version is that large. */
#define PART_MAX 1000000u

static const char *read_digits(const char *text, unsigned *number)
{
    unsigned value = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        value = value < PART_MAX ? value * 10 + (unsigned)(*text - '0') : PART_MAX;
    *number = value;
    return text;
}

bool rbk_server_version(const char *text, unsigned version[3])
{
    memset(version, 0, 3 * sizeof version[0]);
    if (*text < '0' || *text > '9')
        return false;
    for (size_t i = 0; i < 3; i++) {
        text = read_digits(text, &version[i]);
        if (text[0] != '.' || text[1] < '0' || text[1] > '9')
            break;
        text++;
    }
    return true;
}

static bool is(const char *text, const char *other)
{
    return strcmp(text, other) == 0;
}

static unsigned long long read_bytes(const char *text)
{
    unsigned long long bytes = 0;

    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(bytes, 10ull, &bytes) ||
            __builtin_add_overflow(bytes, (unsigned long long)(*text - '0'), &bytes))
            return 0;
    }
    return bytes;
}

static void read_membership(struct rbk_server *server, const char *value)
{
    server->cluster = is(value, "1");
    server->alone = is(value, "0");
}

static void read_line(struct rbk_server *server, const char *name, const char *value)
{
    if (is(name, "redis_version"))
        (void)rbk_server_version(value, server->version);
    else if (is(name, "valkey_version"))
        (void)rbk_server_version(value, server->valkey);
    else if (is(name, "redis_mode") || is(name, "server_mode"))
        server->sentinel = is(value, "sentinel");
    else if (is(name, "cluster_enabled"))
        read_membership(server, value);
    else if (is(name, "role"))
        server->replica = is(value, "slave") || is(value, "replica");
    else if (is(name, "connected_slaves"))
        server->counts_replicas = rbk_url_number(value, 0, 65535, &server->replicas);
    else if (is(name, "aof_enabled"))
        server->aof = is(value, "1");
    else if (is(name, "maxmemory"))
        server->maxmemory = read_bytes(value);
    else if (is(name, "maxmemory_policy"))
        (void)snprintf(server->eviction, sizeof server->eviction, "%s", value);
}

/* Copies up to a line's end, as one that may be shown; true when it was short enough for one that
 * is of interest. */
static bool copy_line(const char *text, size_t len, char line[RBK_SERVER_WORDS_SIZE])
{
    char raw[RBK_SERVER_WORDS_SIZE];

    if (len > 0 && text[len - 1] == '\r')
        len--;
    if (len >= sizeof raw)
        return false;
    memcpy(raw, text, len);
    raw[len] = '\0';
    rbk_server_words(raw, line);
    return true;
}

void rbk_server_read_info(struct rbk_server *server, const struct rbk_reply *info)
{
    const char *text = info->text;
    const char *end;

    if (info->type != RBK_REPLY_STRING)
        return;
    end = text + info->len;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t len = (size_t)((newline == NULL ? end : newline) - text);
        char line[RBK_SERVER_WORDS_SIZE];
        char *colon = copy_line(text, len, line) ? strchr(line, ':') : NULL;

        if (colon != NULL) {
            *colon = '\0';
            read_line(server, line, colon + 1);
        }
        text += len + 1;
    }
}

void rbk_server_read_role(struct rbk_server *server, const struct rbk_reply *role)
{
    const struct rbk_reply *name = role->elements;

    if (role->type != RBK_REPLY_ARRAY || role->len == 0 || name->type != RBK_REPLY_STRING)
        return;
    server->replica = is(name->text, "slave") || is(name->text, "replica");
    server->sentinel = is(name->text, "sentinel");
}
