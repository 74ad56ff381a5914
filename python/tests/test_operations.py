# SPDX-License-Identifier: MIT
"""Everything beside a request: cost, peek, refund, charge, reset, give back, many, looking."""

import math
import pickle

import pytest

from redbucket import (
    InMemoryRateLimiter,
    RateLimit,
    Response,
    SharedMemoryRateLimiter,
    State,
    StoreError,
    Zone,
    from_url,
)


@pytest.fixture
def limiter(clock):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(a=RateLimit(Zone("za", 2), burst=3, delay=2), b=RateLimit(Zone("zb", 4)))
    return limiter


def value(limiter, limit="a", key="k"):
    state = limiter.state(limit, key)
    return state and state.value


class TestCost:
    def test_is_taken_at_once(self, limiter):
        assert limiter.request(a="k", cost=4).remaining == 0
        assert limiter.request(a="k", cost=1.5) == (True, .75)
        assert limiter.request(a="k", cost=1) == (False, None)
        assert value(limiter) == 5.5

    @pytest.mark.parametrize("cost", [0, -1, 9e-4, 2e12, math.nan, math.inf])
    @pytest.mark.parametrize("method", ["request", "peek", "refund", "charge", "acquire"])
    def test_out_of_range(self, limiter, method, cost):
        with pytest.raises(ValueError, match="cost"):
            getattr(limiter, method)(a="k", cost=cost)
        assert value(limiter) is None

    @pytest.mark.parametrize("cost", [None, "1", [1]])
    def test_no_number(self, limiter, cost):
        with pytest.raises(TypeError):
            limiter.request(a="k", cost=cost)
        with pytest.raises(TypeError):
            limiter.request({"a": "k"}, cost=cost)

    def test_more_than_ever_fits(self, limiter):
        response = limiter.request(a="k", cost=7)
        assert response == (False, None) and response.retry_after == math.inf
        assert limiter.request(a="k", cost=6) == (True, 1.0)


def test_peek_changes_nothing(limiter, clock):
    for _ in range(3):
        assert limiter.peek(a="k", b="k") == (True, 0)
        assert value(limiter) is None
    limiter.request(a="k", cost=6)
    assert limiter.peek(a="k").retry_after == pytest.approx(.5, abs=1e-5)
    assert limiter.peek(a="k", cost=6).decided == "a"
    assert limiter.peek(a="other").remaining == 3  # what a request would leave
    assert value(limiter) == 6


def test_refund(limiter, clock):
    limiter.request(a="k", cost=4)
    clock.now += .5
    assert limiter.refund(a="k").remaining == 2
    assert value(limiter) == 2
    assert limiter.refund(a="k", cost=50) == (True, 0)
    assert value(limiter) == 0
    assert limiter.refund(a="none").accepted and value(limiter, key="none") is None


def test_charge_takes_past_every_bound(limiter, clock):
    response = limiter.charge(a="k", cost=26)
    assert response == (True, 0) and response.remaining == 0 and response.reset_after == 13
    assert limiter.request(a="k").retry_after == pytest.approx(10.5, abs=1e-4)
    clock.now += 10.5
    assert limiter.request(a="k").accepted


def test_reset_forgets(limiter):
    limiter.charge(a="k", b="k", cost=9)
    assert limiter.reset(a="k", b="k") == (True, 0)
    assert value(limiter) is None and value(limiter, "b") is None
    assert limiter.request(a="k", b="k") == (True, 0)


class TestGiveBack:
    def test_only_what_cannot_have_drained(self, limiter, clock):
        permit = limiter.request(a="k", cost=4)
        clock.now += 1
        limiter.give_back(permit, a="k", cost=4)  # 2 of the 4 have drained
        assert value(limiter) == 0
        permit = limiter.request(a="k")
        limiter.give_back(permit, {"a": "k"})
        assert value(limiter) == 0

    def test_what_was_drained_is_not_given_twice(self, limiter, clock):
        permit = limiter.request(a="k", cost=4)
        clock.now += 10
        limiter.request(a="k", cost=4)
        limiter.give_back(permit, a="k", cost=4)
        assert value(limiter) == 4

    def test_of_no_permit(self, limiter):
        for nonsense in (None, (True, 0), "x", {"a": "k"}):
            with pytest.raises(TypeError):
                limiter.give_back(nonsense, a="k")
        with pytest.raises(ValueError):
            limiter.give_back(Response(False, None), a="k")


