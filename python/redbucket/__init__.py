# SPDX-License-Identifier: MIT
"""Rate limiting with a burst, a delay, and several limits taken together or not at all.

    from redbucket import InMemoryRateLimiter, RateLimit, Zone

    limiter = InMemoryRateLimiter()
    limiter.configure(user=RateLimit(Zone("user", rate=5), burst=10),
                      ip=RateLimit(Zone("ip", rate=20), delay=10))

    accepted, delay = limiter.request(user="alice", ip="192.0.2.7")

An answer says how long to wait; nothing is slept, but by ``acquire``. Decisions are made in C. The
same limiters can have their buckets in shared memory of this machine, or on Redis and Valkey.

The module may be loaded by any number of sub-interpreters, each with a lock of its own if it likes.
A Python that was built without the global lock switches it on when this is imported.
"""

from __future__ import annotations

from . import _core, errors
from ._open import from_url
from .base import RateLimiter, StoreRateLimiter
from .data import Health, RateLimit, Response, State, Statistics, Zone
from .errors import (
    AuthError,
    BrokenError,
    ConflictError,
    ForeignError,
    FullError,
    KeyTooLongError,
    MismatchError,
    ProtocolError,
    ReadOnlyError,
    ServerError,
    StateError,
    StoreError,
    StoreTimeoutError,
    SystemFailure,
    TLSError,
    UnavailableError,
    UnsupportedError,
)
from .memory import InMemoryRateLimiter
from .permits import Rejected
from .server import RedisRateLimiter, RedisScriptRateLimiter, RedisTransactionalRateLimiter
from .shared import SharedMemoryRateLimiter

__all__ = (
    "AuthError",
    "BrokenError",
    "ConflictError",
    "ForeignError",
    "FullError",
    "Health",
    "InMemoryRateLimiter",
    "KeyTooLongError",
    "MismatchError",
    "ProtocolError",
    "RateLimit",
    "RateLimiter",
    "ReadOnlyError",
    "RedisRateLimiter",
    "RedisScriptRateLimiter",
    "RedisTransactionalRateLimiter",
    "Rejected",
    "Response",
    "ServerError",
    "SharedMemoryRateLimiter",
    "State",
    "StateError",
    "Statistics",
    "StoreError",
    "StoreRateLimiter",
    "StoreTimeoutError",
    "SystemFailure",
    "TLSError",
    "UnavailableError",
    "UnsupportedError",
    "Zone",
    "from_url",
)

__version__ = _core.version

_core._lend(Response, State, errors.by_status())
