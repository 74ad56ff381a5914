# SPDX-License-Identifier: MIT
"""Permits for blocks and functions, of plain functions and of coroutines."""

import asyncio
import inspect
import math
import pickle
import time

import pytest

from redbucket import InMemoryRateLimiter, RateLimit, Rejected, Zone


@pytest.fixture
def slept(clock, monkeypatch):
    """What was slept, of either kind, by a clock that the sleep moves."""
    pauses = []
    pause = asyncio.sleep

    def sleep(seconds):
        pauses.append(seconds)
        clock.now += seconds

    async def async_sleep(seconds):
        sleep(seconds)
        await pause(0)

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(asyncio, "sleep", async_sleep)
    return pauses


def limit(name, rate, **options):
    return RateLimit(Zone(name, rate, expiry=0), **options)


@pytest.fixture
def limiter(clock):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(user=limit("user", 1, burst=1, delay=1), all=limit("all", 10, burst=99))
    return limiter


def left(limiter, **keys):
    """How many would pass at once: a peek tells what would be left after one more."""
    answer = limiter.peek(**keys)
    return answer.remaining + (answer == (True, 0.0))


# ---- Blocks ----------------------------------------------------------------------------------


def test_a_block_is_entered_with_a_permit(limiter, slept):
    with limiter.permit(user="alice", all="") as response:
        assert response == (True, 0.0) and response.remaining == 1
    assert left(limiter, user="alice") == 1


def test_a_delay_is_slept_out_before_it(limiter, slept):
    permit = limiter.permit(user="alice")
    for _ in range(2):
        with permit:
            pass
    assert sum(slept) == 0
    with permit as response:
        assert response.delay == 0
    assert sum(slept) == 1


def test_without_a_permit_in_time_it_is_not_entered(limiter, slept):
    for _ in range(3):
        limiter.request(user="alice")
    entered = []
    with pytest.raises(Rejected) as caught:
        with limiter.permit(user="alice", all="", timeout=0):
            entered.append(1)
    assert entered == [] and slept == []
    rejected = caught.value
    assert rejected.response.accepted is False
    assert rejected.retry_after == rejected.response.retry_after == 1.0
    assert str(rejected) == "rejected by user, retry after 1 s"
    assert left(limiter, all="") == 100


def test_it_is_waited_for_until_the_timeout(limiter, slept):
    for _ in range(3):
        limiter.request(user="alice")
    with limiter.permit(user="alice", timeout=3):
        assert sum(slept) == 2  # until there is room, then the delay of what was taken


def test_a_block_that_fails_has_used_its_permit(limiter, slept):
    with pytest.raises(ZeroDivisionError):
        with limiter.permit(user="alice"):
            raise ZeroDivisionError
    assert left(limiter, user="alice") == 1


def test_costs_and_mappings(limiter, slept):
    with limiter.permit({"all": 7}, cost=40):
        assert left(limiter, all="7") == 60
    with pytest.raises(Rejected) as caught:
        with limiter.permit({"all": 7}, cost=1000):
            pass
    assert math.isinf(caught.value.retry_after)
    assert str(caught.value) == "rejected by all, whatever the wait"


def test_faults_are_raised_as_by_request(limiter):
    with pytest.raises(KeyError):
        with limiter.permit(nope="alice"):
            pass
    with pytest.raises(TypeError):
        limiter.permit({"user": "alice"}, nope=1)
    with pytest.raises(RuntimeError):
        InMemoryRateLimiter().permit(user="alice")


def test_rejected_can_be_sent_to_another_process(limiter, slept):
    rejected = Rejected(limiter.request(all="", cost=1000))
    copy = pickle.loads(pickle.dumps(rejected))
    assert copy.response == (False, None) and copy.retry_after == math.inf
    assert str(copy) == "rejected, whatever the wait"


