/* SPDX-License-Identifier: MIT */
/*
 * Any buckets as a walk tells of them, shown by `keys` and `top`: as text every byte prints and no
 * line of a frame is longer than the frame, nor are there more of them; as JSON every line is
 * strict JSON without a name twice. The input is COLUMNS, ROWS, KEYS, each a byte, the last with
 * flags (16: without top, 32: as JSON, 64: by level, 128: of a table), and buckets: a byte of
 * flags, lengths of zone and key, five doubles, zone and key.
 */
#include "json.h"
#include "keys_print.h"
#include "top_frame.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NUMBERS     5
#define BUCKETS_MAX 40

struct buckets {
    struct redbucket_bucket at[BUCKETS_MAX];
    size_t len;
};

static struct redbucket_named_limit user = {.name = "user", .zone = "user"};
static struct redbucket_named_limit *limits[] = {&user};

/* What a walk keeps to: a state that is told is finite, and a bucket has a zone. */
static void take_state(struct redbucket_bucket *bucket, const double numbers[NUMBERS], bool known)
{
    bool good = isfinite(numbers[0]) && isfinite(numbers[1]);

    bucket->status = good ? REDBUCKET_OK : REDBUCKET_ERROR_STATE;
    bucket->state =
        (struct redbucket_state){true, good ? numbers[0] : 0.0, good ? numbers[1] : 0.0};
    bucket->now = isfinite(numbers[2]) ? numbers[2] : 0.0;
    bucket->rate = known ? numbers[3] : 0.0;
    bucket->depth = known ? numbers[4] : 0.0;
}

static size_t take_bucket(const uint8_t *data, size_t size, struct redbucket_bucket *bucket)
{
    const size_t head = 3 + NUMBERS * sizeof(double);
    double numbers[NUMBERS];

    if (size < head)
        return 0;
    *bucket = (struct redbucket_bucket){.zone_len = data[1], .key_len = data[2]};
    memcpy(numbers, data + 3, sizeof numbers);
    take_state(bucket, numbers, (data[0] & 1) != 0);
    bucket->guessed = (data[0] & 2) != 0;
    if ((data[0] & 4) != 0)
        bucket->key_len *= 64;
    if (bucket->zone_len > size - head)
        bucket->zone_len = size - head;
    bucket->zone = (const char *)data + head;
    if (bucket->key_len > size - head - bucket->zone_len)
        bucket->key_len = size - head - bucket->zone_len;
    bucket->key = bucket->zone + bucket->zone_len;
    if ((data[0] & 8) != 0) {
        bucket->name = bucket->zone;
        bucket->name_len = bucket->zone_len + bucket->key_len;
    }
    return head + bucket->zone_len + bucket->key_len;
}

static void take_buckets(const uint8_t *data, size_t size, struct buckets *buckets)
{
    size_t taken = 1;

    for (buckets->len = 0; buckets->len < BUCKETS_MAX && taken > 0; buckets->len += taken > 0) {
        taken = take_bucket(data, size, &buckets->at[buckets->len]);
        data += taken;
        size -= taken;
    }
}

/* ---- What was said -------------------------------------------------------------------------- */

static void check_text(const char *text, size_t len, size_t columns)
{
    size_t width = 0;

    for (size_t i = 0; i < len; i++) {
        width = text[i] == '\n' ? 0 : width + 1;
        if (text[i] != '\n' && (text[i] < 0x20 || text[i] > 0x7e))
            abort();
        if (columns > 0 && width > columns)
            abort();
    }
}

static void check_json(const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        json_t *json = newline == NULL ? NULL
                                       : json_loadb(text, (size_t)(newline - text),
                                                    JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);

        if (!json_is_object(json))
            abort();
        json_decref(json);
        text = newline + 1;
    }
}

/* Both commands write to standard output. */
static FILE *begin_saying(char **text, size_t *len)
{
    FILE *real = stdout;

    stdout = open_memstream(text, len);
    if (stdout == NULL)
        abort();
    return real;
}

static void end_saying(FILE *real)
{
    if (fclose(stdout) != 0)
        abort();
    stdout = real;
}

static void list(const struct cli_context *context, const struct buckets *buckets)
{
    struct cli_listing listing = {.context = context};
    char *text = NULL;
    size_t len = 0;
    FILE *real = begin_saying(&text, &len);

    for (size_t i = 0; i < buckets->len; i++)
        rbk_keys_print(&listing, &buckets->at[i]);
    rbk_keys_print_end(&listing);
    end_saying(real);
    if (listing.shown != buckets->len)
        abort();
    if (context->json)
        check_json(text, len);
    else
        check_text(text, len, 0);
    free(text);
}

static void pass(struct cli_top *top, const struct buckets *buckets, size_t from, size_t to)
{
    rbk_top_begin(top);
    for (size_t i = from; i < to; i++)
        rbk_top_visit(top, &buckets->at[i]);
    rbk_top_end(top);
}

static void show(const struct cli_top_frame *frame)
{
    char *text = NULL;
    size_t len = 0;
    size_t lines = 0;
    FILE *real = begin_saying(&text, &len);

    if (frame->context->json)
        rbk_top_json(frame);
    else
        rbk_top_text(frame, stdout);
    end_saying(real);
    if (frame->context->json) {
        check_json(text, len);
    } else {
        check_text(text, len, frame->columns);
        for (size_t i = 0; i < len; i++)
            lines += text[i] == '\n';
        if (lines > frame->rows)
            abort();
    }
    free(text);
}

static void watch(const struct cli_context *context, const struct buckets *buckets,
                  const uint8_t sizes[3])
{
    const struct cli_top_table table = {.known = (sizes[2] & 128) != 0, .capacity = 7};
    struct cli_top *top = rbk_top_create(context, 1 + sizes[2] % 16);

    if (top == NULL)
        abort();
    rbk_top_order(top, (sizes[2] & 64) != 0);
    pass(top, buckets, 0, buckets->len);
    pass(top, buckets, buckets->len / 2, buckets->len);
    pass(top, buckets, 0, buckets->len);
    show(&(struct cli_top_frame){.context = context,
                                 .view = rbk_top_view(top),
                                 .table = &table,
                                 .seconds = 1.0,
                                 .columns = 20 + sizes[0],
                                 .rows = 5 + sizes[1],
                                 .by_level = (sizes[2] & 64) != 0});
    rbk_top_destroy(top);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cli_context context = {
        .limits = limits, .limits_len = 1, .store_url = (char[]){"memory:"}};
    struct buckets buckets;

    if (size < 3)
        return 0;
    user.limit = (struct redbucket_limit){.rate = 2.0, .burst = 3.0};
    take_buckets(data + 3, size - 3, &buckets);
    context.json = (data[2] & 32) != 0;
    list(&context, &buckets);
    /* What top keeps in mind takes longer to make than all else. */
    if ((data[2] & 16) == 0)
        watch(&context, &buckets, data);
    return 0;
}
