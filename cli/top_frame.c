/* SPDX-License-Identifier: MIT */
/*
 * A page is made line by line, each cut to the columns that there are: what is most telling stands
 * first in a line, and first on the page. Rows go to a few zones, and what is left to keys.
 */
#include "top_frame.h"

#include "replay/printable.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

/* Two numbers and what is between them. */
#define RATES_SIZE ((size_t)2 * RBK_NUMBER_SIZE)

#define LINE_SIZE    1024
#define ZONE_COLUMNS 24
#define ZONES_SHOWN  6

struct page {
    FILE *out;
    size_t columns;
    size_t rows; /* left */
};

__attribute__((format(printf, 2, 3))) static void print_line(struct page *page, const char *format,
                                                             ...)
{
    char line[LINE_SIZE];
    va_list arguments;

    if (page->rows == 0)
        return;
    page->rows--;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    fprintf(page->out, "%.*s\n", (int)(page->columns < LINE_SIZE ? page->columns : LINE_SIZE),
            line);
}

/* One digit behind the point for what is small, groups of three for what isn't. */
static const char *format_rate(double rate, char out[RBK_NUMBER_SIZE])
{
    const uint64_t tenths =
        rate < 1e15 ? (uint64_t)(rate * 10.0 + 0.5) : UINT64_C(10000000000000000);

    if (rate > 0.0 && tenths == 0)
        snprintf(out, RBK_NUMBER_SIZE, "<0.1");
    else if (tenths < 1000)
        snprintf(out, RBK_NUMBER_SIZE, "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
    else
        rbk_grouped((tenths + 5) / 10, out);
    return out;
}

static const char *format_count(uint64_t number, char out[RBK_NUMBER_SIZE])
{
    rbk_grouped(number, out);
    return out;
}

static const char *format_level(double number, char out[REDBUCKET_NUMBER_SIZE])
{
    redbucket_number_format(number < 1e9 ? round(number * 100.0) / 100.0 : number, out);
    return out;
}

/* ---- The head ------------------------------------------------------------------------------- */

static void print_table(struct page *page, const struct cli_top_table *table)
{
    char decided[RBK_NUMBER_SIZE], accepted[RBK_NUMBER_SIZE], delayed[RBK_NUMBER_SIZE],
        rejected[RBK_NUMBER_SIZE], evicted[RBK_NUMBER_SIZE], full[RBK_NUMBER_SIZE];

    if (!table->rated)
        return;
    print_line(page, "decisions %s/s: accepted %s/s, of these delayed %s/s; rejected %s/s",
               format_rate(table->accepted + table->rejected, decided),
               format_rate(table->accepted, accepted), format_rate(table->delayed, delayed),
               format_rate(table->rejected, rejected));
    if (table->evicted > 0.0 || table->full > 0.0)
        print_line(page, "the table is too small: evicted %s/s, refused %s/s",
                   format_rate(table->evicted, evicted), format_rate(table->full, full));
}

/* Without limits nobody knows what the buckets of a server may hold. */
static bool bounded(const struct cli_top_view *view)
{
    for (size_t i = 0; i < view->zones_len; i++)
        if (view->zones[i].bounded)
            return true;
    return false;
}

static void print_buckets(struct page *page, const struct cli_top_frame *frame)
{
    const struct cli_top_view *view = frame->view;
    char count[RBK_NUMBER_SIZE], out[RBK_NUMBER_SIZE], drained[RBK_NUMBER_SIZE],
        held[RBK_NUMBER_SIZE], most[RBK_NUMBER_SIZE], share[RBK_NUMBER_SIZE];
    char place[4 * RBK_NUMBER_SIZE] = "";
    char kept[2 * RBK_NUMBER_SIZE] = "";

    if (frame->table->known) {
        rbk_share(frame->table->buckets, frame->table->capacity, share);
        snprintf(place, sizeof(place), "; %s of %s places taken (%s)",
                 format_count(frame->table->buckets, held),
                 format_count(frame->table->capacity, most), share);
    }
    if (bounded(view))
        snprintf(kept, sizeof(kept), ", %s kept out", format_count(view->kept_out, out));
    print_line(page, "buckets %s%s; %s empty by now%s", format_count(view->buckets, count), kept,
               format_count(view->drained, drained), place);
    if (view->unreadable > 0)
        print_line(page, "%s buckets can't be read", format_count(view->unreadable, count));
    if (view->untracked > 0)
        print_line(page, "%s buckets more than can be compared",
                   format_count(view->untracked, count));
}

static void print_head(struct page *page, const struct cli_top_frame *frame)
{
    char url[CLI_URL_SIZE];
    char shown[RBK_PRINTABLE_SIZE];
    char rate[RBK_NUMBER_SIZE];

    rbk_cli_mask_url(frame->context->store_url, url);
    rbk_printable((struct rbk_span){url, strlen(url)}, strlen(url), RBK_PRINTABLE_COLUMNS, shown);
    print_line(page, "redbucket top: %s", shown);
    if (frame->status != NULL)
        print_line(page, "%s", frame->status);
    if (frame->table->known)
        print_table(page, frame->table);
    else if (frame->view->rated)
        print_line(page, "taken at least %s/s; rejections are not seen by a server, see --help",
                   format_rate(frame->view->taken_per_second, rate));
    print_buckets(page, frame);
}

/* ---- Zones and keys ------------------------------------------------------------------------- */

static void show_zone(const char *bytes, size_t len, bool guessed, char out[RBK_PRINTABLE_SIZE])
{
    rbk_printable((struct rbk_span){bytes, len}, len, ZONE_COLUMNS, out);
    if (guessed)
        memcpy(out + strlen(out), "?", sizeof("?"));
}

/* A zone that has buckets, or of which the table counts requests, or both. */
struct row {
    const char *name;
    size_t name_len;
    const struct cli_top_zone *zone;
    const struct cli_top_rates *rates;
};

static double rejected(const struct row *row)
{
    return row->rates != NULL ? row->rates->rejected : 0.0;
}

/* Who is rejected most stands first; others as they come. */
static void add_row(struct row *rows, size_t len, const struct row *row)
{
    size_t at = len;

    for (; at > 0 && rejected(&rows[at - 1]) < rejected(row); at--)
        rows[at] = rows[at - 1];
    rows[at] = *row;
}

static bool has_row(const struct row *rows, size_t len, const struct cli_top_rates *rates)
{
    for (size_t i = 0; i < len; i++) {
        if (rows[i].rates == rates)
            return true;
    }
    return false;
}

static bool wanted(const struct cli_top_frame *frame, const struct cli_top_rates *rates)
{
    return (rates->accepted > 0.0 || rates->rejected > 0.0) &&
           (frame->zone == NULL || strcmp(frame->zone, rates->zone) == 0);
}

static size_t make_rows(const struct cli_top_frame *frame, struct row *rows)
{
    const struct cli_top_view *view = frame->view;
    const struct cli_top_table *table = frame->table;
    size_t len = 0;

    for (size_t i = 0; i < view->zones_len; i++) {
        const struct cli_top_zone *zone = &view->zones[i];
        const struct row row = {zone->zone, zone->zone_len, zone,
                                rbk_top_rates(table, zone->zone, zone->zone_len)};

        add_row(rows, len++, &row);
    }
    for (size_t i = 0; i < table->zones_len; i++) {
        const struct cli_top_rates *rates = &table->zones[i];
        const struct row row = {rates->zone, rates->zone_len, NULL, rates};

        if (wanted(frame, rates) && !has_row(rows, len, rates))
            add_row(rows, len++, &row);
    }
    return len;
}

/* What a table has counted, or what the states tell. */
static void format_rates(const struct cli_top_frame *frame, const struct row *row,
                         char out[2 * RBK_NUMBER_SIZE])
{
    char first[RBK_NUMBER_SIZE] = "-", second[RBK_NUMBER_SIZE] = "-";

    if (!frame->table->known) {
        if (frame->view->rated)
            format_rate(row->zone->taken_per_second, first);
        snprintf(out, RATES_SIZE, "%10s", first);
        return;
    }
    if (row->rates != NULL) {
        format_rate(row->rates->accepted, first);
        format_rate(row->rates->rejected, second);
    }
    snprintf(out, RATES_SIZE, "%10s %10s", first, second);
}

static void print_row(struct page *page, const struct cli_top_frame *frame, const struct row *row)
{
    char name[RBK_PRINTABLE_SIZE], rates[RATES_SIZE], buckets[RBK_NUMBER_SIZE] = "0",
                                                      kept[RBK_NUMBER_SIZE] = "-";

    show_zone(row->name, row->name_len, false, name);
    format_rates(frame, row, rates);
    if (row->zone != NULL)
        format_count(row->zone->buckets, buckets);
    if (row->zone != NULL && row->zone->bounded)
        format_count(row->zone->kept_out, kept);
    print_line(page, "%s %10s %10s  %s", rates, buckets, kept,
               row->name_len > 0 ? name : "(others)");
}

static void print_zones(struct page *page, const struct cli_top_frame *frame)
{
    struct row rows[CLI_TOP_ZONES + REDBUCKET_ZONES_MAX];
    const size_t len = make_rows(frame, rows);

    if (len == 0)
        return;
    print_line(page, "%s", "");
    print_line(page, "%s %10s %10s  %s",
               frame->table->known ? "accepted/s rejected/s" : "   taken/s", "buckets", "kept out",
               "zone");
    for (size_t i = 0; i < len && i < ZONES_SHOWN; i++)
        print_row(page, frame, &rows[i]);
    if (len > ZONES_SHOWN)
        print_line(page, "%*s(%zu more)", frame->table->known ? 45 : 34, "", len - ZONES_SHOWN);
}

static void print_key(struct page *page, const struct cli_top_key *key)
{
    char zone[RBK_PRINTABLE_SIZE], text[RBK_PRINTABLE_SIZE], rate[RBK_NUMBER_SIZE];
    char level[REDBUCKET_NUMBER_SIZE], most[REDBUCKET_NUMBER_SIZE] = "-";
    char wait[CLI_SECONDS_SIZE] = "-";

    show_zone(key->zone, key->zone_len, key->guessed, zone);
    rbk_printable((struct rbk_span){key->key, key->key_len}, key->whole_len, RBK_PRINTABLE_COLUMNS,
                  text);
    if (key->seen.most > 0.0)
        format_level(key->seen.most, most);
    if (key->seen.known)
        rbk_cli_seconds_format(key->seen.reset_after, wait);
    print_line(page, "%10s %10s %7s %12s %s %-8s %s",
               key->rated ? format_rate(key->taken_per_second, rate) : "-",
               format_level(key->seen.level, level), most, wait, key->kept_out ? "!" : " ", zone,
               text);
}

void rbk_top_text(const struct cli_top_frame *frame, FILE *out)
{
    struct page page = {out, frame->columns, frame->rows};
    const struct cli_top_view *view = frame->view;

    print_head(&page, frame);
    print_zones(&page, frame);
    if (view->keys_len == 0)
        return;
    print_line(&page, "%s", "");
    print_line(&page, "%10s %10s %7s %12s   %-8s %s", frame->by_level ? "taken/s" : "taken/s *",
               frame->by_level ? "level *" : "level", "of", "empty in", "zone", "key");
    for (size_t i = 0; i < view->keys_len; i++)
        print_key(&page, &view->keys[i]);
}
