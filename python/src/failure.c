/* SPDX-License-Identifier: MIT */
/*
 * From statuses to exceptions. Which class a status has is said in redbucket/errors.py; here are
 * the messages: which limit, which key, and why, in the server's words where it had some.
 */
#include "core.h"

#include <string.h>

PyObject *rbk_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *class_of(const struct core *core, enum redbucket_status status)
{
    if (core->errors == NULL || (Py_ssize_t)status >= PyTuple_Size(core->errors))
        return PyExc_RuntimeError;
    return PyTuple_GetItem(core->errors, (Py_ssize_t)status);
}

static PyObject *make(const struct core *core, enum redbucket_status status, PyObject *message)
{
    PyObject *failure = NULL;

    if (message != NULL)
        failure = PyObject_CallFunctionObjArgs(class_of(core, status), message, NULL);
    Py_XDECREF(message);
    return failure;
}

static PyObject *raise(PyObject *failure)
{
    if (failure != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(failure), failure);
        Py_DECREF(failure);
    }
    return NULL;
}

PyObject *rbk_raise(struct core *core, const struct redbucket_error *error)
{
    return raise(make(core, error->status, rbk_text(error->message)));
}

/* What was asked and, where the store knows more of this failure, why. */
static PyObject *message_of(struct limiter *limiter, enum redbucket_status status,
                            const char *message)
{
    struct redbucket_error why;

    redbucket_store_failure(limiter->store, &why);
    if (why.status != status || strcmp(why.message, message) == 0)
        return rbk_text(message);
    PyObject *what = rbk_text(message);
    PyObject *reason = rbk_text(why.message);
    PyObject *both = NULL;

    if (what != NULL && reason != NULL)
        both = PyUnicode_FromFormat("%U: %U", what, reason);
    Py_XDECREF(what);
    Py_XDECREF(reason);
    return both;
}

PyObject *rbk_request_failure(struct limiter *limiter, const struct redbucket_request *request,
                              PyObject *names)
{
    struct redbucket_error error;

    if (request->status == REDBUCKET_ERROR_UNKNOWN_LIMIT && request->failed != REDBUCKET_NONE)
        return PyObject_CallFunctionObjArgs(
            PyExc_KeyError, PyTuple_GetItem(names, (Py_ssize_t)request->failed), NULL);
    redbucket_request_error(request, &error);
    return make(limiter->core, request->status,
                message_of(limiter, request->status, error.message));
}

PyObject *rbk_raise_request(struct limiter *limiter, const struct redbucket_request *request,
                            PyObject *names)
{
    return raise(rbk_request_failure(limiter, request, names));
}

PyObject *rbk_raise_store(struct limiter *limiter, enum redbucket_status status)
{
    return raise(
        make(limiter->core, status, message_of(limiter, status, redbucket_status_text(status))));
}
