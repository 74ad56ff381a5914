/* SPDX-License-Identifier: MIT */
/*
 * How a line of an access log becomes a key: a text with fields in it, such as
 * "$request_method $uri" or "$remote_addr/64".
 */
#ifndef RBK_REPLAY_KEY_TEMPLATE_H
#define RBK_REPLAY_KEY_TEMPLATE_H

#include "redbucket/redbucket.h"

#include "log_line.h"
#include "span.h"

#include <stdbool.h>
#include <stddef.h>

/* The longest key; the longest line is as long. */
#define RBK_KEY_MAX ((size_t)64 * 1024)

struct rbk_key_template;

/*
 * Reads a template. $$ is a dollar. ERROR_ARGUMENT with the position of an unknown field or of a
 * prefix longer than 128 bits. The template keeps pointing into `text`. Free it with
 * rbk_key_template_destroy.
 */
REDBUCKET_MUST_CHECK enum redbucket_status rbk_key_template_parse(const char *text,
                                                                  struct rbk_key_template **parsed,
                                                                  struct redbucket_error *error);

void rbk_key_template_destroy(struct rbk_key_template *template);

/* Whether this field is in it. */
bool rbk_key_template_uses(const struct rbk_key_template *template, enum rbk_log_field field);

/* What became of a line. */
enum rbk_key_outcome {
    RBK_KEY_MADE,
    RBK_KEY_SKIPPED,  /* a field is empty or "-": the line names no key */
    RBK_KEY_TOO_LONG, /* longer than RBK_KEY_MAX */
};

/* Room for one key, used again and again. */
struct rbk_key_buffer {
    char bytes[RBK_KEY_MAX];
};

/* Makes the line's key. It points into the line, the template or the buffer. */
enum rbk_key_outcome rbk_key_template_expand(const struct rbk_key_template *template,
                                             const struct rbk_log_line *line,
                                             struct rbk_key_buffer *buffer, struct rbk_span *key);

#endif
