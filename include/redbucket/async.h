/* SPDX-License-Identifier: MIT */
/*
 * Red Bucket: requests on an event loop.
 *
 * Requests with a callback, for a thread that must never wait. What is asked for in one turn of the
 * loop goes to the store together, and what comes while that is under way goes together next. Time
 * limits, failure policies and everything else are as in the blocking form: it is the same code.
 *
 * An event loop watches one descriptor for reading, and calls redbucket_async_dispatch when it is
 * readable; <redbucket/adapters/...> do that for libevent, libuv, libev, GLib and poll. Callbacks
 * are called by dispatch, on the caller's stack, never from inside any other function here but
 * redbucket_async_destroy. In them everything is allowed but dispatch: new requests, cancelling,
 * destroying.
 *
 * One thread at a time may use it, and while requests are outstanding always the same one. When
 * none is, it may go to another thread, in an orderly way (as by joining the one before), though
 * calls may still be under way whose requests were all given up. Any number of objects, of other
 * threads as well, and blocking calls beside, may share a limiter or a store. A listener of the
 * store's is told of events by the thread that dispatches.
 *
 * After a fork it stays with the parent: in the child it answers nothing, new requests get
 * ERROR_UNSUPPORTED, and all that is left is to destroy it, which calls no callback and leaves the
 * loop alone.
 */
#ifndef REDBUCKET_ASYNC_H
#define REDBUCKET_ASYNC_H

#include "redbucket/redbucket.h"

#ifdef __cplusplus
extern "C" {
#endif

struct redbucket_async;

/*
 * Has the answer to a request of redbucket_async_request: `decided` is the library's own copy of
 * the request, with status, response and verdicts filled in, and is good for the time of the call.
 * Called exactly once for each request.
 */
typedef void redbucket_answered(void *data, const struct redbucket_request *decided);

/* So many requests may be outstanding at a time. */
#define REDBUCKET_ASYNC_MAX 65536

/* Creates *async on `limiter`, which is borrowed until it is destroyed. ERROR_UNSUPPORTED on
 * systems without what it takes (docs/async.md). */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_async_create(struct redbucket_limiter *limiter, struct redbucket_async **async,
                       struct redbucket_error *error);

/*
 * Takes it from its loop, has each callback that is still to come called with CANCELLED, or with
 * the answer where that is there already, and frees everything. May be called in a callback, not by
 * a listener of the store. NULL does nothing.
 */
REDBUCKET_API void redbucket_async_destroy(struct redbucket_async *async);

/*
 * Asks for what `request` says, of which `status`, `failed` and `response` don't matter. Everything
 * is copied; where `verdicts` is not NULL the answer has verdicts, in memory of its own. On OK *id
 * names the request for redbucket_async_cancel (NULL when that isn't wanted), and `callback` will
 * be called. The request's time counts from now.
 *
 * ERROR_UNKNOWN_LIMIT, ERROR_DUPLICATE, ERROR_ARGUMENT and ERROR_KEY are found at once, ERROR_FULL
 * means that REDBUCKET_ASYNC_MAX are outstanding: then, as with every error, there is no callback.
 */
REDBUCKET_API REDBUCKET_MUST_CHECK enum redbucket_status
redbucket_async_request(struct redbucket_async *async, const struct redbucket_request *request,
                        redbucket_answered *callback, void *data, uint64_t *id);

/*
 * Gives a request up: its callback will get CANCELLED. Not yet sent, it takes nothing; under way
 * already, it may. False when it is answered, or there is none: then nothing changes, and an
 * answer that waits for its callback still gets there.
 */
REDBUCKET_API bool redbucket_async_cancel(struct redbucket_async *async, uint64_t id);

/* How many callbacks are still to come. */
REDBUCKET_API size_t redbucket_async_outstanding(const struct redbucket_async *async);

/* The descriptor to watch for reading, the same for as long as it lives. Neither read nor close
 * it. */
REDBUCKET_API int redbucket_async_descriptor(const struct redbucket_async *async);

/* Does what can be done now, and calls callbacks. Never waits; may be called at any time. */
REDBUCKET_API void redbucket_async_dispatch(struct redbucket_async *async);

/*
 * For adapters: `detach` will be called with `data` when it is destroyed, to take the descriptor
 * from the loop while it is open. False when there is such a function already; NULL takes it back.
 */
REDBUCKET_API bool redbucket_async_attach(struct redbucket_async *async, void (*detach)(void *data),
                                          void *data);

#ifdef __cplusplus
}
#endif

#endif
