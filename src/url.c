/* SPDX-License-Identifier: MIT */
/*
 * Taking store URLs apart. Splitting comes before decoding, so that an encoded separator is a
 * character like any other.
 */
#include "url.h"

#include "error.h"

#include <string.h>

#define SCHEME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

enum redbucket_status rbk_url_decode(char *text, struct redbucket_error *error)
{
    char *out = text;

    for (const char *in = text; *in != '\0'; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int high = hex_digit(in[1]);
        int low = high < 0 ? -1 : hex_digit(in[2]);

        if (low < 0)
            return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                            "store URL: expected two hex digits after %%");
        if (high == 0 && low == 0)
            return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: %%00 means nothing here");
        *out++ = (char)(high * 16 + low);
        in += 2;
    }
    *out = '\0';
    return REDBUCKET_OK;
}

/* Names the parameter, unless that may be a piece of a password. */
static enum redbucket_status refuse_parameter(const struct rbk_url *url, const char *name,
                                              const char *why, struct redbucket_error *error)
{
    if (url->query_has_at)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: a parameter is %s (in a password, ? is written %%3F)", why);
    return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: parameter \"%.60s\" %s", name, why);
}

static enum redbucket_status add_parameter(struct rbk_url *url, char *text,
                                           struct redbucket_error *error)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: expected NAME=VALUE behind ? and &");
    *equals = '\0';
    if (rbk_url_get(url, text) != NULL)
        return refuse_parameter(url, text, "given twice", error);
    if (url->parameters_len == RBK_URL_PARAMETERS)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: too many parameters");
    url->parameters[url->parameters_len++] = (struct rbk_url_parameter){text, equals + 1};
    return rbk_url_decode(equals + 1, error);
}

static enum redbucket_status split_query(struct rbk_url *url, char *query,
                                         struct redbucket_error *error)
{
    while (query != NULL) {
        char *next = strchr(query, '&');

        if (next != NULL)
            *next++ = '\0';
        enum redbucket_status status = add_parameter(url, query, error);

        if (status != REDBUCKET_OK)
            return status;
        query = next;
    }
    return REDBUCKET_OK;
}

enum redbucket_status rbk_url_parse(const char *text, struct rbk_url *url,
                                    struct redbucket_error *error)
{
    size_t len = strlen(text);

    if (len >= sizeof url->text)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: longer than %d bytes",
                        RBK_URL_MAX - 1);
    memcpy(url->text, text, len + 1);
    url->parameters_len = 0;

    char *colon = strchr(url->text, ':');

    /* What has other characters is no scheme but, say, a password that was given alone. */
    if (colon == NULL || strspn(url->text, SCHEME) != (size_t)(colon - url->text))
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: expected " RBK_URL_KINDS);
    *colon = '\0';
    url->scheme = url->text;
    url->body = colon + 1;

    char *query = strchr(colon + 1, '?');

    if (query != NULL)
        *query++ = '\0';
    url->query_has_at = query != NULL && strchr(query, '@') != NULL;
    url->slashes = strncmp(url->body, "//", 2) == 0;
    enum redbucket_status status = url->slashes ? REDBUCKET_OK : rbk_url_decode(colon + 1, error);

    return status == REDBUCKET_OK ? split_query(url, query, error) : status;
}

static const char *moved(const char *text, const struct rbk_url *from, const struct rbk_url *to)
{
    return to->text + (text - from->text);
}

void rbk_url_copy(const struct rbk_url *url, struct rbk_url *copy)
{
    memcpy(copy->text, url->text, sizeof copy->text);
    copy->scheme = moved(url->scheme, url, copy);
    copy->body = moved(url->body, url, copy);
    copy->slashes = url->slashes;
    copy->query_has_at = url->query_has_at;
    copy->parameters_len = url->parameters_len;
    for (size_t i = 0; i < url->parameters_len; i++) {
        copy->parameters[i].name = moved(url->parameters[i].name, url, copy);
        copy->parameters[i].value = moved(url->parameters[i].value, url, copy);
    }
}

const char *rbk_url_get(const struct rbk_url *url, const char *name)
{
    for (size_t i = 0; i < url->parameters_len; i++) {
        if (strcmp(url->parameters[i].name, name) == 0)
            return url->parameters[i].value;
    }
    return NULL;
}

static bool is_word_of(const char *words, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = words; (at = strstr(at, word)) != NULL; at++) {
        if ((at == words || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    }
    return false;
}

enum redbucket_status rbk_url_known(const struct rbk_url *url, const char *known,
                                    struct redbucket_error *error)
{
    for (size_t i = 0; i < url->parameters_len; i++) {
        const char *name = url->parameters[i].name;

        if (strchr(name, ' ') == NULL && is_word_of(known, name))
            continue;
        if (url->query_has_at)
            return refuse_parameter(url, name, "unknown", error);
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: unknown parameter \"%.60s\": %s: has %s", name, url->scheme,
                        known);
    }
    return REDBUCKET_OK;
}

static bool parse_size(const char *text, uint64_t *value)
{
    uint64_t number = 0;
    const char *at = text;
    unsigned shift = 0;

    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return false;
    }
    if (at == text)
        return false;
    if (*at != '\0') {
        const char *units = "kmg";
        const char *unit = strchr(units, *at | 0x20);

        if (unit == NULL || at[1] != '\0')
            return false;
        shift = 10 * (unsigned)(unit - units + 1);
    }
    *value = number << shift;
    return *value >> shift == number;
}

enum redbucket_status rbk_url_size(const struct rbk_url *url, const char *name, size_t *value,
                                   struct redbucket_error *error)
{
    const char *text = rbk_url_get(url, name);
    uint64_t size;

    if (text == NULL)
        return REDBUCKET_OK;
    if (!parse_size(text, &size))
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: %s: expected a number of bytes, or with k, m or g", name);
    if (size < RBK_URL_SIZE_MIN || size > RBK_URL_SIZE_MAX)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: %s: expected 32k to " RBK_URL_SIZE_MOST, name);
    *value = (size_t)size;
    return REDBUCKET_OK;
}

enum redbucket_status rbk_url_mode(const struct rbk_url *url, const char *name, unsigned *value,
                                   struct redbucket_error *error)
{
    const char *text = rbk_url_get(url, name);
    unsigned mode = 0;
    size_t len = text == NULL ? 0 : strspn(text, "01234567");

    if (text == NULL)
        return REDBUCKET_OK;
    for (size_t i = 0; i < len && i < 4; i++)
        mode = mode * 8 + (unsigned)(text[i] - '0');
    if (len < 3 || len > 4 || text[len] != '\0' || mode > 0777 || (mode & 0600) != 0600 ||
        (mode & 0111) != 0)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: %s: expected an octal mode from 0600 to 0666", name);
    *value = mode;
    return REDBUCKET_OK;
}

enum redbucket_status rbk_url_duration(const struct rbk_url *url, const char *name, double *value,
                                       struct redbucket_error *error)
{
    const char *text = rbk_url_get(url, name);
    double seconds;

    if (text == NULL)
        return REDBUCKET_OK;
    if (redbucket_duration_parse(text, &seconds, NULL) != REDBUCKET_OK || !(seconds > 0.0) ||
        seconds > 3600.0)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: %s: expected a duration above 0, to 1h, such as 50ms or 2s",
                        name);
    *value = seconds;
    return REDBUCKET_OK;
}
