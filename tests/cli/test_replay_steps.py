# SPDX-License-Identifier: MIT
"""replay --format jsonl: the model's scenarios to the last bit, and lines that are no steps."""

import json
import os
import unittest

from command import CommandTest

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
ANSWER = ("accepted", "delay", "remaining", "state")


def limit_text(name, limit):
    return (f"{name}:{limit['rate']!r},burst={limit['burst']!r},delay={limit['delay']!r},"
            f"expiry={limit['expiry']!r},zone={limit['zone']}")


class Scenarios(CommandTest):
    def replay(self, limits, lines):
        words = [word for name, limit in limits.items() for word in ("-l", limit_text(name, limit))]
        path = self.write("steps.jsonl", "".join(line + "\n" for line in lines))
        status, out, err = self.run_command(*words, "replay", "--format", "jsonl", "--output",
                                            "jsonl", path)
        self.assertEqual((status, err), (0, ""))
        return [json.loads(line) for line in out.splitlines()]

    def compare(self, step, answer):
        self.assertEqual({k: v for k, v in answer.items() if k != "retry_after"},
                         {k: step[k] for k in ANSWER if k in step})
        self.assertEqual("retry_after" in answer, "retry_after" in step)
        expected, got = step.get("retry_after"), answer.get("retry_after")
        self.assertEqual(got is None, expected is None)
        if expected is not None:
            self.assertGreaterEqual(got, expected)
            self.assertLessEqual(got, expected + 2e-6 + expected * 1e-6)

    def test_every_scenario_agrees_to_the_last_bit(self):
        scenarios = []
        for name in ("scenarios.jsonl", "cases.jsonl"):
            with open(os.path.join(DATA, name), encoding="utf-8") as file:
                scenarios += [json.loads(line) for line in file]
        self.assertEqual(len(scenarios), 231)
        steps = 0
        for scenario in scenarios:
            with self.subTest(scenario=scenario["id"]):
                # What is expected is among the members that are passed over.
                answers = self.replay(scenario["limits"], map(json.dumps, scenario["steps"]))
                self.assertEqual(len(answers), len(scenario["steps"]))
                for step, answer in zip(scenario["steps"], answers):
                    self.compare(step, answer)
                    steps += 1
        self.assertEqual(steps, 7218)


