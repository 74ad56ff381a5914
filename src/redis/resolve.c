/* SPDX-License-Identifier: MIT */
/*
 * Looking names up in a thread that may be left behind.
 *
 * Everything that thread touches lies in one mapping, which whoever is the last to need it frees:
 * the resolver's owner, or the thread when the owner has gone. The mapping is cleared in a child
 * after a fork, where the thread doesn't exist: there is no look-up under way then, and no lock
 * held.
 */
#include "redis/resolve.h"

#include "bell.h"
#include "error.h"
#include "fork_page.h"
#include "url.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guarded by `mutex`; but host, service and lookup are the thread's alone while `running`. */
struct page {
    pthread_mutex_t mutex;
    struct rbk_bell ended;
    bool running;   /* a thread is at it */
    bool abandoned; /* the owner has gone, and the thread frees the page */
    unsigned long long answers;

    rbk_lookup *lookup;
    char host[RBK_URL_HOST_MAX + 1];
    char service[8];

    int failure; /* of the last look-up: 0, or EAI_... */
    int number;  /* errno after it, 0 when nothing was amiss */
    struct rbk_addresses addresses;
};

struct rbk_resolver {
    rbk_lookup *lookup;
    const char *host;
    char service[8];
    struct page *page;
};

enum redbucket_status rbk_resolver_create(rbk_lookup *lookup, const char *host, unsigned port,
                                          struct rbk_resolver **resolver,
                                          struct redbucket_error *error)
{
    struct rbk_resolver *made = malloc(sizeof *made);
    enum redbucket_status status;

    if (made == NULL)
        return rbk_fail_system(error, ENOMEM, "names");
    made->lookup = lookup;
    made->host = host;
    (void)snprintf(made->service, sizeof made->service, "%u", port % 65536);
    status = rbk_fork_page_map(sizeof *made->page, (void **)&made->page, error);
    if (status != REDBUCKET_OK) {
        free(made);
        return status;
    }
    *resolver = made;
    return REDBUCKET_OK;
}

void rbk_resolver_destroy(struct rbk_resolver *resolver)
{
    bool running;

    if (resolver == NULL)
        return;
    (void)pthread_mutex_lock(&resolver->page->mutex);
    running = resolver->page->running;
    resolver->page->abandoned = true;
    (void)pthread_mutex_unlock(&resolver->page->mutex);
    if (!running)
        rbk_fork_page_unmap(resolver->page, sizeof *resolver->page);
    free(resolver);
}

static void copy_found(const struct addrinfo *found, struct rbk_addresses *addresses)
{
    addresses->len = 0;
    for (; found != NULL && addresses->len < RBK_ADDRESSES_MAX; found = found->ai_next) {
        struct rbk_address *address = &addresses->at[addresses->len];

        if (found->ai_addrlen > sizeof address->bytes)
            continue;
        memcpy(&address->bytes, found->ai_addr, found->ai_addrlen);
        address->len = found->ai_addrlen;
        addresses->len++;
    }
}

/* Returns 0, or EAI_..., with errno beside it. */
static int look_up(rbk_lookup *lookup, const char *host, const char *service, int flags,
                   struct rbk_addresses *addresses)
{
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    struct addrinfo *found = NULL;

    errno = 0;
    int failure = lookup(host, service, &hints, &found);

    if (failure != 0)
        return failure;
    copy_found(found, addresses);
    freeaddrinfo(found);
    return addresses->len == 0 ? EAI_NONAME : 0;
}

static void *work(void *data)
{
    struct page *page = data;
    struct rbk_addresses addresses;
    int failure = look_up(page->lookup, page->host, page->service, 0, &addresses);
    int number = errno;
    bool abandoned;

    (void)pthread_mutex_lock(&page->mutex);
    page->failure = failure;
    page->number = number;
    if (failure == 0)
        page->addresses = addresses;
    page->running = false;
    page->answers++;
    rbk_bell_ring_all(&page->ended);
    abandoned = page->abandoned;
    (void)pthread_mutex_unlock(&page->mutex);
    if (abandoned)
        rbk_fork_page_unmap(page, sizeof *page);
    return NULL;
}

/* Starts the thread, in which no signal of the host's is handled. Returns 0 or an error's number.
 */
static int start_thread(struct page *page)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    int number = pthread_attr_init(&attributes);

    if (number != 0)
        return number;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    number = pthread_create(&thread, &attributes, work, page);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return number;
}

static int begin_locked(struct rbk_resolver *resolver)
{
    struct page *page = resolver->page;
    int number;

    page->lookup = resolver->lookup;
    (void)snprintf(page->host, sizeof page->host, "%s", resolver->host);
    (void)snprintf(page->service, sizeof page->service, "%s", resolver->service);
    page->running = true;
    number = start_thread(page);
    if (number != 0)
        page->running = false;
    return number;
}

static bool await_locked(struct page *page, const struct rbk_deadline *deadline)
{
    unsigned long long before = page->answers;

    while (page->answers == before) {
        if (!rbk_bell_await(&page->ended, &page->mutex, deadline))
            return page->answers != before;
    }
    return true;
}

/* A library that has neither memory nor a descriptor to read its files with may well say that there
 * is no such name; what it ran into is then in errno alone. */
static enum redbucket_status tell(int failure, int number, const char **reason)
{
    *reason = failure == EAI_SYSTEM ? "the name could not be looked up" : gai_strerror(failure);
    if (failure == EAI_MEMORY || number == ENOMEM) {
        *reason = "no memory to look up the name";
        return REDBUCKET_ERROR_MEMORY;
    }
    if (number == EMFILE || number == ENFILE) {
        *reason = "no descriptor to look up the name";
        return REDBUCKET_ERROR_SYSTEM;
    }
    return REDBUCKET_ERROR_UNAVAILABLE;
}

static enum redbucket_status find_locked(struct rbk_resolver *resolver,
                                         const struct rbk_deadline *deadline, const char **reason)
{
    struct page *page = resolver->page;
    int number = page->running ? 0 : begin_locked(resolver);

    if (number != 0) {
        *reason = "no thread to look up the name";
        return number == ENOMEM ? REDBUCKET_ERROR_MEMORY : REDBUCKET_ERROR_SYSTEM;
    }
    if (!await_locked(page, deadline)) {
        *reason = "the look-up of the name took too long";
        return REDBUCKET_ERROR_TIMEOUT;
    }
    return page->failure == 0 ? REDBUCKET_OK : tell(page->failure, page->number, reason);
}

enum redbucket_status rbk_resolve(struct rbk_resolver *resolver,
                                  const struct rbk_deadline *deadline,
                                  struct rbk_addresses *addresses, const char **reason)
{
    enum redbucket_status status;
    int failure =
        look_up(getaddrinfo, resolver->host, resolver->service, AI_NUMERICHOST, addresses);

    if (failure == 0)
        return REDBUCKET_OK;
    /* An address that there was no memory to read is none to look up, in a thread that takes more.
     */
    if (failure == EAI_MEMORY)
        return tell(failure, ENOMEM, reason);
    (void)pthread_mutex_lock(&resolver->page->mutex);
    status = find_locked(resolver, deadline, reason);
    if (status == REDBUCKET_OK)
        *addresses = resolver->page->addresses;
    (void)pthread_mutex_unlock(&resolver->page->mutex);
    return status;
}
