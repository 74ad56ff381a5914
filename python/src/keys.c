/* SPDX-License-Identifier: MIT */
/*
 * From names and objects to the library's keys.
 *
 * A key means what its str() says, in every store alike, so that a number and its digits are one
 * bucket whoever asks, and keys in Redis are called what the original package called them. None is
 * refused: a key that is missing by mistake would put all who lack it into one bucket.
 */
#include "core.h"

/* The text of an object as a key. */
static PyObject *text_of(PyObject *value)
{
    if (PyUnicode_CheckExact(value)) {
        Py_INCREF(value);
        return value;
    }
    /* What str() of bytes says, without the warning that "python -b" gives of it. */
    if (PyBytes_CheckExact(value))
        return PyObject_Repr(value);
    return PyObject_Str(value);
}

int rbk_keys_add(struct keys *keys, PyObject *name, PyObject *value)
{
    struct redbucket_key *key = &keys->keys[keys->len];
    Py_ssize_t name_len, value_len;

    if (value == Py_None) {
        PyErr_Format(PyExc_TypeError, "limit %R: None is no key (leave the limit out to skip it)",
                     name);
        return -1;
    }
    key->limit = PyUnicode_AsUTF8AndSize(name, &name_len);
    if (key->limit == NULL)
        return -1;
    /* No limit has an empty name, and a length of 0 would have the library look for a NUL. */
    if (name_len == 0) {
        PyErr_SetObject(PyExc_KeyError, name);
        return -1;
    }

    PyObject *text = text_of(value);

    if (text == NULL)
        return -1;
    key->key = PyUnicode_AsUTF8AndSize(text, &value_len);
    if (key->key == NULL) {
        Py_DECREF(text);
        return -1;
    }
    key->limit_len = (size_t)name_len;
    key->key_len = (size_t)value_len;
    keys->held[keys->len++] = text;
    return 0;
}

static int add_items(struct keys *keys, PyObject *items, PyObject *names)
{
    Py_ssize_t len = PyList_Size(items);

    for (Py_ssize_t i = 0; i < len; i++) {
        PyObject *item = PyList_GetItem(items, i);
        PyObject *name, *value;

        if (item == NULL ||
            !PyArg_ParseTuple(item, "OO;expected a mapping from limits to keys", &name, &value))
            return -1;
        if (!PyUnicode_Check(name)) {
            PyErr_Format(PyExc_TypeError, "the name of a limit is a str, not %R", name);
            return -1;
        }
        if (rbk_keys_add(keys, name, value) < 0)
            return -1;
        Py_INCREF(name);
        if (PyTuple_SetItem(names, i, name) < 0)
            return -1;
    }
    return 0;
}

/* What keeps the question from being answered is not an answer: nothing is looked up without
 * memory. */
static bool is_mapping(PyObject *object)
{
    PyObject *items = PyObject_GetAttrString(object, "items");

    if (items == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "expected a mapping from limits to keys, not %R", object);
    }
    Py_XDECREF(items);
    return items != NULL;
}

PyObject *rbk_keys_add_mapping(struct keys *keys, PyObject *mapping)
{
    if (!is_mapping(mapping))
        return NULL;
    PyObject *items = PyMapping_Items(mapping);

    if (items == NULL)
        return NULL;
    PyObject *names = NULL;
    Py_ssize_t len = PyList_Size(items);

    if (len > REDBUCKET_KEYS_MAX)
        PyErr_Format(PyExc_ValueError, "a request names at most %d limits, not %zd",
                     REDBUCKET_KEYS_MAX, len);
    else
        names = PyTuple_New(len);
    if (names != NULL && add_items(keys, items, names) < 0) {
        Py_DECREF(names);
        names = NULL;
    }
    Py_DECREF(items);
    return names;
}

void rbk_keys_release(struct keys *keys)
{
    for (size_t i = 0; i < keys->len; i++)
        Py_DECREF(keys->held[i]);
    keys->len = 0;
}
