/* SPDX-License-Identifier: MIT */
/*
 * A limiter's asynchronous form, for one event loop of Python's. Futures go in with questions, and
 * come out with answers in dispatch, which is called by the loop.
 *
 * The library's callbacks only take notes: Python's own is called once the library has returned, so
 * that it may do anything. Who asks, dispatches and closes is the thread of the loop; objects can
 * be freed by any thread, and so may this one when nothing is outstanding any more. Should
 * something be, what the library has stays behind.
 */
#include "core.h"

#include <redbucket/async.h>

#include <pythread.h>

struct errand;

struct errands {
    struct errand *first;
    struct errand *last;
};

struct async {
    PyObject ob_base;
    struct limiter *limiter; /* counted among its users; NULL once closed */
    PyObject *settle;        /* settle(future, failed, answer) */
    struct redbucket_async *async;
    unsigned long thread; /* that asked last */
    struct errands outstanding;
    struct errands answered;
};

/* A request whose answer is to come, or whom it is for is to be told. In one of the two lists. */
struct errand {
    struct async *owner;
    PyObject *future; /* NULL: nobody wants to know */
    PyObject *names;
    PyObject *answer; /* or the exception */
    bool failed;
    struct errand *previous;
    struct errand *next;
};

static struct async *async_of(PyObject *self)
{
    return (struct async *)self;
}

/* ---- Errands ------------------------------------------------------------------------------- */

static void add(struct errands *errands, struct errand *errand)
{
    errand->next = NULL;
    errand->previous = errands->last;
    if (errands->last != NULL)
        errands->last->next = errand;
    else
        errands->first = errand;
    errands->last = errand;
}

static void take_out(struct errands *errands, struct errand *errand)
{
    if (errand->previous != NULL)
        errand->previous->next = errand->next;
    else
        errands->first = errand->next;
    if (errand->next != NULL)
        errand->next->previous = errand->previous;
    else
        errands->last = errand->previous;
}

static void errand_free(struct errand *errand)
{
    Py_XDECREF(errand->future);
    Py_XDECREF(errand->names);
    Py_XDECREF(errand->answer);
    PyMem_Free(errand);
}

static struct errand *errand_new(struct async *owner, PyObject *future, PyObject *names)
{
    struct errand *errand = PyMem_Malloc(sizeof *errand);

    if (errand == NULL) {
        (void)PyErr_NoMemory();
        return NULL;
    }
    *errand = (struct errand){
        .owner = owner, .future = future != Py_None ? future : NULL, .names = names};
    Py_XINCREF(errand->future);
    Py_INCREF(names);
    add(&owner->outstanding, errand);
    return errand;
}

/* ---- Answers ------------------------------------------------------------------------------- */

/* The verdicts of several limits, in memory that an answer may take over. */
static struct redbucket_verdict *verdicts_of(const struct redbucket_request *decided)
{
    struct redbucket_verdict *copy = PyMem_Malloc(decided->keys_len * sizeof copy[0]);

    for (size_t i = 0; copy != NULL && i < decided->keys_len; i++)
        copy[i] = decided->verdicts[i];
    return copy;
}

static PyObject *answer_of(struct limiter *limiter, PyObject *names,
                           const struct redbucket_request *decided)
{
    struct redbucket_verdict *verdicts = NULL;

    if (decided->status != REDBUCKET_OK)
        return rbk_request_failure(limiter, decided, names);
    if (decided->keys_len > 1 && (verdicts = verdicts_of(decided)) == NULL)
        return PyErr_NoMemory();
    return rbk_response_new(limiter->core, names, &decided->response, verdicts);
}

/* The exception that kept an answer from being made. */
static PyObject *caught(void)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* Called by the library, within dispatch or while it is destroyed. */
static void on_answer(void *data, const struct redbucket_request *decided)
{
    struct errand *errand = data;
    struct async *async = errand->owner;

    take_out(&async->outstanding, errand);
    if (decided->status == REDBUCKET_CANCELLED || async->limiter == NULL ||
        errand->future == NULL) {
        errand_free(errand);
        return;
    }
    errand->failed = decided->status != REDBUCKET_OK;
    errand->answer = answer_of(async->limiter, errand->names, decided);
    if (errand->answer == NULL) {
        errand->failed = true;
        errand->answer = caught();
    }
    add(&async->answered, errand);
}

