# SPDX-License-Identifier: MIT
"""The command where something is short: memory, descriptors, room to write, somebody who reads.

Every subcommand either does what it always does, or says in a line why not and ends with 2 or 3. It
never crashes, and never prints an answer that is another than with everything at hand.

$RESOURCES_EVERY has every allocation fail in turn, and not some of them.
"""

import gzip
import os
import random
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))

from command import REDBUCKET, CommandTest, elapsed  # noqa: E402

SCARCE = os.environ["SCARCE"]
SANITIZED = os.environ.get("SANITIZE", "none") != "none"
EVERY = "RESOURCES_EVERY" in os.environ
SEED = int(os.environ.get("RESOURCES_SEED", "1"))

# Of so many allocations the first few are tried, and some of the others.
FIRST, TRIED = 4, 10

LOG = "".join(f'192.0.2.{i % 7} - - [10/Oct/2023:13:55:{i % 60:02} +0000] "GET / HTTP/1.1" 200 2\n'
              for i in range(60))
STEPS = "".join(f'{{"t": {i / 4}, "op": "request", "keys": {{"ip": "k{i % 3}"}}}}\n'
                for i in range(60))
CONFIG = 'store = "memory:?size=64k"\nlimit ip { rate = 1/s  burst = 2 }\n'


class Short(CommandTest):
    def setUp(self):
        super().setUp()
        self.log = self.write("access.log", LOG)
        self.steps = self.write("steps.jsonl", STEPS)
        self.packed = self.write("access.log.gz", gzip.compress(LOG.encode()))
        self.config = self.write("some.conf", CONFIG)
        self.page = os.path.join(self.folder, "page.html")

    def commands(self):
        """(whether it prints the same each time, words)"""
        slow = ("-s", self.store, "-l", "ip:1/d,burst=2")
        replay = ("-l", "ip:1/s,burst=2", "replay", "--key", "ip=$remote_addr")
        steps = ("-l", "ip:1/s,burst=2", "replay", "--format", "jsonl")
        return [
            (True, (*slow, "request", "ip=k")),
            (False, (*slow, "--json", "peek", "ip=k")),
            (True, (*slow, "refund", "ip=k")),
            (True, (*slow, "charge", "ip=k")),
            (True, (*slow, "reset", "ip=k")),
            (True, (*slow, "run", "ip=k", "--", "echo", "ran")),
            (False, ("-c", self.config, "-s", "memory:?size=64k", "keys")),
            (False, ("-c", self.config, "-s", "memory:?size=64k", "check")),
            (False, ("-c", self.config, "-s", "memory:?size=64k", "--json", "check", "--metrics")),
            (False, ("-c", self.config, "-s", "memory:?size=64k", "top", "--once", "--interval", "100ms")),
            (False, ("-s", "memory:?size=64k", "bench", "--seconds", "0.01")),
            (True, (*replay, self.log)),
            (True, (*replay, "--format", "common", self.packed)),
            (True, (*replay, "--output", "jsonl", self.log)),
            (True, (*replay, "--suggest", "0.9", self.log)),
            (True, (*replay, "--try", "other", "-l", "ip:2/s", self.log)),
            (True, (*replay, "--output", "html", "-o", self.page, self.log)),
            (True, (*steps, self.steps)),
            (True, (*steps, "--output", "jsonl", self.steps)),
            (True, ("--help",)),
        ]

    def normal(self, words):
        """What it prints when nothing is short."""
        self.remove_store()
        status, out, err = self.run_command(*words)
        self.assertIn((status, err), [(0, ""), (1, "")], words)
        return status, out

    def judge(self, same, words, normal, ended):
        """`ended` is as it always ends, or a failure that is told."""
        status, out, err = ended
        if status in (2, 3):
            self.assertRegex(err, r"\Aredbucket: .*\n", (words, ended))
            self.assertNotIn("redbucket: standard output: can't be written: Success", err)
            return
        self.assertEqual(status, normal[0], (words, ended))
        if same:
            self.assertEqual(out, normal[1], (words, ended))


class Memory(Short):
    def setUp(self):
        super().setUp()
        if SANITIZED:
            self.skipTest("a sanitizer has an allocator of its own")
        self.count_file = os.path.join(self.folder, "count")

    def environment(self, nth, and_on):
        # libConfuse, which reads the configuration, doesn't live through it by itself.
        env = dict(self.env, LD_PRELOAD=SCARCE, SCARCE_NTH=str(nth), SCARCE_SPARE="libconfuse",
                   SCARCE_COUNT=self.count_file)
        if and_on:
            env["SCARCE_AND_ON"] = "1"
        return env

    def run_short(self, words, nth, and_on):
        self.remove_store()
        return self.run_command(*words, env=self.environment(nth, and_on))

    def count(self, words):
        self.run_short(words, 0, False)
        with open(self.count_file, encoding="ascii") as file:
            return int(file.read())

    def test_any_allocation_may_fail(self):
        dice = random.Random(SEED)
        failures = 0
        for same, words in self.commands():
            normal = self.normal(words)
            count = self.count(words)
            self.assertGreater(count, 0)
            places = range(1, count + 2)
            if not EVERY and count > TRIED:
                places = [*range(1, FIRST + 1),
                          *sorted(dice.sample(range(FIRST + 1, count + 1), TRIED - FIRST))]
            for nth in places:
                for and_on in (False, True) if EVERY else (bool(nth % 2),):
                    with self.subTest(words=words, nth=nth, and_on=and_on):
                        ended = self.run_short(words, nth, and_on)
                        failures += ended[0] in (2, 3)
                        self.judge(same, words, normal, ended)
        self.assertGreater(failures, 20)


