/* SPDX-License-Identifier: MIT */
#include "shots.h"

#include "test.h"
#include "url.h"

#include <stdio.h>
#include <stdlib.h>

#define MAP "0-9999 a:1,10000-16383 b:1"

#define KEYS_MAX 2

struct ammunition {
    struct rbk_call call;
    struct rbk_request request;
    struct rbk_key keys[KEYS_MAX];
    struct rbk_claim claims[KEYS_MAX];
    char names[KEYS_MAX][8];
};

struct rbk_redis_options options;
struct rbk_nodes nodes;
struct rbk_shot shots[SHOTS_MAX];
size_t shots_len;

static struct ammunition stock[SHOTS_MAX];

void open_nodes(const char *text)
{
    struct rbk_pool_config config = {.options = &options};
    struct rbk_url url;

    assert_int_equal(rbk_url_parse(text, &url, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_redis_options_parse(&url, &options, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_nodes_init(&nodes, &config, NULL), REDBUCKET_OK);
    shots_len = 0;
}

void begin(const char *text)
{
    fake_nodes_reset();
    fake_node("a:1")->slots = MAP;
    fake_node("b:1")->slots = MAP;
    open_nodes(text);
}

void close_nodes(void)
{
    rbk_nodes_fini(&nodes);
    assert_int_equal(fake_nodes.opened, fake_nodes.closed);
}

void aim(unsigned slot, int key, int other)
{
    struct ammunition *shot = &stock[shots_len];

    memset(shot, 0, sizeof *shot);
    rbk_call_init(&shot->call, &options.key_format, options.codec);
    shot->request = (struct rbk_request){.ask = {.operation = RBK_REQUEST, .cost = 1.0},
                                         .keys = shot->keys,
                                         .claims = shot->claims,
                                         .len = other >= 0 ? 2 : 1};
    for (int i = 0; i < KEYS_MAX; i++) {
        int len = snprintf(shot->names[i], sizeof shot->names[i], "%d", i == 0 ? key : other);

        shot->keys[i] = (struct rbk_key){(const unsigned char *)"k", 1,
                                         (const unsigned char *)shot->names[i], (size_t)len};
        shot->claims[i].limit = (struct rbk_limit){.rate = 1.0, .burst = 1000.0};
    }
    shots[shots_len++] = (struct rbk_shot){
        .slot = slot, .errand = {.call = &shot->call, .requests = &shot->request, .len = 1}};
    assert_true(rbk_errand_pack(&shots[shots_len - 1].errand));
}

void fly(double seconds)
{
    struct rbk_deadline deadline;

    rbk_deadline_start(&deadline, seconds);
    rbk_volley(&nodes, shots, shots_len, &deadline);
    for (size_t i = 0; i < shots_len; i++) {
        const struct ammunition *shot = &stock[i];

        assert_true(shots[i].ended);
        for (size_t j = 0; shot->request.status == REDBUCKET_OK && j < shot->request.len; j++)
            assert_true(shot->claims[j].level == (double)atoi(shot->names[j]));
        rbk_call_fini(&stock[i].call);
    }
}

void assert_status(size_t i, enum redbucket_status status)
{
    assert_int_equal(stock[i].request.status, status);
}

void assert_log(const char *log)
{
    assert_string_equal(fake_nodes.log, log);
    fake_nodes.log[0] = '\0';
}

void begin_known(const char *text)
{
    begin(text);
    aim(SLOT_A, 1, -1);
    aim(SLOT_B, 2, -1);
    fly(1.0);
    assert_log("a:1 SLOTS; a:1 EVALSHA take 1; b:1 EVALSHA take 2; ");
    assert_status(0, REDBUCKET_OK);
    assert_status(1, REDBUCKET_OK);
    shots_len = 0;
    fake_nodes.now += 0.2;
    fake_node("a:1")->said = 0;
    fake_node("b:1")->said = 0;
    fake_nodes.opens[0] = '\0';
}
