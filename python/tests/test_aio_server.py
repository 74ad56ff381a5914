# SPDX-License-Identifier: MIT
"""Coroutines on a server: batches, cancelled tasks, servers that hang, die and come back."""

import asyncio
import math
import signal
import time

import pytest
from aio_kit import limit, limiter, limits, own_limiter, run, stopped  # noqa: F401

import redbucket.aio
from redbucket import RedisRateLimiter, StateError, StoreError, StoreTimeoutError, UnavailableError

REJECTED = (False, None)


# ---- Answers ---------------------------------------------------------------------------------


def test_the_limits_are_kept_by_200_tasks(limiter, run):
    async def work():
        return [await limiter.aio.request(a="k") for _ in range(5)]

    async def main():
        return sum(await asyncio.gather(*(work() for _ in range(200))), [])

    responses = run(main())
    assert len(responses) == 1000
    assert sum(response.accepted for response in responses) == 100
    assert limiter.state("a", "k").value == pytest.approx(100, abs=0.1)


def test_answers_are_those_of_the_limiter(limiter, run):
    async def main():
        aio = limiter.aio
        response = await aio.request({"a": "k", "b": 7}, cost=4)
        assert response == (True, 0.0) and response.remaining == 6
        assert {name: one.remaining for name, one in response.limits.items()} == {"a": 96, "b": 6}
        assert (await aio.refund(b="7", cost=2)).remaining == 8
        assert (await aio.charge(b="7", cost=50)).remaining == 0
        rejected = await aio.request(a="k", b="7")
        assert rejected == REJECTED and rejected.decided == "b"
        assert (await aio.reset(b="7")).remaining == 10
        assert (await aio.peek(b="7")).remaining == 9
        assert await aio.request({}) == (True, 0.0)
        assert await aio.request(b="7", cost=11) == (True, pytest.approx(1e6, rel=1e-3))
        assert (await aio.request(b="8", cost=50)).retry_after == math.inf
        assert limiter.request(a="k").remaining == 95  # the blocking form's buckets are the same

    run(main())


def test_looking_tells_what_the_limiter_tells(limiter, run):
    async def main():
        assert await limiter.aio.state("a", "k") is None
        await limiter.aio.request(a="k", cost=3)
        assert await limiter.aio.state("a", "k") == limiter.state("a", "k")
        assert (await limiter.aio.state("a", "k")).value == pytest.approx(3, abs=.01)
        assert (await limiter.aio.statistics()).accepted == limiter.statistics().accepted == 1
        health = await limiter.aio.check()
        assert health.server == limiter.check().server and health.round_trip > 0
        for wrong in (limiter.aio.state("none", "k"), limiter.aio.state("a", None)):
            with pytest.raises((LookupError, TypeError, ValueError)):
                await wrong

    run(main())


def test_faults_are_found_before_anything_is_sent(limiter, run):
    async def fault(*args, **named):
        try:
            await limiter.aio.request(*args, **named)
        except Exception as error:
            return error
        raise AssertionError("no fault")

    async def main():
        error = await fault({"a": "k", "nope": "k"})
        assert type(error) is KeyError and error.args == ("nope",)
        assert type(await fault(a=None)) is TypeError
        assert type(await fault(a="k", cost=0)) is ValueError
        assert type(await fault({"a": "k"}, nope=1)) is TypeError
        assert type(await fault("a")) is TypeError
        with pytest.raises(ValueError):
            await limiter.aio.give_back(limiter.request(b="k", cost=50), b="k")
        assert limiter.state("a", "k") is None

    run(main())


def test_a_state_that_cant_be_read(limiter, client, key_format, run):
    client.set(key_format.format(zone="a", key="bad"), b"nonsense")

    async def main():
        good, bad = limiter.aio.request(a="good"), limiter.aio.request(a="bad")
        good, bad = await asyncio.gather(good, bad, return_exceptions=True)
        assert good == (True, 0.0)
        assert type(bad) is StateError and "bad" in str(bad)

    run(main())


