# SPDX-License-Identifier: MIT
"""The original Python redbucket and this library on the same keys: taking turns, each reads what
the other wrote and goes on from it, exactly; at the same time, together they never admit more than
the limits.

Both of the original's methods and both of ours, with both codecs. The only licence is what the
original's script takes in JSON, where it rounds each timestamp to 14 digits: up to 50 microseconds.
"""

import json
import os
import random
import struct
import subprocess
import sys
import time
import unittest
from urllib.parse import quote

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import original  # noqa: E402
import server as servers  # noqa: E402

OURS = os.environ["INTERCHANGE_OURS"]
BUILD = os.environ["BUILD"]
FORMAT = "redbucket:{zone}:{key}"
ROUNDING = 5e-5
TICK = 2e-6
METHODS = ("script", "transaction")
# Of the script's tostring, which has 14 digits.
FOURTEEN = 1e-13

python = missing = None


def setUpModule():
    global python, missing
    try:
        python = original.interpreter(BUILD)
    except original.Missing as reason:
        missing = f"the original can't be had: {reason}"


class Actor:
    """One who asks, in a process of its own."""

    def __init__(self, command, ready):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        if ready:
            assert self.process.stdout.readline() == "ready\n"

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline().split()
        if not line or line[0] == "error":
            raise AssertionError(f"{self.process.args}: {line}")
        return line[0], [float(word) for word in line[1:]]

    def ask(self, *words):
        self.tell(*words)
        return self.hear()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Limit:
    def __init__(self, rate, burst, delay, expiry=60):
        self.rate, self.burst, self.delay, self.expiry = rate, burst, delay, expiry

    def words(self):
        return [str(number) for number in (self.rate, self.burst, self.delay, self.expiry)]

    def level(self, state, now):
        timestamp, value = state
        return max(value - max(now - timestamp, 0) * self.rate, 0)

    def room(self, level):
        return self.burst + 1 - (level + 1)


def decode(codec, raw):
    if raw is None:
        return None
    if codec == "json":
        read = json.loads(raw.decode())
        assert sorted(read) == ["t", "v"], raw
        return float(read["t"]), float(read["v"])
    return struct.unpack("<dd", raw)


