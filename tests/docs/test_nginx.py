# SPDX-License-Identifier: MIT
"""docs/from-nginx.md: what it says of nginx's limits and of ours is so. Each row of its table, and
random traffic under each row's limits, is decided by nginx's way of counting and by a replay."""

import json
import os
import random
import re
import subprocess
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENT = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "from-nginx.md")
REDBUCKET = os.environ["REDBUCKET"]
ROW = re.compile(r"^\| `limit_req zone=api(.*?);` \| `(\S+)` \| (\d+) \| (\d+) \| (.*?) \| (\d+) \|$",
                 re.MULTILINE)


class Nginx:
    """Counts in thousandths of a request and in milliseconds, as nginx does: `excess` is what a key
    has beyond its rate."""

    def __init__(self, parameters, rate):
        numbers = dict(re.findall(r"(burst|delay)=(\d+)", parameters))
        self.burst = int(numbers.get("burst", 0)) * 1000
        self.free = self.burst if "nodelay" in parameters else int(numbers.get("delay", 0)) * 1000
        self.rate = rate * 1000
        self.excess = self.last = None

    def request(self, now):
        """The delay in milliseconds, or None for a rejection."""
        excess = 0
        if self.last is not None:
            excess = max(self.excess - self.rate * (now - self.last) // 1000 + 1000, 0)
        if excess > self.burst:
            return None
        self.excess, self.last = excess, now
        return max(excess - self.free, 0) * 1000 // self.rate


def replay(limit, times):
    """The same of ours, in milliseconds."""
    steps = "".join(json.dumps({"t": time / 1000, "keys": {"api": "192.0.2.7"}}) + "\n"
                    for time in times)
    said = subprocess.run([REDBUCKET, "-c", "/dev/null", "-l", limit, "replay", "--format", "jsonl",
                           "--output", "jsonl", "-"], input=steps, check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    answers = [json.loads(line) for line in said.splitlines()]
    return [answer["delay"] * 1000 if answer["accepted"] else None for answer in answers]


def rows():
    with open(DOCUMENT, encoding="utf-8") as file:
        return ROW.findall(file.read())


class Equivalences(unittest.TestCase):
    def assert_same(self, theirs, ours, where):
        self.assertEqual([delay is None for delay in theirs], [delay is None for delay in ours], where)
        for one, other in zip(theirs, ours):
            if one is not None:
                self.assertAlmostEqual(one, other, delta=1, msg=where)

    def test_there_are_four(self):
        self.assertEqual(4, len(rows()))

    def test_numbers_of_the_table(self):
        for parameters, limit, at_once, waiting, longest, rejected in rows():
            nginx = Nginx(parameters, 10)
            for answers in ([nginx.request(0) for _ in range(30)], replay(limit, [0] * 30)):
                accepted = [delay for delay in answers if delay is not None]
                late = [delay for delay in accepted if delay > 0]
                said = f"{max(late) / 1000:g} s" if late else "-"
                self.assertEqual(
                    (int(at_once), int(waiting), longest, int(rejected)),
                    (len(accepted) - len(late), len(late), said, 30 - len(accepted)), limit)

    def test_random_traffic(self):
        luck = random.Random(7)
        for parameters, limit, *_ in rows():
            for pace in (20, 100, 150, 400):
                times, now = [], 0
                for _ in range(500):
                    now += luck.choice((0, 0, luck.randrange(2 * pace)))
                    times.append(now)
                nginx = Nginx(parameters, 10)
                theirs = [nginx.request(time) for time in times]
                self.assert_same(theirs, replay(limit, times), f"{limit}, {pace}")

    def test_other_pairs_by_the_rule(self):
        luck = random.Random(8)
        for _ in range(10):
            burst = luck.randrange(1, 30)
            free = luck.randrange(burst + 1)
            times = sorted(luck.randrange(20000) for _ in range(400))
            nginx = Nginx(f" burst={burst} delay={free}", 10)
            limit = f"api:10r/s,burst={free},delay={burst - free}"
            self.assert_same([nginx.request(time) for time in times], replay(limit, times), limit)


if __name__ == "__main__":
    unittest.main()
