# SPDX-License-Identifier: MIT
"""replay --output html: one page that asks nobody for anything, says what the summary says, and takes
nothing that a log holds for markup.

What a browser makes of it is tested where there is one (tests/chromium.py).
"""

import base64
import hashlib
import json
import os
import random
import re
import resource
import signal
import stat
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import chromium  # noqa: E402
from command import CommandTest  # noqa: E402
from traffic import NOON, combined, common, text  # noqa: E402

KEY = ("--key", "ip=$remote_addr")
LIMIT = ("-l", "ip:0.5/s,burst=2,delay=3")
TRIES = ("--try", "tight", "-l", "ip:0.5/s,burst=1", "--try", "waits", "-l", "ip:1/s,delay=6",
         "--try", "pages", "-l", "ip:9/s,burst=9", "-l", "page:1/s,burst=3")

# Keys that would do harm in a page, a script, a table or a URL.
EVIL = ["</script><script>alert(1)</script>", "<img/src=x/onerror=alert(1)>", "<!--", "'\"><b>x",
        "&lt;i&gt;", "${alert(1)}", "`${1}`", "\u2028\u2029", "\u202egnp.evil", "]]>", "__proto__",
        "constructor", "\\u003cb\\u003e", "javascript:alert(1)", "%3Cscript%3E", "+cmd|calc"]
EVIL_BYTES = [b"\xff\xfe<b>", b"\x80\x00\x01", b"\xed\xa0\x80", b"\xe2\x80", b"\x1b]0;t\x07"]


def traffic(count=5000, seed=6):
    rng = random.Random(seed)
    return [combined(NOON + n // 6, f"192.0.2.{min(int(rng.expovariate(0.3)), 250)}",
                     f"GET /{int(rng.expovariate(0.4))} HTTP/1.1") for n in range(count)]


def evil_log():
    """Every evil key four times, as the user agent."""
    lines = []
    for key in [key.encode() for key in EVIL] + EVIL_BYTES:
        line = combined(NOON, agent="@").encode().replace(b"@", key.replace(b'"', b'\\"'))
        lines += [line] * 4
    return b"\n".join(lines)


class PageTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.log = self.write("access.log", text(traffic()))
        self.out = os.path.join(self.folder, "report.html")

    def page(self, *arguments, out=None, status=0, err=""):
        out = out or self.out
        got = self.run_command(*arguments, "--output", "html", "-o", out)
        self.assertEqual(got, (status, "", err), arguments)
        with open(out, encoding="ascii") as file:  # the page has no other characters
            return file.read()

    @staticmethod
    def findings(page):
        found = re.search(r'<script type="application/json" id="findings">([^<]*)</script>', page)
        return json.loads(found[1])

    def summary(self, *arguments):
        status, out, _ = self.run_command("--json", *arguments)
        self.assertEqual(status, 0)
        return json.loads(out)


