# SPDX-License-Identifier: MIT
"""request, peek, refund, charge and reset: what they print, as text and as JSON, and their ends.

Rates are so low that nothing drains while a test runs, unless draining is what it is about.
"""

import json

from command import CommandTest

SLOW = "1/d"


class Request(CommandTest):
    def test_burst_and_one_pass_and_then_it_is_rejected(self):
        limit = ("-l", f"ip:{SLOW},burst=2")
        for _ in range(3):
            self.assert_prints(0, "accepted\n", *limit, "request", "ip=192.0.2.7")
        status, out, err = self.run_command(*limit, "request", "ip=192.0.2.7")
        self.assertEqual((status, err), (1, ""))
        self.assertRegex(out, r"\Arejected by ip, retry after 86[34]\d\d(\.\d+)? s\n\Z")
        self.assert_prints(0, "accepted\n", *limit, "request", "ip=192.0.2.8")

    def test_a_delay_is_told_and_not_slept(self):
        limit = ("-l", "ip:1/h,delay=2")
        self.assert_prints(0, "accepted\n", *limit, "request", "ip=k")
        status, out, _ = self.run_command(*limit, "request", "ip=k")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"\Aaccepted after 3(600|59\d(\.\d{1,3})?) s\n\Z")

    def test_json_of_an_accepted_request(self):
        answer = self.ask("-l", f"ip:{SLOW},burst=2", "request", "ip=k")
        self.assertEqual(answer, {
            "accepted": True, "delay": 0, "remaining": 2, "reset_after": 86400,
            "limits": {"ip": {"accepted": True, "delay": 0, "remaining": 2, "reset_after": 86400}},
            "degraded": False})

    def test_json_of_a_delayed_and_a_rejected_request(self):
        limit = ("-l", "ip:1/h,delay=1")
        self.ask(*limit, "request", "ip=k")
        answer = self.ask(*limit, "request", "ip=k")
        self.assertEqual(list(answer), ["accepted", "delay", "remaining", "reset_after", "limits",
                                        "decided", "degraded"])
        self.assertEqual((answer["accepted"], answer["decided"]), (True, "ip"))
        self.assertTrue(3590 < answer["delay"] <= 3600, answer)
        answer = self.ask(*limit, "request", "ip=k", status=1)
        self.assertEqual(list(answer), ["accepted", "retry_after", "remaining", "reset_after",
                                        "limits", "decided", "degraded"])
        self.assertEqual((answer["accepted"], answer["decided"]), (False, "ip"))
        self.assertTrue(3590 < answer["retry_after"] < 3600.01, answer)
        self.assertEqual(answer["limits"]["ip"]["retry_after"], answer["retry_after"])

    def test_M10_a_cost_that_never_fits_says_so(self):
        limit = ("-l", "ip:1/s,burst=4,delay=2")
        self.assert_prints(1, "rejected by ip, never: cost 8 exceeds burst + delay + 1 = 7\n",
                           *limit, "request", "--cost", "8", "ip=k")
        answer = self.ask(*limit, "request", "--cost", "8", "ip=k", status=1)
        self.assertIsNone(answer["retry_after"])
        self.assertIsNone(answer["limits"]["ip"]["retry_after"])
        answer = self.ask(*limit, "request", "--cost", "7", "ip=k")
        self.assertEqual(answer["delay"], 2)

    def test_cost_may_be_a_fraction_and_an_exponent(self):
        self.assertEqual(self.ask("-l", f"ip:{SLOW},burst=9", "request", "--cost", "2.5",
                                  "ip=k")["remaining"], 7)
        self.assertEqual(self.ask("-l", f"ip:{SLOW},burst=9", "request", "--cost=1e-1",
                                  "ip=k")["remaining"], 7)

    def test_M01_a_rejected_request_takes_nothing_from_any_limit(self):
        limits = ("-l", f"user:{SLOW},burst=5", "-l", f"ip:{SLOW}")
        for keys in (("user=a", "ip=b"), ("ip=d", "user=c")):
            self.ask(*limits, "request", *keys)
            answer = self.ask(*limits, "request", *keys, status=1)
            self.assertEqual(answer["decided"], "ip")
            self.assertEqual(answer["limits"]["user"]["accepted"], True)
            user = next(key for key in keys if key.startswith("user="))
            self.assertEqual(self.ask(*limits, "peek", user)["remaining"], 4)

    def test_of_several_limits_the_longest_wait_decides(self):
        limits = ("-l", "a:1/m,delay=9", "-l", "b:1/h,delay=9")
        self.ask(*limits, "request", "a=k", "b=k")
        answer = self.ask(*limits, "request", "a=k", "b=k")
        self.assertEqual(answer["decided"], "b")
        self.assertEqual(answer["delay"], answer["limits"]["b"]["delay"])
        self.assertEqual(list(answer["limits"]), ["a", "b"])

    def test_N10_a_delay_of_a_trillion_seconds_is_printed(self):
        limit = ("-l", "ip:1e-9,delay=1000")
        self.ask(*limit, "charge", "--cost", "1000", "ip=k")
        answer = self.ask(*limit, "request", "ip=k")
        self.assertTrue(0.999e12 < answer["delay"] <= 1e12, answer)
        status, out, _ = self.run_command(*limit, "request", "ip=k")
        self.assertEqual(status, 1)
        self.assertRegex(out, r"\Arejected by ip, retry after (1000|999)\d{6}(\.\d+)? s\n\Z")


