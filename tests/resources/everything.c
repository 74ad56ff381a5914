/* SPDX-License-Identifier: MIT */
/*
 * From opening to closing, in the order of a program's life. What is only arithmetic is called as
 * well, since nobody should have to trust that it needs nothing.
 */
#include "everything.h"

#include "processes.h"
#include "redbucket/async.h"
#include "redbucket/http.h"
#include "redbucket/interrupt.h"
#include "redbucket/metrics.h"
#include "redbucket/walk.h"
#include "test.h"

#include <poll.h>
#include <stdio.h>

#define BURST     4
#define PERMITS   (BURST + 1u)
#define LONG_S    20.0
#define UNTOUCHED 0x5a

/* A program in the middle of its use. */
struct use {
    struct everything *all;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct redbucket_async *async;
    const char *call; /* the one under way */
    unsigned answers;
    unsigned met;
    unsigned events;
    bool rests;                   /* by a mistake */
    bool withheld;                /* since the loop began */
    enum redbucket_status failed; /* a request on it */
};

/* What no function writes by accident. */
static struct redbucket_store *const no_store = (struct redbucket_store *)(uintptr_t)8;
static struct redbucket_limiter *const no_limiter = (struct redbucket_limiter *)(uintptr_t)8;
static struct redbucket_async *const no_async = (struct redbucket_async *)(uintptr_t)8;
static struct redbucket_walk *const no_walk = (struct redbucket_walk *)(uintptr_t)8;

static bool is_untouched(const void *bytes, size_t size)
{
    const unsigned char *each = bytes;

    for (size_t i = 0; i < size; i++) {
        if (each[i] != UNTOUCHED)
            return false;
    }
    return true;
}

static void begin(struct use *use, const char *call)
{
    use->call = call;
    use->all->before(call);
}

/* Fails the test, with all that is known. */
static void refuse(const struct use *use, enum redbucket_status status, const char *why)
{
    struct redbucket_error error = {.message = ""};

    if (use->store != NULL)
        redbucket_store_failure(use->store, &error);
    fail_msg("%s, %s: %s: %s: %s (%s)", use->all->url, use->all->place, use->call,
             redbucket_status_name(status), why, error.message);
}

/* Where there are mistakes, a name's not being found for want of something is one. */
static bool may_be_mistaken(const struct use *use, enum redbucket_status status)
{
    return use->all->mistaken != REDBUCKET_OK &&
           (status == use->all->mistaken || status == REDBUCKET_ERROR_UNAVAILABLE);
}

/* A mistake, or what comes of one. */
static bool is_mistake(struct use *use, enum redbucket_status status, bool withheld)
{
    bool mistaken = withheld && may_be_mistaken(use, status);

    use->rests = use->rests || mistaken;
    if (!mistaken && !(use->rests && status == REDBUCKET_ERROR_UNAVAILABLE))
        return false;
    test_pause(0.05);
    return true;
}

/* Whether the call is to be made again. */
static bool again(struct use *use, enum redbucket_status status, bool untouched)
{
    bool withheld = use->all->after();

    use->withheld = use->withheld || withheld;
    if (status == REDBUCKET_OK)
        return false;
    if (is_mistake(use, status, withheld))
        return true;
    if (!withheld)
        refuse(use, status, "failed, and nothing was withheld");
    if (!use->all->excused(status))
        refuse(use, status, "is not what is said of that");
    if (!untouched)
        refuse(use, status, "failed, and has written an output");
    use->all->excuses++;
    return true;
}