class Content(PageTest):
    def test_it_says_what_the_summary_says(self):
        words = (*LIMIT, "replay", *KEY, self.log)
        summary = self.summary(*words)
        found = self.findings(self.page(*words))
        one = found["sets"][0]
        for name in ("accepted", "delayed", "rejected"):
            self.assertEqual(one[name], summary[name])
        self.assertEqual([sum(counts) for counts in one["when"]],
                         [summary["accepted"] - summary["delayed"], summary["delayed"],
                          summary["rejected"]])
        self.assertEqual((found["lines"], found["first"], found["last"]),
                         (summary["lines"], summary["first"], summary["last"]))
        self.assertEqual(found["axis"]["bins"], len(one["when"][0]))
        limit, expected = one["limits"][0], summary["limits"]["ip"]
        self.assertEqual([(hit["key"], hit["rejected"], hit["delayed"]) for hit in limit["hardest"]],
                         [(hit["key"], hit["rejected"], hit["delayed"])
                          for hit in expected["hardest"][:24]])
        self.assertEqual((limit["words"], limit["key"], limit["text"]),
                         ("up to 3 at once, 3 more with a wait of up to 6 s, then 30 a minute",
                          "$remote_addr", "ip:0.5/s,burst=2,delay=3"))

    def test_keys_have_timelines_of_all_their_requests(self):
        found = self.findings(self.page(*LIMIT, "replay", *KEY, self.log))
        asked = {}
        for line in traffic():
            address = line.split(" ")[0]
            asked[address] = asked.get(address, 0) + 1
        hardest = found["sets"][0]["limits"][0]["hardest"]
        self.assertGreater(len(hardest), 5)
        for hit in hardest:
            self.assertEqual((hit["requests"], hit["requests_missed"]), (asked[hit["key"]], 0))
            self.assertEqual([sum(counts) for counts in hit["when"]],
                             [hit["requests"] - hit["delayed"] - hit["rejected"], hit["delayed"],
                              hit["rejected"]])
            self.assertEqual({len(counts) for counts in hit["when"]}, {found["keyAxis"]["bins"]})

    def test_delays_are_those_of_the_answers(self):
        words = (*LIMIT, "replay", *KEY, self.log)
        delays = self.findings(self.page(*words))["sets"][0]["delays"]
        _, out, _ = self.run_command(*words, "--output", "jsonl")
        waits = sorted(answer["delay"] for answer in map(json.loads, out.splitlines())
                       if answer.get("delay", 0) > 0)
        self.assertEqual((sum(delays["counts"]), delays["longest"]), (len(waits), waits[-1]))
        self.assertAlmostEqual(delays["mean"], sum(waits) / len(waits))
        axis = delays["axis"]
        counts = [0] * axis["bins"]
        for wait in waits:
            counts[int((int(wait * 1000) / 1000 - axis["start"]) / axis["width"] + 1e-9)] += 1
        self.assertEqual(delays["counts"], counts)
        half = waits[len(waits) // 2]
        self.assertTrue(half * 0.93 <= delays["half"] <= half * 1.08, (half, delays["half"]))

    def test_sets_are_compared_as_in_the_summary(self):
        words = ("replay", *KEY, "--key", "page=$uri", *TRIES, self.log)
        summary = self.summary(*words)
        found = self.findings(self.page(*words))
        self.assertEqual([one["name"] for one in found["sets"]], list(summary["sets"]))
        for one in found["sets"]:
            for name in ("accepted", "delayed", "rejected"):
                self.assertEqual(one[name], summary["sets"][one["name"]][name])
        names = list(summary["sets"])
        for limit in found["compared"]:
            expected = [(key["key"], [key["sets"].get(name) for name in names])
                        for key in summary["compared"][limit["name"]][:24]]
            self.assertEqual([(key["key"], key["sets"]) for key in limit["keys"]], expected)

    def test_it_is_whole_in_itself_and_allows_nothing_else(self):
        page = self.page(*LIMIT, "replay", *KEY, self.log)
        self.assertNotRegex(page, r"(?i)<(link|img|iframe|object|base)\b|<[^>]*\b(src|href)\s*=")
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
        self.assertIn("default-src 'none'", policy)
        for tag in ("script", "style"):
            body = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(body[0].encode()).digest()).decode()
            self.assertEqual(len(body), 1)
            self.assertIn(f"{tag}-src 'sha256-{digest}'", policy)
        self.assertIn("Permission is hereby granted", page)  # what the library's licence asks for

    def test_nothing_of_a_log_is_markup(self):
        log = self.write("evil.log", evil_log())
        page = self.page("-l", "a:1/d", "replay", "--key", "a=$http_user_agent", log)
        body = re.search(r'id="findings">(.*?)</script>\n<script>', page, re.DOTALL)[1]
        self.assertNotRegex(body, r"[<>&']")
        self.assertTrue(body.isascii())
        keys = {hit["key"] for hit in self.findings(page)["sets"][0]["limits"][0]["hardest"]}
        self.assertIn(EVIL[0], keys)
        self.assertIn("\\xe2\\x80\\xa8\\xe2\\x80\\xa9", keys)
        self.assertIn("\\xff\\xfe<b>", keys)

    def test_names_of_files_and_texts_of_keys_are_text_as_well(self):
        log = self.write("<i>'.log", text(traffic(50)) + "<script>\n")
        got = self.run_command(*LIMIT, "replay", "--key", "ip=$remote_addr<u>&", log, "--output", "html", "-o", self.out)
        self.assertEqual(got[0], 0, got)
        with open(self.out, encoding="ascii") as file:
            found = self.findings(file.read())
        self.assertEqual(found["files"], [log])
        self.assertEqual(found["sets"][0]["limits"][0]["key"], "$remote_addr<u>&")
        self.assertEqual(found["first_unreadable"]["text"], "<script>")

    def test_the_same_traffic_makes_the_same_page(self):
        words = ("replay", *KEY, "--key", "page=$uri", *TRIES, self.log)
        self.assertEqual(self.page(*words), self.page(*words))

    def test_nothing_at_all_is_a_page_too(self):
        found = self.findings(self.page(*LIMIT, "replay", *KEY, self.write("empty", "")))
        self.assertEqual((found["lines"], found["sets"][0]["when"]), (0, [[], [], []]))


