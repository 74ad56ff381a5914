# SPDX-License-Identifier: MIT
"""The example service, $EXAMPLE_SERVICE: limits by address and by user, delays that keep nobody else
waiting, rejections that say when to come back, and a store that hangs."""

import concurrent.futures
import http.client
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import server as servers  # noqa: E402

# Limits that let everything through, for the one that a test isn't about.
WIDE = {"ip": "ip:100000/s,burst=100000", "user": "user:100000/s,burst=100000"}


class Service:
    """One that is running, on a port of its own."""

    def __init__(self, *arguments, **limits):
        texts = {**WIDE, **limits}
        options = [word for text in texts.values() for word in ("-l", text)]
        self.process = subprocess.Popen(
            [os.environ["EXAMPLE_SERVICE"], "-p", "0", *options, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.search(r"port (\d+)", line)[1])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=20)
        return self.process.returncode, errors

    def get(self, path="/"):
        """(status, headers, seconds it took)"""
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            return response.status, dict(response.getheaders()), time.monotonic() - begin
        finally:
            connection.close()

    def get_together(self, paths):
        with concurrent.futures.ThreadPoolExecutor(len(paths)) as pool:
            return list(pool.map(self.get, paths))


class Limits(unittest.TestCase):
    def test_an_address_is_limited(self):
        with Service(ip="ip:0.01/s,burst=2") as service:
            answers = [service.get(f"/?user={i}") for i in range(5)]
        self.assertEqual([200, 200, 200, 429, 429], [status for status, _, _ in answers])
        self.assertIn(int(answers[3][1]["Retry-After"]), range(90, 101))
        self.assertNotIn("Retry-After", answers[0][1])
        self.assertIn("ip", answers[0][1]["RateLimit"])

    def test_each_user_has_a_limit_of_its_own(self):
        with Service(user="user:0.01/s,burst=1") as service:
            paths = ["/?user=alice", "/?user=alice", "/?user=alice", "/?user=bob", "/",
                     "/?other=alice", "/?user=al%69ce"]
            answers = [service.get(path)[0] for path in paths]
        self.assertEqual([200, 200, 429, 200, 200, 200, 429], answers)

    def test_what_one_limit_rejects_costs_the_other_nothing(self):
        with Service(user="user:0.01/s", ip="ip:0.01/s,burst=3") as service:
            answers = [service.get("/?user=alice")[0] for _ in range(10)]
            others = [service.get("/")[0] for _ in range(4)]
        self.assertEqual([200] + [429] * 9, answers)
        self.assertEqual([200] * 3 + [429], others)

    def test_an_unknown_limit_is_refused(self):
        run = subprocess.run([os.environ["EXAMPLE_SERVICE"], "-l", "other:1/s"], check=False,
                             stderr=subprocess.PIPE, text=True)
        self.assertEqual(2, run.returncode)
        self.assertIn("other", run.stderr)


class Delays(unittest.TestCase):
    def test_delays_are_served_side_by_side(self):
        with Service(user="user:2/s,delay=4") as service:
            paths = ["/?user=slow"] * 5 + ["/"] * 3
            answers = service.get_together(paths)
            begin = time.monotonic()
            quick = service.get("/?user=quick")[2]
        self.assertEqual([200] * 8, [status for status, _, _ in answers])
        took = sorted(seconds for _, _, seconds in answers[:5])
        for i, seconds in enumerate(took):
            self.assertGreaterEqual(seconds, i * 0.5 - 0.05)
        self.assertLess(took[4], 2.0 + 2.0)
        self.assertLess(max(seconds for _, _, seconds in answers[5:]), 1.0)
        self.assertLess(quick, 1.0, time.monotonic() - begin)

    def test_who_goes_before_its_delay_is_over_harms_nobody(self):
        with Service(user="user:4/s,delay=4") as service:
            service.get("/?user=a")
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
            connection.request("GET", "/?user=a")
            connection.close()
            time.sleep(0.5)
            self.assertEqual(200, service.get("/")[0])
            self.assertEqual((0, ""), service.end())

    def test_it_ends_while_somebody_waits(self):
        with Service(user="user:0.1/s,delay=4") as service:
            service.get("/?user=a")
            connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
            connection.request("GET", "/?user=a")
            time.sleep(0.1)
            self.assertEqual((0, ""), service.end())
            connection.close()


class Store(unittest.TestCase):
    def test_a_server_counts_for_several_services(self):
        with servers.Server("redis") as server:
            url = server.url("unix", "timeout=5s")
            limits = {"ip": "ip:0.01/s,burst=9"}
            with Service("-s", url, **limits) as one, Service("-s", url, **limits) as two:
                answers = [service.get()[0] for service in (one, two) for _ in range(8)]
        self.assertEqual(10, answers.count(200))
        self.assertEqual(6, answers.count(429))

    def test_a_server_that_hangs_is_answered_for_in_time(self):
        with servers.Server("redis") as server:
            with Service("-s", server.url("unix", "timeout=300ms")) as service:
                self.assertEqual(200, service.get()[0])
                os.kill(server.process.pid, signal.SIGSTOP)
                try:
                    answers = service.get_together(["/"] * 10)
                finally:
                    os.kill(server.process.pid, signal.SIGCONT)
                for _ in range(100):
                    if service.get()[0] == 200:
                        break
                    time.sleep(0.05)
                self.assertEqual(200, service.get()[0])
                self.assertEqual((0, ""), service.end())
        self.assertEqual([503] * 10, [status for status, _, _ in answers])
        self.assertLess(max(seconds for _, _, seconds in answers), 2.5)


if __name__ == "__main__":
    unittest.main()
