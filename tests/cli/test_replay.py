# SPDX-License-Identifier: MIT
"""replay of access logs: decided in order of time, whatever the order, the packing and the damage.

Expected answers come from the model in its plainest form (traffic.py), over all lines sorted by
time.
"""

import glob
import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import time
import unittest

from command import CommandTest
from traffic import NOON, combined, common, replayed, text

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def traffic(count, seed=1, spread=59):
    """(time, address) of servers' lines: up to `spread` seconds out of order."""
    rng = random.Random(seed)
    return [(NOON + n // 4 - rng.randrange(spread + 1),
             f"192.0.2.{min(int(rng.expovariate(0.2)), 250)}") for n in range(count)]


class LogTest(CommandTest):
    LIMIT = ("-l", "ip:0.5/s,burst=2,delay=3")
    MODEL = {"rate": 0.5, "burst": 2, "delay": 3}
    KEY = ("--key", "ip=$remote_addr")

    def summary(self, *arguments, status=0, err="", **options):
        got = self.run_command(*self.LIMIT, "--json", "replay", *self.KEY, *arguments, **options)
        self.assertEqual((got[0], got[2]), (status, err), arguments)
        return json.loads(got[1])

    def answers(self, *arguments, **options):
        status, out, err = self.run_command(*self.LIMIT, "replay", "--output", "jsonl", *self.KEY,
                                            *arguments, **options)
        self.assertEqual((status, err), (0, ""), arguments)
        answers = [json.loads(line) for line in out.splitlines()]
        for answer in answers:
            self.assertEqual("retry_after" in answer, not answer["accepted"])
            answer.pop("retry_after", None)
        return answers

    def totals(self, summary):
        return tuple(summary[name] for name in ("accepted", "delayed", "rejected"))


class Order(LogTest):
    def test_lines_are_decided_by_time_and_shown_as_read(self):
        requests = traffic(4000)
        expected = replayed(requests, self.MODEL)
        log = self.write("access.log", text(combined(*request) for request in requests))
        self.assertEqual(self.answers(log), expected)
        self.assertEqual(self.answers("--reorder", "59", log), expected)
        self.assertEqual(self.totals(self.summary(log)),
                         (sum(a["accepted"] for a in expected),
                          sum(a.get("delay", 0) > 0 for a in expected),
                          sum(not a["accepted"] for a in expected)))

    def test_equal_times_are_decided_in_the_order_read(self):
        requests = [(NOON, "192.0.2.1")] * 8 + [(NOON - 1, "192.0.2.1")] * 3
        log = self.write("access.log", text(common(*request) for request in requests))
        self.assertEqual(self.answers(log), replayed(requests, self.MODEL))

    def test_a_line_beyond_the_window_is_decided_where_it_stands(self):
        times = [0, 10, 21, 10, 11]
        log = self.write("access.log", text(common(NOON + t) for t in times))
        status, out, err = self.run_command(*self.LIMIT, "replay", "--output", "jsonl", "--reorder",
                                            "10", *self.KEY, log)
        # When the line of 10 comes that is late, 0 and 10 have been decided; 21 still waits.
        self.assertEqual(status, 0)
        self.assertEqual([json.loads(line)["state"]["ip"] for line in out.splitlines()],
                         [[NOON, 1], [NOON + 10, 1], [NOON + 21, 1], [NOON + 10, 2],
                          [NOON + 11, 2.5]])
        self.assertEqual(err, "redbucket: replay: 1 line came later than --reorder allows, decided "
                         "where it stood\n")
        self.assertEqual(self.summary("--reorder", "10", log)["late"], 1)
        self.assertEqual(self.summary("--reorder", "11", log)["late"], 0)
        self.assertEqual(self.summary("--reorder", "0", log)["late"], 2)
        self.assertEqual(self.summary(log)["late"], 0)

    def test_the_window_reaches_across_files(self):
        requests = traffic(1000)
        one = self.write("1", text(common(*request) for request in requests[:500]))
        two = self.write("2", text(common(*request) for request in requests[500:]))
        self.assertEqual(self.answers(one, two), replayed(requests, self.MODEL))

    def test_zones_are_applied(self):
        line = common(NOON)
        log = self.write("access.log", text([line, line.replace(":12:00:00 +0000", ":14:00:01 +0200"),
                                             line.replace(":12:00:00 +0000", ":06:30:02 -0530")]))
        self.assertEqual([answer["state"]["ip"][0] for answer in self.answers(log)],
                         [NOON, NOON + 1, NOON + 2])


