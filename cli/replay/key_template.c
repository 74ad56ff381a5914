/* SPDX-License-Identifier: MIT */
/*
 * A template is read once into parts, each a text or a field, and then filled in for every line.
 * The usual template is a single field; its key is the field itself, and nothing is copied.
 */
#include "key_template.h"

#include "address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A part without a prefix. */
enum { WHOLE = -1 };

struct part {
    bool is_field;
    enum rbk_log_field field;
    int bits; /* of $remote_addr, or WHOLE */
    struct rbk_span text;
};

struct rbk_key_template {
    size_t parts_len;
    struct part parts[];
};

static const char *const field_names[RBK_LOG_FIELDS] = {
    [RBK_LOG_REMOTE_ADDR] = "remote_addr",
    [RBK_LOG_REMOTE_USER] = "remote_user",
    [RBK_LOG_REQUEST_METHOD] = "request_method",
    [RBK_LOG_URI] = "uri",
    [RBK_LOG_STATUS] = "status",
    [RBK_LOG_HTTP_USER_AGENT] = "http_user_agent",
};

static enum redbucket_status fail(struct redbucket_error *error, size_t position,
                                  const char *message)
{
    if (error) {
        error->status = REDBUCKET_ERROR_ARGUMENT;
        error->position = position < 1000000 ? (int)position : -1;
        snprintf(error->message, sizeof(error->message), "%s", message);
    }
    return REDBUCKET_ERROR_ARGUMENT;
}

static bool name_parse(const char **at, struct part *part)
{
    const size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyz_");

    for (int i = 0; i < RBK_LOG_FIELDS; i++) {
        if (strlen(field_names[i]) == len && memcmp(field_names[i], *at, len) == 0) {
            *part = (struct part){.is_field = true, .field = (enum rbk_log_field)i, .bits = WHOLE};
            *at += len;
            return true;
        }
    }
    return false;
}

/* The "/64" behind an address. A slash without a number is text. */
static bool bits_parse(const char **at, int *bits)
{
    const char *digit = *at + 1;
    int number = 0;

    if (**at != '/' || *digit < '0' || *digit > '9')
        return true;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        number = number * 10 + (*digit - '0');
        if (number > 128)
            return false;
    }
    *bits = number;
    *at = digit;
    return true;
}

/* One part; `at` is in front of it and ends up behind it. */
static enum redbucket_status part_parse(const char *text, const char **at, struct part *part,
                                        struct redbucket_error *error)
{
    const size_t position = (size_t)(*at - text);

    if (**at != '$') {
        part->text = (struct rbk_span){*at, strcspn(*at, "$")};
        *at += part->text.len;
        return REDBUCKET_OK;
    }
    if ((*at)[1] == '$') {
        part->text = (struct rbk_span){*at, 1};
        *at += 2;
        return REDBUCKET_OK;
    }
    ++*at;
    if (!name_parse(at, part))
        return fail(error, position,
                    "expected $remote_addr, $remote_user, $request_method, $uri, $status, "
                    "$http_user_agent, or $$ for a dollar");
    if (part->field == RBK_LOG_REMOTE_ADDR && !bits_parse(at, &part->bits))
        return fail(error, position, "expected at most 128 bits of an address");
    return REDBUCKET_OK;
}

/* A field and the text behind it are two parts, so there are never more than this. */
static size_t most_parts(const char *text)
{
    size_t dollars = 0;

    for (const char *at = text; *at; at++)
        dollars += *at == '$';
    return 2 * dollars + 1;
}

enum redbucket_status rbk_key_template_parse(const char *text, struct rbk_key_template **parsed,
                                             struct redbucket_error *error)
{
    struct rbk_key_template *template;
    enum redbucket_status status = REDBUCKET_OK;
    const char *at = text;

    if (!*text)
        return fail(error, 0, "expected a text with fields in it, such as $remote_addr");
    template = calloc(1, sizeof(*template) + most_parts(text) * sizeof(template->parts[0]));
    if (!template)
        return REDBUCKET_ERROR_MEMORY;
    while (*at && status == REDBUCKET_OK)
        status = part_parse(text, &at, &template->parts[template->parts_len++], error);
    if (status != REDBUCKET_OK) {
        rbk_key_template_destroy(template);
        return status;
    }
    *parsed = template;
    return REDBUCKET_OK;
}

void rbk_key_template_destroy(struct rbk_key_template *template)
{
    free(template);
}

bool rbk_key_template_uses(const struct rbk_key_template *template, enum rbk_log_field field)
{
    for (size_t i = 0; i < template->parts_len; i++)
        if (template->parts[i].is_field && template->parts[i].field == field)
            return true;
    return false;
}

/* The part's text for this line; false when its field is missing. */
static bool fill(const struct part *part, const struct rbk_log_line *line,
                 char address[RBK_ADDRESS_SIZE], struct rbk_span *text)
{
    if (!part->is_field) {
        *text = part->text;
        return true;
    }
    *text = line->fields[part->field];
    if (text->len == 0 || (text->len == 1 && text->bytes[0] == '-'))
        return false;
    if (part->bits != WHOLE)
        *text = rbk_address_prefix(*text, (unsigned)part->bits, address);
    return true;
}

enum rbk_key_outcome rbk_key_template_expand(const struct rbk_key_template *template,
                                             const struct rbk_log_line *line,
                                             struct rbk_key_buffer *buffer, struct rbk_span *key)
{
    bool too_long = false;
    size_t len = 0;

    for (size_t i = 0; i < template->parts_len; i++) {
        char address[RBK_ADDRESS_SIZE];
        struct rbk_span text;

        if (!fill(&template->parts[i], line, address, &text))
            return RBK_KEY_SKIPPED;
        if (template->parts_len == 1 && template->parts[i].bits == WHOLE) {
            *key = text;
            return RBK_KEY_MADE;
        }
        too_long = too_long || text.len > RBK_KEY_MAX - len;
        if (too_long)
            continue; /* a field further on may still skip the line */
        memcpy(buffer->bytes + len, text.bytes, text.len);
        len += text.len;
    }
    *key = (struct rbk_span){buffer->bytes, len};
    return too_long ? RBK_KEY_TOO_LONG : RBK_KEY_MADE;
}
