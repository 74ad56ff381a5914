# SPDX-License-Identifier: MIT
"""The soak's worker in Python: threads, one of them with an event loop, that ask a limiter on a
server which is restarted all the time.

It writes what it measures into memory that it shares with the conductor (soak.h), at places that it
was told: words of 64 bits, by their numbers.

usage: soak_python.py FD PLACES NUMBERS URL CONTROL     started by the conductor alone
"""

import asyncio
import ctypes
import gc
import mmap
import os
import random
import socket
import sys
import threading
import time

import redbucket

RATE, BURST, DELAY = 5.0, 9.0, 3.0
LEASED_RATE, LEASED_BURST, LEASE, LEASE_TIME = 40.0, 20.0, 10.0, 0.25
PLAIN_KEYS, LEASED_KEYS = 4, 2
PROMPT_NS = 50_000_000
BINS = 224
PAUSE_S = 0.012
TURNS = 64  # of an event loop, until there is a new one
BATCH = 4
BLOCK = 64  # bytes, about, of an object of Python's
STATUSES = ("TIMEOUT", 9), ("UNAVAILABLE", 15), ("IO", 16), ("PROTOCOL", 17), ("READONLY", 19)
SERVER = 22


class MallInfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = MallInfo


class Shared:
    """The conductor's memory."""

    def __init__(self, fd, places):
        memory = mmap.mmap(fd, 0)
        self.words = memoryview(memory).cast("B").cast("Q")
        self.places = {name: int(at) for name, _, at in (p.partition("=") for p in places.split())}
        self.lock = threading.Lock()

    def get(self, name):
        return self.words[self.places[name]]

    def put(self, name, value, offset=0):
        self.words[self.places[name] + offset] = value

    def add(self, name, offset=0):
        with self.lock:
            self.words[self.places[name] + offset] += 1

    def note_time(self, name, ns):
        exponent = max(ns, 1).bit_length() - 1
        at = ((exponent - 6) << 3 | ns >> (exponent - 3) & 7) if exponent >= 6 else 0
        self.add(name, min(at, BINS - 1))


def kib_of(path, word):
    with open(path, encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(word))


def measure(shared, name):
    gc.collect()
    info = libc.mallinfo2()
    with open("/proc/self/maps", encoding="ascii") as file:
        mappings = sum(1 for _ in file)
    measures = (info.uordblks + info.hblkhd + sys.getallocatedblocks() * BLOCK, kib_of("/proc/self/smaps_rollup", "Rss:"), kib_of("/proc/self/status", "VmData:"),
                len(os.listdir("/proc/self/fd")) - 1, len(os.listdir("/proc/self/task")), mappings)
    for offset, value in enumerate(measures):
        shared.put(name, value, offset)


class Book:
    """What was accepted of each key, counted from outside, as soak_book does."""

    def __init__(self, shared):
        self.shared = shared
        self.until = {}
        self.lock = threading.Lock()

    def enter(self, key, leased, began_ns):
        now = time.monotonic_ns()
        if now - began_ns > PROMPT_NS:
            self.shared.add("late")
            return
        rate = LEASED_RATE if leased else RATE
        full = (LEASED_BURST + 1 + LEASED_RATE * LEASE_TIME) if leased else BURST + 1 + DELAY
        with self.lock:
            until = max(self.until.get(key, 0), now) + int(1e9 / rate)
            self.until[key] = until
            over = (until - time.monotonic_ns()) / 1e9 * rate - full - rate * PROMPT_NS / 1e9
            if over * 1000 > self.shared.get("excess"):
                self.shared.put("excess", int(over * 1000))

    def forget(self):
        now = time.monotonic_ns()
        with self.lock:
            self.until = {key: until for key, until in self.until.items() if until > now}


