/* SPDX-License-Identifier: MIT */
/*
 * Searching for a master: who is asked, in which order, with how much of the time; what is believed
 * and what isn't; what is said when it comes to nothing.
 */
#include "redis/search.h"

#include "fake_hosts.h"
#include "redis/sentinel.h"
#include "test.h"
#include "url.h"

#define SECRET "hunter2-marker"
#define HEARS  "SUBSCRIBE +switch-master "

#define MASTER  "192.0.2.1:6379"
#define REPLICA "192.0.2.2:6379"
#define GONE    "192.0.2.3:6379"

#define NAMES_MASTER  "192.0.2.1 6379"
#define NAMES_REPLICA "192.0.2.2 6379"
#define NAMES_GONE    "192.0.2.3 6379"

static struct rbk_redis_options options;
static struct rbk_transport *sentinels[RBK_HOSTS_MAX];
static struct rbk_search search;
static struct rbk_connection *watch;
static struct rbk_peer peer;
static struct redbucket_error error;

/* Three sentinels, a, b and c, who know the service and its master. */
static void prepare(const char *text)
{
    struct rbk_url url;

    fake_hosts_reset();
    (void)fake_sentinel("a:26379", NAMES_MASTER);
    (void)fake_sentinel("b:26379", NAMES_MASTER);
    (void)fake_sentinel("c:26379", NAMES_MASTER);
    (void)fake_server(MASTER, "master");
    (void)fake_server(REPLICA, "slave");
    fake_server(GONE, "master")->open = REDBUCKET_ERROR_UNAVAILABLE;
    assert_int_equal(rbk_url_parse(text, &url, NULL), REDBUCKET_OK);
    assert_int_equal(rbk_redis_options_parse(&url, &options, NULL), REDBUCKET_OK);
    search = (struct rbk_search){.options = &options, .sentinels = sentinels, .watch = &watch};
}

static void begin(void)
{
    prepare("redis+sentinel://a,b,c/s");
}

static enum redbucket_status run(double seconds)
{
    struct rbk_deadline deadline;
    enum redbucket_status status;

    for (size_t i = 0; i < options.hosts_len; i++)
        assert_int_equal(rbk_transport_create(&options.hosts[i], NULL, &sentinels[i], NULL), 0);
    peer = (struct rbk_peer){.connection = NULL};
    error = (struct redbucket_error){.message = ""};
    rbk_deadline_start(&deadline, seconds);
    status = rbk_search(&search, &deadline, &peer, &error);
    assert_int_equal(status == REDBUCKET_OK, peer.connection != NULL);
    assert_int_equal(status == REDBUCKET_OK, search.found != NULL);
    assert_int_equal(status == REDBUCKET_OK, watch != NULL);
    rbk_sentinel_hang_up(&watch);
    rbk_connection_close(peer.connection);
    rbk_transport_destroy(search.found);
    for (size_t i = 0; i < options.hosts_len; i++)
        rbk_transport_destroy(sentinels[i]);
    assert_int_equal(fake_hosts.opened, fake_hosts.closed);
    assert_null(strstr(error.message, SECRET));
    if (status != REDBUCKET_OK)
        assert_int_equal(error.status, status);
    return status;
}

static void assert_found(const char *log, size_t at)
{
    assert_int_equal(run(1.0), REDBUCKET_OK);
    assert_string_equal(fake_hosts.log, log);
    assert_int_equal(search.at, at);
}

static void assert_failed(enum redbucket_status status, const char *message)
{
    assert_int_equal(run(1.0), status);
    assert_string_equal(error.message, message);
}

static void the_first_that_answers_is_enough(void **state)
{
    (void)state;
    begin();
    assert_found("a:26379 333 " MASTER " 333 ", 0);
    assert_string_equal(fake_hosts.said, "SENTINEL get-master-addr-by-name s " HEARS "INFO ROLE ");
    begin();
    search.first = 2;
    assert_found("c:26379 333 " MASTER " 333 ", 2);
}