def test_many_at_once(limiter, run):
    async def main():
        aio = limiter.aio
        many = [{"a": "k"}] * 3 + [({"b": "k"}, 10), {"b": "k"}, {"b": "k"}]
        responses = await aio.request_many(iter(many))
        assert [one.accepted for one in responses] == [True] * 5 + [False]
        assert responses[2].remaining == 97
        for wrong in ({"nope": "k"}, {"a": None}):
            with pytest.raises((KeyError, TypeError)):
                await aio.request_many([{"a": "k"}, wrong])
        assert limiter.state("a", "k").value == pytest.approx(3, abs=0.1)  # nothing of those
        assert len(await aio.request_many([{"a": n} for n in range(3000)], cost=2)) == 3000

    run(main())


def test_many_of_which_one_fails(limiter, client, key_format):
    client.set(key_format.format(zone="a", key="bad"), b"nonsense")

    async def main():
        many = [{"a": "k"}, {"a": "bad"}, {"a": "k"}]
        with pytest.raises(StateError) as caught:
            await limiter.aio.request_many(many)
        assert [type(one) for one in caught.value.responses] == [
            redbucket.Response, StateError, redbucket.Response]
        answers = await limiter.aio.request_many(many, return_exceptions=True)
        assert type(answers[1]) is StateError and answers[2].remaining == 96

    asyncio.run(main())


def test_acquire_waits(server_url, key_format, run):
    async def main():
        with RedisRateLimiter(server_url, key_format=key_format) as limiter:
            limiter.configure(a=limit("a", 50, delay=1), b=limit("b", 1e-3, delay=1))
            begun = time.monotonic()
            responses = [await limiter.aio.acquire(a="k") for _ in range(5)]
            assert all(response == (True, 0.0) for response in responses)
            assert time.monotonic() - begun > 0.07
            await limiter.aio.request(b="k")
            before = limiter.state("b", "k").value
            late = await limiter.aio.acquire(b="k", timeout=0.01)
            assert late == REJECTED and 900 < late.retry_after < 1000
            assert limiter.state("b", "k").value == pytest.approx(before, abs=0.5)

    run(main())


# ---- Cancelled -------------------------------------------------------------------------------


def test_cancelled_before_it_is_sent(limiter, run):
    async def main():
        task = asyncio.ensure_future(limiter.aio.request(a="k"))
        await asyncio.sleep(0)  # it has asked, and waits for the loop
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await limiter.aio.request(a="other")
        assert limiter.state("a", "k") is None

    run(main())


def test_cancelled_while_it_is_under_way(own_server, own_limiter, run):
    async def main():
        await own_limiter.aio.request(a="k")
        with stopped(own_server):
            tasks = [asyncio.ensure_future(own_limiter.aio.request(a="k")) for _ in range(50)]
            await asyncio.sleep(0.05)
            begun = time.monotonic()
            for task in tasks[10:]:
                task.cancel()
            cancelled = await asyncio.gather(*tasks[10:], return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in cancelled)
            assert time.monotonic() - begun < 5
        answers = await asyncio.gather(*tasks[:10])
        assert all(answer.accepted for answer in answers)
        assert await own_limiter.aio.request(a="k", cost=40) == (True, 0.0)

    run(main())
    assert own_limiter.request(a="k", cost=99) == REJECTED


def test_cancelled_when_its_permit_has_just_come(limiter, monkeypatch, run):
    """The answer is there, and the task hasn't run since."""
    tasks = []
    settle = redbucket.aio.settle

    def settle_and_cancel(future, failed, answer):
        settle(future, failed, answer)
        for task in tasks:
            task.cancel()

    monkeypatch.setattr(redbucket.aio, "settle", settle_and_cancel)

    async def main():
        tasks.append(asyncio.ensure_future(limiter.aio.request(a="k", cost=7)))
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        tasks.clear()
        await limiter.aio.peek(a="k")
        assert limiter.state("a", "k").value == pytest.approx(0, abs=0.1)

    run(main())


