/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a configuration file: reading them is safe, a fault names a line that is there, and
 * every limit that comes out is one. Needs cli/config.c, cli/config_scan.c and libConfuse beside
 * the library, and -Icli.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count_lines(const uint8_t *data, size_t size)
{
    int lines = 1;

    for (size_t i = 0; i < size; i++)
        lines += data[i] == '\n';
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_config config;
    struct cli_config_fault fault;
    char text[REDBUCKET_LIMIT_TEXT_SIZE];

    if (rbk_config_parse((const char *)data, size, &config, &fault) != REDBUCKET_OK) {
        if (fault.message[0] == '\0' || fault.line < 0 || fault.line > count_lines(data, size))
            abort();
        if (config.limits != NULL || config.store != NULL)
            abort();
        return 0;
    }
    for (size_t i = 0; i < config.limits_len; i++) {
        struct redbucket_named_limit again;

        redbucket_limit_format(config.limits[i], text);
        if (redbucket_limit_parse(text, &again, NULL) != REDBUCKET_OK ||
            again.limit.rate != config.limits[i]->limit.rate)
            abort();
    }
    rbk_config_fini(&config);
    return 0;
}
