/* SPDX-License-Identifier: MIT */
/*
 * Red Bucket: what stores have counted, as OpenMetrics text, for whoever collects metrics.
 *
 * Of all stores together, since a metric is told of once in a text; each has a name of the
 * caller's, which is the label `store`. docs/metrics.md lists the metrics.
 */
#ifndef REDBUCKET_METRICS_H
#define REDBUCKET_METRICS_H

#include "redbucket/redbucket.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the text is to be sent as. */
#define REDBUCKET_METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/*
 * A store's numbers and its name, which ends with a NUL. It is shown to whoever collects, so don't
 * take a URL with a password in it. What is no UTF-8 in it, and control characters, become U+FFFD.
 * `statistics` are those of redbucket_store_statistics, with their `size`; `zones`, of which there
 * may be none, those of redbucket_store_zones. A zone has the label `zone`, or `zone_hex` when it
 * isn't all UTF-8 that prints; all others together, told of once they counted anything, have
 * neither.
 */
struct redbucket_metered {
    const char *name;
    const struct redbucket_statistics *statistics;
    const struct redbucket_zone_statistics *zones;
    size_t zones_len;
};

/* Bytes that are enough for so many stores with names of up to 255 bytes, and for so many zones of
 * all of them together: add the two. */
#define REDBUCKET_METRICS_SIZE(stores)      ((size_t)4096 + (size_t)12288 * (stores))
#define REDBUCKET_METRICS_ZONES_SIZE(zones) ((size_t)5120 * (zones))

/*
 * Appends the text, to its `# EOF`. A number that a store doesn't know, because of its `size` or
 * because it has no table, is left out. ERROR_SPACE when it doesn't fit, ERROR_DUPLICATE for names
 * that are shown alike, ERROR_ARGUMENT for a `size` that can't be; then `text` stays as it was.
 * Safe from any thread.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_metrics(const struct redbucket_metered *stores, size_t stores_len,
                  struct redbucket_text *text);

#ifdef __cplusplus
}
#endif

#endif
