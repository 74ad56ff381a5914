/* SPDX-License-Identifier: MIT */
/*
 * A limit as one line of text: NAME:RATE[,burst=N][,delay=N]..., and back.
 *
 * Parsing is checking: each fault has one message, which names the field, what was found and what
 * was expected. What comes out of here has passed redbucket_limit_check, and its text reads back as
 * the same doubles.
 */
#include "error.h"
#include "text/number.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A part of the text being read. `at` is its offset in the whole. */
struct span {
    const char *text;
    size_t len;
    size_t at;
};

typedef enum redbucket_status number_reader(const char *text, size_t len, double *number,
                                            struct redbucket_error *error);

/* The fields that are numbers, in the order of the canonical text. */
static const struct field {
    const char *name;
    size_t offset;
    number_reader *read;
} fields[] = {
    {"burst", offsetof(struct redbucket_limit, burst), rbk_number_parse},
    {"delay", offsetof(struct redbucket_limit, delay), rbk_number_parse},
    {"expiry", offsetof(struct redbucket_limit, expiry), rbk_duration_parse},
    {"lease", offsetof(struct redbucket_limit, lease), rbk_number_parse},
    {"lease_time", offsetof(struct redbucket_limit, lease_time), rbk_duration_parse},
};

#define FIELDS_LEN (sizeof(fields) / sizeof(fields[0]))
#define FIELD_ZONE FIELDS_LEN
#define FIELD_NONE (FIELDS_LEN + 1)

static double *field_of(struct redbucket_limit *limit, const struct field *field)
{
    return (double *)(void *)((char *)limit + field->offset);
}

static bool is_name_byte(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static size_t find_byte(struct span span, char byte)
{
    const char *found = memchr(span.text, byte, span.len);

    return found != NULL ? (size_t)(found - span.text) : span.len;
}

/* The part of `span` from `from` to before `to`. */
static struct span cut(struct span span, size_t from, size_t to)
{
    return (struct span){span.text + from, to - from, span.at + from};
}

static enum redbucket_status read_name(struct span span, const char *what,
                                       char name[REDBUCKET_ZONE_MAX + 1],
                                       struct redbucket_error *error)
{
    char quoted[RBK_QUOTE_SIZE];
    size_t good = 0;

    if (span.len == 0)
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, (int)span.at, "%s is empty", what);
    while (good < span.len && is_name_byte(span.text[good]))
        good++;
    if (good < span.len)
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, (int)(span.at + good),
                        "%s %s: expected only A-Z a-z 0-9 _ . -", what,
                        rbk_quote(span.text, span.len, quoted));
    if (span.len > REDBUCKET_ZONE_MAX)
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, (int)span.at, "%s %s: longer than %d bytes",
                        what, rbk_quote(span.text, span.len, quoted), REDBUCKET_ZONE_MAX);
    memcpy(name, span.text, span.len);
    name[span.len] = '\0';
    return REDBUCKET_OK;
}

/* Reads a field's value; what the reader says is put behind the field's name. */
static enum redbucket_status read_number(struct span span, const char *name, number_reader *read,
                                         double *number, struct redbucket_error *error)
{
    struct redbucket_error inner;
    const enum redbucket_status status = read(span.text, span.len, number, &inner);

    if (status == REDBUCKET_OK)
        return REDBUCKET_OK;
    if (status != REDBUCKET_ERROR_ARGUMENT)
        return rbk_fail(error, status, -1, "%s", inner.message);
    return rbk_fail(error, REDBUCKET_ERROR_LIMIT, (int)span.at + inner.position, "%s: %s", name,
                    inner.message);
}

static size_t find_field(struct span word)
{
    static const char zone[] = "zone";

    for (size_t i = 0; i < FIELDS_LEN; i++)
        if (strlen(fields[i].name) == word.len && memcmp(fields[i].name, word.text, word.len) == 0)
            return i;
    if (word.len == strlen(zone) && memcmp(word.text, zone, word.len) == 0)
        return FIELD_ZONE;
    return FIELD_NONE;
}

/* Reads one WORD=VALUE into the limit; `seen` has a bit for each field read so far. */
static enum redbucket_status read_option(struct span span, struct redbucket_named_limit *limit,
                                         unsigned *seen, struct redbucket_error *error)
{
    const size_t equals = find_byte(span, '=');
    const struct span word = cut(span, 0, equals);
    const size_t index = find_field(word);
    char quoted[RBK_QUOTE_SIZE];
    struct span value;

    if (index == FIELD_NONE || equals == span.len)
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, (int)span.at,
                        "%s: expected one of burst= delay= expiry= zone= lease= lease_time=",
                        rbk_quote(span.text, span.len, quoted));
    if (*seen & (1u << index))
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, (int)span.at, "%.*s is given twice",
                        (int)word.len, word.text);
    *seen |= 1u << index;
    value = cut(span, equals + 1, span.len);
    if (index == FIELD_ZONE)
        return read_name(value, "zone", limit->zone, error);
    return read_number(value, fields[index].name, fields[index].read,
                       field_of(&limit->limit, &fields[index]), error);
}

