# SPDX-License-Identifier: LGPL-3.0-or-later
"""Runs inside a Python program that writes containers: tells whether what the program closes is
complete. Python closes files while an exception unwinds the stack, and a file that is closed so is
half written. Whether the program handles the exception shows later: handled ones are freed.

The C side (python.c) defines settle(key, complete, reason), abandon(number, reason), which drops what an open
file wrote, doubt(number, reason), which tells that it is half written, and ending(reason, by_signal). A *key* is the number of an exception; files that were closed while it was under way are kept
under it.
"""

import _thread
import atexit
import itertools
import os
import sys

SEEN, GUARD, HALF = "_esdm_seen", "_esdm_guard", "_esdm_half"

# They catch every exception and hand it to another process or to nobody.
CARRIERS = ("multiprocessing.process", "multiprocessing.pool", "concurrent.futures.process",
            "dask.local", "joblib.externals.loky.process_executor", "loky.process_executor",
            "joblib.parallel", "joblib.pool", "joblib._parallel_backends", "joblib._utils")

# Of xarray: what they close while they fail is half written, whoever handles the exception.
WRITERS = ("to_netcdf", "save_mfdataset")

ALL = -1  # as a key

of_sys = sys.__dict__  # what is not there costs 40 times as much to ask of the module: an error is made, and dropped

opened = 0  # files so far
openings = itertools.count(1)  # threads count at once
keys = itertools.count(1)
changing = _thread.RLock()  # of what belongs to Python and is watched from here
watched = set()
halves = {}  # by key, why the files are half written
cancelled = {}  # by key, the loop of asyncio whose task was cancelled, which is to settle it, and the text
unasked = {}  # of what futures hold, and nobody has asked for: by key the text and the open files


class Guard:
    """An attribute of an exception: learns of its end."""

    files = ()  # which its task has opened

    def __init__(self, exc):
        self.key, self.text = next(keys), describe(exc)
        exc.__dict__[GUARD] = self

    def __reduce__(self):  # in another process it is nothing
        return bool, ()

    def __del__(self, getframe=sys._getframe, carriers=CARRIERS):
        if self.key in cancelled:
            return
        if self.key in unasked:
            nobody_asked(self.key)
            return
        try:
            caller = getframe(1)
        except ValueError:  # the program is over: its exit status tells
            return
        if caller.f_globals.get("__name__") in carriers:
            settle(self.key, 0, self.text)
        else:
            settle(self.key, 1, self.text)


class Half:
    """An attribute of an exception: the files that are half written even if somebody handles it."""

    def __init__(self, exc):
        self.key = next(keys)
        halves[self.key] = describe(exc)
        exc.__dict__[HALF] = self

    __reduce__ = Guard.__reduce__

    def __del__(self):
        give_up_half(self.key)


def give_up_half(key):
    text = halves.pop(key, None)
    if text is not None:
        settle(key, 0, text)


def describe(exc):
    try:
        text = str(exc).partition("\n")[0].replace("\0", "?").encode("utf-8", "replace").decode()
    except Exception:
        text = ""
    name = type(exc).__name__
    return f"{name}: {text[:160]}" if text else name


def related(exc):
    """The exception, those that it was raised from or while handling, and those in its group."""
    found, rest = [], [exc]
    while rest:
        exc = rest.pop()
        if exc is None or any(exc is other for other in found):
            continue
        found.append(exc)
        rest += [exc.__cause__, exc.__context__]
        if isinstance(getattr(exc, "exceptions", None), (tuple, list)):
            rest += [e for e in exc.exceptions if isinstance(e, BaseException)]
    return found


def guards(exc, name=GUARD, kind=Guard):
    found = (other.__dict__.get(name) for other in related(exc))
    return [guard for guard in found if isinstance(guard, kind)]


def uncaught(exc):
    for half in guards(exc, HALF, Half):
        give_up_half(half.key)
    for guard in guards(exc):
        settle(guard.key, 0, guard.text)


def writer_fails(frame):
    """Whether a function closes what it has not finished writing. Tasks of dask that are still under way would
    open it again, and write into what the program has made of that name since."""
    manager = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module == "xarray.backends.file_manager":
            manager = frame.f_locals.get("self")
        if frame.f_code.co_name in WRITERS and module.startswith("xarray."):
            if hasattr(manager, "_opener"):
                manager._opener = given_up
            return True
        frame = frame.f_back
    return False


def given_up(*arguments, **named):
    raise OSError("the writer of this file has failed: nothing more is written to it")


def ends_well(exc):
    return exc is None or (isinstance(exc, SystemExit) and exc.code in (None, 0))


