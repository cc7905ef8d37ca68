# SPDX-License-Identifier: LGPL-3.0-or-later
"""Writes half of a data set and fails, or seems to: failing.py PATH HOW. What is complete holds 1, what
is half done 0."""

import asyncio
import atexit
import concurrent.futures
import contextlib
import gc
import multiprocessing
import os
import pickle
import sys
import threading
import time

import netCDF4
import numpy as np

path, how = sys.argv[1:3]


class Stop(Exception):
    pass


def begin(mode="w"):
    ds = netCDF4.Dataset(path, mode)
    if mode == "w":
        ds.createDimension("x", 4)
        ds.createVariable("v", "i4", ("x",))
    ds["v"][:2] = 0
    return ds


def half(kind=Stop, mode="w"):
    with begin(mode):
        raise kind(1 if kind is SystemExit else "half way")


def whole():
    with begin() as ds:
        ds["v"][:] = 1


def exit_well():
    with begin():
        sys.exit()


def caught(then=lambda: None):
    with contextlib.suppress(Stop):
        half()
    then()


def in_finally():
    ds = begin()
    try:
        raise Stop("half way")
    finally:
        ds.close()


def in_frame():
    ds = begin()
    raise Stop(ds.filepath())


def other_exception():
    try:
        half()
    except Stop as stop:
        raise KeyError("another one") from stop


def message_and_exit():
    try:
        half()
    except Stop as stop:
        print(stop)
        sys.exit(1)


def closed_at_exit():
    ds = begin()
    atexit.register(ds.close)
    raise Stop("half way")


def written_at_exit():
    """By what the program does because it failed."""
    atexit.register(whole)
    raise Stop("before the file was there")


def generator():
    with begin() as ds:
        ds["v"][:] = 1
        yield
        yield


def generator_ended():
    for _ in generator():
        break


def handler_writes():
    try:
        raise Stop("before the file was there")
    except Stop:
        whole()
        os._exit(0)  # so it is committed by now


def caught_at_once():
    caught()
    os._exit(0)


def caught_and_kept():
    try:
        half()
    except Stop as stop:
        kept.append(stop)
    with netCDF4.Dataset(path) as ds:  # the program's own view of what it closed
        assert ds["v"][:2].tolist() == [0, 0]


def retried():
    try:
        half()
    except Stop as stop:
        kept.append(stop)
    whole()


def appends_after():
    try:
        half()
    except Stop as stop:
        kept.append(stop)
    with netCDF4.Dataset(path, "a") as ds:
        ds["v"][:] = 1


def thread():
    worker = threading.Thread(target=half)
    worker.start()
    worker.join()


def thread_frame():
    worker = threading.Thread(target=in_frame)
    worker.start()
    worker.join()
    with netCDF4.Dataset("esdm://later.nc", "w"):  # of the program's own
        pass


def future():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(half).result()


def future_unasked(task=half, keep=()):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        for held in [pool.submit(task)]:
            while not held.done():
                pass
            repr(held)  # which reads it, and asks for nothing
            keep and keep[0].append(held)


def future_reopened():
    """What a task has opened, and handed out, is not the next task's."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        ds = pool.submit(begin).result()
        pool.submit(lambda: begin_nothing() + 1 / 0)
    ds["v"][:] = 1
    ds.close()


def begin_nothing():
    with netCDF4.Dataset("esdm://nothing.nc", "w"):
        return 0


def future_caught():
    """Waiting began before the task failed."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool, contextlib.suppress(Stop):
        pool.submit(half).result()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert isinstance(pool.submit(half).exception(), Stop)


async def in_task(step):
    await asyncio.sleep(0)
    step()


def task_unasked(step=half, keep=(), to_thread=False):
    """A task of asyncio that nobody waits for."""

    async def program():
        task = asyncio.ensure_future(asyncio.to_thread(step) if to_thread else in_task(step))
        while not task.done():
            await asyncio.sleep(0.01)
        keep and keep[0].append(task)

    asyncio.run(program())


def task_caught():
    async def program():
        with contextlib.suppress(Stop):
            await in_task(half)
        task = asyncio.ensure_future(in_task(half))
        await asyncio.wait([task])
        assert isinstance(task.exception(), Stop)

    asyncio.run(program())


async def slowly():
    ds = begin()
    with ds:
        ds["v"][:2] = 0
        await asyncio.sleep(60)


async def fails_soon():
    await asyncio.sleep(0.1)
    raise Stop("half way")


def task_cancelled():
    """Because another one has failed."""
    async def program():
        await asyncio.gather(slowly(), fails_soon())

    asyncio.run(program())


