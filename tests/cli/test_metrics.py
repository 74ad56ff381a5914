# SPDX-License-Identifier: MIT
"""check --metrics and bench --metrics: OpenMetrics text that our own strict reader and the official
one read alike."""

import os
import sys
import unittest

from command import CommandTest, needs_servers

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import openmetrics  # noqa: E402
import original  # noqa: E402

BUILD = os.path.dirname(os.path.abspath(os.environ.get("REDBUCKET", "build/redbucket")))


class Metrics(CommandTest):
    def metrics(self, *arguments):
        status, out, err = self.run_command(*arguments)
        self.assertEqual((status, err), (0, ""), arguments)
        return out

    def number(self, text, name, store=None):
        family = openmetrics.parse(text)[name]
        self.assertEqual([labels for labels in family.samples], [(("store", store or self.store),)])
        return next(iter(family.samples.values()))

    def test_check_tells_what_was_counted(self):
        limit = ("-l", "ip:1/d,burst=1,delay=1")
        for status in (0, 0, 0, 1, 1):
            self.ask(*limit, "request", "ip=k", status=status)
        text = self.metrics("check", "--metrics")
        self.assertEqual({name: self.number(text, f"redbucket_{name}") for name in
                          ("accepted_requests", "delayed_requests", "rejected_requests",
                           "evicted_buckets", "refused_requests", "recoveries", "buckets",
                           "table_bytes")},
                         {"accepted_requests": 3, "delayed_requests": 1, "rejected_requests": 2,
                          "evicted_buckets": 0, "refused_requests": 0, "recoveries": 0,
                          "buckets": 1, "table_bytes": 16777216})
        families = openmetrics.parse(text)
        self.assertEqual(families["redbucket_accepted_requests"].type, "counter")
        self.assertEqual(families["redbucket_table_bytes"].unit, "bytes")
        self.assertEqual(families["redbucket_build"].type, "info")

    def test_zones_are_told_apart(self):
        limits = ("-l", "ip:1/d", "-l", "user:1/d,burst=9")
        for status in (0, 1, 1):
            self.ask(*limits, "request", "ip=k", "user=u", status=status)
        family = openmetrics.parse(self.metrics("check", "--metrics"))["redbucket_zone_rejected_requests"]
        self.assertEqual({dict(labels)["zone"]: value for labels, value in family.samples.items()},
                         {"ip": 2, "user": 0})

    def test_bench_tells_what_it_did(self):
        text = self.metrics("bench", "--seconds=10ms", "--metrics")
        self.assertGreater(self.number(text, "redbucket_accepted_requests"), 0)

    @needs_servers
    def test_a_password_is_no_label(self):
        url = "redis://user:secret@localhost:1/0?timeout=50ms"
        text = self.metrics("-s", url, "check", "--metrics")
        self.assertNotIn("secret", text)
        self.assertEqual(self.number(text, "redbucket_failed_requests", url.replace("secret", "***")), 0)
        self.assertNotIn("redbucket_table_bytes", openmetrics.parse(text))

    @needs_servers
    def test_the_official_parser_reads_the_same(self):
        self.ask("-l", "ip:1", "request", "ip=k")
        texts = [self.metrics("check", "--metrics"),
                 self.metrics("-s", 'redis://localhost:1/0?key_format={zone}"\\{key}', "check", "--metrics")]
        for text in texts:
            try:
                samples = openmetrics.official(BUILD, text)
            except original.Missing as reason:
                self.skipTest(f"prometheus_client can't be had: {reason}")
            families = openmetrics.parse(text)
            ours = {(name + openmetrics.SUFFIXES[family.type], labels): value
                    for name, family in families.items() for labels, value in family.samples.items()}
            self.assertEqual(len(samples), len(ours))
            for name, labels, value, family, kind, unit in samples:
                unescape = lambda label: label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
                key = (name, tuple((label, unescape(text)) for label, text in labels))
                self.assertEqual(ours[key], value)
                self.assertEqual((families[family].type, families[family].unit or ""), (kind, unit))


if __name__ == "__main__":
    unittest.main()
