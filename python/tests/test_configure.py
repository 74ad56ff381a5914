# SPDX-License-Identifier: MIT
"""Setting the limits: once, each zone once, in range, and with a word when an expiry is short."""

import math
import warnings

import pytest

from redbucket import (
    InMemoryRateLimiter,
    RateLimit,
    RateLimiter,
    RedisRateLimiter,
    Response,
    Zone,
)

FAR = "redis://192.0.2.1"  # nothing is connected before the first request


class Own(RateLimiter):
    """Only what the base does."""

    def _request(self, keys):
        for name in keys:
            self._rate_limits[name]
        return Response(False, None)


@pytest.fixture(params=[InMemoryRateLimiter, lambda: RedisRateLimiter(FAR), Own],
                ids=["memory", "server", "own"])
def limiter(request):
    return request.param()


def test_a_zone_has_one_limit(limiter):
    twice = Zone("twice", 4)
    with pytest.raises(ValueError, match="twice"):
        limiter.configure(a=RateLimit(twice), b=RateLimit(Zone("once", 4), burst=1),
                          c=RateLimit(twice, delay=2))
    limiter.configure(a=RateLimit(twice))  # an error leaves it as it was


@pytest.mark.parametrize("one, other", [(1, "1"), (b"z", "b'z'"), (1.5, "1.5")])
def test_zones_of_equal_text_are_one(limiter, one, other):
    with pytest.raises(ValueError):
        limiter.configure(a=RateLimit(Zone(one, 1)), b=RateLimit(Zone(other, 1)))


def test_limits_are_set_once(limiter):
    limiter.configure(a=RateLimit(Zone("z", 1)))
    with pytest.raises(RuntimeError):
        limiter.configure(b=RateLimit(Zone("y", 1)))
    with pytest.raises(RuntimeError):
        limiter.configure(a=RateLimit(Zone("z", 1)))


def test_no_request_before_there_are_limits(limiter):
    with pytest.raises(RuntimeError):
        limiter.request(a="k")
    with pytest.raises(RuntimeError):
        limiter.request()


def test_no_limits_are_limits_too():
    limiter = InMemoryRateLimiter()
    limiter.configure()
    assert limiter.request() == (True, 0)
    with pytest.raises(RuntimeError):
        limiter.configure(a=RateLimit(Zone("z", 1)))


def test_an_unknown_limit_is_a_key_error(limiter):
    limiter.configure(known=RateLimit(Zone("z", 1)))
    with pytest.raises(KeyError) as caught:
        limiter.request(unknown="k")
    assert caught.value.args == ("unknown",)


class TestExpiry:
    def warned_of(self, limit, limiter):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            limiter.configure(name=limit)
        return caught

    def test_too_short(self, limiter):
        caught = self.warned_of(RateLimit(Zone("zone", 4, 3), burst=5, delay=8), limiter)
        assert [warning.category for warning in caught] == [UserWarning]
        text = str(caught[0].message)
        assert "'zone'" in text and "'name'" in text and "3 s" in text
        assert f"{math.ceil((5 + 8 + 1) / 4)} s" in text
        assert caught[0].filename == __file__

    @pytest.mark.parametrize("limit", [
        RateLimit(Zone("zone", 4, 4), burst=5, delay=8),
        RateLimit(Zone("zone", 4, 3.5), burst=5, delay=8),
        RateLimit(Zone("zone", 1 / 60)),
        RateLimit(Zone("zone", 1e-3, 0), burst=5),  # 0: as long as it takes
    ])
    def test_long_enough(self, limiter, limit):
        assert self.warned_of(limit, limiter) == []

    def test_a_warning_may_be_an_error(self, limiter):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning):
                limiter.configure(a=RateLimit(Zone("z", 1, 1), burst=9))
            limiter.configure(a=RateLimit(Zone("z", 1, 10), burst=9))


