# SPDX-License-Identifier: MIT
"""What limits, answers and states are made of."""

from __future__ import annotations

from typing import Any, Dict, Iterable, NamedTuple, Tuple

from . import _core

__all__ = ("Health", "RateLimit", "Response", "State", "Statistics", "Zone")


class Zone(NamedTuple):
    """A set of buckets, one for each key, which drain at one rate.

    ``rate`` is in requests a second, from 1e-9 to 1e12. ``expiry`` is for how many seconds a
    server keeps a bucket at least, from 0 to 1e10, rounded up to whole ones; whatever it is, a
    bucket is kept until it is empty. 0 means that, and no longer. Stores that aren't on a server
    don't need it.
    """

    name: Any
    rate: float
    expiry: float = 60


class _RateLimit(NamedTuple):
    zone: Zone
    burst: float = 0
    delay: float = 0


class RateLimit(_RateLimit):
    """How much of a zone's buckets may be taken ahead of their rate.

    A named tuple of ``zone``, ``burst`` and ``delay``: ``burst`` requests more than one pass at
    once, ``delay`` more are accepted with a wait, both from 0, together at most 1e12. Fractions are
    fine.

    ``lease`` permits of a key that is asked for often may be taken ahead from a server, up to 1e12,
    and are held for ``lease_time`` seconds, up to 3600, 0 for the default of one; then up to
    ``rate * lease_time`` more pass in any window. 0 takes none ahead. Stores that aren't on a server
    don't need it. Both are attributes, and take no part in unpacking and comparing.
    """

    lease: float = 0
    lease_time: float = 0

    def __new__(cls, zone: Zone, burst: float = 0, delay: float = 0, *, lease: float = 0,
                lease_time: float = 0) -> RateLimit:
        limit = super().__new__(cls, zone, burst, delay)
        limit.lease = lease
        limit.lease_time = lease_time
        return limit

    def _replace(self, **changes: Any) -> RateLimit:
        """The same with other values of some fields or attributes."""
        return type(self)(**{**self._asdict(), "lease": self.lease, "lease_time": self.lease_time,
                             **changes})

    def __repr__(self) -> str:
        leases = "" if self.lease == 0 else f", lease={self.lease!r}, lease_time={self.lease_time!r}"
        return (f"{type(self).__name__}(zone={self.zone!r}, burst={self.burst!r}, "
                f"delay={self.delay!r}{leases})")

    def __getnewargs_ex__(self) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        return tuple(self), {"lease": self.lease, "lease_time": self.lease_time}


class State(NamedTuple):
    """A bucket as stored: ``value`` requests had not drained at ``timestamp``, in seconds."""

    timestamp: float
    value: float


class Response(_core.ResponseBase):
    """The answer to a request: a named tuple of ``accepted`` and ``delay``.

    ``accepted, delay = response`` and ``response == (True, 0)`` mean what they say of any pair.
    ``delay`` is the time to wait before going on, in seconds, and None when rejected. What it knows
    beside that, such as ``retry_after`` and ``remaining``, are attributes and take no part in
    comparing. A pickled one keeps them all but ``limits`` and ``decided``.
    """

    __slots__ = ()
    __match_args__ = _fields = ("accepted", "delay")
    _field_defaults: Dict[str, Any] = {}

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Response:
        """A Response of two values."""
        accepted, delay = iterable
        return cls(accepted, delay)

    def _asdict(self) -> Dict[str, Any]:
        """The two values by name."""
        return {"accepted": self[0], "delay": self[1]}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(accepted={self[0]!r}, delay={self[1]!r})"

    def __getnewargs_ex__(self) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        more = ("retry_after", "remaining", "reset_after", "degraded", "time", "waited")
        return tuple(self), {name: getattr(self, name) for name in more}


class Statistics(NamedTuple):
    """What a store has counted since it was made; of shared memory, all processes together.

    A store on a server counts what this process asks of it, and knows no buckets, capacity or bytes.
    """

    accepted: int
    delayed: int
    rejected: int
    evicted: int
    full: int
    recovered: int
    buckets: int
    capacity: int
    bytes: int
    failed: int
    degraded: int
    denied: int
    leased: int


class Health(NamedTuple):
    """How a store is, as asked of it.

    ``round_trip`` is in seconds, ``method`` is "table", "script" or "transaction", ``warnings`` are
    lines that tell what could go wrong with it. Of a master behind sentinels there are ``service``,
    ``master``, ``sentinel`` and ``replicas`` (-1 when nobody says), of a cluster ``masters``, of
    which ``silent`` could not be asked, and the ``slots`` of 16384 that are served.
    """

    round_trip: float
    server: str
    method: str
    warnings: Tuple[str, ...]
    service: str
    master: str
    sentinel: str
    replicas: int
    masters: int
    silent: int
    slots: int


