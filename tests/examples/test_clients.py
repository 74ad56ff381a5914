# SPDX-License-Identifier: MIT
"""The examples in C that wait for their answers, on real servers: $EXAMPLES names the folder in which
they were built."""

import glob
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import cluster as clusters  # noqa: E402
import server as servers  # noqa: E402

NOWHERE = "redis://127.0.0.1:1?timeout=200ms"


def run(name, *arguments, text=""):
    """(status, lines of the output, what it complained of)"""
    done = subprocess.run([os.path.join(os.environ["EXAMPLES"], name), *arguments], input=text,
                          text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60)
    return done.returncode, done.stdout.splitlines(), done.stderr


class Blocking(unittest.TestCase):
    LINES = "a\nb\nc\nd\ne\nf\n"

    def test_lines_come_at_the_rate_whoever_shares_it(self):
        """One passes at once, and of the 11 others of both each takes a tenth of a second."""
        with servers.Server("redis") as server:
            begin = time.monotonic()
            both = [subprocess.Popen([os.path.join(os.environ["EXAMPLES"], "blocking"),
                                      server.url("redis"), "work:10/s,delay=2"], text=True,
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
            for process in both:
                process.stdin.write(self.LINES)
                process.stdin.close()
            said = [process.stdout.read() for process in both]
            took = time.monotonic() - begin
            for process in both:
                process.stdout.close()
                self.assertEqual(0, process.wait())
        self.assertEqual([self.LINES] * 2, said)
        self.assertGreaterEqual(took, 1.1)

    def test_a_server_that_is_away_is_told_of_in_its_words(self):
        status, lines, errors = run("blocking", NOWHERE, text=self.LINES)
        self.assertEqual((1, []), (status, lines))
        self.assertTrue(errors.startswith("blocking: server unavailable\n"), errors)
        self.assertIn("Connection refused", errors)

    def test_a_server_that_dies_between_two_lines(self):
        with servers.Server("redis") as server:
            process = subprocess.Popen(
                [os.path.join(os.environ["EXAMPLES"], "blocking"), server.url("redis"), "work:1000/s"],
                text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            process.stdin.write("a\n")
            process.stdin.flush()
            self.assertEqual("a\n", process.stdout.readline())
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
            out, errors = process.communicate("b\n", timeout=60)
        self.assertEqual((1, ""), (process.returncode, out))
        self.assertIn("blocking: ", errors)

    def test_a_limit_and_a_store_that_are_none(self):
        for arguments in (["memory:", "work"], ["nowhere:"]):
            status, lines, errors = run("blocking", *arguments, text=self.LINES)
            self.assertEqual((1, [], 1), (status, lines, errors.count("\n")))


class Workers(unittest.TestCase):
    def setUp(self):
        self.name = f"redbucket-test-workers-{os.getpid()}"
        self.addCleanup(self.remove)

    def remove(self):
        for path in glob.glob(f"/dev/shm/*{self.name}*"):
            os.unlink(path)

    def accepted(self, *arguments):
        begin = time.monotonic()
        status, lines, errors = run("workers", f"shm:{self.name}?size=1m", *arguments)
        took = time.monotonic() - begin
        self.assertEqual((0, ""), (status, errors))
        numbers = [int(number) for line in lines[:-1] for number in re.findall(r"(\d+) \w+ed\b", line)]
        workers = len(lines) - 1
        self.assertEqual(100 * workers, sum(numbers))
        together = int(re.fullmatch(r"together: (\d+) accepted", lines[-1])[1])
        self.assertEqual(together, sum(numbers[::3]))
        return workers, together, took

    def test_all_together_keep_to_the_limit(self):
        workers, together, took = self.accepted()
        self.assertEqual(4, workers)
        self.assertIn(together, range(20, 21 + int(10 * took) + 1))
        workers, more, took_more = self.accepted("7")
        self.assertEqual(7, workers)
        self.assertLessEqual(together + more, 21 + 10 * (took + took_more + 30))

    def test_what_came_before_is_counted(self):
        """A process of another program has the store and its limit by their names alone."""
        command = [os.environ["REDBUCKET"], "-c", "/dev/null", "-s", f"shm:{self.name}?size=1m",
                   "-l", "page:10/s,burst=19", "charge", "--cost", "1000", "page=192.0.2.7"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(0, self.accepted()[1])

    def test_mistakes(self):
        for arguments, wanted in ((("memory:", "0"), 2), (("memory:", "65"), 2), (("nowhere:",), 1)):
            status, lines, errors = run("workers", *arguments)
            self.assertEqual((wanted, [], 1), (status, lines, errors.count("\n")))


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = clusters.Cluster()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    def test_tenants_are_limited_each_by_itself(self):
        url = self.cluster.url()
        for last in ("acme: accepted, 1 remaining", "acme: accepted, 0 remaining"):
            status, lines, _ = run("cluster", url, "acme")
            self.assertEqual(0, status)
            self.assertRegex(lines[0], r"^\w+ [\d.]+, 3 masters, 16384 slots served$")
            self.assertEqual(["user and tenant of one tag are one step", last], lines[1:])
        status, lines, _ = run("cluster", url, "acme", "example")
        self.assertEqual(0, status)
        self.assertRegex(lines[2], r"^acme: rejected by user, retry after \d\.\d{3} s$")
        self.assertEqual("example: accepted, 1 remaining", lines[3])

    def test_without_a_tag_in_the_key_format_it_takes_more_steps(self):
        status, lines, _ = run("cluster", self.cluster.url(query="key_format={{{zone}}}:{key}"), "x")
        self.assertEqual((0, "user and tenant take a step each"), (status, lines[1]))

    def test_a_node_that_is_down_costs_those_that_lie_there(self):
        with clusters.Cluster() as broken:
            names = [f"tenant{i}" for i in range(12)]
            url = broken.url(query="timeout=500ms")
            broken.nodes[1].kill()
            status, lines, errors = run("cluster", url, *names)
        self.assertEqual(3, status)
        self.assertIn("its 5461 slots fail", errors)
        good = sum("accepted" in line for line in lines[2:])
        self.assertIn(good, range(1, 12))
        self.assertEqual(12, len(lines[2:]))

    def test_mistakes(self):
        for arguments, wanted in (((), 2), (["redis://localhost"] + ["x"] * 17, 2), (("nowhere:",), 1)):
            status, lines, errors = run("cluster", *arguments)
            self.assertEqual((wanted, [], 1), (status, lines, errors.count("\n")))


if __name__ == "__main__":
    unittest.main()
