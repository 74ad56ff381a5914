/* SPDX-License-Identifier: MIT */
#include "pooled.h"

#include "fake_connection.h"
#include "test.h"
#include "url.h"

#include <stdio.h>

struct pooled pooled;

static void hear(void *data, enum redbucket_event event, const char *message)
{
    struct rbk_peer *peer = pooled.meanwhile;

    (void)data;
    pooled.meanwhile = NULL;
    if (peer != NULL)
        rbk_pool_give(&pooled.pool, peer, REDBUCKET_OK, true);
    snprintf(pooled.reason, sizeof pooled.reason, "%s", message);
    strcat(pooled.events, event == REDBUCKET_EVENT_DOWN ? "down " : "back ");
}

static enum redbucket_status init_pool(struct redbucket_store *store)
{
    const struct rbk_pool_config config = {
        .options = &pooled.options, .endpoint = &pooled.options.hosts[0], .store = store};
    struct redbucket_error error;

    return rbk_pool_init(&pooled.pool, &config, &error);
}

void pooled_begin(const char *text)
{
    struct redbucket_error error;
    struct rbk_url url;

    fake_server_reset();
    pooled.events[0] = '\0';
    pooled.host = (struct redbucket_store){.listener = hear};
    pooled.pool = (struct rbk_pool){.options = NULL};
    assert_int_equal(rbk_url_parse(text, &url, &error), REDBUCKET_OK);
    assert_int_equal(rbk_redis_options_parse(&url, &pooled.options, &error), REDBUCKET_OK);
    assert_int_equal(init_pool(&pooled.host), REDBUCKET_OK);
    rbk_deadline_start(&pooled.soon, 60.0);
}

void pooled_end(void)
{
    rbk_pool_fini(&pooled.pool);
    assert_int_equal(fake_server.closed, fake_server.opened);
}

struct rbk_peer *pooled_take(void)
{
    struct rbk_peer *peer = NULL;

    assert_int_equal(rbk_pool_take(&pooled.pool, &pooled.soon, &peer), REDBUCKET_OK);
    assert_non_null(peer);
    assert_non_null(peer->connection);
    return peer;
}

void pooled_give(struct rbk_peer *peer)
{
    rbk_pool_give(&pooled.pool, peer, REDBUCKET_OK, true);
}
