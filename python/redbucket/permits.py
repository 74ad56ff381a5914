# SPDX-License-Identifier: MIT
"""Permits for a block or a function: waited for as ``acquire`` does, and an exception without one.

What is asked for is used up, however the block or the function ends: nothing is given back.
"""

from __future__ import annotations

import functools
import inspect
import math
from typing import Any, Callable, Dict, Generic, Mapping, Optional, Tuple, Type, TypeVar

from . import _core
from ._rules import Rules, chosen, keys_by
from .data import Response

__all__ = ("AsyncPermit", "Permit", "Permitting", "Rejected")

Function = TypeVar("Function", bound=Callable[..., Any])


class Rejected(Exception):
    """No permit was had in time. ``response`` is the rejection."""

    def __init__(self, response: Response) -> None:
        super().__init__(response)
        self.response = response

    @property
    def retry_after(self) -> float:
        """Seconds after which it could be had; math.inf for never."""
        return self.response.retry_after

    def __str__(self) -> str:
        by = self.response.decided
        text = "rejected" if by is None else f"rejected by {by}"
        if math.isinf(self.retry_after):
            return text + ", whatever the wait"
        return f"{text}, retry after {self.retry_after:.3g} s"


def granted(response: Response) -> Response:
    if not response.accepted:
        raise Rejected(response)
    return response


class AsyncPermit:
    """Of ``async with``: asks each time that a block is entered."""

    def __init__(self, limiter: Any, keys: Mapping[str, Any], cost: float,
                 timeout: Optional[float]) -> None:
        self._limiter = limiter
        self._keys = keys
        self._options = {"cost": cost, "timeout": timeout}

    async def __aenter__(self) -> Response:
        return granted(await self._limiter.aio.acquire(self._keys, **self._options))

    async def __aexit__(self, *_: object) -> None:
        pass


class Permit(AsyncPermit):
    """Of ``with``, and of ``async with``: asks each time that a block is entered."""

    def __enter__(self) -> Response:
        return granted(self._limiter.acquire(self._keys, **self._options))

    def __exit__(self, *_: object) -> None:
        pass


Kind = TypeVar("Kind", bound=AsyncPermit)


class Limited:
    """The decorator. What it is given is looked at when the function is called: by then the limiter
    has its limits."""

    def __init__(self, limiter: Any, keys: Optional[Rules], named: Mapping[str, Any]) -> None:
        self._limiter = limiter
        self._given = keys
        self._named = named

    def _question(self, *args: Any, **named: Any) -> Any:
        """The keys and options of one call."""
        rules = {} if callable(self._given) else self._given
        rules, options = self._limiter._parts(rules, self._named, {"cost": 1.0, "timeout": None})
        keys = keys_by(self._given if callable(self._given) else rules, *args, **named)
        options["cost"] = chosen(options["cost"], *args, **named)
        return keys, options

    def _of_coroutines(self, function: Any) -> Any:
        @functools.wraps(function)
        async def limited(*args: Any, **named: Any) -> Any:
            keys, options = self._question(*args, **named)
            if keys:
                granted(await self._limiter.aio.acquire(keys, **options))
            return await function(*args, **named)

        return limited

    def _of_functions(self, function: Any) -> Any:
        @functools.wraps(function)
        def limited(*args: Any, **named: Any) -> Any:
            keys, options = self._question(*args, **named)
            if keys:
                granted(self._limiter.acquire(keys, **options))
            return function(*args, **named)

        return limited

    def __call__(self, function: Function) -> Function:
        if inspect.isasyncgenfunction(function):
            raise TypeError("an asynchronous generator can't be limited: take a permit inside it")
        if inspect.iscoroutinefunction(function):
            wrapped: Function = self._of_coroutines(function)
            return wrapped
        if not isinstance(self._limiter, _core.Limiter):
            raise TypeError("an asynchronous limiter can limit coroutine functions alone")
        wrapped = self._of_functions(function)
        return wrapped


class Permitting(Generic[Kind]):
    """What all limiters offer for blocks and functions; each has its kind of permits."""

    _permit: Type[Kind]

    def _parts(self, keys: Any, named: Dict[str, Any],
               options: Dict[str, Any]) -> Tuple[Any, Dict[str, Any]]:
        raise NotImplementedError

    def permit(self, keys: Optional[Mapping[str, Any]] = None, /, **named: Any) -> Kind:
        """A permit for a block: permit(keys, *, cost=1.0, timeout=None).

            with limiter.permit(user="alice", timeout=2) as response:
                ...

        The block is entered once the permit may be used, as ``acquire`` has it, and ``async with``
        waits without blocking the loop. Rejected is raised when that isn't so in time. The block
        uses the permit up, also by an exception.
        """
        keys, options = self._parts(keys, named, {"cost": 1.0, "timeout": None})
        return self._permit(self, keys, **options)

    def limited(self, keys: Optional[Rules] = None, /, **named: Any) -> Limited:
        """A decorator: limited(keys, *, cost=1.0, timeout=None).

            @limiter.limited(user=lambda user, text: user.id, timeout=2)
            def send(user, text):
                ...

        Each limit has a key, or a function of the call's arguments that says it, or None to leave
        the limit out of that call. ``keys`` may be such a mapping, or one function that says a
        mapping from limits to keys. ``cost`` may be a function as well. A call waits for its permit
        as ``acquire`` does, and a coroutine function without blocking the loop; Rejected is raised
        when there is none in time, and the function isn't called. A call without any key isn't
        limited.
        """
        return Limited(self, keys, named)
