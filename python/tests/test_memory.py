# SPDX-License-Identifier: MIT
"""The model by a clock that is moved by hand: exact answers, and what is stored after each.

Rates are powers of two and times multiples of their parts, so that nothing is rounded.
"""

import gc
import threading
import time
import weakref

import pytest

from redbucket import FullError, InMemoryRateLimiter, RateLimit, Zone

RATE = 4.0
REJECTED = (False, None)


def make(clock, **limits):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(**limits)
    return limiter


class Watch:
    """Asks at moments after a start, and looks at what is stored."""

    def __init__(self, clock, limiter):
        self.clock, self.limiter, self.start = clock, limiter, clock.now

    def ask(self, after, **keys):
        self.clock.now = self.start + after
        return self.limiter.request(**keys)

    def stored(self, limit, key="k"):
        state = self.limiter.state(limit, key)
        return None if state is None else (state.timestamp - self.start, state.value)


def test_the_first_of_each_key_passes(clock):
    watch = Watch(clock, make(clock, a=RateLimit(Zone("za", RATE)), b=RateLimit(Zone("zb", 1))))
    assert watch.stored("a") is None
    assert watch.ask(0, a="k") == (True, 0)
    assert watch.ask(.125, a="l", b="m") == (True, 0)
    assert watch.stored("a") == (0, 1) and watch.stored("a", "l") == (.125, 1)
    assert watch.stored("b", "m") == (.125, 1) and watch.stored("b") is None


def test_a_rate_alone(clock):
    watch = Watch(clock, make(clock, a=RateLimit(Zone("z", RATE))))
    assert watch.ask(0, a="k") == (True, 0)
    for after in (0, .125, .2421875):
        assert watch.ask(after, a="k") == REJECTED
        assert watch.stored("a") == (0, 1)
    assert watch.ask(.25, a="k") == (True, 0)
    assert watch.stored("a") == (.25, 1)
    assert watch.ask(9, a="k") == (True, 0)
    assert watch.stored("a") == (9, 1)


def test_a_burst(clock):
    watch = Watch(clock, make(clock, a=RateLimit(Zone("z", RATE), burst=3)))
    assert [watch.ask(0, a="k") for _ in range(5)] == [(True, 0)] * 4 + [REJECTED]
    assert watch.stored("a") == (0, 4)
    assert watch.ask(.125, a="k") == REJECTED
    assert watch.stored("a") == (0, 4)
    assert watch.ask(.375, a="k") == (True, 0)
    assert watch.stored("a") == (.375, 3.5)
    assert watch.ask(.375, a="k") == REJECTED
    assert [watch.ask(1.125, a="k") for _ in range(4)] == [(True, 0)] * 3 + [REJECTED]
    assert watch.stored("a") == (1.125, 3.5)
    assert [watch.ask(60, a="k").accepted for _ in range(5)] == [True] * 4 + [False]


def test_a_delay(clock):
    watch = Watch(clock, make(clock, a=RateLimit(Zone("z", RATE), delay=3)))
    assert [watch.ask(0, a="k") for _ in range(5)] == [
        (True, 0), (True, .25), (True, .5), (True, .75), REJECTED]
    assert watch.stored("a") == (0, 4)
    assert watch.ask(.125, a="k") == REJECTED
    assert watch.ask(.3125, a="k") == (True, .6875)
    assert watch.stored("a") == (.3125, 3.75)
    assert watch.ask(2, a="k") == (True, 0)
    assert watch.stored("a") == (2, 1)


def test_burst_and_delay(clock):
    watch = Watch(clock, make(clock, a=RateLimit(Zone("z", RATE), burst=1, delay=2)))
    assert [watch.ask(0, a="k") for _ in range(5)] == [
        (True, 0), (True, 0), (True, .25), (True, .5), REJECTED]
    assert watch.ask(.5, a="k") == (True, .25)
    assert watch.ask(.5, a="k") == (True, .5)
    assert watch.ask(.5, a="k") == REJECTED
    assert watch.stored("a") == (.5, 4)


