# SPDX-License-Identifier: MIT
"""Coroutines on a server, when their limiter, their loop or their process ends; and many loops."""

import asyncio
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest
from aio_kit import limiter, limits, own_limiter, run, stopped  # noqa: F401

import redbucket.aio
from redbucket import RedisRateLimiter


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_closed_with_requests_under_way(own_server, own_limiter, run):
    async def main():
        before = open_files()
        aio = own_limiter.aio
        await aio.request(a="k")
        with stopped(own_server):
            tasks = [asyncio.ensure_future(aio.request(a="k")) for _ in range(20)]
            await asyncio.sleep(0.05)
            own_limiter.close()
            with pytest.raises(RuntimeError, match="closed"):
                await aio.request(a="k")
        assert all(one.accepted for one in await asyncio.gather(*tasks))
        await asyncio.sleep(0.05)
        assert open_files() <= before
        own_limiter.close()

    run(main())


def test_closed_and_then_cancelled(own_server, own_limiter, run):
    async def main():
        before = open_files()
        await own_limiter.aio.request(a="k")
        with stopped(own_server):
            tasks = [asyncio.ensure_future(own_limiter.aio.request(a="k")) for _ in range(20)]
            await asyncio.sleep(0)
            own_limiter.close()
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)
            assert open_files() <= before

    run(main())


def test_closed_while_its_loop_stands_still(limiter):
    loop = asyncio.new_event_loop()
    before = open_files()
    assert loop.run_until_complete(limiter.aio.request(a="k")).accepted
    assert open_files() > before
    limiter.close()
    assert open_files() == before
    loop.close()


def test_a_loop_that_is_closed_with_requests_under_way(own_server, own_limiter):
    async def begin():
        await own_limiter.aio.request(a="k")
        own_server.process.send_signal(signal.SIGSTOP)
        for _ in range(20):
            tasks.append(asyncio.ensure_future(own_limiter.aio.request(a="k")))
        await asyncio.sleep(0.05)

    async def again():
        return await own_limiter.aio.request(a="new")

    tasks = []
    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    loop.close()
    own_server.process.send_signal(signal.SIGCONT)
    assert asyncio.run(again()).accepted
    for task in tasks:
        task._log_destroy_pending = False
    tasks.clear()
    del loop
    gc.collect()
    assert asyncio.run(again()).accepted


def test_loops_leave_nothing_open(limiter, run):
    async def main():
        return (await limiter.aio.request(a="k")).accepted

    assert run(main())
    gc.collect()
    before = open_files()
    assert all(run(main()) for _ in range(20))
    gc.collect()
    assert open_files() <= before + 1


def test_a_limiter_that_nobody_has_any_more(server_url, run):
    async def main():
        async def use():
            limiter = RedisRateLimiter(server_url)
            limiter.configure(limits())
            await limiter.aio.peek(a="k")
            return weakref.ref(limiter)

        await use()
        gc.collect()
        await asyncio.sleep(0)
        before = open_files()
        gone = [await use() for _ in range(10)]
        gc.collect()
        await asyncio.sleep(0)
        gc.collect()
        assert [one() for one in gone] == [None] * 10
        assert open_files() <= before

    run(main())


def test_loops_of_many_threads(limiter):
    accepted = []

    def run():
        async def work():
            return [await limiter.aio.request(a="k") for _ in range(10)]

        async def main():
            return sum(await asyncio.gather(*(work() for _ in range(10))), [])

        accepted.append(sum(response.accepted for response in asyncio.run(main())))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        limiter.request(a="blocking")
    for thread in threads:
        thread.join()
    assert len(accepted) == 8 and sum(accepted) == 100


def in_child(limiter, results):
    async def main():
        return sum([(await limiter.aio.request(a="k")).accepted for _ in range(50)])

    results.put(asyncio.run(main()))


def test_a_child_of_fork_has_loops_of_its_own(limiter):
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    async def main():
        await limiter.aio.request(a="k")
        children = [context.Process(target=in_child, args=(limiter, results)) for _ in range(3)]
        for child in children:
            child.start()
        accepted = 1 + sum([(await limiter.aio.request(a="k")).accepted for _ in range(50)])
        loop = asyncio.get_running_loop()
        for child in children:
            accepted += await loop.run_in_executor(None, results.get, True, 60)
        for child in children:
            await loop.run_in_executor(None, child.join, 60)
            assert child.exitcode == 0
        assert (await limiter.aio.request(a="after")).accepted
        return accepted

    assert asyncio.run(main()) == 100


