/* SPDX-License-Identifier: MIT */
/*
 * The type that limiters of Python are made of: it owns a store, opened by a URL, and the library's
 * limiter on it.
 *
 * What is open stays open for as long as a call uses it, whoever closes meanwhile: other threads
 * run while a call waits. So calls are counted, and the last one closes.
 */
#include "core.h"

#include <redbucket/interrupt.h>

#include <string.h>

static struct limiter *limiter_of(PyObject *self)
{
    return (struct limiter *)self;
}

/* ---- Life ---------------------------------------------------------------------------------- */

static PyObject *limiter_new(PyTypeObject *type, PyObject *args, PyObject *options)
{
    (void)args; /* for __init__ of the classes made of this */
    (void)options;
    PyObject *module = PyObject_GetAttrString((PyObject *)type, "_core");

    if (module == NULL)
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);

    if (self == NULL) {
        Py_DECREF(module);
        return NULL;
    }
    limiter_of(self)->module = module;
    limiter_of(self)->core = rbk_core_of(module);
    return self;
}

static void close_now(struct limiter *limiter)
{
    struct redbucket_limiter *library = limiter->limiter;
    struct redbucket_store *store = limiter->store;

    limiter->limiter = NULL;
    limiter->store = NULL;
    redbucket_limiter_destroy(library);
    redbucket_store_close(store);
}

static int limiter_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(limiter_of(self)->module);
    Py_VISIT(limiter_of(self)->clock);
    return 0;
}

/* The module stays: `core` is a part of it. */
static int limiter_clear(PyObject *self)
{
    Py_CLEAR(limiter_of(self)->clock);
    return 0;
}

static void limiter_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    (void)limiter_clear(self);
    close_now(limiter_of(self));
    Py_CLEAR(limiter_of(self)->module);
    release(self);
    Py_DECREF(type);
}

/* ---- Use ----------------------------------------------------------------------------------- */

static int check_open(const struct limiter *limiter)
{
    if (limiter->store != NULL && !limiter->closing)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, limiter->closing ? "the rate limiter was closed"
                                                         : "the rate limiter has no store");
    return -1;
}

int rbk_limiter_enter(struct limiter *limiter)
{
    if (check_open(limiter) < 0)
        return -1;
    if (limiter->limiter == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the rate limiter has no limits yet: call configure()");
        return -1;
    }
    limiter->users++;
    return 0;
}

void rbk_limiter_leave(struct limiter *limiter)
{
    if (--limiter->users == 0 && limiter->closing)
        close_now(limiter);
}

/* More than so many take long enough for others to want a turn. */
#define LONG_ARRAY 16

static int read_clock(PyObject *clock, double *now)
{
    PyObject *said = PyObject_CallObject(clock, NULL);

    if (said == NULL)
        return -1;
    *now = PyFloat_AsDouble(said);
    Py_DECREF(said);
    return *now == -1.0 && PyErr_Occurred() ? -1 : 0;
}

/* Runs what Python's signal handlers are to do, in the thread that may. */
static bool has_had_enough(void *data)
{
    struct outing *outing = data;

    PyEval_RestoreThread(outing->thread);
    outing->raised = outing->raised || PyErr_CheckSignals() < 0;
    outing->thread = PyEval_SaveThread();
    return outing->raised;
}

void rbk_outing_begin(struct outing *outing)
{
    outing->raised = false;
    outing->thread = PyEval_SaveThread();
    redbucket_thread_interrupt(has_had_enough, outing);
}

int rbk_outing_end(struct outing *outing)
{
    redbucket_thread_interrupt(NULL, NULL);
    PyEval_RestoreThread(outing->thread);
    return outing->raised ? -1 : 0;
}

static void decide(const struct limiter *limiter, struct redbucket_request *requests, size_t len,
                   double now)
{
    if (limiter->clock != NULL)
        (void)!redbucket_decide_at(limiter->limiter, requests, len, now);
    else
        (void)!redbucket_decide(limiter->limiter, requests, len);
}

int rbk_limiter_decide(struct limiter *limiter, struct redbucket_request *requests, size_t len)
{
    struct outing outing;
    double now = 0.0;

    if (limiter->clock != NULL && read_clock(limiter->clock, &now) < 0)
        return -1;
    /* An embedded decision takes less time than letting the lock go. */
    if (!limiter->waits && len <= LONG_ARRAY) {
        decide(limiter, requests, len, now);
        return 0;
    }
    rbk_outing_begin(&outing);
    decide(limiter, requests, len, now);
    return rbk_outing_end(&outing);
}

