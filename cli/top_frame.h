/* SPDX-License-Identifier: MIT */
/*
 * What top has found, as a page of text or as an object.
 */
#ifndef RBK_CLI_TOP_FRAME_H
#define RBK_CLI_TOP_FRAME_H

#include "top_count.h"
#include "top_pass.h"

/*
 *   zone       of which buckets are shown alone, or NULL
 *   status     one line more, of what is going on, or NULL
 *   seconds    since the frame before, or 0
 *   columns, rows  of the page; nothing is longer
 */
struct cli_top_frame {
    const struct cli_context *context;
    const struct cli_top_view *view;
    const struct cli_top_table *table;
    const char *zone;
    const char *status;
    double seconds;
    size_t columns;
    size_t rows;
    bool by_level;
};

/* Lines that end with newlines, of printable ASCII. */
void rbk_top_text(const struct cli_top_frame *frame, FILE *out);

/* An object in one line. */
void rbk_top_json(const struct cli_top_frame *frame);

#endif
