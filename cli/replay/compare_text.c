/* SPDX-License-Identifier: MIT */
/*
 * Sets of limits beside each other, for people, in 80 columns: totals, the same keys under each of
 * them, and when, as a line of characters each. Columns are in groups of as many sets as fit.
 */
#include "compare.h"

#include "civil.h"
#include "limit_shown.h"
#include "printable.h"

#include <string.h>

enum {
    NAME_COLUMNS = 16,
    KEY_COLUMNS = 30,
    CELL_COLUMNS = 16,
    SETS_A_ROW = 3,
    CHART_COLUMNS = 48,
};

static void print_sets(const struct rbk_findings *findings, FILE *out)
{
    char text[RBK_LIMIT_SHOWN_SIZE];

    for (size_t i = 0; i < findings->len; i++) {
        const struct rbk_summary *summary = findings->summaries[i];

        for (size_t j = 0; j < summary->limits_len; j++) {
            rbk_limit_shown(summary->limits[j].limit, text);
            fprintf(out, "%-*s %s\n", NAME_COLUMNS, j == 0 ? summary->name : "", text);
        }
    }
}

static void print_count(uint64_t count, uint64_t whole, FILE *out)
{
    char number[RBK_NUMBER_SIZE];
    char share[RBK_NUMBER_SIZE];

    rbk_grouped(count, number);
    rbk_share(count, whole, share);
    fprintf(out, " %11s %8s", number, share);
}

static void print_totals(const struct rbk_findings *findings, FILE *out)
{
    fprintf(out, "\n%-*s %11s %8s %11s %8s %11s %8s\n", NAME_COLUMNS, "set", "at once", "share",
            "delayed", "share", "rejected", "share");
    for (size_t i = 0; i < findings->len; i++) {
        const struct rbk_summary *summary = findings->summaries[i];
        const uint64_t requests = summary->accepted + summary->rejected;

        fprintf(out, "%-*s", NAME_COLUMNS, summary->name);
        print_count(summary->accepted - summary->delayed, requests, out);
        print_count(summary->delayed, requests, out);
        print_count(summary->rejected, requests, out);
        fprintf(out, "\n");
    }
}

/* "63", "1,204 (18)", "63+" where there may have been more. */
static void print_cell(const struct rbk_hit *hit, FILE *out)
{
    char cell[2 * RBK_NUMBER_SIZE + 8];
    char rejected[RBK_NUMBER_SIZE];
    char delayed[RBK_NUMBER_SIZE];
    const char *more = hit->missed > 0 ? "+" : "";

    rbk_grouped(hit->rejected, rejected);
    rbk_grouped(hit->delayed, delayed);
    if (hit->delayed > 0)
        snprintf(cell, sizeof(cell), "%s%s (%s)", rejected, more, delayed);
    else
        snprintf(cell, sizeof(cell), "%s%s", rejected, more);
    fprintf(out, "%*s", CELL_COLUMNS, cell);
}

static void print_key(const struct rbk_compared_limit *compared, size_t index,
                      const size_t range[2], FILE *out)
{
    const struct rbk_compared_key *key = &compared->keys[index];
    char text[RBK_PRINTABLE_SIZE];

    if (key->hits[0].key_len == 0)
        snprintf(text, sizeof(text), "(empty)");
    else
        rbk_printable(key->hits[0].key, key->hits[0].key_len, KEY_COLUMNS, text);
    fprintf(out, "  %-*s", KEY_COLUMNS, text);
    for (size_t i = range[0]; i < range[1]; i++) {
        if (compared->limits[i])
            print_cell(&key->hits[i], out);
        else
            fprintf(out, "%*s", CELL_COLUMNS, "-");
    }
    fprintf(out, "\n");
}

/* How many keys each set hits. */
static void print_keys_hit(const struct rbk_compared_limit *compared, const size_t range[2],
                           FILE *out)
{
    fprintf(out, "  %-*s", KEY_COLUMNS, "keys delayed or rejected");
    for (size_t i = range[0]; i < range[1]; i++) {
        char cell[RBK_NUMBER_SIZE] = "-";
        bool exact = true;

        if (compared->limits[i])
            rbk_grouped(rbk_hits_keys(compared->limits[i]->hits, &exact), cell);
        fprintf(out, "%*s%s", CELL_COLUMNS - !exact, cell, exact ? "" : "+");
    }
    fprintf(out, "\n");
}

static void print_group(const struct rbk_findings *findings,
                        const struct rbk_compared_limit *compared, size_t first, FILE *out)
{
    const size_t rest = findings->len - first;
    const size_t range[2] = {first, first + (rest < SETS_A_ROW ? rest : SETS_A_ROW)};

    fprintf(out, "  %-*s", KEY_COLUMNS, "key");
    for (size_t i = range[0]; i < range[1]; i++)
        fprintf(out, "%*s", CELL_COLUMNS, findings->summaries[i]->name);
    fprintf(out, "\n");
    for (size_t i = 0; i < compared->keys_len; i++)
        print_key(compared, i, range, out);
    print_keys_hit(compared, range, out);
}

