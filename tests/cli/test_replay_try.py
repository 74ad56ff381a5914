# SPDX-License-Identifier: MIT
"""replay --try: several sets of limits on the same traffic, each as if it were alone."""

import json
import random
import unittest

from command import CommandTest
from traffic import NOON, common, text

KEY = ("--key", "ip=$remote_addr")
TRIES = {"tight": ("ip:0.5/s,burst=1",), "waits": ("ip:0.5/s,burst=1,delay=5",),
         "two": ("ip:1/s,burst=3", "page:2/s,burst=4"), "loose": ("ip:100/s,burst=1000",)}


def lines(count=4000, seed=5):
    rng = random.Random(seed)
    return [common(NOON + n // 5, f"192.0.2.{min(int(rng.expovariate(0.3)), 250)}",
                   f"GET /{int(rng.expovariate(0.5))} HTTP/1.1") for n in range(count)]


def tries(names):
    words = []
    for name in names:
        words += ["--try", name, *(word for limit in TRIES[name] for word in ("-l", limit))]
    return words


class TryTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.log = self.write("access.log", text(lines()))

    def object(self, *arguments):
        status, out, err = self.run_command("--json", *arguments)
        self.assertEqual((status, err), (0, ""), arguments)
        return json.loads(out)

    def alone(self, limits):
        """The summary of these limits alone."""
        words = [word for limit in limits for word in ("-l", limit)]
        keys = [word for limit in limits for word in ("--key", {
            "ip": "ip=$remote_addr", "page": "page=$uri"}[limit.split(":")[0]])]
        return self.object(*words, "replay", *keys, self.log)

    def compared(self, *arguments, keys=("ip=$remote_addr", "page=$uri")):
        return self.object("replay", *(word for key in keys for word in ("--key", key)),
                           *arguments, self.log)


class Sets(TryTest):
    def test_each_set_does_what_it_does_alone(self):
        both = self.compared(*tries(TRIES))
        self.assertEqual(list(both["sets"]), list(TRIES))
        for name, limits in TRIES.items():
            alone = self.alone(limits)
            for member in ("accepted", "delayed", "rejected", "limits", "when"):
                self.assertEqual(both["sets"][name][member], alone[member], (name, member))
        self.assertGreater(both["sets"]["tight"]["rejected"], both["sets"]["two"]["rejected"])

    def test_keys_are_compared_whichever_set_hit_them(self):
        both = self.compared(*tries(TRIES))
        self.assertEqual(list(both["compared"]), ["ip", "page"])
        for limit, keys in both["compared"].items():
            of_keys = {key["key"]: key["sets"] for key in keys}
            for name, got in both["sets"].items():
                hardest = got["limits"].get(limit, {"hardest": []})["hardest"]
                counts = {hit["key"]: (hit["rejected"], hit["delayed"]) for hit in hardest}
                for key, sets in of_keys.items():
                    if limit not in got["limits"]:
                        self.assertNotIn(name, sets)
                        continue
                    self.assertEqual((sets[name]["rejected"], sets[name]["delayed"]),
                                     counts.get(key, (0, 0)), (limit, name, key))
                self.assertLessEqual(set(counts), set(of_keys) if len(of_keys) < 100 else counts)
            most = [max(s["rejected"] for s in key["sets"].values()) for key in keys]
            self.assertEqual(most, sorted(most, reverse=True))

    def test_what_stands_before_the_first_try_is_a_set_and_part_of_the_others(self):
        config = self.write("now.conf", "limit ip { rate = 1/s }\nlimit page { rate = 3/s }\n")
        got = self.object("-c", config, "-l", "page:2/s", "replay", *KEY, "--key", "page=$uri",
                          "--try", "more", "-l", "ip:9/s", "--try", "less", "-l", "page:1/m",
                          self.log)
        self.assertEqual({name: one["tried"] for name, one in got["sets"].items()},
                         {"base": ["ip:1", "page:2"], "more": ["ip:9", "page:2"],
                          "less": ["ip:1", "page:0.016666666666666666"]})

    def test_steps_leave_out_what_a_set_has_not(self):
        steps = self.write("steps.jsonl", text(
            [json.dumps({"t": n, "keys": {"a": "x", "b": "y"}}) for n in range(4)]
            + ['{"t":4,"op":"reset","keys":{"a":"x"}}', '{"t":4,"keys":{"a":"x"}}',
               '{"t":4,"keys":{"c":"x"}}']))
        status, out, err = self.run_command("--json", "replay", "--try", "a", "-l", "a:1/h",
                                            "--try", "b", "-l", "b:1/h,burst=1", steps)
        got = json.loads(out)
        self.assertEqual((status, got["unreadable"], got["others"]), (0, 1, 1))
        self.assertIn('there is no limit "c"', err)
        self.assertEqual([(one["accepted"], one["rejected"]) for one in got["sets"].values()],
                         [(2, 3), (3, 2)])

    def test_what_people_see(self):
        status, out, err = self.run_command("replay", *KEY, "--key", "page=$uri", *tries(TRIES),
                                            self.log)
        self.assertEqual((status, err), (0, ""))
        both = self.compared(*tries(TRIES))["sets"]
        for name, limits in TRIES.items():
            self.assertRegex(out, rf"(?m)^{name} +{limits[0]}$")
            at_once = both[name]["accepted"] - both[name]["delayed"]
            self.assertRegex(out, rf"(?m)^{name} +{at_once:,} .* {both[name]['delayed']:,} .* "
                                  rf"{both[name]['rejected']:,} +\S+ %$")
            self.assertRegex(out, rf"(?m)^{name} +\|[ .:=+*#%@-]+\| +[0-9,]+$")
        self.assertRegex(out, r"(?m)^  192\.0\.2\.0 +[0-9,]+ +[0-9,]+ \([0-9,]+\) +[0-9,]+$")
        self.assertRegex(out, r"(?m)^  keys delayed or rejected +[0-9]+ ")
        self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_a_set_that_hurts_nobody_says_so(self):
        status, out, _ = self.run_command("replay", *KEY, "--try", "loose", "-l",
                                          "ip:1000/s,burst=9999", self.log)
        self.assertEqual(status, 0)
        self.assertIn("ip: no set delays or rejects anybody\n", out)

    def test_nothing_at_all_is_a_comparison_too(self):
        empty = self.write("empty", "")
        status, out, err = self.run_command("replay", *KEY, "--try", "a", "-l", "ip:1", empty)
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("0 lines\n"), out)


