# SPDX-License-Identifier: MIT
"""The command with its state on a server that the test starts, and without one that is there."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from command import CommandTest, needs_servers
import server as servers

LIMIT = ("-l", "ip:0.001/s,burst=1,delay=1")


@needs_servers
class OnAServer(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.server = servers.Server("redis")

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        super().setUp()
        self.server.ask("FLUSHALL")
        self.env["REDBUCKET_STORE"] = self.server.url("unix")

    def test_every_command_works_on_it(self):
        for method in ("script", "transaction"):
            with self.subTest(method=method):
                self.server.ask("FLUSHALL")
                store = ("-s", self.server.url("unix", f"method={method}"), *LIMIT)
                self.assertTrue(self.ask(*store, "request", "ip=a")["accepted"])
                self.assertEqual(self.ask(*store, "peek", "ip=a")["remaining"], 0)
                self.assertTrue(self.ask(*store, "request", "ip=a")["accepted"])
                self.assertGreater(self.ask(*store, "request", "ip=a")["delay"], 990)
                self.assertEqual(self.ask(*store, "request", "ip=a", status=1)["decided"], "ip")
                self.run_command(*store, "refund", "ip=a")
                self.assertGreater(self.ask(*store, "request", "ip=a")["delay"], 990)
                self.run_command(*store, "reset", "ip=a")
                self.run_command(*store, "charge", "--cost", "2", "ip=a")
                self.assertEqual(self.ask(*store, "peek", "ip=a")["accepted"], True)
                status, out, _ = self.run_command(*store, "run", "ip=b", "--", "echo", "ran")
                self.assertEqual((status, out), (0, "ran\n"))

    def test_processes_share_it(self):
        for _ in range(2):
            self.assertTrue(self.ask(*LIMIT, "request", "ip=a")["accepted"])
        self.assertEqual(self.server.ask("KEYS", "*"), [b"redbucket:ip:a"])

    def test_check_says_what_it_is(self):
        status, out, err = self.run_command(*LIMIT, "check")
        self.assertEqual((status, err), (0, ""))
        version = ".".join(map(str, servers.version_of(servers.program("redis"))))
        self.assertRegex(out, rf"(?m)^server: Redis {version}, decides by script, "
                              r"answers in [0-9.]+ ms$")

    def test_check_warns_of_what_loses_state(self):
        self.addCleanup(self.server.ask, "CONFIG", "SET", "maxmemory", "0")
        self.server.ask("CONFIG", "SET", "maxmemory", "100mb")
        self.server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        warnings = self.ask(*LIMIT, "check")["server"]["warnings"]
        self.assertIn("maxmemory-policy is allkeys-lru: when memory runs out, buckets are lost",
                      warnings)
        self.assertTrue(any(line.startswith("appendonly is no") for line in warnings))

    def test_check_says_that_a_node_of_a_cluster_is_none_of_its_own(self):
        with servers.Server("redis", config=["cluster-enabled yes"]) as node:
            out = self.run_command("-s", node.url("unix"), *LIMIT, "check")[1]
        self.assertIn("warning: cluster-enabled is yes: this URL reaches the slots of one node "
                      "alone, use redis+cluster://\n", out)

    def test_bench_runs(self):
        self.assertGreater(self.ask("bench", "--seconds", "0.2")["decisions"], 0)
        self.assertEqual(self.server.ask("DBSIZE"), 0)

    def test_a_state_that_cannot_be_read_is_named(self):
        self.server.ask("SET", "redbucket:ip:a", "what is this")
        status, _, err = self.run_command(*LIMIT, "request", "ip=a")
        self.assertEqual((status, err), (3, "redbucket: request: limit ip, key a: stored state "
                                            "can't be read\n"))
        self.assertEqual(self.server.ask("GET", "redbucket:ip:a"), b"what is this")

    def test_zones_that_could_meet_are_refused(self):
        store = self.server.url("unix", "key_format=%7Bzone%7D%7Bkey%7D")
        status, _, err = self.run_command("-s", store, "-l", "a:1", "-l", "ab:1", "check")
        self.assertEqual(status, 2)
        self.assertIn("under the key format, a key of its zone could be one of limit a", err)

    def test_a_wrong_password_is_told_and_not_shown(self):
        with servers.Server("redis", password="sesame") as server:
            good = server.url("redis")
            bad = good.replace("sesame", "hunter2")
            self.assertEqual(self.run_command("-s", good, *LIMIT, "request", "ip=a")[0], 0)
            status, out, err = self.run_command("-s", bad, *LIMIT, "check")
            self.assertEqual(status, 3)
            self.assertIn("not authorized by the server", err)
            self.assertNotIn("hunter2", out + err)
            self.assertIn(":***@", out)


@needs_servers
class WithoutAServer(CommandTest):
    def setUp(self):
        super().setUp()
        path = os.path.join(self.folder, "nobody.sock")
        self.url = f"unix://{path}"

    def test_a_request_fails_and_says_why(self):
        status, out, err = self.run_command("-s", self.url, *LIMIT, "request", "ip=a")
        self.assertEqual((status, out), (3, ""))
        self.assertRegex(err, r"\Aredbucket: request: server unavailable: .*: "
                              r"No such file or directory\n\Z")

    def test_check_prints_the_configuration_all_the_same(self):
        status, out, err = self.run_command("-s", self.url, *LIMIT, "check")
        self.assertEqual(status, 3)
        self.assertIn("limit: ip:", out)
        self.assertIn("server unavailable", err)

    def test_a_policy_answers_when_asked_to(self):
        for policy, status in (("open", 0), ("local", 0), ("closed", 1)):
            answer = self.ask("-s", f"{self.url}?on_error={policy}", *LIMIT, "request", "ip=a",
                              status=status)
            self.assertTrue(answer["degraded"])


if __name__ == "__main__":
    unittest.main()
