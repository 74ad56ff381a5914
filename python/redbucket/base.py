# SPDX-License-Identifier: MIT
"""What all limiters have in common: limits are set once, then anybody may ask."""

from __future__ import annotations

import functools
import math
import time
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from . import _core
from . import _urls
from ._patience import Patience
from .data import Health, RateLimit, Response, State, Statistics
from .errors import StoreError
from .permits import Permit, Permitting

if TYPE_CHECKING:
    from .aio import AsyncRateLimiter

__all__ = ("RateLimiter", "StoreRateLimiter")

Keys = Mapping[str, Any]
Limit = Tuple[str, str, float, float, float, float, float, float]


def text_of_zone(name: Any) -> str:
    """A zone's name as text, by the rule of keys."""
    if name is None:
        raise TypeError("None is no name of a zone")
    return repr(name) if isinstance(name, bytes) else str(name)


def number(of: str, value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{of}: expected a number, not {value!r}")
    return float(value)


def describe(name: str, limit: RateLimit) -> Limit:
    """A limit as the library takes it. What is out of range it refuses itself."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a limit is a str, not {name!r}")
    zone = limit.zone
    return (name, text_of_zone(zone.name), number("rate", zone.rate), number("burst", limit.burst),
            number("delay", limit.delay), number("expiry", zone.expiry),
            number("lease", getattr(limit, "lease", 0)),
            number("lease_time", getattr(limit, "lease_time", 0)))


def check_zones(limits: Iterable[Limit]) -> None:
    limit_of: Dict[str, str] = {}
    for name, zone, *_ in limits:
        if zone in limit_of:
            raise ValueError(f"limits {limit_of[zone]!r} and {name!r} are both on zone {zone!r}: "
                             "a zone has one limit")
        limit_of[zone] = name


def warn_of_expiry(limit: Limit) -> None:
    """Our own servers' buckets live as long as they are needed; those that the original package
    writes beside us live for the expiry alone."""
    name, zone, rate, burst, delay, expiry, *_ = limit
    most = burst + delay + 1
    if not (rate > 0 and math.isfinite(most) and 0 < expiry and expiry * rate < most):
        return
    warnings.warn(f"zone {zone!r}: an expiry of {expiry:g} s is short for limit {name!r}, for which "
                  f"{math.ceil(most / rate)} s or more are recommended", stacklevel=5)


class RateLimiter(ABC):
    """The base of all limiters. ``isinstance`` of it is what they share.

    A class of your own implements ``_request``, of a mapping from limits to keys, and may
    implement ``_configure``.
    """

    _rate_limits: Optional[Dict[str, RateLimit]] = None

    def configure(self, limits: Optional[Mapping[str, RateLimit]] = None, /,
                  **rate_limits: RateLimit) -> None:
        """Sets the limits, by name, once.

        Names that are no identifiers are given in a mapping. ValueError for two limits on one zone,
        for zones whose keys could meet under the store's key format, and for a limit out of range;
        RuntimeError when there are limits already. Warns of an expiry that is short. After an error
        the limiter is as it was. Call it before other threads use the limiter.
        """
        if self._rate_limits is not None:
            raise RuntimeError("the rate limiter has its limits already")
        named = {**(limits or {}), **rate_limits}
        self._check_limits(named)
        self._configure(named)
        self._rate_limits = named

    @staticmethod
    def _check_limits(limits: Mapping[str, RateLimit]) -> None:
        described = [describe(name, limit) for name, limit in limits.items()]
        check_zones(described)
        for limit in described:
            warn_of_expiry(limit)

    def _configure(self, rate_limits: Mapping[str, RateLimit]) -> None:
        """Told of the limits once they are known to be good."""

    def request(self, keys: Optional[Keys] = None, /, **named: Any) -> Response:
        """Asks for a permit of all the limits named, or of none."""
        if self._rate_limits is None:
            raise RuntimeError("the rate limiter has no limits yet: call configure()")
        return self._request({**(keys or {}), **named})

    @abstractmethod
    def _request(self, keys: Keys) -> Response:
        """The answer to a request of these keys."""


class StoreRateLimiter(_core.Limiter, Permitting[Permit], RateLimiter):
    """A limiter on a store: decisions are made in C, atomically over all limits of a request.

    Safe from any number of threads once configured. The interpreter's lock is not held while others
    are waited for. Usable in a child after ``fork``: buckets in this process's memory become the
    child's own copy, others go on being shared.

    Each limiter has a store of its own, closed by ``close()``, at the end of a ``with`` block, or
    with the last reference.
    """

    _place = "?"
    _permit = Permit
    _loops: Any = None  # those of asyncio that have used it, by aio.py

    def __init__(self, url: str, *, clock: Any = None) -> None:
        scheme = url.partition(":")[0]
        self._place = _urls.masked(url)
        self._open(url, clock, scheme != "memory")

    def _configure(self, rate_limits: Mapping[str, RateLimit]) -> None:
        self._set_limits([describe(name, limit) for name, limit in rate_limits.items()])

    def _request(self, keys: Keys) -> Response:
        return _core.Limiter.request(self, keys)

    def __repr__(self) -> str:
        return f"<redbucket.{type(self).__name__} on {self._place}>"

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections, files and memory that the limiter holds.

        Buckets that others share stay. Calls under way end as usual; new ones raise RuntimeError.
        Closing again does nothing.
        """
        super().close()
        if self._loops is not None:
            self._loops.close()

    @functools.cached_property
    def aio(self) -> AsyncRateLimiter:
        """The same limits, buckets and connections for coroutines: ``await limiter.aio.request()``."""
        from .aio import AsyncRateLimiter

        return AsyncRateLimiter(self)

    # ---- Asking ------------------------------------------------------------------------------

    def _parts(self, keys: Optional[Keys], named: Dict[str, Any],
               options: Dict[str, Any]) -> Tuple[Keys, Dict[str, Any]]:
        """Keys and options apart: by keyword, the name of a limit comes first; beside a mapping,
        keywords are options."""
        limits = self._rate_limits
        if limits is None:
            raise RuntimeError("the rate limiter has no limits yet: call configure()")
        by_keyword = {}
        for name, value in named.items():
            if keys is None and (name in limits or name not in options):
                by_keyword[name] = value
            elif name in options:
                options[name] = value
            else:
                raise TypeError(f"{name!r} is no option (beside a mapping, keywords are options)")
        return by_keyword if keys is None else keys, options

    def acquire(self, keys: Optional[Keys] = None, /, **named: Any) -> Response:
        """Asks for a permit and waits until it may be used: acquire(keys, *, cost=1.0, timeout=None).

        Sleeps a delay out; after a rejection asks again once the request could pass, until
        ``timeout`` seconds are over (None: as long as it takes). An accepted response has waited:
        its ``delay`` is 0, and ``waited`` says how long it took. Not permitted in time is a rejected
        response, never an exception; a permit whose delay is longer than what is left of the time
        is given back. A request that can never pass is rejected at once.

        Raises as ``request`` does. Ctrl-C interrupts the wait, and the permit is given back.
        """
        keys, options = self._parts(keys, named, {"cost": 1.0, "timeout": None})
        cost = options["cost"]
        patience = Patience(options["timeout"])
        while True:
            patience.ask()
            response = self.request(keys, cost=cost)
            pause = patience.pause(response)
            if pause is None:
                break
            time.sleep(pause)
        if not response.accepted:
            return patience.rejected(response)
        if not patience.fits(response):
            after = self.give_back(response, keys, cost=cost)
            return patience.too_late(response, after)
        try:
            time.sleep(response.delay)
        except BaseException:
            self.give_back(response, keys, cost=cost)
            raise
        return patience.accepted(response)

    def request_many(self, requests: Iterable[Union[Keys, Tuple[Keys, float]]], *,
                     cost: float = 1.0, return_exceptions: bool = False) -> List[Any]:
        """Asks for many permits at once: the responses, in order.

        ``requests`` are mappings from limits to keys, or pairs of one and its cost. Each is decided
        by itself, in this order, and a later one sees what an earlier one took. On a server that
        takes one round trip for up to 256 of them.

        One that fails doesn't stop the others. With ``return_exceptions`` its exception stands in
        its place; without, the first is raised once all are decided, and all of them are in its
        ``responses``, if it is a StoreError.
        """
        responses = self._request_many(requests, cost)
        return responses if return_exceptions else self._checked(responses)

    @staticmethod
    def _checked(responses: List[Any]) -> List[Any]:
        """Raises the first exception among them."""
        for response in responses:
            if isinstance(response, BaseException):
                if isinstance(response, StoreError):
                    response.responses = responses
                raise response
        return responses

    # ---- Looking -----------------------------------------------------------------------------

    def state(self, limit: str, key: Any) -> Optional[State]:
        """The bucket of a key under a limit as it is stored, or None when there is none.

        StateError when what is stored can't be read. A bucket that has drained may still be there.
        """
        return self._state(limit, key)

    def statistics(self) -> Statistics:
        """What the store has counted."""
        return Statistics(**self._statistics())

    def check(self) -> Health:
        """Asks the store whether it is there and how it is; raises as a request would."""
        return Health(**self._check())