static enum redbucket_status print_limit(const struct rbk_findings *findings, const char *name,
                                         FILE *out)
{
    struct rbk_compared_limit compared;
    char text[RBK_PRINTABLE_SIZE];

    if (rbk_compare_limit(findings, name, RBK_SUMMARY_KEYS, &compared) != REDBUCKET_OK)
        return REDBUCKET_ERROR_MEMORY;
    rbk_printable((struct rbk_span){name, strlen(name)}, strlen(name), KEY_COLUMNS, text);
    fprintf(out, "\n%s: %s\n", text,
            compared.keys_len > 0 ? "the keys hit hardest; rejected (and delayed) under each set"
                                  : "no set delays or rejects anybody");
    for (size_t i = 0; compared.keys_len > 0 && i < findings->len; i += SETS_A_ROW) {
        if (i > 0)
            fprintf(out, "\n");
        print_group(findings, &compared, i, out);
    }
    rbk_compare_fini(&compared);
    return REDBUCKET_OK;
}

/* A bin's count as one of ten characters; what is there at all is seen. */
static char mark_of(uint64_t count, uint64_t most)
{
    static const char marks[] = " .:-=+*#%@";

    if (count == 0)
        return marks[0];
    return marks[1 + (count - 1) * 9 / most];
}

/* The bins of a histogram, all kinds or those that aren't at once, as a line. */
static void print_line(const struct rbk_summary *summary, bool all, uint64_t most, FILE *out)
{
    const struct rbk_histogram *histogram = &summary->histogram;
    char number[RBK_NUMBER_SIZE];
    uint64_t largest = 0;

    fprintf(out, "%-*s |", NAME_COLUMNS, all ? "requests" : summary->name);
    for (size_t i = 0; i < histogram->len; i++) {
        const struct rbk_histogram_bin *bin = &histogram->bins[i];
        const uint64_t count =
            rbk_histogram_total(bin) - (all ? 0 : bin->counts[RBK_HISTOGRAM_AT_ONCE]);

        putc(mark_of(count, most), out);
        largest = count > largest ? count : largest;
    }
    rbk_grouped(largest, number);
    fprintf(out, "| %10s\n", number);
}

/* The largest bin: of all requests, or of what any set delays or rejects. */
static uint64_t largest_bin(const struct rbk_findings *findings, bool all)
{
    uint64_t most = 1;

    for (size_t i = 0; i < findings->len; i++) {
        const struct rbk_histogram *histogram = &findings->summaries[i]->histogram;

        for (size_t j = 0; j < histogram->len; j++) {
            const struct rbk_histogram_bin *bin = &histogram->bins[j];
            const uint64_t count =
                rbk_histogram_total(bin) - (all ? 0 : bin->counts[RBK_HISTOGRAM_AT_ONCE]);

            most = count > most ? count : most;
        }
    }
    return most;
}

static void print_when(const struct rbk_findings *findings, FILE *out)
{
    const struct rbk_histogram *histogram = &findings->summaries[0]->histogram;
    char begin[RBK_CIVIL_SIZE];
    char width[RBK_WIDTH_SIZE];
    uint64_t most;

    if (histogram->len == 0)
        return;
    for (size_t i = 0; i < findings->len; i++)
        rbk_histogram_settle(&findings->summaries[i]->histogram, CHART_COLUMNS);
    rbk_width_format(histogram->width_ms, width);
    rbk_civil_format(histogram->first * histogram->width_ms,
                     rbk_civil_detail_of(histogram->width_ms), begin);
    fprintf(out, "\nUTC, %s a column from %s: all requests, and what each set\n", width, begin);
    fprintf(out, "delays or rejects, all sets on one scale%*s\n",
            NAME_COLUMNS + 13 + (int)histogram->len - 40, "at most");
    print_line(findings->summaries[0], true, largest_bin(findings, true), out);
    most = largest_bin(findings, false);
    for (size_t i = 0; i < findings->len; i++)
        print_line(findings->summaries[i], false, most, out);
}

enum redbucket_status rbk_compare_print_text(const struct rbk_findings *findings, FILE *out)
{
    enum redbucket_status status = REDBUCKET_OK;

    print_sets(findings, out);
    print_totals(findings, out);
    for (size_t i = 0; status == REDBUCKET_OK && i < findings->names_len; i++)
        status = print_limit(findings, findings->names[i], out);
    print_when(findings, out);
    fprintf(out, "\n");
    return status;
}
