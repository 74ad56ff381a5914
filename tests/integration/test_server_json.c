/* SPDX-License-Identifier: MIT */
/*
 * States in JSON have two readers, the script's and the library's. On every text they agree on
 * whether it is a state, and on which: otherwise what one process stores would be nonsense to
 * another.
 */
#include "served.h"
#include "state_texts.h"
#include "wire/call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH 32
#define COST  1.0

/* Earlier than any state's time, so that a charge changes nothing but the value. */
#define LONG_AGO (-9e14)

struct texts {
    size_t len;
    char names[BATCH][8];
    char text[BATCH][TEST_STATE_TEXT_MAX + 1];
    size_t text_len[BATCH];
};

static void begin_texts(struct texts *texts)
{
    texts->len = 0;
    for (int i = 0; i < BATCH; i++)
        (void)snprintf(texts->names[i], sizeof texts->names[i], "k%d", i);
}

static void add_text(struct texts *texts, const char *text, size_t len)
{
    assert_true(len <= TEST_STATE_TEXT_MAX + 1);
    memcpy(texts->text[texts->len], text, len);
    texts->text_len[texts->len++] = len;
}

static void put_all(const struct served *served, const struct texts *texts)
{
    for (size_t i = 0; i < texts->len; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "redbucket:a:%s", texts->names[i]);
        served_put(served, name, texts->text[i], texts->text_len[i]);
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* What the script has made of a text, told by what it stored. */
static void check_text(struct served *served, const struct texts *texts, size_t index,
                       const struct redbucket_request *request)
{
    struct rbk_state expected;
    struct redbucket_state stored;
    bool good = rbk_state_decode(RBK_CODEC_JSON, (const unsigned char *)texts->text[index],
                                 texts->text_len[index], &expected);
    bool same = request->status == (good ? REDBUCKET_OK : REDBUCKET_ERROR_STATE);

    if (same && good) {
        assert_int_equal(redbucket_read(served->limiter, request->keys, &stored), REDBUCKET_OK);
        same = stored.timestamp == larger(LONG_AGO, expected.timestamp) &&
               stored.value == fmin(larger(expected.value, 0) + COST, 1e15);
    }
    if (!same)
        fail_msg("%.*s: %s by the library, %s by the script", (int)texts->text_len[index],
                 texts->text[index], good ? "a state" : "no state",
                 redbucket_status_name(request->status));
}

static void check_all(struct served *served, const struct texts *texts)
{
    struct redbucket_key keys[BATCH];
    struct redbucket_request requests[BATCH];
    enum redbucket_status expected = REDBUCKET_OK;

    put_all(served, texts);
    for (size_t i = 0; i < texts->len; i++) {
        keys[i] = (struct redbucket_key){.limit = "a", .key = texts->names[i]};
        requests[i] = (struct redbucket_request){
            .operation = REDBUCKET_CHARGE, .keys = &keys[i], .keys_len = 1, .cost = COST};
    }
    enum redbucket_status status = redbucket_decide(served->limiter, requests, texts->len);

    for (size_t i = texts->len; i-- > 0;) {
        check_text(served, texts, i, &requests[i]);
        if (requests[i].status != REDBUCKET_OK)
            expected = requests[i].status;
    }
    assert_int_equal(status, expected);
}

static struct texts *new_texts(struct served *served)
{
    struct texts *texts = malloc(sizeof *texts);

    assert_non_null(texts);
    begin_texts(texts);
    rbk_test_now = LONG_AGO;
    served_limit(served, "a", (struct redbucket_limit){.rate = 1, .expiry = 60});
    return texts;
}

static void every_text_means_the_same_to_both(void **state)
{
    struct texts *texts = new_texts(*state);

    for (size_t i = 0; i < test_state_texts_len; i++) {
        add_text(texts, test_state_texts[i].text, test_state_texts[i].len);
        if (texts->len == BATCH || i + 1 == test_state_texts_len) {
            check_all(*state, texts);
            begin_texts(texts);
        }
    }
    free(texts);
}

static void the_bounds_are_the_same_for_both(void **state)
{
    struct texts *texts = new_texts(*state);
    char text[TEST_STATE_TEXT_MAX + 1];

    for (size_t i = 0; i < test_state_bounds_len; i++) {
        for (unsigned over = 0; over < 2; over++)
            add_text(texts, text, test_state_bounds[i](text, over));
    }
    check_all(*state, texts);
    free(texts);
}

static void mutants_mean_the_same_to_both(void **state)
{
    struct texts *texts = new_texts(*state);
    unsigned seed = 3;

    for (int i = 0; i < 8000 / BATCH; i++) {
        begin_texts(texts);
        while (texts->len < BATCH) {
            char text[TEST_STATE_TEXT_MAX];

            add_text(texts, text, test_state_mutant(&seed, text));
        }
        check_all(*state, texts);
    }
    free(texts);
}

int main(void)
{
    static const struct served_case cases[] = {
        SERVED_BY(SERVED_JSON, every_text_means_the_same_to_both),
        SERVED_BY(SERVED_JSON, the_bounds_are_the_same_for_both),
        SERVED_BY(SERVED_JSON | SERVED_SCRIPT, mutants_mean_the_same_to_both),
    };

    return served_run("server_json", cases, sizeof cases / sizeof cases[0]);
}
