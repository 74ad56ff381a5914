# SPDX-License-Identifier: MIT
"""replay: what is asked for wrongly is told in one line, before anything is read."""

import gzip
import os
import re
import shlex
import unittest

from command import CommandTest
from traffic import NOON, combined, common, text

LIMIT = ("-l", "ip:1/s,burst=5")
KEY = ("--key", "ip=$remote_addr")


class Options(CommandTest):
    def setUp(self):
        super().setUp()
        self.log = self.write("access.log", text([combined(NOON)]))
        self.steps = self.write("steps.jsonl", '{"t":1,"keys":{"ip":"a"}}\n')

    def refused(self, what, *arguments):
        self.assert_fails(2, f"replay: {what}", *arguments)

    def test_a_file_is_needed(self):
        self.refused("expected FILE..., or - for standard input", *LIMIT, "replay", *KEY)

    def test_a_limit_is_needed(self):
        status, out, err = self.run_command("replay", self.steps)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("limit", err)

    def test_words_that_are_none_are_told_with_those_that_are(self):
        self.refused("--format xml: expected auto, combined, common or jsonl",
                     *LIMIT, "replay", "--format", "xml", *KEY, self.log)
        self.refused("--output pdf: expected summary, jsonl or html",
                     *LIMIT, "replay", "--output", "pdf", *KEY, self.log)

    def test_the_window_is_a_duration(self):
        for word in ("-1", "x", "nan", "inf", ""):
            with self.subTest(word=word):
                status, out, err = self.run_command(*LIMIT, "replay", f"--reorder={word}", *KEY,
                                                    self.log)
                self.assertEqual((status, out), (2, ""))
                self.assertIn("--reorder", err)
        for word in ("0", "2.5", "5m", "1e9"):
            with self.subTest(word=word):
                status, _, err = self.run_command(*LIMIT, "replay", "--reorder", word, *KEY,
                                                  self.log)
                self.assertEqual((status, err), (0, ""))

    def test_a_key_names_a_limit_once(self):
        self.refused("--key ip: expected LIMIT=KEY, such as ip=$remote_addr",
                     *LIMIT, "replay", "--key", "ip", self.log)
        self.refused('--key user=$uri: there is no limit "user"',
                     *LIMIT, "replay", *KEY, "--key", "user=$uri", self.log)
        self.refused("--key ip=$uri: this limit has a --key already",
                     *LIMIT, "replay", *KEY, "--key", "ip=$uri", self.log)

    def test_a_field_is_one_that_there_is(self):
        fields = ("expected $remote_addr, $remote_user, $request_method, $uri, $status, "
                  "$http_user_agent, or $$ for a dollar")
        for key, at in (("$host", "$host"), ("a $uri $x", "$x"), ("$", "$"), ("${uri}", "${uri}")):
            with self.subTest(key=key):
                self.refused(f'--key ip={key}: at "{at}": {fields}',
                             *LIMIT, "replay", "--key", f"ip={key}", self.log)
        self.refused('--key ip=$remote_addr/129: at "$remote_addr/129": expected at most 128 bits '
                     "of an address", *LIMIT, "replay", "--key", "ip=$remote_addr/129", self.log)

    def test_every_limit_needs_a_key_for_a_log(self):
        for more, hint in (((), ", or --format jsonl"), (("--format", "combined"), ""),
                           (("--format", "common"), "")):
            with self.subTest(more=more):
                self.refused("limit page has no key: expected --key 'page=$FIELD', such as "
                             f"--key 'page=$remote_addr'{hint}",
                             *LIMIT, "-l", "page:1", "replay", *more, *KEY, self.log)

    def test_the_common_format_has_no_agent(self):
        self.refused("limit ip: the common format has no $http_user_agent",
                     *LIMIT, "replay", "--format", "common", "--key", "ip=$http_user_agent", self.log)

    def test_steps_name_their_keys_themselves(self):
        for more in ((), ("--format", "jsonl")):
            with self.subTest(more=more):
                self.refused("--key ip=$remote_addr: JSON lines name their keys themselves; --key "
                             "is for access logs", *LIMIT, "replay", *more, *KEY, self.steps)

    def test_another_store_is_refused_and_none_is_touched(self):
        self.refused(f"-s {self.store}: a replay decides in memory of its own; expected memory: or "
                     "no -s at all", "-s", self.store, *LIMIT, "replay", *KEY, self.log)
        status, _, err = self.run_command("-s", "memory:?size=x", *LIMIT, "replay", *KEY, self.log)
        self.assertEqual(status, 2)
        self.assertIn("size", err)
        for url in ("bogus://nowhere", self.store):
            self.env["REDBUCKET_STORE"] = url
            self.assertEqual(self.run_command(*LIMIT, "replay", *KEY, self.log)[0], 0)
        config = self.write("redbucket.conf", f'store = "{self.store}"\n')
        for more in ((), ("-c", config), ("-s", "memory:"), ("-s", "memory:?size=1m")):
            with self.subTest(more=more):
                self.assertEqual(self.run_command(*more, *LIMIT, "replay", *KEY, self.log)[0], 0)
        self.assertFalse([name for name in os.listdir("/dev/shm") if self.store_name in name])

    def test_limits_may_come_from_a_file(self):
        config = self.write("limits.conf", "limit ip { rate = 1/s }\n")
        status, out, err = self.run_command("-c", config, "replay", *KEY, self.log)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("ip:1/s\n", out)

    def test_more_limits_than_a_request_names_are_told(self):
        limits = [word for n in range(65) for word in ("-l", f"l{n}:1")]
        self.refused("65 limits: a line can name at most 64", *limits, "replay", "--key", "l0=x",
                     self.log)
        keys = [word for n in range(64) for word in ("--key", f"l{n}=$remote_addr")]
        self.assertEqual(self.run_command(*limits[:128], "replay", *keys, self.log)[0], 0)

    def test_help_tells_how_and_its_examples_work(self):
        status, out, err = self.run_command("replay", "--help")
        self.assertEqual((status, err), (0, ""))
        for word in ("--key", "--format", "--reorder", "--output", "-o FILE", "--try", "--suggest",
                     "$remote_addr/64", "jsonl", "$$"):
            self.assertIn(word, out)
        with open(self.log, "rb") as file:
            plain = file.read()
        self.write("log", plain)
        self.write("log.1.gz", gzip.compress(plain))
        examples = re.findall(r"(?m)^  redbucket ((?:.*\\\n)*.*)$", out)
        self.assertEqual(len(examples), 2)
        for example in examples:
            with self.subTest(example=example):
                status, out, err = self.run_command(*shlex.split(example.replace("\\\n", " ")))
                self.assertEqual((status, err), (0, ""))

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_a_full_disk_is_noticed(self):
        log = self.write("long.log", text(common(NOON + n) for n in range(30000)))
        for more in ((), ("--output", "jsonl")):
            with self.subTest(more=more), open("/dev/full", "wb") as full:
                status, _, err = self.run_command(*LIMIT, "replay", *more, *KEY, log, stdout=full)
                self.assertEqual(status, 3)
                self.assertIn("standard output", err)


if __name__ == "__main__":
    unittest.main()
