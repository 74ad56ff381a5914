/* SPDX-License-Identifier: MIT */
/*
 * One question, with its keys by keyword or in a mapping, and its answer. On the way of the usual
 * one, one limit by keyword, nothing is made but the answer.
 *
 * By keyword the name of a limit comes before that of an option; with a mapping, keywords are
 * options alone.
 */
#include "core.h"

#include <string.h>

static int take_cost(PyObject *value, double *cost)
{
    *cost = PyFloat_AsDouble(value);
    return *cost == -1.0 && PyErr_Occurred() ? -1 : 0;
}

static bool is_cost(PyObject *name)
{
    return PyUnicode_CompareWithASCIIString(name, "cost") == 0;
}

/* Keywords beside a mapping. */
static int take_options(struct question *question, PyObject *const *values, PyObject *names)
{
    Py_ssize_t len = names == NULL ? 0 : PyTuple_Size(names);

    for (Py_ssize_t i = 0; i < len; i++) {
        PyObject *name = PyTuple_GetItem(names, i);

        if (!is_cost(name)) {
            PyErr_Format(PyExc_TypeError,
                         "%R is no option (beside a mapping, keywords are options)", name);
            return -1;
        }
        if (take_cost(values[i], &question->cost) < 0)
            return -1;
    }
    return 0;
}

static int add_keyword(struct question *question, PyObject *name, PyObject *value)
{
    if (question->given.len == REDBUCKET_KEYS_MAX) {
        PyErr_Format(PyExc_ValueError, "a request names at most %d limits", REDBUCKET_KEYS_MAX);
        return -1;
    }
    return rbk_keys_add(&question->given, name, value);
}

/* The names without the one at `left_out`. */
static PyObject *names_without(PyObject *names, Py_ssize_t left_out)
{
    PyObject *before = PyTuple_GetSlice(names, 0, left_out);
    PyObject *after = PyTuple_GetSlice(names, left_out + 1, PyTuple_Size(names));
    PyObject *both = NULL;

    if (before != NULL && after != NULL)
        both = PySequence_Concat(before, after);
    Py_XDECREF(before);
    Py_XDECREF(after);
    return both;
}

static int take_keywords(const struct limiter *limiter, struct question *question,
                         PyObject *const *values, PyObject *names)
{
    Py_ssize_t len = PyTuple_Size(names);
    Py_ssize_t option = -1;

    for (Py_ssize_t i = 0; i < len; i++) {
        PyObject *name = PyTuple_GetItem(names, i);

        if (!limiter->costs && is_cost(name)) {
            option = i;
            if (take_cost(values[i], &question->cost) < 0)
                return -1;
        } else if (add_keyword(question, name, values[i]) < 0) {
            return -1;
        }
    }
    if (option >= 0) {
        question->names = names_without(names, option);
        return question->names == NULL ? -1 : 0;
    }
    Py_INCREF(names);
    question->names = names;
    return 0;
}

int rbk_question_take(const struct limiter *limiter, struct question *question,
                      PyObject *const *args, Py_ssize_t args_len, PyObject *names)
{
    question->given = (struct keys){question->keys, question->held, 0};
    question->names = NULL;
    question->cost = 1.0;
    if (args_len > 1) {
        PyErr_Format(PyExc_TypeError, "expected one mapping from limits to keys, not %zd arguments",
                     args_len);
        return -1;
    }
    if (args_len == 1 && args[0] != Py_None) {
        question->names = rbk_keys_add_mapping(&question->given, args[0]);
        return question->names == NULL ? -1 : take_options(question, args + 1, names);
    }
    if (names != NULL)
        return take_keywords(limiter, question, args + args_len, names);
    question->names = PyTuple_New(0);
    return question->names == NULL ? -1 : 0;
}

void rbk_question_release(struct question *question)
{
    rbk_keys_release(&question->given);
    Py_XDECREF(question->names);
}

static PyObject *decide(struct limiter *limiter, struct question *question,
                        struct redbucket_request *request)
{
    request->keys = question->keys;
    request->keys_len = question->given.len;
    request->cost = question->cost;
    if (request->keys_len > 1) {
        request->verdicts = PyMem_Malloc(request->keys_len * sizeof request->verdicts[0]);
        if (request->verdicts == NULL)
            return PyErr_NoMemory();
    }
    int decided = rbk_limiter_decide(limiter, request, 1);

    if (decided == 0 && request->status == REDBUCKET_OK)
        return rbk_response_new(limiter->core, question->names, &request->response,
                                request->verdicts);
    PyMem_Free(request->verdicts);
    return decided < 0 ? NULL : rbk_raise_request(limiter, request, question->names);
}

/* Asks; `args` are those behind what the operation itself takes. */
static PyObject *ask(PyObject *self, struct redbucket_request *request, PyObject *const *args,
                     Py_ssize_t args_len, PyObject *names)
{
    struct limiter *limiter = (struct limiter *)self;
    struct question question;
    PyObject *answer = NULL;

    if (rbk_limiter_enter(limiter) < 0)
        return NULL;
    if (rbk_question_take(limiter, &question, args, args_len, names) == 0)
        answer = decide(limiter, &question, request);
    rbk_question_release(&question);
    rbk_limiter_leave(limiter);
    return answer;
}

PyObject *rbk_ask_request(PyObject *self, PyObject *const *args, Py_ssize_t args_len,
                          PyObject *names)
{
    struct redbucket_request request = {.operation = REDBUCKET_REQUEST};

    return ask(self, &request, args, args_len, names);
}

PyObject *rbk_ask_peek(PyObject *self, PyObject *const *args, Py_ssize_t args_len, PyObject *names)
{
    struct redbucket_request request = {.operation = REDBUCKET_PEEK};

    return ask(self, &request, args, args_len, names);
}

PyObject *rbk_ask_refund(PyObject *self, PyObject *const *args, Py_ssize_t args_len,
                         PyObject *names)
{
    struct redbucket_request request = {.operation = REDBUCKET_REFUND};

    return ask(self, &request, args, args_len, names);
}

PyObject *rbk_ask_charge(PyObject *self, PyObject *const *args, Py_ssize_t args_len,
                         PyObject *names)
{
    struct redbucket_request request = {.operation = REDBUCKET_CHARGE};

    return ask(self, &request, args, args_len, names);
}

PyObject *rbk_ask_reset(PyObject *self, PyObject *const *args, Py_ssize_t args_len, PyObject *names)
{
    struct redbucket_request request = {.operation = REDBUCKET_RESET};

    return ask(self, &request, args, args_len, names);
}

PyObject *rbk_ask_give_back(PyObject *self, PyObject *const *args, Py_ssize_t args_len,
                            PyObject *names)
{
    struct redbucket_request request = {.operation = REDBUCKET_GIVE_BACK};

    if (args_len < 1) {
        PyErr_SetString(PyExc_TypeError, "expected the response whose permit is given back");
        return NULL;
    }
    if (rbk_response_time(((struct limiter *)self)->core, args[0], &request.taken_at) < 0)
        return NULL;
    return ask(self, &request, args + 1, args_len - 1, names);
}
