/* SPDX-License-Identifier: MIT */
/*
 * The summary for programs, one JSON object. Times are seconds since the epoch. Keys are printable
 * as in the text for people, for JSON can't hold bytes that are no UTF-8.
 *
 * One set of limits stands in the object itself; several, in "sets", and beside each other in
 * "compared".
 */
#include "compare.h"

#include "../json.h"

#include "printable.h"

static void print_hit(const struct rbk_hit *hit, struct cli_json *json)
{
    char key[RBK_PRINTABLE_SIZE];

    rbk_printable(hit->key, hit->key_len, RBK_PRINTABLE_COLUMNS, key);
    rbk_json_object(json, NULL);
    rbk_json_string(json, "key", key);
    rbk_json_unsigned(json, "rejected", hit->rejected);
    rbk_json_unsigned(json, "delayed", hit->delayed);
    rbk_json_unsigned(json, "missed", hit->missed);
    rbk_json_object_end(json);
}

static void print_limit(const struct rbk_summary_limit *limit, struct cli_json *json)
{
    struct rbk_hit top[RBK_SUMMARY_KEYS_JSON];
    const size_t len = rbk_hits_top(limit->hits, RBK_SUMMARY_KEYS_JSON, top);
    bool exact;
    const size_t keys = rbk_hits_keys(limit->hits, &exact);

    rbk_json_object(json, limit->limit->name);
    rbk_json_unsigned(json, "requests", limit->requests);
    rbk_json_unsigned(json, "delayed", limit->delayed);
    rbk_json_unsigned(json, "rejected", limit->rejected);
    rbk_json_unsigned(json, "keys", keys);
    rbk_json_bool(json, "exact", exact);
    rbk_json_array(json, "hardest");
    for (size_t i = 0; i < len; i++)
        print_hit(&top[i], json);
    rbk_json_array_end(json);
    rbk_json_object_end(json);
}

static void print_when(struct rbk_histogram *histogram, struct cli_json *json)
{
    rbk_histogram_settle(histogram, RBK_SUMMARY_ROWS);
    rbk_json_object(json, "when");
    rbk_json_real(json, "width", (double)histogram->width_ms / 1000);
    rbk_json_array(json, "rows");
    for (size_t i = 0; i < histogram->len; i++) {
        const struct rbk_histogram_bin *bin = &histogram->bins[i];
        const int64_t begin_ms = (histogram->first + (int64_t)i) * histogram->width_ms;

        rbk_json_object(json, NULL);
        rbk_json_real(json, "t", (double)begin_ms / 1000);
        rbk_json_unsigned(json, "accepted",
                          bin->counts[RBK_HISTOGRAM_AT_ONCE] + bin->counts[RBK_HISTOGRAM_DELAYED]);
        rbk_json_unsigned(json, "delayed", bin->counts[RBK_HISTOGRAM_DELAYED]);
        rbk_json_unsigned(json, "rejected", bin->counts[RBK_HISTOGRAM_REJECTED]);
        rbk_json_object_end(json);
    }
    rbk_json_array_end(json);
    rbk_json_object_end(json);
}

static void print_first_fault(const struct rbk_faults *faults, struct cli_json *json)
{
    rbk_json_object(json, "first_unreadable");
    rbk_json_string(json, "file", rbk_faults_file(faults));
    rbk_json_unsigned(json, "line", faults->first.line);
    rbk_json_string(json, "reason", faults->reason);
    rbk_json_string(json, "text", faults->text);
    rbk_json_object_end(json);
}

static void print_totals(const struct rbk_summary *summary, struct cli_json *json)
{
    rbk_json_unsigned(json, "accepted", summary->accepted);
    rbk_json_unsigned(json, "delayed", summary->delayed);
    rbk_json_unsigned(json, "rejected", summary->rejected);
}

static void print_details(struct rbk_summary *summary, struct cli_json *json)
{
    rbk_json_object(json, "limits");
    for (size_t i = 0; i < summary->limits_len; i++)
        print_limit(&summary->limits[i], json);
    rbk_json_object_end(json);
    print_when(&summary->histogram, json);
}

