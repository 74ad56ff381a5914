# SPDX-License-Identifier: MIT
"""Coroutines on stores of this machine, which decide without a turn of the loop."""

import asyncio
import math
import os
import threading

import pytest

from redbucket import FullError, InMemoryRateLimiter, RateLimit, SharedMemoryRateLimiter, Zone, from_url
from redbucket.aio import AsyncRateLimiter

REJECTED = (False, None)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def limit(name, rate, **options):
    return RateLimit(Zone(name, rate, expiry=0), **options)


@pytest.fixture
def shared():
    """In a shared memory of this test's own."""
    name = f"rbt-{os.getpid()}-{os.urandom(4).hex()}"
    with SharedMemoryRateLimiter(name, size="1m") as limiter:
        yield limiter
    os.unlink(f"/dev/shm/{name}")


@pytest.fixture(params=["memory", "shared"])
def limiter(request):
    limiter = InMemoryRateLimiter() if request.param == "memory" else request.getfixturevalue("shared")
    limiter.configure(a=limit("a", 1e-6, burst=99), b=limit("b", 1e-6, burst=9, delay=1))
    return limiter


async def turns_of(awaitable):
    """How often the loop went on to others meanwhile, and the answer."""
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counter = asyncio.ensure_future(count())
    await asyncio.sleep(0)
    before = turns
    answer = await awaitable
    after = turns
    counter.cancel()
    return after - before, answer


def test_decides_at_once(limiter):
    async def main():
        assert await turns_of(limiter.aio.request(a="k")) == (0, (True, 0.0))
        turns, response = await turns_of(limiter.aio.peek(a="k"))
        assert turns == 0 and response.remaining == 98

    asyncio.run(main())


def test_the_limits_are_kept_by_200_tasks(limiter):
    async def work():
        return [await limiter.aio.request(a="k") for _ in range(5)]

    async def main():
        return sum(await asyncio.gather(*(work() for _ in range(200))), [])

    responses = asyncio.run(main())
    assert len(responses) == 1000
    assert sum(response.accepted for response in responses) == 100


def test_answers_are_those_of_the_limiter(limiter):
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
        assert await aio.request({}) == (True, 0.0)
        assert await aio.request(b="7", cost=11) == (True, pytest.approx(1e6, rel=1e-3))
        assert (await aio.request(b="8", cost=50)).retry_after == math.inf

    asyncio.run(main())


def test_faults(limiter):
    async def fault(*args, **named):
        try:
            await limiter.aio.request(*args, **named)
        except Exception as error:
            return error
        raise AssertionError("no fault")

    async def main():
        error = await fault(nope="k")
        assert type(error) is KeyError and error.args == ("nope",)
        assert type(await fault(a=None)) is TypeError
        assert type(await fault(a="k", cost=0)) is ValueError
        assert type(await fault({"a": "k"}, nope=1)) is TypeError
        assert type(await fault("a")) is TypeError
        assert (await limiter.aio.peek(a="k")).remaining == 99

    asyncio.run(main())


def test_without_limits_and_closed():
    async def main():
        limiter = AsyncRateLimiter("memory:")
        assert isinstance(limiter.limiter, InMemoryRateLimiter)
        with pytest.raises(RuntimeError, match="configure"):
            await limiter.request(a="k")
        async with limiter:
            limiter.configure(a=limit("a", 1))
            assert await limiter.request(a="k") == (True, 0.0)
        assert limiter.closed
        with pytest.raises(RuntimeError, match="closed"):
            await limiter.request(a="k")

    asyncio.run(main())
    with pytest.raises(TypeError):
        AsyncRateLimiter(7)


def test_many_at_once(limiter):
    async def main():
        aio = limiter.aio
        many = [{"a": "k"}] * 3 + [({"b": "k"}, 10), {"b": "k"}, {"b": "k"}]
        responses = await aio.request_many(many)
        assert [one.accepted for one in responses] == [True] * 5 + [False]
        assert responses[2].remaining == 97
        with pytest.raises(KeyError):
            await aio.request_many([{"a": "k"}, {"nope": "k"}])
        with pytest.raises(TypeError):
            await aio.request_many([{"a": "k"}, {"a": None}])
        assert len(await aio.request_many([{"a": n} for n in range(3000)], cost=2)) == 3000

    asyncio.run(main())


