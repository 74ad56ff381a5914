/* SPDX-License-Identifier: MIT */
/*
 * A service on libevent's HTTP server that is limited by its clients' addresses, and by `?user=`
 * where that is given. One thread serves everybody: it asks without waiting, whatever the store
 * takes, and serves delays by a timer. Who is rejected gets 429 with Retry-After.
 *
 * usage: service [-a ADDRESS] [-p PORT] [-s STORE] [-l LIMIT]...
 *
 * -l replaces one of the limits `ip` and `user`: ip:20/s,delay=10. Port 0 is any; which it is, is
 * the first line of the output. Ends at SIGINT and SIGTERM.
 */
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include <redbucket/adapters/libevent.h>
#include <redbucket/http.h>

#define KEYS 2

struct service {
    struct event_base *base;
    struct evhttp *http;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    struct redbucket_async *async;
    struct visit *visits; /* that have no reply yet */
    const char *address;
    const char *port;
    const char *url;
    struct redbucket_named_limit limits[KEYS];
};

/* Somebody's request, from its arrival until its reply. */
struct visit {
    struct service *service;
    struct evhttp_request *request;
    struct event *timer; /* while its delay is waited out */
    struct visit *previous;
    struct visit *next;
};

/* ---- Replies ----------------------------------------------------------------------------------
 */

static void end_visit(struct visit *visit)
{
    if (visit->previous != NULL)
        visit->previous->next = visit->next;
    else
        visit->service->visits = visit->next;
    if (visit->next != NULL)
        visit->next->previous = visit->previous;
    if (visit->timer != NULL)
        event_free(visit->timer);
    free(visit);
}

static void reply(struct visit *visit, int status, const char *body)
{
    struct evbuffer *buffer = evbuffer_new();

    if (buffer != NULL)
        (void)evbuffer_add_printf(buffer, "%s\n", body);
    /* To nobody when the client has gone meanwhile. */
    evhttp_send_reply(visit->request, status, NULL, buffer);
    if (buffer != NULL)
        evbuffer_free(buffer);
    end_visit(visit);
}

static void serve(struct visit *visit)
{
    reply(visit, HTTP_OK, "Hello.");
}

static void serve_late(evutil_socket_t fd, short events, void *data)
{
    (void)fd;
    (void)events;
    serve(data);
}

/* A delay is no more than a timer: meanwhile the loop serves others. */
static void serve_after(struct visit *visit, uint64_t delay_us)
{
    struct timeval delay = {(time_t)(delay_us / 1000000), (suseconds_t)(delay_us % 1000000)};

    visit->timer = evtimer_new(visit->service->base, serve_late, visit);
    if (visit->timer == NULL || evtimer_add(visit->timer, &delay) != 0)
        reply(visit, HTTP_SERVUNAVAIL, "Out of memory.");
}

static void add_field(const struct visit *visit, const struct redbucket_request *decided,
                      enum redbucket_http_field field)
{
    char bytes[REDBUCKET_HTTP_SIZE(KEYS)];
    struct redbucket_text text = {.bytes = bytes, .size = sizeof bytes};

    if (redbucket_http_value(visit->service->limiter, decided, field, &text) == REDBUCKET_OK &&
        bytes[0] != '\0')
        (void)evhttp_add_header(evhttp_request_get_output_headers(visit->request),
                                redbucket_http_name(field), bytes);
}

static void answered(void *data, const struct redbucket_request *decided)
{
    struct visit *visit = data;

    if (decided->status != REDBUCKET_CANCELLED) {
        add_field(visit, decided, REDBUCKET_HTTP_RETRY_AFTER);
        add_field(visit, decided, REDBUCKET_HTTP_RATELIMIT);
        add_field(visit, decided, REDBUCKET_HTTP_RATELIMIT_POLICY);
    }
    if (decided->status != REDBUCKET_OK)
        reply(visit, redbucket_http_status(decided), "The service can't tell its load now.");
    else if (!decided->response.accepted)
        reply(visit, redbucket_http_status(decided), "Too many requests.");
    else if (decided->response.delay_us > 0)
        serve_after(visit, decided->response.delay_us);
    else
        serve(visit);
}

/* ---- Requests ---------------------------------------------------------------------------------
 */

/* The value of `?user=`, decoded, or NULL; *query is to be cleared. */
static const char *find_user(struct evhttp_request *request, struct evkeyvalq *query)
{
    const char *text = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
    const char *user;

    memset(query, 0, sizeof *query);
    if (text == NULL || evhttp_parse_query_str(text, query) != 0)
        return NULL;
    user = evhttp_find_header(query, "user");
    return user != NULL && user[0] != '\0' ? user : NULL;
}

static struct visit *begin_visit(struct service *service, struct evhttp_request *request)
{
    struct visit *visit = calloc(1, sizeof *visit);

    if (visit == NULL)
        return NULL;
    visit->service = service;
    visit->request = request;
    visit->next = service->visits;
    if (visit->next != NULL)
        visit->next->previous = visit;
    service->visits = visit;
    return visit;
}

static void ask(struct visit *visit, const char *address, const char *user)
{
    struct redbucket_key keys[KEYS] = {{.limit = "ip", .key = address},
                                       {.limit = "user", .key = user}};
    struct redbucket_verdict verdicts[KEYS];
    struct redbucket_request request = {
        .keys = keys, .keys_len = user != NULL ? 2 : 1, .cost = 1.0, .verdicts = verdicts};

    if (redbucket_async_request(visit->service->async, &request, answered, visit, NULL) !=
        REDBUCKET_OK)
        reply(visit, HTTP_SERVUNAVAIL, "The service is overloaded.");
}