class Asked:
    """Future._exception: learns of what tasks leave there, and of who reads it (result(), exception())."""

    def __get__(self, future, owner=None):
        if future is None:
            return self
        exc = future.__dict__.get("_exception")
        if exc is not None and sys._getframe(1).f_code.co_name != "__repr__":
            for guard in guards(exc):
                unasked.pop(guard.key, None)
        return exc

    def __set__(self, future, exc):
        future.__dict__["_exception"] = exc
        if exc is not None:
            hold(exc, task_ends(sys._getframe(2)))


def task_ends(caller):
    """The files that the task of a pool's thread has opened."""
    if caller.f_globals.get("__name__") != "concurrent.futures.thread":
        return ()
    return threads.__dict__.pop("opened", ())


def hold(exc, files):
    if ends_well(exc):
        return
    if files and not isinstance(exc.__dict__.get(GUARD), Guard):
        Guard(exc)
    for guard in guards(exc):
        guard.files = guard.files or files
        unasked[guard.key] = guard.text, files


def nobody_asked(key):
    text, files = unasked.pop(key)
    for number in files:
        abandon(number, text)
    settle(key, 0, text)


def watch_futures():
    future = getattr(sys.modules.get("concurrent.futures._base"), "Future", None)
    if future is None or "_exception" in future.__dict__:
        return
    set_result, result = future.set_result, future.result

    def set_result_(self, result):
        task_ends(sys._getframe(1))
        for exc in sent_by_dask(result):
            hold(exc, ())
        set_result(self, result)

    def result_(self, timeout=None):
        found = result(self, timeout)
        for guard in [guard for exc in sent_by_dask(found)[:1] for guard in guards(exc)]:
            unasked.pop(guard.key, None)  # dask raises this one, and forgets the others
        return found

    future.set_result, future.result = set_result_, result_
    future._exception = Asked()


def sent_by_dask(result):
    """What tasks of dask.local raised in a thread is their result: lists of (key, result, whether it failed)."""
    if type(result) is not list or "dask.local" not in sys.modules:
        return []
    sent = [task[1][0] for task in result if type(task) is tuple and len(task) == 3 and task[2] is True
            and type(task[1]) is tuple and task[1]]
    return [exc for exc in sent if isinstance(exc, BaseException)]


class Tasks:
    """Of asyncio. What a task raises stays with it; when nobody has asked for that, its loop is told when the
    task goes. A task is cancelled half way because another one has failed, or because the program wants it:
    whether the loop is closed by an exception tells."""

    def __init__(self, loops, weakref):
        self.opened, self.loops = weakref.WeakSet(), loops
        self.watch_loops(loops)
        handles = sys.modules["asyncio.events"].Handle
        run = handles._run

        def _run(handle):
            self.before(handle._callback, handle._args)
            return run(handle)

        handles._run = _run

    def watch_loops(self, kind):
        told, close = kind.call_exception_handler, kind.close

        def call_exception_handler(loop, context):
            self.failed(context.get("exception"), context.get("task") or context.get("future"))
            told(loop, context)

        def close_(loop):
            settle_cancelled(sys.exc_info()[1], loop)
            close(loop)

        kind.call_exception_handler, kind.close = call_exception_handler, close_

    def watch_other_loops(self, kind):
        """Those with handles of their own, as uvloop's."""
        if kind is None or kind in watched or issubclass(kind, self.loops):
            return
        with changing:
            if once(kind):
                self.watch_other(kind)

    def watch_other(self, kind):
        soon = kind.call_soon

        def call_soon(loop, callback, *arguments, **named):
            if getattr(callback, "__qualname__", None) not in SWALLOW:
                return soon(loop, callback, *arguments, **named)

            def run(*arguments):
                self.before(callback, arguments)
                return callback(*arguments)

            return soon(loop, run, *arguments, **named)

        try:
            kind.call_soon = call_soon
        except TypeError:  # a class of C
            return
        self.watch_loops(kind)

    def before(self, callback, arguments):
        exc, task = swallowed(callback, arguments)
        if exc is not None:
            self.failed(exc, task)

    def current(self, asyncio):
        loop = asyncio._get_running_loop()
        if loop is not None:
            self.watch_other_loops(type(loop))
        return asyncio.current_task(loop) if loop is not None else None

    def note(self, number):
        self.watch_other_loops(getattr(sys.modules.get("uvloop"), "Loop", None))  # of whichever thread
        task = self.current(sys.modules["asyncio"])
        if task is not None:
            self.opened.add(task)
            task._esdm_opened = [*getattr(task, "_esdm_opened", ()), number]

    def failed(self, exc, task=None):
        """Its frames may hold files, which are closed when it goes."""
        if ends_well(exc):
            return
        uncaught(exc)
        for number in (*getattr(task, "_esdm_opened", ()), *(n for guard in guards(exc) for n in guard.files)):
            abandon(number, describe(exc))

    def at_end(self):
        for task in list(self.opened):
            if getattr(task, "_log_traceback", False):  # asked for by nobody
                self.failed(task._exception, task)