async def stops():
    task = asyncio.ensure_future(slowly())
    await asyncio.sleep(0.1)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def task_stopped():
    """By the program, which wants no more of it."""
    asyncio.run(stops())


def task_of_another_loop():
    """That another loop fails does not concern it."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(stops())
    with contextlib.suppress(Stop):
        asyncio.run(fails_soon())
    loop.close()


async def fails_as(event):
    await event.wait()
    raise Stop("half way")


async def writes_until(event):
    with begin():
        await fails_as(event)


def task_second(catch=(), to_thread=False, in_executor=False):
    """Two tasks fail, and gather() raises what the first one did."""
    async def program():
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        loop.call_later(0.1, event.set)
        second = asyncio.to_thread(half_later) if to_thread else loop.run_in_executor(None, half_later) if in_executor \
            else writes_until(event)
        with contextlib.suppress(*catch):
            await asyncio.gather(fails_as(event), second)
        await asyncio.sleep(0.5)

    asyncio.run(program())


def half_later():
    time.sleep(0.3)
    half()


def task_shielded():
    """Nobody waits for it any more when it fails."""
    async def program():
        event = asyncio.Event()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(writes_until(event)), 0.1)
        event.set()
        await asyncio.sleep(0.2)

    asyncio.run(program())


def task_shared():
    """What one of the two has asked for is not forgotten with the other one."""
    async def program():
        shared = asyncio.ensure_future(in_task(half))

        async def waits():
            await shared

        with contextlib.suppress(Stop):
            await asyncio.gather(waits(), waits())
        del shared
        await asyncio.sleep(0.1)

    asyncio.run(program())


def task_returned():
    async def program():
        found = await asyncio.gather(in_task(half), fails_soon(), return_exceptions=True)
        assert [type(exc) for exc in found] == [Stop, Stop]

    asyncio.run(program())


def at_once():
    """Threads that write their first files at the same moment."""
    ready = threading.Barrier(8)

    def other(name):
        ready.wait()
        with netCDF4.Dataset(f"esdm://{name}", "w") as ds:
            ds.createVariable("v", "i4", ())[...] = 0
            raise Stop(name)

    workers = [threading.Thread(target=other, args=(f"at-once-{i}.nc",)) for i in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    left = [i for i in range(8) if opens(f"esdm://at-once-{i}.nc")]
    assert not left, left


def opens(name):
    try:
        netCDF4.Dataset(name).close()
    except OSError:
        return False
    return True


def dask_second():
    """Two tasks of dask fail; it raises what the first one did."""
    import dask

    def first():
        time.sleep(0.1)
        raise Stop("the first one")

    with contextlib.suppress(Stop):
        dask.compute(dask.delayed(first)(), dask.delayed(half_later)(), scheduler="threads", num_workers=2)
    time.sleep(0.5)
    gc.collect()


def dask_task_caught():
    """It is raised to the program, which handles it."""
    import dask
    with contextlib.suppress(Stop):
        dask.compute(dask.delayed(half)(), scheduler="threads", num_workers=2)


def trio_cancelled(stops=False):
    """As for asyncio: because another one has failed, or because the program wants no more of it."""
    import trio

    async def write():
        with begin():
            await trio.sleep(60)

    async def fail():
        await trio.sleep(0.1)
        if not stops:
            raise Stop("half way")
        nursery.cancel_scope.cancel()

    async def program():
        nonlocal nursery
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write)
            nursery.start_soon(fail)

    nursery = None
    trio.run(program)


def child():
    worker = multiprocessing.get_context("fork").Process(target=half)
    worker.start()
    worker.join()


def pool():
    with concurrent.futures.ProcessPoolExecutor(1) as workers:
        try:
            workers.submit(half).result()
        except Stop:
            print("the worker failed")


def collected():
    with contextlib.suppress(Stop):
        in_frame()
    gc.collect()
    os._exit(0)


def pickled():
    try:
        half()
    except Stop as stop:
        again = pickle.loads(pickle.dumps(stop))
        assert again.args == ("half way",)
    os._exit(0)


def dask_block():
    import dask.array
    import xarray as xr

    def block(values):
        if values.size and values[-1] > 5:
            raise Stop("in a block")
        return values

    data = dask.array.map_blocks(block, dask.array.arange(8, chunks=2), dtype="i8")
    xr.Dataset({"v": ("x", data)}).to_netcdf(path)


def writer_caught():
    """What xarray itself had not finished is half, whoever handles the exception, and whenever."""
    try:
        dask_block()
    except Stop as stop:
        sys.stop = stop


def writer_retried():
    try:
        dask_block()
    except Stop:
        whole()


def writer_retried_early():
    """A task of the writer that failed goes on when the file was written again."""
    import dask
    import dask.array
    import xarray as xr
    written, ended = threading.Event(), threading.Event()

    def block(values):
        if values.size == 2 and values[0] == 0:
            written.wait(60)
            threading.Timer(1, ended.set).start()  # dask stores what comes back at once
        if values.size and values[-1] > 5:
            raise Stop("in a block")
        return values

    data = dask.array.map_blocks(block, dask.array.arange(8, chunks=2), dtype="i8")
    with dask.config.set(scheduler="threads", num_workers=4):
        try:
            xr.Dataset({"v": ("x", data)}).to_netcdf(path)
        except Stop:
            whole()
    written.set()
    ended.wait(60)


def filled_by_others():
    """As xarray and dask.distributed do: the container is closed before its values come."""
    begin().close()
    work = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=work) as workers:
        workers.submit(fill).result()


def fill():
    with netCDF4.Dataset(sys.argv[1], "a") as ds:
        ds["v"][:] = 1
    raise Stop("in a worker")


def copied_tolerance():
    """Which came with a file, for other numbers."""
    with netCDF4.Dataset(path) as source:
        tolerance = source["v"].esdm_absolute_tolerance
    try:
        with netCDF4.Dataset("esdm://small.nc", "w") as ds:
            ds.createVariable("small", "f4", ()).esdm_absolute_tolerance = tolerance
            ds.createVariable("later", "f4", ()).esdm_absolute_tolerance = tolerance
            ds["small"][...] = 0.001
            raise Stop("the numbers are complete")
    except Stop:
        pass


def stated():
    with begin() as ds:
        ds["v"].esdm_absolute_tolerance = 100.0


kept = []
ways = {
    "top": lambda: None,
    "with": half,
    "finally": in_finally,
    "frame": in_frame,
    "other": other_exception,
    "interrupt": lambda: half(KeyboardInterrupt),
    "exit1": lambda: half(SystemExit),
    "exit0": exit_well,
    "append": lambda: half(mode="a"),
    "message": message_and_exit,
    "raised-later": lambda: caught(lambda: 1 / 0),
    "caught": caught,
    "caught-at-once": caught_at_once,
    "kept": caught_and_kept,
    "retried": retried,
    "appends-after": appends_after,
    "generator": generator_ended,
    "exit-closes": closed_at_exit,
    "exit-writes": written_at_exit,
    "handler": handler_writes,
    "thread": thread,
    "thread-frame": thread_frame,
    "future": future,
    "future-unasked": future_unasked,
    "future-frame": lambda: future_unasked(in_frame),
    "future-kept": lambda: future_unasked(half, (kept,)),
    "future-kept-frame": lambda: future_unasked(in_frame, (kept,)),
    "future-caught": future_caught,
    "future-reopened": future_reopened,
    "task": lambda: asyncio.run(in_task(half)),
    "task-unasked": task_unasked,
    "task-frame": lambda: task_unasked(in_frame),
    "task-kept": lambda: task_unasked(half, (kept,)),
    "task-kept-frame": lambda: task_unasked(in_frame, (kept,)),
    "task-thread": lambda: task_unasked(half, to_thread=True),
    "task-caught": task_caught,
    "task-cancelled": task_cancelled,
    "task-stopped": task_stopped,
    "task-other-loop": task_of_another_loop,
    "task-second": task_second,
    "task-second-caught": lambda: task_second((Stop,)),
    "task-second-thread": lambda: task_second((Stop,), to_thread=True),
    "task-second-executor": lambda: task_second((Stop,), in_executor=True),
    "task-shielded": task_shielded,
    "task-shared": task_shared,
    "task-returned": task_returned,
    "at-once": at_once,
    "dask-second": dask_second,
    "dask-task-caught": dask_task_caught,
    "trio-cancelled": trio_cancelled,
    "trio-stopped": lambda: trio_cancelled(stops=True),
    "child": child,
    "pool": pool,
    "collected": collected,
    "pickled": pickled,
    "dask": dask_block,
    "dask-caught": writer_caught,
    "dask-retried": writer_retried,
    "dask-late": writer_retried_early,
    "filled-by-others": filled_by_others,
    "whole": whole,
    "stated": stated,
    "copied-tolerance": copied_tolerance,
}
if __name__ == "__main__":
    if sys.argv[3:] == ["uvloop"]:
        import uvloop
        uvloop.install()
    if how == "top":
        top = begin()
        1 / 0
    ways[how]()
