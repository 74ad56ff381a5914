/* SPDX-License-Identifier: MIT */
/*
 * The summary for people, in 80 columns: a line of totals each, a table of keys for each limit, and
 * bars over time. What comes from outside is printable by then.
 */
#include "summary.h"

#include "civil.h"
#include "printable.h"

#include <string.h>

enum {
    WIDTH = 80,
    KEY_COLUMNS = 38,
};

static int64_t milliseconds(double time_s)
{
    const double most = 1e12; /* far beyond any date, and still a number that fits */

    if (time_s > most || time_s < -most)
        time_s = time_s < 0 ? -most : most;
    return (int64_t)(time_s * 1000);
}

static void print_span(const struct rbk_summary *summary, FILE *out)
{
    char lines[RBK_NUMBER_SIZE];
    char first[RBK_CIVIL_SIZE];
    char last[RBK_CIVIL_SIZE];

    rbk_grouped(summary->lines, lines);
    fprintf(out, "%s %s", lines, summary->lines == 1 ? "line" : "lines");
    if (summary->timed) {
        rbk_civil_format(milliseconds(summary->first_s), RBK_CIVIL_SECOND, first);
        rbk_civil_format(milliseconds(summary->last_s), RBK_CIVIL_SECOND, last);
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

static void print_totals(const struct rbk_summary *summary, const struct rbk_faults *faults,
                         FILE *out)
{
    const uint64_t requests = summary->accepted + summary->rejected;
    char file[RBK_PRINTABLE_SIZE];

    print_total("accepted", summary->accepted, requests, out);
    fprintf(out, "\n");
    print_total("  delayed", summary->delayed, requests, out);
    fprintf(out, "   of these accepted with a wait\n");
    print_total("rejected", summary->rejected, requests, out);
    fprintf(out, "\n");
    if (summary->others > 0) {
        print_total("others", summary->others, summary->lines, out);
        fprintf(out, "   peek, refund, charge, reset\n");
    }
    print_total("late", summary->late, summary->lines, out);
    fprintf(out, summary->late ? "   beyond --reorder; are files in order of time?\n" : "\n");
    print_total("unreadable", faults->count, summary->lines, out);
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

/* The rate by the second, or by a longer time where that reads better: "10/m", not 0.1666... */
static void format_rate(double rate, char out[RBK_NUMBER_SIZE + REDBUCKET_NUMBER_SIZE])
{
    static const struct {
        double seconds;
        const char *name;
    } units[] = {{1, "s"}, {60, "m"}, {3600, "h"}, {86400, "d"}};
    char shortest[REDBUCKET_NUMBER_SIZE];
    size_t best = 0;

    redbucket_number_format(rate, shortest);
    for (size_t i = 1; i < sizeof(units) / sizeof(units[0]) && strlen(shortest) > 5; i++) {
        char number[REDBUCKET_NUMBER_SIZE];

        redbucket_number_format(rate * units[i].seconds, number);
        if (strlen(number) < strlen(shortest)) {
            memcpy(shortest, number, sizeof(shortest));
            best = i;
        }
    }
    snprintf(out, RBK_NUMBER_SIZE + REDBUCKET_NUMBER_SIZE, "%s/%s", shortest, units[best].name);
}

/* The limit as one would type it, its rate made readable. */
static void print_limit_text(const struct redbucket_named_limit *limit, FILE *out)
{
    char text[REDBUCKET_LIMIT_TEXT_SIZE];
    char rate[RBK_NUMBER_SIZE + REDBUCKET_NUMBER_SIZE];
    char name[RBK_PRINTABLE_SIZE];
    const size_t name_len = strlen(limit->name);
    const char *rest;

    redbucket_limit_format(limit, text);
    rest = text + (name_len < strlen(text) ? name_len : strlen(text));
    rest += strcspn(rest, ",");
    format_rate(limit->limit.rate, rate);
    rbk_printable((struct rbk_span){limit->name, name_len}, name_len, KEY_COLUMNS, name);
    fprintf(out, "\n%s:%s%s\n", name, rate, rest);
}

static void print_limit_head(const struct rbk_summary_limit *limit, FILE *out)
{
    char requests[RBK_NUMBER_SIZE];
    char keys[RBK_NUMBER_SIZE];
    bool exact;

    print_limit_text(limit->limit, out);
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

/* "4 h", "30 s", "100 ms". */
static void format_width(int64_t width_ms, char out[RBK_NUMBER_SIZE])
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;

    while (width_ms % units[i].ms != 0)
        i++;
    snprintf(out, RBK_NUMBER_SIZE, "%lld %s", (long long)(width_ms / units[i].ms), units[i].name);
}

static enum rbk_civil_detail detail_of(int64_t width_ms)
{
    if (width_ms % 86400000 == 0)
        return RBK_CIVIL_DAY;
    if (width_ms % 60000 == 0)
        return RBK_CIVIL_MINUTE;
    return width_ms % 1000 == 0 ? RBK_CIVIL_SECOND : RBK_CIVIL_MILLISECOND;
}

static uint64_t bin_total(const struct rbk_histogram_bin *bin)
{
    uint64_t total = 0;

    for (int kind = 0; kind < RBK_HISTOGRAM_KINDS; kind++)
        total += bin->counts[kind];
    return total;
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

    rbk_civil_format(begin_ms, detail_of(histogram->width_ms), begin);
    rbk_grouped(bin_total(bin), numbers[0]);
    rbk_grouped(bin->counts[RBK_HISTOGRAM_DELAYED], numbers[1]);
    rbk_grouped(bin->counts[RBK_HISTOGRAM_REJECTED], numbers[2]);
    len = fprintf(out, "%-16s %10s %9s %9s  ", begin, numbers[0], numbers[1], numbers[2]);
    if (bin_total(bin) > 0 && len > 0 && len < WIDTH - 10)
        print_bar(bin, most, (size_t)(WIDTH - len), out);
    fprintf(out, "\n");
}

static void print_when(struct rbk_histogram *histogram, FILE *out)
{
    char width[RBK_NUMBER_SIZE];
    char title[2 * RBK_NUMBER_SIZE];
    uint64_t most = 1;

    if (histogram->len == 0)
        return;
    rbk_histogram_settle(histogram);
    format_width(histogram->width_ms, width);
    for (size_t i = 0; i < histogram->len; i++)
        if (bin_total(&histogram->bins[i]) > most)
            most = bin_total(&histogram->bins[i]);
    snprintf(title, sizeof(title), "UTC, %s a row", width);
    fprintf(out, "\n%-16s   requests   delayed  rejected  . at once + delayed # rejected\n", title);
    for (size_t i = 0; i < histogram->len; i++)
        print_row(histogram, i, most, out);
}

void rbk_summary_print_text(struct rbk_summary *summary, const struct rbk_faults *faults, FILE *out)
{
    print_span(summary, out);
    print_totals(summary, faults, out);
    for (size_t i = 0; i < summary->limits_len; i++)
        print_limit(&summary->limits[i], out);
    print_when(&summary->histogram, out);
}