/* ---- Methods ------------------------------------------------------------------------------- */

PyDoc_STRVAR(open_doc, "_open($self, url, clock, waits, /)\n--\n\nOpens the store of a URL.");

static PyObject *limiter_open(PyObject *self, PyObject *args)
{
    struct limiter *limiter = limiter_of(self);
    struct redbucket_store *store;
    struct redbucket_error error;
    enum redbucket_status status;
    PyObject *clock;
    const char *url;
    int waits;

    if (!PyArg_ParseTuple(args, "sOp:_open", &url, &clock, &waits))
        return NULL;
    if (limiter->store != NULL || limiter->closing) {
        PyErr_SetString(PyExc_RuntimeError, "the rate limiter has a store already");
        return NULL;
    }
    /* Held while a file is mapped or read, so that nobody opens a second one meanwhile. */
    status = redbucket_store_open(url, &store, &error);
    if (status != REDBUCKET_OK)
        return rbk_raise(limiter->core, &error);
    limiter->store = store;
    limiter->waits = waits != 0;
    if (clock != Py_None) {
        Py_INCREF(clock);
        limiter->clock = clock;
    }
    Py_RETURN_NONE;
}

/* Adds one limit, (name, zone, rate, burst, delay, expiry, lease, lease_time), to a limiter in
 * the making. */
static int add_limit(struct limiter *limiter, struct redbucket_limiter *library, PyObject *item,
                     bool *costs)
{
    struct redbucket_limit limit = {.size = sizeof limit};
    struct redbucket_error error;
    Py_ssize_t zone_len;
    const char *name;

    if (!PyArg_ParseTuple(item, "ss#dddddd", &name, &limit.zone, &zone_len, &limit.rate,
                          &limit.burst, &limit.delay, &limit.expiry, &limit.lease,
                          &limit.lease_time))
        return -1;
    if (zone_len == 0) {
        PyErr_Format(PyExc_ValueError, "limit %s: the name of its zone is empty", name);
        return -1;
    }
    limit.zone_len = (size_t)zone_len;
    if (redbucket_limiter_add(library, name, &limit, &error) != REDBUCKET_OK) {
        (void)rbk_raise(limiter->core, &error);
        return -1;
    }
    *costs = *costs || strcmp(name, "cost") == 0;
    return 0;
}

static int add_limits(struct limiter *limiter, struct redbucket_limiter *library, PyObject *items,
                      bool *costs)
{
    Py_ssize_t len = PyList_Size(items);

    for (Py_ssize_t i = 0; i < len; i++) {
        if (add_limit(limiter, library, PyList_GetItem(items, i), costs) < 0)
            return -1;
    }
    return 0;
}

PyDoc_STRVAR(configure_doc,
             "_set_limits($self, limits, /)\n--\n\n"
             "Takes a list of (name, zone, rate, burst, delay, expiry, lease, lease_time), once.");

static PyObject *limiter_set_limits(PyObject *self, PyObject *items)
{
    struct limiter *limiter = limiter_of(self);
    struct redbucket_limiter *library;
    struct redbucket_error error;
    bool costs = false;

    if (check_open(limiter) < 0)
        return NULL;
    if (limiter->limiter != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the rate limiter has its limits already");
        return NULL;
    }
    if (!PyList_Check(items)) {
        PyErr_SetString(PyExc_TypeError, "expected a list of limits");
        return NULL;
    }
    if (redbucket_limiter_create(limiter->store, &library, &error) != REDBUCKET_OK)
        return rbk_raise(limiter->core, &error);
    if (add_limits(limiter, library, items, &costs) < 0) {
        redbucket_limiter_destroy(library);
        return NULL;
    }
    limiter->costs = costs;
    limiter->limiter = library;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    close_doc,
    "close($self, /)\n--\n\n"
    "Closes the connections, files and memory that the limiter holds. Buckets that others\n"
    "share stay. Calls under way in other threads end as usual; new ones raise\n"
    "RuntimeError. Closing again does nothing.");

static PyObject *limiter_close(PyObject *self, PyObject *unused)
{
    struct limiter *limiter = limiter_of(self);

    (void)unused;
    limiter->closing = true;
    if (limiter->users == 0)
        close_now(limiter);
    Py_RETURN_NONE;
}

static PyObject *get_closed(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(limiter_of(self)->closing);
}

/* ---- The type ------------------------------------------------------------------------------ */

