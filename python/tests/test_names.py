# SPDX-License-Identifier: MIT
"""Names of limits, names of options, and what a key means."""

import decimal
import enum
import inspect
import ipaddress
import subprocess
import sys
import types
import uuid

import pytest

from redbucket import InMemoryRateLimiter, KeyTooLongError, RateLimit, RedisRateLimiter, Zone

OPTIONS = ("self", "keys", "cost", "timeout", "limits", "response", "return_exceptions")


def make(clock, *names, **options):
    limiter = InMemoryRateLimiter(clock=clock, **options)
    limiter.configure({name: RateLimit(Zone("of " + name, 1), burst=4) for name in names})
    return limiter


class TestOptions:
    @pytest.mark.parametrize("name", OPTIONS)
    def test_the_name_of_a_limit_comes_first(self, clock, name):
        limiter = make(clock, *OPTIONS)
        for method in (limiter.request, limiter.peek, limiter.charge, limiter.refund, limiter.reset,
                       limiter.acquire):
            assert list(method(**{name: "k"}).limits) == [name]
        permit = limiter.request(**{name: "k"})
        assert limiter.give_back(permit, **{name: "k"}) == (True, 0)
        assert limiter.state(name, "k").value == 1  # of acquire

    def test_the_option_is_reached_beside_a_mapping(self, clock):
        limiter = make(clock, *OPTIONS)
        assert limiter.request({"cost": "k"}, cost=2).remaining == 3
        assert limiter.request({"cost": "k", "self": "k"}, cost=3).remaining == 0
        assert not limiter.request({"cost": "k"}, cost=1).accepted
        assert limiter.refund({"cost": "k"}, cost=4).remaining == 4
        assert limiter.acquire({"timeout": "k"}, timeout=0, cost=5).remaining == 0
        assert not limiter.acquire({"timeout": "k"}, timeout=0).accepted

    def test_an_option_by_keyword_where_no_limit_has_its_name(self, clock):
        limiter = make(clock, "a")
        assert limiter.request(cost=2, a="k").remaining == 3
        assert limiter.request(a="k", cost=2).remaining == 1
        assert limiter.acquire(a="k", timeout=0, cost=1).remaining == 0

    def test_no_other_words(self, clock):
        limiter = make(clock, "a")
        for method in (limiter.request, limiter.acquire):
            with pytest.raises(TypeError):
                method({"a": "k"}, nonsense=1)
            with pytest.raises(TypeError):
                method({"a": "k"}, a="k")
            with pytest.raises(KeyError):
                method(a="k", nonsense=1)
        with pytest.raises(TypeError):
            limiter.request({"a": "k"}, {"a": "k"})
        with pytest.raises(TypeError):
            limiter.give_back()
        assert limiter.state("a", "k") is None


class TestMappings:
    def test_of_any_kind(self, clock):
        class Lazy(dict):
            pass

        limiter = make(clock, "a", "b-b")
        for mapping in ({"a": 1, "b-b": 2}, types.MappingProxyType({"a": 1, "b-b": 2}),
                        Lazy(a=1, **{"b-b": 2}), __import__("collections").UserDict({"a": 1, "b-b": 2})):
            assert list(limiter.request(mapping).limits) == ["a", "b-b"]
        assert limiter.request({}) == (True, 0) == limiter.request(None)

    @pytest.mark.parametrize("nonsense", ["a", b"a", 1, ["a"], [("a", "k")], {"a"}, {1: "k"},
                                          {b"a": "k"}, {None: "k"}])
    def test_nothing_else(self, clock, nonsense):
        limiter = make(clock, "a")
        with pytest.raises(TypeError):
            limiter.request(nonsense)
        with pytest.raises(TypeError):
            limiter.request_many([nonsense])

    def test_that_raises(self, clock):
        class Bad(dict):
            def items(self):
                raise OSError("no items")

        with pytest.raises(OSError, match="no items"):
            make(clock, "a").request(Bad(a=1))

    def test_names_that_are_text_of_a_kind(self, clock):
        class Name(str, enum.Enum):
            A = "a"

        assert make(clock, "a").request({Name.A: "k"}).remaining == 4

    def test_at_most_64_limits(self, clock):
        names = [f"l{number}" for number in range(65)]
        limiter = make(clock, *names)
        assert len(limiter.request(dict.fromkeys(names[:64], "k")).limits) == 64
        for ask in (lambda: limiter.request(dict.fromkeys(names, "k")),
                    lambda: limiter.request(**dict.fromkeys(names, "k"))):
            with pytest.raises(ValueError):
                ask()

    @pytest.mark.parametrize("unknown", ["", "A", "a\0", "nonsense", "n" * 1000])
    def test_unknown_limits(self, clock, unknown):
        limiter = make(clock, "a")
        with pytest.raises(KeyError) as caught:
            limiter.request({"a": "k", unknown: "k"})
        assert caught.value.args == (unknown,)
        assert limiter.state("a", "k") is None


