/* SPDX-License-Identifier: MIT */
/*
 * What an answer comes to in HTTP: the status, header fields and the body of a problem, as the
 * library writes them. Nothing of them is put together in Python.
 */
#include "core.h"

#include <redbucket/http.h>

#include <string.h>

#define FLAGS 32

/* A request with the names of its limits and without keys, which no text shows. */
struct told {
    struct redbucket_request request;
    struct redbucket_key keys[REDBUCKET_KEYS_MAX];
    struct redbucket_verdict alone;
    PyObject *names; /* borrowed */
};

static int take_names(struct told *told)
{
    Py_ssize_t len = PyTuple_Size(told->names);

    if (len < 0 || len > REDBUCKET_KEYS_MAX) {
        PyErr_SetString(PyExc_ValueError, "too many limits");
        return -1;
    }
    for (Py_ssize_t i = 0; i < len; i++) {
        Py_ssize_t name_len;
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(told->names, i), &name_len);

        if (name == NULL)
            return -1;
        told->keys[i] = (struct redbucket_key){name, "", 0, (size_t)name_len};
    }
    told->request.keys = told->keys;
    told->request.keys_len = (size_t)len;
    return 0;
}

/* Of a response, or of the status that a request of `names` failed with. */
static int take(struct told *told, struct core *core, PyObject *answer, PyObject *names)
{
    told->request = (struct redbucket_request){.failed = REDBUCKET_NONE};
    if (PyLong_Check(answer)) {
        long status = PyLong_AsLong(answer);

        if (status <= 0 || names == Py_None) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "expected the status of a failure, and names");
            return -1;
        }
        told->request.status = (enum redbucket_status)status;
        told->names = names;
    } else if (rbk_response_recall(core, answer, &told->request, &told->alone, &told->names) < 0) {
        return -1;
    }
    return take_names(told);
}

static int raise_status(enum redbucket_status status)
{
    PyErr_SetString(PyExc_ValueError, redbucket_status_text(status));
    return -1;
}

/* Adds one field to a list, unless it has no value. */
static int add_field(struct limiter *limiter, const struct told *told,
                     enum redbucket_http_field field, struct redbucket_text *text, PyObject *list)
{
    text->len = 0;
    enum redbucket_status status =
        redbucket_http_value(limiter->limiter, &told->request, field, text);

    if (status != REDBUCKET_OK)
        return raise_status(status);
    if (text->len == 0)
        return 0;
    PyObject *pair =
        Py_BuildValue("(ss#)", redbucket_http_name(field), text->bytes, (Py_ssize_t)text->len);
    int added = pair == NULL ? -1 : PyList_Append(list, pair);

    Py_XDECREF(pair);
    return added;
}

static PyObject *fields_of(struct limiter *limiter, const struct told *told, unsigned fields,
                           struct redbucket_text *text)
{
    PyObject *list = PyList_New(0);

    for (unsigned bit = 0; list != NULL && bit < FLAGS; bit++) {
        if ((fields & 1u << bit) != 0 && add_field(limiter, told, 1u << bit, text, list) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* None for a request that was accepted. */
static PyObject *body_of(struct limiter *limiter, const struct told *told,
                         struct redbucket_text *text)
{
    text->len = 0;
    if (redbucket_http_status(&told->request) == 200)
        return Py_BuildValue("");
    enum redbucket_status status = redbucket_http_problem(limiter->limiter, &told->request, text);

    if (status != REDBUCKET_OK) {
        (void)raise_status(status);
        return NULL;
    }
    return PyBytes_FromStringAndSize(text->bytes, (Py_ssize_t)text->len);
}

static PyObject *describe(struct limiter *limiter, const struct told *told, unsigned fields)
{
    struct redbucket_text text = {.size = REDBUCKET_HTTP_SIZE(told->request.keys_len)};
    PyObject *list, *body = NULL, *result = NULL;

    text.bytes = PyMem_Malloc(text.size);
    if (text.bytes == NULL)
        return PyErr_NoMemory();
    list = fields_of(limiter, told, fields, &text);
    if (list != NULL)
        body = body_of(limiter, told, &text);
    if (body != NULL)
        result = Py_BuildValue("(iOO)", redbucket_http_status(&told->request), list, body);
    Py_XDECREF(list);
    Py_XDECREF(body);
    PyMem_Free(text.bytes);
    return result;
}

PyObject *rbk_http(PyObject *self, PyObject *args)
{
    struct limiter *limiter = (struct limiter *)self;
    PyObject *answer, *names = Py_None, *result = NULL;
    struct told told;
    unsigned fields;

    if (!PyArg_ParseTuple(args, "OI|O!:_http", &answer, &fields, &PyTuple_Type, &names) ||
        rbk_limiter_enter(limiter) < 0)
        return NULL;
    if (take(&told, limiter->core, answer, names) == 0)
        result = describe(limiter, &told, fields);
    rbk_limiter_leave(limiter);
    return result;
}

PyObject *rbk_http_fields(PyObject *module, PyObject *unused)
{
    PyObject *fields = PyDict_New();

    (void)module;
    (void)unused;
    for (unsigned bit = 0; fields != NULL && bit < FLAGS; bit++) {
        if (((unsigned)REDBUCKET_HTTP_ALL & 1u << bit) == 0)
            continue;
        PyObject *flag = PyLong_FromUnsignedLong(1ul << bit);
        int failed =
            flag == NULL || PyDict_SetItemString(fields, redbucket_http_name(1u << bit), flag) < 0;

        Py_XDECREF(flag);
        if (failed)
            Py_CLEAR(fields);
    }
    return fields;
}