class Packing(LogTest):
    def setUp(self):
        super().setUp()
        self.requests = traffic(3000, seed=2)
        self.text = text(combined(*request) for request in self.requests)
        self.plain = self.answers(self.write("access.log", self.text))

    def test_gzip_and_standard_input_change_nothing(self):
        packed = self.write("access.log.gz", gzip.compress(self.text.encode()))
        for words, name in (((packed,), None), (("-",), "access.log"), (("-",), "access.log.gz")):
            with self.subTest(words=words, stdin=name):
                if name is None:
                    self.assertEqual(self.answers(*words), self.plain)
                    continue
                with open(os.path.join(self.folder, name), "rb") as file:
                    self.assertEqual(self.answers(*words, stdin=file), self.plain)

    def test_the_name_says_nothing(self):
        self.assertEqual(self.answers(self.write("plain.gz", self.text)), self.plain)
        self.assertEqual(self.answers(self.write("packed.log", gzip.compress(self.text.encode()))),
                         self.plain)

    def test_members_of_one_gzip_file_are_one_log(self):
        half = len(self.text) // 2 + 17
        packed = gzip.compress(self.text[:half].encode()) + gzip.compress(self.text[half:].encode())
        self.assertEqual(self.answers(self.write("two.gz", packed)), self.plain)

    def test_ends_of_lines_as_on_other_systems(self):
        self.assertEqual(self.answers(self.write("crlf", self.text.replace("\n", "\r\n"))),
                         self.plain)

    def test_a_last_line_without_an_end_is_a_line(self):
        self.assertEqual(self.answers(self.write("cut", self.text[:-1])), self.plain)

    def test_a_file_that_is_cut_off_is_told_after_what_it_had(self):
        whole = gzip.compress(self.text.encode())
        for name, packed, fault in (
                ("short.gz", whole[:-400], "it ends too early"),
                ("sum.gz", whole[:-8] + bytes(8), "incorrect data check")):
            with self.subTest(name=name):
                self.write(name, packed)
                status, out, err = self.run_command(*self.LIMIT, "--json", "replay", *self.KEY, name)
                self.assertEqual(status, 3)
                self.assertIn(f"redbucket: {name}: damaged gzip file: {fault}\n", err)
                self.assertGreater(json.loads(out)["accepted"], 1000)

    def test_one_file_that_is_not_there_is_told_and_the_others_are_read(self):
        self.write("a", common(NOON))
        self.write("b", common(NOON))
        os.mkdir(os.path.join(self.folder, "folder"))
        status, out, err = self.run_command(*self.LIMIT, "--json", "replay", *self.KEY, "a", "gone",
                                            "folder", "b")
        self.assertEqual((status, json.loads(out)["lines"]), (3, 2))
        self.assertEqual(err, "redbucket: gone: No such file or directory\n"
                         "redbucket: folder: Is a directory\n")

    def test_nothing_at_all_is_a_summary_too(self):
        self.assertEqual(self.totals(self.summary(self.write("empty", ""))), (0, 0, 0))
        status, out, err = self.run_command(*self.LIMIT, "replay", *self.KEY, "empty")
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("0 lines\n"), out)


