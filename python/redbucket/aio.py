# SPDX-License-Identifier: MIT
"""Limiters for coroutines: asking doesn't block the loop.

    limiter = RedisRateLimiter("redis://localhost")
    limiter.configure(user=RateLimit(Zone("user", rate=5), burst=10))

    async def serve(user):
        accepted, delay = await limiter.aio.request(user=user)

What all coroutines of a loop ask for in one turn goes to the server together. A loop has a
descriptor to watch, of its own for each limiter, from the first question on; which thread it runs
in, how many there are, and whether it is asyncio's own or one that behaves like it, doesn't matter.

Stores in this process's memory decide at once, without a turn of the loop, and so does shared
memory unless another process is in its way.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from . import _core
from ._open import from_url
from ._patience import Patience
from .base import StoreRateLimiter
from .data import Health, RateLimit, Response, State, Statistics
from .errors import StoreError
from .permits import AsyncPermit, Permitting

__all__ = ("AsyncRateLimiter",)

Keys = Mapping[str, Any]
Loop = asyncio.AbstractEventLoop

# So many of request_many are asked for at a time.
MANY = 1024


# ---- Loops -------------------------------------------------------------------------------------


class Answer(asyncio.Future[Any]):
    """What a task waits for. Cancelled, it gives the request up at once: by the time that the task
    hears of it the request could have been sent, or the loop could have ended."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(loop=driver.loop)
        self.driver = driver
        self.number = 0

    def cancel(self, *args: Any, **named: Any) -> bool:
        cancelled = super().cancel(*args, **named)
        if cancelled and self.driver.core.cancel(self.number):
            self.driver.dispatch()
        return cancelled


def settle(future: Answer, failed: bool, answer: Any) -> None:
    """Tells a future its answer, unless it was cancelled meanwhile."""
    if future.done():
        return
    if failed:
        future.set_exception(answer)
    else:
        future.set_result(answer)


def dispatch(driver: Callable[[], Optional[Driver]]) -> None:
    """Called by the loop, which holds a driver weakly: what nobody uses is to go away."""
    found = driver()
    if found is not None:
        found.dispatch()


def end(loop: Loop, core: _core.Async) -> None:
    """In the loop's thread."""
    if core.fileno() >= 0:
        loop.remove_reader(core.fileno())
    core.close()


class Driver:
    """A limiter in one loop. Used by that loop's thread alone, but for close() and its end."""

    def __init__(self, loop: Loop, limiter: StoreRateLimiter) -> None:
        self.loop = loop
        self.core = _core.Async(limiter, settle)
        self.process = os.getpid()
        self.thread = threading.get_ident()
        self.ending = False
        loop.add_reader(self.core.fileno(), dispatch, weakref.ref(self))

    def dispatch(self) -> None:
        self.core.dispatch()
        if self.ending:
            self.end_when_idle()

    def end_when_idle(self) -> None:
        self.ending = True
        if self.core.outstanding == 0:
            end(self.loop, self.core)

    def in_loop(self, call: Callable[..., Any], *args: Any) -> None:
        """Has something done in the loop's thread, or here when nothing runs there any more."""
        if self.process == os.getpid() and not self.loop.is_closed():
            try:
                self.loop.call_soon_threadsafe(call, *args)
                return
            except RuntimeError:
                pass  # closed just now
        try:
            self.core.close()
        except RuntimeError:
            pass  # another thread's, which left requests behind; they stay

    def close(self) -> None:
        """A loop that stands still may never turn again."""
        ours = (self.process, self.thread) == (os.getpid(), threading.get_ident())
        if ours and not self.loop.is_running() and not self.loop.is_closed():
            self.end_when_idle()
        else:
            self.in_loop(self.end_when_idle)

    def __del__(self) -> None:
        if hasattr(self, "core") and self.core.fileno() >= 0:
            self.in_loop(end, self.loop, self.core)


class Loops:
    """The loops that have used a limiter."""

    def __init__(self, limiter: StoreRateLimiter) -> None:
        self._limiter = weakref.ref(limiter)
        self._drivers: Dict[Loop, Driver] = {}

    def driver(self) -> Driver:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        driver = self._drivers.get(loop)
        if driver is None or driver.ending:
            driver = self._enter(loop)
        return driver

    def _enter(self, loop: Loop) -> Driver:
        for known, driver in list(self._drivers.items()):
            if known.is_closed():
                self._drivers.pop(known, None)
                driver.close()
        limiter = self._limiter()
        if limiter is None or limiter.closed:
            raise RuntimeError("the rate limiter was closed")
        driver = self._drivers[loop] = Driver(loop, limiter)
        return driver

    def close(self) -> None:
        for driver in list(self._drivers.values()):
            driver.close()