def test_blocks_of_coroutines(limiter, slept):
    async def main(kind):
        async with kind.permit(user="alice") as response:
            assert response == (True, 0.0)
        async with kind.permit(user="alice"):
            pass
        with pytest.raises(Rejected):
            async with kind.permit(user="alice", timeout=0.5):
                raise AssertionError
        limiter.reset(user="alice")

    asyncio.run(main(limiter))
    asyncio.run(main(limiter.aio))
    with pytest.raises((TypeError, AttributeError)):
        with limiter.aio.permit(user="alice"):
            pass


# ---- Functions -------------------------------------------------------------------------------


def test_keys_of_a_calls_arguments(limiter, slept):
    @limiter.limited(user=lambda user, text, **_: user, all="", timeout=0)
    def send(user, text, loud=False):
        """Sends."""
        return text.upper() if loud else text

    assert send("alice", "a") == "a"
    assert send("alice", text="b", loud=True) == "B"
    assert send("bob", "c") == "c"
    assert left(limiter, user="alice") == 0 and left(limiter, all="") == 97
    with pytest.raises(Rejected):
        send("alice", "d")
    assert left(limiter, all="") == 97
    assert send.__name__ == "send" and send.__doc__ == "Sends."
    assert list(inspect.signature(send).parameters) == ["user", "text", "loud"]


def test_a_call_waits(limiter, slept):
    @limiter.limited(user="alice")
    def work():
        return len(slept)

    work(), work(), work(), work()
    assert sum(slept) == 2


def test_one_function_for_all_keys(limiter, slept):
    @limiter.limited(lambda who: {"user": who, "all": "everybody"}, timeout=0)
    def work(who):
        return who

    assert work("alice") == "alice"
    assert left(limiter, user="alice") == 1 and left(limiter, all="everybody") == 99

    @limiter.limited({"user": lambda who: who}, cost=lambda who: len(who), timeout=0)
    def work_more(who):
        return who

    assert work_more("bo") == "bo"
    with pytest.raises(Rejected):
        work_more("alice")


def test_a_key_of_none_leaves_the_limit_out(limiter, slept):
    @limiter.limited(user=lambda who: who, timeout=0)
    def work(who):
        return who

    assert [work(None) for _ in range(9)] == [None] * 9


def test_methods_and_limits_that_come_later(slept):
    limiter = InMemoryRateLimiter()

    class Mailer:
        @limiter.limited(user=lambda self, to: to, timeout=0)
        def send(self, to):
            return self, to

    mailer = Mailer()
    with pytest.raises(RuntimeError):
        mailer.send("alice")
    limiter.configure(user=limit("user", 1))
    assert mailer.send("alice") == (mailer, "alice")
    with pytest.raises(Rejected):
        mailer.send("alice")


def test_a_limit_whose_name_is_an_option(slept):
    limiter = InMemoryRateLimiter()
    limiter.configure(timeout=limit("timeout", 1))

    @limiter.limited(timeout="key")
    def work():
        return left(limiter, timeout="key")

    assert work() == 0

    @limiter.limited({"timeout": "other"}, timeout=0)
    def work_too():
        return left(limiter, timeout="other")

    assert work_too() == 0
    with pytest.raises(Rejected):
        work_too()


def test_coroutine_functions(limiter, slept):
    async def main(kind):
        @kind.limited(user=lambda who: who, timeout=0)
        async def work(who):
            await asyncio.sleep(0)
            return who

        assert inspect.iscoroutinefunction(work)
        assert await work("alice") == "alice"
        await work("alice")
        with pytest.raises(Rejected):
            await work("alice")
        limiter.reset(user="alice")

    asyncio.run(main(limiter))
    asyncio.run(main(limiter.aio))


def test_what_cant_be_limited(limiter):
    async def generator():
        yield 1

    with pytest.raises(TypeError, match="generator"):
        limiter.limited(user="alice")(generator)
    with pytest.raises(TypeError, match="coroutine"):
        limiter.aio.limited(user="alice")(lambda: None)
