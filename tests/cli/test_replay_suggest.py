# SPDX-License-Identifier: MIT
"""replay --suggest: the limits it finds keep the share, and nothing smaller does.

What keeps it is found out by replaying with the limits, and by the model in its plainest form
(traffic.py).
"""

import json
import random
import re
import unittest

from command import CommandTest
from test_replay import real_log
from traffic import NOON, Bucket, common, text

KEY = ("--key", "ip=$remote_addr")
PAGE = ("--key", "page=$uri")


def traffic(count=6000, seed=8):
    """Most clients come now and then, a few in bursts, one without an end."""
    rng = random.Random(seed)
    now = NOON
    lines = []
    while len(lines) < count:
        now += rng.randrange(4)
        roll = rng.random()
        address = f"192.0.2.{rng.randrange(200)}"
        if roll < 0.02:
            lines += [common(now + n // 8, address, f"GET /{n % 7} HTTP/1.1")
                      for n in range(rng.randrange(5, 60))]
        elif roll < 0.2:
            lines.append(common(now, "198.51.100.9"))
        else:
            lines.append(common(now, address, f"GET /{rng.randrange(30)} HTTP/1.1"))
    return lines[:count]


class SuggestTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.lines = traffic()
        self.log = self.write("access.log", text(self.lines))

    def suggest(self, share, *arguments):
        status, out, err = self.run_command("--json", *arguments, "replay", "--suggest", share,
                                            *KEY, self.log)
        self.assertEqual((status, err), (0, ""))
        return json.loads(out)

    def untouched(self, limits, keys, log=None):
        """How many requests pass at once, of how many."""
        words = [word for limit in limits for word in ("-l", limit)]
        status, out, err = self.run_command(*words, "--json", "replay", *keys, log or self.log)
        self.assertEqual((status, err), (0, ""))
        got = json.loads(out)
        return got["accepted"] - got["delayed"], got["accepted"] + got["rejected"]

    def touched(self, limit):
        passed, requests = self.untouched([limit], KEY)
        return requests - passed


class Smallest(SuggestTest):
    def test_the_share_is_kept_and_by_nothing_smaller(self):
        for share in ("90%", "99%", "99.9%", "100%", "0.5"):
            with self.subTest(share=share):
                got = self.suggest(share)
                one = got["limits"]["ip"]
                self.assertEqual(self.touched(one["limit"]), one["touched"])
                self.assertEqual(got["touched"], one["touched"])
                self.assertGreaterEqual(got["requests"] - got["touched"],
                                        got["share"] * got["requests"])
                self.assertLessEqual(got["touched"], got["allowed"])
                if one["burst"] > 0:
                    self.assertGreater(self.touched(re.sub(r"\d+$", str(one["burst"] - 1),
                                                           one["limit"])), got["allowed"])
                rates = [rate["rate"] for rate in one["rates"]]
                at = next(i for i, rate in enumerate(one["rates"])
                          if one["limit"] == f'ip:{rate["rate"]},burst={rate["burst"]}')
                if at > 0:
                    slower = f'ip:{rates[at - 1]},burst={one["burst"]}'
                    self.assertGreater(self.touched(slower), got["allowed"], slower)

    def test_each_rate_has_the_smallest_burst_of_the_model(self):
        requests = []
        for line in self.lines:
            found = re.match(r"(\S+) .*\[(\S+ \S+)\]", line)
            moment = re.match(r"\d+/\w+/\d+:(\d+):(\d+):(\d+)", found[2])
            hours, minutes, seconds = map(int, moment.groups())
            requests.append((NOON + (hours - 12) * 3600 + minutes * 60 + seconds, found[1]))
        requests.sort(key=lambda request: request[0])

        def touched(rate, burst):
            buckets = {}
            return sum(not buckets.setdefault(key, Bucket(rate, burst)).ask(float(now))["accepted"]
                       for now, key in requests)

        got = self.suggest("98%")
        units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
        rates = got["limits"]["ip"]["rates"]
        self.assertGreater(len(rates), 3)
        for rate in rates:
            number, unit = rate["rate"].split("/")
            value = float(number) / units[unit]
            self.assertEqual(touched(value, rate["burst"]), rate["touched"], rate)
            self.assertLessEqual(rate["touched"], got["allowed"])
            if rate["burst"] > 0:
                self.assertEqual(touched(value, rate["burst"] - 1), rate["touched_one_less"], rate)
                self.assertGreater(rate["touched_one_less"], got["allowed"])

    def test_the_least_within_a_minute_is_suggested(self):
        one = self.suggest("99%")["limits"]["ip"]
        self.assertEqual(one["a_minute"], min(rate["a_minute"] for rate in one["rates"]))
        self.assertEqual(one["a_minute"], int(one["burst"] + 1 + 60 * one["rate"] + 1e-6))

    def test_of_equals_the_slowest_is_suggested(self):
        # 6 at once and 2 a minute later: 1/m needs a burst of 6 and 2/m one of 5, both let 7 in.
        self.log = self.write("equal.log", text([common(NOON)] * 6 + [common(NOON + 60)] * 2))
        one = self.suggest("100%")["limits"]["ip"]
        bursts = {rate["rate"]: (rate["burst"], rate["a_minute"]) for rate in one["rates"]}
        self.assertEqual((bursts["1/m"], bursts["2/m"]), ((6, 8), (5, 8)))
        self.assertEqual(one["limit"], "ip:1/m,burst=6")

    def test_several_limits_keep_the_share_together(self):
        status, out, err = self.run_command("--json", "replay", "--suggest", "97%", *KEY, *PAGE,
                                            self.log)
        self.assertEqual((status, err), (0, ""))
        got = json.loads(out)
        limits = [one["limit"] for one in got["limits"].values()]
        passed, requests = self.untouched(limits, (*KEY, *PAGE))
        self.assertEqual((requests, requests - passed), (got["requests"], got["touched"]))
        self.assertGreaterEqual(passed, 0.97 * requests)
        self.assertTrue(all(one["touched"] <= got["allowed"] // 2 for one in got["limits"].values()))

    def test_steps_of_different_costs_keep_it_as_well(self):
        rng = random.Random(3)
        steps = [{"t": NOON + n / 7, "keys": {"ip": f"k{rng.randrange(9)}"},
                  "cost": rng.choice([0.5, 1, 1, 8])} for n in range(3000)]
        steps[7]["op"] = "peek"
        log = self.write("steps.jsonl", text(map(json.dumps, steps)))
        status, out, err = self.run_command("-l", "ip:1", "--json", "replay", "--suggest", "95%", log)
        self.assertEqual((status, err), (0, ""))
        got = json.loads(out)
        self.assertEqual(got["requests"], 2999)
        passed, requests = self.untouched([got["limits"]["ip"]["limit"]], (), log)
        self.assertEqual(requests - passed, got["touched"])
        self.assertGreaterEqual(passed, 0.95 * requests)

    @unittest.skipUnless(real_log(), "the log of real traffic isn't here ($ACCESS_LOG)")
    def test_real_traffic(self):
        self.log = real_log()
        got = self.suggest("99%")
        self.assertEqual(got["limits"]["ip"]["limit"], "ip:1/m,burst=56")
        self.assertEqual((self.touched("ip:1/m,burst=56"), self.touched("ip:1/m,burst=55")),
                         (98, 102))


class Shown(SuggestTest):
    def test_what_people_see(self):
        got = self.suggest("99%", "-l", "ip:1/s,burst=5")
        one = got["limits"]["ip"]
        status, out, err = self.run_command("-l", "ip:1/s,burst=5", "replay", "--suggest", "99%",
                                            *KEY, self.log)
        self.assertEqual((status, err), (0, ""))
        self.assertIn(f"\n{one['limit']}\n  {one['words']}\n", out)
        self.assertIn("To leave 99 % of 6,000 requests untouched, neither delayed nor rejected,\n"
                      "at most 60 may be touched.\n", out)
        self.assertIn(f"within any minute: {one['a_minute']} requests. One less burst would touch ", out)
        given = self.touched("ip:1/s,burst=5")
        self.assertEqual(one["given"], {"limit": "ip:1,burst=5", "touched": given})
        self.assertIn(f"  as given, ip:1/s,burst=5: touches {given:,}\n", out)
        for rate in one["rates"]:
            mark = ">" if f'{rate["rate"]},burst={rate["burst"]}' in one["limit"] else " "
            self.assertRegex(out, rf'(?m)^{mark} {rate["rate"]} +{rate["burst"]:,} +{rate["touched"]:,} ')
        self.assertRegex(out, rf"(?m)^It touches {got['touched']} of 6,000 requests: 99\.\d % untouched\.$")
        self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_the_same_traffic_gets_the_same_suggestion(self):
        self.assertEqual(self.suggest("99%"), self.suggest("99%"))

    def test_nothing_to_go_by_is_told(self):
        empty = self.write("empty", "")
        status, out, err = self.run_command("replay", "--suggest", "99%", *KEY, empty)
        self.assertEqual((status, out, err), (0, "0 lines\n\nNo request, nothing to go by.\n", ""))
        status, out, err = self.run_command("replay", "--suggest", "99%", *KEY, "--key",
                                            "user=$remote_user", self.log)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("\nuser: no request names it, nothing to go by\n", out)

    def test_lines_that_cannot_be_read_are_told(self):
        self.write("access.log", text(self.lines) + "x\n")
        status, out, err = self.run_command("replay", "--suggest", "99%", *KEY, self.log)
        self.assertEqual(status, 0)
        self.assertRegex(out, r"(?m)^unreadable +1 ")
        self.assertIn(":6001: ", err)


class Mistakes(SuggestTest):
    def test_a_share_is_a_share(self):
        for word in ("0", "0%", "101%", "1.1", "x", "", "%", "99%%", "99%x", "nan", "-5%", "inf"):
            with self.subTest(word=word):
                self.assert_fails(2, f"replay: --suggest {word}: expected a share such as 99% or 0.99",
                                  "replay", f"--suggest={word}", *KEY, self.log)
        for word in ("99%", "0.99", "99 %", "9.9e1%"):
            self.assertEqual(self.suggest(word)["share"], 0.99)

    def test_it_stands_alone(self):
        what = ("replay: --suggest: expected no --output and no --try, which are about limits that "
                "one has")
        for more in (("--output", "jsonl"), ("--output", "html", "-o", "x"),
                     ("--try", "a", "-l", "ip:1")):
            with self.subTest(more=more):
                self.assert_fails(2, what, "replay", "--suggest", "99%", *more, *KEY, self.log)

    def test_keys_or_limits_are_needed(self):
        status, _, err = self.run_command("replay", "--suggest", "99%", self.log)
        self.assertEqual(status, 2)
        self.assertIn("there are no limits", err)
        self.assert_fails(2, "replay: --key ip: expected LIMIT=KEY, such as ip=$remote_addr",
                          "replay", "--suggest", "99%", *KEY, "--key", "ip", self.log)
        for key, fault in (("a/b=x", 'name "a/b": expected only A-Z a-z 0-9 _ . -'),
                           ("=x", "name is empty")):
            status, _, err = self.run_command("replay", "--suggest", "99%", "--key", key, self.log)
            self.assertEqual(status, 2)
            self.assertTrue(err.startswith(f"redbucket: replay: --key {key}: {fault}"), err)


if __name__ == "__main__":
    unittest.main()
