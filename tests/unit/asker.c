/* SPDX-License-Identifier: MIT */
#include "asker.h"

#include "test.h"

#include <poll.h>

struct redbucket_async *asker;
int asker_called;

static void note(void *data, const struct redbucket_request *decided)
{
    struct asked *asked = data;

    asked->called++;
    asked->status = decided->status;
    asked->remaining = decided->status == REDBUCKET_OK ? decided->response.remaining : -1;
    asked->degraded = decided->status == REDBUCKET_OK && decided->response.degraded;
    asked->order = ++asker_called;
    if (asked->then != NULL)
        asked->then(asked);
}

void asker_ask(struct asked *asked, const char *key, double cost)
{
    struct redbucket_key keys[] = {{.limit = "a", .key = key}};
    struct redbucket_request request = {.keys = keys, .keys_len = 1, .cost = cost};

    assert_int_equal(redbucket_async_request(asker, &request, note, asked, &asked->id),
                     REDBUCKET_OK);
    assert_int_not_equal(asked->id, 0);
}

void asker_ask_all(struct asked *asked, size_t len, const char *key)
{
    for (size_t i = 0; i < len; i++)
        asker_ask(&asked[i], key, (double)(i + 1));
}

size_t asker_count(const struct asked *asked, size_t len, enum redbucket_status status)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        assert_in_range(asked[i].called, 0, 1);
        count += asked[i].called == 1 && asked[i].status == status;
    }
    return count;
}

bool asker_readable(void)
{
    struct pollfd polled = {.fd = redbucket_async_descriptor(asker), .events = POLLIN};

    return poll(&polled, 1, 0) == 1;
}
