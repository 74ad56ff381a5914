/* SPDX-License-Identifier: MIT */
/*
 * Writes JSON straight to a stream, one document a line. Numbers are the shortest decimals that
 * read back as the same doubles, whatever the locale; text that isn't UTF-8 comes out with U+FFFD
 * in place of each bad byte, so the output is always JSON.
 *
 * A member's name goes first, NULL inside arrays and for the document itself. Errors stay in the
 * stream, where rbk_cli_flush() finds them.
 */
#ifndef RBK_CLI_JSON_H
#define RBK_CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Begin with { stdout, false }. `comma`: the next member or element needs one before it.
 * `embedded`: the text goes into a page, so strings have no character that means something to HTML;
 * they read back as the same strings.
 */
struct cli_json {
    FILE *out;
    bool comma;
    bool embedded;
};

void rbk_json_object(struct cli_json *json, const char *name);
void rbk_json_object_end(struct cli_json *json);
void rbk_json_array(struct cli_json *json, const char *name);
void rbk_json_array_end(struct cli_json *json);

/* Infinity and NaN, which JSON lacks, are written as null. */
void rbk_json_real(struct cli_json *json, const char *name, double number);
void rbk_json_integer(struct cli_json *json, const char *name, int64_t number);
void rbk_json_unsigned(struct cli_json *json, const char *name, uint64_t number);
void rbk_json_bool(struct cli_json *json, const char *name, bool value);
void rbk_json_null(struct cli_json *json, const char *name);
void rbk_json_string(struct cli_json *json, const char *name, const char *text);
void rbk_json_bytes(struct cli_json *json, const char *name, const char *bytes, size_t len);

/* True for text that is written as it is, being UTF-8. */
bool rbk_json_exact(const char *bytes, size_t len);

/* Bytes as a string of hexadecimal digits. */
void rbk_json_hex(struct cli_json *json, const char *name, const char *bytes, size_t len);

/* Ends the document's line; the next document may begin. */
void rbk_json_line(struct cli_json *json);

#endif