class Damage(LogTest):
    FAULTS = [b"\x00\xff\x1b[2J binary \x80", b"x" * 1000000, combined(NOON)[:60].encode(),
              combined(NOON)[:-1].encode(), b"", combined(NOON)[:-8].encode(),
              b'{"t":1,"keys":{"ip":"a"}}', combined(NOON).replace("Mar", "Mrz").encode(),
              combined(NOON).replace("12/Mar", "32/Mar").encode(), b"x" * 65537]

    def test_damaged_lines_between_good_ones_change_nothing_else(self):
        requests = traffic(600, seed=3)
        lines = [combined(*request).encode() for request in requests]
        for n, fault in enumerate(self.FAULTS):
            lines.insert(50 * n + 7, fault)
        log = self.write("bad.log", b"\n".join(lines))
        status, out, err = self.run_command(*self.LIMIT, "replay", "--output", "jsonl", *self.KEY,
                                            log)
        answers = [json.loads(line) for line in out.splitlines()]
        for answer in answers:
            answer.pop("retry_after", None)
        self.assertEqual(status, 0)
        self.assertEqual(answers, replayed(requests, self.MODEL))
        self.assertEqual(err, f"redbucket: {log}:8: expected [day/month/year:time zone] and a quoted "
                         'request: "\\x00\\xff\\x1b[2J binary \\x80"; and 9 more lines can\'t be '
                         "read\n")

    def test_each_kind_of_damage_is_counted_and_the_first_shown(self):
        for n, fault in enumerate(self.FAULTS):
            with self.subTest(fault=fault[:70]):
                log = self.write(f"{n}.log", combined(NOON).encode() + b"\n" + fault + b"\n"
                                 + combined(NOON).encode())
                status, out, err = self.run_command(*self.LIMIT, "--json", "replay", *self.KEY, log)
                summary = json.loads(out)
                self.assertEqual((status, summary["lines"], summary["accepted"]), (0, 3, 2))
                self.assertEqual(summary["unreadable"], 1)
                self.assertEqual(summary["first_unreadable"]["line"], 2)
                self.assertEqual(summary["first_unreadable"]["file"], log)
                self.assertTrue(err.startswith(f"redbucket: {log}:2: "), err)
                self.assertTrue(err.isprintable() or err[:-1].isprintable(), err)
                self.assertLess(len(err), len(log) + 200)

    def test_the_longest_line_is_read_and_one_byte_more_is_not(self):
        line = combined(NOON, agent="A")
        for length, unreadable in ((65535, 0), (65536, 0), (65537, 1)):
            with self.subTest(length=length):
                log = self.write("long.log", line.replace('"A"', f'"{"A" * (length - len(line) + 1)}"')
                                 + "\n" + line)
                summary = json.loads(self.run_command(*self.LIMIT, "--json", "replay", *self.KEY,
                                                      log)[1])
                self.assertEqual((summary["unreadable"], summary["accepted"]),
                                 (unreadable, 2 - unreadable))

    def test_a_key_as_long_as_a_line_is_decided(self):
        log = self.write("agents.log", text(combined(NOON, agent="A" * 65000 + end)
                                            for end in ("1", "2", "1", "1", "1", "1", "1", "1")))
        status, out, _ = self.run_command("-l", "ip:0.01/s,burst=2", "--json", "replay", "--key",
                                          "ip=$http_user_agent", log)
        self.assertEqual(status, 0)
        self.assertEqual(self.totals(json.loads(out)), (4, 0, 4))

    def test_in_a_combined_log_a_line_cut_to_the_common_format_is_damaged(self):
        lines = [combined(NOON), common(NOON), combined(NOON)]
        for words, unreadable in (((), 1), (("--format", "combined"), 1), (("--format", "common"), 0)):
            with self.subTest(words=words):
                log = self.write("mixed.log", text(lines))
                _, out, _ = self.run_command(*self.LIMIT, "--json", "replay", *words, *self.KEY, log)
                self.assertEqual(json.loads(out)["unreadable"], unreadable)

    def test_each_file_has_a_format_of_its_own(self):
        logs = [self.write("one", text([combined(NOON)] * 2)), self.write("two", text([common(NOON)]))]
        self.assertEqual(self.summary(*logs)["unreadable"], 0)

    def test_bytes_of_keys_do_not_reach_the_terminal(self):
        log = self.write("evil.log", (combined(NOON, address="\x1b]0;title\x07\\é") + "\n").encode() * 9)
        status, out, err = self.run_command(*self.LIMIT, "replay", *self.KEY, log)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("\\x1b]0;title\\x07\\\\\\xc3\\xa9", out)
        self.assertEqual([c for c in out if not (c.isprintable() or c == "\n")], [])