class Keys(CommandTest):
    def test_a_key_may_hold_an_equals_sign_or_nothing(self):
        limit = ("-l", f"ip:{SLOW}")
        for key in ("a=b", "a=c", "=", "", " ", "ip=x", "\n", "a:b", "{a}"):
            self.assert_prints(0, "accepted\n", *limit, "request", f"ip={key}")
            self.assertEqual(self.run_command(*limit, "request", f"ip={key}")[0], 1, key)

    def test_a_key_that_is_not_utf8_never_reaches_the_output(self):
        limit = ("-l", f"ip:{SLOW}")
        out = self.run_command("--json", *limit, "request", b"ip=\xff\xfe\x80")[1]
        self.assertTrue(json.loads(out)["accepted"])
        self.assertTrue(out.isascii())
        self.assertEqual(self.run_command(*limit, "request", b"ip=\xff\xfe\x80")[0], 1)
        self.assertEqual(self.run_command(*limit, "request", b"ip=\xff\xfe\x81")[0], 0)

    def test_a_key_too_long_for_the_store_is_an_error_with_its_limit(self):
        status, out, err = self.run_command("-s", "memory:?size=64k", "-l", f"ip:{SLOW}", "request",
                                            "ip=" + "k" * 100000)
        self.assertEqual((status, out), (2, ""))
        self.assertRegex(err, r"\Aredbucket: request: limit ip, key k+\.\.\.: key too long .*\n\Z")

    def test_words_that_are_no_keys(self):
        limits = ("-l", f"user:{SLOW}", "-l", f"ip:{SLOW}")
        for command in ("request", "peek", "refund", "charge", "reset"):
            self.assert_fails(2, f"{command}: expected NAME=KEY for at least one limit, NAME one of "
                                 "user, ip", *limits, command)
            self.assert_fails(2, f'{command}: "192.0.2.7": expected NAME=KEY, NAME one of user, ip',
                              *limits, command, "192.0.2.7")
            self.assert_fails(2, f'{command}: "usr": no such limit, expected one of user, ip',
                              *limits, command, "ip=a", "usr=b")
            self.assert_fails(2, f"{command}: limit ip is named twice, expected once",
                              *limits, command, "ip=a", "user=b", "ip=a")
        self.assert_fails(2, 'request: "": no such limit, expected one of user, ip',
                          *limits, "request", "=a")
        self.assertEqual(self.ask(*limits, "peek", "ip=a", "user=b")["remaining"], 0)

    def test_no_limits_at_all(self):
        self.assert_fails(2, "request: there are no limits: give one with -l, for instance "
                             "-l ip:5/s,burst=10, or in a file (-c, $REDBUCKET_CONFIG, "
                             "redbucket.conf, /etc/redbucket.conf)", "request", "ip=a")

    def test_more_limits_than_one_request_may_name(self):
        limits = [word for i in range(65) for word in ("-l", f"l{i}:{SLOW}")]
        keys = [f"l{i}=k" for i in range(65)]
        self.assert_fails(2, "request: more than 64 limits in one request", *limits, "request",
                          *keys)
        answer = self.ask(*limits, "request", *keys[:64])
        self.assertEqual(len(answer["limits"]), 64)