# By the callback of asyncio that asks a task for its exception, so that nobody else is told of it: what the
# future that waits for the task must be for that.
SWALLOW = {"gather.<locals>._done_callback": "done", "shield.<locals>._inner_done_callback": "cancelled"}


def swallowed(callback, arguments):
    """The exception that a callback is about to forget, and its task. Of several tasks that fail gather() raises
    the first one's."""
    must_be = SWALLOW.get(getattr(callback, "__qualname__", None))
    if must_be is None or callback.__module__ != "asyncio.tasks" or not arguments:
        return None, None
    outer = dict(zip(callback.__code__.co_freevars, callback.__closure__ or ())).get("outer")
    task = arguments[0]
    if outer is None or not getattr(outer.cell_contents, must_be)() or not task.done() or task.cancelled():
        return None, None
    exc = task._exception
    return (None, None) if exc is getattr(outer.cell_contents, "_exception", None) else (exc, task)


def settle_cancelled(exc, loop=None):
    """As what ran the tasks ends, of one loop or of all."""
    for key, (of, text) in list(cancelled.items()):
        if loop is None or of is None or of is loop:
            del cancelled[key]
            settle(key, int(ends_well(exc)), text)


tasks = None


def watch_tasks():
    global tasks
    module = sys.modules.get("asyncio.base_events")
    if tasks is not None or module is None:
        return tasks
    loops = getattr(module, "BaseEventLoop", None)
    with changing:
        if loops is not None and tasks is None:
            tasks = Tasks(loops, sys.modules["weakref"])
    return tasks


def reading():
    """A file is opened for reading. dask takes blocks of equal names for equal data, and xarray calls them
    after a file's name and time of change. It asks for no time of esdm://NAME, so that what was read before
    and after a change had the same names."""
    api = sys.modules.get("xarray.backends.api")
    asked = getattr(api, "_get_mtime", None)
    if asked is None or hasattr(asked, "esdm"):
        return

    def _get_mtime(name):
        return os.urandom(16).hex() if str(name).startswith("esdm:") else asked(name)

    _get_mtime.esdm = True
    api._get_mtime = _get_mtime


def opening():
    """A file is opened for writing: its number. What is being handled by now is not its failure."""
    global opened
    if once("end"):
        atexit.register(at_end)
    watch_cells()
    opened = number = next(openings)
    if watch_tasks():
        tasks.note(number)
    if watch_threads() and not ("workers" in watched and is_shared(sys._getframe(1))):
        threads.__dict__.setdefault("opened", []).append(number)
    exc = sys.exc_info()[1] or of_the_end()
    if exc is not None:
        exc.__dict__.setdefault(SEEN, number)
    return number


def last_exception():
    return of_sys.get("last_exc") or of_sys.get("last_value")


def of_the_end():
    """What has ended the program, while functions of atexit run, which may close what it had not finished."""
    exc = last_exception()
    return None if exc is None or "ps1" in of_sys or "IPython" in sys.modules else exc


def closing(number, exc):
    """The key of the exception that unwinds the stack while file `number` is closed; 0: none does.
    `exc`: what C code is about to raise."""
    exc = (sys.exc_info()[1] or of_the_end()) if exc is None else exc
    while isinstance(exc, GeneratorExit):  # the usual end of a generator
        exc = exc.__context__
    if ends_well(exc) or exc.__dict__.get(SEEN, number + 1) <= number:
        return 0
    watch()
    if writer_fails(sys._getframe(1)):
        half = exc.__dict__.get(HALF)
        return (half if isinstance(half, Half) else Half(exc)).key
    guard = exc.__dict__.get(GUARD)
    if not isinstance(guard, Guard):
        guard = Guard(exc)
    if tasks is not None and isinstance(exc, sys.modules["asyncio"].CancelledError):
        cancelled[guard.key] = sys.modules["asyncio"]._get_running_loop(), guard.text
    elif isinstance(exc, getattr(sys.modules.get("trio"), "Cancelled", ())):
        cancelled[guard.key] = watch_trio(), guard.text
    return guard.key


