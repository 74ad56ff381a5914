/* SPDX-License-Identifier: MIT */
/*
 * What the fake server answers. A record of the input begins with a letter:
 *
 *   r LEN BYTES  just these bytes          b LEN BYTES  a string
 *   e LEN BYTES  an error                  s LEN BYTES  a status
 *   m HOST       MOVED, a ASK, there       n  nothing, as nil    i BYTE  a number
 *   c            hangs up                  w  says nothing       q  an error that quotes all
 *   h            a good answer, and hangs up            x  does as a good server, and says nothing
 *   t BYTE       a good answer, in the middle of so many hundredths of a second
 *   d 16 BYTES   what the script says of buckets with this state
 *   l LEN BYTES  the strings between the commas, as a list; p: the first, and a list of the others
 *   u LEN BYTES  a good answer, cut after so many bytes, and these behind it
 *
 * and any other byte stands for what a good server would say.
 */
#include "fake_server.h"

#include "model/decide.h"
#include "wire/codec.h"
#include "wire/slot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is(const struct rbk_argument *argument, const char *word)
{
    return argument->len == strlen(word) && memcmp(argument->bytes, word, argument->len) == 0;
}

static void say(struct fake_bytes *out, const char *text)
{
    rbk_fake_append(out, text, strlen(text));
}

static void say_string(struct fake_bytes *out, const void *bytes, size_t len)
{
    char head[32];

    (void)snprintf(head, sizeof head, "$%zu\r\n", len);
    say(out, head);
    rbk_fake_append(out, bytes, len);
    say(out, "\r\n");
}

static void say_text(struct fake_bytes *out, const char *text)
{
    say_string(out, text, strlen(text));
}

/* A line without an end in it. */
static void say_line(struct fake_bytes *out, char mark, const uint8_t *bytes, size_t len)
{
    rbk_fake_append(out, &mark, 1);
    for (size_t i = 0; i < len; i++) {
        char byte = (char)bytes[i];

        if (byte == '\r' || byte == '\n')
            byte = ' ';
        rbk_fake_append(out, &byte, 1);
    }
    say(out, "\r\n");
}

/* ---- A good server -------------------------------------------------------------------------- */

static void say_info(struct fake_bytes *out)
{
    char text[400];

    (void)snprintf(text, sizeof text,
                   "# Server\r\nredis_version:7.2.4\r\nredis_mode:%s\r\nmaxmemory:100000\r\n"
                   "maxmemory_policy:allkeys-lru\r\naof_enabled:1\r\nrole:master\r\n"
                   "connected_slaves:1\r\ncluster_enabled:%d\r\n",
                   rbk_fake.in_cluster ? "cluster" : "standalone", rbk_fake.in_cluster);
    say_text(out, text);
}

static void say_slots(struct fake_bytes *out)
{
    say(out,
        "*2\r\n"
        "*4\r\n:0\r\n:8191\r\n*2\r\n$9\r\n192.0.2.1\r\n:6379\r\n*2\r\n$9\r\n192.0.2.3\r\n:6379\r\n"
        "*3\r\n:8192\r\n:16383\r\n*2\r\n$9\r\n192.0.2.2\r\n:6379\r\n");
}

static void say_state(struct fake_bytes *out)
{
    static const struct rbk_state state = {true, 1000.0, 0.5};
    unsigned char bytes[RBK_STATE_SIZE];
    size_t len =
        rbk_state_encode(rbk_fake.codec_json ? RBK_CODEC_JSON : RBK_CODEC_STRUCT, &state, bytes);

    say_string(out, bytes, len);
}

static void say_exec(struct fake_connection *connection)
{
    char head[16];

    (void)snprintf(head, sizeof head, "*%zu\r\n", connection->queued);
    say(&connection->said, head);
    for (size_t i = 0; i < connection->queued; i++)
        say(&connection->said, connection->counts[i] ? ":1\r\n" : "+OK\r\n");
    connection->queued = 0;
    connection->in_multi = false;
}

