/* SPDX-License-Identifier: MIT */
/*
 * Looking at a bucket by plain commands, whatever is there and however much of it, and taking no
 * more than a state may have.
 *
 *   TYPE NAME
 *   GETRANGE NAME 0 LAST
 *   TYPE NAME
 *
 * GETRANGE shows what is empty and what isn't there alike: an empty string is what both TYPEs call
 * a string. Others may change the bucket between, which who has to know of it watches.
 */
#ifndef RBK_REDIS_LOOK_H
#define RBK_REDIS_LOOK_H

#include "redis/method.h"

#define RBK_LOOK_COMMANDS  3u
#define RBK_LOOK_ARGUMENTS 6u
#define RBK_LOOK_RANGE     4u

enum rbk_looked {
    RBK_LOOKED_NOTHING,
    RBK_LOOKED_STATE,
    RBK_LOOKED_BYTES, /* a string that is no state; `exists` is set all the same */
    RBK_LOOKED_OTHER, /* another type */
    RBK_LOOKED_NONSENSE,
};

/* The arguments of GETRANGE alone, for whoever can tell otherwise whether there is anything. */
void rbk_look_range(enum rbk_codec codec, struct rbk_argument name,
                    struct rbk_argument arguments[RBK_LOOK_RANGE]);

/* Writes the commands, which point to the arguments and to the name. */
void rbk_look_commands(enum rbk_codec codec, struct rbk_argument name,
                       struct rbk_argument arguments[RBK_LOOK_ARGUMENTS],
                       struct rbk_command commands[RBK_LOOK_COMMANDS]);

/* True for an error, but for the one that tells another type. */
bool rbk_look_refused(const struct rbk_reply *reply);

/* Reads the replies, none of which is refused. */
enum rbk_looked rbk_look_read(enum rbk_codec codec,
                              const struct rbk_reply replies[RBK_LOOK_COMMANDS],
                              struct rbk_state *state);

#endif