def watch_trio():
    """What runs the tasks of trio: it cancels those that are still under way when one of them fails."""
    module = sys.modules.get("trio._core._run")
    runner = getattr(getattr(module, "GLOBAL_RUN_CONTEXT", None), "runner", None)
    if runner is None:
        return ALL  # settled as the program ends
    kind = type(runner)
    if once("trio"):  # threads of trio have no runner
        close = kind.close

        def close_(self):
            settle_cancelled(getattr(getattr(self, "main_task_outcome", None), "error", None), self)
            close(self)

        kind.close = close_
    return runner


def once(what):
    new = what not in watched
    watched.add(what)
    return new


def watch_threads():
    """What a thread does not handle comes to its hook. Whether this is another thread than the first."""
    threading = sys.modules.get("threading")
    if threading is None or threading.current_thread() is threading.main_thread():
        return False
    with changing:
        if getattr(threading, "excepthook", in_thread) is not in_thread:
            previous["thread"], threading.excepthook = threading.excepthook, in_thread
        watch_futures()
        watch_workers()
    return True


def watch_workers():
    """Of dask.distributed: they send what a task raises to another process. Files that xarray keeps open for
    tasks to come are not the task's."""
    worker = sys.modules.get("distributed.worker")
    tell = getattr(worker, "error_message", None)
    if tell is None or not once("workers"):
        return

    def error_message(exc, *rest, **more):
        uncaught(exc)
        for number in threads.__dict__.pop("opened", ()):
            if not ends_well(exc):
                abandon(number, describe(exc))
        return tell(exc, *rest, **more)

    def begins_anew(apply):
        def apply_(*arguments, **named):
            threads.__dict__.pop("opened", None)
            return apply(*arguments, **named)

        return apply_

    worker.error_message = error_message
    for name in ("_run_task_simple", "apply_function_simple"):  # of versions since and before 2024.12
        if hasattr(worker, name):
            setattr(worker, name, begins_anew(getattr(worker, name)))


def is_shared(frame):
    """Whether xarray opens a file that it keeps for others."""
    while frame is not None and frame.f_globals.get("__name__") != "xarray.backends.file_manager":
        frame = frame.f_back
    return frame is not None


def watch():
    """Learns of exceptions that nobody handles, but for those that end the program."""
    watch_threads()
    processes = sys.modules.get("multiprocessing.util")
    if processes and once(("process", processes.os.getpid())):
        processes.Finalize(None, in_process, exitpriority=-1000)
    watch_cells()


def watch_cells():
    module = sys.modules.get("IPython")
    shell = getattr(module, "get_ipython", lambda: None)() if module is not None else None
    if shell is not None and once("cells"):
        shell.events.register("post_run_cell", after_cell)
    elif shell is None and "ps1" in of_sys and sys.excepthook is not at_prompt:
        previous["prompt"], sys.excepthook = sys.excepthook, at_prompt


previous = {}
threads = _thread._local()


def in_thread(args):
    """What its frames hold is closed later, by nobody in particular: when garbage is collected."""
    exc = args.exc_value
    uncaught(exc)
    if not ends_well(exc):
        for number in getattr(threads, "opened", ()):
            abandon(number, describe(exc))
    previous["thread"](args)


def at_prompt(kind, exc, trace):
    after_step(exc)
    previous["prompt"](kind, exc, trace)


def in_process():
    """A process of multiprocessing is about to end, without what comes at the end of programs."""
    process = sys.modules["multiprocessing.process"]
    if process.parent_process() is None:
        return
    exc = sys.exc_info()[1]
    uncaught(exc)
    target = getattr(process.current_process(), "_target", None)
    sent = getattr(target, "__module__", "") in CARRIERS
    settle(ALL, int(not sent), "its exception went to another process" if sent else "kept")


def after_cell(result):
    after_step(result.error_in_exec)


def after_step(exc):
    """What somebody typed has run. What it left open when it failed goes on when somebody wants it to; what its
    frames alone hold is closed later, as if it were complete."""
    uncaught(exc)
    settle_cancelled(exc)  # a notebook's loop is not closed
    for number in range(previous.get("step", 0) + 1, opened + 1):
        if not ends_well(exc):
            doubt(number, describe(exc))
    previous["step"] = opened


def at_end():
    """Before modules are taken apart, which closes what is still open."""
    if tasks is not None:
        tasks.at_end()
    for key in list(unasked):
        nobody_asked(key)
    for key in list(halves):
        give_up_half(key)
    exc = last_exception()
    interrupted = isinstance(exc, KeyboardInterrupt) and "ps1" not in of_sys
    ending(describe(exc) if exc is not None else "", int(interrupted))
