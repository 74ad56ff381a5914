# SPDX-License-Identifier: MIT
"""Opening a store by its URL, whichever it is."""

from __future__ import annotations

from typing import Callable, Dict, Optional, Type

from .base import StoreRateLimiter
from .memory import InMemoryRateLimiter
from .server import SCHEMES, RedisRateLimiter
from .shared import SharedMemoryRateLimiter

__all__ = ("from_url",)

EMBEDDED: Dict[str, Type[StoreRateLimiter]] = {
    "memory": InMemoryRateLimiter,
    "shm": SharedMemoryRateLimiter,
}


def from_url(url: str, *, clock: Optional[Callable[[], float]] = None) -> StoreRateLimiter:
    """The limiter on the store of a URL, of the class that is for it.

    ``memory:``, ``shm:NAME``, ``redis://``, ``rediss://``, ``unix://``, ``redis+sentinel://`` and
    ``redis+cluster://``, with the parameters of each. ValueError when it is none. ``clock`` says
    what time it is, for stores that aren't on a server; all who use one have to use one clock.
    """
    scheme = url.partition(":")[0]
    kind: Type[StoreRateLimiter] = StoreRateLimiter
    if scheme in SCHEMES:
        kind = RedisRateLimiter
    elif scheme in EMBEDDED:
        kind = EMBEDDED[scheme]
    limiter = kind.__new__(kind)
    StoreRateLimiter.__init__(limiter, url, clock=clock)
    return limiter
