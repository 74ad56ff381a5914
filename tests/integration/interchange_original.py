# SPDX-License-Identifier: MIT
"""Takes the part of the original Python redbucket in interchange.py, which runs this where that is
installed: asks as it is told, a line at a time, as interchange_ours does.

    interchange_original.py SOCKET METHOD CODEC KEY_FORMAT RATE BURST DELAY EXPIRY
"""

import sys
import time

import redbucket
import redis

LIMITERS = {
    "script": redbucket.RedisScriptRateLimiter,
    "transaction": redbucket.RedisTransactionalRateLimiter,
}


def make_limiter(path, method, codec, key_format, *numbers):
    rate, burst, delay, expiry = (float(number) for number in numbers)
    client = redis.Redis(unix_socket_path=path, socket_timeout=30)
    limiter = LIMITERS[method](client, key_format=key_format, codec=codec)
    zone = redbucket.Zone("a", rate=rate, expiry=int(expiry))
    limiter.configure(a=redbucket.RateLimit(zone=zone, burst=burst, delay=delay))
    return limiter


def request(limiter, key):
    response = limiter.request(a=key)
    return f"accepted {float(response.delay)!r}" if response.accepted else "rejected"


def read(limiter, key):
    state = limiter._get_state("a", key)  # what else reads one?
    return "none" if state is None else f"state {state.timestamp!r} {state.value!r}"


def run(limiter, key, seconds):
    accepted = requests = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        accepted += limiter.request(a=key).accepted
        requests += 1
    return f"count {accepted} {requests}"


def main():
    limiter = make_limiter(*sys.argv[1:])
    print("ready", flush=True)
    for line in sys.stdin:
        command, key = line.rstrip("\n").split(" ", 1)
        if command == "request":
            answer = request(limiter, key)
        elif command == "read":
            answer = read(limiter, key)
        else:
            key, seconds = key.rsplit(" ", 1)
            answer = run(limiter, key, float(seconds))
        print(answer, flush=True)


if __name__ == "__main__":
    main()
