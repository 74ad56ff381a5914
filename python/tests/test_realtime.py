# SPDX-License-Identifier: MIT
"""Limits in real time, on each kind of store: who asks at known moments gets known answers."""

import threading
import time

import pytest
from pytest import approx

from redbucket import (
    InMemoryRateLimiter,
    RateLimit,
    RedisScriptRateLimiter,
    RedisTransactionalRateLimiter,
    SharedMemoryRateLimiter,
    Zone,
)

SLACK = .06


@pytest.fixture(params=["memory", "shared", "script", "transaction"])
def limiter(request, server_url, key_format, shared_name):
    if request.param == "memory":
        yield InMemoryRateLimiter()
    elif request.param == "shared":
        yield SharedMemoryRateLimiter(shared_name, size="1m")
    else:
        kind = {"script": RedisScriptRateLimiter, "transaction": RedisTransactionalRateLimiter}
        yield kind[request.param](server_url, key_format)


def asked_every(limiter, interval, count, **keys):
    """Answers to requests at regular moments, and when each was really asked."""
    start, answers, moments = time.monotonic() + .02, [], []
    for number in range(count):
        time.sleep(max(start + number * interval - time.monotonic(), 0))
        moments.append(time.monotonic() - start)
        answers.append(limiter.request(**keys))
    return answers, moments


class Model:
    """The reference for one limit, by the times at which its store decided."""

    def __init__(self, rate, burst=0, delay=0):
        self.rate, self.burst, self.delay = rate, burst, delay
        self.level = self.last = 0.0

    def limit(self, zone):
        return RateLimit(Zone(zone, self.rate), self.burst, self.delay)

    def wait(self, now):
        """How long a request has to wait; None when it is rejected."""
        after = max(self.level - (now - self.last) * self.rate, 0) + 1
        excess = after - self.burst - 1
        return None if excess > self.delay + 2e-6 * self.rate else max(excess / self.rate, 0)

    def take(self, now):
        self.level = max(self.level - (now - self.last) * self.rate, 0) + 1
        self.last = now


def check(limiter, interval, count, **models):
    """Asks for all limits at once, and compares each answer with those of the models."""
    limiter.configure(**{name: model.limit("z" + name) for name, model in models.items()})
    answers, moments = asked_every(limiter, interval, count, **dict.fromkeys(models, "k"))
    for answer, moment in zip(answers, moments):
        # The store's clock goes as ours does.
        assert answer.time - answers[0].time == approx(moment - moments[0], abs=SLACK)
        waits = [model.wait(answer.time) for model in models.values()]
        if None in waits:
            assert answer == (False, None)
            continue
        assert answer.accepted and answer.delay == approx(max(waits), abs=1e-4)
        for model in models.values():
            model.take(answer.time)
    return "".join("+" if answer.accepted else "-" for answer in answers)


def test_a_rate(limiter):
    assert check(limiter, .03, 9, a=Model(rate=14)).count("+") in (3, 4, 5)


def test_a_burst(limiter):
    assert check(limiter, .03, 9, a=Model(rate=14, burst=2)).startswith("+++")


def test_a_delay(limiter):
    assert check(limiter, .03, 9, a=Model(rate=14, delay=2)).startswith("+++")


def test_burst_and_delay(limiter):
    assert "-" in check(limiter, .03, 12, a=Model(rate=7, burst=1, delay=1))


def test_two_limits(limiter):
    few, slow = Model(rate=.5, burst=3), Model(rate=14, delay=2)
    assert check(limiter, .03, 9, few=few, slow=slow).startswith("+++")


def test_threads(limiter):
    rate = 20
    limiter.configure(a=RateLimit(Zone("z", rate)))
    moments, end = [], time.monotonic() + .5

    def press():
        while time.monotonic() < end:
            if limiter.request(a="k").accepted:
                moments.append(time.monotonic())
            time.sleep(.0005)

    threads = [threading.Thread(target=press) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 + .5 * rate * .7 <= len(moments) <= 1 + .5 * rate + 1


def test_an_unknown_limit_and_no_limit(limiter):
    limiter.configure(a=RateLimit(Zone("z", 1)))
    with pytest.raises(KeyError) as caught:
        limiter.request(b="k")
    assert caught.value.args == ("b",)
    assert limiter.request() == (True, 0)
