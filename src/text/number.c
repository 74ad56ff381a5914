/* SPDX-License-Identifier: MIT */
/*
 * Numbers from text and back, the same in every locale.
 *
 * Reading: the grammar is checked here first, so strtod never gets to see the hexadecimal, "inf",
 * "nan", signs and blanks that it would take as well; then strtod_l converts in the C locale, which
 * is an object of its own and leaves the host's alone.
 *
 * Writing: 15 significant digits are enough for what people wrote, 17 always are; the first count
 * that reads back exactly is taken. printf's decimal point follows the locale and may be several
 * bytes long, so whatever is no digit, sign or exponent becomes a '.'.
 */
#include "text/number.h"

#include "error.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_BYTES_MAX 32

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t scan_digits(const char *text, size_t len, size_t at)
{
    while (at < len && is_digit(text[at]))
        at++;
    return at;
}

/* How many bytes at the start of `text` are a number, 0 for none. An 'e' without digits behind it
 * is not part of it. */
static size_t scan_number(const char *text, size_t len)
{
    const size_t start = len > 0 && text[0] == '-';
    size_t at = scan_digits(text, len, start);

    if (at == start)
        return 0;
    if (at < len && text[at] == '.') {
        const size_t end = scan_digits(text, len, at + 1);
        if (end == at + 1)
            return 0;
        at = end;
    }
    if (at < len && (text[at] == 'e' || text[at] == 'E')) {
        const size_t digits =
            at + 1 + (at + 1 < len && (text[at + 1] == '+' || text[at + 1] == '-'));
        const size_t end = scan_digits(text, len, digits);
        if (end > digits)
            at = end;
    }
    return at;
}

enum redbucket_status rbk_number_read(const char *text, size_t len, double *number, size_t *taken)
{
    const size_t scanned = scan_number(text, len);
    locale_t plain;

    *taken = scanned;
    if (scanned == 0)
        return REDBUCKET_OK;
    plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (plain == (locale_t)0)
        return REDBUCKET_ERROR_MEMORY;
    *number = strtod_l(text, NULL, plain);
    freelocale(plain);
    return REDBUCKET_OK;
}

enum redbucket_status rbk_number_parse(const char *text, size_t len, double *number,
                                       struct redbucket_error *error)
{
    char quoted[RBK_QUOTE_SIZE];
    double value = 0.0;
    size_t taken;

    if (rbk_number_read(text, len, &value, &taken) != REDBUCKET_OK)
        return rbk_fail(error, REDBUCKET_ERROR_MEMORY, -1, "out of memory");
    if (taken == 0 || taken != len)
        return rbk_fail(error, REDBUCKET_ERROR_ARGUMENT, (int)taken, "%s: expected a number",
                        rbk_quote(text, len, quoted));
    if (!isfinite(value))
        return rbk_fail(error, REDBUCKET_ERROR_ARGUMENT, 0, "%s: too large for a number",
                        rbk_quote(text, len, quoted));
    *number = value + 0.0; /* makes a -0 a 0 */
    return REDBUCKET_OK;
}

enum redbucket_status redbucket_number_parse(const char *text, double *number,
                                             struct redbucket_error *error)
{
    return rbk_number_parse(text, strlen(text), number, error);
}

/* Rewrites the locale's decimal point, one or more bytes that are nothing else, as '.'. */
static void restore_point(char *text)
{
    char *to = text;
    bool in_point = false;

    for (const char *from = text; *from != '\0'; from++) {
        const bool plain = is_digit(*from) || *from == '-' || *from == '+' || *from == 'e';
        if (plain)
            *to++ = *from;
        else if (!in_point)
            *to++ = '.';
        in_point = !plain;
    }
    *to = '\0';
}

static bool reads_back(const char *text, double number)
{
    double again = 0.0;
    size_t taken;

    return rbk_number_read(text, strlen(text), &again, &taken) == REDBUCKET_OK && again == number;
}

/* What isn't written in digits. -0 is a 0 to everyone who reads it. */
static const char *word_for(double number)
{
    if (isnan(number))
        return "nan";
    if (isinf(number))
        return number > 0.0 ? "inf" : "-inf";
    return number == 0.0 ? "0" : NULL;
}

void redbucket_number_format(double number, char out[REDBUCKET_NUMBER_SIZE])
{
    const char *word = word_for(number);

    if (word != NULL) {
        snprintf(out, REDBUCKET_NUMBER_SIZE, "%s", word);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(out, REDBUCKET_NUMBER_SIZE, "%.*g", digits, number);
        restore_point(out);
        if (reads_back(out, number))
            return;
    }
}

const char *rbk_quote(const char *text, size_t len, char out[RBK_QUOTE_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    const size_t shown = len < QUOTE_BYTES_MAX ? len : QUOTE_BYTES_MAX;
    char *to = out;

    *to++ = '"';
    for (size_t i = 0; i < shown; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte >= 0x20 && byte < 0x7f) {
            *to++ = (char)byte;
            continue;
        }
        *to++ = '\\';
        *to++ = 'x';
        *to++ = hex[byte >> 4];
        *to++ = hex[byte & 15];
    }
    snprintf(to, sizeof("...\""), "%s", shown < len ? "...\"" : "\"");
    return out;
}
