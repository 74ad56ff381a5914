/* SPDX-License-Identifier: MIT */
/*
 * Many requests in one call: one round trip for hundreds, where a store is far away.
 *
 * All of them are read before the first is decided, so that a wrong one costs nothing. What their
 * keys point to is kept by two lists of Python until all is answered.
 */
#include "core.h"

/* The requests so far. While they are read, `first` is where the keys of each begin: they move as
 * they become more. */
struct crowd {
    struct redbucket_request *requests;
    size_t *first;
    size_t len, size;
    struct redbucket_key *keys;
    size_t keys_len, keys_size;
    PyObject *held;  /* the keys' texts */
    PyObject *names; /* a tuple for each request */
};

/* How many elements to have room for. */
static size_t roomy(size_t len, size_t more, size_t size)
{
    size_t wanted = size == 0 ? 64 : size;

    while (wanted < len + more)
        wanted *= 2;
    return wanted;
}

static void *grow(void *array, size_t len, size_t element)
{
    void *grown = PyMem_Realloc(array, len * element);

    return grown != NULL ? grown : PyErr_NoMemory();
}

static int reserve_request(struct crowd *crowd)
{
    size_t size = roomy(crowd->len, 1, crowd->size);

    if (size == crowd->size)
        return 0;
    size_t *first = grow(crowd->first, size, sizeof *first);

    if (first == NULL)
        return -1;
    crowd->first = first;
    struct redbucket_request *requests = grow(crowd->requests, size, sizeof *requests);

    if (requests == NULL)
        return -1;
    crowd->requests = requests;
    crowd->size = size;
    return 0;
}

static int reserve_keys(struct crowd *crowd)
{
    size_t size = roomy(crowd->keys_len, REDBUCKET_KEYS_MAX, crowd->keys_size);

    if (size == crowd->keys_size)
        return 0;
    struct redbucket_key *keys = grow(crowd->keys, size, sizeof *keys);

    if (keys == NULL)
        return -1;
    crowd->keys = keys;
    crowd->keys_size = size;
    return 0;
}

/* Has `held` keep what the keys have. */
static int hold(PyObject *held, struct keys *keys)
{
    int status = 0;

    for (size_t i = 0; i < keys->len && status == 0; i++)
        status = PyList_Append(held, keys->held[i]);
    rbk_keys_release(keys);
    return status;
}

static int add_keys(struct crowd *crowd, PyObject *mapping)
{
    PyObject *held[REDBUCKET_KEYS_MAX];

    if (reserve_keys(crowd) < 0)
        return -1;
    struct keys keys = {&crowd->keys[crowd->keys_len], held, 0};
    PyObject *names = rbk_keys_add_mapping(&keys, mapping);

    if (names == NULL) {
        rbk_keys_release(&keys);
        return -1;
    }
    crowd->keys_len += keys.len;
    int status = hold(crowd->held, &keys);

    if (status == 0)
        status = PyList_Append(crowd->names, names);
    Py_DECREF(names);
    return status;
}

/* Adds a mapping, or a pair of one and its cost. */
static int add_request(struct crowd *crowd, PyObject *item, double cost)
{
    PyObject *mapping = item;
    size_t first = crowd->keys_len;

    if (PyTuple_Check(item) &&
        !PyArg_ParseTuple(item, "Od;expected a mapping, or one and its cost", &mapping, &cost))
        return -1;
    if (reserve_request(crowd) < 0 || add_keys(crowd, mapping) < 0)
        return -1;
    crowd->first[crowd->len] = first;
    crowd->requests[crowd->len++] = (struct redbucket_request){
        .operation = REDBUCKET_REQUEST, .keys_len = crowd->keys_len - first, .cost = cost};
    return 0;
}

static int add_requests(struct crowd *crowd, PyObject *iterable, double cost)
{
    PyObject *iterator = PyObject_GetIter(iterable);
    PyObject *item;
    int status = 0;

    if (iterator == NULL)
        return -1;
    while (status == 0 && (item = PyIter_Next(iterator)) != NULL) {
        status = add_request(crowd, item, cost);
        Py_DECREF(item);
    }
    Py_DECREF(iterator);
    return status < 0 || PyErr_Occurred() ? -1 : 0;
}

static int settle(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->len; i++) {
        struct redbucket_request *request = &crowd->requests[i];

        request->keys = crowd->keys + crowd->first[i];
        if (request->keys_len < 2)
            continue;
        request->verdicts = PyMem_Malloc(request->keys_len * sizeof request->verdicts[0]);
        if (request->verdicts == NULL) {
            (void)PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

/* The answer to one, or the exception that it means. */
static PyObject *answer(struct limiter *limiter, struct crowd *crowd, size_t index)
{
    struct redbucket_request *request = &crowd->requests[index];
    PyObject *names = PyList_GetItem(crowd->names, (Py_ssize_t)index);

    if (request->status != REDBUCKET_OK)
        return rbk_request_failure(limiter, request, names);
    struct redbucket_verdict *verdicts = request->verdicts;

    request->verdicts = NULL;
    return rbk_response_new(limiter->core, names, &request->response, verdicts);
}

static PyObject *answers(struct limiter *limiter, struct crowd *crowd)
{
    PyObject *list = PyList_New((Py_ssize_t)crowd->len);

    for (size_t i = 0; list != NULL && i < crowd->len; i++) {
        PyObject *one = answer(limiter, crowd, i);

        if (one == NULL || PyList_SetItem(list, (Py_ssize_t)i, one) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static void crowd_fini(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->len; i++)
        PyMem_Free(crowd->requests[i].verdicts);
    PyMem_Free(crowd->requests);
    PyMem_Free(crowd->first);
    PyMem_Free(crowd->keys);
    Py_XDECREF(crowd->held);
    Py_XDECREF(crowd->names);
}

PyObject *rbk_ask_many(PyObject *self, PyObject *args)
{
    struct limiter *limiter = (struct limiter *)self;
    struct crowd crowd = {0};
    PyObject *iterable, *list = NULL;
    double cost;

    if (!PyArg_ParseTuple(args, "Od:request_many", &iterable, &cost) ||
        rbk_limiter_enter(limiter) < 0)
        return NULL;
    crowd.held = PyList_New(0);
    crowd.names = PyList_New(0);
    if (crowd.held != NULL && crowd.names != NULL && add_requests(&crowd, iterable, cost) == 0 &&
        settle(&crowd) == 0 && rbk_limiter_decide(limiter, crowd.requests, crowd.len) == 0)
        list = answers(limiter, &crowd);
    crowd_fini(&crowd);
    rbk_limiter_leave(limiter);
    return list;
}
