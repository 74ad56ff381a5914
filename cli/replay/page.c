/* SPDX-License-Identifier: MIT */
/*
 * The page of a replay: a text that was made when the command was built, with the findings in it as
 * JSON, which its script draws.
 *
 * Keys and whatever else comes from outside are printable ASCII by then, as in the text summary,
 * and the JSON has no character that means something to HTML. So no line of a log can end the
 * element that the findings stand in, or look like another text than it is.
 */
#include "compare.h"

#include "../describe.h"
#include "../json.h"

#include "limit_shown.h"
#include "page_text.h"
#include "printable.h"

#include <string.h>

/* Bins over time in the chart of all requests, and of delays, at most. */
enum {
    CHART_BINS = 120,
    DELAY_BINS = 24,
};

/* How many keys of each limit are in the page. */
enum { KEYS = 24 };

/* What everything of a page is written with: `axis` is that of the keys' timelines. */
struct page {
    const struct rbk_findings *findings;
    struct rbk_axis axis;
    struct cli_json json;
};

static void print_text(struct cli_json *json, const char *name, struct rbk_span bytes, size_t len)
{
    char text[RBK_PRINTABLE_SIZE];

    rbk_printable(bytes, len, RBK_PRINTABLE_COLUMNS, text);
    rbk_json_string(json, name, text);
}

static void print_name(struct cli_json *json, const char *name, const char *text)
{
    print_text(json, name, (struct rbk_span){text, strlen(text)}, strlen(text));
}

static void print_axis(struct cli_json *json, const char *name, const struct rbk_axis *axis)
{
    rbk_json_object(json, name);
    rbk_json_real(json, "start", (double)(axis->first * axis->width_ms) / 1000);
    rbk_json_real(json, "width", (double)axis->width_ms / 1000);
    rbk_json_unsigned(json, "bins", axis->len);
    rbk_json_object_end(json);
}

/* For each kind, its counts over time. */
static void print_bins(struct cli_json *json, const struct rbk_histogram_bin *bins, size_t len)
{
    rbk_json_array(json, "when");
    for (int kind = 0; kind < RBK_HISTOGRAM_KINDS; kind++) {
        rbk_json_array(json, NULL);
        for (size_t i = 0; i < len; i++)
            rbk_json_unsigned(json, NULL, bins[i].counts[kind]);
        rbk_json_array_end(json);
    }
    rbk_json_array_end(json);
}

static size_t name_index(const struct rbk_findings *findings, const char *name)
{
    size_t index = 0;

    while (findings->names[index] != name)
        index++;
    return index;
}

/* All requests of a key; null where it isn't among those that asked most. */
static void print_requests(struct page *page, const struct rbk_hit *asked)
{
    if (asked->at_once > 0)
        rbk_json_unsigned(&page->json, "requests", asked->at_once);
    else
        rbk_json_null(&page->json, "requests");
    rbk_json_unsigned(&page->json, "requests_missed", asked->missed);
}

/* The bins of a key: its hits, and what passed at once where all its requests are known. */
static void print_key_bins(struct page *page, const struct rbk_hit *hit,
                           const struct rbk_hit *asked)
{
    struct rbk_histogram_bin bins[RBK_HITS_BINS] = {0};

    if (asked->timeline && asked->missed == 0 && hit->missed == 0)
        rbk_histogram_spread(asked->timeline, &page->axis, bins);
    rbk_histogram_spread(hit->timeline, &page->axis, bins);
    for (size_t i = 0; i < page->axis.len; i++) {
        uint64_t *counts = bins[i].counts;
        const uint64_t hits = counts[RBK_HISTOGRAM_DELAYED] + counts[RBK_HISTOGRAM_REJECTED];

        counts[RBK_HISTOGRAM_AT_ONCE] -=
            counts[RBK_HISTOGRAM_AT_ONCE] < hits ? counts[RBK_HISTOGRAM_AT_ONCE] : hits;
    }
    print_bins(&page->json, bins, page->axis.len);
}