/* `intact`: what holds of the outputs when it fails. */
#define TRY(use, call, intact)                                              \
    do {                                                                    \
        enum redbucket_status status_;                                      \
        do {                                                                \
            begin(use, #call);                                              \
            status_ = call;                                                 \
        } while (again(use, status_, status_ == REDBUCKET_OK || (intact))); \
    } while (0)

/* For what can't fail. */
#define DO(use, call)                         \
    do {                                      \
        begin(use, #call);                    \
        call;                                 \
        (void)again(use, REDBUCKET_OK, true); \
    } while (0)

static void hear(void *data, enum redbucket_event event, const char *message)
{
    struct use *use = data;

    (void)event;
    (void)message;
    use->events++;
}

static void add(struct use *use, const char *name, double burst, double lease)
{
    const struct redbucket_limit limit = {.rate = 0.001, .burst = burst, .lease = lease};
    size_t count = redbucket_limiter_count(use->limiter);

    TRY(use, redbucket_limiter_add(use->limiter, name, &limit, NULL),
        redbucket_limiter_count(use->limiter) == count);
    assert_int_equal(redbucket_limiter_count(use->limiter), count + 1);
}

static void set_up(struct use *use)
{
    struct redbucket_error error = {.status = REDBUCKET_OK};
    struct redbucket_limit limit = {.size = sizeof limit};
    const char *name = NULL;

    use->store = no_store;
    begin(use, "redbucket_store_open");
    enum redbucket_status status = redbucket_store_open(use->all->url, &use->store, &error);
    bool untouched = use->store == no_store;

    if (status != REDBUCKET_OK) {
        use->store = NULL;
        assert_int_equal(error.status, status);
        assert_true(again(use, status, untouched));
        set_up(use);
        return;
    }
    (void)again(use, status, true);
    DO(use, redbucket_store_listen(use->store, hear, use));
    use->limiter = no_limiter;
    TRY(use, redbucket_limiter_create(use->store, &use->limiter, NULL), use->limiter == no_limiter);
    add(use, "a", BURST, 0);
    add(use, "b", 1000, 0);
    add(use, "c", 1000, 0);
    add(use, "leased", 1000, 20);
    assert_true(redbucket_limiter_get(use->limiter, 0, &name, &limit));
    assert_string_equal(name, "a");
}

/* ---- Asking --------------------------------------------------------------------------------- */

static void count(struct use *use, enum redbucket_status status,
                  const struct redbucket_response *response)
{
    use->all->maybe += status != REDBUCKET_OK;
    use->all->granted += status == REDBUCKET_OK && response->accepted;
}

/* One request for the bucket that is counted. */
static void take(struct use *use)
{
    const struct redbucket_key key = {.limit = "a", .key = use->all->key};
    struct redbucket_response response;
    enum redbucket_status status;

    do {
        memset(&response, UNTOUCHED, sizeof response);
        begin(use, "redbucket_request");
        status = redbucket_request(use->limiter, &key, 1, &response);
        count(use, status, &response);
    } while (again(use, status, is_untouched(&response, sizeof response)));
}

/* Some of an array may fail and the others not; those are asked again. */
static void decide_all(struct use *use, struct redbucket_request *requests, size_t len,
                       size_t counted)
{
    for (size_t i = 0; i < len; i++)
        memset(&requests[i].response, UNTOUCHED, sizeof requests[i].response);
    begin(use, "redbucket_decide");
    enum redbucket_status status = redbucket_decide(use->limiter, requests, len);
    bool untouched = true;

    for (size_t i = 0; i < len; i++) {
        const struct redbucket_request *request = &requests[i];
        bool failed = request->status != REDBUCKET_OK;

        untouched =
            untouched && (!failed || is_untouched(&request->response, sizeof request->response));
        if (i == counted)
            count(use, request->status, &request->response);
        if (failed && !use->rests && !use->all->excused(request->status) &&
            !may_be_mistaken(use, request->status))
            refuse(use, request->status, "is not what is said of that");
    }
    if (!again(use, status, untouched))
        return;
    for (size_t i = 0; i < len; i++) {
        struct redbucket_error error = {.message = ""};

        redbucket_request_error(&requests[i], &error);
        assert_true(requests[i].status == REDBUCKET_OK || error.message[0] != '\0');
        if (requests[i].status != REDBUCKET_OK)
            decide_all(use, &requests[i], 1, i == counted ? 0 : SIZE_MAX);
    }
}

static void ask_array(struct use *use)
{
    const struct redbucket_key a = {.limit = "a", .key = use->all->key};
    const struct redbucket_key both[] = {{.limit = "b", .key = use->all->key},
                                         {.limit = "c", .key = use->all->key}};
    struct redbucket_verdict verdicts[2];
    struct redbucket_request requests[] = {
        {.keys = both, .keys_len = 2, .cost = 2, .verdicts = verdicts},
        {.keys = &a, .keys_len = 1, .cost = 1},
        {.operation = REDBUCKET_PEEK, .keys = &a, .keys_len = 1, .cost = 1},
        {.operation = REDBUCKET_CHARGE, .keys = both, .keys_len = 2, .cost = 1},
        {.operation = REDBUCKET_REFUND, .keys = both, .keys_len = 2, .cost = 1},
        {.operation = REDBUCKET_GIVE_BACK, .keys = both, .keys_len = 1, .cost = 1},
        {.operation = REDBUCKET_RESET, .keys = &both[1], .keys_len = 1},
    };

    decide_all(use, requests, sizeof requests / sizeof requests[0], 1);
}

static void ask_at(struct use *use)
{
    const struct redbucket_key key = {.limit = "c", .key = "at"};
    struct redbucket_request request = {.keys = &key, .keys_len = 1, .cost = 1};
    bool embedded =
        strncmp(use->all->url, "memory:", 7) == 0 || strncmp(use->all->url, "shm:", 4) == 0;

    if (embedded)
        TRY(use, redbucket_decide_at(use->limiter, &request, 1, 1.0), true);
    else
        assert_int_equal(redbucket_decide_at(use->limiter, &request, 1, 1.0),
                         REDBUCKET_ERROR_UNSUPPORTED);
}

static void ask_leased(struct use *use)
{
    const struct redbucket_key key = {.limit = "leased", .key = use->all->key};
    struct redbucket_response response;

    for (unsigned i = 0; i < 30; i++)
        TRY(use, redbucket_request(use->limiter, &key, 1, &response), true);
}

/* ---- On a loop ------------------------------------------------------------------------------ */

static void answered(void *data, const struct redbucket_request *decided)
{
    struct use *use = data;

    use->answers++;
    if (decided->keys[0].limit[0] == 'a')
        count(use, decided->status, &decided->response);
    if (decided->status != REDBUCKET_OK && decided->status != REDBUCKET_CANCELLED)
        use->failed = decided->status;
}

static void turn(struct use *use, unsigned answers)
{
    double until = test_now() + LONG_S;

    while (use->answers < answers) {
        struct pollfd watched = {redbucket_async_descriptor(use->async), POLLIN, 0};

        if (test_now() > until)
            fail_msg("%s: %u of %u answers came", use->all->url, use->answers, answers);
        (void)poll(&watched, 1, 100);
        DO(use, redbucket_async_dispatch(use->async));
        if (use->failed != REDBUCKET_OK && !use->rests &&
            !(use->withheld &&
              (use->all->excused(use->failed) || may_be_mistaken(use, use->failed))))
            refuse(use, use->failed, "was answered");
    }
}

static void detach(void *data)
{
    ((struct use *)data)->events++;
}

static void ask_on_loop(struct use *use)
{
    const struct redbucket_key a = {.limit = "a", .key = use->all->key};
    const struct redbucket_key b = {.limit = "b", .key = use->all->key};
    struct redbucket_verdict verdict;
    struct redbucket_request of_a = {.keys = &a, .keys_len = 1, .cost = 1};
    struct redbucket_request of_b = {.keys = &b, .keys_len = 1, .cost = 1, .verdicts = &verdict};
    uint64_t id = 0;

    use->async = no_async;
    use->answers = 0;
    use->withheld = false;
    use->failed = REDBUCKET_OK;
    TRY(use, redbucket_async_create(use->limiter, &use->async, NULL), use->async == no_async);
    assert_true(redbucket_async_attach(use->async, detach, use));
    TRY(use, redbucket_async_request(use->async, &of_a, answered, use, NULL), true);
    TRY(use, redbucket_async_request(use->async, &of_b, answered, use, NULL), true);
    TRY(use, redbucket_async_request(use->async, &of_b, answered, use, &id), id == 0);
    DO(use, (void)redbucket_async_cancel(use->async, id));
    turn(use, 3);
    TRY(use, redbucket_async_request(use->async, &of_b, answered, use, NULL), true);
    assert_int_equal(redbucket_async_outstanding(use->async), 1);
    DO(use, redbucket_async_destroy(use->async));
    assert_int_equal(use->answers, 4);
}

/* ---- Looking -------------------------------------------------------------------------------- */

static void see(void *data, const struct redbucket_bucket *bucket)
{
    struct use *use = data;

    if (bucket->key != NULL && bucket->key_len == strlen(use->all->key) &&
        memcmp(bucket->key, use->all->key, bucket->key_len) == 0)
        use->met++;
}

/* What failed is left out of the walk, or done again; then nobody can say what it will see. */
static void walk_once(struct use *use)
{
    const struct redbucket_walk_options options = {
        .size = sizeof options, .limiter = use->limiter, .zone = "a"};
    struct redbucket_walk *walk = no_walk;
    unsigned excuses = use->all->excuses;
    bool done = false;
    enum redbucket_status status;

    TRY(use, redbucket_walk_create(use->store, &options, &walk), walk == no_walk);
    use->met = 0;
    while (!done) {
        do {
            begin(use, "redbucket_walk_step");
            status = redbucket_walk_step(walk, see, use, &done);
        } while (again(use, status, true) && !done);
    }
    DO(use, redbucket_walk_destroy(walk));
    assert_true(use->met > 0 || excuses != use->all->excuses);
}

static void look(struct use *use)
{
    const struct redbucket_key key = {.limit = "a", .key = use->all->key};
    struct redbucket_statistics statistics = {.size = sizeof statistics};
    struct redbucket_health health = {.size = sizeof health};
    struct redbucket_zone_statistics zones[REDBUCKET_ZONES_MAX];
    struct redbucket_metered metered = {"store", &statistics, zones, 0};
    char bytes[REDBUCKET_METRICS_SIZE(1) + REDBUCKET_METRICS_ZONES_SIZE(2)];
    struct redbucket_text text = {bytes, sizeof bytes, 0};
    struct redbucket_state state;

    memset(&state, UNTOUCHED, sizeof state);
    TRY(use, redbucket_store_check(use->store, &health), health.method[0] == '\0');
    assert_true(health.method[0] != '\0');
    TRY(use, redbucket_read(use->limiter, &key, &state), is_untouched(&state, sizeof state));
    assert_true(state.exists || use->all->lenient);
    if (!use->all->lenient && !(state.value >= use->all->granted - 0.5))
        fail_msg("%s: %u permits granted, and %g counted", use->all->url, use->all->granted,
                 state.value);
    TRY(use, redbucket_store_statistics(use->store, &statistics), statistics.accepted == 0);
    TRY(use, redbucket_store_zones(use->store, zones, REDBUCKET_ZONES_MAX, &metered.zones_len),
        metered.zones_len == 0);
    TRY(use, redbucket_metrics(&metered, 1, &text), text.len == 0);
    (void)redbucket_store_colocation(use->store, "a", 0, "b", 0);
    walk_once(use);
}

/* ---- Texts ---------------------------------------------------------------------------------- */

static void tell_by_http(struct use *use)
{
    const struct redbucket_key key = {.limit = "a", .key = use->all->key};
    struct redbucket_verdict verdict;
    struct redbucket_request request = {
        .operation = REDBUCKET_PEEK, .keys = &key, .keys_len = 1, .cost = 1, .verdicts = &verdict};
    char bytes[REDBUCKET_HTTP_SIZE(1)];
    struct redbucket_text text = {bytes, sizeof bytes, 0};

    decide_all(use, &request, 1, SIZE_MAX);
    TRY(use, redbucket_http_value(use->limiter, &request, REDBUCKET_HTTP_RETRY_AFTER, &text),
        text.len == 0);
    TRY(use, redbucket_http_fields(use->limiter, &request, REDBUCKET_HTTP_ALL, &text), true);
    if (!request.response.accepted)
        TRY(use, redbucket_http_problem(use->limiter, &request, &text), true);
    assert_int_equal(redbucket_http_status(&request), request.response.accepted   ? 200
                                                      : request.response.degraded ? 503
                                                                                  : 429);
    assert_string_equal(redbucket_http_name(REDBUCKET_HTTP_RETRY_AFTER), "Retry-After");
}

static void read_and_write_texts(struct use *use)
{
    static struct redbucket_named_limit named;
    char number[REDBUCKET_NUMBER_SIZE], limit[REDBUCKET_LIMIT_TEXT_SIZE];
    double value = 0;

    TRY(use, redbucket_number_parse("0.1", &value, NULL), true);
    TRY(use, redbucket_rate_parse("5/s", &value, NULL), true);
    TRY(use, redbucket_duration_parse("50ms", &value, NULL), true);
    DO(use, redbucket_number_format(value, number));
    assert_string_equal(number, "0.05");
    TRY(use, redbucket_limit_parse("ip:5/s,burst=3", &named, NULL), true);
    TRY(use, redbucket_limit_check(&named.limit, NULL), true);
    DO(use, redbucket_limit_format(&named, limit));
    assert_string_equal(limit, "ip:5,burst=3");
    assert_string_equal(redbucket_status_text(REDBUCKET_OK), "ok");
    assert_string_equal(redbucket_version(), "0.1.0");
    redbucket_thread_interrupt(NULL, NULL);
}

void everything_do(struct everything *all)
{
    struct use use = {.all = all};

    all->granted = all->maybe = all->excuses = 0;
    set_up(&use);
    take(&use);
    ask_array(&use);
    ask_at(&use);
    ask_on_loop(&use);
    ask_leased(&use);
    look(&use);
    for (unsigned i = 0; i < PERMITS && all->granted + all->maybe < PERMITS; i++)
        take(&use);
    take(&use);
    tell_by_http(&use);
    read_and_write_texts(&use);
    assert_true(all->granted <= PERMITS || all->lenient);
    assert_true(all->granted + all->maybe >= PERMITS);
    DO(&use, redbucket_limiter_destroy(use.limiter));
    DO(&use, redbucket_store_close(use.store));
}
