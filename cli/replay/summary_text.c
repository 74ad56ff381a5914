/* SPDX-License-Identifier: MIT */
/*
 * The summary for people, in 80 columns: a line of totals each, a table of keys for each limit, and
 * bars over time. What comes from outside is printable by then.
 */
#include "findings.h"

#include "civil.h"
#include "limit_shown.h"
#include "printable.h"

#include <string.h>

enum {
    WIDTH = 80,
    KEY_COLUMNS = 38,
};

void rbk_findings_print_span(const struct rbk_findings *findings, FILE *out)
{
    const struct rbk_traffic *traffic = findings->traffic;
    char lines[RBK_NUMBER_SIZE];
    char first[RBK_CIVIL_SIZE];
    char last[RBK_CIVIL_SIZE];

    rbk_grouped(traffic->lines, lines);
    fprintf(out, "%s %s", lines, traffic->lines == 1 ? "line" : "lines");
    if (traffic->timed) {
        rbk_civil_format(rbk_civil_ms(traffic->first_s), RBK_CIVIL_SECOND, first);
        rbk_civil_format(rbk_civil_ms(traffic->last_s), RBK_CIVIL_SECOND, last);
        fprintf(out, " from %s to %s UTC", first, last);
    }
    fprintf(out, "\n\n");
}

static void print_total(const char *name, uint64_t count, uint64_t whole, FILE *out)
{
    char number[RBK_NUMBER_SIZE];
    char share[RBK_NUMBER_SIZE];

    rbk_grouped(count, number);
    rbk_share(count, whole, share);
    fprintf(out, "%-12s %13s %9s", name, number, share);
}

static void print_totals(const struct rbk_summary *summary, const struct rbk_traffic *traffic,
                         FILE *out)
{
    const uint64_t requests = summary->accepted + summary->rejected;

    print_total("accepted", summary->accepted, requests, out);
    fprintf(out, "\n");
    print_total("  delayed", summary->delayed, requests, out);
    fprintf(out, "   of these accepted with a wait\n");
    print_total("rejected", summary->rejected, requests, out);
    fprintf(out, "\n");
    if (traffic->others > 0) {
        print_total("others", traffic->others, traffic->lines, out);
        fprintf(out, "   peek, refund, charge, reset\n");
    }
}

void rbk_findings_print_damage(const struct rbk_findings *findings, FILE *out)
{
    const struct rbk_traffic *traffic = findings->traffic;
    const struct rbk_faults *faults = findings->faults;
    char file[RBK_PRINTABLE_SIZE];

    print_total("late", traffic->late, traffic->lines, out);
    fprintf(out, traffic->late ? "   beyond --reorder; are files in order of time?\n" : "\n");
    print_total("unreadable", faults->count, traffic->lines, out);
    if (faults->count > 0) {
        const char *name = rbk_faults_file(faults);

        rbk_printable((struct rbk_span){name, strlen(name)}, strlen(name), 24, file);
        fprintf(out, "   first: %s:%llu", file, (unsigned long long)faults->first.line);
    }
    fprintf(out, "\n");
}

/* A count of a key's hits; '+' when there may have been more before it was counted. */
static void print_hits(uint64_t count, uint64_t whole, bool exact, FILE *out)
{
    char number[RBK_NUMBER_SIZE];
    char share[RBK_NUMBER_SIZE];

    rbk_grouped(count, number);
    rbk_share(count, whole, share);
    fprintf(out, " %9s%s %8s", number, exact ? " " : "+", share);
}

static void print_key(const struct rbk_summary_limit *limit, const struct rbk_hit *hit, FILE *out)
{
    char key[RBK_PRINTABLE_SIZE];

    if (hit->key_len == 0)
        snprintf(key, sizeof(key), "(empty)");
    else
        rbk_printable(hit->key, hit->key_len, KEY_COLUMNS - 2, key);
    fprintf(out, "  %-*s", KEY_COLUMNS - 2, key);
    print_hits(hit->rejected, limit->rejected, hit->missed == 0, out);
    print_hits(hit->delayed, limit->delayed, hit->missed == 0, out);
    fprintf(out, "\n");
}

static void print_limit_head(const struct rbk_summary_limit *limit, FILE *out)
{
    char text[RBK_LIMIT_SHOWN_SIZE];
    char requests[RBK_NUMBER_SIZE];
    char keys[RBK_NUMBER_SIZE];
    bool exact;

    rbk_limit_shown(limit->limit, text);
    fprintf(out, "\n%s\n", text);
    rbk_grouped(limit->requests, requests);
    rbk_grouped(rbk_hits_keys(limit->hits, &exact), keys);
    fprintf(out, "  %s %s, ", requests, limit->requests == 1 ? "request" : "requests");
    if (limit->delayed + limit->rejected == 0)
        fprintf(out, "none delayed or rejected\n");
    else
        fprintf(out, "%s%s %s delayed or rejected; the hardest hit:\n", exact ? "" : "more than ",
                keys, strcmp(keys, "1") == 0 ? "key" : "keys");
}

