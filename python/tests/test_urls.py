# SPDX-License-Identifier: MIT
"""URLs: opening by one, putting one together, and never showing what is secret."""

import pytest

import redbucket
from redbucket import RateLimit, RedisRateLimiter, Zone, _urls, from_url

AWKWARD = "p@:/?#[]&=%+ é\n'\"*"


class TestFromUrl:
    @pytest.mark.parametrize("url, kind", [
        ("memory:", redbucket.InMemoryRateLimiter),
        ("memory:?size=1m", redbucket.InMemoryRateLimiter),
        ("redis://192.0.2.1", redbucket.RedisRateLimiter),
        ("rediss://[2001:db8::7]:6380/2?verify=none", redbucket.RedisRateLimiter),
        ("unix:///nowhere?db=3", redbucket.RedisRateLimiter),
        ("redis+sentinel://192.0.2.1,192.0.2.2/mymaster", redbucket.RedisRateLimiter),
        ("redis+cluster://192.0.2.1:7000", redbucket.RedisRateLimiter),
    ])
    def test_the_class_that_is_for_it(self, url, kind):
        with from_url(url) as limiter:
            assert type(limiter) is kind
            limiter.configure(a=RateLimit(Zone("z", 1)))

    @pytest.mark.parametrize("url", ["", "nonsense", "http://192.0.2.1", "redis:", "redis://", "shm:",
                                     "memory:?size=1", "memory:?nonsense=1", "redis://h?timeout=x",
                                     "redis://h?db=1&db=2", "memory:\0"])
    def test_what_is_none(self, url):
        with pytest.raises(ValueError):
            from_url(url)

    def test_a_clock_is_not_for_servers(self):
        limiter = from_url("redis://192.0.2.1", clock=lambda: 1.0)
        limiter.configure(a=RateLimit(Zone("z", 1)))
        with pytest.raises(redbucket.UnsupportedError):
            limiter.request(a="k")

    @pytest.mark.parametrize("wrong", [None, 1, b"memory:"])
    def test_no_text(self, wrong):
        with pytest.raises((TypeError, AttributeError)):
            from_url(wrong)


class TestServerUrl:
    def test_options_become_parameters(self):
        limiter = RedisRateLimiter("redis://192.0.2.1?db=2", key_format="é&{zone}={key}%", codec="json",
                                   timeout="50ms", connections=3, on_error="local", local_share=.5,
                                   denial_time=0)
        assert "192.0.2.1" in repr(limiter)

    @pytest.mark.parametrize("wrong", [
        {"timeout": 0}, {"timeout": -1}, {"timeout": "x"}, {"timeout": 1e9}, {"connections": 0},
        {"on_error": "x"}, {"local_share": 2}, {"denial_time": -1},
    ])
    def test_options_out_of_range(self, wrong):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            RedisRateLimiter("redis://192.0.2.1", **wrong)

    @pytest.mark.parametrize("url", ["memory:", "shm:x", "http://192.0.2.1", "nonsense"])
    def test_of_another_store(self, url):
        with pytest.raises(ValueError):
            RedisRateLimiter(url)

    def test_transactions_are_not_for_clusters(self):
        with pytest.raises(ValueError):
            redbucket.RedisTransactionalRateLimiter("redis+cluster://192.0.2.1")


class TestKeyFormat:
    @pytest.mark.parametrize("key_format", [
        "", "{", "}", "nothing", "{zone} alone", "alone {key}", "{zone}{key}{}", "{zone}{key}{0}",
        "{zone}{key}{more}", "{zone}{key} {", "{zone}{key}}", "{zone!r}{key}", "{zone}{key:>9}",
        "{zone.name}{key}", "{zone[0]}{key}", "{ zone}{key}", "{zone}{key}\0", "{zone}{key}" + "x" * 1024,
    ])
    def test_refused(self, key_format):
        with pytest.raises(ValueError, match="key_format|%00"):
            RedisRateLimiter("redis://192.0.2.1", key_format)

    @pytest.mark.parametrize("key_format", [
        "{zone}{key}", "{key}{zone}", "{zone}:{key}:{zone}", "{{{zone}{key}}}", "{zone}{{}}{key}",
        "é {zone} {key}", "%s{zone}%00{key}", "&db=1?{zone}#{key}",
    ])
    def test_taken(self, key_format):
        RedisRateLimiter("redis://192.0.2.1", key_format=key_format)


class TestCodec:
    @pytest.mark.parametrize("codec", ["", "pickle", "STRUCT"])
    def test_unknown_names(self, codec):
        with pytest.raises(KeyError) as caught:
            RedisRateLimiter("redis://192.0.2.1", codec=codec)
        assert caught.value.args == (codec,)

    @pytest.mark.parametrize("codec", [None, object(), b"json"])
    def test_objects_are_refused(self, codec):
        with pytest.raises(TypeError, match="codec"):
            RedisRateLimiter("redis://192.0.2.1", codec=codec)


class TestSecrets:
    @pytest.mark.parametrize("url, shown", [
        ("redis://user:secret@192.0.2.1:6379/1?timeout=1", "redis://***@192.0.2.1:6379/1"),
        ("redis://:secret@192.0.2.1", "redis://***@192.0.2.1"),
        ("redis://:sec/ret@192.0.2.1", "redis://***@192.0.2.1"),
        ("redis://:secret@not@192.0.2.1", "redis://***@192.0.2.1"),
        ("redis://:se?cret@192.0.2.1", "redis:***"),
        ("redis+sentinel://192.0.2.1/m?sentinel_password=secret", "redis+sentinel://192.0.2.1/m"),
        ("redis+sentinel://192.0.2.1/m?key_format=@{zone}{key}&sentinel_password=secret",
         "redis+sentinel:***"),
        ("secret", "***"), ("se cret:x", "***"), ("memory:?size=1m", "memory:"),
    ])
    def test_masked(self, url, shown):
        assert _urls.masked(url) == shown

    def test_in_no_message_and_no_repr(self):
        for url in (f"redis://:secret@192.0.2.1:port", "redis://:secret@192.0.2.1/x",
                    "rediss://:secret@192.0.2.1?ca=/nowhere/at/all", "secret",
                    "redis://u:se?cret@192.0.2.1?x=1"):
            with pytest.raises(Exception) as caught:
                RedisRateLimiter(url)
            assert "secret" not in str(caught.value)
        assert "secret" not in repr(RedisRateLimiter("redis://user:secret@192.0.2.1"))
        assert "secret" not in repr(_urls.Login("user", "secret"))

    def test_encoding_is_undone(self):
        quoted = _urls.quoted(AWKWARD)
        assert not set(quoted) & set("@:/?#[]&= \n")
        assert __import__("urllib.parse").parse.unquote(quoted) == AWKWARD
        assert _urls.quoted("\udcff") == "%FF" and _urls.quoted(b"\xff") == "%FF"
