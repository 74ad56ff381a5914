# SPDX-License-Identifier: MIT
"""Zones, limits and answers are named tuples; an answer knows more than its tuple."""

import copy
import gc
import math
import pickle
import sys

import pytest

import redbucket
from redbucket import InMemoryRateLimiter, RateLimit, RateLimiter, Response, Zone


def limiter_of(clock, **limits):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(**limits)
    return limiter


def test_everything_public_is_there():
    assert sorted(redbucket.__all__) == list(redbucket.__all__)
    for name in redbucket.__all__:
        assert getattr(redbucket, name).__doc__
    for name in ("Zone", "RateLimit", "Response", "RateLimiter", "InMemoryRateLimiter",
                 "RedisRateLimiter", "RedisScriptRateLimiter", "RedisTransactionalRateLimiter",
                 "SharedMemoryRateLimiter"):
        assert name in redbucket.__all__


def test_methods_have_docstrings():
    for name in ("request", "peek", "refund", "charge", "reset", "give_back", "acquire",
                 "request_many", "state", "statistics", "check", "close", "configure"):
        assert getattr(InMemoryRateLimiter, name).__doc__.strip()


def test_defaults_and_order():
    assert Zone("z", 5) == ("z", 5, 60)
    assert RateLimit(Zone("z", 5)) == (("z", 5, 60), 0, 0)
    assert RateLimit(Zone("z", 5, 7), 1, 2) == RateLimit(zone=Zone(name="z", rate=5, expiry=7),
                                                       burst=1, delay=2)
    assert Zone._fields == ("name", "rate", "expiry")
    assert RateLimit._fields == ("zone", "burst", "delay")


def test_a_limiter_is_abstract():
    with pytest.raises(TypeError):
        RateLimiter()
    assert issubclass(InMemoryRateLimiter, RateLimiter)
    assert issubclass(redbucket.RedisRateLimiter, RateLimiter)


def test_a_limiter_of_ones_own():
    class Own(RateLimiter):
        def _request(self, keys):
            return Response("good" in keys.values(), 0)

    limiter = Own()
    with pytest.raises(RuntimeError):
        limiter.request(a="good")
    limiter.configure(a=RateLimit(Zone("z", 1)))
    assert limiter.request(a="good") == (True, 0)
    assert limiter.request({"a": "bad"}).accepted is False


class TestResponse:
    def test_made_by_hand(self):
        response = Response(True, 1.5)
        accepted, delay = response
        assert (accepted, delay) == (True, 1.5) == response
        assert response[0] is True and response.delay == 1.5 and len(response) == 2
        assert isinstance(response, tuple)
        assert repr(response) == "Response(accepted=True, delay=1.5)"
        assert Response(accepted=False, delay=None) == (False, None)
        assert (response.retry_after, response.reset_after, response.waited) == (0, 0, 0)
        assert response.remaining is None and response.decided is None
        assert response.limits == {} and response.degraded is False

    def test_made_by_hand_in_full(self):
        response = Response(False, None, retry_after=2.5, remaining=0, reset_after=9, degraded=True,
                            time=3.0)
        assert response.retry_after == 2.5 and response.remaining == 0
        assert response.reset_after == 9.0 and response.degraded is True and response.time == 3.0

    @pytest.mark.parametrize("wrong", [(), (True,), (True, 0, 0)])
    def test_wrong_arguments(self, wrong):
        with pytest.raises(TypeError):
            Response(*wrong)
        with pytest.raises(TypeError):
            Response(True, 0, nonsense=1)
        with pytest.raises(TypeError):
            Response(True, 0, remaining="many")

    def test_compares_and_hashes_as_a_pair(self):
        response = Response(True, 0, retry_after=5)
        assert response == Response(True, 0) and hash(response) == hash((True, 0))
        assert response != (True, 1) and response < (True, 1) and (True, 0) == response
        assert {response: 1}[True, 0] == 1
        assert response != [True, 0] and response != "x"

    def test_as_a_named_tuple(self):
        response = Response(True, 2.0)
        assert Response._fields == ("accepted", "delay")
        assert response._asdict() == {"accepted": True, "delay": 2.0}
        assert Response._make([False, None]) == (False, None)
        assert response._replace(delay=0) == (True, 0)
        with pytest.raises(TypeError):
            response._replace(nonsense=1)

    def test_copies_keep_what_it_knows(self, clock):
        limiter = limiter_of(clock, a=RateLimit(Zone("z", 2), burst=4), b=RateLimit(Zone("y", 1)))
        response = limiter.request(a="k", b="l")
        for other in (copy.copy(response), copy.deepcopy(response),
                      pickle.loads(pickle.dumps(response)), response._replace()):
            assert other == response and other.remaining == 0
            assert other.reset_after == response.reset_after == 1.0
            assert other.time == response.time == clock.now
        assert response._replace(delay=3.0).limits["a"].remaining == 4

    def test_can_be_made_more_of(self):
        class More(Response):
            pass

        more = More(True, 1)
        more.note = "x"
        assert more == (True, 1) and more.note == "x" and more._replace(delay=2) == (True, 2)
        assert more.retry_after == 0

    def test_of_several_limits(self, clock):
        limiter = limiter_of(clock, a=RateLimit(Zone("za", 1), delay=1),
                             b=RateLimit(Zone("zb", 2), burst=1))
        first = limiter.request(a="k", b="k")
        assert first.decided is None and first.remaining == 0
        second = limiter.request(b="k", a="k")
        assert second == (True, 1.0) and second.decided == "a"
        assert list(second.limits) == ["b", "a"]
        assert second.limits["a"] == (True, 1.0) and second.limits["b"] == (True, 0)
        third = limiter.request(a="k", b="k")
        assert third == (False, None) and third.decided == "a"
        assert third.limits["a"].retry_after == pytest.approx(1, abs=1e-5)
        assert third.limits["b"].retry_after == pytest.approx(.5, abs=1e-5)
        assert third.retry_after == third.limits["a"].retry_after
        assert third.limits["a"].limits["a"] == (False, None)

    def test_of_no_limit(self, clock):
        response = limiter_of(clock, a=RateLimit(Zone("z", 1))).request()
        assert response == (True, 0) and response.remaining is None and response.limits == {}

    def test_never(self, clock):
        response = limiter_of(clock, a=RateLimit(Zone("z", 1), burst=1)).request(a="k", cost=3)
        assert response == (False, None) and response.retry_after == math.inf

    def test_is_no_burden_to_the_collector_and_leaves_nothing(self, clock):
        limiter = limiter_of(clock, a=RateLimit(Zone("z", 1), burst=9), b=RateLimit(Zone("y", 1)))
        key = "".join(["k", "ey"])
        before = sys.getrefcount(key)
        responses = [limiter.request(a=key, b=key) for _ in range(100)]
        assert not any(gc.is_tracked(response) for response in responses)
        del responses
        assert sys.getrefcount(key) == before
