/* SPDX-License-Identifier: MIT */
/*
 * Answers: a tuple of accepted and delay, which unpacks and compares as one of two, and knows more
 * than that.
 *
 * What more it knows lies behind the two elements, in the same piece of memory, as plain numbers:
 * an object of Python is made of one only when somebody asks for it. Python itself keeps the
 * dictionaries of subclasses of tuples there.
 *
 * An answer refers to nothing that could refer to it, so the collector of cycles isn't told of it.
 */
#include "core.h"

#include <stdatomic.h>
#include <string.h>

#define ELEMENTS 2

/* Behind the elements. `names` has as many as there are verdicts; `verdicts` is NULL for at most
 * one, of which the response says all. */
struct rest {
    PyObject *names;
    struct redbucket_verdict *verdicts;
    struct redbucket_response response;
    double waited;
};

/* Bytes of a tuple without its elements, of this version of Python. The same for all interpreters,
 * so that whoever loads the module writes what is there already. */
static _Atomic Py_ssize_t tuple_size;

static struct rest *rest_of(PyObject *self)
{
    Py_ssize_t before = atomic_load_explicit(&tuple_size, memory_order_relaxed);

    return (struct rest *)(void *)((char *)self + before + ELEMENTS * sizeof(PyObject *));
}

static struct core *core_of(PyObject *self)
{
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(self), "_core");

    if (module == NULL)
        return NULL;
    Py_DECREF(module); /* the class keeps it */
    return rbk_core_of(module);
}

/* ---- Making -------------------------------------------------------------------------------- */

/* Takes over both elements. */
static PyObject *make(PyTypeObject *type, PyObject *accepted, PyObject *delay)
{
    PyObject *self = accepted == NULL || delay == NULL ? NULL : PyType_GenericAlloc(type, ELEMENTS);

    if (self == NULL) {
        Py_XDECREF(accepted);
        Py_XDECREF(delay);
        return NULL;
    }
    PyObject_GC_UnTrack(self);
    (void)PyTuple_SetItem(self, 0, accepted);
    (void)PyTuple_SetItem(self, 1, delay);
    return self;
}