static void arrived(struct evhttp_request *request, void *data)
{
    struct visit *visit = begin_visit(data, request);
    struct evkeyvalq query;
    char *address = NULL;
    ev_uint16_t port;

    if (visit == NULL) {
        evhttp_send_error(request, HTTP_INTERNAL, NULL);
        return;
    }
    const char *user = find_user(request, &query);

    evhttp_connection_get_peer(evhttp_request_get_connection(request), &address, &port);
    ask(visit, address != NULL ? address : "", user);
    evhttp_clear_headers(&query);
}

/* ---- The service ------------------------------------------------------------------------------
 */

static void set_limit(struct service *service, const char *text)
{
    struct redbucket_named_limit limit;
    struct redbucket_error error;

    if (redbucket_limit_parse(text, &limit, &error) != REDBUCKET_OK) {
        fprintf(stderr, "service: %s\n", error.message);
        exit(2);
    }
    for (int i = 0; i < KEYS; i++) {
        if (strcmp(service->limits[i].name, limit.name) == 0 ||
            service->limits[i].name[0] == '\0') {
            service->limits[i] = limit;
            return;
        }
    }
    fprintf(stderr, "service: -l: the limits here are ip and user, not %s\n", limit.name);
    exit(2);
}

static void read_options(struct service *service, int argc, char **argv)
{
    set_limit(service, "ip:20/s,delay=10");
    set_limit(service, "user:5/s,burst=10");
    for (int option; (option = getopt(argc, argv, "a:p:s:l:")) != -1;) {
        switch (option) {
        case 'a':
            service->address = optarg;
            break;
        case 'p':
            service->port = optarg;
            break;
        case 's':
            service->url = optarg;
            break;
        case 'l':
            set_limit(service, optarg);
            break;
        default:
            exit(2);
        }
    }
}

/* The zone of a limit that was read lies beside it, and is as long as it is. */
static enum redbucket_status add_limit(struct service *service,
                                       const struct redbucket_named_limit *named,
                                       struct redbucket_error *error)
{
    struct redbucket_limit limit = named->limit;

    limit.zone = named->zone;
    return redbucket_limiter_add(service->limiter, named->name, &limit, error);
}

static bool open_limiter(struct service *service)
{
    struct redbucket_error error;
    enum redbucket_status status = redbucket_store_open(service->url, &service->store, &error);

    if (status == REDBUCKET_OK)
        status = redbucket_limiter_create(service->store, &service->limiter, &error);
    for (int i = 0; i < KEYS && status == REDBUCKET_OK; i++)
        status = add_limit(service, &service->limits[i], &error);
    if (status == REDBUCKET_OK)
        status = redbucket_async_create(service->limiter, &service->async, &error);
    if (status != REDBUCKET_OK)
        fprintf(stderr, "service: %s\n", error.message);
    return status == REDBUCKET_OK &&
           redbucket_libevent_attach(service->async, service->base) == REDBUCKET_OK;
}

static bool listen_on(struct service *service)
{
    unsigned long port = strtoul(service->port, NULL, 10);
    struct evhttp_bound_socket *bound;
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    char text[NI_MAXSERV];

    bound = port > 65535 ? NULL
                         : evhttp_bind_socket_with_handle(service->http, service->address,
                                                          (ev_uint16_t)port);
    if (bound == NULL ||
        getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len) != 0 ||
        getnameinfo((struct sockaddr *)&address, len, NULL, 0, text, sizeof text, NI_NUMERICSERV) !=
            0) {
        fprintf(stderr, "service: can't listen on %s, port %s\n", service->address, service->port);
        return false;
    }
    printf("listening on %s, port %s\n", service->address, text);
    return fflush(stdout) == 0;
}

static void stop(evutil_socket_t number, short events, void *data)
{
    (void)number;
    (void)events;
    (void)event_base_loopbreak(data);
}

static bool run(struct service *service)
{
    struct event *signals[2] = {evsignal_new(service->base, SIGINT, stop, service->base),
                                evsignal_new(service->base, SIGTERM, stop, service->base)};
    bool good = signals[0] != NULL && signals[1] != NULL && evsignal_add(signals[0], NULL) == 0 &&
                evsignal_add(signals[1], NULL) == 0 && listen_on(service) &&
                event_base_dispatch(service->base) >= 0;

    for (int i = 0; i < 2; i++) {
        if (signals[i] != NULL)
            event_free(signals[i]);
    }
    return good;
}

/* Whoever still waits for an answer is told here that there is none; who waits out a delay gets no
 * reply. */
static void close_all(struct service *service)
{
    redbucket_async_destroy(service->async);
    while (service->visits != NULL)
        reply(service->visits, HTTP_SERVUNAVAIL, "The service ends.");
    if (service->http != NULL)
        evhttp_free(service->http);
    redbucket_limiter_destroy(service->limiter);
    redbucket_store_close(service->store);
    if (service->base != NULL)
        event_base_free(service->base);
}

int main(int argc, char **argv)
{
    static struct service service = {.address = "127.0.0.1", .port = "8080", .url = "memory:"};
    bool good;

    read_options(&service, argc, argv);
    (void)signal(SIGPIPE, SIG_IGN);
    service.base = event_base_new();
    service.http = service.base != NULL ? evhttp_new(service.base) : NULL;
    good = service.http != NULL && open_limiter(&service);
    if (good) {
        evhttp_set_gencb(service.http, arrived, &service);
        good = run(&service);
    }
    close_all(&service);
    return good ? 0 : 1;
}
