/* SPDX-License-Identifier: MIT */
/*
 * A line of MONITOR is TIME [DB WHO] and the words in double quotes, with \n, \xHH and so on for
 * what doesn't print. The end is known by an ECHO that the test sends itself.
 */
#include "monitor.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#define LAST "that was all"

struct monitor {
    struct test_server *server;
    struct test_client *client;
    struct monitored command;
    bool asked;
};

struct monitor *monitor_start(struct test_server *server)
{
    struct monitor *monitor = calloc(1, sizeof *monitor);

    assert_non_null(monitor);
    monitor->server = server;
    monitor->client = test_client_open(server->socket);
    assert_non_null(monitor->client);
    redisReply *reply = test_client_ask(monitor->client, "MONITOR", NULL);

    assert_non_null(reply);
    assert_int_equal(reply->type, REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    return monitor;
}

static void forget(struct monitored *command)
{
    for (size_t i = 0; i < command->argc; i++)
        free(command->argv[i]);
    command->argc = 0;
}

void monitor_stop(struct monitor *monitor)
{
    forget(&monitor->command);
    test_client_close(monitor->client);
    free(monitor);
}

/* The byte behind a backslash; *at is left behind it. */
static char escaped(const char **at)
{
    static const char letters[] = "nrtab", bytes[] = "\n\r\t\a\b";
    char letter = *(*at)++;
    const char *known = strchr(letters, letter);
    unsigned hex;

    if (letter == 'x') {
        assert_int_equal(sscanf(*at, "%2x", &hex), 1);
        *at += 2;
        return (char)hex;
    }
    return known != NULL ? bytes[known - letters] : letter;
}

/* One word, whose quote has been seen; *at is left behind the other one. */
static void read_word(struct monitored *command, const char **at)
{
    char *word = malloc(strlen(*at) + 1);
    size_t len = 0;

    assert_non_null(word);
    while (**at != '"') {
        char byte = *(*at)++;

        assert_true(byte != '\0');
        word[len++] = byte == '\\' ? escaped(at) : byte;
    }
    (*at)++;
    word[len] = '\0';
    assert_true(command->argc < MONITOR_ARGUMENTS);
    command->argv[command->argc] = word;
    command->len[command->argc++] = len;
}

static void read_line(struct monitored *command, const char *line)
{
    const char *who = strchr(line, '[');
    const char *at = who == NULL ? NULL : strstr(who, "] ");

    assert_non_null(at);
    forget(command);
    command->by_script = strncmp(strchr(who, ' '), " lua]", 5) == 0;
    for (at += 2; *at == '"'; at += *at == ' ') {
        at++;
        read_word(command, &at);
    }
    assert_int_equal(*at, '\0');
}

const struct monitored *monitor_next(struct monitor *monitor)
{
    if (!monitor->asked)
        assert_true(test_server_do(monitor->server, "ECHO", LAST, NULL));
    monitor->asked = true;
    redisReply *line = test_client_receive(monitor->client);

    assert_non_null(line);
    assert_int_equal(line->type, REDIS_REPLY_STATUS);
    read_line(&monitor->command, line->str);
    freeReplyObject(line);
    return monitored_is(&monitor->command, "ECHO") && monitored_has(&monitor->command, 1, LAST)
               ? NULL
               : &monitor->command;
}

bool monitored_is(const struct monitored *command, const char *name)
{
    return command->argc > 0 && strcasecmp(command->argv[0], name) == 0;
}

bool monitored_has(const struct monitored *command, size_t index, const char *text)
{
    return index < command->argc && command->len[index] == strlen(text) &&
           memcmp(command->argv[index], text, command->len[index]) == 0;
}