static void print_set(struct rbk_summary *summary, struct cli_json *json)
{
    char text[REDBUCKET_LIMIT_TEXT_SIZE];

    rbk_json_object(json, summary->name);
    rbk_json_array(json, "tried");
    for (size_t i = 0; i < summary->limits_len; i++) {
        redbucket_limit_format(summary->limits[i].limit, text);
        rbk_json_string(json, NULL, text);
    }
    rbk_json_array_end(json);
    print_totals(summary, json);
    print_details(summary, json);
    rbk_json_object_end(json);
}

static void print_compared_key(const struct rbk_findings *findings,
                               const struct rbk_compared_limit *compared, size_t index,
                               struct cli_json *json)
{
    const struct rbk_compared_key *key = &compared->keys[index];
    char text[RBK_PRINTABLE_SIZE];

    rbk_printable(key->hits[0].key, key->hits[0].key_len, RBK_PRINTABLE_COLUMNS, text);
    rbk_json_object(json, NULL);
    rbk_json_string(json, "key", text);
    rbk_json_object(json, "sets");
    for (size_t i = 0; i < findings->len; i++) {
        if (!compared->limits[i])
            continue;
        rbk_json_object(json, findings->summaries[i]->name);
        rbk_json_unsigned(json, "rejected", key->hits[i].rejected);
        rbk_json_unsigned(json, "delayed", key->hits[i].delayed);
        rbk_json_unsigned(json, "missed", key->hits[i].missed);
        rbk_json_object_end(json);
    }
    rbk_json_object_end(json);
    rbk_json_object_end(json);
}

static enum redbucket_status print_compared(const struct rbk_findings *findings,
                                            struct cli_json *json)
{
    rbk_json_object(json, "compared");
    for (size_t i = 0; i < findings->names_len; i++) {
        struct rbk_compared_limit compared;

        if (rbk_compare_limit(findings, findings->names[i], RBK_SUMMARY_KEYS_JSON, &compared) !=
            REDBUCKET_OK)
            return REDBUCKET_ERROR_MEMORY;
        rbk_json_array(json, findings->names[i]);
        for (size_t j = 0; j < compared.keys_len; j++)
            print_compared_key(findings, &compared, j, json);
        rbk_json_array_end(json);
        rbk_compare_fini(&compared);
    }
    rbk_json_object_end(json);
    return REDBUCKET_OK;
}

static enum redbucket_status print_sets(const struct rbk_findings *findings, struct cli_json *json)
{
    rbk_json_object(json, "sets");
    for (size_t i = 0; i < findings->len; i++)
        print_set(findings->summaries[i], json);
    rbk_json_object_end(json);
    return print_compared(findings, json);
}

static void print_traffic(const struct rbk_findings *findings, struct cli_json *json)
{
    const struct rbk_traffic *traffic = findings->traffic;

    rbk_json_unsigned(json, "others", traffic->others);
    rbk_json_unsigned(json, "late", traffic->late);
    rbk_json_unsigned(json, "unreadable", findings->faults->count);
    if (findings->faults->count > 0)
        print_first_fault(findings->faults, json);
    if (traffic->timed) {
        rbk_json_real(json, "first", traffic->first_s);
        rbk_json_real(json, "last", traffic->last_s);
    }
}

enum redbucket_status rbk_findings_print_json(const struct rbk_findings *findings, FILE *out)
{
    struct cli_json json = {out, false};
    enum redbucket_status status = REDBUCKET_OK;

    rbk_json_object(&json, NULL);
    rbk_json_unsigned(&json, "lines", findings->traffic->lines);
    if (!findings->compared)
        print_totals(findings->summaries[0], &json);
    print_traffic(findings, &json);
    if (findings->compared)
        status = print_sets(findings, &json);
    else
        print_details(findings->summaries[0], &json);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
    return status;
}