class InterchangeTest:
    """One body for each server and codec."""

    kind = "redis"
    codec = None
    methods = METHODS
    server = None

    @classmethod
    def setUpClass(cls):
        if missing is None and servers.program(cls.kind) is not None:
            cls.server = servers.Server(cls.kind)

    @classmethod
    def tearDownClass(cls):
        if cls.server is not None:
            cls.server.stop()

    def setUp(self):
        if self.server is None:
            self.skipTest(missing or f"no server of kind {self.kind}")
        self.server.ask("FLUSHALL")

    def original(self, method, limit, key_format=FORMAT):
        actor = Actor([python, os.path.join(HERE, "interchange_original.py"), self.server.socket,
                       method, self.codec, key_format, *limit.words()], True)
        self.addCleanup(actor.end)
        actor.prints = method == "script"
        actor.rounds = actor.prints and self.codec == "json"
        return actor

    def ours(self, method, limit, key_format=FORMAT):
        query = f"timeout=20s&method={method}&codec={self.codec}&key_format={quote(key_format)}"
        actor = Actor([OURS, self.server.url("unix", query), *limit.words()], False)
        self.addCleanup(actor.end)
        actor.prints = actor.rounds = False
        return actor

    def everybody(self, limit):
        return [make(method, limit) for make in (self.original, self.ours)
                for method in self.methods]

    def state(self, key="k"):
        return decode(self.codec, self.server.ask("GET", f"redbucket:a:{key}"))

    def now(self):
        seconds, microseconds = self.server.ask("TIME")
        return int(seconds) + int(microseconds) / 1000000

    def check_accepted(self, actor, limit, before, answer, times):
        """What was stored, and the delay that was answered, follow from the state before."""
        after = self.state()
        slip = ROUNDING if actor.rounds else 0
        self.assertGreaterEqual(after[0], times[0] - slip)
        self.assertLessEqual(after[0], max(times[1], before[0] if before else 0) + slip)
        level = limit.level(before, after[0]) if before else 0
        allowed = 2 * slip * limit.rate + (FOURTEEN * after[1] if actor.rounds else 0)
        self.assertLessEqual(abs(after[1] - (level + 1)), allowed)
        room = limit.burst + 1 - after[1]
        self.assertGreaterEqual(room, -limit.delay - limit.rate * TICK - allowed)
        delay = -room / limit.rate if room < 0 else 0
        self.assertAlmostEqual(answer[0], delay, delta=max(TICK, slip) + FOURTEEN * delay)

    def check_rejected(self, limit, before, times):
        """There was no room at the beginning, and nothing has changed."""
        self.assertEqual(self.state(), before)
        room = limit.room(limit.level(before, times[0]))
        self.assertLess(room, -limit.delay + ROUNDING * limit.rate)

    def take_turn(self, actor, limit):
        before = self.state()
        begun = self.now()
        what, numbers = actor.ask("request", "k")
        times = (begun, self.now())
        if what == "accepted":
            self.check_accepted(actor, limit, before, numbers, times)
        else:
            self.check_rejected(limit, before, times)
        return what

    def test_they_take_turns(self):
        limit = Limit(rate=97.3, burst=4, delay=3)
        everybody = self.everybody(limit)
        chance = random.Random(7)
        seen = {"accepted": 0, "rejected": 0}
        for _ in range(400):
            seen[self.take_turn(chance.choice(everybody), limit)] += 1
            if chance.random() < 0.3:
                time.sleep(chance.random() * 0.03)
        self.assertGreater(seen["accepted"], 50)
        self.assertGreater(seen["rejected"], 20)

    def test_each_reads_what_the_other_wrote(self):
        limit = Limit(rate=0.01, burst=1000, delay=0, expiry=200000)
        everybody = self.everybody(limit)
        for writer in everybody:
            self.assertEqual(writer.ask("request", "k")[0], "accepted")
            stored = self.state()
            for reader in everybody:
                what, numbers = reader.ask("read", "k")
                self.assertEqual(what, "state")
                # The original's script tells 14 digits.
                near = 1e-4 if reader.prints else 0
                self.assertAlmostEqual(numbers[0], stored[0], delta=near)
                self.assertAlmostEqual(numbers[1], stored[1], delta=near)

    def test_a_burst_is_one_burst(self):
        """However they take turns, all together get burst + 1 + delay, and then nobody anything."""
        limit = Limit(rate=0.001, burst=17, delay=5, expiry=30000)
        everybody = self.everybody(limit)
        accepted = 0
        for turn in range(40):
            accepted += everybody[turn % len(everybody)].ask("request", "k")[0] == "accepted"
        self.assertEqual(accepted, 23)

    def test_they_live_as_long(self):
        """Neither cuts the other's life short of what the limits need."""
        limit = Limit(rate=0.5, burst=100, delay=0, expiry=300)
        for actor in self.everybody(limit):
            self.assertEqual(actor.ask("request", "k")[0], "accepted")
            left_ms = self.server.ask("PTTL", "redbucket:a:k")
            self.assertTrue(290000 < left_ms <= 300000, left_ms)

    def test_they_mean_the_same_key(self):
        limit = Limit(rate=0.001, burst=0, delay=0, expiry=2000)
        formats = [FORMAT, "{zone}{key}", "{key}@{zone}", "r:{{{zone}:{key}}}",
                   "{{{key}}}:{zone}:{key}", "r {{}} & ? = # % + {zone} \u00e9 {key}"]
        keys = ["k", "192.0.2.7", "2001:db8::1", "a:b", "{b}", "h\u00e9 \u2603", "%s%n", "a*?[b]"]
        for key_format in formats:
            theirs = self.original("script", limit, key_format)
            ours = self.ours("transaction", limit, key_format)
            for number, key in enumerate(keys):
                first, second = (theirs, ours) if number % 2 else (ours, theirs)
                self.assertEqual(first.ask("request", key)[0], "accepted", (key_format, key))
                self.assertEqual(second.ask("request", key)[0], "rejected", (key_format, key))
                name = key_format.format(zone="a", key=key).encode()
                self.assertEqual(self.server.ask("KEYS", "*"), [name])
                self.server.ask("FLUSHALL")

    def run_together(self, limit, seconds):
        """All at once, two of ours for each of theirs; what each got, and in how long."""
        everybody = self.everybody(limit) + [self.ours(method, limit) for method in self.methods]
        for actor in everybody:
            actor.ask("request", "warm")
        begun = self.now()
        for actor in everybody:
            actor.tell("run", "k", seconds)
        counts = [actor.hear()[1] for actor in everybody]
        took = self.now() - begun
        for actor, (_, requests) in zip(everybody, counts):
            self.assertGreater(requests, 0, actor.process.args)
        return everybody, [accepted for accepted, _ in counts], took

    def test_together_they_stay_within_the_limits(self):
        limit = Limit(rate=400, burst=50, delay=10)
        everybody, accepted, took = self.run_together(limit, 2)
        bound = limit.burst + 1 + limit.delay + limit.rate * (took + TICK)
        rounded = sum(n for actor, n in zip(everybody, accepted) if actor.rounds)
        self.assertLessEqual(sum(accepted), bound + rounded * ROUNDING * limit.rate)
        # Nothing is lost between them. (A transaction of the original may never get a turn.)
        self.assertGreater(sum(accepted), 0.6 * limit.rate * 2)

    def test_together_they_get_one_burst(self):
        """Nothing drains: whoever overwrites what another took would show by one."""
        limit = Limit(rate=1e-4, burst=899, delay=0, expiry=10000000)
        _, accepted, _ = self.run_together(limit, 2)
        self.assertEqual(sum(accepted), 900)
        self.assertEqual(self.server.ask("EXISTS", "redbucket:a:k"), 1)


