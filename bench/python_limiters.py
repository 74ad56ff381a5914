# SPDX-License-Identifier: MIT
"""One caller of one limiter in Python, on one hot key that is always accepted.

usage: python_limiters.py KIND SOCKET

KIND names the package: ours, original, limits or throttled. Prints "NAME VALUE" lines: requests a
second in memory, and microseconds a request on the server behind the Unix socket; the best of a few
rounds each. Run by python.py in an environment that has the package.
"""

import sys
import time
import warnings

ROUNDS = 3
KEY = "192.0.2.7"


def best(ask, count):
    """Seconds a call."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(count):
            ask()
        times.append((time.perf_counter() - begin) / count)
    return min(times)


def ours(path):
    """The original's names and ours are the same."""
    import redbucket
    from redis import Redis

    for kind, memory in ((redbucket.InMemoryRateLimiter, True),
                         (redbucket.RedisScriptRateLimiter, False)):
        limiter = kind() if memory else kind(Redis(unix_socket_path=path))
        limiter.configure(user=redbucket.RateLimit(redbucket.Zone("user", 1e6, 3600), burst=1e9))
        yield lambda limiter=limiter: limiter.request(user=KEY)


def limits(path):
    from limits import parse, storage, strategies

    rate = parse("1000000000/second")
    for where in (storage.MemoryStorage(), storage.RedisStorage(f"redis+unix://{path}")):
        limiter = strategies.FixedWindowRateLimiter(where)
        yield lambda limiter=limiter: limiter.hit(rate, KEY)


def throttled(path):
    from throttled import Throttled, rate_limiter, store

    for where in (store.MemoryStore(), store.RedisStore(f"unix://{path}")):
        limiter = Throttled(using="gcra", quota=rate_limiter.per_sec(10**6, burst=10**9), store=where)
        yield lambda limiter=limiter: limiter.limit(KEY)


def main():
    kind, path = sys.argv[1:]
    warnings.simplefilter("ignore")
    makers = {"ours": ours, "original": ours, "limits": limits, "throttled": throttled}
    in_memory, on_server = makers[kind](path)
    print(f"{kind}_memory {1 / best(in_memory, 20_000):.0f}")
    print(f"{kind}_server_us {best(on_server, 2_000) * 1e6:.3f}")


if __name__ == "__main__":
    main()
