/* SPDX-License-Identifier: MIT */
#include "turner.h"

#include "processes.h"
#include "test.h"

#include <netdb.h>
#include <poll.h>
#include <stdlib.h>

struct asked {
    struct turner *turner;
    double at;
};

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found);

static atomic_bool names_hang;

/* The slow name is this machine's. */
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **found)
{
    if (strstr(node, "slow") == NULL || (hints->ai_flags & AI_NUMERICHOST) != 0)
        return __real_getaddrinfo(node, service, hints, found);
    while (atomic_load(&names_hang))
        test_pause(0.005);
    return __real_getaddrinfo("127.0.0.1", service, hints, found);
}

void turner_names_hang(bool hang)
{
    atomic_store(&names_hang, hang);
}

void turner_open(struct turner *turner, const char *url, double burst)
{
    *turner = (struct turner){.async = NULL};
    test_host_open(&turner->host, url);
    test_host_limit(&turner->host, "a", 1e-6, burst);
    assert_int_equal(redbucket_async_create(turner->host.limiter, &turner->async, NULL),
                     REDBUCKET_OK);
}

void turner_close(struct turner *turner)
{
    redbucket_async_destroy(turner->async);
    test_host_close(&turner->host);
}

static void note(struct turner *turner, const struct redbucket_request *decided)
{
    if (decided->status == REDBUCKET_CANCELLED) {
        turner->cancelled++;
    } else if (decided->status != REDBUCKET_OK) {
        turner->failed[decided->status]++;
        test_host_failure(&turner->host, NULL);
    } else {
        turner->accepted += decided->response.accepted;
        turner->rejected += !decided->response.accepted;
        turner->degraded += decided->response.degraded;
    }
}

static void take(void *data, const struct redbucket_request *decided)
{
    struct asked *asked = data;
    struct turner *turner = asked->turner;
    double took = test_now() - asked->at;

    free(asked);
    if (took > turner->latest)
        turner->latest = took;
    note(turner, decided);
    if (turner->each != NULL)
        turner->each(turner);
}

void turner_ask(struct turner *turner, const char *key)
{
    struct redbucket_key named = {.limit = "a", .key = key};
    struct redbucket_request request = {.keys = &named, .keys_len = 1, .cost = 1.0};
    struct asked *asked = malloc(sizeof *asked);

    *asked = (struct asked){turner, test_now()};
    assert_int_equal(redbucket_async_request(turner->async, &request, take, asked, NULL),
                     REDBUCKET_OK);
}

void turner_ask_times(struct turner *turner, const char *key, int times)
{
    for (int i = 0; i < times; i++)
        turner_ask(turner, key);
}

void turner_turn(struct turner *turner, int ms)
{
    struct pollfd polled = {.fd = redbucket_async_descriptor(turner->async), .events = POLLIN};

    (void)poll(&polled, 1, ms);
    double begin = test_now();

    redbucket_async_dispatch(turner->async);
    double took = test_now() - begin;

    if (took > turner->longest)
        turner->longest = took;
}

/* Nothing may need more than that it is readable. */
void turner_run(struct turner *turner)
{
    double until = test_now() + 30.0 * TEST_PATIENCE;

    while (redbucket_async_outstanding(turner->async) > 0) {
        turner_turn(turner, 10000);
        if (test_now() > until)
            fail_msg("%zu are never answered", redbucket_async_outstanding(turner->async));
    }
}

void turner_recover(struct turner *turner, const char *key)
{
    double until = test_now() + 10.0 * TEST_PATIENCE;
    int answered = -1;

    while (answered < 0) {
        int before = turner->accepted + turner->rejected - turner->degraded;

        turner_ask(turner, key);
        turner_run(turner);
        if (turner->accepted + turner->rejected - turner->degraded > before)
            answered = before;
        else if (test_now() > until)
            fail_msg("never back");
        else
            test_pause(0.005);
    }
}

int turner_failures(const struct turner *turner)
{
    int failures = 0;

    for (size_t i = 0; i < sizeof turner->failed / sizeof turner->failed[0]; i++)
        failures += turner->failed[i];
    return failures;
}
