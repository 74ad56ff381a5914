/* SPDX-License-Identifier: MIT */
/*
 * Python's header, with the two things that its 3.9 has and doesn't yet count to its limited
 * interface. Both joined it unchanged in 3.10, and nothing will change in 3.9 any more, so one
 * build serves every version from there on.
 */
#ifndef RBK_PYTHON_COMPAT_H
#define RBK_PYTHON_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030a0000
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *unicode, Py_ssize_t *size);
#endif

typedef PyObject *rbk_fast_method(PyObject *self, PyObject *const *args, Py_ssize_t args_len,
                                  PyObject *names);

/* Of a table of methods: called with an array, without making a tuple or a dictionary. */
#define RBK_FAST(name, function, doc)                                                     \
    {                                                                                     \
        name, (PyCFunction)(void (*)(void))(function), METH_FASTCALL | METH_KEYWORDS, doc \
    }

#endif
