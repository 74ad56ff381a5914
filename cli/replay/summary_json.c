/* SPDX-License-Identifier: MIT */
/*
 * The summary for programs, one JSON object. Times are seconds since the epoch. Keys are printable
 * as in the text for people, for JSON can't hold bytes that are no UTF-8.
 */
#include "summary.h"

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
    rbk_histogram_settle(histogram);
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

void rbk_summary_print_json(struct rbk_summary *summary, const struct rbk_faults *faults, FILE *out)
{
    struct cli_json json = {out, false};

    rbk_json_object(&json, NULL);
    rbk_json_unsigned(&json, "lines", summary->lines);
    rbk_json_unsigned(&json, "accepted", summary->accepted);
    rbk_json_unsigned(&json, "delayed", summary->delayed);
    rbk_json_unsigned(&json, "rejected", summary->rejected);
    rbk_json_unsigned(&json, "others", summary->others);
    rbk_json_unsigned(&json, "late", summary->late);
    rbk_json_unsigned(&json, "unreadable", faults->count);
    if (faults->count > 0)
        print_first_fault(faults, &json);
    if (summary->timed) {
        rbk_json_real(&json, "first", summary->first_s);
        rbk_json_real(&json, "last", summary->last_s);
    }
    rbk_json_object(&json, "limits");
    for (size_t i = 0; i < summary->limits_len; i++)
        print_limit(&summary->limits[i], &json);
    rbk_json_object_end(&json);
    print_when(&summary->histogram, &json);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
}
