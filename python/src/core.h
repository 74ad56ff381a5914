/* SPDX-License-Identifier: MIT */
/*
 * What the extension's files know of each other: the state of the module, of which each interpreter
 * has its own, and the objects. Nothing here is global, so interpreters share nothing but the code.
 *
 * All of it is called with the interpreter's lock held, unless it says otherwise. What returns an
 * object returns a new reference, or NULL with an exception set; what returns an int, 0 or -1.
 */
#ifndef RBK_PYTHON_CORE_H
#define RBK_PYTHON_CORE_H

#include "compat.h"

#include <redbucket/redbucket.h>

#include <stdbool.h>

/* The state of the module. Filled by its execution, but for what redbucket/__init__.py lends. */
struct core {
    PyObject *limiter_type;
    PyObject *async_type;
    PyObject *response_base;
    PyObject *response_type; /* lent: the class of answers, made of response_base */
    PyObject *state_type;    /* lent: the class of stored states */
    PyObject *errors;        /* lent: a tuple of exception classes, by status */
    PyObject *zero;          /* 0.0, the most usual delay */
};

struct core *rbk_core_of(PyObject *module);

/* ---- Limiters (limiter.c) ------------------------------------------------------------------ */

/*
 * A limiter and the store that it has opened. `limiter` is NULL until configured; both are NULL
 * once closed. `users` counts the calls under way, whose last one closes when `closing` was set
 * meanwhile. Guarded by the interpreter's lock.
 */
struct limiter {
    PyObject ob_base;
    PyObject *module;
    struct core *core;
    struct redbucket_store *store;
    struct redbucket_limiter *limiter;
    PyObject *clock; /* a callable that says what time it is, or NULL for the store's own */
    size_t users;
    bool closing;
    bool waits; /* the store may wait for others, so the interpreter's lock is let go */
    bool costs; /* a limit is named "cost": that word is no option then */
};

extern PyType_Spec rbk_limiter_spec, rbk_async_spec;

/* Begins and ends the use of an open, configured limiter by one call. */
int rbk_limiter_enter(struct limiter *limiter);
void rbk_limiter_leave(struct limiter *limiter);

/* A call that is under way without the interpreter's lock, so that other threads run, and that ends
 * when a handler of a signal has raised: -1 then. */
struct outing {
    PyThreadState *thread;
    bool raised;
};

void rbk_outing_begin(struct outing *outing);
int rbk_outing_end(struct outing *outing);

/* Has requests decided, by the clock of the limiter, without the interpreter's lock where that may
 * take long. -1 when the clock or a signal's handler raised; what became of each request is in it.
 */
int rbk_limiter_decide(struct limiter *limiter, struct redbucket_request *requests, size_t len);

/* ---- Keys (keys.c) ------------------------------------------------------------------------- */

/* The keys of one request, as the library takes them. What they point to is kept by `names` and
 * `held`. */
struct keys {
    struct redbucket_key *keys;
    PyObject **held;
    size_t len;
};

/* Adds a name and the text that an object means as a key. `keys->keys` and `held` have room. */
int rbk_keys_add(struct keys *keys, PyObject *name, PyObject *value);

/* Adds all of a mapping from names to keys, at most REDBUCKET_KEYS_MAX; returns the tuple of their
 * names. */
PyObject *rbk_keys_add_mapping(struct keys *keys, PyObject *mapping);

void rbk_keys_release(struct keys *keys);

/* ---- Questions (ask.c) --------------------------------------------------------------------- */

/* What somebody asks: the keys, which `given` points to, the tuple of their names, and the cost. */
struct question {
    struct redbucket_key keys[REDBUCKET_KEYS_MAX];
    PyObject *held[REDBUCKET_KEYS_MAX];
    struct keys given;
    PyObject *names;
    double cost;
};

/* Takes it from the arguments of a call. It is to be released, whatever is returned. */
int rbk_question_take(const struct limiter *limiter, struct question *question,
                      PyObject *const *args, Py_ssize_t args_len, PyObject *names);
void rbk_question_release(struct question *question);

rbk_fast_method rbk_ask_request, rbk_ask_peek, rbk_ask_refund, rbk_ask_charge, rbk_ask_reset;
rbk_fast_method rbk_ask_give_back;

/* _request_many(requests, cost) (many.c) */
PyObject *rbk_ask_many(PyObject *self, PyObject *args);

/* _state(limit, key) and others (read.c) */
PyObject *rbk_read_state(PyObject *self, PyObject *args);
PyObject *rbk_read_statistics(PyObject *self, PyObject *unused);
PyObject *rbk_read_health(PyObject *self, PyObject *unused);

/* ---- Answers (response.c) ------------------------------------------------------------------ */

/* The type that answers are made of; its size follows from that of a tuple. */
PyObject *rbk_response_make_type(void);

/* The answer to a request of the keys in `names`, a tuple. Takes over `verdicts`, one for each,
 * from PyMem_Malloc, or NULL when there is at most one. */
PyObject *rbk_response_new(struct core *core, PyObject *names,
                           const struct redbucket_response *response,
                           struct redbucket_verdict *verdicts);

/* The request that an answer is to, with the verdict of each limit, but without its keys: all but
 * the limit's own verdict in `alone` is borrowed from the answer, as are the `names`. */
int rbk_response_recall(struct core *core, PyObject *object, struct redbucket_request *request,
                        struct redbucket_verdict *alone, PyObject **names);

/* When the permit of an answer was taken; -1 when the object is no answer. */
int rbk_response_time(struct core *core, PyObject *object, double *time);

/* ---- HTTP (http.c) -------------------------------------------------------------------------- */

/* _http(answer, fields, names), and the module's _http_fields() */
PyObject *rbk_http(PyObject *self, PyObject *args);
PyObject *rbk_http_fields(PyObject *module, PyObject *unused);

/* ---- Failures (failure.c) ------------------------------------------------------------------ */

/* Raises what a failed call's detail means. Returns NULL. */
PyObject *rbk_raise(struct core *core, const struct redbucket_error *error);

/* The exception, not raised, that a failed request means: its limit, its key and why, in the
 * server's words where it had some. `names` are those of its keys. */
PyObject *rbk_request_failure(struct limiter *limiter, const struct redbucket_request *request,
                              PyObject *names);

/* Raises it. Returns NULL. */
PyObject *rbk_raise_request(struct limiter *limiter, const struct redbucket_request *request,
                            PyObject *names);

/* Raises why a call on the store as a whole failed. Returns NULL. */
PyObject *rbk_raise_store(struct limiter *limiter, enum redbucket_status status);

/* Text of the library or of a server, whatever bytes it has. */
PyObject *rbk_text(const char *text);

#endif
