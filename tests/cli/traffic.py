# SPDX-License-Identifier: MIT
"""What the tests of replay share: log lines, and the model in its slowest and plainest form to
compare with."""

import calendar
import math
import time

TICK = 2e-6
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
NOON = calendar.timegm((2024, 3, 12, 12, 0, 0))


def stamp(when):
    """17/May/2015:10:05:03 +0000, in no locale."""
    t = time.gmtime(when)
    return (f"{t.tm_mday:02}/{MONTHS[t.tm_mon - 1]}/{t.tm_year}:"
            f"{t.tm_hour:02}:{t.tm_min:02}:{t.tm_sec:02} +0000")


def common(when, address="192.0.2.7", request="GET / HTTP/1.1", user="-", status=200):
    return f'{address} - {user} [{stamp(when)}] "{request}" {status} 12'


def combined(when, address="192.0.2.7", request="GET / HTTP/1.1", agent="-", **more):
    return f'{common(when, address, request, **more)} "-" "{agent}"'


def text(lines):
    return "".join(line + "\n" for line in lines)


class Bucket:
    """One key of one limit."""

    def __init__(self, rate, burst=0, delay=0):
        self.rate, self.burst, self.delay = rate, burst, delay
        self.state = None

    def ask(self, now, cost=1.0):
        """The answer to a request for one key, as --output jsonl gives it, but for retry_after."""
        stamped, value = self.state or (now, 0.0)
        level = max(value - max(now - stamped, 0.0) * self.rate, 0.0)
        room = self.burst + 1 - (level + cost)
        slack = self.rate * TICK
        if room < -self.delay - slack:
            left = max(math.floor(self.burst + 1 - level + slack), 0)
            return {"accepted": False, "remaining": left}
        self.state = (max(now, stamped), level + cost)
        return {"accepted": True, "remaining": max(math.floor(room + slack), 0),
                "delay": -room / self.rate if room < -slack else 0.0}


def replayed(requests, limit):
    """The answers to (time, key) in order of time, given in the order of the requests."""
    answers = [None] * len(requests)
    buckets = {}
    for index in sorted(range(len(requests)), key=lambda i: requests[i][0]):
        now, key = requests[index]
        bucket = buckets.setdefault(key, Bucket(**limit))
        answer = bucket.ask(float(now))
        state = list(bucket.state) if bucket.state else None
        answers[index] = {**answer, "state": {"ip": state}}
    return answers