def test_two_limits_are_taken_together_or_not_at_all(clock):
    watch = Watch(clock, make(clock, slow=RateLimit(Zone("slow", 1)),
                              fast=RateLimit(Zone("fast", 2))))
    assert watch.ask(0, slow="k", fast="k") == (True, 0)
    for after, keys in ((.25, ("slow",)), (.25, ("fast",)), (.25, ("slow", "fast")),
                        (.5, ("slow", "fast")), (.5, ("fast", "slow"))):
        assert watch.ask(after, **dict.fromkeys(keys, "k")) == REJECTED
        assert watch.stored("slow") == watch.stored("fast") == (0, 1)
    assert watch.ask(.5, fast="k") == (True, 0)
    assert watch.stored("fast") == (.5, 1) and watch.stored("slow") == (0, 1)
    # Now the other one is in the way.
    assert watch.ask(.9375, slow="k", fast="k") == REJECTED
    assert watch.ask(1, slow="k") == (True, 0)
    assert watch.ask(1, fast="k", slow="k") == REJECTED
    assert watch.stored("fast") == (.5, 1) and watch.stored("slow") == (1, 1)
    assert watch.ask(2, fast="k", slow="k") == (True, 0)
    assert watch.stored("fast") == watch.stored("slow") == (2, 1)


def test_three_limits_the_longest_delay_counts(clock):
    watch = Watch(clock, make(
        clock, wide=RateLimit(Zone("wide", 1), burst=8), late=RateLimit(Zone("late", 2), delay=2),
        both=RateLimit(Zone("both", 4), burst=1, delay=1)))
    keys = {"wide": "k", "late": "k", "both": "k"}
    assert watch.ask(0, **keys) == (True, 0)
    assert watch.ask(0, **keys) == (True, .5)
    assert watch.ask(0, **keys) == (True, 1.0)
    assert watch.ask(0, **keys) == REJECTED
    assert [watch.stored(limit) for limit in keys] == [(0, 3)] * 3
    assert watch.ask(.25, wide="k", both="k") == (True, .25)
    assert watch.stored("late") == (0, 3) and watch.stored("wide") == (.25, 3.75)
    assert watch.ask(.5, **keys) == (True, 1.0)
    assert [watch.stored(limit) for limit in keys] == [(.5, 4.5), (.5, 3), (.5, 3)]


def test_a_clock_that_steps_back_drains_nothing(clock):
    watch = Watch(clock, make(clock, a=RateLimit(Zone("z", 1), burst=1)))
    assert watch.ask(10, a="k") == (True, 0)
    assert watch.ask(5, a="k") == (True, 0)
    assert watch.stored("a") == (10, 2)
    assert watch.ask(5, a="k") == REJECTED


def test_a_client_at_exactly_the_rate_is_never_kept_out(clock):
    clock.now = 1.7e9
    limiter = make(clock, a=RateLimit(Zone("z", 10)))
    for step in range(50):
        clock.now = 1.7e9 + step * .1
        assert limiter.request(a="k") == (True, 0)


class TestClock:
    def test_is_asked_once_a_call(self, clock):
        limiter = make(clock, a=RateLimit(Zone("z", 1)), b=RateLimit(Zone("y", 1)))
        limiter.request(a="k", b="k")
        assert clock.asked == 1
        limiter.request_many([{"a": "k"}, {"b": "k"}])
        assert clock.asked == 2

    @pytest.mark.parametrize("nonsense", ["noon", None])
    def test_that_says_no_number(self, nonsense):
        limiter = make(lambda: nonsense, a=RateLimit(Zone("z", 1)))
        with pytest.raises(TypeError):
            limiter.request(a="k")

    @pytest.mark.parametrize("nonsense", [float("nan"), float("inf")])
    def test_that_says_no_time(self, nonsense):
        limiter = make(lambda: nonsense, a=RateLimit(Zone("z", 1)))
        with pytest.raises(ValueError):
            limiter.request(a="k")

    def test_that_raises(self):
        limiter = make(lambda: 1 / 0, a=RateLimit(Zone("z", 1)), b=RateLimit(Zone("y", 1)))
        with pytest.raises(ZeroDivisionError):
            limiter.request(a="k", b="k")
        with pytest.raises(ZeroDivisionError):
            limiter.request_many([{"a": "k"}])

    def test_that_is_none(self):
        with pytest.raises(TypeError):
            InMemoryRateLimiter(clock=12.0)

    def test_of_the_store_goes_by_itself(self):
        limiter = make(None, a=RateLimit(Zone("z", 1e6)))
        first = limiter.request(a="k").time
        time.sleep(.001)
        assert limiter.request(a="k").time >= first + .001

    def test_in_a_cycle_is_collected(self):
        class Own:
            def __call__(self):
                return 1.0

        own = Own()
        own.limiter = make(own, a=RateLimit(Zone("z", 1)))
        gone = weakref.ref(own)
        del own
        gc.collect()
        assert gone() is None