SAME = [
    [1, "1"], [1.0, "1.0"], [True, "True"], [-0.0, "-0.0"], [b"k", "b'k'"], [b"\xff'", 'b"\\xff\'"'],
    [decimal.Decimal("1.50"), "1.50"], [ipaddress.ip_address("192.0.2.7"), "192.0.2.7"],
    [uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"], [10**30, "1" + "0" * 30],
]


class TestKeys:
    """What str() says of a key is the key, in every store alike."""

    @pytest.mark.parametrize("pair", SAME, ids=repr)
    def test_equal_text_is_one_bucket(self, clock, pair):
        limiter = make(clock, "a")
        for key in pair:
            limiter.request(a=key)
        assert limiter.state("a", pair[0]).value == 2

    @pytest.mark.parametrize("pair", SAME, ids=repr)
    def test_the_same_on_a_server(self, client, server_url, key_format, pair):
        limiter = RedisRateLimiter(server_url, key_format)
        limiter.configure(a=RateLimit(Zone("z", 1), burst=9))
        for key in pair:
            limiter.request(a=key)
        assert limiter.state("a", pair[1]).value == pytest.approx(2, abs=.1)
        name = key_format.format(zone="z", key=pair[1])
        assert client.exists(name) == 1

    def test_all_others_are_apart(self, clock):
        keys = ["", "k", "K", "k ", "k\0", "\0", "a\0b", "a", "a\0c", "é", "e\u0301", "\U0001f600",
                "{k}", "a:b", "%s%n", "k" * 255, "k" * 256, "A" * 300 + "1", "A" * 300 + "2", 1, 1.0,
                True, "None"]
        limiter = make(clock, "a")
        for key in keys:
            limiter.request(a=key)
        assert [limiter.state("a", key).value for key in keys] == [1] * len(keys)

    def test_a_zone_and_a_key_are_apart(self, clock):
        limiter = InMemoryRateLimiter(clock=clock)
        limiter.configure(a=RateLimit(Zone("a", 1)), b=RateLimit(Zone("a:b", 1)))
        assert limiter.request(a="b:c", b="c") == (True, 0)
        assert limiter.state("a", "b:c").value == limiter.state("b", "c").value == 1

    def test_none_is_no_key(self, clock):
        limiter = make(clock, "a", "b")
        for ask in (lambda: limiter.request(a="k", b=None), lambda: limiter.request({"b": None}),
                    lambda: limiter.request_many([{"a": "k"}, {"b": None}]),
                    lambda: limiter.state("a", None), lambda: limiter.acquire(a=None)):
            with pytest.raises(TypeError, match="None"):
                ask()
        assert limiter.state("a", "k") is None

    def test_that_has_no_text(self, clock):
        class Bad:
            def __str__(self):
                raise OSError("no text")

        class Worse:
            def __str__(self):
                return 1

        limiter = make(clock, "a", "b")
        with pytest.raises(OSError, match="no text"):
            limiter.request(a="k", b=Bad())
        with pytest.raises(TypeError):
            limiter.request(a=Worse())
        with pytest.raises(UnicodeEncodeError):
            limiter.request(a="\udcff")
        assert limiter.state("a", "k") is None

    def test_text_of_a_kind_means_what_its_str_says(self, clock):
        class Loud(str):
            def __str__(self):
                return self.upper()

        limiter = make(clock, "a")
        limiter.request(a=Loud("k"))
        assert limiter.state("a", "K").value == 1 and limiter.state("a", "k") is None

    def test_bytes_are_no_warning(self):
        script = ("import redbucket as r; l = r.InMemoryRateLimiter();"
                  "l.configure(a=r.RateLimit(r.Zone(b'z', 1)));"
                  "assert l.request(a=b'k').accepted and l.state('a', b'k')")
        subprocess.run([sys.executable, "-bb", "-W", "error", "-c", script], check=True)

    def test_longer_than_the_store_takes(self, clock):
        limiter = make(clock, "a")
        with pytest.raises(KeyTooLongError) as caught:
            limiter.request(a="k" * (2 << 20))
        assert isinstance(caught.value, ValueError) and "limit a" in str(caught.value)


def test_methods_say_their_parameters(clock):
    limiter = make(clock, "a")
    for name in ("request", "peek", "refund", "charge", "reset"):
        assert list(inspect.signature(getattr(limiter, name)).parameters)[0] == "keys"
        assert list(inspect.signature(getattr(type(limiter), name)).parameters)[:2] == ["self", "keys"]
    assert list(inspect.signature(limiter.give_back).parameters)[:2] == ["response", "keys"]
    assert not inspect.signature(limiter.close).parameters
