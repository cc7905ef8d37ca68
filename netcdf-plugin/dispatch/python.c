/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The Python interpreter of this process, if there is one: watch.py runs in it and tells which
 * files are closed because of an exception. Its C API is looked up in the process, not linked.
 */

#include "internal.h"

#include "dispatch_py.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct object object; /* PyObject */

#define FUNCTIONS(X)                                                                               \
    X(int, Py_IsInitialized, (void) )                                                              \
    X(void *, PyGILState_GetThisThreadState, (void) )                                              \
    X(int, PyGILState_Ensure, (void) )                                                             \
    X(void, PyGILState_Release, (int) )                                                            \
    X(void, PyErr_Fetch, (object **, object **, object **) )                                       \
    X(void, PyErr_NormalizeException, (object **, object **, object **) )                          \
    X(void, PyErr_Restore, (object *, object *, object *) )                                        \
    X(void, PyErr_Clear, (void) )                                                                  \
    X(object *, PyDict_New, (void) )                                                               \
    X(int, PyDict_SetItemString, (object *, const char *, object *) )                              \
    X(object *, PyDict_GetItemString, (object *, const char *) )                                   \
    X(object *, PyEval_GetBuiltins, (void) )                                                       \
    X(object *, PyImport_GetModuleDict, (void) )                                                   \
    X(object *, Py_CompileString, (const char *, const char *, int) )                              \
    X(object *, PyEval_EvalCode, (object *, object *, object *) )                                  \
    X(object *, PyCFunction_NewEx, (void *, object *, object *) )                                  \
    X(object *, PyObject_CallFunction, (object *, const char *, ...))                              \
    X(int, PyArg_ParseTuple, (object *, const char *, ...))                                        \
    X(void *, PyEval_SaveThread, (void) )                                                          \
    X(void, PyEval_RestoreThread, (void *) )                                                       \
    X(object *, PyLong_FromLong, (long) )                                                          \
    X(long, PyLong_AsLong, (object *) )                                                            \
    X(void, Py_DecRef, (object *) )

static struct {
#define X(result, name, parameters) result(*name) parameters;
    FUNCTIONS(X)
#undef X
    int (*finalizing)(void); /* may be NULL */
} py;

/* As in Python's headers. */
typedef struct method {
    const char *name;
    object *(*function)(object *self, object *arguments);
    int flags;
    const char *doc;
} method;

#define METH_VARARGS  1
#define PY_FILE_INPUT 257

#define START_MS 10000

/* Guarded by Python's global lock. */
static object *watch; /* its globals; never freed. NULL: watch.py does not run here */
static bool tried;
static bool starting;     /* by the thread `starter`: Python runs others meanwhile */
static pthread_t starter; /* set before `starting` */
static bool committing;   /* $ESDM_NC_FAILURE: failures are none of our business */

static bool bound; /* all functions were found */

static void
bind_functions(void)
{
    bool found = true; /* a name that is nowhere was looked for in all libraries */
#define X(result, name, parameters)                                                                \
    *(void **) &py.name = found ? dlsym(RTLD_DEFAULT, #name) : NULL;                               \
    found = py.name != NULL;
    FUNCTIONS(X)
#undef X
    if (!found)
        return;
    *(void **) &py.finalizing = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (py.finalizing == NULL)
        *(void **) &py.finalizing = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    bound = found;
}

/* Whether this thread can ask Python: others cannot have an exception. */
static bool
has_python(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, bind_functions);
    return bound && py.Py_IsInitialized() != 0 && (py.finalizing == NULL || py.finalizing() == 0) &&
           py.PyGILState_GetThisThreadState() != NULL;
}

static object *
settle(object *self, object *arguments)
{
    int key;
    int complete;
    const char *reason;
    (void) self;
    if (py.PyArg_ParseTuple(arguments, "iis", &key, &complete, &reason) == 0)
        return NULL;
    esdmnc_postponed_settle(key, complete != 0, reason);
    return py.PyLong_FromLong(0);
}

static object *
abandon(object *self, object *arguments)
{
    int opening;
    const char *reason;
    (void) self;
    if (py.PyArg_ParseTuple(arguments, "is", &opening, &reason) == 0)
        return NULL;
    esdmnc_files_abandon(opening, reason, true);
    return py.PyLong_FromLong(0);
}

static object *
doubt(object *self, object *arguments)
{
    int opening;
    const char *reason;
    (void) self;
    if (py.PyArg_ParseTuple(arguments, "is", &opening, &reason) == 0)
        return NULL;
    esdmnc_files_abandon(opening, reason, false);
    return py.PyLong_FromLong(0);
}

static object *
ending(object *self, object *arguments)
{
    const char *reason;
    int by_signal;
    (void) self;
    if (py.PyArg_ParseTuple(arguments, "si", &reason, &by_signal) == 0)
        return NULL;
    esdmnc_files_ending(reason, by_signal != 0);
    return py.PyLong_FromLong(0);
}