def test_wait_for_is_a_time_limit(own_server, own_limiter):
    async def main():
        with stopped(own_server):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(own_limiter.aio.request(a="k"), 0.05)
        assert (await own_limiter.aio.request(a="new")).accepted

    asyncio.run(main())


def test_a_refund_is_done_even_if_its_task_is_cancelled(limiter):
    async def main():
        await limiter.aio.request(a="k", cost=50)
        task = asyncio.ensure_future(limiter.aio.refund(a="k", cost=20))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await limiter.aio.peek(a="k")
        assert limiter.state("a", "k").value == pytest.approx(30, abs=0.1)

    asyncio.run(main())


# ---- Servers that fail -----------------------------------------------------------------------


def test_a_server_that_hangs_doesnt_stop_the_loop(own_server, run):
    async def main():
        limiter = RedisRateLimiter(own_server.url(), timeout=0.3)
        limiter.configure(limits())
        await limiter.aio.request(a="k")
        ticks = 0
        with stopped(own_server):
            begun = time.monotonic()
            hanging = [asyncio.ensure_future(limiter.aio.request(a="k")) for _ in range(20)]
            while not all(one.done() for one in hanging):
                await asyncio.sleep(0.01)
                ticks += 1
            took = time.monotonic() - begun
        assert all(type(one.exception()) is StoreTimeoutError for one in hanging)
        assert ticks > 2 and 0.25 < took < 5
        limiter.close()

    run(main())


async def until_it_works(aio):
    for _ in range(1000):
        try:
            return await aio.request(a="k")
        except StoreError:
            await asyncio.sleep(0.01)
    raise AssertionError("it never works again")


def test_looking_at_a_server_that_hangs_doesnt_stop_the_loop(own_server, run):
    async def main():
        limiter = RedisRateLimiter(own_server.url(), timeout=0.3)
        limiter.configure(limits())
        await limiter.aio.request(a="k")
        ticks = 0
        with stopped(own_server):
            looks = [asyncio.ensure_future(look) for look in (limiter.aio.state("a", "k"),
                                                              limiter.aio.check())]
            assert (await limiter.aio.statistics()).accepted == 1
            while not all(one.done() for one in looks):
                await asyncio.sleep(0.01)
                ticks += 1
        assert all(isinstance(one.exception(), StoreError) for one in looks)
        assert ticks > 2
        limiter.close()
        with pytest.raises(RuntimeError):
            await limiter.aio.check()

    run(main())


def test_a_server_that_is_killed_and_comes_back(own_server, own_limiter, run):
    async def main():
        aio = own_limiter.aio
        await aio.request(a="k")
        own_server.kill()
        failures = await asyncio.gather(*(aio.request(a="k") for _ in range(50)),
                                        return_exceptions=True)
        assert all(isinstance(one, StoreError) for one in failures)
        with pytest.raises(UnavailableError):
            await aio.request(a="k")
        own_server.again()
        assert (await until_it_works(aio)).accepted

    run(main())


def test_killed_while_requests_are_under_way(own_server, own_limiter):
    async def main():
        aio = own_limiter.aio
        await aio.request(a="k")
        own_server.process.send_signal(signal.SIGSTOP)
        tasks = [asyncio.ensure_future(aio.request(a="k")) for _ in range(100)]
        await asyncio.sleep(0.05)
        own_server.kill()
        failures = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, StoreError) for one in failures)

    asyncio.run(main())


def test_a_policy_answers(run):
    async def main():
        with RedisRateLimiter("redis://127.0.0.1:1", on_error="open") as limiter:
            limiter.configure(limits())
            answer = await limiter.aio.request(a="k")
            assert answer.accepted and answer.degraded

    run(main())
