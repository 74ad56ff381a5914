/* SPDX-License-Identifier: MIT */
/*
 * Any text as a key format, with any zones and keys: reading it is safe, a name has the length that
 * was said and is what an obvious expansion makes of the text, and zones that are said to be apart
 * don't meet in these keys. The input is FORMAT NUL ZONE NUL ZONE NUL KEY NUL KEY, the last with
 * any bytes. Links the library's private key formats.
 */
#include "wire/key_name.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ZONE_MAX 255u

struct input {
    const uint8_t *at;
    size_t left;
};

struct name {
    unsigned char *bytes;
    size_t len;
};

/* Takes up to the next NUL, or all that is left. */
static size_t take(struct input *input, const uint8_t **bytes)
{
    const uint8_t *end = input->left == 0 ? NULL : memchr(input->at, 0, input->left);
    size_t len = end == NULL ? input->left : (size_t)(end - input->at);

    *bytes = input->at;
    input->at += len + (end != NULL);
    input->left -= len + (end != NULL);
    return len;
}

static void append(struct name *name, const void *bytes, size_t len)
{
    if (len > 0)
        memcpy(name->bytes + name->len, bytes, len);
    name->len += len;
}

/* As str.format does it, for a text that is good. */
static struct name expand(const char *text, const struct rbk_key *key)
{
    size_t fields_len = RBK_KEY_FORMAT_PIECES * (key->zone_len + key->key_len);
    struct name name = {.bytes = malloc(strlen(text) + fields_len + 1), .len = 0};

    if (name.bytes == NULL)
        abort();
    while (*text != '\0') {
        if (strncmp(text, "{zone}", 6) == 0) {
            append(&name, key->zone, key->zone_len);
            text += 6;
        } else if (strncmp(text, "{key}", 5) == 0) {
            append(&name, key->key, key->key_len);
            text += 5;
        } else {
            append(&name, text, 1);
            text += *text == '{' || *text == '}' ? 2 : 1;
        }
    }
    return name;
}

static struct name name_of(const struct rbk_key_format *format, const struct rbk_key *key)
{
    struct name name = {.len = rbk_key_format_len(format, key)};

    name.bytes = malloc(name.len > 0 ? name.len : 1);
    if (name.bytes == NULL)
        abort();
    rbk_key_format_write(format, key, name.bytes);
    return name;
}

static int same(const struct name *a, const struct name *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->bytes, b->bytes, a->len) == 0);
}

/* Read back, with the zone known and without: a guess is no longer, and writes the same name. */
static void check_back(const struct rbk_key_format *format, const struct name *name,
                       const struct rbk_key *key)
{
    unsigned char pattern[RBK_KEY_PATTERN_SIZE];
    struct rbk_key found;

    if (rbk_key_pattern(format, key, pattern) > sizeof pattern ||
        rbk_key_pattern(format, NULL, pattern) > sizeof pattern)
        abort();
    if (!rbk_key_name_of(format, name->bytes, name->len, key, &found) ||
        found.key_len != key->key_len ||
        (found.key_len > 0 && memcmp(found.key, key->key, found.key_len) != 0))
        abort();
    if (key->zone_len == 0)
        return;
    if (rbk_key_name_guess(format, name->bytes, name->len, &found) == 0 ||
        found.zone_len > key->zone_len)
        abort();

    struct name again = name_of(format, &found);

    if (!same(&again, name))
        abort();
    free(again.bytes);
}

static void check(const struct rbk_key_format *format, const char *text, struct rbk_key keys[2])
{
    struct name names[2];

    for (int i = 0; i < 2; i++) {
        struct name expected = expand(text, &keys[i]);

        names[i] = name_of(format, &keys[i]);
        if (!same(&names[i], &expected))
            abort();
        free(expected.bytes);
        check_back(format, &names[i], &keys[i]);
    }
    if (rbk_key_format_apart(format, &keys[0], &keys[1]) && same(&names[0], &names[1]))
        abort();
    if (rbk_key_format_apart(format, &keys[0], &keys[0]))
        abort();
    free(names[0].bytes);
    free(names[1].bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct rbk_key_format format;
    struct input input = {data, size};
    struct rbk_key keys[2];
    const uint8_t *bytes;
    size_t len = take(&input, &bytes);
    char *text = malloc(len + 1);

    if (text == NULL)
        return 0;
    if (len > 0)
        memcpy(text, bytes, len);
    text[len] = '\0';
    for (int i = 0; i < 2; i++)
        keys[i].zone_len = take(&input, &keys[i].zone);
    keys[0].key_len = take(&input, &keys[0].key);
    keys[1].key_len = input.left;
    keys[1].key = input.at;
    for (int i = 0; i < 2; i++) {
        if (keys[i].zone_len > ZONE_MAX)
            keys[i].zone_len = ZONE_MAX;
    }
    if (rbk_key_format_parse(text, &format) == NULL)
        check(&format, text, keys);
    free(text);
    return 0;
}
