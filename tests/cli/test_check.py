# SPDX-License-Identifier: MIT
"""check and bench."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from command import CommandTest, needs_servers
import server as servers


class Check(CommandTest):
    def test_it_prints_the_configuration_in_full(self):
        path = self.write("test.conf", "limit user { rate = 5/s  burst = 10 }\n"
                                       "limit ip { rate = 20/s  delay = 10  zone = addresses }\n")
        status, out, err = self.run_command("-c", path, "check")
        self.assertEqual((status, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual(lines[:6], [
            f"configuration: {path}",
            f"store: {self.store} ($REDBUCKET_STORE)",
            "limit: user:5,burst=10",
            "       up to 11 at once, then 5 a second",
            "limit: ip:20,delay=10,zone=addresses",
            "       1 at once, 10 more with a wait of up to 0.5 s, then 20 a second"])
        self.assertEqual(lines[6], "the store is there")
        numbers = dict(line.split() for line in lines[7:])
        self.assertGreater(int(numbers.pop("capacity")), 200000)
        self.assertEqual(numbers, {"bytes": "16777216", **dict.fromkeys(
            ("accepted", "delayed", "rejected", "evicted", "full", "recovered", "buckets"), "0")})

    def test_limits_in_words(self):
        for text, words in (
                ("1", "1 at once, then 1 a second"),
                ("1/m", "1 at once, then 1 a minute"),
                ("7/m", "1 at once, then 7 a minute"),
                ("90/h", "1 at once, then 1.5 a minute"),
                ("1/h,burst=2", "up to 3 at once, then 1 an hour"),
                ("1/d", "1 at once, then 1 a day"),
                ("0.5/d", "1 at once, then 0.5 a day"),
                ("2.5,burst=0.5", "1 at once, then 2.5 a second"),
                ("1e12", "1 at once, then 1000000000000 a second"),
                ("2,burst=1,delay=0.5", "up to 2 at once, then 2 a second"),
                ("2,burst=1,delay=3", "up to 2 at once, 3 more with a wait of up to 1.5 s, then 2 "
                                      "a second")):
            limit = self.ask("-l", f"a:{text}", "check")["limits"]["a"]
            self.assertEqual(limit["allows"], words)

    def test_no_limits_is_a_configuration_too(self):
        status, out, _ = self.run_command("check")
        self.assertEqual(status, 0)
        self.assertIn("\nlimit: none\n", out)

    def test_statistics_count_what_was_asked(self):
        limit = ("-l", "ip:1/d,burst=1,delay=1")
        for status in (0, 0, 0, 1, 1):
            self.ask(*limit, "request", "ip=k", status=status)
        self.ask(*limit, "peek", "ip=k", status=1)
        statistics = self.ask(*limit, "check")["statistics"]
        self.assertEqual({name: statistics[name] for name in
                          ("accepted", "delayed", "rejected", "evicted", "full", "recovered",
                           "buckets", "bytes")},
                         {"accepted": 3, "delayed": 1, "rejected": 2, "evicted": 0, "full": 0,
                          "recovered": 0, "buckets": 1, "bytes": 16777216})

    def test_json_in_full(self):
        answer = self.ask("-l", "ip:30r/m,burst=1,lease=2,lease_time=50ms", "check")
        self.assertEqual(list(answer), ["configuration", "store", "limits", "available",
                                        "statistics"])
        self.assertEqual(answer["limits"], {"ip": {
            "text": "ip:0.5,burst=1,lease=2,lease_time=0.05",
            "allows": "up to 2 at once, then 30 a minute", "zone": "ip", "rate": 0.5, "burst": 1,
            "delay": 0, "expiry": 0, "lease": 2, "lease_time": 0.05}})

    def test_json_is_json_whatever_a_name_holds(self):
        for name, shown in ((b"caf\xe9.conf", "caf\ufffd.conf"), ("caf\u00e9 \u20ac \U0001f34e".encode(),
                                                               "caf\u00e9 \u20ac \U0001f34e"),
                            (b'"quoted\\"\n\x7f', '"quoted\\"\n\x7f'),
                            (b"\xc0\xae\xed\xa0\x80\xf5\xe2\x82", "\ufffd" * 8)):
            path = os.path.join(self.folder.encode(), name)
            with open(path, "wb"):
                pass
            answer = self.ask("-c", name, "check")
            self.assertEqual(answer["configuration"], shown)

    def test_a_store_that_is_not_there_is_status_3_behind_the_configuration(self):
        with open(f"/dev/shm/{self.store_name}", "wb") as file:
            file.write(b"something else" * 1000)
        status, out, err = self.run_command("-l", "ip:1", "check")
        self.assertEqual(status, 3)
        self.assertIn("limit: ip:1\n", out)
        self.assertTrue(err.startswith(f"redbucket: $REDBUCKET_STORE: {self.store}: "), err)
        status, out, err = self.run_command("-l", "ip:1", "--json", "check")
        self.assertEqual((status, err.count("\n")), (3, 1))
        self.assertIn('"available": false', out)

    def test_passwords_are_not_shown(self):
        path = self.write("secret.conf",
                          'store = "redis+nosuch://bob:sesame@192.0.2.1:6379/0?timeout=1s"\n')
        del self.env["REDBUCKET_STORE"]
        status, out, err = self.run_command("-c", path, "check")
        self.assertEqual(status, 2)
        self.assertNotIn("sesame", out + err)
        self.assertIn(f"store: redis+nosuch://bob:***@192.0.2.1:6379/0?timeout=1s ({path}:1)\n", out)


class Bench(CommandTest):
    def test_it_measures(self):
        answer = self.ask("-s", "memory:", "bench", "--seconds", "0.2")
        self.assertEqual((answer["store"], answer["threads"], answer["keys"]), ("memory:", 1, 1))
        self.assertTrue(0.2 <= answer["seconds"] < 10, answer)
        self.assertGreater(answer["decisions"], 100)
        self.assertAlmostEqual(answer["decisions_per_second"],
                               answer["decisions"] / answer["seconds"], delta=1)
        latency = answer["latency"]
        self.assertTrue(0 < latency["p50"] <= latency["p99"] <= latency["max"] < 10, latency)
        self.assertTrue(0 < latency["timed"] < answer["decisions"], answer)

    @needs_servers
    def test_all_that_a_server_decides_is_timed(self):
        with servers.Server("redis") as server:
            answer = self.ask("-s", server.url("unix"), "bench", "--seconds", "0.2")
        self.assertEqual(answer["latency"]["timed"], answer["decisions"])

    def test_text_for_people(self):
        status, out, err = self.run_command("bench", "--seconds=50ms", "--threads=2", "--keys=100")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, rf"\Astore: {self.store}\nload: threads 2, keys 100, [\d.]+ s\n"
                              r"decisions: \d+ a second\nlatency: mean [\d.]+ us; of \d+ timed, p50 [\d.]+ us, "
                              r"p99 [\d.]+ us, max [\d.]+ us\n\Z")

    def test_it_leaves_the_store_as_it_was(self):
        limit = ("-l", "ip:1/d,burst=9")
        self.ask(*limit, "charge", "--cost", "4", "ip=k")
        before = self.ask(*limit, "check")["statistics"]
        self.ask(*limit, "bench", "--seconds=50ms", "--keys=1000")
        after = self.ask(*limit, "check")["statistics"]
        self.assertEqual((after["buckets"], after["evicted"], after["full"]),
                         (before["buckets"], 0, 0))
        self.assertGreater(after["accepted"], before["accepted"])
        self.assertEqual(self.ask(*limit, "peek", "ip=k")["remaining"], 5)

    def test_it_pushes_nobody_out_of_a_shared_store(self):
        small = self.store + "?size=256k"
        capacity = self.ask("-s", small, "check")["statistics"]["capacity"]
        self.assert_fails(2, f'--keys: "{capacity}": this store has room for {capacity // 2} without '
                             "pushing others out", "-s", small, "bench", "--keys", str(capacity))
        self.ask("-s", small, "bench", "--seconds=10ms", "--keys", str(capacity // 2))

    def test_many_keys_in_memory(self):
        answer = self.ask("-s", "memory:", "bench", "--seconds=10ms", "--keys=100000")
        self.assertEqual(answer["keys"], 100000)


if __name__ == "__main__":
    unittest.main()