class Worker:
    def __init__(self, shared, numbers, url, control):
        began, generation, opening, forking, seed = numbers.split()
        self.shared = shared
        self.began, self.generation = float(began), float(generation)
        self.opening, self.forking = float(opening), float(forking)
        self.random = random.Random(int(seed))
        self.url, self.control = url, control
        self.book = Book(shared)
        self.limiter = None
        self.ending = threading.Event()
        self.asking = [threading.Lock(), threading.Lock()]
        self.threads = []
        self.silent = True

    def open(self):
        limiter = redbucket.RedisRateLimiter(self.url)
        limiter.configure(
            a=redbucket.RateLimit(redbucket.Zone("python-a", RATE, 3), BURST, DELAY),
            b=redbucket.RateLimit(redbucket.Zone("python-b", LEASED_RATE, 3), LEASED_BURST,
                                  lease=LEASE, lease_time=LEASE_TIME))
        return limiter

    # ---- Asking ------------------------------------------------------------------------------

    def choose(self):
        leased = self.random.random() < 0.6
        generation = int((time.monotonic() - self.began) / self.generation)
        number = self.random.randrange(LEASED_KEYS if leased else PLAIN_KEYS)
        return {"b" if leased else "a": f"g{generation}-k{number}"}

    def harm(self):
        return self.shared.get("harmed"), self.shared.get("troubled")

    def note(self, keys, answer, harm, began_ns):
        took = time.monotonic_ns() - began_ns
        now = self.harm()
        disturbed = harm[0] != now[0] or bool(harm[1] or now[1])
        if not self.silent:
            self.shared.note_time("disturbed" if disturbed else "calls", took)
        if isinstance(answer, BaseException):
            self.shared.add("failed", 25 * disturbed + dict(STATUSES).get(answer.status, SERVER))
            return
        self.shared.add("accepted" if answer.accepted else "rejected")
        if answer.accepted:
            (limit, key), = keys.items()
            self.book.enter((limit, key), limit == "b", began_ns)

    def ask_control(self, connection):
        began = time.monotonic_ns()
        connection.sendall(b"PING\r\n")
        assert connection.recv(64) == b"+PONG\r\n"
        if not self.silent:
            self.shared.note_time("control", time.monotonic_ns() - began)

    def ask(self, limiter):
        keys, harm, began = self.choose(), self.harm(), time.monotonic_ns()
        try:
            answer = limiter.request(keys)
        except redbucket.StoreError as error:
            answer = error
        self.note(keys, answer, harm, began)

    async def ask_soon(self, limiter):
        keys, harm, began = self.choose(), self.harm(), time.monotonic_ns()
        try:
            answer = await limiter.aio.request(keys)
        except redbucket.StoreError as error:
            answer = error
        self.note(keys, answer, harm, began)

    async def turn(self):
        await asyncio.gather(*(self.ask_soon(self.limiter) for _ in range(BATCH)))

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.control)
        return connection

    def run_thread(self):
        with self.connect() as connection:
            while not self.ending.is_set():
                with self.asking[0]:
                    self.ask_control(connection)
                    self.ask(self.limiter)
                time.sleep(PAUSE_S)

    def run_loop(self):
        turns = 0
        loop = asyncio.new_event_loop()
        while not self.ending.is_set():
            with self.asking[1]:
                loop.run_until_complete(self.turn())
                turns += 1
                if turns % TURNS == 0:
                    loop.close()
                    loop = asyncio.new_event_loop()
            time.sleep(PAUSE_S)
        loop.close()

    # ---- Keeping -----------------------------------------------------------------------------

    def begin(self):
        self.limiter = self.open()
        self.ending.clear()
        self.threads = [threading.Thread(target=run) for run in (self.run_thread, self.run_loop)]
        for thread in self.threads:
            thread.start()

    def end(self):
        self.ending.set()
        for thread in self.threads:
            thread.join()
        self.threads = []
        self.limiter.close()
        self.limiter = None
        gc.collect()

    def open_again(self):
        limiter = self.open()
        self.ask(limiter)
        limiter.statistics()
        try:
            limiter.check()
            self.shared.add("opened")
        except redbucket.StoreError:
            pass
        limiter.close()

    def fork(self):
        """While nobody asks, as Python wants it."""
        with self.asking[0], self.asking[1]:
            child = os.fork()
            if child == 0:
                self.silent = True
                try:
                    for _ in range(3):
                        self.limiter.request(self.choose())
                except redbucket.StoreError:
                    pass
                os._exit(0)
            _, status = os.waitpid(child, 0)
        assert status == 0, status
        self.shared.add("forked")

    def stand_still(self):
        number = self.shared.get("round")
        with self.asking[0], self.asking[1]:
            self.book.forget()
            measure(self.shared, "measures")
        self.shared.put("parked", number)

    def keep(self):
        next_open = next_fork = time.monotonic()
        while self.shared.get("ending") == 0:
            time.sleep(0.01)
            if self.shared.get("round") != self.shared.get("parked"):
                self.stand_still()
            if time.monotonic() >= next_open:
                self.open_again()
                next_open = time.monotonic() + self.opening
            if time.monotonic() >= next_fork:
                self.fork()
                next_fork = time.monotonic() + self.forking

    def rehearse(self):
        for _ in range(3):
            self.begin()
            self.open_again()
            self.fork()
            time.sleep(0.2)
            self.end()
        for _ in range(2):
            measure(self.shared, "before")

    def work(self):
        self.rehearse()
        self.silent = False
        self.begin()
        self.shared.put("ready", 1)
        self.keep()
        self.end()
        self.book.forget()
        measure(self.shared, "after")
        self.shared.put("ended", 1)


def main():
    fd, places, numbers, url, control = sys.argv[1:]
    Worker(Shared(int(fd), places), numbers, url, control).work()


if __name__ == "__main__":
    main()
