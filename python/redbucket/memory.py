# SPDX-License-Identifier: MIT
"""Buckets in this process."""

from __future__ import annotations

from typing import Callable, Optional, Union

from . import _urls
from .base import StoreRateLimiter

__all__ = ("InMemoryRateLimiter",)


class InMemoryRateLimiter(StoreRateLimiter):
    """A limiter whose buckets are in this process's memory, and this limiter's alone.

    ``size`` bounds that memory: bytes, or text such as "64m". A table that is full gives up the
    bucket that matters least, and never one that keeps somebody out: FullError then. ``grow``
    instead has it grow with its buckets, without a bound. ``on_error`` is "open", "closed" or
    "local" for a policy that answers when the table is full.

    ``clock`` is a callable that says what time it is, in seconds; it is asked once for each call.
    Tests move it by hand. A clock that steps back drains nothing.
    """

    def __init__(self, *, size: Union[int, str, None] = None, grow: bool = False,
                 on_error: Optional[str] = None,
                 clock: Optional[Callable[[], float]] = None) -> None:
        if clock is not None and not callable(clock):
            raise TypeError("clock: expected a callable that says what time it is")
        url = _urls.with_parameters("memory:", size=size, grow="yes" if grow else None,
                                    on_error=on_error)
        super().__init__(url, clock=clock)