static void print_hit(struct page *page, struct rbk_hits *all, const struct rbk_hit *hit)
{
    struct cli_json *json = &page->json;
    struct rbk_hit asked;

    rbk_hits_find(all, hit, &asked);
    rbk_json_object(json, NULL);
    print_text(json, "key", hit->key, hit->key_len);
    rbk_json_unsigned(json, "rejected", hit->rejected);
    rbk_json_unsigned(json, "delayed", hit->delayed);
    rbk_json_unsigned(json, "missed", hit->missed);
    print_requests(page, &asked);
    print_key_bins(page, hit, &asked);
    rbk_json_object_end(json);
}

static void print_limit_words(struct page *page, const struct rbk_summary_limit *limit)
{
    const size_t index = name_index(page->findings, limit->name);
    char words[CLI_DESCRIPTION_SIZE];
    char text[RBK_LIMIT_SHOWN_SIZE];

    rbk_describe(&limit->limit->limit, words);
    rbk_limit_shown(limit->limit, text);
    print_name(&page->json, "name", limit->name);
    rbk_json_string(&page->json, "words", words);
    print_name(&page->json, "text", text);
    if (page->findings->keys[index])
        print_name(&page->json, "key", page->findings->keys[index]);
    else
        rbk_json_null(&page->json, "key");
}

static void print_limit(struct page *page, const struct rbk_summary_limit *limit)
{
    struct rbk_hits *asked = page->findings->asked[name_index(page->findings, limit->name)];
    struct cli_json *json = &page->json;
    struct rbk_hit top[KEYS];
    const size_t len = rbk_hits_top(limit->hits, KEYS, top);
    bool exact;
    const size_t keys = rbk_hits_keys(limit->hits, &exact);

    rbk_json_object(json, NULL);
    print_limit_words(page, limit);
    rbk_json_unsigned(json, "requests", limit->requests);
    rbk_json_unsigned(json, "delayed", limit->delayed);
    rbk_json_unsigned(json, "rejected", limit->rejected);
    rbk_json_unsigned(json, "keys", keys);
    rbk_json_bool(json, "exact", exact);
    rbk_json_array(json, "hardest");
    for (size_t i = 0; i < len; i++)
        print_hit(page, asked, &top[i]);
    rbk_json_array_end(json);
    rbk_json_object_end(json);
}

static void print_delays(struct page *page, struct rbk_summary *summary)
{
    struct rbk_delays *delays = &summary->delays;
    struct rbk_histogram *histogram = &delays->histogram;
    struct cli_json *json = &page->json;

    rbk_histogram_settle(histogram, DELAY_BINS);
    rbk_json_object(json, "delays");
    rbk_json_real(json, "mean",
                  summary->delayed > 0 ? delays->sum_s / (double)summary->delayed : 0.0);
    rbk_json_real(json, "half", rbk_latency_quantile(&delays->quantiles, 0.5));
    rbk_json_real(json, "most", rbk_latency_quantile(&delays->quantiles, 0.95));
    rbk_json_real(json, "longest", delays->longest_s);
    print_axis(json, "axis",
               &(struct rbk_axis){histogram->width_ms, histogram->first, histogram->len});
    rbk_json_array(json, "counts");
    for (size_t i = 0; i < histogram->len; i++)
        rbk_json_unsigned(json, NULL, histogram->bins[i].counts[RBK_HISTOGRAM_DELAYED]);
    rbk_json_array_end(json);
    rbk_json_object_end(json);
}

static void print_set(struct page *page, struct rbk_summary *summary)
{
    struct cli_json *json = &page->json;

    rbk_json_object(json, NULL);
    print_name(json, "name", summary->name ? summary->name : "");
    rbk_json_unsigned(json, "accepted", summary->accepted);
    rbk_json_unsigned(json, "delayed", summary->delayed);
    rbk_json_unsigned(json, "rejected", summary->rejected);
    print_bins(json, summary->histogram.bins, summary->histogram.len);
    print_delays(page, summary);
    rbk_json_array(json, "limits");
    for (size_t i = 0; i < summary->limits_len; i++)
        print_limit(page, &summary->limits[i]);
    rbk_json_array_end(json);
    rbk_json_object_end(json);
}