static enum redbucket_status read_options(struct span span, struct redbucket_named_limit *limit,
                                          struct redbucket_error *error)
{
    unsigned seen = 0;
    size_t from = 0;

    while (from < span.len) { /* span.text[from] is a comma */
        const struct span rest = cut(span, from + 1, span.len);
        const size_t len = find_byte(rest, ',');
        const enum redbucket_status status = read_option(cut(rest, 0, len), limit, &seen, error);

        if (status != REDBUCKET_OK)
            return status;
        from += 1 + len;
    }
    return REDBUCKET_OK;
}

static enum redbucket_status read_limit(struct span span, struct redbucket_named_limit *limit,
                                        struct redbucket_error *error)
{
    const size_t colon = find_byte(span, ':');
    const struct span rest = cut(span, colon < span.len ? colon + 1 : colon, span.len);
    const size_t rate_len = find_byte(rest, ',');
    char quoted[RBK_QUOTE_SIZE];
    enum redbucket_status status;

    if (colon == span.len)
        return rbk_fail(error, REDBUCKET_ERROR_LIMIT, (int)span.len,
                        "%s: expected NAME:RATE, for instance ip:5/s,burst=10",
                        rbk_quote(span.text, span.len, quoted));
    status = read_name(cut(span, 0, colon), "name", limit->name, error);
    if (status == REDBUCKET_OK)
        status =
            read_number(cut(rest, 0, rate_len), "rate", rbk_rate_parse, &limit->limit.rate, error);
    if (status == REDBUCKET_OK)
        status = read_options(cut(rest, rate_len, rest.len), limit, error);
    if (status == REDBUCKET_OK && limit->zone[0] == '\0')
        memcpy(limit->zone, limit->name, sizeof(limit->zone));
    return status;
}

enum redbucket_status redbucket_limit_parse(const char *text, struct redbucket_named_limit *limit,
                                            struct redbucket_error *error)
{
    struct redbucket_named_limit read = {.limit = {.size = sizeof(struct redbucket_limit)}};
    enum redbucket_status status = read_limit((struct span){text, strlen(text), 0}, &read, error);

    if (status == REDBUCKET_OK)
        read.limit.zone = read.zone;
    if (status == REDBUCKET_OK)
        status = redbucket_limit_check(&read.limit, error);
    if (status != REDBUCKET_OK)
        return status;
    *limit = read;
    limit->limit.zone = limit->zone;
    limit->limit.zone_len = strlen(limit->zone);
    return REDBUCKET_OK;
}

void redbucket_limit_format(const struct redbucket_named_limit *limit,
                            char out[REDBUCKET_LIMIT_TEXT_SIZE])
{
    struct redbucket_limit numbers = limit->limit;
    char number[REDBUCKET_NUMBER_SIZE];
    size_t used;

    redbucket_number_format(numbers.rate, number);
    used = (size_t)snprintf(out, REDBUCKET_LIMIT_TEXT_SIZE, "%.*s:%s", REDBUCKET_ZONE_MAX,
                            limit->name, number);
    for (size_t i = 0; i < FIELDS_LEN; i++) {
        const double value = *field_of(&numbers, &fields[i]);

        if (value == 0.0)
            continue;
        redbucket_number_format(value, number);
        used += (size_t)snprintf(out + used, REDBUCKET_LIMIT_TEXT_SIZE - used, ",%s=%s",
                                 fields[i].name, number);
    }
    if (limit->zone[0] != '\0' && strcmp(limit->zone, limit->name) != 0)
        snprintf(out + used, REDBUCKET_LIMIT_TEXT_SIZE - used, ",zone=%.*s", REDBUCKET_ZONE_MAX,
                 limit->zone);
}

/* The longest text has two names, six numbers and six words, which are 49 bytes with their
 * punctuation. */
_Static_assert(2 * REDBUCKET_ZONE_MAX + 6 * (REDBUCKET_NUMBER_SIZE - 1) + 49 <
                   REDBUCKET_LIMIT_TEXT_SIZE,
               "a limit's text always fits");