class Writing(PageTest):
    def setUp(self):
        super().setUp()
        self.words = (*LIMIT, "replay", *KEY, self.log, "--output", "html")

    def left(self):
        return sorted(name for name in os.listdir(self.folder)
                      if name not in ("access.log", "empty.conf"))

    def test_it_goes_where_it_is_asked_to(self):
        page = self.page(*self.words[:-2])
        status, out, err = self.run_command(*self.words, "-o", "-")
        self.assertEqual((status, out, err), (0, page, ""))
        status, _, err = self.run_command(*self.words, "-o", "/dev/null")
        self.assertEqual((status, err, os.path.exists("/dev/null")), (0, "", True))
        self.assertEqual(self.left(), ["report.html"])

    def test_mode_and_links_stay_as_they_are(self):
        os.umask(os.umask(0o027))
        self.page(*self.words[:-2])
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(os.stat(self.out).st_mode), 0o666 & ~mask)
        os.chmod(self.out, 0o640)
        os.symlink("report.html", os.path.join(self.folder, "link"))
        self.page(*self.words[:-2], out=os.path.join(self.folder, "link"))
        self.assertEqual(stat.S_IMODE(os.stat(self.out).st_mode), 0o640)
        self.assertTrue(os.path.islink(os.path.join(self.folder, "link")))
        self.assertEqual(self.left(), ["link", "report.html"])

    def test_what_cannot_be_written_is_told_before_anything_is_read(self):
        for path in (os.path.join(self.folder, "gone", "x.html"), self.folder):
            with self.subTest(path=path):
                status, out, err = self.run_command(*self.words, "-o", path)
                self.assertEqual((status, out), (3, ""))
                self.assertRegex(err, rf"^redbucket: {re.escape(path)}: .*(No such|directory)")
        status, _, err = self.run_command(*LIMIT, "replay", *KEY, "nowhere.log", "--output", "html",
                                          "-o", "gone/x.html")
        self.assertEqual((status, err), (3, "redbucket: gone/x.html: No such file or directory\n"))

    def test_a_full_disk_leaves_what_was_there(self):
        self.write("report.html", "before")

        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))

        status, _, err = self.run_command(*self.words, "-o", self.out, preexec_fn=small_files)
        self.assertEqual((status, err), (3, f"redbucket: {self.out}: File too large\n"))
        with open(self.out, encoding="ascii") as file:
            self.assertEqual(file.read(), "before")
        self.assertEqual(self.left(), ["report.html"])

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full here")
    def test_a_device_that_is_full_is_told(self):
        status, _, err = self.run_command(*self.words, "-o", "/dev/full")
        self.assertEqual((status, err), (3, "redbucket: /dev/full: No space left on device\n"))
        with open("/dev/full", "wb") as full:
            status, _, err = self.run_command(*self.words, "-o", "-", stdout=full)
        self.assertEqual(status, 3)
        self.assertIn("standard output: No space left on device", err)

    def test_the_options_belong_together(self):
        self.assert_fails(2, "replay: --output html: expected -o FILE as well, or -o - for standard "
                          "output", *self.words)
        self.assert_fails(2, "replay: -o x.html: expected --output html as well", *self.words[:-2],
                          "-o", "x.html")