def close_and_ask(limiter, results):
    limiter.close()
    results.put(limiter.closed)


def test_a_child_of_fork_that_closes_leaves_its_parent_alone(limiter):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    loop = asyncio.new_event_loop()
    assert loop.run_until_complete(limiter.aio.request(a="k")).accepted
    child = context.Process(target=close_and_ask, args=(limiter, results))
    child.start()
    assert results.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0
    again = asyncio.wait_for(limiter.aio.request(a="k"), 30)
    assert loop.run_until_complete(again).accepted
    limiter.close()
    loop.close()


ENDS = {
    "returns": "await asyncio.sleep(0.05)",
    "raises": "await asyncio.sleep(0.05); raise ZeroDivisionError",
    "exits": "await asyncio.sleep(0.05); sys.exit(0)",
    "a thread's loop": "threading.Thread(target=asyncio.run, args=(ask(),), daemon=True).start(); "
                       "await asyncio.sleep(0.2)",
}


@pytest.mark.parametrize("how", ENDS)
def test_the_interpreters_end_with_requests_under_way(own_server, how):
    program = textwrap.dedent("""
        import asyncio, sys, threading
        from redbucket import RateLimit, RedisRateLimiter, Zone

        limiter = RedisRateLimiter(sys.argv[1], timeout=30)
        limiter.configure(a=RateLimit(Zone("a", 5, expiry=0), burst=10))
        tasks = []

        async def ask():
            await asyncio.gather(*(limiter.aio.request(a="k") for _ in range(20)))

        async def main():
            tasks.append(asyncio.ensure_future(ask()))
            END

        asyncio.run(main())
    """).replace("END", ENDS[how])
    with stopped(own_server):
        done = subprocess.run([sys.executable, "-X", "dev", "-c", program, own_server.url()],
                              capture_output=True, text=True, timeout=60)
    assert done.returncode == (1 if how == "raises" else 0), done.stderr
    assert "Fatal" not in done.stderr and "ignored" not in done.stderr, done.stderr
    assert ("ZeroDivisionError" in done.stderr) == (how == "raises")


def test_nothing_is_left_of_many_requests(limiter):
    async def main(times):
        for _ in range(times):
            await limiter.aio.request(a="k", b="k")
            with pytest.raises(KeyError):
                await limiter.aio.request(nope="k")
            task = asyncio.ensure_future(limiter.aio.request(a="k"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main(20))
    gc.collect()
    before = len(gc.get_objects())
    references = sys.getrefcount(limiter)
    asyncio.run(main(500))
    gc.collect()
    assert len(gc.get_objects()) < before + 100
    assert sys.getrefcount(limiter) <= references + 1


def test_a_signal_in_the_middle_loses_no_answer(limiter, monkeypatch):
    """An exception that comes out of settling is the loop's, once all futures are settled."""
    settle = redbucket.aio.settle
    raised = []

    def interrupted(*args):
        if not raised:
            raised.append(1)
            raise KeyboardInterrupt
        settle(*args)

    monkeypatch.setattr(redbucket.aio, "settle", interrupted)
    loop = asyncio.new_event_loop()
    tasks = [loop.create_task(limiter.aio.request(a="k")) for _ in range(10)]
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(asyncio.gather(*tasks))
    answers = loop.run_until_complete(asyncio.gather(*tasks))
    assert [answer.remaining for answer in answers] == list(range(99, 89, -1))
    loop.close()


def test_what_a_thread_leaves_behind_another_clears_away(own_server, own_limiter):
    """The loop of a thread that has ended had requests under way, which were cancelled at last."""
    async def main():
        for _ in range(20):
            tasks.append(asyncio.ensure_future(own_limiter.aio.request(a="k")))
            tasks[-1]._log_destroy_pending = False
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        asyncio.get_running_loop().stop()  # at once, before anything else has a turn

    def run():
        loop = asyncio.new_event_loop()
        loop.create_task(main())
        loop.run_forever()
        loop.close()

    tasks = []
    own_limiter.request(a="k")
    before = open_files()
    with stopped(own_server):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        own_limiter.close()
        assert open_files() < before