def loops_of(limiter: StoreRateLimiter) -> Loops:
    if limiter._loops is None:
        limiter.__dict__.setdefault("_loops", Loops(limiter))
    loops: Loops = limiter._loops
    return loops


# ---- The limiter -------------------------------------------------------------------------------


class AsyncRateLimiter(Permitting[AsyncPermit]):
    """A limiter's methods as coroutines. ``limiter.aio`` is one, and so is ``AsyncRateLimiter(url)``.

    It has the limits, the buckets and the connections of ``limiter``, and may be made and dropped
    as often as is convenient. Safe from any number of loops in any number of threads.

    A task that is cancelled gives its request up. One that hasn't been sent by then takes nothing;
    one that is under way may be counted, and one whose permit has just come gives it back.
    """

    _permit = AsyncPermit

    def __init__(self, limiter: Union[StoreRateLimiter, str]) -> None:
        self.limiter = from_url(limiter) if isinstance(limiter, str) else limiter
        if not isinstance(self.limiter, StoreRateLimiter):
            raise TypeError(f"expected a limiter on a store, or a URL, not {limiter!r}")
        self._waits = self.limiter._waits
        # Shared memory is asked at once, and waited for if it comes to that.
        self._at_once = self.limiter._place.startswith("shm:")

    def __repr__(self) -> str:
        return f"<redbucket.aio.AsyncRateLimiter on {self.limiter._place}>"

    @property
    def aio(self) -> AsyncRateLimiter:
        """This one."""
        return self

    @property
    def closed(self) -> bool:
        """Whether the limiter was closed."""
        return self.limiter.closed

    def configure(self, limits: Optional[Mapping[str, RateLimit]] = None, /,
                  **rate_limits: RateLimit) -> None:
        """Sets the limits, by name, once, as of any limiter."""
        self.limiter.configure(limits, **rate_limits)

    def _parts(self, keys: Optional[Keys], named: Dict[str, Any],
               options: Dict[str, Any]) -> Tuple[Any, Dict[str, Any]]:
        return self.limiter._parts(keys, named, options)

    # ---- Asking ------------------------------------------------------------------------------

    def _ask(self, driver: Driver, keys: Optional[Keys], named: Dict[str, Any]) -> Answer:
        answer = Answer(driver)
        answer.number = driver.core.request(answer, keys, **named)
        return answer

    async def _answer(self, operation: str, *args: Any, **named: Any) -> Any:
        """Of an operation that is to be done even if nobody waits for it any more."""
        if not self._waits:
            return getattr(self.limiter, operation)(*args, **named)
        driver = loops_of(self.limiter).driver()
        future = driver.loop.create_future()
        getattr(driver.core, operation)(future, *args, **named)
        if self._at_once:
            driver.dispatch()
        return await future

    async def request(self, keys: Optional[Keys] = None, /, **named: Any) -> Response:
        """Asks for a permit of all the limits named, or of none: request(keys, *, cost=1.0).

        Nothing is slept: an accepted one has a delay, in seconds, which is the caller's to wait.
        Keys and errors are as of any limiter's ``request``.
        """
        if not self._waits:
            return self.limiter.request(keys, **named)
        driver = loops_of(self.limiter).driver()
        answer = self._ask(driver, keys, named)
        if self._at_once:
            driver.dispatch()
        try:
            response: Response = await answer
        except BaseException:
            self._give_up(answer, keys, named)
            raise
        return response

    def _give_up(self, answer: Answer, keys: Optional[Keys], named: Dict[str, Any]) -> None:
        """Of a request that failed, or whose task goes away; its loop may be closed by then."""
        if not answer.done():
            answer.driver.core.cancel(answer.number)
        elif not answer.cancelled() and answer.exception() is None and answer.result().accepted:
            self.give_back_soon(answer.result(), keys, **named)

    async def peek(self, keys: Optional[Keys] = None, /, **named: Any) -> Response:
        """What a request would be answered now; changes nothing."""
        response: Response = await self._answer("peek", keys, **named)
        return response

    async def refund(self, keys: Optional[Keys] = None, /, **named: Any) -> Response:
        """Gives a cost back to each bucket, never below empty. Done even if the task is cancelled,
        as are the others that take nothing."""
        response: Response = await self._answer("refund", keys, **named)
        return response

    async def charge(self, keys: Optional[Keys] = None, /, **named: Any) -> Response:
        """Takes a cost without asking, past every bound. Done even if the task is cancelled."""
        response: Response = await self._answer("charge", keys, **named)
        return response

    async def reset(self, keys: Optional[Keys] = None, /, **named: Any) -> Response:
        """Forgets the buckets. Done even if the task is cancelled."""
        response: Response = await self._answer("reset", keys, **named)
        return response

    async def give_back(self, response: Response, keys: Optional[Keys] = None, /,
                        **named: Any) -> Response:
        """Gives back the permit of an accepted response that was not used. Done even if the task is
        cancelled."""
        after: Response = await self._answer("give_back", response, keys, **named)
        return after

    def give_back_soon(self, response: Response, keys: Optional[Keys] = None, /,
                       **named: Any) -> None:
        """The same for where nothing can be awaited. What becomes of it nobody is told."""
        try:
            if self._waits:
                driver = loops_of(self.limiter).driver()
                driver.core.give_back(None, response, keys, **named)
            else:
                self.limiter.give_back(response, keys, **named)
        except (StoreError, RuntimeError):
            pass  # a store that failed, a limiter that was closed, a loop that is no more

    async def acquire(self, keys: Optional[Keys] = None, /, **named: Any) -> Response:
        """Asks for a permit and waits until it may be used: acquire(keys, *, cost=1.0, timeout=None).

        Sleeps a delay out; after a rejection asks again once the request could pass, until
        ``timeout`` seconds are over (None: as long as it takes). An accepted response has waited:
        its ``delay`` is 0, and ``waited`` says how long it took. Not permitted in time is a rejected
        response, never an exception; a permit whose delay is longer than what is left of the time
        is given back, and so is that of a task which is cancelled while it waits.
        """
        keys, options = self._parts(keys, named, {"cost": 1.0, "timeout": None})
        cost = options["cost"]
        patience = Patience(options["timeout"])
        while True:
            patience.ask()
            response = await self.request(keys, cost=cost)
            pause = patience.pause(response)
            if pause is None:
                break
            await asyncio.sleep(pause)
        if not response.accepted:
            return patience.rejected(response)
        if not patience.fits(response):
            after = await self.give_back(response, keys, cost=cost)
            return patience.too_late(response, after)
        if response.delay > 0:
            try:
                await asyncio.sleep(response.delay)
            except BaseException:
                self.give_back_soon(response, keys, cost=cost)
                raise
        return patience.accepted(response)

    # ---- Many at once ------------------------------------------------------------------------

    async def _many(self, requests: List[Tuple[Keys, float]]) -> List[Any]:
        """All of them are good, or none is sent."""
        driver = loops_of(self.limiter).driver()
        answers: List[Answer] = []
        try:
            for keys, cost in requests:
                answers.append(self._ask(driver, keys, {"cost": cost}))
            return await asyncio.gather(*answers, return_exceptions=True)
        except BaseException:
            for answer, (keys, cost) in zip(answers, requests):
                self._give_up(answer, keys, {"cost": cost})
            raise

    async def request_many(self, requests: Iterable[Union[Keys, Tuple[Keys, float]]], *,
                           cost: float = 1.0, return_exceptions: bool = False) -> List[Any]:
        """Asks for many permits at once: the responses, in order.

        ``requests`` are mappings from limits to keys, or pairs of one and its cost, each decided by
        itself. A server decides them in about this order: some may be under way at the same time.

        One that fails doesn't stop the others. With ``return_exceptions`` its exception stands in
        its place; without, the first is raised once all are decided, and all of them are in its
        ``responses``, if it is a StoreError.
        """
        if not self._waits:
            return self.limiter.request_many(requests, cost=cost,
                                             return_exceptions=return_exceptions)
        pairs = [one if isinstance(one, tuple) else (one, cost) for one in requests]
        responses: List[Any] = []
        for first in range(0, len(pairs), MANY):
            responses += await self._many(pairs[first:first + MANY])
        return responses if return_exceptions else StoreRateLimiter._checked(responses)

    # ---- Looking -----------------------------------------------------------------------------

    async def _look(self, call: Callable[..., Any], *args: Any) -> Any:
        """In a thread of the loop's, since these wait for a server, or for a process that holds a
        lock. They are rare, and have no need to go with others."""
        if not self._waits:
            return call(*args)
        return await asyncio.get_running_loop().run_in_executor(None, call, *args)

    async def state(self, limit: str, key: Any) -> Optional[State]:
        """The bucket of a key under a limit as it is stored, or None when there is none."""
        state: Optional[State] = await self._look(self.limiter.state, limit, key)
        return state

    async def statistics(self) -> Statistics:
        """What the store has counted."""
        statistics: Statistics = await self._look(self.limiter.statistics)
        return statistics

    async def check(self) -> Health:
        """Asks the store whether it is there and how it is; raises as a request would."""
        health: Health = await self._look(self.limiter.check)
        return health

    # ---- Ending ------------------------------------------------------------------------------

    def close(self) -> None:
        """Closes the limiter, as its own ``close`` does: calls under way end as usual."""
        self.limiter.close()

    async def __aenter__(self) -> AsyncRateLimiter:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
