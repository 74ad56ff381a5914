# SPDX-License-Identifier: MIT
"""keys: which buckets there are, in shared memory and on servers, and what is in them."""

import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cluster import Cluster
from command import CommandTest, needs_servers
import server as servers

LIMITS = ("-l", "ip:0.001/s,burst=9,delay=5", "-l", "user:1/h,burst=2")
HEADING = "     level       of     empty in  zone         key\n"


class KeysTest(CommandTest):
    def take(self, *words, store=()):
        self.ask(*store, *LIMITS, "request", *words)

    def lines(self, *arguments):
        """The lines, and the last one apart."""
        status, out, err = self.run_command(*arguments)
        self.assertEqual((status, err), (0, ""))
        return out.splitlines()[1:-1], out.splitlines()[-1]

    def objects(self, *arguments, status=0):
        got, out, err = self.run_command("--json", *arguments)
        self.assertEqual(got, status, err)
        return [json.loads(line) for line in out.splitlines()]


class InSharedMemory(KeysTest):
    def test_no_store_is_made_by_looking(self):
        path = "/dev/shm/redbucket-nowhere"
        for command in (("keys",), ("keys", "ip=1"), ("top", "--once")):
            for url in ("shm:redbucket-nowhere", "shm:redbucket-nowhere?timeout=2s"):
                self.assert_fails(3, f"-s: {url}: shm:redbucket-nowhere: there is no such store",
                                  "-s", url, *LIMITS, *command)
                self.assertFalse(os.path.exists(path))
        try:
            self.assert_prints(0, "0 buckets\n", "-s", "shm:redbucket-nowhere?create=yes", "keys")
            self.assert_prints(0, "0 buckets\n", "-s", "shm:redbucket-nowhere?create=no", "keys")
            self.assert_prints(0, "0 buckets\n", "-s", "shm:redbucket-nowhere", "keys")
        finally:
            os.unlink(path)

    def test_an_empty_store_has_none(self):
        self.ask(*LIMITS, "peek", "ip=192.0.2.7")
        self.assert_prints(0, "0 buckets\n", "keys")
        self.assertEqual(self.objects("keys"), [])

    def test_buckets_are_listed(self):
        self.take("ip=192.0.2.7", "user=alice")
        self.take("ip=192.0.2.7")
        lines, last = self.lines(*LIMITS, "keys")
        self.assertEqual(last, "2 buckets")
        lines.sort()
        self.assertRegex(lines[0], r"^ +(1|0\.\d+) +3 +3[56]\d\d(\.\d+)? s  user         alice$")
        self.assertRegex(lines[1], r"^ +(2|1\.9\d+) +15 +(2000|19\d\d(\.\d+)?) s  ip           192\.0\.2\.7$")

    def test_a_table_knows_rates_without_a_configuration(self):
        self.take("ip=192.0.2.7")
        (bucket,) = self.objects("keys")
        self.assertEqual(list(bucket), ["zone", "key", "readable", "timestamp", "value", "now", "level",
                                        "reset_after", "most"])
        self.assertEqual((bucket["zone"], bucket["key"], bucket["value"], bucket["most"]),
                         ("ip", "192.0.2.7", 1, 15))
        self.assertAlmostEqual(bucket["level"], 1, delta=0.06)
        self.assertAlmostEqual(bucket["reset_after"], bucket["level"] / 0.001, delta=1e-6)

    def test_keys_of_any_bytes_are_escaped(self):
        self.take(b"ip=\x1b[31m\xff\\")
        ((line,), _) = self.lines("keys")
        self.assertTrue(line.endswith(r" ip           \x1b[31m\xff\\"), line)
        (bucket,) = self.objects("keys")
        self.assertEqual(bucket["key"], "\x1b[31m\ufffd\\")
        self.assertEqual(bytes.fromhex(bucket["key_hex"]), b"\x1b[31m\xff\\")

    def test_drained_buckets_are_only_counted(self):
        self.ask("-l", "fast:1000/s", "request", "fast=x")
        time.sleep(0.01)
        self.take("ip=y")
        lines, last = self.lines("keys")
        self.assertEqual((len(lines), last), (1, "1 bucket; 1 more are empty by now"))
        lines, last = self.lines("keys", "--all")
        self.assertEqual((len(lines), last), (2, "2 buckets"))

    def test_some_may_be_chosen(self):
        for number in range(5):
            self.take(f"ip=a{number}", f"user=a{number}")
        self.take("ip=b")
        self.assertEqual({bucket["zone"] for bucket in self.objects("keys", "--zone", "user")}, {"user"})
        self.assertEqual(len(self.objects("keys", "--prefix", "a")), 10)
        self.assertEqual(len(self.objects("keys", "--prefix", "a", "--zone", "ip")), 5)
        self.assertEqual(len(self.objects("keys", "--max", "3")), 3)
        self.assertEqual(self.objects("keys", "--prefix", "abc"), [])

    def test_buckets_by_name(self):
        self.take("ip=x")
        ip, user = self.objects(*LIMITS, "keys", "ip=x", "user=nobody")
        self.assertEqual((ip["limit"], ip["value"], ip["most"]), ("ip", 1, 15))
        self.assertEqual((user["level"], "value" in user), (0, False))
        status, out, _ = self.run_command(*LIMITS, "keys", "ip=x")
        self.assertEqual((status, len(out.splitlines())), (0, 2))
        self.assertTrue(out.startswith(HEADING))

    def test_mistakes(self):
        self.assert_fails(2, '--max: "0": expected a whole number from 1 to 1000000000000', "keys",
                          "--max", "0")
        self.assert_fails(2, '--pace: "x": expected a whole number from 0 to 1000000', "keys", "--pace", "x")
        self.assert_fails(2, '--zone: "": expected 1 to 255 bytes', "keys", "--zone", "")
        self.assert_fails(2, 'keys: "x": expected NAME=KEY, NAME one of ip', "-l", "ip:1", "keys", "x")


