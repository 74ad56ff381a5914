# SPDX-License-Identifier: MIT
"""Waiting for a permit, mostly without waiting: time is moved by the sleeps themselves."""

import math
import os
import signal
import threading
import time

import pytest

from redbucket import InMemoryRateLimiter, RateLimit, Zone, _patience, base


class Time:
    """A clock for limiter and waiting alike, which sleeping moves."""

    def __init__(self):
        self.now = 1000.0
        self.slept = []

    def __call__(self):
        return self.now

    monotonic = __call__

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    moved = Time()
    monkeypatch.setattr(base, "time", moved)
    monkeypatch.setattr(_patience, "time", moved)
    return moved


def make(clock, **limit):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(a=RateLimit(Zone("z", 2), **limit))
    return limiter


def test_at_once(clock):
    response = make(clock).acquire(a="k")
    assert response == (True, 0) and response.waited == 0 and response.remaining == 0


def test_a_delay_is_slept_out(clock):
    limiter = make(clock, delay=3)
    limiter.request(a="k", cost=2)
    response = limiter.acquire(a="k")
    assert response == (True, 0) and clock.slept == [1.0] and response.waited == 1.0


def test_asks_again_after_a_rejection(clock):
    limiter = make(clock, burst=1)
    limiter.request(a="k", cost=2)
    response = limiter.acquire(a="k", cost=2, timeout=5)
    assert response == (True, 0)
    assert response.waited == pytest.approx(1, abs=1e-5) == sum(clock.slept)


def test_as_long_as_it_takes(clock):
    limiter = make(clock)
    limiter.charge(a="k", cost=1000)
    assert limiter.acquire(a="k", timeout=None).waited == pytest.approx(500, abs=1e-3)


def test_not_in_time_is_a_rejection(clock):
    limiter = make(clock)
    limiter.request(a="k")
    response = limiter.acquire(a="k", timeout=.25)
    assert response == (False, None) and response.waited == .25 == sum(clock.slept)
    assert response.retry_after == pytest.approx(.25, abs=1e-5)
    assert limiter.state("a", "k").value == 1


def test_no_time_at_all(clock):
    limiter = make(clock, delay=1)
    assert limiter.acquire(a="k", timeout=0) == (True, 0)
    assert limiter.acquire(a="k", timeout=0) == (False, None)
    assert limiter.acquire(a="k", timeout=-5) == (False, None)
    assert clock.slept == [0.0] or clock.slept == []
    assert limiter.state("a", "k").value == 1


def test_a_delay_that_is_too_long_is_given_back(clock):
    limiter = make(clock, delay=3)
    limiter.request(a="k", cost=2)
    response = limiter.acquire(a="k", timeout=.5)
    assert response == (False, None) and clock.slept == []
    assert response.retry_after == .5  # then it would fit
    assert limiter.state("a", "k").value == 2
    assert limiter.acquire(a="k", timeout=1) == (True, 0)
    assert limiter.state("a", "k").value == 3


def test_what_never_fits_is_rejected_at_once(clock):
    response = make(clock).acquire(a="k", cost=9)
    assert response == (False, None) and response.retry_after == math.inf and clock.slept == []


def test_raises_as_a_request_does(clock):
    limiter = make(clock)
    with pytest.raises(KeyError):
        limiter.acquire(b="k")
    with pytest.raises(ValueError):
        limiter.acquire(a="k", timeout=math.nan)
    with pytest.raises((TypeError, ValueError)):
        limiter.acquire(a="k", timeout="soon")
    with pytest.raises(RuntimeError):
        InMemoryRateLimiter().acquire(a="k")


def test_interrupted_the_permit_goes_back(clock):
    limiter = make(clock, delay=3)
    limiter.request(a="k")

    def interrupt(_):
        raise KeyboardInterrupt

    clock.sleep = interrupt
    with pytest.raises(KeyboardInterrupt):
        limiter.acquire(a="k")
    assert limiter.state("a", "k").value == 1


def test_ctrl_c_in_real_time():
    limiter = InMemoryRateLimiter()
    limiter.configure(a=RateLimit(Zone("z", 1), delay=30))
    limiter.request(a="k", cost=20)
    threading.Timer(.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        limiter.acquire(a="k")
    assert time.monotonic() - begin < 5


def test_many_who_wait_keep_to_the_rate():
    limiter = InMemoryRateLimiter()
    limiter.configure(a=RateLimit(Zone("z", 50)))
    times = []

    def wait():
        assert limiter.acquire(a="k", timeout=30).accepted
        times.append(time.monotonic())

    threads = [threading.Thread(target=wait) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(times) == 10 and max(times) - min(times) >= 9 / 50 - .005
