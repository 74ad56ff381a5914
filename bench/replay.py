#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Replays made-up traffic, ten million lines of it, and tells how fast and in how much memory.

usage: bench/replay.py COMMAND [LINES]

The lines are written once, some 1.4 GB in a temporary folder. What counts lines and nothing else is
measured in the same run, to tell a slow machine from a slow replay. Memory is compared with that of
a tenth of the lines: what it grows with is keys, and both have the same.
"""

import os
import random
import subprocess
import sys
import tempfile
import time

LINES = 10_000_000
A_SECOND = 40
KEYS = 200_000
PATTERNS = 5000
BEGIN = 1_710_244_800
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64; rv:124.0) Gecko/20100101 Firefox/124.0", "curl/8.5.0",
          "Mozilla/5.0 (compatible; Crawler/2.1; +http://192.0.2.1/crawler.html)"]
LIMITS = ["-l", "ip:1/s,burst=20"]
KEY = ["--key", "ip=$remote_addr"]


def address(rng):
    """A few ask for much, most for little."""
    key = int(rng.paretovariate(0.5))
    key = key if key < KEYS else rng.randrange(KEYS)
    return f"198.{18 + (key >> 16 & 1)}.{key >> 8 & 255}.{key & 255}"


def patterns():
    """Texts of the lines of one second, with an @ where its time goes."""
    rng = random.Random(7)
    for _ in range(PATTERNS):
        yield "".join(
            f'{address(rng)} - - [@] "GET /page/{rng.randrange(97)}/{rng.randrange(1013)}.html '
            f'HTTP/1.1" 200 {rng.randrange(10000)} "-" "{rng.choice(AGENTS)}"\n'
            for _ in range(A_SECOND))


def write(path, lines):
    texts = list(patterns())
    with open(path, "w", encoding="ascii") as file:
        for second in range(lines // A_SECOND):
            # A few lines late, as they are in a log of requests that end.
            now = time.gmtime(BEGIN + second - (second % 7 == 3) * 5)
            file.write(texts[second % PATTERNS].replace(
                "@", f"{now.tm_mday:02}/{time.strftime('%b', now)}/{now.tm_year}:"
                     f"{now.tm_hour:02}:{now.tm_min:02}:{now.tm_sec:02} +0000"))


def peak_kib(pid):
    """The most memory that a process had so far; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return 0


def measure(command, rounds=3):
    """The least seconds of processor time of several rounds, the seconds that took, and the peak of
    memory in MiB (looked up while it runs: what the system tells in the end begins with this
    program's own)."""
    results = []
    for _ in range(rounds):
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        peak = pid = 0
        while pid == 0:
            time.sleep(0.005)
            peak = max(peak, peak_kib(process.pid))
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            sys.exit(f"bench: {command}: {process.returncode}")
        results.append((usage.ru_utime + usage.ru_stime, time.monotonic() - began, peak / 1024))
    return min(results)


def show(text, value, unit, target=None, good=True):
    verdict = "" if target is None else f"   {target} {'met' if good else 'MISSED'}"
    print(f"  {text:<50}{value:8.2f} {unit}{verdict}")


def main():
    command = sys.argv[1]
    lines = int(sys.argv[2]) if len(sys.argv) > 2 else LINES
    with tempfile.TemporaryDirectory(prefix="redbucket-bench-") as folder:
        log, tenth, page = (os.path.join(folder, name) for name in ("log", "tenth", "page.html"))
        write(log, lines)
        write(tenth, lines // 10)
        replay = [command, *LIMITS, "replay", *KEY]
        count_s, _, _ = measure(["wc", "-l", log])
        summary_s, elapsed_s, summary = measure([*replay, log])
        _, _, least = measure([*replay, tenth], rounds=1)
        tries_s, _, _ = measure([*replay, "--try", "a", "-l", "ip:2/s,burst=9", "--try", "b", "-l",
                                 "ip:9/s", log], rounds=1)
        page_s, _, page_mib = measure([*replay, "--output", "html", "-o", page, log], rounds=1)
        suggest_s, _, suggest_mib = measure([command, "replay", "--suggest", "99%", *KEY, log],
                                            rounds=1)
        _, _, page_least = measure([*replay, "--output", "html", "-o", page, tenth], rounds=1)
    print(f"replay of {lines:,} lines, {KEYS:,} keys at most")
    rate = lines / summary_s / 1e6
    show("summary, lines a second of the processor", rate, "M", ">= 1", rate >= 1)
    show("summary, lines a second that went by", lines / elapsed_s / 1e6, "M")
    show("summary : counting the lines alone, time", summary_s / count_s, "x")
    show("three sets of limits, lines a second", lines / tries_s / 1e6, "M")
    show("page, lines a second", lines / page_s / 1e6, "M")
    show("suggestion, lines a second", lines / suggest_s / 1e6, "M")
    show("suggestion, memory", suggest_mib, "MiB")
    show("summary, memory", summary, "MiB")
    show("summary, memory : that of a tenth of the lines", summary / least, "x", "<= 1.1",
         summary / least <= 1.1)
    show("page, memory", page_mib, "MiB")
    show("page, memory : that of a tenth of the lines", page_mib / page_least, "x", "<= 1.1",
         page_mib / page_least <= 1.1)


if __name__ == "__main__":
    main()
