/* SPDX-License-Identifier: MIT */
#include "slow_asker.h"

#include "test.h"

struct redbucket_limiter *slow_limiter;

void slow_asker_open(unsigned connections)
{
    slow_limiter = slow_open(connections);
    slow_asker_begin();
}

void slow_asker_begin(void)
{
    asker_called = 0;
    assert_int_equal(redbucket_async_create(slow_limiter, &asker, NULL), REDBUCKET_OK);
}

int slow_asker_close(void **state)
{
    (void)state;
    redbucket_async_destroy(asker);
    slow_close(slow_limiter);
    return 0;
}

void slow_asker_dispatch(void)
{
    redbucket_async_dispatch(asker);
}

void slow_asker_fill(struct asked *asked, size_t waiting)
{
    asker_ask(&asked[0], "first", 1.0);
    slow_asker_dispatch();
    asker_ask(&asked[1], "second", 2.0);
    slow_asker_dispatch();
    asker_ask_all(&asked[2], waiting, "waiting");
    slow_asker_dispatch();
    assert_int_equal(slow.begun, 2);
}