static bool
define(object *globals, method *function)
{
    object *made = py.PyCFunction_NewEx(function, NULL, NULL);
    bool done = made != NULL && py.PyDict_SetItemString(globals, function->name, made) == 0;
    if (made != NULL)
        py.Py_DecRef(made);
    return done;
}

static object *
start(void)
{
    static method methods[] = {{"settle", settle, METH_VARARGS, NULL},
                               {"abandon", abandon, METH_VARARGS, NULL},
                               {"doubt", doubt, METH_VARARGS, NULL},
                               {"ending", ending, METH_VARARGS, NULL}};
    object *globals = py.PyDict_New();
    object *code = py.Py_CompileString(esdmnc_watch_py, "<esdm>", PY_FILE_INPUT);
    object *result = NULL;
    if (globals != NULL && code != NULL && define(globals, &methods[0]) &&
        define(globals, &methods[1]) && define(globals, &methods[2]) &&
        define(globals, &methods[3]) &&
        py.PyDict_SetItemString(globals, "__builtins__", py.PyEval_GetBuiltins()) == 0)
        result = py.PyEval_EvalCode(code, globals, globals);
    if (code != NULL)
        py.Py_DecRef(code);
    if (result == NULL) {
        py.PyErr_Clear();
        if (globals != NULL)
            py.Py_DecRef(globals);
        esdmnc_debug("exceptions of Python are not watched: watch.py does not run");
        return NULL;
    }
    py.Py_DecRef(result);
    return globals;
}

/* Threads that open their first files at the same moment: one of them starts watch.py, and the
 * others must not go unwatched. Not for ever: it may need what this one has locked. */
static void
await_start(void)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < START_MS && starting && !pthread_equal(starter, pthread_self()); i++) {
        void *thread = py.PyEval_SaveThread();
        (void) nanosleep(&pause, NULL);
        py.PyEval_RestoreThread(thread);
    }
}

/* A function of watch.py; borrowed. */
static object *
function(const char *name)
{
    if (!tried) {
        const char *wanted = secure_getenv("ESDM_NC_FAILURE");
        tried = true;
        committing = wanted != NULL && strcmp(wanted, "commit") == 0;
        starter = pthread_self();
        starting = true;
        watch = start();
        starting = false;
    }
    await_start();
    return watch == NULL ? NULL : py.PyDict_GetItemString(watch, name);
}

/* Its result as a number; `failed` when there is none. Takes over `result`. */
static int
number_of(object *result, int failed)
{
    long number = result == NULL ? -1 : py.PyLong_AsLong(result);
    if (result != NULL)
        py.Py_DecRef(result);
    py.PyErr_Clear();
    return number < 0 || number > INT32_MAX ? failed : (int) number;
}

/* What is about to be raised is put aside while watch.py runs. */
typedef struct raised {
    int lock;
    object *type;
    object *value;
    object *trace;
} raised;

static void
enter(raised *ret)
{
    ret->lock = py.PyGILState_Ensure();
    py.PyErr_Fetch(&ret->type, &ret->value, &ret->trace);
    if (ret->type != NULL)
        py.PyErr_NormalizeException(&ret->type, &ret->value, &ret->trace);
}

static void
leave(const raised *r)
{
    py.PyErr_Restore(r->type, r->value, r->trace);
    py.PyGILState_Release(r->lock);
}

int
esdmnc_python_opening(void)
{
    raised r;
    int number = 0;
    if (!has_python())
        return 0;
    enter(&r);
    object *opening = function("opening");
    if (opening != NULL && !committing)
        number = number_of(py.PyObject_CallFunction(opening, NULL), 0);
    leave(&r);
    return number;
}

/* What reading() of watch.py is for. To compile watch.py takes 4 ms, three times as long as stock
 * netCDF takes to open a file: who reads without this does not pay for it. */
static bool
has_reader(void)
{
    object *modules = py.PyImport_GetModuleDict();
    bool has = modules != NULL && py.PyDict_GetItemString(modules, "xarray.backends.api") != NULL;
    py.PyErr_Clear();
    return has;
}

void
esdmnc_python_reading(void)
{
    raised r;
    if (!has_python())
        return;
    enter(&r);
    object *reading = has_reader() ? function("reading") : NULL;
    object *result = reading != NULL ? py.PyObject_CallFunction(reading, NULL) : NULL;
    if (result != NULL)
        py.Py_DecRef(result);
    py.PyErr_Clear();
    leave(&r);
}

int
esdmnc_python_closing(int opening)
{
    raised r;
    int key = 0;
    if (opening == 0 || !has_python())
        return 0;
    enter(&r);
    object *closing = function("closing");
    if (closing != NULL && r.value != NULL)
        key = number_of(py.PyObject_CallFunction(closing, "iO", opening, r.value),
                        ESDMNC_KEY_UNKNOWN);
    else if (closing != NULL)
        key = number_of(py.PyObject_CallFunction(closing, "iz", opening, NULL), ESDMNC_KEY_UNKNOWN);
    leave(&r);
    return key;
}