static int settle_once(struct async *async, struct errand *errand)
{
    PyObject *failed = errand->failed ? Py_True : Py_False;
    PyObject *done =
        PyObject_CallFunctionObjArgs(async->settle, errand->future, failed, errand->answer, NULL);

    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* A signal's exception may come out of anything. It is raised again once everybody is told. */
static void settle_one(struct async *async, struct errand *errand)
{
    PyObject *type, *value, *traceback;

    PyErr_Fetch(&type, &value, &traceback);
    if (settle_once(async, errand) < 0 && type == NULL) {
        PyErr_Fetch(&type, &value, &traceback);
        (void)settle_once(async, errand);
    }
    if (PyErr_Occurred())
        PyErr_WriteUnraisable(async->settle);
    errand_free(errand);
    PyErr_Restore(type, value, traceback);
}

PyDoc_STRVAR(dispatch_doc, "dispatch($self, /)\n--\n\n"
                           "Does what can be done now, and settles the futures that have answers.");

static PyObject *async_dispatch(PyObject *self, PyObject *unused)
{
    struct async *async = async_of(self);
    struct errand *errand;

    (void)unused;
    if (async->async != NULL)
        redbucket_async_dispatch(async->async);
    while (async->settle != NULL && (errand = async->answered.first) != NULL) {
        take_out(&async->answered, errand);
        settle_one(async, errand);
    }
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* ---- Questions ----------------------------------------------------------------------------- */

static int check_open(const struct async *async)
{
    if (async->limiter != NULL && !async->limiter->closing)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "the rate limiter was closed");
    return -1;
}

/* Why a request was refused at once: the blocking form finds the same, and says which key it was.
 */
static PyObject *raise_refused(struct limiter *limiter, enum redbucket_status status,
                               struct redbucket_request *request, PyObject *names)
{
    request->operation = REDBUCKET_PEEK;
    request->verdicts = NULL;
    request->failed = REDBUCKET_NONE;
    if (status == REDBUCKET_ERROR_UNKNOWN_LIMIT || status == REDBUCKET_ERROR_DUPLICATE ||
        status == REDBUCKET_ERROR_ARGUMENT || status == REDBUCKET_ERROR_KEY)
        (void)!redbucket_decide(limiter->limiter, request, 1);
    request->status = status;
    return rbk_raise_request(limiter, request, names);
}

static PyObject *send(struct async *async, struct question *question,
                      struct redbucket_request *request, PyObject *future)
{
    struct redbucket_verdict wanted[1]; /* that there are to be some */
    struct errand *errand = errand_new(async, future, question->names);
    uint64_t id;

    if (errand == NULL)
        return NULL;
    request->keys = question->keys;
    request->keys_len = question->given.len;
    request->cost = question->cost;
    request->verdicts = request->keys_len > 1 ? wanted : NULL;
    async->thread = PyThread_get_thread_ident();
    enum redbucket_status status =
        redbucket_async_request(async->async, request, on_answer, errand, &id);

    if (status == REDBUCKET_OK)
        return PyLong_FromUnsignedLongLong(id);
    take_out(&async->outstanding, errand);
    errand_free(errand);
    return raise_refused(async->limiter, status, request, question->names);
}

/* Asks; the first of `args` is the future, or None; `more` of them are the operation's own. */
static PyObject *ask(PyObject *self, struct redbucket_request *request, PyObject *const *args,
                     Py_ssize_t args_len, PyObject *names)
{
    struct async *async = async_of(self);
    const Py_ssize_t own = request->operation == REDBUCKET_GIVE_BACK ? 2 : 1;
    struct question question;
    PyObject *id = NULL;

    if (args_len < own) {
        PyErr_SetString(PyExc_TypeError, "expected a future, and the response to give back");
        return NULL;
    }
    if (check_open(async) < 0)
        return NULL;
    if (own == 2 && rbk_response_time(async->limiter->core, args[1], &request->taken_at) < 0)
        return NULL;
    if (rbk_question_take(async->limiter, &question, args + own, args_len - own, names) == 0 &&
        check_open(async) == 0)
        id = send(async, &question, request, args[0]);
    rbk_question_release(&question);
    return id;
}

#define ASKS(name, what)                                                                      \
    static PyObject *async_##name(PyObject *self, PyObject *const *args, Py_ssize_t args_len, \
                                  PyObject *names)                                            \
    {                                                                                         \
        struct redbucket_request request = {.operation = REDBUCKET_##what};                   \
                                                                                              \
        return ask(self, &request, args, args_len, names);                                    \
    }

ASKS(request, REQUEST)
ASKS(peek, PEEK)
ASKS(refund, REFUND)
ASKS(charge, CHARGE)
ASKS(reset, RESET)
ASKS(give_back, GIVE_BACK)

PyDoc_STRVAR(cancel_doc, "cancel($self, number, /)\n--\n\n"
                         "Gives a request up: its future isn't settled. False when that is late.");

static PyObject *async_cancel(PyObject *self, PyObject *number)
{
    struct async *async = async_of(self);
    unsigned long long id = PyLong_AsUnsignedLongLong(number);

    if (id == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(async->async != NULL && redbucket_async_cancel(async->async, id));
}

/* ---- Life ---------------------------------------------------------------------------------- */

static PyObject *async_new(PyTypeObject *type, PyObject *args, PyObject *options)
{
    struct redbucket_error error;
    PyObject *limiter, *settle;

    (void)options;
    PyObject *module = PyObject_GetAttrString((PyObject *)type, "_core");

    if (module == NULL)
        return NULL;
    struct core *core = rbk_core_of(module);

    Py_DECREF(module); /* the class keeps it */
    if (!PyArg_ParseTuple(args, "O!O:Async", core->limiter_type, &limiter, &settle) ||
        rbk_limiter_enter((struct limiter *)limiter) < 0)
        return NULL;
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = alloc(type, 0);

    if (self == NULL) {
        rbk_limiter_leave((struct limiter *)limiter);
        return NULL;
    }
    Py_INCREF(limiter);
    Py_INCREF(settle);
    async_of(self)->limiter = (struct limiter *)limiter;
    async_of(self)->settle = settle;
    if (redbucket_async_create(((struct limiter *)limiter)->limiter, &async_of(self)->async,
                               &error) != REDBUCKET_OK) {
        (void)rbk_raise(core, &error);
        Py_DECREF(self);
        return NULL;
    }
    return self;
}

static void drop_all(struct errands *errands)
{
    struct errand *errand;

    while ((errand = errands->first) != NULL) {
        take_out(errands, errand);
        errand_free(errand);
    }
}

/* Nobody's future is settled any more. */
static void close_now(struct async *async)
{
    struct limiter *limiter = async->limiter;
    struct redbucket_async *library = async->async;

    async->limiter = NULL;
    async->async = NULL;
    if (limiter == NULL)
        return;
    redbucket_async_destroy(library);
    drop_all(&async->outstanding); /* whose callbacks a child of a fork never gets */
    drop_all(&async->answered);
    rbk_limiter_leave(limiter);
    Py_DECREF((PyObject *)limiter);
}

/* Whether this is no thread to end what is under way. */
static bool is_foreign(const struct async *async)
{
    return async->async != NULL && redbucket_async_outstanding(async->async) > 0 &&
           async->thread != PyThread_get_thread_ident();
}

PyDoc_STRVAR(close_doc,
             "close($self, /)\n--\n\nGives up what is outstanding, and frees everything.");

static PyObject *async_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (is_foreign(async_of(self))) {
        PyErr_SetString(PyExc_RuntimeError, "requests of another thread are outstanding");
        return NULL;
    }
    close_now(async_of(self));
    Py_RETURN_NONE;
}

static int visit_errands(const struct errands *errands, visitproc visit, void *arg)
{
    for (const struct errand *errand = errands->first; errand != NULL; errand = errand->next) {
        Py_VISIT(errand->future);
        Py_VISIT(errand->answer);
    }
    return 0;
}

static int async_traverse(PyObject *self, visitproc visit, void *arg)
{
    const struct async *async = async_of(self);
    int visited = visit_errands(&async->outstanding, visit, arg);

    if (visited == 0)
        visited = visit_errands(&async->answered, visit, arg);
    if (visited != 0)
        return visited;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)async->limiter);
    Py_VISIT(async->settle);
    return 0;
}