class Keys(LogTest):
    LIMIT = ("-l", "ip:1/d")

    def keys(self, template, lines):
        """The keys that got a second request, which none is allowed."""
        log = self.write("keys.log", text(lines))
        status, out, err = self.run_command(*self.LIMIT, "--json", "replay", "--key",
                                            f"ip={template}", log)
        self.assertEqual((status, err), (0, ""))
        hardest = json.loads(out)["limits"]["ip"]["hardest"]
        return {hit["key"]: hit["rejected"] for hit in hardest}

    def test_fields_and_text_around_them(self):
        lines = [combined(NOON, request="GET /a?q=1 HTTP/1.1", user="anna", status=404, agent="X/1"),
                 combined(NOON, request="GET /a?q=2 HTTP/1.1", user="anna", status=404, agent="X/1")]
        for template, key in (("$remote_addr", "192.0.2.7"), ("$remote_user!", "anna!"),
                              ("$request_method $uri", "GET /a"), ("<$status>", "<404>"),
                              ("$http_user_agent", "X/1"), ("$$$status", "$404"), ("all", "all")):
            with self.subTest(template=template):
                self.assertEqual(self.keys(template, lines), {key: 1})

    def test_K07_addresses_of_one_host_are_one_key(self):
        lines = [combined(NOON, address=address) for address in (
            "2001:db8:1:2::1", "2001:DB8:1:2:3:4:5:6", "2001:0db8:0001:0002:ffff:ffff:ffff:ffff",
            "2001:db8:1:3::1", "192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201",
            "64:ff9b::c000:201", "fe80::1%eth0", "192.0.2.1:8080", "not-an-ip", "not-an-ip")]
        self.assertEqual(self.keys("$remote_addr/64", lines),
                         {"2001:db8:1:2::/64": 2, "192.0.2.1": 3, "not-an-ip": 1})
        self.assertEqual(self.keys("$remote_addr", lines), {"not-an-ip": 1})

    def test_a_missing_field_skips_the_limit(self):
        log = self.write("keys.log", text([combined(NOON)] * 3 + [combined(NOON, user="anna")] * 3
                                          + [combined(NOON, request="-", status=408)] * 3))
        status, out, err = self.run_command("-l", "user:1/d", "-l", "page:1/d,burst=1", "replay",
                                            "--output", "jsonl", "--key", "user=$remote_user",
                                            "--key", "page=$uri", log)
        self.assertEqual((status, err), (0, ""))
        answers = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([list(answer["state"]) for answer in answers],
                         [["page"]] * 3 + [["user", "page"]] * 3 + [[]] * 3)
        self.assertEqual([answer["accepted"] for answer in answers],
                         [True, True, False] + [False] * 3 + [True] * 3)
        self.assertEqual(answers[8], {"accepted": True, "delay": 0, "state": {}})