static void print_compared_key(struct page *page, const struct rbk_compared_limit *compared,
                               const struct rbk_compared_key *key)
{
    struct rbk_hits *all = page->findings->asked[name_index(page->findings, compared->name)];
    struct cli_json *json = &page->json;
    struct rbk_hit asked;

    rbk_hits_find(all, &key->hits[0], &asked);
    rbk_json_object(json, NULL);
    print_text(json, "key", key->hits[0].key, key->hits[0].key_len);
    print_requests(page, &asked);
    rbk_json_array(json, "sets");
    for (size_t i = 0; i < page->findings->len; i++) {
        if (!compared->limits[i]) {
            rbk_json_null(json, NULL);
            continue;
        }
        rbk_json_object(json, NULL);
        rbk_json_unsigned(json, "rejected", key->hits[i].rejected);
        rbk_json_unsigned(json, "delayed", key->hits[i].delayed);
        rbk_json_unsigned(json, "missed", key->hits[i].missed);
        rbk_json_object_end(json);
    }
    rbk_json_array_end(json);
    rbk_json_object_end(json);
}

/* An array and not an object, for a limit may have any name. */
static enum redbucket_status print_compared(struct page *page)
{
    const struct rbk_findings *findings = page->findings;
    struct cli_json *json = &page->json;

    rbk_json_array(json, "compared");
    for (size_t i = 0; i < findings->names_len; i++) {
        struct rbk_compared_limit compared;

        if (rbk_compare_limit(findings, findings->names[i], KEYS, &compared) != REDBUCKET_OK)
            return REDBUCKET_ERROR_MEMORY;
        rbk_json_object(json, NULL);
        print_name(json, "name", compared.name);
        rbk_json_array(json, "keys");
        for (size_t j = 0; j < compared.keys_len; j++)
            print_compared_key(page, &compared, &compared.keys[j]);
        rbk_json_array_end(json);
        rbk_json_object_end(json);
        rbk_compare_fini(&compared);
    }
    rbk_json_array_end(json);
    return REDBUCKET_OK;
}

static void print_traffic(struct page *page)
{
    const struct rbk_traffic *traffic = page->findings->traffic;
    const struct rbk_faults *faults = page->findings->faults;
    struct cli_json *json = &page->json;

    rbk_json_array(json, "files");
    for (size_t i = 0; i < page->findings->files_len; i++)
        print_name(json, NULL, rbk_file_shown(faults->files[i]));
    rbk_json_array_end(json);
    rbk_json_unsigned(json, "lines", traffic->lines);
    rbk_json_unsigned(json, "others", traffic->others);
    rbk_json_unsigned(json, "late", traffic->late);
    rbk_json_unsigned(json, "unreadable", faults->count);
    if (faults->count > 0) {
        rbk_json_object(json, "first_unreadable");
        print_name(json, "file", rbk_faults_file(faults));
        rbk_json_unsigned(json, "line", faults->first.line);
        print_name(json, "reason", faults->reason);
        rbk_json_string(json, "text", faults->text);
        rbk_json_object_end(json);
    }
    if (traffic->timed) {
        rbk_json_real(json, "first", traffic->first_s);
        rbk_json_real(json, "last", traffic->last_s);
    }
}

static enum redbucket_status print_findings(struct page *page)
{
    const struct rbk_findings *findings = page->findings;
    const struct rbk_histogram *histogram = &findings->summaries[0]->histogram;
    enum redbucket_status status = REDBUCKET_OK;

    page->axis = rbk_histogram_axis(histogram, RBK_HITS_BINS);
    for (size_t i = 0; i < findings->len; i++)
        rbk_histogram_settle(&findings->summaries[i]->histogram, CHART_BINS);
    rbk_json_object(&page->json, NULL);
    print_traffic(page);
    print_axis(&page->json, "axis",
               &(struct rbk_axis){histogram->width_ms, histogram->first, histogram->len});
    print_axis(&page->json, "keyAxis", &page->axis);
    rbk_json_array(&page->json, "sets");
    for (size_t i = 0; i < findings->len; i++)
        print_set(page, findings->summaries[i]);
    rbk_json_array_end(&page->json);
    if (findings->compared)
        status = print_compared(page);
    rbk_json_object_end(&page->json);
    return status;
}

enum redbucket_status rbk_findings_print_page(const struct rbk_findings *findings, FILE *out)
{
    struct page page = {.findings = findings, .json = {.out = out, .embedded = true}};
    enum redbucket_status status;

    fwrite(rbk_page_before, 1, rbk_page_before_len, out);
    status = print_findings(&page);
    fwrite(rbk_page_behind, 1, rbk_page_behind_len, out);
    return status;
}