class OtherOperations(CommandTest):
    def test_peek_answers_as_a_request_would_and_changes_nothing(self):
        limit = ("-l", f"ip:{SLOW},burst=4")
        for _ in range(3):
            self.assert_prints(0, "accepted, 4 remaining\n", *limit, "peek", "ip=k")
        self.assert_prints(0, "accepted, 2 remaining\n", *limit, "peek", "--cost", "3", "ip=k")
        self.ask(*limit, "request", "--cost=5", "ip=k")
        for _ in range(2):
            status, out, _ = self.run_command(*limit, "peek", "ip=k")
            self.assertEqual(status, 1)
            self.assertRegex(out, r"\Arejected by ip, retry after [\d.]+ s, 0 remaining\n\Z")
        self.assert_prints(1, "rejected by ip, never: cost 6 exceeds burst + delay + 1 = 5, "
                              "0 remaining\n", *limit, "peek", "--cost", "6", "ip=k")

    def test_refund_gives_back_and_never_more_than_there_is(self):
        limit = ("-l", f"ip:{SLOW},burst=9")
        self.ask(*limit, "request", "--cost", "5", "ip=k")
        self.assert_prints(0, "done, 7 remaining\n", *limit, "refund", "--cost", "2", "ip=k")
        self.assert_prints(0, "done, 8 remaining\n", *limit, "refund", "ip=k")
        self.assert_prints(0, "done, 10 remaining\n", *limit, "refund", "--cost", "100", "ip=k")
        self.assert_prints(0, "done, 10 remaining\n", *limit, "refund", "ip=other")

    def test_charge_takes_without_asking(self):
        limit = ("-l", f"ip:{SLOW},burst=9")
        self.assert_prints(0, "done, 9 remaining\n", *limit, "charge", "ip=k")
        self.assert_prints(0, "done, 0 remaining\n", *limit, "charge", "--cost", "20", "ip=k")
        answer = self.ask(*limit, "peek", "ip=k", status=1)
        self.assertTrue(11.9 * 86400 < answer["retry_after"] < 12.1 * 86400, answer)

    def test_reset_forgets(self):
        limit = ("-l", f"ip:{SLOW},burst=9")
        self.ask(*limit, "charge", "--cost", "20", "ip=k")
        self.assert_prints(0, "done, 10 remaining\n", *limit, "reset", "ip=k")
        self.assert_prints(0, "accepted, 9 remaining\n", *limit, "peek", "ip=k")
        self.assert_prints(0, "done, 10 remaining\n", *limit, "reset", "--cost", "3", "ip=k")

    def test_json_of_what_is_done(self):
        limit = ("-l", f"ip:{SLOW},burst=9")
        for command, remaining in (("charge", 9), ("refund", 10), ("reset", 10)):
            answer = self.ask(*limit, command, "ip=k")
            self.assertEqual((answer["accepted"], answer["delay"], answer["remaining"]),
                             (True, 0, remaining))
            self.assertNotIn("decided", answer)
            self.assertEqual(answer["limits"]["ip"]["remaining"], remaining)

    def test_several_limits_at_once(self):
        limits = ("-l", f"a:{SLOW},burst=9", "-l", f"b:{SLOW},burst=4")
        self.assert_prints(0, "done, 3 remaining\n", *limits, "charge", "--cost=2", "a=k", "b=k")
        answer = self.ask(*limits, "refund", "b=k", "a=k")
        self.assertEqual(answer["remaining"], 4)
        self.assertEqual({name: limit["remaining"] for name, limit in answer["limits"].items()},
                         {"a": 9, "b": 4})

    def test_C10_a_changed_limit_keeps_what_was_taken(self):
        for _ in range(8):
            self.ask("-l", f"ip:{SLOW},burst=9", "request", "ip=k")
        answer = self.ask("-l", f"ip:{SLOW},burst=2", "request", "ip=k", status=1)
        self.assertTrue(5.9 * 86400 < answer["retry_after"] < 6.1 * 86400, answer)


class Stores(CommandTest):
    def test_memory_is_gone_with_the_process(self):
        for _ in range(2):
            self.assert_prints(0, "accepted\n", "-s", "memory:", "-l", f"ip:{SLOW}", "request",
                               "ip=k")

    def test_a_wrong_url_is_status_2_and_tells_where_it_stood(self):
        for url in ("memory:?colour=red", "nosuch:thing", "shm:", "memory:?size=10q",
                    "memory:?size=-1m"):
            status, out, err = self.run_command("-s", url, "-l", f"ip:{SLOW}", "request", "ip=k")
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
            self.assertTrue(err.startswith(f"redbucket: -s: {url}: "), err)

    def test_the_environments_url_is_named(self):
        self.env["REDBUCKET_STORE"] = "nosuch:x"
        err = self.run_command("-l", f"ip:{SLOW}", "request", "ip=k")[2]
        self.assertTrue(err.startswith("redbucket: $REDBUCKET_STORE: nosuch:x: "), err)

    def test_a_password_is_never_printed(self):
        for url in ("nosuch://user:sesame@192.0.2.1/0", "nosuch://:sesame@192.0.2.1",
                    "nosuch://a:ses@me:sesame/sesame?sesame@192.0.2.1",
                    "nosuch://192.0.2.1?sentinel_password=sesame&x=1"):
            status, out, err = self.run_command("-s", url, "-l", f"ip:{SLOW}", "request", "ip=k")
            self.assertEqual(status, 2)
            self.assertNotIn("sesame", out + err)
            self.assertIn("***", err)

    def test_a_store_of_another_size_is_status_2_and_a_foreign_file_3(self):
        self.ask("-l", f"ip:{SLOW}", "request", "ip=k")
        status, _, err = self.run_command("-s", self.store + "?size=1m", "-l", f"ip:{SLOW}",
                                          "request", "ip=k")
        self.assertEqual((status, err.count("\n")), (2, 1), err)
        with open(f"/dev/shm/{self.store_name}-foreign", "wb") as file:
            file.write(b"something else" * 1000)
        status, out, err = self.run_command("-s", self.store + "-foreign", "-l", f"ip:{SLOW}",
                                            "request", "ip=k")
        self.assertEqual((status, out, err.count("\n")), (3, "", 1), err)