/* Answers that are the same each time. */
static const struct {
    const char *name;
    const char *answer;
} fixed[] = {
    {"PING", "+PONG\r\n"},
    {"TYPE", "+string\r\n"},
    {"ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"},
    {"TIME", "*2\r\n$4\r\n1000\r\n$6\r\n500000\r\n"},
    {"SENTINEL", "*2\r\n$9\r\n192.0.2.7\r\n$4\r\n6379\r\n"},
    {"SUBSCRIBE", "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"},
    {"SCAN", "*2\r\n$1\r\n0\r\n*3\r\n$16\r\nredbucket:ip:one\r\n$17\r\nredbucket:a:b:two\r\n"
             "$5\r\nother\r\n"},
    {"CONFIG", "*2\r\n$4\r\nsave\r\n$8\r\neverysec\r\n"},
};

static void say_fixed(struct fake_bytes *out, const struct rbk_argument *name)
{
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (is(name, fixed[i].name)) {
            say(out, fixed[i].answer);
            return;
        }
    }
    say(out, "+OK\r\n");
}

static void say_good(struct fake_connection *connection, const struct rbk_command *command)
{
    const struct rbk_argument *name = &command->arguments[0];
    struct fake_bytes *out = &connection->said;

    if (is(name, "MULTI") || is(name, "DISCARD")) {
        connection->in_multi = is(name, "MULTI");
        connection->queued = 0;
        say(out, "+OK\r\n");
    } else if (is(name, "EXEC")) {
        say_exec(connection);
    } else if (connection->in_multi) {
        if (connection->queued < FAKE_QUEUED_MAX)
            connection->counts[connection->queued++] = is(name, "DEL");
        say(out, "+QUEUED\r\n");
    } else if (is(name, "INFO")) {
        say_info(out);
    } else if (is(name, "GETRANGE")) {
        rbk_fake.made_up = true; /* what is kept is kept by the script */
        say_state(out);
    } else if (is(name, "CLUSTER") && is(&command->arguments[1], "SLOTS")) {
        say_slots(out);
    } else if (is(name, "CLUSTER")) {
        say_text(out, "cluster_state:ok\r\ncluster_slots_ok:16384\r\n");
    } else if (is(name, "EVALSHA") || is(name, "EVAL")) {
        rbk_fake_script(out, command, NULL);
    } else {
        say_fixed(out, name);
    }
}

/* ---- Any other ------------------------------------------------------------------------------ */

static void say_redirect(struct fake_bytes *out, const char *word,
                         const struct rbk_command *command)
{
    size_t key = command->len > 3 ? 3 : command->len - 1;
    unsigned slot = rbk_slot_of(command->arguments[key].bytes, command->arguments[key].len);
    unsigned host = rbk_fake_byte();
    char text[80];

    (void)snprintf(text, sizeof text, "-%s %u 192.0.2.%u:6379\r\n", word, slot, host % 8);
    say(out, text);
}

/* An error in one line, with all that was said to it. */
static void say_quoted(struct fake_bytes *out, const struct rbk_command *command)
{
    struct fake_bytes line = {NULL, 0, 0};

    say(&line, "ERR what is");
    for (size_t i = 0; i < command->len; i++) {
        say(&line, " ");
        rbk_fake_append(&line, command->arguments[i].bytes, command->arguments[i].len);
    }
    say_line(out, '-', line.bytes, line.len);
    free(line.bytes);
}

static void say_cut(struct fake_connection *connection, const struct rbk_command *command)
{
    size_t keep = rbk_fake_byte();
    struct fake_bytes *out = &connection->said;
    size_t before = out->len;
    const uint8_t *bytes;
    size_t len = rbk_fake_byte();

    say_good(connection, command);
    if (out->len - before > keep)
        out->len = before + keep;
    len = rbk_fake_bytes(len, &bytes);
    rbk_fake_append(out, bytes, len);
}

/* It is done all the same. */
static void say_nothing(struct fake_connection *connection, const struct rbk_command *command)
{
    size_t before = connection->said.len;

    say_good(connection, command);
    connection->said.len = before;
}