/* Nobody holds it any more, but things that it holds may hold each other. */
static int async_clear(PyObject *self)
{
    if (is_foreign(async_of(self)))
        return 0;
    close_now(async_of(self));
    Py_CLEAR(async_of(self)->settle);
    return 0;
}

static void async_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);

    PyObject_GC_UnTrack(self);
    if (is_foreign(async_of(self)))
        return; /* with all that the library's callbacks could still touch */
    (void)async_clear(self);
    release(self);
    Py_DECREF(type);
}

/* ---- The type ------------------------------------------------------------------------------ */

static PyObject *async_fileno(PyObject *self, PyObject *unused)
{
    const struct async *async = async_of(self);

    (void)unused;
    return PyLong_FromLong(async->async == NULL ? -1 : redbucket_async_descriptor(async->async));
}

static PyObject *get_outstanding(PyObject *self, void *unused)
{
    const struct async *async = async_of(self);

    (void)unused;
    return PyLong_FromSize_t(async->async == NULL ? 0 : redbucket_async_outstanding(async->async));
}

#define ASK(name, parameters, does)                                            \
    RBK_FAST(#name, async_##name,                                              \
             #name "($self, " parameters "keys=None, /, **named)\n--\n\n" does \
                   ": the number of the request. The future gets the answer.")

static PyMethodDef methods[] = {
    ASK(request, "future, ", "Asks"),
    ASK(peek, "future, ", "Looks"),
    ASK(refund, "future, ", "Gives"),
    ASK(charge, "future, ", "Takes"),
    ASK(reset, "future, ", "Forgets"),
    ASK(give_back, "future, response, ", "Gives back"),
    {"cancel", async_cancel, METH_O, cancel_doc},
    {"dispatch", async_dispatch, METH_NOARGS, dispatch_doc},
    {"fileno", async_fileno, METH_NOARGS,
     "fileno($self, /)\n--\n\nThe descriptor that is readable when dispatch has something to do."},
    {"close", async_close, METH_NOARGS, close_doc},
    {0},
};

static PyGetSetDef attributes[] = {
    {"outstanding", get_outstanding, NULL, "How many requests have no answer yet.", NULL},
    {0},
};

PyDoc_STRVAR(type_doc, "Async(limiter, settle, /)\n--\n\n"
                       "A limiter for one loop. Answers go to settle(future, failed, answer).");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)type_doc},
    {Py_tp_new, (void *)async_new},
    {Py_tp_dealloc, (void *)async_dealloc},
    {Py_tp_traverse, (void *)async_traverse},
    {Py_tp_clear, (void *)async_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

PyType_Spec rbk_async_spec = {
    .name = "redbucket._core.Async",
    .basicsize = sizeof(struct async),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};
