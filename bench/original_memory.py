# SPDX-License-Identifier: MIT
"""The reference: the memory limiter of the Python package redbucket 0.1.0, one hot key.

Prints "NAME VALUE" lines, as embedded.c does. Run by report.py in an environment that has it.
"""

import time

import redbucket

COUNT = 100_000
ROUNDS = 3


def rate(limiter):
    begin = time.perf_counter()
    for _ in range(COUNT):
        limiter.request(user="192.0.2.7")
    return COUNT / (time.perf_counter() - begin)


def main():
    limiter = redbucket.InMemoryRateLimiter()
    zone = redbucket.Zone("user", rate=1e6, expiry=3600)
    limiter.configure(user=redbucket.RateLimit(zone, burst=1e9))
    print("original_hot", max(rate(limiter) for _ in range(ROUNDS)))


if __name__ == "__main__":
    main()