def test_two_limiters_share_nothing(clock):
    one, other = (make(clock, a=RateLimit(Zone("z", 1))) for _ in range(2))
    assert one.request(a="k") == (True, 0)
    assert other.request(a="k") == (True, 0)
    assert one.request(a="k") == REJECTED


class TestSize:
    def test_is_a_bound(self, clock):
        limiter = InMemoryRateLimiter(size="64k", clock=clock)
        limiter.configure(a=RateLimit(Zone("z", .01)))
        with pytest.raises(FullError):
            for number in range(100_000):
                limiter.request(a=number)
        assert limiter.statistics().full == 1
        clock.now += 101
        assert limiter.request(a="late") == (True, 0)

    def test_may_grow(self, clock):
        limiter = InMemoryRateLimiter(grow=True, clock=clock)
        limiter.configure(a=RateLimit(Zone("z", .01)))
        assert all(limiter.request(a=number).accepted for number in range(10_000))
        assert limiter.statistics().buckets == 10_000

    def test_a_policy_may_answer(self, clock):
        limiter = InMemoryRateLimiter(size="64k", on_error="closed", clock=clock)
        limiter.configure(a=RateLimit(Zone("z", .01)))
        answers = [limiter.request(a=number) for number in range(5_000)]
        assert answers[-1] == REJECTED and answers[-1].degraded and not answers[0].degraded

    @pytest.mark.parametrize("size", ["", "1", "x", -1, "64q"])
    def test_nonsense(self, size):
        with pytest.raises(ValueError):
            InMemoryRateLimiter(size=size)


class TestClose:
    def test_nothing_is_asked_afterwards(self, clock):
        limiter = make(clock, a=RateLimit(Zone("z", 1)))
        with limiter as same:
            assert same is limiter and not limiter.closed
            limiter.request(a="k")
        assert limiter.closed
        for ask in (lambda: limiter.request(a="k"), lambda: limiter.state("a", "k"),
                    limiter.statistics, limiter.check, lambda: limiter.acquire(a="k"),
                    lambda: limiter.request_many([])):
            with pytest.raises(RuntimeError):
                ask()
        limiter.close()
        assert "memory" in repr(limiter)

    def test_in_the_middle_of_a_call(self, clock):
        limiter = make(clock, a=RateLimit(Zone("z", 1), burst=9))

        class Closing:
            def __str__(self):
                limiter.close()
                return "k"

        assert limiter.request(a=Closing()) == (True, 0)
        with pytest.raises(RuntimeError):
            limiter.request(a="k")

    def test_in_many_threads(self):
        limiter = make(None, a=RateLimit(Zone("z", 1e6), burst=1e6))
        ended = []

        def ask():
            try:
                while True:
                    limiter.request_many([{"a": "k"}] * 64)
            except RuntimeError:
                ended.append(True)

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        limiter.close()
        for thread in threads:
            thread.join()
        assert len(ended) == 8

    def test_before_it_was_opened(self):
        limiter = InMemoryRateLimiter.__new__(InMemoryRateLimiter)
        with pytest.raises(RuntimeError):
            limiter.configure(a=RateLimit(Zone("z", 1)))
        with pytest.raises(RuntimeError):
            limiter.request(a="k")
        limiter.close()
        with pytest.raises(RuntimeError):
            limiter.__init__()

    def test_opened_twice(self):
        limiter = InMemoryRateLimiter()
        with pytest.raises(RuntimeError):
            limiter.__init__()


