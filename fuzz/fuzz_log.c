/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a line of an access log, and as a template of keys for a line: reading them is safe,
 * and every field and key lies where it should. Needs cli/replay/address.c, civil.c,
 * key_template.c, log_line.c and log_time.c, and -Icli.
 */
#include "replay/key_template.h"
#include "replay/log_line.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rbk_key_buffer buffer;

static void key_make(const char *text, const struct rbk_log_line *line)
{
    struct rbk_key_template *template;
    struct rbk_span key;

    if (rbk_key_template_parse(text, &template, NULL) != REDBUCKET_OK)
        return;
    if (rbk_key_template_expand(template, line, &buffer, &key) == RBK_KEY_MADE &&
        key.len > RBK_KEY_MAX)
        abort();
    rbk_key_template_destroy(template);
}

static void line_check(struct rbk_span text, const struct rbk_log_line *line)
{
    for (int i = 0; i < RBK_LOG_FIELDS; i++) {
        const struct rbk_span field = line->fields[i];

        if (field.len > 0 &&
            (field.bytes < text.bytes || field.bytes + field.len > text.bytes + text.len))
            abort();
    }
    if (line->fields[RBK_LOG_REMOTE_ADDR].len == 0)
        abort();
    key_make("$remote_addr/64 $remote_user $uri$status", line);
    key_make("$remote_addr/0", line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct rbk_span text = {(const char *)data, size};
    struct rbk_log_line line;
    char *template;

    if (rbk_log_parse(text, &line, NULL) == REDBUCKET_OK) {
        line_check(text, &line);
        return 0;
    }
    template = calloc(1, size + 1);
    if (!template)
        return 0;
    memcpy(template, data, size);
    memset(&line, 0, sizeof(line));
    for (int i = 0; i < RBK_LOG_FIELDS; i++)
        line.fields[i] = (struct rbk_span){"2001:db8::1", 11};
    key_make(template, &line);
    free(template);
    return 0;
}
