# SPDX-License-Identifier: MIT
"""The model's scenarios and the cases that are steps alone, with their own clock: answers and states to
the last bit."""

import json
import math
import os

import pytest

from redbucket import InMemoryRateLimiter, RateLimit, Zone

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(os.path.dirname(HERE)), "tests", "data")

SCENARIOS = []
for name in ("scenarios.jsonl", "cases.jsonl"):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        SCENARIOS += [json.loads(line) for line in file]


def is_retry(expected, said):
    """Rounded up by up to 2 microseconds and a millionth; null is never."""
    if expected is None:
        return said == math.inf
    return expected <= said <= expected + 2e-6 + expected * 1e-6


def check_step(limiter, clock, step, where):
    clock.now = step["t"]
    operation = step.get("op", "request")
    options = {} if operation == "reset" else {"cost": step.get("cost", 1)}
    response = getattr(limiter, operation)(step["keys"], **options)
    if "accepted" in step:
        assert response.accepted is step["accepted"], where
        assert response.delay == (step["delay"] if step["accepted"] else None), where
    if "remaining" in step:
        assert response.remaining == step["remaining"], where
    if "retry_after" in step:
        assert is_retry(step["retry_after"], response.retry_after), where
    for limit, expected in step.get("state", {}).items():
        state = limiter.state(limit, step["keys"][limit])
        assert state == (None if expected is None else tuple(expected)), (where, limit)


@pytest.mark.filterwarnings("ignore:zone")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: str(scenario["id"]))
def test_scenario(scenario, clock):
    limiter = InMemoryRateLimiter(grow=True, clock=clock)
    limiter.configure({name: RateLimit(Zone(limit["zone"], limit["rate"], limit["expiry"]),
                                       limit["burst"], limit["delay"])
                       for name, limit in scenario["limits"].items()})
    for number, step in enumerate(scenario["steps"]):
        check_step(limiter, clock, step, f"step {number}")