static void one_that_is_down_costs_no_time(void **state)
{
    (void)state;
    begin();
    fake_sentinel("b:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    search.first = 1;
    assert_found("b:26379 333 c:26379 500 " MASTER " 500 ", 2);
    begin();
    fake_sentinel("a:26379", NULL)->call = REDBUCKET_ERROR_IO;
    assert_found("a:26379 333 b:26379 500 " MASTER " 500 ", 1);
    begin();
    fake_sentinel("c:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    search.first = 2; /* and round */
    assert_found("c:26379 333 a:26379 500 " MASTER " 500 ", 0);
}

static void one_that_is_silent_leaves_time_for_the_next(void **state)
{
    (void)state;
    begin();
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_TIMEOUT;
    assert_found("a:26379 333 b:26379 333 " MASTER " 333 ", 1);
    begin();
    fake_sentinel("a:26379", NAMES_MASTER)->call = REDBUCKET_ERROR_TIMEOUT;
    fake_sentinel("b:26379", NAMES_MASTER)->call = REDBUCKET_ERROR_TIMEOUT;
    assert_found("a:26379 333 b:26379 333 c:26379 333 " MASTER " 333 ", 2);
}

static void all_silent_take_the_time_and_no_more(void **state)
{
    double began;

    (void)state;
    begin();
    for (size_t i = 0; i < 3; i++)
        fake_hosts.hosts[i].open = REDBUCKET_ERROR_TIMEOUT;
    began = fake_hosts.now;
    assert_failed(REDBUCKET_ERROR_TIMEOUT, "no sentinel answers; sentinel c:26379: not opened");
    assert_true(fake_hosts.now - began > 0.999 && fake_hosts.now - began < 1.001);
}

/* A place that is silent is asked again soon, and with a long time-out not for all of it. */
static void no_place_takes_long(void **state)
{
    (void)state;
    prepare("redis+sentinel://a,b/s?timeout=20s");
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_TIMEOUT;
    fake_server(MASTER, "master")->call = REDBUCKET_ERROR_TIMEOUT;
    assert_int_equal(run(20.0), REDBUCKET_ERROR_UNAVAILABLE);
    assert_string_equal(fake_hosts.log, "a:26379 5000 b:26379 5000 " MASTER " 5000 ");
    assert_string_equal(error.message, "master " MASTER ": went wrong");
    prepare("redis+sentinel://a/s?timeout=3s");
    assert_int_equal(run(3.0), REDBUCKET_OK);
    assert_string_equal(fake_hosts.log, "a:26379 1000 " MASTER " 1000 ");
}

/* It hasn't heard of the failover: what it names is a replica by now, or gone. */
static void one_that_is_behind_is_not_believed(void **state)
{
    (void)state;
    begin();
    (void)fake_sentinel("a:26379", NAMES_REPLICA);
    assert_found("a:26379 333 " REPLICA " 333 b:26379 500 " MASTER " 500 ", 1);
    begin();
    (void)fake_sentinel("a:26379", NAMES_GONE);
    (void)fake_sentinel("b:26379", NAMES_REPLICA);
    assert_found(
        "a:26379 333 " GONE " 333 b:26379 500 " REPLICA " 500 c:26379 1000 " MASTER " 1000 ", 2);
}

static void no_place_is_tried_twice(void **state)
{
    (void)state;
    begin();
    fake_server(MASTER, "master")->open = REDBUCKET_ERROR_TIMEOUT;
    assert_failed(REDBUCKET_ERROR_UNAVAILABLE, "master " MASTER ": not opened");
    assert_string_equal(fake_hosts.log, "a:26379 333 " MASTER " 333 b:26379 333 c:26379 667 ");
    begin();
    for (size_t i = 0; i < 3; i++)
        fake_hosts.hosts[i].named = NAMES_REPLICA;
    assert_failed(REDBUCKET_ERROR_READONLY,
                  "sentinel a:26379: names " REPLICA " as the master, which is a replica");
    assert_string_equal(fake_hosts.log, "a:26379 333 " REPLICA " 333 b:26379 500 c:26379 1000 ");
}

static void a_service_may_be_unknown(void **state)
{
    (void)state;
    begin();
    (void)fake_sentinel("a:26379", NULL);
    assert_found("a:26379 333 b:26379 500 " MASTER " 500 ", 1);
    prepare("redis+sentinel://a,b/my%0aservice");
    (void)fake_sentinel("a:26379", NULL);
    (void)fake_sentinel("b:26379", NULL);
    assert_failed(REDBUCKET_ERROR_UNAVAILABLE, "no sentinel knows a service \"my?service\"");
    begin();
    (void)fake_sentinel("a:26379", NULL);
    fake_sentinel("b:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    fake_sentinel("c:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    assert_failed(REDBUCKET_ERROR_UNAVAILABLE,
                  "sentinel a:26379: knows no such service, and no other answers");
}

static void nonsense_is_no_place(void **state)
{
#define TEXT(bytes)                                                       \
    {                                                                     \
        .type = RBK_REPLY_STRING, .text = bytes, .len = sizeof(bytes) - 1 \
    }
    static const struct rbk_reply places[][3] = {
        {TEXT("h"), TEXT("0")},
        {TEXT("h"), TEXT("65536")},
        {TEXT("h"), TEXT("x")},
        {TEXT("h"), TEXT("-1")},
        {TEXT("h"), TEXT("")},
        {TEXT(""), TEXT("1")},
        {TEXT("h\0x"), TEXT("1")},
        {TEXT("h"), TEXT("1\0")},
        {TEXT("h"), {.type = RBK_REPLY_NIL}},
        {{.type = RBK_REPLY_INTEGER}, TEXT("1")},
    };
    static char long_name[RBK_URL_HOST_MAX + 2];
    struct rbk_reply answers[16];
    size_t len = 0;

    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        answers[len++] =
            (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = 2, .elements = places[i]};
    answers[len++] = (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = 3, .elements = places[0]};
    answers[len++] = (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = 0};
    answers[len++] = (struct rbk_reply){.type = RBK_REPLY_STATUS, .text = "OK", .len = 2};
    memset(long_name, 'x', sizeof long_name - 1);
    const struct rbk_reply named[2] = {
        {.type = RBK_REPLY_STRING, .text = long_name, .len = sizeof long_name - 1}, TEXT("1")};

    answers[len++] = (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = 2, .elements = named};
    for (size_t i = 0; i < len; i++) {
        begin();
        fake_sentinel("a:26379", NULL)->answer = &answers[i];
        assert_found("a:26379 333 b:26379 500 " MASTER " 500 ", 1);
        prepare("redis+sentinel://a/s");
        fake_sentinel("a:26379", NULL)->answer = &answers[i];
        assert_failed(REDBUCKET_ERROR_PROTOCOL,
                      "sentinel a:26379: its answer is not where a master can be");
    }
}

static void a_server_is_no_sentinel(void **state)
{
    (void)state;
    prepare("redis+sentinel://192.0.2.1:6379/s");
    assert_failed(REDBUCKET_ERROR_UNSUPPORTED,
                  "sentinel " MASTER ": SENTINEL: ERR unknown command 'SENTINEL'");
    begin(); /* and what a sentinel names has to be a server */
    fake_sentinel("a:26379", "a 26379");
    assert_found("a:26379 333 a:26379 333 b:26379 500 " MASTER " 500 ", 1);
}

static void each_gets_its_own_password(void **state)
{
    (void)state;
    prepare("redis+sentinel://u:p@a/s/3?sentinel_password=q");
    assert_found("a:26379 1000 " MASTER " 1000 ", 0);
    assert_string_equal(fake_hosts.said, "AUTH q SENTINEL get-master-addr-by-name s " HEARS
                                         "AUTH u p SELECT 3 INFO ROLE ");
    prepare("redis+sentinel://a/s?sentinel_user=v&sentinel_password=q");
    assert_found("a:26379 1000 " MASTER " 1000 ", 0);
    assert_string_equal(fake_hosts.said,
                        "AUTH v q SENTINEL get-master-addr-by-name s " HEARS "INFO ROLE ");
}

static void a_refused_password_is_told_and_not_shown(void **state)
{
    (void)state;
    prepare("redis+sentinel://a,b/s?sentinel_password=" SECRET);
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    fake_sentinel("b:26379", NULL)->auth = "WRONGPASS invalid username-password pair";
    assert_failed(REDBUCKET_ERROR_AUTH,
                  "sentinel b:26379: AUTH: WRONGPASS invalid username-password pair");
    prepare("redis+sentinel://a/s?sentinel_password=" SECRET);
    fake_sentinel("a:26379", NULL)->auth = "ERR what is " SECRET "?";
    assert_failed(REDBUCKET_ERROR_SERVER,
                  "sentinel a:26379: AUTH: refused, in words that hold the password");
    prepare("redis+sentinel://:" SECRET "@a,b/s");
    fake_sentinel("b:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    fake_server(MASTER, "master")->auth = "WRONGPASS " SECRET;
    assert_failed(REDBUCKET_ERROR_AUTH,
                  "master " MASTER ": AUTH: refused, in words that hold the password");
}

/* Somebody else's sentinel can't mend that. */
static void what_is_missing_here_ends_the_search(void **state)
{
    (void)state;
    begin();
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_SYSTEM;
    assert_failed(REDBUCKET_ERROR_SYSTEM, "sentinel a:26379: not opened");
    assert_string_equal(fake_hosts.log, "a:26379 333 ");
}

/* The more telling failure is told, whatever came after it. */
static void failures_are_told_by_weight(void **state)
{
    (void)state;
    begin();
    fake_sentinel("a:26379", NULL)->open = REDBUCKET_ERROR_TLS;
    (void)fake_sentinel("b:26379", NULL);
    fake_sentinel("c:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    assert_failed(REDBUCKET_ERROR_TLS, "sentinel a:26379: not opened");
    begin();
    (void)fake_sentinel("a:26379", NAMES_GONE);
    fake_sentinel("b:26379", NULL)->open = REDBUCKET_ERROR_TLS;
    fake_sentinel("c:26379", NULL)->open = REDBUCKET_ERROR_UNAVAILABLE;
    assert_failed(REDBUCKET_ERROR_UNAVAILABLE, "master " GONE ": not opened");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_answers_is_enough),
        cmocka_unit_test(one_that_is_down_costs_no_time),
        cmocka_unit_test(one_that_is_silent_leaves_time_for_the_next),
        cmocka_unit_test(all_silent_take_the_time_and_no_more),
        cmocka_unit_test(no_place_takes_long),
        cmocka_unit_test(one_that_is_behind_is_not_believed),
        cmocka_unit_test(no_place_is_tried_twice),
        cmocka_unit_test(a_service_may_be_unknown),
        cmocka_unit_test(nonsense_is_no_place),
        cmocka_unit_test(a_server_is_no_sentinel),
        cmocka_unit_test(each_gets_its_own_password),
        cmocka_unit_test(a_refused_password_is_told_and_not_shown),
        cmocka_unit_test(what_is_missing_here_ends_the_search),
        cmocka_unit_test(failures_are_told_by_weight),
    };

    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
