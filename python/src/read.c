/* SPDX-License-Identifier: MIT */
/*
 * What a store holds, has counted, and how it is, as objects of Python.
 */
#include "core.h"

#include <math.h>

/* The state of the one key of a request. */
static PyObject *read_one(struct limiter *limiter, struct redbucket_request *asked, PyObject *names)
{
    struct redbucket_state state = {0};
    struct outing outing;

    rbk_outing_begin(&outing);
    asked->status = redbucket_read(limiter->limiter, &asked->keys[0], &state);
    if (rbk_outing_end(&outing) < 0)
        return NULL;
    if (asked->status != REDBUCKET_OK)
        return rbk_raise_request(limiter, asked, names);
    if (!state.exists)
        return Py_BuildValue("");
    return PyObject_CallFunction(limiter->core->state_type, "dd", state.timestamp, state.value);
}

PyObject *rbk_read_state(PyObject *self, PyObject *args)
{
    struct limiter *limiter = (struct limiter *)self;
    struct redbucket_key key;
    struct redbucket_request asked = {.keys = &key, .keys_len = 1, .failed = 0};
    PyObject *held[1], *name, *value, *result = NULL;
    struct keys keys = {&key, held, 0};

    if (!PyArg_ParseTuple(args, "UO:state", &name, &value) || rbk_limiter_enter(limiter) < 0)
        return NULL;
    PyObject *names = PyTuple_Pack(1, name);

    if (names != NULL && rbk_keys_add(&keys, name, value) == 0)
        result = read_one(limiter, &asked, names);
    Py_XDECREF(names);
    rbk_keys_release(&keys);
    rbk_limiter_leave(limiter);
    return result;
}

/* For calls that need no limits: counts the use of an open store. */
static int enter_store(struct limiter *limiter)
{
    if (limiter->store == NULL || limiter->closing) {
        PyErr_SetString(PyExc_RuntimeError, "the rate limiter was closed");
        return -1;
    }
    limiter->users++;
    return 0;
}

PyObject *rbk_read_statistics(PyObject *self, PyObject *unused)
{
    struct limiter *limiter = (struct limiter *)self;
    struct redbucket_statistics counted = {.size = sizeof counted};
    enum redbucket_status status;
    PyObject *result;

    (void)unused;
    if (enter_store(limiter) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = redbucket_store_statistics(limiter->store, &counted);
    Py_END_ALLOW_THREADS if (status != REDBUCKET_OK) result = rbk_raise_store(limiter, status);
    else result = Py_BuildValue(
        "{sKsKsKsKsKsKsKsKsKsKsKsKsK}", "accepted", (unsigned long long)counted.accepted, "delayed",
        (unsigned long long)counted.delayed, "rejected", (unsigned long long)counted.rejected,
        "evicted", (unsigned long long)counted.evicted, "full", (unsigned long long)counted.full,
        "recovered", (unsigned long long)counted.recovered, "buckets",
        (unsigned long long)counted.buckets, "capacity", (unsigned long long)counted.capacity,
        "bytes", (unsigned long long)counted.bytes, "failed", (unsigned long long)counted.failed,
        "degraded", (unsigned long long)counted.degraded, "denied",
        (unsigned long long)counted.denied, "leased", (unsigned long long)counted.leased);
    rbk_limiter_leave(limiter);
    return result;
}

static PyObject *warnings_of(const struct redbucket_health *health)
{
    PyObject *warnings = PyTuple_New((Py_ssize_t)health->warnings_len);

    for (size_t i = 0; warnings != NULL && i < health->warnings_len; i++) {
        PyObject *text = rbk_text(health->warnings[i]);

        if (text == NULL || PyTuple_SetItem(warnings, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(warnings);
    }
    return warnings;
}

static PyObject *describe(const struct redbucket_health *health)
{
    PyObject *warnings = warnings_of(health);

    if (warnings == NULL)
        return NULL;
    return Py_BuildValue("{sdsNsNsNsNsNsNsisnsnsI}", "round_trip", health->round_trip, "server",
                         rbk_text(health->server), "method", rbk_text(health->method), "warnings",
                         warnings, "service", rbk_text(health->service), "master",
                         rbk_text(health->master), "sentinel", rbk_text(health->sentinel),
                         "replicas", health->replicas, "masters", (Py_ssize_t)health->masters,
                         "silent", (Py_ssize_t)health->silent, "slots", health->slots);
}

PyObject *rbk_read_health(PyObject *self, PyObject *unused)
{
    struct limiter *limiter = (struct limiter *)self;
    struct redbucket_health health = {.size = sizeof health};
    enum redbucket_status status;
    PyObject *result;

    (void)unused;
    if (enter_store(limiter) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = redbucket_store_check(limiter->store, &health);
    Py_END_ALLOW_THREADS result =
        status == REDBUCKET_OK ? describe(&health) : rbk_raise_store(limiter, status);
    rbk_limiter_leave(limiter);
    return result;
}
