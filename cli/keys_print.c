/* SPDX-License-Identifier: MIT */
/*
 * A line a bucket: numbers first, since they are as wide as their column, and then names of any
 * length. As JSON, bytes that are no UTF-8 are in the text as U+FFFD, and beside it in full, in
 * hexadecimal.
 */
#include "keys_print.h"

#include "json.h"
#include "replay/printable.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define ZONE_COLUMNS 40

/* For people: three digits behind the point. */
static void format_number(double number, char out[REDBUCKET_NUMBER_SIZE])
{
    redbucket_number_format(number < 1e12 ? round(number * 1e3) / 1e3 : number, out);
}

static void print_heading(void)
{
    printf("%10s %8s %12s  %-12s %s\n", "level", "of", "empty in", "zone", "key");
}

static void print_numbers(const struct cli_seen *seen)
{
    char level[REDBUCKET_NUMBER_SIZE + 2] = "<=";
    char most[REDBUCKET_NUMBER_SIZE] = "-";
    char wait[CLI_SECONDS_SIZE] = "-";

    format_number(seen->level, level + (seen->known ? 0 : 2));
    if (seen->most > 0.0)
        format_number(seen->most, most);
    if (seen->known)
        rbk_cli_seconds_format(seen->reset_after, wait);
    printf("%10s %8s %12s  ", seen->readable ? level : "?", most, wait);
}

static void print_text(const struct redbucket_bucket *bucket, const struct cli_seen *seen)
{
    char zone[RBK_PRINTABLE_SIZE];
    char key[RBK_PRINTABLE_SIZE];

    rbk_printable((struct rbk_span){bucket->zone, bucket->zone_len}, bucket->zone_len, ZONE_COLUMNS,
                  zone);
    rbk_printable((struct rbk_span){bucket->key, bucket->key_len}, bucket->key_len,
                  RBK_PRINTABLE_COLUMNS, key);
    if (bucket->guessed)
        memcpy(zone + strlen(zone), "?", sizeof("?"));
    print_numbers(seen);
    printf("%-12s %s%s\n", zone, key, seen->readable ? "" : "  (can't be read)");
}

static void print_bytes(struct cli_json *json, const char *name, const char *hex_name,
                        const struct rbk_span *bytes)
{
    rbk_json_bytes(json, name, bytes->bytes, bytes->len);
    if (!rbk_json_exact(bytes->bytes, bytes->len))
        rbk_json_hex(json, hex_name, bytes->bytes, bytes->len);
}

static void print_json(const struct redbucket_bucket *bucket, const struct cli_seen *seen)
{
    struct cli_json json = {stdout, false};

    rbk_json_object(&json, NULL);
    if (bucket->name != NULL)
        print_bytes(&json, "name", "name_hex", &(struct rbk_span){bucket->name, bucket->name_len});
    print_bytes(&json, "zone", "zone_hex", &(struct rbk_span){bucket->zone, bucket->zone_len});
    print_bytes(&json, "key", "key_hex", &(struct rbk_span){bucket->key, bucket->key_len});
    if (bucket->guessed)
        rbk_json_bool(&json, "guessed", true);
    if (seen->limit != NULL)
        rbk_json_string(&json, "limit", seen->limit->name);
    rbk_json_bool(&json, "readable", seen->readable);
    if (seen->readable && bucket->state.exists) {
        rbk_json_real(&json, "timestamp", bucket->state.timestamp);
        rbk_json_real(&json, "value", bucket->state.value);
        rbk_json_real(&json, "now", bucket->now);
    }
    if (seen->known) {
        rbk_json_real(&json, "level", seen->level);
        rbk_json_real(&json, "reset_after", seen->reset_after);
    }
    if (seen->most > 0.0)
        rbk_json_real(&json, "most", seen->most);
    rbk_json_object_end(&json);
    rbk_json_line(&json);
}

void rbk_keys_print(struct cli_listing *listing, const struct redbucket_bucket *bucket)
{
    const struct cli_seen seen = rbk_seen(listing->context, bucket);

    listing->shown++;
    listing->unreadable += !seen.readable;
    if (listing->context->json) {
        print_json(bucket, &seen);
        return;
    }
    if (!listing->begun)
        print_heading();
    listing->begun = true;
    print_text(bucket, &seen);
}

void rbk_keys_print_end(const struct cli_listing *listing)
{
    if (listing->context->json)
        return;
    printf("%" PRIu64 " bucket%s", listing->shown, listing->shown == 1 ? "" : "s");
    if (listing->unreadable > 0)
        printf(", %" PRIu64 " that can't be read", listing->unreadable);
    if (listing->drained > 0)
        printf("; %" PRIu64 " more are empty by now", listing->drained);
    putchar('\n');
}