class TestMany:
    def test_in_order_and_each_by_itself(self, limiter):
        responses = limiter.request_many([{"b": "k"}, {"b": "k"}, {"a": "k", "b": "l"}, {}])
        assert responses == [(True, 0), (False, None), (True, 0), (True, 0)]
        assert responses[1].decided == "b" and list(responses[2].limits) == ["a", "b"]

    def test_costs(self, limiter):
        responses = limiter.request_many([({"a": "k"}, 3), {"a": "k"}, ({"a": "k"}, .5)], cost=2)
        assert [response.remaining for response in responses] == [1, 0, 0]
        assert responses[1] == (True, .5) and value(limiter) == 5.5

    def test_of_any_iterable_and_length(self, limiter):
        assert limiter.request_many([]) == []
        responses = limiter.request_many({"a": number, "b": number} for number in range(5000))
        assert len(responses) == 5000 and all(response == (True, 0) for response in responses)

    def test_a_wrong_one_is_found_before_anything_is_decided(self, limiter):
        for wrong in (None, {"a": None}, ({"a": "k"},), ({"a": "k"}, "x"), 7):
            with pytest.raises(TypeError):
                limiter.request_many([{"a": "k"}, wrong])
        with pytest.raises(TypeError):
            limiter.request_many(None)
        with pytest.raises(ZeroDivisionError):
            limiter.request_many({"a": 1 / number} for number in (1, 0))
        assert value(limiter) is None

    def test_one_that_fails_stops_no_other(self, limiter):
        responses = limiter.request_many([{"a": "k"}, {"nonsense": "k"}, ({"a": "k"}, 0), {"a": "k"}],
                                         return_exceptions=True)
        assert responses[0] == responses[3] == (True, 0)
        assert isinstance(responses[1], KeyError) and responses[1].args == ("nonsense",)
        assert isinstance(responses[2], ValueError)
        with pytest.raises(KeyError):
            limiter.request_many([{"a": "k"}, {"nonsense": "k"}])
        assert value(limiter) == 3

    def test_what_was_answered_is_with_the_error(self, limiter):
        with pytest.raises(StoreError) as caught:
            limiter.request_many([{"a": "k"}, {"a": "x" * (2 << 20)}])
        answered, failed = caught.value.responses
        assert answered == (True, 0) and failed is caught.value


class TestLooking:
    def test_state(self, limiter, clock):
        assert limiter.state("a", "k") is None
        limiter.request(a="k")
        state = limiter.state("a", "k")
        assert state == State(clock.now, 1.0) == (clock.now, 1.0)
        assert state.timestamp == clock.now and state.value == 1
        with pytest.raises(KeyError) as caught:
            limiter.state("nonsense", "k")
        assert caught.value.args == ("nonsense",)
        with pytest.raises(TypeError):
            limiter.state(1, "k")

    def test_statistics(self, limiter):
        limiter.request(a="k", cost=4)
        limiter.request(a="k")
        limiter.request(a="k", cost=9)
        limiter.peek(a="k")
        counted = limiter.statistics()
        assert (counted.accepted, counted.delayed, counted.rejected) == (2, 1, 1)
        assert counted.buckets == 1 and counted.capacity > 1000 and counted.bytes > 0
        assert counted.failed == counted.degraded == counted.denied == counted.leased == 0

    def test_check(self, limiter):
        health = limiter.check()
        assert health.method == "table" and health.server == "" and health.round_trip == 0
        assert isinstance(health.warnings, tuple)


class TestShared:
    @pytest.fixture
    def name(self, shared_name):
        return shared_name

    def test_by_name(self, name):
        one, other = (SharedMemoryRateLimiter(name, size="1m", mode=0o600) for _ in range(2))
        for limiter in (one, other):
            limiter.configure(a=RateLimit(Zone("z", 1)))
        assert one.request(a="k") == (True, 0)
        assert other.request(a="k") == (False, None)
        assert other.state("a", "k") == one.state("a", "k")
        assert name in repr(one)

    def test_of_another_size(self, name):
        from redbucket import MismatchError
        SharedMemoryRateLimiter(name, size="1m")
        with pytest.raises(MismatchError):
            SharedMemoryRateLimiter(name, size="2m")

    @pytest.mark.parametrize("wrong", [{"name": ""}, {"name": "a/b"}, {"name": "a\0b"},
                                       {"mode": 0o7777}, {"size": "x"}, {"timeout": "x"}])
    def test_nonsense(self, wrong):
        with pytest.raises(ValueError):
            SharedMemoryRateLimiter(**wrong)

    def test_time_is_its_own(self, name):
        limiter = from_url(f"shm:{name}?size=1m", clock=lambda: 12.0)
        limiter.configure(a=RateLimit(Zone("z", 1)))
        assert limiter.request(a="k").time == 12.0


def test_a_limiter_is_not_pickled(limiter):
    with pytest.raises(TypeError):
        pickle.dumps(limiter)
