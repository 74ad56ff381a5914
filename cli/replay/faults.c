/* SPDX-License-Identifier: MIT */
/*
 * Keeping the first line that can't be read. A step that the library refuses is found out when it
 * is decided, which may be long after it was read; so "first" goes by the place and not by when it
 * was told.
 */
#include "faults.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool earlier(struct rbk_place one, struct rbk_place other)
{
    return one.file != other.file ? one.file < other.file : one.line < other.line;
}

void rbk_faults_add(struct rbk_faults *faults, struct rbk_place place, const char *reason,
                    struct rbk_span line)
{
    if (faults->count++ > 0 && !earlier(place, faults->first))
        return;
    faults->first = place;
    snprintf(faults->reason, sizeof(faults->reason), "%s", reason);
    rbk_printable(line, line.len, RBK_FAULT_COLUMNS, faults->text);
}

const char *rbk_file_shown(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

const char *rbk_faults_file(const struct rbk_faults *faults)
{
    return rbk_file_shown(faults->files[faults->first.file]);
}