#define KEYS_DOC                                                                                \
    "\n\nKeys are given by keyword, or as one mapping from the names of limits to keys, which " \
    "is\n"                                                                                      \
    "also the way for a limit whose name is that of an option. A key is text, bytes or a "      \
    "number,\n"                                                                                 \
    "and means what its str() says. KeyError for an unknown limit, TypeError for None,\n"       \
    "ValueError for a cost out of range, StoreError when the store failed. Safe from any thread."

PyDoc_STRVAR(
    request_doc,
    "request($self, keys=None, /, *, cost=1.0, **named)\n--\n\n"
    "Asks for a permit of all the limits named, or of none: a Response. Nothing is slept:\n"
    "an accepted one has a delay, in seconds, which is the caller's to wait." KEYS_DOC);

PyDoc_STRVAR(peek_doc, "peek($self, keys=None, /, *, cost=1.0, **named)\n--\n\n"
                       "What a request would be answered now; changes nothing." KEYS_DOC);

PyDoc_STRVAR(refund_doc, "refund($self, keys=None, /, *, cost=1.0, **named)\n--\n\n"
                         "Gives a cost back to each bucket, never below empty." KEYS_DOC);

PyDoc_STRVAR(charge_doc,
             "charge($self, keys=None, /, *, cost=1.0, **named)\n--\n\n"
             "Takes a cost without asking, past every bound: requests are then rejected until it\n"
             "has drained." KEYS_DOC);

PyDoc_STRVAR(reset_doc, "reset($self, keys=None, /, **named)\n--\n\nForgets the buckets." KEYS_DOC);

PyDoc_STRVAR(
    give_back_doc,
    "give_back($self, response, keys=None, /, *, cost=1.0, **named)\n--\n\n"
    "Gives back the permit of an accepted response that was not used: only what can't have\n"
    "drained since, so that no more gets in than the limits allow." KEYS_DOC);

PyDoc_STRVAR(many_doc,
             "_request_many($self, requests, cost, /)\n--\n\n"
             "Decides an iterable of mappings, or (mapping, cost), in its order: a list of\n"
             "responses, and of exceptions, not raised, where one failed.");

PyDoc_STRVAR(http_doc,
             "_http($self, answer, fields, names=(), /)\n--\n\n"
             "What a response, or the status that a request of these limits failed with, comes to\n"
             "in HTTP: status, [(name, value)] of the fields, and a problem's body or None.");
PyDoc_STRVAR(state_doc, "_state($self, limit, key, /)\n--\n\nA bucket as stored, or None.");
PyDoc_STRVAR(statistics_doc, "_statistics($self, /)\n--\n\nWhat the store has counted, as a dict.");
PyDoc_STRVAR(health_doc, "_check($self, /)\n--\n\nHow the store is, as a dict.");

static PyMethodDef methods[] = {
    RBK_FAST("request", rbk_ask_request, request_doc),
    RBK_FAST("peek", rbk_ask_peek, peek_doc),
    RBK_FAST("refund", rbk_ask_refund, refund_doc),
    RBK_FAST("charge", rbk_ask_charge, charge_doc),
    RBK_FAST("reset", rbk_ask_reset, reset_doc),
    RBK_FAST("give_back", rbk_ask_give_back, give_back_doc),
    {"_request_many", rbk_ask_many, METH_VARARGS, many_doc},
    {"_state", rbk_read_state, METH_VARARGS, state_doc},
    {"_statistics", rbk_read_statistics, METH_NOARGS, statistics_doc},
    {"_check", rbk_read_health, METH_NOARGS, health_doc},
    {"_http", rbk_http, METH_VARARGS, http_doc},
    {"_open", limiter_open, METH_VARARGS, open_doc},
    {"_set_limits", limiter_set_limits, METH_O, configure_doc},
    {"close", limiter_close, METH_NOARGS, close_doc},
    {0},
};

/* Whether a loop should go on meanwhile. Who has a clock of his own decides at once. */
static PyObject *get_waits(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(limiter_of(self)->waits && limiter_of(self)->clock == NULL);
}

static PyGetSetDef attributes[] = {
    {"_waits", get_waits, NULL, "Whether a decision may wait for others.", NULL},
    {"closed", get_closed, NULL, "Whether close() was called.", NULL},
    {0},
};

PyDoc_STRVAR(type_doc, "A store and the limits on it. See redbucket.StoreRateLimiter.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)type_doc},
    {Py_tp_new, (void *)limiter_new},
    {Py_tp_dealloc, (void *)limiter_dealloc},
    {Py_tp_traverse, (void *)limiter_traverse},
    {Py_tp_clear, (void *)limiter_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

PyType_Spec rbk_limiter_spec = {
    .name = "redbucket._core.Limiter",
    .basicsize = sizeof(struct limiter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