@needs_servers
class OnAServer(KeysTest):
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

    def test_what_a_server_does_not_know(self):
        self.take("ip=192.0.2.7")
        ((line,), last) = self.lines("keys")
        self.assertEqual((line, last), ("       <=1        -            -  ip           192.0.2.7", "1 bucket"))
        (bucket,) = self.objects("keys")
        self.assertEqual(list(bucket), ["name", "zone", "key", "readable", "timestamp", "value", "now"])
        self.assertEqual(bucket["name"], "redbucket:ip:192.0.2.7")
        (bucket,) = self.objects(*LIMITS, "keys")
        self.assertEqual((bucket["limit"], bucket["most"]), ("ip", 15))
        self.assertAlmostEqual(bucket["level"], 1, delta=0.06)

    def test_a_zone_is_guessed_where_nobody_knows_it(self):
        self.take("ip=2001:db8::1")
        ((line,), _) = self.lines("keys")
        self.assertTrue(line.endswith("  ip?          2001:db8::1"), line)
        (bucket,) = self.objects("keys")
        self.assertEqual((bucket["zone"], bucket["key"], bucket["guessed"]), ("ip", "2001:db8::1", True))
        (bucket,) = self.objects(*LIMITS, "keys")
        self.assertNotIn("guessed", bucket)

    def test_what_can_not_be_read_is_told(self):
        self.take("ip=good")
        self.server.ask("SET", "redbucket:ip:bad", "garbage")
        self.server.ask("SET", "elsewhere", "garbage")
        lines, last = self.lines(*LIMITS, "keys")
        self.assertEqual(last, "2 buckets, 1 that can't be read")
        self.assertIn("         ?       15            -  ip           bad  (can't be read)", lines)
        self.assertEqual({bucket["key"]: bucket["readable"] for bucket in self.objects(*LIMITS, "keys")},
                         {"good": True, "bad": False})
        (bucket,) = self.objects(*LIMITS, "keys", "ip=bad")
        self.assertFalse(bucket["readable"])
        self.assertEqual(self.server.ask("GET", "redbucket:ip:bad"), b"garbage")

    def test_the_pace_is_kept(self):
        for number in range(600):
            self.server.ask("SET", f"elsewhere:{number}", "x")
        begin = time.monotonic()
        self.objects("keys", "--pace", "20")
        slow = time.monotonic() - begin
        self.server.ask("CONFIG", "RESETSTAT")
        self.objects("keys")
        calls = self.server.ask("INFO", "commandstats").decode().split("cmdstat_scan:calls=")[1]
        scans = int(calls.split(",")[0])
        self.assertGreater(scans, 2)
        self.assertGreaterEqual(slow, (scans - 1) / 20)

    def test_a_server_that_is_not_there(self):
        status, out, err = self.run_command("-s", "redis://127.0.0.1:1?timeout=1s", "keys")
        self.assertEqual((status, out), (3, ""))
        self.assertRegex(err, r"^redbucket: store: .*Connection refused\n$")


@needs_servers
class OnACluster(KeysTest):
    def test_each_master_is_gone_through(self):
        with Cluster() as cluster:
            store = ("-s", cluster.url(query="timeout=2s"))
            for number in range(40):
                self.take(f"ip=k{number}", store=store)
            self.assertEqual({bucket["key"] for bucket in self.objects(*store, "keys")},
                             {f"k{number}" for number in range(40)})
            cluster.nodes[2].kill()
            status, out, err = self.run_command("--json", *store, "keys")
            self.assertEqual((status, err.count("\n")), (3, 1), err)
            self.assertIn(f"127.0.0.1:{cluster.nodes[2].port}", err)
            self.assertTrue(0 < len(out.splitlines()) < 40)


if __name__ == "__main__":
    unittest.main()
