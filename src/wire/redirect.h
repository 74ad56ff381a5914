/* SPDX-License-Identifier: MIT */
/*
 * What a node of a cluster says that doesn't serve a slot, or not any more, or not yet.
 *
 *   MOVED SLOT HOST:PORT   the slot is served there from now on
 *   ASK SLOT HOST:PORT     this once it is to be asked there, behind an ASKING
 */
#ifndef RBK_WIRE_REDIRECT_H
#define RBK_WIRE_REDIRECT_H

#include "wire/place.h"

struct rbk_redirect {
    bool ask;
    unsigned slot;
    struct rbk_place place;
};

/* Reads the text of an error; false when it is no redirection, or one that can't be followed.
 * `asked` is the place that said it, and whose host is meant where none is named. */
bool rbk_redirect_read(const char *error_text, const struct rbk_place *asked,
                       struct rbk_redirect *out);

#endif