class Struct(InterchangeTest, unittest.TestCase):
    codec = "struct"


class Json(InterchangeTest, unittest.TestCase):
    codec = "json"

    def test_fourteen_digits_are_read(self):
        """As the original's script writes them, value first."""
        limit = Limit(rate=1, burst=0, delay=0)
        self.server.ask("SET", "redbucket:a:k", '{"v":1,"t":1582534960.1347}')
        for method in METHODS:
            what, numbers = self.ours(method, limit).ask("read", "k")
            self.assertEqual((what, numbers), ("state", [1582534960.1347, 1.0]))
            self.assertEqual(self.ours(method, limit).ask("request", "k")[0], "accepted")
            self.server.ask("SET", "redbucket:a:k", '{"v":1,"t":1582534960.1347}')

    def test_python_reads_the_very_numbers(self):
        limit = Limit(rate=0.3, burst=1000, delay=0, expiry=4000)
        for method in METHODS:
            ours = self.ours(method, limit)
            for _ in range(50):
                stamp = ours.ask("request", "k")[1][1]
                state = self.state()
                self.assertEqual(state[0], stamp)
                self.assertEqual(ours.ask("read", "k"), ("state", list(state)))


class OnValkey:
    """What doesn't differ between servers is tried on one alone."""

    kind = "valkey"
    test_a_burst_is_one_burst = None
    test_fourteen_digits_are_read = None
    test_they_live_as_long = None
    test_they_mean_the_same_key = None


class OnOldRedis(OnValkey):
    """By transaction alone: neither's script runs there."""

    kind = "old-redis"
    methods = ("transaction",)
    test_python_reads_the_very_numbers = None


class StructOnValkey(OnValkey, Struct):
    pass


class JsonOnValkey(OnValkey, Json):
    pass


class StructOnOldRedis(OnOldRedis, Struct):
    pass


class JsonOnOldRedis(OnOldRedis, Json):
    pass


if __name__ == "__main__":
    unittest.main()
