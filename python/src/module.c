/* SPDX-License-Identifier: MIT */
/*
 * The module redbucket._core: its state, its types, and what interpreters may load it.
 *
 * Each interpreter has a state of its own and nothing here is shared between them, so interpreters
 * with locks of their own may load it beside each other (the library below is for any number of
 * threads). A Python without a global lock isn't told that it may do without: counts of uses are
 * guarded by that lock. It then switches the lock on.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define SLOT_INTERPRETERS      3 /* Py_mod_multiple_interpreters, from 3.12 on */
#define INTERPRETERS_OWN_LOCKS ((void *)2)

struct core *rbk_core_of(PyObject *module)
{
    return PyModule_GetState(module);
}

PyDoc_STRVAR(lend_doc, "_lend($module, response_type, state_type, errors, /)\n--\n\n"
                       "Tells the classes of answers, of states, and of errors by status.");

static void put(PyObject **place, PyObject *object)
{
    PyObject *old = *place;

    Py_INCREF(object);
    *place = object;
    Py_XDECREF(old);
}

static PyObject *core_lend(PyObject *module, PyObject *args)
{
    struct core *core = rbk_core_of(module);
    PyObject *response, *state, *errors;

    if (!PyArg_ParseTuple(args, "O!OO!:_lend", &PyType_Type, &response, &state, &PyTuple_Type,
                          &errors))
        return NULL;
    if (PyObject_IsSubclass(response, core->response_base) != 1) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "expected a class made of ResponseBase");
        return NULL;
    }
    put(&core->response_type, response);
    put(&core->state_type, state);
    put(&core->errors, errors);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(statuses_doc,
             "_statuses($module, /)\n--\n\nThe names of the library's statuses, in order.");

static PyObject *core_statuses(PyObject *module, PyObject *unused)
{
    static const char *const names[] = {
#define NAME(name, text) #name,
        REDBUCKET_STATUS_MAP(NAME)
#undef NAME
    };
    const Py_ssize_t len = (Py_ssize_t)(sizeof names / sizeof names[0]);
    PyObject *tuple = PyTuple_New(len);

    (void)module;
    (void)unused;
    for (Py_ssize_t i = 0; tuple != NULL && i < len; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);

        if (name == NULL || PyTuple_SetItem(tuple, i, name) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyDoc_STRVAR(http_fields_doc,
             "_http_fields($module, /)\n--\n\nThe flags of header fields, by their names.");

static PyMethodDef functions[] = {
    {"_lend", core_lend, METH_VARARGS, lend_doc},
    {"_http_fields", rbk_http_fields, METH_NOARGS, http_fields_doc},
    {"_statuses", core_statuses, METH_NOARGS, statuses_doc},
    {0},
};

/* Adds a type that can find the module's state. */
static int add_type(PyObject *module, const char *name, PyObject *type)
{
    if (type == NULL || PyObject_SetAttrString(type, "_core", module) < 0)
        return -1;
    return PyObject_SetAttrString(module, name, type);
}

static int core_exec(PyObject *module)
{
    struct core *core = rbk_core_of(module);

    core->zero = PyFloat_FromDouble(0.0);
    core->limiter_type = PyType_FromSpec(&rbk_limiter_spec);
    core->async_type = PyType_FromSpec(&rbk_async_spec);
    core->response_base = rbk_response_make_type();
    if (core->zero == NULL || add_type(module, "Limiter", core->limiter_type) < 0 ||
        add_type(module, "Async", core->async_type) < 0 ||
        add_type(module, "ResponseBase", core->response_base) < 0 ||
        PyModule_AddStringConstant(module, "version", redbucket_version()) < 0)
        return -1;
    put(&core->response_type, core->response_base);
    return 0;
}

static int core_traverse(PyObject *module, visitproc visit, void *arg)
{
    const struct core *core = rbk_core_of(module);

    Py_VISIT(core->limiter_type);
    Py_VISIT(core->async_type);
    Py_VISIT(core->response_base);
    Py_VISIT(core->response_type);
    Py_VISIT(core->state_type);
    Py_VISIT(core->errors);
    return 0;
}

static int core_clear(PyObject *module)
{
    struct core *core = rbk_core_of(module);

    Py_CLEAR(core->limiter_type);
    Py_CLEAR(core->async_type);
    Py_CLEAR(core->response_base);
    Py_CLEAR(core->response_type);
    Py_CLEAR(core->state_type);
    Py_CLEAR(core->errors);
    Py_CLEAR(core->zero);
    return 0;
}

static void core_free(void *module)
{
    (void)core_clear(module);
}

static PyModuleDef_Slot slots_of_old[] = {
    {Py_mod_exec, (void *)core_exec},
    {0, NULL},
};

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)core_exec},
    {SLOT_INTERPRETERS, INTERPRETERS_OWN_LOCKS},
    {0, NULL},
};

PyDoc_STRVAR(module_doc, "Decisions in C. Use the names of redbucket instead.");

#define DEFINITION(its_slots)                                                              \
    {                                                                                      \
        .m_base = PyModuleDef_HEAD_INIT, .m_name = "redbucket._core", .m_doc = module_doc, \
        .m_size = sizeof(struct core), .m_methods = functions, .m_slots = (its_slots),     \
        .m_traverse = core_traverse, .m_clear = core_clear, .m_free = core_free,           \
    }

static struct PyModuleDef definition_of_old = DEFINITION(slots_of_old);
static struct PyModuleDef definition = DEFINITION(slots);

/* Before 3.12 Python refuses a module with slots that it doesn't know. */
static bool is_old(void)
{
    const char *version = Py_GetVersion(); /* "3.11.7 (main..." */
    const char *minor = strchr(version, '.');

    return strtol(version, NULL, 10) == 3 && minor != NULL && strtol(minor + 1, NULL, 10) < 12;
}

/* Python finds it by its name. */
PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(is_old() ? &definition_of_old : &definition);
}
