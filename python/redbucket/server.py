# SPDX-License-Identifier: MIT
"""Buckets on Redis or Valkey: one server, the master behind sentinels, or a cluster."""

from __future__ import annotations

import re
from typing import Any, Optional, Union

from . import _urls
from .base import StoreRateLimiter
from .clients import server_of
from .errors import StoreError, UnsupportedError

__all__ = ("RedisRateLimiter", "RedisScriptRateLimiter", "RedisTransactionalRateLimiter")

KEY_FORMAT = "redbucket:{zone}:{key}"
CODECS = ("struct", "json")
SCHEMES = frozenset(s + behind for s in ("redis", "rediss") for behind in ("", "+sentinel",
                                                                          "+cluster")) | {"unix"}


def checked_codec(codec: Any) -> str:
    if not isinstance(codec, str):
        raise TypeError(f"codec: expected 'struct' or 'json', not {codec!r}: states are read and "
                        "written in C, so an object can't take part in it")
    if codec not in CODECS:
        raise KeyError(codec)
    return codec


def url_of(redis: Any, **given: Any) -> str:
    """Of a client or a URL. What is given here comes before what a client says."""
    if isinstance(redis, str):
        if redis.partition(":")[0] not in SCHEMES:
            raise ValueError("expected the URL of a server: redis://, rediss://, unix://, or "
                             "either of redis and rediss with +sentinel or +cluster")
        return _urls.with_parameters(redis, **given)
    server = server_of(redis)
    parameters = dict(server.parameters)
    parameters.update((name, value) for name, value in given.items() if value is not None)
    return server._replace(parameters=tuple(parameters.items())).url()


def check_version(server: str) -> None:
    """Of "Redis 3.0.5". What calls itself otherwise, or nothing, is newer or not known."""
    name, _, version = server.partition(" ")
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    if name == "Redis" and numbers and numbers < [3, 2]:
        raise UnsupportedError(f"{server} is too old to decide by script, which takes Redis 3.2 or "
                               "later; RedisTransactionalRateLimiter does without")


class RedisRateLimiter(StoreRateLimiter):
    """A limiter whose buckets are on a Redis or Valkey server, for every process that reaches it.

    ``redis`` is a client of redis-py (3 and newer) or valkey-py, a Sentinel-managed or a cluster's
    client among them, or a URL. A client is asked where and how it connects (address, login, TLS,
    timeout), and is neither used nor kept: the limiter has connections of its own. Nothing is
    connected before the first request.

    ``key_format`` is what buckets are called there, with the fields ``{zone}`` and ``{key}``;
    ``codec`` how they are stored, "struct" or "json". Both as the original package has them, so
    that both can serve the same keys.

    The rest are the parameters of the store's URL: ``timeout`` of a whole decision, in seconds (1
    unless the client has a socket_timeout), ``connections`` at most, ``on_error`` ("fail", "open",
    "closed", "local") for who answers when the server fails, ``local_share`` of the limits for
    "local", ``denial_time`` for how long a rejection may be known without asking, in seconds.

    Decides by script where the server can, by transaction where it is too old.
    """

    _method: Optional[str] = None

    def __init__(self, redis: Any, key_format: str = KEY_FORMAT, codec: str = "struct", *,
                 timeout: Union[float, str, None] = None, connections: Optional[int] = None,
                 on_error: Optional[str] = None, local_share: Optional[float] = None,
                 denial_time: Union[float, str, None] = None) -> None:
        codec = checked_codec(codec)
        super().__init__(url_of(
            redis, key_format=None if key_format == KEY_FORMAT else key_format,
            codec=None if codec == "struct" else codec, method=self._method, timeout=timeout,
            connections=connections, on_error=on_error, local_share=local_share,
            denial_time=denial_time))


class RedisScriptRateLimiter(RedisRateLimiter):
    """Decides by script, in one round trip: Redis 3.2 and newer, and Valkey.

    Asks the server for its version once, when made: RuntimeError when it is too old. One that
    can't be reached then is asked no further; requests to it fail until it can.
    """

    _method = "script"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        try:
            check_version(self.check().server)
        except UnsupportedError:
            self.close()
            raise
        except StoreError:
            pass


class RedisTransactionalRateLimiter(RedisRateLimiter):
    """Decides by transaction, in two round trips or more: any version of Redis, no cluster."""

    _method = "transaction"