class Steps(CommandTest):
    def replay(self, text, *words, limits=("-l", "ip:1/s,burst=1", "-l", "user:1/s")):
        self.write("steps.jsonl", text)
        return self.run_command(*limits, *words, "replay", "--format", "jsonl", "--output", "jsonl",
                                "steps.jsonl")

    def test_members_are_those_that_the_model_gives(self):
        status, out, err = self.replay(
            '{"t":10,"keys":{"ip":"a"}}\n'
            '{"t":10,"keys":{"ip":"a"},"op":"peek"}\n'
            '{"t":10,"keys":{"ip":"a"},"cost":7}\n'
            '{"t":10,"keys":{"ip":"a"},"cost":2}\n'
            '{"t":10,"keys":{}}\n'
            '{"t":10.5,"keys":{"ip":"a","user":"b"},"op":"charge","cost":0.25}\n'
            '{"t":10.5,"keys":{"user":"c"},"op":"refund"}\n'
            '{"t":11,"keys":{"ip":"a"},"op":"reset"}\n')
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([json.loads(line) for line in out.splitlines()], [
            {"accepted": True, "delay": 0, "remaining": 1, "state": {"ip": [10, 1]}},
            {"accepted": True, "delay": 0, "remaining": 0, "state": {"ip": [10, 1]}},
            {"accepted": False, "remaining": 1, "retry_after": None, "state": {"ip": [10, 1]}},
            {"accepted": False, "remaining": 1, "state": {"ip": [10, 1]},
             "retry_after": json.loads(out.splitlines()[3])["retry_after"]},
            {"accepted": True, "delay": 0, "state": {}},
            {"state": {"ip": [10.5, 0.75], "user": [10.5, 0.25]}},
            {"state": {"user": None}},
            {"state": {"ip": None}},
        ])

    def test_the_order_of_the_lines_counts_and_not_their_times(self):
        status, out, _ = self.replay('{"t":100,"keys":{"ip":"a"}}\n{"t":5,"keys":{"ip":"a"}}\n'
                                     '{"t":1e9,"keys":{"ip":"a"}}\n{"t":-1e9,"keys":{"ip":"a"}}\n')
        self.assertEqual(status, 0)
        self.assertEqual([json.loads(line)["state"]["ip"] for line in out.splitlines()],
                         [[100, 1], [100, 2], [1e9, 1], [1e9, 2]])

    def test_the_order_of_the_keys_is_kept(self):
        _, out, _ = self.replay('{"t":1,"keys":{"user":"z","ip":"a"}}\n')
        self.assertEqual(list(json.loads(out)["state"]), ["user", "ip"])

    def test_keys_of_any_bytes_are_kept_apart(self):
        keys = ["", "a", "a\0", "a\0b", "a\0c", "ä", "{}", "x" * 60000, "x" * 59999 + "y"]
        lines = [json.dumps({"t": 1, "keys": {"user": key}}) + "\n" for key in keys * 2]
        status, out, err = self.replay("".join(lines))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([json.loads(line)["accepted"] for line in out.splitlines()],
                         [True] * len(keys) + [False] * len(keys))

    def test_what_is_no_step_is_counted_and_stops_nothing(self):
        good = '{"t":1,"keys":{"ip":"a"}}\n'
        faults = ['{"t":1,"keys":{"nobody":"a"}}', '{"t":1,"keys":{"ip":5}}', "{}", "[]", "",
                  '{"t":"1","keys":{}}', '{"t":1,"t":2,"keys":{}}', '{"t":1,"keys":{},"op":"steal"}',
                  '{"t":1,"keys":{"ip":"a"},"cost":0}', '{"t":1,"keys":{"ip":"a"},"cost":-1}',
                  '{"t":1,"keys":{"ip":"a"},"cost":1e13}', '{"t":1e400,"keys":{}}',
                  '{"t":1,"keys":{"ip":"' + "x" * 70000 + '"}}', "\x01\x02", good[:20]]
        status, out, err = self.replay(good + "\n".join(faults) + "\n" + good)
        self.assertEqual(status, 0)
        self.assertEqual([json.loads(line)["state"]["ip"][1] for line in out.splitlines()], [1, 2])
        self.assertEqual(err, 'redbucket: steps.jsonl:2: there is no limit "nobody": '
                         '"{"t":1,"keys":{"nobody":"a"}}"; and 14 more lines can\'t be read\n')

    def test_a_fault_found_in_deciding_names_its_key(self):
        status, out, err = self.replay('{"t":1,"keys":{"ip":"a"},"cost":0}\n')
        self.assertEqual((status, out), (0, ""))
        self.assertTrue(err.startswith("redbucket: steps.jsonl:1: "), err)
        self.assertIn("cost", err)

    def test_a_reset_needs_no_cost(self):
        status, out, err = self.replay('{"t":1,"keys":{"ip":"a"},"op":"reset","cost":0}\n')
        self.assertEqual((status, json.loads(out), err), (0, {"state": {"ip": None}}, ""))

    def test_the_format_is_found_by_the_first_line(self):
        for text in ('{"t":1,"keys":{"ip":"a"}}\n', ' { "keys":{"ip":"a"},"t":1}', "{}\n"):
            with self.subTest(text=text):
                self.write("in", text)
                status, out, _ = self.run_command("-l", "ip:1", "--json", "replay", "in")
                self.assertEqual(status, 0)
                self.assertEqual(json.loads(out)["lines"], 1)

    def test_the_summary_tells_requests_from_the_rest(self):
        self.write("in", '{"t":1,"keys":{"ip":"a"}}\n' * 3 + '{"t":2,"keys":{"ip":"a"},"op":"peek"}\n'
                   + '{"t":3.25,"keys":{"ip":"a"},"op":"reset"}\n')
        status, out, _ = self.run_command("-l", "ip:0.5/s,burst=0,delay=1", "--json", "replay", "in")
        self.assertEqual(status, 0)
        summary = json.loads(out)
        self.assertEqual([summary[name] for name in ("lines", "accepted", "delayed", "rejected",
                                                     "others", "first", "last")],
                         [5, 2, 1, 1, 2, 1, 3.25])
        self.assertEqual(summary["limits"]["ip"], {
            "requests": 3, "delayed": 1, "rejected": 1, "keys": 1, "exact": True,
            "hardest": [{"key": "a", "rejected": 1, "delayed": 1, "missed": 0}]})
        status, out, _ = self.run_command("-l", "ip:0.5/s", "replay", "in")
        self.assertRegex(out, r"(?m)^others +2 +40\.0 %")


if __name__ == "__main__":
    unittest.main()
