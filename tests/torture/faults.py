# SPDX-License-Identifier: MIT
"""Python's form under faults: threads, arrays and coroutines, which tell by lines what they ask for
and are answered (python.c has the lines, and judges them).

usage: faults.py URL SECONDS SEED POLICY

Workers 0 and 1 are threads that ask for one thing at a time, 2 gives arrays, 3 is a loop of coroutines,
some of which are cancelled. The even ones have a store that fails as it does, the odd ones one with a
policy.
"""

import asyncio
import itertools
import os
import queue
import random
import sys
import threading
import time

from redbucket import RateLimit, RedisRateLimiter, StoreError, Zone

TIMEOUT_S = .25
PACE_S = .025
IMPATIENT = 5  # one in so many asks the same again and again
TIMES = 8
REQUEST, PEEK = 0, 1
BOOK = (1e-9, 1e9, 0, 0, 0)
LIMITS = {  # as in accounts.c: rate, burst, delay, lease, lease_time
    "tight": (15, 8, 4, 0, 0), "own": (10, 2, 0, 0, 0), "gate": (25, 5, 0, 0, 0),
    "hot": (20, 30, 0, 16, .2), "book": BOOK, "left": BOOK, "right": BOOK,
    "hoard": (1e-9, 1e9, 0, 20, .5),
}

lines = queue.SimpleQueue()
numbers = itertools.count()
schedule = threading.local()


def kept():
    """For how many seconds this thread was kept waiting for a processor; 0 where nobody tells."""
    try:
        if not hasattr(schedule, "file"):
            schedule.file = open("/proc/thread-self/schedstat", "rb", buffering=0)
        schedule.file.seek(0)
        return int(schedule.file.read(64).split()[1]) * 1e-9
    except (OSError, IndexError):
        return 0.0


def tell(line):
    lines.put(line)


def write_lines():
    """Whoever tells something must not wait for who listens."""
    while True:
        line = lines.get()
        if line is None:
            break
        sys.stdout.write(line + "\n")
        if lines.empty():
            sys.stdout.flush()


def open_limiter(url, **options):
    limiter = RedisRateLimiter(url, timeout=TIMEOUT_S, **options)
    limiter.configure({name: RateLimit(Zone(name, rate, 0), burst, delay, lease=lease,
                                       lease_time=lease_time)
                       for name, (rate, burst, delay, lease, lease_time) in LIMITS.items()})
    return limiter