class TestNonsense:
    """None of these is a limit: refused with the limits, before anything is decided."""

    @pytest.mark.parametrize("rate", [0, -0.0, -1, 1e-10, 2e12, math.inf, math.nan])
    def test_rates(self, rate):
        with pytest.raises(ValueError, match="rate"):
            InMemoryRateLimiter().configure(a=RateLimit(Zone("z", rate)))

    @pytest.mark.parametrize("field", ["burst", "delay"])
    @pytest.mark.parametrize("value", [-1, -1e-9, 2e12, math.inf, math.nan])
    def test_bursts_and_delays(self, field, value):
        with pytest.raises(ValueError, match=field):
            InMemoryRateLimiter().configure(a=RateLimit(Zone("z", 1e12), **{field: value}))

    def test_burst_and_delay_together(self):
        with pytest.raises(ValueError):
            InMemoryRateLimiter().configure(a=RateLimit(Zone("z", 1e12), 6e11, 6e11))

    @pytest.mark.parametrize("expiry", [-1, 2e10, math.inf, math.nan])
    def test_expiries(self, expiry):
        with pytest.raises(ValueError, match="expiry"):
            InMemoryRateLimiter().configure(a=RateLimit(Zone("z", 1, expiry)))

    @pytest.mark.parametrize("limit", [
        RateLimit(Zone("z", "5")), RateLimit(Zone("z", None)), RateLimit(Zone("z", 1), burst=b"1"),
        RateLimit(Zone("z", 1), delay="1"), RateLimit(Zone(None, 1)),
        RateLimit(Zone("z", 1, "60")),
    ])
    def test_no_numbers_and_no_names(self, limit):
        with pytest.raises(TypeError):
            InMemoryRateLimiter().configure(a=limit)

    @pytest.mark.parametrize("name", ["", "n" * 256, "a\0b"])
    def test_names_of_limits(self, name):
        with pytest.raises(ValueError):
            InMemoryRateLimiter().configure({name: RateLimit(Zone("z", 1))})

    @pytest.mark.parametrize("zone", ["", "z" * 256])
    def test_names_of_zones(self, zone):
        with pytest.raises(ValueError):
            InMemoryRateLimiter().configure(a=RateLimit(Zone(zone, 1)))

    def test_a_name_is_text(self):
        with pytest.raises(TypeError):
            InMemoryRateLimiter().configure({1: RateLimit(Zone("z", 1))})

    def test_the_longest_names(self):
        limiter = InMemoryRateLimiter()
        limiter.configure({"n" * 255: RateLimit(Zone("\0" + "z" * 254, 1))})
        assert limiter.request({"n" * 255: "k"}) == (True, 0)

    def test_zones_that_could_meet_under_the_key_format(self):
        limiter = RedisRateLimiter(FAR, key_format="{zone}{key}")
        with pytest.raises(ValueError, match="key format"):
            limiter.configure(a=RateLimit(Zone("z", 1)), b=RateLimit(Zone("z1", 1)))


def test_by_mapping_and_by_keyword_together(clock):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure({"no-identifier": RateLimit(Zone("z", 1))}, plain=RateLimit(Zone("y", 1)))
    assert limiter.request({"no-identifier": "k", "plain": "k"}) == (True, 0)
    assert limiter.request({"no-identifier": "k"}) == (False, None)


@pytest.mark.parametrize("number", [5, 5.0, True, __import__("fractions").Fraction(1, 2),
                                    __import__("decimal").Decimal("0.25")])
def test_numbers_of_all_kinds(number):
    InMemoryRateLimiter().configure(a=RateLimit(Zone("z", number), burst=number, delay=number))


def test_fractions_are_kept(clock):
    limiter = InMemoryRateLimiter(clock=clock)
    limiter.configure(a=RateLimit(Zone("z", 2), burst=.5, delay=.5))
    assert limiter.request(a="k") == (True, 0)
    assert limiter.request(a="k") == (True, .25)
    assert limiter.request(a="k").retry_after == pytest.approx(.5, abs=1e-5)