class Summary(LogTest):
    def test_what_people_see(self):
        log = self.write("access.log", text(common(NOON + n // 6, address=f"192.0.2.{n % 6 // 3}")
                                            for n in range(6000)) + "bad\n")
        status, out, err = self.run_command("-l", "ip:0.5/s,burst=2,delay=3", "replay", *self.KEY,
                                            "access.log")
        self.assertEqual((status, os.path.basename(log)), (0, "access.log"))
        self.assertTrue(err.startswith("redbucket: access.log:6001: "), err)
        self.assertTrue(out.startswith(
            "6,001 lines from 2024-03-12 12:00:00 to 2024-03-12 12:16:39 UTC\n"), out)
        for row in (r"accepted +1,010 +16\.8 %", r"  delayed +1,004 +16\.7 %.*",
                    r"rejected +4,990 +83\.2 %",
                    r"late +0 +0\.0 %", r"unreadable +1 +<0\.1 % +first: access\.log:6001",
                    r"ip:0\.5/s,burst=2,delay=3", r"2024-03-12 12:00 .*#+"):
            with self.subTest(row=row):
                self.assertRegex(out, rf"(?m)^{row}$")
        self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_what_programs_see_adds_up(self):
        requests = traffic(5000, seed=4)
        log = self.write("access.log", text(common(*request) for request in requests))
        expected = replayed(requests, self.MODEL)
        summary = self.summary(log)
        limit, rows = summary["limits"]["ip"], summary["when"]["rows"]
        rejected = {}
        for (_, key), answer in zip(requests, expected):
            rejected[key] = rejected.get(key, 0) + (not answer["accepted"])
        self.assertEqual((summary["lines"], limit["requests"]), (5000, 5000))
        self.assertEqual({hit["key"]: hit["rejected"] for hit in limit["hardest"]
                          if hit["rejected"]}, {k: n for k, n in rejected.items() if n})
        self.assertEqual([hit["rejected"] for hit in limit["hardest"]],
                         sorted((hit["rejected"] for hit in limit["hardest"]), reverse=True))
        for name in ("accepted", "delayed", "rejected"):
            self.assertEqual(sum(row[name] for row in rows), summary[name])
        self.assertEqual((summary["first"], summary["last"]),
                         (min(t for t, _ in requests), max(t for t, _ in requests)))
        self.assertTrue(all(row["t"] % summary["when"]["width"] == 0 for row in rows))

    def test_a_limit_counts_for_itself(self):
        log = self.write("access.log", text([common(NOON)] * 4))
        status, out, _ = self.run_command("-l", "a:1/d,burst=1", "-l", "b:1/d,burst=9", "--json",
                                          "replay", "--key", "a=x", "--key", "b=y", log)
        limits = json.loads(out)["limits"]
        self.assertEqual(status, 0)
        self.assertEqual([limits[name]["rejected"] for name in "ab"], [2, 0])

    def test_what_another_limit_rejects_is_not_delayed(self):
        log = self.write("access.log", text([common(NOON)] * 4))
        status, out, _ = self.run_command("-l", "a:1/d,burst=1", "-l", "b:1/d,delay=9", "--json",
                                          "replay", "--key", "a=x", "--key", "b=y", log)
        limits = json.loads(out)["limits"]
        self.assertEqual(status, 0)
        self.assertEqual([limits[name]["delayed"] for name in "ab"], [0, 1])

    def test_the_sample_log_shows_all_three(self):
        log = os.path.join(TOP, "examples", "access.log")
        self.LIMIT = ("-l", "ip:1/s,burst=8,delay=8")
        self.KEY = ("--key", "ip=$remote_addr/64")
        summary = self.summary(log)
        self.assertTrue(all(self.totals(summary)), summary)
        self.assertEqual((summary["unreadable"], summary["late"]), (0, 0))


class Terminal(LogTest):
    """Standard error on a terminal of its own."""

    def setUp(self):
        super().setUp()
        self.master, self.terminal = os.openpty()
        self.addCleanup(os.close, self.master)

    def replay(self, chunks, pause):
        """Feeds the log in chunks, a pause after each; returns what the terminal got."""
        process = self.start(*self.LIMIT, "replay", *self.KEY, "-", stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=self.terminal)
        os.close(self.terminal)
        for chunk in chunks:
            process.stdin.write(chunk.encode())
            process.stdin.flush()
            time.sleep(pause)
        process.stdin.close()
        self.assertEqual(process.wait(timeout=60), 0)
        return self.shown()

    @staticmethod
    def bytes_read(process):
        with open(f"/proc/{process.pid}/io", encoding="ascii") as file:
            return int(file.readline().split()[1])

    def shown(self):
        shown = b""
        try:
            while more := os.read(self.master, 65536):
                shown += more
        except OSError:
            pass  # what a terminal says when its other end is closed
        return shown.decode()

    def test_a_long_replay_shows_how_far_it_is_and_clears_it(self):
        shown = self.replay([text([common(NOON)] * 5000)] * 3, 0.6)
        self.assertRegex(shown, r"\r[0-9,]+ lines  [0-9,]+ lines/s *\r")
        self.assertRegex(shown, r"\r +\r\Z")
        self.assertNotIn("%", shown)

    @unittest.skipUnless(os.path.exists("/proc/self/io"), "no /proc/PID/io here")
    def test_the_time_left_is_told_where_the_amount_is_known(self):
        log = self.write("long.log", text([common(NOON)] * 400000))
        process = self.start(*self.LIMIT, "replay", *self.KEY, log, stdout=subprocess.DEVNULL,
                             stderr=self.terminal)
        os.close(self.terminal)
        while self.bytes_read(process) < 1_000_000:  # it has begun, and is not through for long
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(timeout=60), 0)
        self.assertRegex(self.shown(), r"\r *[0-9]+ %  [0-9,]+ lines  [0-9,]+ lines/s  .*[0-9]+ s left")

    def test_a_short_one_shows_nothing(self):
        self.assertEqual(self.replay([text([common(NOON)] * 5000)] * 3, 0), "")