@unittest.skipUnless(chromium.programs(), "no chromium and chromedriver here")
class Browser(PageTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Chromium()
        cls.addClassCleanup(cls.browser.close)
        cls.browser.run("return 1")
        cls.browser.complaints()
        cls.browser.requests()

    def show(self, path, **options):
        """Opens the page; it must say nothing on the console, and ask for nothing but itself."""
        self.browser.open(path, **options)
        self.assertEqual(self.browser.complaints(), [])
        self.assertLessEqual({url for url in self.browser.requests()
                              if not url.startswith(("chrome", "data:"))},
                             {"file://" + os.path.realpath(path)})
        self.assertEqual(self.browser.run("return document.documentElement.scrollWidth - innerWidth"),
                         0, options)

    def totals(self, selector=""):
        got = self.browser.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.firstChild.textContent)",
            f"{selector} [data-total]")
        return [int(number.replace(",", "")) for number in got]

    def test_totals_are_those_of_the_summary(self):
        words = (*LIMIT, "replay", *KEY, self.log)
        summary = self.summary(*words)
        self.page(*words)
        self.show(self.out)
        self.assertEqual(self.totals(), [summary["accepted"] - summary["delayed"],
                                         summary["delayed"], summary["rejected"]])

    def test_tables_have_the_numbers_of_the_charts(self):
        words = (*LIMIT, "replay", *KEY, self.log)
        summary = self.summary(*words)
        self.page(*words)
        self.show(self.out)
        columns = self.browser.run("""
            const fold = document.querySelector("details.numbers");
            fold.open = true;
            return new Promise((done) => setTimeout(() => done([1, 2, 3].map((column) =>
                [...fold.querySelectorAll("tbody tr")].map((row) => row.children[column].textContent))), 50));
            """)
        self.assertEqual([sum(int(cell.replace(",", "")) for cell in column) for column in columns],
                         [summary["accepted"] - summary["delayed"], summary["delayed"],
                          summary["rejected"]])

    def test_sets_are_beside_each_other_on_every_screen(self):
        words = ("replay", *KEY, "--key", "page=$uri", *TRIES, self.log)
        summary = self.summary(*words)["sets"]
        self.page(*words)
        for width in (400, 1280):
            for dark in (False, True):
                self.show(self.out, width=width, dark=dark)
                for name, one in summary.items():
                    self.assertEqual(self.totals(f'tr[data-set="{name}"]'),
                                     [one["accepted"] - one["delayed"], one["delayed"],
                                      one["rejected"]])
        folds = self.browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; });"
                                 "return document.querySelectorAll('details').length")
        self.assertGreater(folds, 5)
        self.show(self.out, width=400)

    def test_light_and_dark_differ_and_paper_is_light(self):
        self.page(*LIMIT, "replay", *KEY, self.log)
        back = "return getComputedStyle(document.body).backgroundColor"
        grey = []
        for dark in (False, True):
            self.show(self.out, dark=dark)
            grey.append(int(re.search(r"\d+", self.browser.run(back))[0]))
        self.assertGreater(grey[0], 200)
        self.assertLess(grey[1], 60)
        self.browser.run("dispatchEvent(new Event('beforeprint'))")
        self.assertGreater(int(re.search(r"\d+", self.browser.run(back))[0]), 200)
        self.assertEqual(self.browser.complaints(), [])

    def test_kinds_differ_without_colour(self):
        """Each kind has a pattern of its own, in the legend and on the canvas."""
        self.page(*LIMIT, "replay", *KEY, self.log)
        self.show(self.out)
        images = self.browser.run("return ['once', 'delayed', 'rejected'].map((kind) => "
                                  "getComputedStyle(document.querySelector('.swatch.' + kind)).backgroundImage)")
        self.assertEqual(images[0], "none")
        self.assertEqual([image.count("repeating-linear-gradient") for image in images], [0, 1, 2])
        tones = self.browser.run("""
            const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
            return KINDS.map((kind) => {
                paint.fillStyle = pattern(paint, kind);
                paint.fillRect(0, 0, 24, 24);
                const {data} = paint.getImageData(0, 0, 24, 24);
                const tones = new Set();
                for (let i = 0; i < data.length; i += 4)
                    tones.add(Math.round((data[i] * 3 + data[i + 1] * 6 + data[i + 2]) / 10));
                return Math.max(...tones) - Math.min(...tones);
            });""")
        self.assertEqual(tones[0], 0)
        self.assertGreater(min(tones[1:]), 60)

    def test_evil_keys_are_shown_and_do_nothing(self):
        log = self.write("evil.log", evil_log())
        page = self.page("-l", "a:1/d", "replay", "--key", "a=$http_user_agent", log)
        keys = [hit["key"] for hit in self.findings(page)["sets"][0]["limits"][0]["hardest"]]
        self.show(self.out)
        shown = self.browser.run("return [...document.querySelectorAll('tbody .key')].map((e) => e.textContent)")
        self.assertEqual(shown, keys[:12])
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, i, b, main script').length"), 0)

    def test_there_are_headings_and_names_for_those_who_cannot_see_charts(self):
        self.page("replay", *KEY, "--key", "page=$uri", *TRIES, self.log)
        self.show(self.out)
        self.assertEqual(self.browser.run("return document.querySelectorAll('h1').length"), 1)
        self.assertEqual(self.browser.run(
            "return [...document.querySelectorAll('.chart, .spark, .split')].filter((e) => "
            "e.getAttribute('role') !== 'img' || !e.getAttribute('aria-label')).length"), 0)
        self.assertEqual(self.browser.run(
            "return [...document.querySelectorAll('th')].filter((e) => !e.getAttribute('scope')).length"), 0)

    def test_strange_traffic_is_drawn(self):
        one = self.write("one.log", common(NOON) + "\n")
        far = self.write("far.jsonl", "".join(json.dumps({"t": t, "keys": {"ip": "a"}}) + "\n"
                                              for t in (-1e12, -5.5, 0, 0.001, 1e12) for _ in range(9)))
        for log, key in ((one, KEY), (far, ()), (self.write("empty", ""), KEY)):
            with self.subTest(log=log):
                self.page(*LIMIT, "replay", *key, log)
                self.show(self.out)
                if log != self.write("empty", ""):
                    self.assertGreater(sum(self.totals()), 0)


if __name__ == "__main__":
    unittest.main()