def test_a_clock_of_its_own(clock):
    async def main(limiter):
        limiter.configure(a=limit("a", 1))
        aio = limiter.aio
        assert await aio.request(a="k") == (True, 0.0)
        rejected = await aio.request(a="k")
        assert rejected == REJECTED and rejected.time == clock.now and rejected.retry_after == 1.0
        clock.now += 1
        assert await aio.request(a="k") == (True, 0.0)

    asyncio.run(main(InMemoryRateLimiter(clock=clock)))
    asyncio.run(main(from_url("memory:", clock=clock)))


def test_a_full_table():
    limiter = InMemoryRateLimiter(size="64k")
    limiter.configure(a=limit("a", 1e-6))

    async def main():
        with pytest.raises(FullError):
            for number in range(100000):
                await limiter.aio.request(a=number)

    asyncio.run(main())


# ---- Waiting ---------------------------------------------------------------------------------


@pytest.fixture
def slept(clock, monkeypatch):
    """What was slept, by a clock that the sleep moves; the monotonic one among them."""
    pauses = []
    pause = asyncio.sleep

    async def sleep(seconds):
        pauses.append(seconds)
        clock.now += seconds
        await pause(0)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr("redbucket._patience.time.monotonic", clock)
    return pauses


def test_acquire_waits(clock, slept):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(a=limit("a", 0.5, burst=0, delay=1))

    async def main():
        aio = limiter.aio
        assert (await aio.acquire(a="k")).waited == 0.0 and slept == []
        response = await aio.acquire(a="k")
        assert response == (True, 0.0) and response.waited == 2.0 and slept == [2.0]
        await aio.charge(a="k", cost=1)
        late = await aio.acquire(a="k", timeout=1)
        assert late == REJECTED and late.waited == 1.0
        assert (await aio.acquire({"a": "k"}, timeout=0)) == REJECTED
        assert (await aio.acquire(a="k", cost=3)).retry_after == math.inf
        assert (await aio.acquire(a="new", timeout=0)) == (True, 0.0)

    asyncio.run(main())


def test_what_is_too_late_is_given_back(clock, slept):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(a=limit("a", 0.1, burst=0, delay=1), b=limit("b", 1, burst=9))

    async def main():
        await limiter.aio.request(a="k")
        before = limiter.state("a", "k")
        late = await limiter.aio.acquire(a="k", b="k", timeout=4)
        assert late == REJECTED and slept == []
        assert late.retry_after == 6.0 and late.decided == "a"
        assert late.limits["a"] == REJECTED and late.limits["a"].retry_after == 6.0
        assert late.limits["b"] == (True, 0.0) and late.limits["b"].remaining == 10
        assert limiter.state("a", "k") == before

    asyncio.run(main())


def test_a_wait_that_is_cancelled_gives_its_permit_back(limiter):
    async def main():
        for _ in range(10):
            limiter.request(b="k")
        before = limiter.state("b", "k").value
        waiting = asyncio.ensure_future(limiter.aio.acquire(b="k"))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        assert limiter.state("b", "k").value > before + 0.9
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0.01)
        assert limiter.state("b", "k").value == pytest.approx(before, abs=1e-3)

    asyncio.run(main())


# ---- Loops -----------------------------------------------------------------------------------


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
    for thread in threads:
        thread.join()
    assert len(accepted) == 8 and sum(accepted) == 100


def test_a_loop_after_the_other(limiter):
    async def main():
        return (await limiter.aio.request(a="k")).accepted

    assert [asyncio.run(main()) for _ in range(101)] == [True] * 100 + [False]


def test_outside_of_a_loop(shared):
    shared.configure(a=limit("a", 1))
    coroutine = shared.aio.request(a="k")
    with pytest.raises(RuntimeError, match="no running event loop"):
        coroutine.send(None)


def test_looking_tells_what_the_limiter_tells(limiter):
    async def main():
        assert await limiter.aio.state("a", "looked at") is None
        await limiter.aio.request(a="looked at")
        assert await limiter.aio.state("a", "looked at") == limiter.state("a", "looked at")
        assert await limiter.aio.statistics() == limiter.statistics()
        assert (await limiter.aio.check()).method == "table"

    asyncio.run(main())