def real_log():
    """A log that lies beside the project and is the one whose numbers are known."""
    beside = glob.glob(os.path.join(TOP, os.pardir, "*", "data", "access.log"))
    for path in [os.environ.get("ACCESS_LOG", "")] + beside:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                if hashlib.sha256(file.read()).hexdigest().startswith("ea7dc88e1b4a1801"):
                    return os.path.abspath(path)
    return None


@unittest.skipUnless(real_log(), "the log of real traffic isn't here ($ACCESS_LOG)")
class RealTraffic(LogTest):
    LIMITS = {"ip:1/s,burst=5": (9917, 0, 83), "ip:0.5/s,delay=4": (9587, 2266, 413)}

    def test_numbers_are_those_known(self):
        for limit, expected in self.LIMITS.items():
            with self.subTest(limit=limit):
                self.LIMIT = ("-l", limit)
                self.assertEqual(self.totals(self.summary(real_log())), expected)
                with open(real_log(), "rb") as file:
                    packed = self.write("log.gz", gzip.compress(file.read()))
                self.assertEqual(self.totals(self.summary(packed)), expected)
                with open(packed, "rb") as file:
                    self.assertEqual(self.totals(self.summary("-", stdin=file)), expected)

    def test_damage_changes_none(self):
        with open(real_log(), "rb") as file:
            lines = file.read().splitlines()
        for n, fault in enumerate(Damage.FAULTS):
            lines.insert(900 * n + 1, fault)
        damaged = self.write("log", b"\n".join(lines))
        for limit, expected in self.LIMITS.items():
            with self.subTest(limit=limit):
                _, out, err = self.run_command("-l", limit, "--json", "replay", *self.KEY, damaged)
                self.assertEqual(self.totals(json.loads(out)), expected)
                self.assertEqual(json.loads(out)["unreadable"], len(Damage.FAULTS))
                self.assertTrue(err.startswith(f"redbucket: {damaged}:2: "), err)


if __name__ == "__main__":
    unittest.main()