class Worker:
    def __init__(self, number, limiter, seed):
        self.number, self.limiter = number, limiter
        self.chance = random.Random(seed * 7919 + number)

    def draw(self):
        """(operation, keys, cost)"""
        chance, shape = self.chance, self.chance.randrange(12)
        if shape < 2:
            return REQUEST, {"tight": f"t{chance.randrange(2)}"}, 1
        if shape < 4:
            return REQUEST, {"hot": "h"}, 1
        if shape < 5:
            return REQUEST, {"hoard": "d"}, 1
        if shape < 9:
            names = ["left", "right", "gate"]
            chance.shuffle(names)
            key = chance.choice(["{p}", "{q}"] if shape < 7 else ["c", "d"])
            return REQUEST, dict.fromkeys(names, key), 1
        return (PEEK if chance.randrange(5) == 0 else REQUEST, {"book": f"w{self.number}"},
                1 + chance.randrange(3))

    def begin(self, operation, keys, cost):
        """What end() needs; the time counts from here."""
        number = next(numbers)
        named = " ".join(f"{limit}={key}" for limit, key in keys.items())
        tell(f"b {number} {self.number} {operation} {cost} {named}")
        return number, f"{kept():.9f} {time.monotonic():.9f}"

    def end(self, begun, answer):
        number, then = begun
        now = f"{then} {time.monotonic():.9f} {kept():.9f}"
        if isinstance(answer, StoreError):
            tell(f"e {number} ERROR_{answer.status} 0 0 0 {now}")
        elif isinstance(answer, asyncio.CancelledError):
            tell(f"e {number} CANCELLED 0 0 0 {now}")
        elif isinstance(answer, BaseException):
            tell(f"fault {answer!r}")
        else:
            tell(f"e {number} OK {answer.accepted:d} {answer.degraded:d} {answer.remaining} {now}")

    def ask(self, drawn=None):
        """True when the store itself answered."""
        operation, keys, cost = drawn or self.draw()
        begun = self.begin(operation, keys, cost)
        try:
            answer = (self.limiter.peek if operation == PEEK else self.limiter.request)(keys, cost=cost)
        except Exception as error:  # whatever it is, the lines say it
            answer = error
        self.end(begun, answer)
        return not isinstance(answer, Exception) and not answer.degraded

    # ---- Forms -----------------------------------------------------------------------------------

    def ask_singly(self, until):
        while time.monotonic() < until:
            drawn = self.draw()
            for _ in range(TIMES if self.chance.randrange(IMPATIENT) == 0 else 1):
                self.ask(drawn)
            time.sleep(self.chance.random() * PACE_S)

    def ask_many(self, until):
        while time.monotonic() < until:
            drawn = [self.draw() for _ in range(self.chance.randrange(1, 16))]
            requests = [(keys, cost) for operation, keys, cost in drawn if operation == REQUEST]
            begun = [self.begin(REQUEST, keys, cost) for keys, cost in requests]
            answers = self.limiter.request_many(requests, return_exceptions=True)
            for one, answer in zip(begun, answers):
                self.end(one, answer)
            time.sleep(self.chance.random() * 4 * PACE_S)

    async def coroutine(self, until):
        limiter = self.limiter.aio
        while time.monotonic() < until:
            operation, keys, cost = self.draw()
            begun = self.begin(operation, keys, cost)
            asked = (limiter.peek if operation == PEEK else limiter.request)(keys, cost=cost)
            try:
                if self.chance.randrange(50) == 0:
                    answer = await asyncio.wait_for(asked, .005)
                else:
                    answer = await asked
            except asyncio.TimeoutError as error:
                answer = error if isinstance(error, StoreError) else asyncio.CancelledError()
            except Exception as error:
                answer = error
            self.end(begun, answer)
            await asyncio.sleep(self.chance.random() * 4 * PACE_S)

    def ask_in_loop(self, until):
        async def all_of_them():
            await asyncio.gather(*(self.coroutine(until) for _ in range(8)))
        asyncio.run(all_of_them())

    def time_back(self):
        begin, answers = time.monotonic(), 0
        while answers < 20 and time.monotonic() < begin + 20:
            answers = answers + 1 if self.ask() else 0
            time.sleep(.005)
        return time.monotonic() - begin


def sleep_only(ended):
    """What this interpreter adds by itself to the time that anything takes."""
    while not ended.is_set():
        begin = time.monotonic()
        time.sleep(.01)
        late = time.monotonic() - begin - .01
        if late > .003:
            tell(f"s {begin:.9f} {begin + .01 + late:.9f} {late:.9f}")


def open_descriptors():
    return len(os.listdir("/proc/self/fd"))


def main():
    url, seconds, seed, policy = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    asyncio.run(asyncio.sleep(0))  # what stays open from then on
    kept()
    before = open_descriptors()
    limiters = [open_limiter(url, connections=4),
                open_limiter(url, connections=2, denial_time=0, on_error=policy)]
    workers = [Worker(number, limiters[number % 2], seed) for number in range(4)]
    ended = threading.Event()
    writer = threading.Thread(target=write_lines)
    writer.start()
    sleeper = threading.Thread(target=sleep_only, args=[ended])
    sys.stdin.readline()
    sleeper.start()
    until = time.monotonic() + seconds
    forms = [Worker.ask_singly, Worker.ask_singly, Worker.ask_many, Worker.ask_in_loop]
    threads = [threading.Thread(target=form, args=[worker, until])
               for form, worker in zip(forms, workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tell("asked")
    sys.stdin.readline()
    back = max(worker.time_back() for worker in workers[:2])
    ended.set()
    sleeper.join()
    leased = sum(limiter.statistics().leased for limiter in limiters)
    denied = sum(limiter.statistics().denied for limiter in limiters)
    for limiter in limiters:
        limiter.close()
    if open_descriptors() != before:
        tell(f"fault {open_descriptors()} descriptors open, {before} before")
    tell(f"back {back:.3f} {leased} {denied}")
    tell(None)
    writer.join()


if __name__ == "__main__":
    main()