static void print_limit(const struct rbk_summary_limit *limit, FILE *out)
{
    struct rbk_hit top[RBK_SUMMARY_KEYS];
    const size_t len = rbk_hits_top(limit->hits, RBK_SUMMARY_KEYS, top);
    bool exact = true;

    print_limit_head(limit, out);
    if (len > 0)
        fprintf(out, "  %-*s %9s  %8s %9s  %8s\n", KEY_COLUMNS - 2, "key", "rejected", "share",
                "delayed", "share");
    for (size_t i = 0; i < len; i++) {
        print_key(limit, &top[i], out);
        exact = exact && top[i].missed == 0;
    }
    if (!exact)
        fprintf(out, "  + or more: there were too many keys to count each from the beginning\n");
}

/* What is there at all is seen: each kind that occurs has one character at least. */
static void print_bar(const struct rbk_histogram_bin *bin, uint64_t most, size_t columns, FILE *out)
{
    static const char marks[RBK_HISTOGRAM_KINDS] = {'.', '+', '#'};

    for (int kind = 0; kind < RBK_HISTOGRAM_KINDS; kind++) {
        /* Two columns are kept back for what is rounded up. */
        const uint64_t scaled = bin->counts[kind] * (columns - 2) / most;
        const uint64_t len = scaled == 0 && bin->counts[kind] > 0 ? 1 : scaled;

        for (uint64_t i = 0; i < len; i++)
            putc(marks[kind], out);
    }
}

static void print_row(const struct rbk_histogram *histogram, size_t index, uint64_t most, FILE *out)
{
    const struct rbk_histogram_bin *bin = &histogram->bins[index];
    const int64_t begin_ms = (histogram->first + (int64_t)index) * histogram->width_ms;
    char begin[RBK_CIVIL_SIZE];
    char numbers[3][RBK_NUMBER_SIZE];
    int len;

    rbk_civil_format(begin_ms, rbk_civil_detail_of(histogram->width_ms), begin);
    rbk_grouped(rbk_histogram_total(bin), numbers[0]);
    rbk_grouped(bin->counts[RBK_HISTOGRAM_DELAYED], numbers[1]);
    rbk_grouped(bin->counts[RBK_HISTOGRAM_REJECTED], numbers[2]);
    len = fprintf(out, "%-16s %10s %9s %9s  ", begin, numbers[0], numbers[1], numbers[2]);
    if (rbk_histogram_total(bin) > 0 && len > 0 && len < WIDTH - 10)
        print_bar(bin, most, (size_t)(WIDTH - len), out);
    fprintf(out, "\n");
}

static void print_when(struct rbk_histogram *histogram, FILE *out)
{
    char width[RBK_WIDTH_SIZE];
    char title[2 * RBK_WIDTH_SIZE];
    uint64_t most = 1;

    if (histogram->len == 0)
        return;
    rbk_histogram_settle(histogram, RBK_SUMMARY_ROWS);
    rbk_width_format(histogram->width_ms, width);
    for (size_t i = 0; i < histogram->len; i++)
        if (rbk_histogram_total(&histogram->bins[i]) > most)
            most = rbk_histogram_total(&histogram->bins[i]);
    snprintf(title, sizeof(title), "UTC, %s a row", width);
    fprintf(out, "\n%-16s   requests   delayed  rejected  . at once + delayed # rejected\n", title);
    for (size_t i = 0; i < histogram->len; i++)
        print_row(histogram, i, most, out);
}

static void print_one(struct rbk_summary *summary, FILE *out)
{
    for (size_t i = 0; i < summary->limits_len; i++)
        print_limit(&summary->limits[i], out);
    print_when(&summary->histogram, out);
}

enum redbucket_status rbk_findings_print_text(const struct rbk_findings *findings, FILE *out)
{
    enum redbucket_status status = REDBUCKET_OK;

    rbk_findings_print_span(findings, out);
    if (findings->compared)
        status = rbk_compare_print_text(findings, out);
    else
        print_totals(findings->summaries[0], findings->traffic, out);
    rbk_findings_print_damage(findings, out);
    if (!findings->compared)
        print_one(findings->summaries[0], out);
    return status;
}
