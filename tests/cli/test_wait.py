# SPDX-License-Identifier: MIT
"""request --wait: what is slept, what is asked again, and what is given back."""

import time

from command import CommandTest, elapsed


class Wait(CommandTest):
    def test_a_rejection_is_asked_again_until_there_is_room(self):
        limit = ("-l", "ip:2/s")
        self.ask(*limit, "request", "ip=k")
        start = time.monotonic()
        status, out, err = self.run_command(*limit, "request", "--wait=5", "ip=k")
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(0.3 < elapsed(start) < 3, elapsed(start))
        self.assertRegex(out, r"\Aaccepted after 0\.[345]\d* s\n\Z")

    def test_without_seconds_it_waits_as_long_as_it_takes(self):
        limit = ("-l", "ip:5/s")
        self.ask(*limit, "charge", "--cost", "3", "ip=k")
        answer = self.ask(*limit, "request", "--wait", "ip=k")
        self.assertTrue(0.2 < answer["waited"] < 3, answer)
        self.assertEqual((answer["accepted"], answer["delay"]), (True, 0))

    def test_a_delay_within_the_wait_is_slept_out(self):
        limit = ("-l", "ip:2/s,delay=1")
        self.ask(*limit, "request", "ip=k")
        start = time.monotonic()
        answer = self.ask(*limit, "request", "--wait=2s", "ip=k")
        self.assertTrue(elapsed(start) >= answer["delay"] > 0.2, answer)
        self.assertTrue(answer["waited"] >= answer["delay"], answer)
        self.assertEqual(answer["decided"], "ip")

    def test_what_passes_at_once_waits_for_nothing(self):
        self.assert_prints(0, "accepted\n", "-l", "ip:1/d", "request", "--wait", "ip=k")
        self.assert_prints(0, "accepted\n", "-l", "ip:1/d", "request", "--wait=0", "ip=l")
        self.assertEqual(self.ask("-l", "ip:1/d", "request", "--wait=9", "ip=m")["waited"], 0)

    def test_the_end_of_the_wait_is_a_rejection(self):
        limit = ("-l", "ip:1/d")
        self.ask(*limit, "request", "ip=k")
        for wait, least in (("0", 0), ("200ms", 0.2), ("0.3", 0.3)):
            start = time.monotonic()
            status, out, err = self.run_command(*limit, "request", f"--wait={wait}", "ip=k")
            self.assertEqual((status, err), (1, ""))
            self.assertTrue(least <= elapsed(start) < least + 2, (wait, elapsed(start)))
            self.assertRegex(out, r"\Arejected by ip, retry after 86[34]\d\d(\.\d+)? s\n\Z")

    def test_what_never_fits_is_not_waited_for(self):
        start = time.monotonic()
        self.assert_prints(1, "rejected by ip, never: cost 3 exceeds burst + delay + 1 = 2\n",
                           "-l", "ip:1/s,burst=1", "request", "--cost=3", "--wait", "ip=k")
        self.assertLess(elapsed(start), 5)

    def test_somebody_elses_refund_ends_the_wait_at_its_end(self):
        limit = ("-l", "ip:1/d")
        self.ask(*limit, "request", "ip=k")
        waiting = self.start(*limit, "request", "--wait=1", "ip=k")
        time.sleep(0.2)
        self.ask(*limit, "refund", "ip=k")
        out, _ = waiting.communicate(timeout=20)
        self.assertEqual(waiting.returncode, 0)
        self.assertRegex(out.decode(), r"\Aaccepted after 1(\.\d+)? s\n\Z")


class GiveBack(CommandTest):
    """A permit whose delay is longer than the wait is given back."""

    LIMIT = ("-l", "ip:1/h,burst=1,delay=3")

    def spend(self, *limits, count=2):
        for _ in range(count):
            self.ask(*limits, "request", *[f"{name.split(':')[0]}=k" for name in limits[1::2]])

    def test_nothing_stays_taken_and_the_answer_is_a_rejection(self):
        self.spend(*self.LIMIT)
        before = self.ask(*self.LIMIT, "peek", "ip=k")
        self.assertTrue(before["accepted"])
        for _ in range(5):
            answer = self.ask(*self.LIMIT, "request", "--wait=0.05", "ip=k", status=1)
            self.assertEqual((answer["accepted"], answer["decided"]), (False, "ip"))
        after = self.ask(*self.LIMIT, "peek", "ip=k")
        self.assertTrue(before["delay"] - 30 < after["delay"] <= before["delay"], (before, after))

    def test_the_rejection_says_when_the_delay_would_fit(self):
        self.spend(*self.LIMIT)
        answer = self.ask(*self.LIMIT, "request", "--wait=600", "ip=k", status=1)
        delay = self.ask(*self.LIMIT, "peek", "ip=k")["delay"]
        self.assertTrue(delay - 600 <= answer["retry_after"] < delay - 570, (answer, delay))
        self.assertEqual(answer["limits"]["ip"]["retry_after"], answer["retry_after"])
        self.assertEqual(answer["limits"]["ip"]["accepted"], False)
        self.assertEqual(answer["remaining"], 0)
        status, out, _ = self.run_command(*self.LIMIT, "request", "--wait=600", "ip=k")
        self.assertEqual(status, 1)
        self.assertRegex(out, r"\Arejected by ip, retry after (3000|29[789]\d(\.\d+)?) s\n\Z")

    def test_every_limit_gets_its_part_back(self):
        limits = (*self.LIMIT, "-l", "user:1/d,burst=9")
        self.spend(*limits)
        answer = self.ask(*limits, "request", "--wait=0", "user=k", "ip=k", status=1)
        self.assertEqual(answer["decided"], "ip")
        self.assertEqual(answer["limits"]["user"]["accepted"], True)
        self.assertEqual(answer["limits"]["user"]["remaining"], 8)
        self.assertEqual(self.ask(*limits, "peek", "user=k")["remaining"], 7)

    def test_it_is_given_back_after_a_rejection_too(self):
        limit = ("-l", "ip:4/s,delay=40")
        self.ask(*limit, "charge", "--cost", "42", "ip=k")
        answer = self.ask(*limit, "request", "--wait=0.8", "ip=k", status=1)
        self.assertGreater(answer["retry_after"], 5)
        self.assertEqual(self.ask(*limit, "peek", "ip=k")["limits"]["ip"]["accepted"], True)