static PyObject *own(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

static PyObject *delay_of(const struct core *core, bool accepted, double delay)
{
    if (!accepted)
        return own(Py_None);
    return delay == 0.0 ? own(core->zero) : PyFloat_FromDouble(delay);
}

PyObject *rbk_response_new(struct core *core, PyObject *names,
                           const struct redbucket_response *response,
                           struct redbucket_verdict *verdicts)
{
    PyObject *self =
        make((PyTypeObject *)core->response_type, own(response->accepted ? Py_True : Py_False),
             delay_of(core, response->accepted, response->delay));

    if (self == NULL) {
        PyMem_Free(verdicts);
        return NULL;
    }
    *rest_of(self) = (struct rest){own(names), verdicts, *response, 0.0};
    return self;
}

/* remaining: a number, or None for no limit. */
static int take_remaining(PyObject *object, int64_t *remaining)
{
    *remaining = INT64_MAX;
    if (object == NULL || object == Py_None)
        return 0;
    *remaining = PyLong_AsLongLong(object);
    return *remaining == -1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *response_new(PyTypeObject *type, PyObject *args, PyObject *options)
{
    static char *words[] = {"accepted", "delay", "retry_after", "remaining", "reset_after",
                            "degraded", "time",  "waited",      NULL};
    struct rest rest = {.response = {.decided = REDBUCKET_NONE}};
    PyObject *accepted, *delay, *remaining = NULL;
    int degraded = 0;

    if (!PyArg_ParseTupleAndKeywords(args, options, "OO|$dOdpdd:Response", words, &accepted, &delay,
                                     &rest.response.retry_after, &remaining,
                                     &rest.response.reset_after, &degraded, &rest.response.time,
                                     &rest.waited) ||
        take_remaining(remaining, &rest.response.remaining) < 0)
        return NULL;
    rest.names = PyTuple_New(0);
    if (rest.names == NULL)
        return NULL;
    PyObject *self = make(type, own(accepted), own(delay));

    if (self == NULL) {
        Py_DECREF(rest.names);
        return NULL;
    }
    rest.response.accepted = PyObject_IsTrue(accepted) == 1;
    rest.response.degraded = degraded != 0;
    *rest_of(self) = rest;
    return self;
}

/* The memory of the tuple is its own to release. */
static void response_finalize(PyObject *self)
{
    struct rest *rest = rest_of(self);

    PyMem_Free(rest->verdicts);
    rest->verdicts = NULL;
    Py_CLEAR(rest->names);
}

/* ---- A copy with other values -------------------------------------------------------------- */

static struct redbucket_verdict *copy_verdicts(const struct rest *rest)
{
    size_t size = (size_t)PyTuple_Size(rest->names) * sizeof rest->verdicts[0];
    struct redbucket_verdict *copy = PyMem_Malloc(size);

    if (copy != NULL)
        memcpy(copy, rest->verdicts, size);
    return copy;
}

PyDoc_STRVAR(replace_doc, "_replace($self, /, **values)\n--\n\n"
                          "A copy with other values of accepted, delay, retry_after, remaining,\n"
                          "reset_after, degraded or waited.");

static PyObject *response_replace(PyObject *self, PyObject *args, PyObject *options)
{
    static char *words[] = {"accepted",    "delay",    "retry_after", "remaining",
                            "reset_after", "degraded", "waited",      NULL};
    const struct rest *rest = rest_of(self);
    struct rest copy = *rest;
    PyObject *accepted = PyTuple_GetItem(self, 0);
    PyObject *delay = PyTuple_GetItem(self, 1);
    PyObject *remaining = NULL;
    int degraded = copy.response.degraded;

    if (!PyArg_ParseTupleAndKeywords(args, options, "|$OOdOdpd:_replace", words, &accepted, &delay,
                                     &copy.response.retry_after, &remaining,
                                     &copy.response.reset_after, &degraded, &copy.waited))
        return NULL;
    if (remaining != NULL && take_remaining(remaining, &copy.response.remaining) < 0)
        return NULL;
    if (rest->verdicts != NULL && (copy.verdicts = copy_verdicts(rest)) == NULL)
        return PyErr_NoMemory();
    PyObject *other = make(Py_TYPE(self), own(accepted), own(delay));

    if (other == NULL) {
        PyMem_Free(copy.verdicts);
        return NULL;
    }
    copy.response.accepted = PyObject_IsTrue(accepted) == 1;
    copy.response.degraded = degraded != 0;
    Py_INCREF(copy.names);
    *rest_of(other) = copy;
    return other;
}

/* ---- Attributes ---------------------------------------------------------------------------- */

static int check_answer(const struct core *core, PyObject *object)
{
    int is = PyObject_IsInstance(object, core->response_base);

    if (is == 0)
        PyErr_Format(PyExc_TypeError, "expected a Response, not %R", object);
    return is == 1 ? 0 : -1;
}

int rbk_response_time(struct core *core, PyObject *object, double *time)
{
    if (check_answer(core, object) < 0)
        return -1;
    const struct rest *rest = rest_of(object);

    if (!rest->response.accepted) {
        PyErr_SetString(PyExc_ValueError, "a rejected response has no permit to give back");
        return -1;
    }
    *time = rest->response.time;
    return 0;
}

/* The verdict of the only limit, of which the response says all. */
static struct redbucket_verdict verdict_of(const struct redbucket_response *response)
{
    return (struct redbucket_verdict){.accepted = response->accepted,
                                      .delay = response->delay,
                                      .retry_after = response->retry_after,
                                      .reset_after = response->reset_after,
                                      .remaining = response->remaining};
}

int rbk_response_recall(struct core *core, PyObject *object, struct redbucket_request *request,
                        struct redbucket_verdict *alone, PyObject **names)
{
    if (check_answer(core, object) < 0)
        return -1;
    const struct rest *rest = rest_of(object);

    *alone = verdict_of(&rest->response);
    *names = rest->names;
    request->status = REDBUCKET_OK;
    request->response = rest->response;
    request->verdicts = rest->verdicts != NULL ? rest->verdicts : alone;
    return 0;
}

static PyObject *get_element(PyObject *self, void *index)
{
    PyObject *element = PyTuple_GetItem(self, (Py_ssize_t)(intptr_t)index);

    Py_XINCREF(element);
    return element;
}

/* `offset` is where the double lies in the rest. */
static PyObject *get_double(PyObject *self, void *offset)
{
    double value;

    memcpy(&value, (const char *)rest_of(self) + (intptr_t)offset, sizeof value);
    return PyFloat_FromDouble(value);
}

static PyObject *get_remaining(PyObject *self, void *unused)
{
    int64_t remaining = rest_of(self)->response.remaining;

    (void)unused;
    return remaining == INT64_MAX ? own(Py_None) : PyLong_FromLongLong(remaining);
}

static PyObject *get_degraded(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(rest_of(self)->response.degraded);
}

static PyObject *get_decided(PyObject *self, void *unused)
{
    const struct rest *rest = rest_of(self);

    (void)unused;
    if (rest->response.decided == REDBUCKET_NONE)
        return own(Py_None);
    return get_element(rest->names, (void *)(intptr_t)rest->response.decided);
}

/* The answer of one limit for itself alone. */
static PyObject *alone(struct core *core, const struct rest *rest, Py_ssize_t index)
{
    struct redbucket_response response = rest->response;
    PyObject *names = PyTuple_GetSlice(rest->names, index, index + 1);

    if (names == NULL)
        return NULL;
    if (rest->verdicts != NULL) {
        const struct redbucket_verdict *verdict = &rest->verdicts[index];
        bool decides = !verdict->accepted || verdict->delay > 0.0;

        response.accepted = verdict->accepted;
        response.delay = verdict->delay;
        response.retry_after = verdict->retry_after;
        response.reset_after = verdict->reset_after;
        response.remaining = verdict->remaining;
        response.decided = decides ? 0 : REDBUCKET_NONE;
    }
    PyObject *answer = rbk_response_new(core, names, &response, NULL);

    Py_DECREF(names);
    return answer;
}

static PyObject *get_limits(PyObject *self, void *unused)
{
    struct core *core = core_of(self);
    PyObject *limits = core == NULL ? NULL : PyDict_New();

    (void)unused;
    if (limits == NULL)
        return NULL;
    const struct rest *rest = rest_of(self);
    Py_ssize_t len = PyTuple_Size(rest->names);

    for (Py_ssize_t i = 0; i < len; i++) {
        PyObject *answer = alone(core, rest, i);
        int failed =
            answer == NULL || PyDict_SetItem(limits, PyTuple_GetItem(rest->names, i), answer) < 0;

        Py_XDECREF(answer);
        if (failed) {
            Py_DECREF(limits);
            return NULL;
        }
    }
    return limits;
}

#define AT(field) ((void *)offsetof(struct rest, field))

static PyGetSetDef attributes[] = {
    {"accepted", get_element, NULL, "Whether the request was accepted.", (void *)0},
    {"delay", get_element, NULL,
     "Seconds to wait before going on, for the caller to wait; None when rejected.", (void *)1},
    {"retry_after", get_double, NULL,
     "Seconds after which the same request would be accepted if nobody else asked; math.inf for\n"
     "never; 0.0 when accepted.",
     AT(response.retry_after)},
    {"remaining", get_remaining, NULL,
     "How many requests of cost 1 would be accepted at once now; None when no limit was named.",
     NULL},
    {"reset_after", get_double, NULL, "Seconds until all buckets named are empty.",
     AT(response.reset_after)},
    {"time", get_double, NULL, "When it was decided, in seconds by the store's clock.",
     AT(response.time)},
    {"waited", get_double, NULL, "Seconds that acquire() has waited, in all.", AT(waited)},
    {"degraded", get_degraded, NULL, "Whether the store failed and a failure policy answered.",
     NULL},
    {"decided", get_decided, NULL,
     "The name of the limit that keeps out longest, or else delays longest; None when none does.",
     NULL},
    {"limits", get_limits, NULL, "The answer of each limit for itself alone, by name.", NULL},
    {0},
};

/* ---- Too late ------------------------------------------------------------------------------ */

/* When a delay is over too late, waiting helps until it fits the timeout. */
static double wait_of(double delay, double timeout)
{
    return delay > timeout ? delay - timeout : 0.0;
}

static void refuse(struct redbucket_response *response, double delay, double timeout)
{
    response->accepted = false;
    response->delay = 0.0;
    response->delay_us = 0;
    response->retry_after = wait_of(delay, timeout);
}

static void refuse_late(struct rest *rest, const struct rest *taken, double left, double timeout)
{
    Py_ssize_t len = rest->verdicts == NULL ? 0 : PyTuple_Size(rest->names);

    refuse(&rest->response, taken->response.delay, timeout);
    rest->response.decided = taken->response.decided;
    rest->response.degraded = taken->response.degraded;
    for (Py_ssize_t i = 0; i < len; i++) {
        struct redbucket_verdict *verdict = &rest->verdicts[i];
        double delay = taken->verdicts[i].delay;

        verdict->accepted = delay <= left;
        verdict->delay = verdict->accepted ? delay : 0.0;
        verdict->retry_after = verdict->accepted ? 0.0 : wait_of(delay, timeout);
    }
}

PyDoc_STRVAR(late_doc, "_late($self, after, left, timeout, /)\n--\n\n"
                       "What becomes of a permit that was given back since its delay is longer\n"
                       "than what was left of a timeout: rejected by the limits that delay so.\n"
                       "`after` is the answer to giving it back.");

static PyObject *response_late(PyObject *self, PyObject *args)
{
    const struct rest *taken = rest_of(self);
    struct core *core = core_of(self);
    PyObject *after;
    double left, timeout;

    if (core == NULL || !PyArg_ParseTuple(args, "Odd:_late", &after, &left, &timeout) ||
        check_answer(core, after) < 0)
        return NULL;
    struct rest copy = *rest_of(after);

    if (PyTuple_Size(copy.names) != PyTuple_Size(taken->names) ||
        (copy.verdicts == NULL) != (taken->verdicts == NULL)) {
        PyErr_SetString(PyExc_ValueError, "the answers are not to requests of the same limits");
        return NULL;
    }
    if (copy.verdicts != NULL && (copy.verdicts = copy_verdicts(&copy)) == NULL)
        return PyErr_NoMemory();
    refuse_late(&copy, taken, left, timeout);
    return rbk_response_new(core, copy.names, &copy.response, copy.verdicts);
}

/* ---- As a tuple ---------------------------------------------------------------------------- */

/* A hash and a comparison of its own go together, and a tuple may keep its hash in itself, where an
 * answer has not put any. So both ask the plain tuple. */
static Py_hash_t response_hash(PyObject *self)
{
    PyObject *plain = PyTuple_GetSlice(self, 0, ELEMENTS);
    Py_hash_t hash = plain == NULL ? -1 : PyObject_Hash(plain);

    Py_XDECREF(plain);
    return hash;
}

static PyObject *response_compare(PyObject *self, PyObject *other, int how)
{
    PyObject *plain = PyTuple_GetSlice(self, 0, ELEMENTS);
    PyObject *result = plain == NULL ? NULL : PyObject_RichCompare(plain, other, how);

    Py_XDECREF(plain);
    return result;
}

PyDoc_STRVAR(type_doc, "An answer. See redbucket.Response.");

static PyMethodDef methods[] = {
    {"_replace", (PyCFunction)(void (*)(void))response_replace, METH_VARARGS | METH_KEYWORDS,
     replace_doc},
    {"_late", response_late, METH_VARARGS, late_doc},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)type_doc},
    {Py_tp_new, (void *)response_new},
    {Py_tp_finalize, (void *)response_finalize},
    {Py_tp_hash, (void *)response_hash},
    {Py_tp_richcompare, (void *)response_compare},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static Py_ssize_t size_of_tuple(void)
{
    PyObject *size = PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__basicsize__");
    Py_ssize_t bytes = size == NULL ? -1 : PyLong_AsSsize_t(size);

    Py_XDECREF(size);
    return bytes;
}

PyObject *rbk_response_make_type(void)
{
    Py_ssize_t size = size_of_tuple();

    if (size < 0)
        return NULL;
    PyType_Spec spec = {
        .name = "redbucket._core.ResponseBase",
        .basicsize = (int)size + (int)sizeof(struct rest),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
        .slots = slots,
    };
    PyObject *bases = PyTuple_Pack(1, &PyTuple_Type);
    PyObject *type = bases == NULL ? NULL : PyType_FromSpecWithBases(&spec, bases);

    Py_XDECREF(bases);
    atomic_store_explicit(&tuple_size, size, memory_order_relaxed);
    return type;
}
