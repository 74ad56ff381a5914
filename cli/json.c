/* SPDX-License-Identifier: MIT */
/*
 * A JSON writer without a tree: what is known is written at once, so a line costs no allocation,
 * and numbers come out shorter than a fixed precision would make them.
 */
#include "json.h"

#include "redbucket/redbucket.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* How many bytes at the start of `text` are one character of valid UTF-8, 0 when they are none. */
static size_t utf8_length(const unsigned char *text, size_t len)
{
    const unsigned char first = text[0];
    const size_t need = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    unsigned long code = need == 1 ? first : first & (0x7fu >> need);

    if (need > len || (first >= 0x80 && first < 0xc2) || first > 0xf4)
        return 0;
    for (size_t i = 1; i < need; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    if ((need == 3 && code < 0x800) || (need == 4 && code < 0x10000) || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return need;
}

/* Characters that mean something to HTML. */
static bool is_markup(unsigned char byte)
{
    return byte == '<' || byte == '>' || byte == '&' || byte == '\'';
}

static void write_string(const struct cli_json *json, const char *bytes, size_t len)
{
    const unsigned char *text = (const unsigned char *)bytes;
    FILE *out = json->out;

    fputc('"', out);
    while (len > 0) {
        const size_t taken = utf8_length(text, len);

        if (taken == 0)
            fputs("\\ufffd", out);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if (*text < 0x20 || *text == 0x7f || (json->embedded && is_markup(*text)))
            fprintf(out, "\\u%04x", *text);
        else
            fwrite(text, 1, taken, out);
        text += taken > 0 ? taken : 1;
        len -= taken > 0 ? taken : 1;
    }
    fputc('"', out);
}

/* What stands before every value. */
static void begin_value(struct cli_json *json, const char *name)
{
    if (json->comma)
        fputs(", ", json->out);
    json->comma = true;
    if (name == NULL)
        return;
    write_string(json, name, strlen(name));
    fputs(": ", json->out);
}

static void begin_group(struct cli_json *json, const char *name, char bracket)
{
    begin_value(json, name);
    fputc(bracket, json->out);
    json->comma = false;
}

static void end_group(struct cli_json *json, char bracket)
{
    fputc(bracket, json->out);
    json->comma = true;
}

void rbk_json_object(struct cli_json *json, const char *name)
{
    begin_group(json, name, '{');
}

void rbk_json_object_end(struct cli_json *json)
{
    end_group(json, '}');
}

void rbk_json_array(struct cli_json *json, const char *name)
{
    begin_group(json, name, '[');
}

void rbk_json_array_end(struct cli_json *json)
{
    end_group(json, ']');
}

void rbk_json_real(struct cli_json *json, const char *name, double number)
{
    char text[REDBUCKET_NUMBER_SIZE];

    if (!isfinite(number)) {
        rbk_json_null(json, name);
        return;
    }
    redbucket_number_format(number, text);
    begin_value(json, name);
    fputs(text, json->out);
}

void rbk_json_integer(struct cli_json *json, const char *name, int64_t number)
{
    begin_value(json, name);
    fprintf(json->out, "%" PRId64, number);
}

void rbk_json_unsigned(struct cli_json *json, const char *name, uint64_t number)
{
    begin_value(json, name);
    fprintf(json->out, "%" PRIu64, number);
}

void rbk_json_bool(struct cli_json *json, const char *name, bool value)
{
    begin_value(json, name);
    fputs(value ? "true" : "false", json->out);
}

void rbk_json_null(struct cli_json *json, const char *name)
{
    begin_value(json, name);
    fputs("null", json->out);
}

void rbk_json_string(struct cli_json *json, const char *name, const char *text)
{
    rbk_json_bytes(json, name, text, strlen(text));
}

void rbk_json_bytes(struct cli_json *json, const char *name, const char *bytes, size_t len)
{
    begin_value(json, name);
    write_string(json, bytes, len);
}

bool rbk_json_exact(const char *bytes, size_t len)
{
    while (len > 0) {
        const size_t taken = utf8_length((const unsigned char *)bytes, len);

        if (taken == 0)
            return false;
        bytes += taken;
        len -= taken;
    }
    return true;
}

void rbk_json_hex(struct cli_json *json, const char *name, const char *bytes, size_t len)
{
    begin_value(json, name);
    fputc('"', json->out);
    for (size_t i = 0; i < len; i++)
        fprintf(json->out, "%02x", (unsigned char)bytes[i]);
    fputc('"', json->out);
}

void rbk_json_line(struct cli_json *json)
{
    fputc('\n', json->out);
    json->comma = false;
}
