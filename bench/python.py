#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python package against the original and against others of its kind, as ratios of one run.

usage: bench/python.py BUILD ROUNDTRIP

The packages are fetched into environments of their own below BUILD; without a package index this is
left out, visibly. All of them take turns on one server, and the best of their rounds counts. What
Python adds to a request on a server is told beside ROUNDTRIP, the same in C.
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(TOP, "tests"), os.path.join(TOP, "python", "tests")]

import environment  # noqa: E402, these three are the tests'
import original  # noqa: E402
import server as servers  # noqa: E402

PEERS = ["redis", "limits", "throttled-py"]
ROUNDS = 3


def values(command):
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: float(value) for name, value in map(str.split, output.splitlines())}


def keep_best(measured, found):
    for name, value in found.items():
        better = min if name.endswith("_us") else max
        measured[name] = better(measured.get(name, value), value)


def measure(build, roundtrip):
    mine = environment.interpreter(build, "bench", PEERS)
    theirs = original.interpreter(build)
    program = os.path.join(HERE, "python_limiters.py")
    measured = {}
    with servers.Server("redis", config=['save ""']) as server:
        for _ in range(ROUNDS):
            keep_best(measured, values([roundtrip, f"unix://{server.socket}"]))
            for python, kind in ((mine, "ours"), (theirs, "original"), (mine, "limits"),
                                 (mine, "throttled")):
                keep_best(measured, values([python, "-W", "ignore", program, kind, server.socket]))
                server.ask("FLUSHALL")
    return measured


def show(text, ratio, target=None, side=">="):
    if target is None:
        print(f"  {text:<50}{ratio:8.2f}")
        return
    good = ratio >= target if side == ">=" else ratio <= target
    print(f"  {text:<50}{ratio:8.2f}   {side} {target:.2f} {'met' if good else 'MISSED'}")


def main():
    build, roundtrip = sys.argv[1:]
    try:
        measured = measure(build, roundtrip)
    except (original.Missing, environment.Missing) as reason:
        print(f"bench: Python is not measured: {str(reason).splitlines()[-1]}")
        return
    print("Python, one caller")
    for name, value in sorted(measured.items()):
        unit = "us a request" if name.endswith("_us") else "requests/s"
        print(f"  {name:<24}{value:14.2f} {unit}")
    print("\nratios, and what is asked for")
    for kind, target in (("original", 5.0), ("limits", 1.0), ("throttled", 1.0)):
        show(f"memory : {kind}", measured["ours_memory"] / measured[f"{kind}_memory"], target)
    for kind in ("original", "limits", "throttled"):
        show(f"{kind}, time on a server : ours",
             measured[f"{kind}_server_us"] / measured["ours_server_us"], 1.0)
    added = {kind: measured[f"{kind}_server_us"] - measured["bare_us"] for kind in ("ours", "original")}
    show("what is added to C on a server : by the original", added["ours"] / added["original"], 1 / 3, "<=")


if __name__ == "__main__":
    main()