/* Whoever asked was stopped meanwhile, so that the answer is there when he looks. */
static void say_late(struct fake_connection *connection, const struct rbk_command *command,
                     double seconds)
{
    rbk_fake.now += seconds / 2.0;
    say_good(connection, command);
    rbk_fake.now += seconds / 2.0;
    rbk_fake.stalled += seconds;
}

static void say_list(struct fake_bytes *out, const uint8_t *bytes, size_t len, bool paired)
{
    char head[32];
    size_t parts = 1;

    for (size_t i = 0; i < len; i++)
        parts += bytes[i] == ',';
    (void)snprintf(head, sizeof head, "*%zu\r\n", paired ? 2 : parts);
    say(out, head);
    for (size_t part = 0; part < parts; part++) {
        const uint8_t *comma = memchr(bytes, ',', len);
        size_t part_len = comma == NULL ? len : (size_t)(comma - bytes);

        say_string(out, bytes, part_len);
        bytes += part_len + (comma != NULL);
        len -= part_len + (comma != NULL);
        if (paired && part == 0) {
            (void)snprintf(head, sizeof head, "*%zu\r\n", parts - 1);
            say(out, head);
        }
    }
}

/* Those that end with bytes of the input. */
static void say_bytes(struct fake_bytes *out, char letter)
{
    size_t len = rbk_fake_byte();
    const uint8_t *bytes;

    len = rbk_fake_bytes(len, &bytes);
    switch (letter) {
    case 'b':
        say_string(out, bytes, len);
        break;
    case 'e':
        say_line(out, '-', bytes, len);
        break;
    case 's':
        say_line(out, '+', bytes, len);
        break;
    case 'l':
    case 'p':
        say_list(out, bytes, len, letter == 'p');
        break;
    default:
        rbk_fake_append(out, bytes, len);
    }
}

static void say_state_of_input(struct fake_connection *connection,
                               const struct rbk_command *command)
{
    const struct rbk_argument *name = &command->arguments[0];
    uint8_t state[16] = {0};
    const uint8_t *bytes;
    size_t len = rbk_fake_bytes(sizeof state, &bytes);

    memcpy(state, bytes, len);
    if (is(name, "EVALSHA") || is(name, "EVAL"))
        rbk_fake_script(&connection->said, command, state);
    else if (is(name, "GETRANGE") && !connection->in_multi)
        say_string(&connection->said, state, sizeof state);
    else
        say_good(connection, command);
}

static void say_other(struct fake_connection *connection, const struct rbk_command *command,
                      char letter)
{
    struct fake_bytes *out = &connection->said;
    char number[16];

    rbk_fake.honest = false;
    if (strchr("rbslpniu", letter) != NULL)
        rbk_fake.made_up = true;
    switch (letter) {
    case 'm':
    case 'a':
        say_redirect(out, letter == 'm' ? "MOVED" : "ASK", command);
        break;
    case 'n':
        say(out, "*-1\r\n");
        break;
    case 'i':
        (void)snprintf(number, sizeof number, ":%d\r\n", (int8_t)rbk_fake_byte());
        say(out, number);
        break;
    case 'c':
        connection->closing = true;
        break;
    case 'h':
        say_good(connection, command);
        connection->closing = true;
        break;
    case 'x':
        say_nothing(connection, command);
        break;
    case 't':
        say_late(connection, command, rbk_fake_byte() * 0.01);
        break;
    case 'w':
        break;
    case 'q':
        say_quoted(out, command);
        break;
    case 'u':
        say_cut(connection, command);
        break;
    default:
        say_bytes(out, letter);
    }
}

void rbk_fake_reply(struct fake_connection *connection, const struct rbk_command *command)
{
    uint8_t letter = rbk_fake_byte();

    if (rbk_fake.left == 0 && letter == 0) {
        if (rbk_fake.good_left == 0)
            letter = 'c';
        else
            rbk_fake.good_left--;
    }
    if (letter == 'd') {
        rbk_fake.made_up = true;
        say_state_of_input(connection, command);
    } else if (letter != 0 && strchr("rbesmanicwqulphxt", letter) != NULL) {
        say_other(connection, command, (char)letter);
    } else {
        say_good(connection, command);
    }
}