class Descriptors(Short):
    def test_there_may_be_none_left(self):
        """None but the standard ones, or one, or two."""
        if SANITIZED:
            self.skipTest("nothing can be preloaded beside a sanitizer")
        failures = 0
        for same, words in self.commands():
            normal = self.normal(words)
            for limit in (3, 4, 5):
                with self.subTest(words=words, limit=limit):
                    self.remove_store()
                    begin = time.monotonic()
                    ended = self.run_command(*words, env=dict(
                        self.env, LD_PRELOAD=SCARCE, SCARCE_DESCRIPTORS=str(limit)))
                    failures += ended[0] in (2, 3)
                    self.judge(same, words, normal, ended)
                    self.assertLess(elapsed(begin), 10)
        self.assertGreater(failures, 15)


class Output(Short):
    def assert_told(self, words, **options):
        self.remove_store()
        status, _, err = self.run_command(*words, **options)
        self.assertEqual(status, 3, (words, err))
        self.assertRegex(err, r"\Aredbucket: .*\n", words)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_a_full_disk_is_noticed_by_every_command(self):
        for _, words in self.commands():
            if self.page in words or "run" in words:
                continue
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                self.assert_told(words, stdout=full)

    def test_a_closed_output_is_noticed_by_every_command(self):
        for _, words in self.commands():
            if self.page in words or "run" in words:
                continue
            with self.subTest(words=words):
                self.assert_told(words, stdout=None, preexec_fn=lambda: os.close(1))

    def test_nobody_reads_the_complaints(self):
        for words in (("--nosuch",), ("-c", "/nonexistent", "check")):
            for stream in ("/dev/full", None):
                with self.subTest(words=words, stream=stream):
                    process = subprocess.run(
                        [os.path.abspath(REDBUCKET), *words], env=self.env, check=False,
                        stdout=subprocess.PIPE, stderr=open("/dev/full", "wb"),
                        preexec_fn=(lambda: os.close(2)) if stream is None else None)
                    self.assertEqual((process.returncode, process.stdout), (2, b""))

    def test_a_page_that_can_not_be_written_is_told(self):
        words = ("-l", "ip:1/s", "replay", "--key", "ip=$remote_addr", "--output", "html", "-o")
        for path in ("/proc/page.html", os.path.join(self.folder, "no", "page.html"), self.folder):
            status, out, err = self.run_command(*words, path, self.log)
            self.assertIn(status, (2, 3), err)
            self.assertEqual(out, "")
            self.assertIn(path, err)

    def test_a_file_system_that_is_read_only_or_full_is_told(self):
        for options, what in (("ro", "Read-only file system"), ("size=4k", "No space left")):
            with self.subTest(options=options):
                inside = os.path.join(self.folder, "inside")
                os.makedirs(inside, exist_ok=True)
                script = f'mount -t tmpfs -o {options} tmpfs "$1" || exit 77; shift; exec "$@"'
                words = ("-l", "ip:1/s", "replay", "--key", "ip=$remote_addr", "--output", "html",
                         "-o", f"{inside}/page.html", self.log)
                process = subprocess.run(
                    ["unshare", "-rm", "sh", "-c", script, "sh", inside,
                     os.path.abspath(REDBUCKET), *words],
                    env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                if process.returncode in (1, 77):
                    self.skipTest("no file system of one's own here")
                self.assertEqual(process.returncode, 3, process.stderr)
                self.assertIn(what.encode(), process.stderr)


class Waiting(Short):
    LIMIT = ("-l", "ip:2/s")

    def test_stops_neither_prolong_a_wait_nor_end_it(self):
        """Half a second of delay, with stops of 20 ms in it."""
        self.assertEqual(self.run_command(*self.LIMIT, "request", "ip=k")[0], 0)
        begin = time.monotonic()
        process = self.start(*self.LIMIT, "request", "--wait=5", "ip=k")
        while process.poll() is None and elapsed(begin) < 5:
            process.send_signal(19)
            time.sleep(0.02)
            process.send_signal(18)
            time.sleep(0.005)
        out = process.communicate(timeout=20)[0]
        took = elapsed(begin)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(out, rb"\Aaccepted")
        self.assertGreater(took, 0.2)
        self.assertLess(took, 3)


if __name__ == "__main__":
    unittest.main()