class Mistakes(TryTest):
    def refused(self, what, *arguments):
        self.assert_fails(2, what, "replay", *KEY, *arguments, self.log)

    def test_a_try_has_a_name_and_limits(self):
        name = "expected a name of 1 to 15 characters, A-Z a-z 0-9 _ . -"
        for bad in ("", "a b", "<b>", "0123456789abcdef", "é"):
            with self.subTest(bad=bad):
                self.refused(f"replay: --try {bad}: {name}", "--try", bad, "-l", "ip:1")
        self.refused("replay: --try a: this name is there twice", "--try", "a", "-l", "ip:1",
                     "--try", "a", "-l", "ip:2")
        self.refused("replay: --try a: expected one -l LIMIT or more behind it", "--try", "a")
        self.refused("replay: --try a: expected one -l LIMIT or more behind it", "--try", "a",
                     "--try", "b", "-l", "ip:1")

    def test_the_base_has_its_name(self):
        self.refused("replay: --try base: the limits before the first --try have this name",
                     "-l", "ip:1", "--try", "base", "-l", "ip:2")
        got = self.compared("--try", "base", "-l", "ip:2", keys=("ip=$remote_addr",))
        self.assertEqual(list(got["sets"]), ["base"])

    def test_limits_of_a_try_are_limits(self):
        status, out, err = self.run_command("replay", *KEY, "--try", "a", "-l", "ip:x", self.log)
        self.assertEqual((status, out), (2, ""))
        self.assertTrue(err.startswith("redbucket: -l ip:x: "), err)
        self.refused("-l ip:2: limit ip is there twice in --try a", "--try", "a", "-l", "ip:1",
                     "-l", "ip:2")
        self.refused("-l: limits ip and b: both on zone ip", "--key", "b=x", "--try", "a", "-l",
                     "ip:1", "-l", "b:1,zone=ip")

    def test_every_limit_of_every_set_needs_a_key(self):
        self.refused("replay: limit page has no key: expected --key 'page=$FIELD', such as "
                     "--key 'page=$remote_addr', or --format jsonl", "--try", "a", "-l", "ip:1",
                     "--try", "b", "-l", "page:1")

    def test_answers_are_those_of_one_set(self):
        self.refused("replay: --output jsonl: answers are those of one set of limits; expected no "
                     "--try", "--output", "jsonl", "--try", "a", "-l", "ip:1")

    def test_there_is_an_end_to_sets(self):
        words = [word for n in range(9) for word in ("--try", f"t{n}", "-l", f"ip:{n + 1}")]
        self.refused("replay: 9 sets of limits: at most 8 are compared", *words)
        self.refused("replay: 9 sets of limits, with those before the first --try: at most 8 are "
                     "compared", "-l", "ip:1", *words[:32])
        got = self.compared(*words[:32], keys=("ip=$remote_addr",))
        self.assertEqual(len(got["sets"]), 8)
        status, out, _ = self.run_command("replay", *KEY, *words[:32], self.log)
        self.assertEqual(status, 0)
        self.assertLessEqual(max(map(len, out.splitlines())), 80)


if __name__ == "__main__":
    unittest.main()
