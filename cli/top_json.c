/* SPDX-License-Identifier: MIT */
/*
 * A frame as an object. What nobody knows is left out, and not 0.
 */
#include "json.h"
#include "top_frame.h"

static void print_bytes(struct cli_json *json, const char *name, const char *hex_name,
                        const char *bytes, size_t len)
{
    rbk_json_bytes(json, name, bytes, len);
    if (!rbk_json_exact(bytes, len))
        rbk_json_hex(json, hex_name, bytes, len);
}

static void print_zone_name(struct cli_json *json, const char *zone, size_t zone_len)
{
    if (zone_len > 0)
        print_bytes(json, "zone", "zone_hex", zone, zone_len);
    else
        rbk_json_null(json, "zone");
}

static void print_rates(struct cli_json *json, const struct cli_top_table *table)
{
    rbk_json_array(json, "zones");
    for (size_t i = 0; i < table->zones_len; i++) {
        const struct cli_top_rates *rates = &table->zones[i];

        if (rates->zone_len == 0 && rates->accepted <= 0.0 && rates->rejected <= 0.0)
            continue;
        rbk_json_object(json, NULL);
        print_zone_name(json, rates->zone, rates->zone_len);
        rbk_json_real(json, "accepted_per_second", rates->accepted);
        rbk_json_real(json, "delayed_per_second", rates->delayed);
        rbk_json_real(json, "rejected_per_second", rates->rejected);
        rbk_json_object_end(json);
    }
    rbk_json_array_end(json);
}

static void print_table(struct cli_json *json, const struct cli_top_table *table)
{
    rbk_json_object(json, "table");
    rbk_json_unsigned(json, "buckets", table->buckets);
    rbk_json_unsigned(json, "capacity", table->capacity);
    if (table->rated) {
        rbk_json_real(json, "decisions_per_second", table->accepted + table->rejected);
        rbk_json_real(json, "accepted_per_second", table->accepted);
        rbk_json_real(json, "delayed_per_second", table->delayed);
        rbk_json_real(json, "rejected_per_second", table->rejected);
        rbk_json_real(json, "evicted_per_second", table->evicted);
        rbk_json_real(json, "refused_per_second", table->full);
        print_rates(json, table);
    }
    rbk_json_object_end(json);
}

static void print_zone(struct cli_json *json, const struct cli_top_zone *zone, bool rated)
{
    rbk_json_object(json, NULL);
    print_zone_name(json, zone->zone, zone->zone_len);
    rbk_json_unsigned(json, "buckets", zone->buckets);
    if (zone->bounded)
        rbk_json_unsigned(json, "kept_out", zone->kept_out);
    if (rated)
        rbk_json_real(json, "taken_per_second", zone->taken_per_second);
    rbk_json_object_end(json);
}

static void print_key(struct cli_json *json, const struct cli_top_key *key)
{
    rbk_json_object(json, NULL);
    print_bytes(json, "zone", "zone_hex", key->zone, key->zone_len);
    print_bytes(json, "key", "key_hex", key->key, key->key_len);
    if (key->whole_len > key->key_len)
        rbk_json_unsigned(json, "key_len", key->whole_len);
    if (key->guessed)
        rbk_json_bool(json, "guessed", true);
    if (key->rated)
        rbk_json_real(json, "taken_per_second", key->taken_per_second);
    if (key->seen.known) {
        rbk_json_real(json, "level", key->seen.level);
        rbk_json_real(json, "reset_after", key->seen.reset_after);
    }
    if (key->seen.most > 0.0) {
        rbk_json_real(json, "most", key->seen.most);
        rbk_json_bool(json, "kept_out", key->kept_out);
    }
    rbk_json_object_end(json);
}

void rbk_top_json(const struct cli_top_frame *frame)
{
    const struct cli_top_view *view = frame->view;
    struct cli_json json = {stdout, false};
    char url[CLI_URL_SIZE];

    rbk_json_object(&json, NULL);
    rbk_json_string(&json, "store", rbk_cli_mask_url(frame->context->store_url, url));
    rbk_json_real(&json, "seconds", frame->seconds);
    if (frame->table->known)
        print_table(&json, frame->table);
    rbk_json_unsigned(&json, "buckets", view->buckets);
    rbk_json_unsigned(&json, "drained", view->drained);
    rbk_json_unsigned(&json, "kept_out", view->kept_out);
    rbk_json_unsigned(&json, "unreadable", view->unreadable);
    rbk_json_unsigned(&json, "untracked", view->untracked);
    if (view->rated)
        rbk_json_real(&json, "taken_per_second", view->taken_per_second);
    rbk_json_array(&json, "zones");
    for (size_t i = 0; i < view->zones_len; i++)
        print_zone(&json, &view->zones[i], view->rated);
    rbk_json_array_end(&json);
    rbk_json_array(&json, "keys");
    for (size_t i = 0; i < view->keys_len; i++)
        print_key(&json, &view->keys[i]);
    rbk_json_array_end(&json);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
}
