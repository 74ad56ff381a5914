/* SPDX-License-Identifier: MIT */
#include "by_loop.h"

#include "test.h"

#include <poll.h>

static void take(void *data, const struct redbucket_request *decided)
{
    struct redbucket_request *request = data;

    assert_int_equal(decided->keys_len, request->keys_len);
    assert_int_equal(decided->operation, request->operation);
    request->status = decided->status;
    request->failed = decided->failed;
    request->response = decided->response;
    for (size_t i = 0; request->verdicts != NULL && i < decided->keys_len; i++)
        request->verdicts[i] = decided->verdicts[i];
}

enum redbucket_status by_loop(struct redbucket_limiter *limiter, struct redbucket_request *request)
{
    struct redbucket_async *async = NULL;
    enum redbucket_status status;

    assert_int_equal(redbucket_async_create(limiter, &async, NULL), REDBUCKET_OK);
    status = redbucket_async_request(async, request, take, request, NULL);
    while (status == REDBUCKET_OK && redbucket_async_outstanding(async) > 0) {
        struct pollfd polled = {.fd = redbucket_async_descriptor(async), .events = POLLIN};

        assert_int_equal(poll(&polled, 1, 60000), 1);
        redbucket_async_dispatch(async);
    }
    redbucket_async_destroy(async);
    return status == REDBUCKET_OK ? request->status : status;
}
