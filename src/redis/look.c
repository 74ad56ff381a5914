/* SPDX-License-Identifier: MIT */
/*
 * The commands that show a bucket, and what their replies say together.
 */
#include "redis/look.h"

#include <string.h>

/* The last byte of which a state has none. */
static struct rbk_argument last_byte(enum rbk_codec codec)
{
    _Static_assert(RBK_STATE_TEXT_MAX == 4096, "states as JSON end before byte 4096");

    return codec == RBK_CODEC_JSON ? (struct rbk_argument){"4096", 4}
                                   : (struct rbk_argument){"16", 2};
}

void rbk_look_range(enum rbk_codec codec, struct rbk_argument name,
                    struct rbk_argument arguments[RBK_LOOK_RANGE])
{
    arguments[0] = (struct rbk_argument){"GETRANGE", 8};
    arguments[1] = name;
    arguments[2] = (struct rbk_argument){"0", 1};
    arguments[3] = last_byte(codec);
}

void rbk_look_commands(enum rbk_codec codec, struct rbk_argument name,
                       struct rbk_argument arguments[RBK_LOOK_ARGUMENTS],
                       struct rbk_command commands[RBK_LOOK_COMMANDS])
{
    arguments[0] = (struct rbk_argument){"TYPE", 4};
    arguments[1] = name;
    rbk_look_range(codec, name, arguments + 2);
    commands[0] = (struct rbk_command){arguments, 2};
    commands[1] = (struct rbk_command){arguments + 2, 4};
    commands[2] = commands[0];
}

bool rbk_look_refused(const struct rbk_reply *reply)
{
    bool usable;

    return reply->type == RBK_REPLY_ERROR &&
           rbk_server_error(reply->text, &usable) != REDBUCKET_ERROR_STATE;
}

static bool is(const struct rbk_reply *type, const char *name)
{
    return strcmp(type->text, name) == 0;
}

enum rbk_looked rbk_look_read(enum rbk_codec codec,
                              const struct rbk_reply replies[RBK_LOOK_COMMANDS],
                              struct rbk_state *state)
{
    const struct rbk_reply *before = &replies[0], *text = &replies[1], *after = &replies[2];

    *state = (struct rbk_state){.exists = false};
    if (before->type != RBK_REPLY_STATUS || after->type != RBK_REPLY_STATUS)
        return RBK_LOOKED_NONSENSE;
    if (text->type == RBK_REPLY_ERROR)
        return RBK_LOOKED_OTHER;
    if (text->type != RBK_REPLY_STRING)
        return RBK_LOOKED_NONSENSE;
    if (text->len == 0 && !(is(before, "string") && is(after, "string")))
        return is(after, "none") || is(after, "string") ? RBK_LOOKED_NOTHING : RBK_LOOKED_OTHER;
    state->exists = true;
    return rbk_state_decode(codec, (const unsigned char *)text->text, text->len, state)
               ? RBK_LOOKED_STATE
               : RBK_LOOKED_BYTES;
}
