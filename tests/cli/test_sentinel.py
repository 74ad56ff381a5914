# SPDX-License-Identifier: MIT
"""The command with its state on a master that a sentinel names."""

import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from command import CommandTest, needs_servers
import server as servers

LIMIT = ("-l", "ip:0.001/s,burst=1,delay=1")


@needs_servers
class OnAMaster(CommandTest):
    @classmethod
    def setUpClass(cls):
        cls.master = servers.Server("redis", password="hunter2-one")
        cls.sentinel = servers.Server(
            "redis", [f"sentinel monitor mymaster 127.0.0.1 {cls.master.port} 1",
                      "sentinel auth-pass mymaster hunter2-one"],
            password="hunter2-two", sentinel=True)

    @classmethod
    def tearDownClass(cls):
        cls.sentinel.stop()
        cls.master.stop()

    def setUp(self):
        super().setUp()
        self.master.ask("FLUSHALL")
        self.env["REDBUCKET_STORE"] = self.url()

    def url(self, service="mymaster", query="sentinel_password=hunter2-two"):
        return (f"redis+sentinel://:hunter2-one@127.0.0.1:{self.sentinel.port}/{service}?{query}")

    def test_processes_share_it(self):
        for _ in range(3):
            self.assertTrue(self.ask(*LIMIT, "request", "ip=a")["accepted"])
        self.ask(*LIMIT, "request", "ip=a", status=1)
        self.assertEqual(self.master.ask("KEYS", "*"), [b"redbucket:ip:a"])

    def test_check_says_who_said_where_the_master_is(self):
        status, out, err = self.run_command(*LIMIT, "check")
        self.assertEqual((status, err), (0, ""))
        self.assertIn(f"\nmaster: 127.0.0.1:{self.master.port} of service mymaster, says sentinel "
                      f"127.0.0.1:{self.sentinel.port}; 0 replicas\n", out)
        self.assertIn("\nwarning: the master has no replica: when it dies, nobody takes its place\n",
                      out)
        self.assertNotIn("hunter2", out)
        server = self.ask(*LIMIT, "check")["server"]
        self.assertEqual(server["service"], "mymaster")
        self.assertEqual(server["master"], f"127.0.0.1:{self.master.port}")
        self.assertEqual(server["sentinel"], f"127.0.0.1:{self.sentinel.port}")
        self.assertEqual(server["replicas"], 0)

    def test_check_warns_of_what_a_failover_loses(self):
        with servers.Server("redis", [f"replicaof 127.0.0.1 {self.master.port}",
                                      "masterauth hunter2-one"]) as replica:
            deadline = time.monotonic() + 30
            while replica.info("master_link_status") != "up" and time.monotonic() < deadline:
                time.sleep(0.01)
            out = self.run_command(*LIMIT, "check")[1]
            self.assertIn("; 1 replica\n", out)
            self.assertIn("\nwarning: the master has 1 replica: a failover loses the last writes, "
                          "which they haven't received\n", out)
            self.assertIn("\nwarning: min-replicas-to-write is 0: a master cut off from all takes "
                          "requests that a failover loses\n", out)
            self.master.ask("CONFIG", "SET", "min-replicas-to-write", "1")
            self.assertNotIn("min-replicas-to-write", self.run_command(*LIMIT, "check")[1])
            self.master.ask("CONFIG", "SET", "min-replicas-to-write", "0")

    def test_a_service_that_is_not_there_is_told(self):
        status, _, err = self.run_command("-s", self.url("nymaster"), *LIMIT, "request", "ip=a")
        self.assertEqual(status, 3)
        self.assertIn('no sentinel knows a service "nymaster"', err)
        self.assertNotIn("hunter2", err)

    def test_a_wrong_password_is_told_and_not_shown(self):
        store = ("-s", self.url(query="sentinel_password=hunter2-three"))
        for words in ((*LIMIT, "request", "ip=a"), (*LIMIT, "check")):
            status, out, err = self.run_command(*store, *words)
            self.assertEqual(status, 3)
            self.assertIn(f"sentinel 127.0.0.1:{self.sentinel.port}: AUTH: ", err)
            self.assertNotIn("hunter2", out + err)

    def test_a_sentinel_is_no_server(self):
        store = f"redis://:hunter2-two@127.0.0.1:{self.sentinel.port}"
        status, _, err = self.run_command("-s", store, *LIMIT, "request", "ip=a")
        self.assertEqual(status, 3)
        self.assertIn("a sentinel keeps no buckets, it is for a redis+sentinel:// URL", err)


if __name__ == "__main__":
    unittest.main()
