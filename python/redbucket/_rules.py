# SPDX-License-Identifier: MIT
"""Which keys a request has, by rules that are written down once.

A rule says the key under one limit: a function of whatever the request comes from, or the key
itself. A function that says None leaves its limit out, for this one request.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Optional, Union

__all__ = ("Rules", "chosen", "keys_by")

Rules = Union[Mapping[str, Any], Callable[..., Optional[Mapping[str, Any]]]]


def chosen(rule: Any, *args: Any, **named: Any) -> Any:
    """What a rule says of these arguments."""
    return rule(*args, **named) if callable(rule) else rule


def keys_by(rules: Rules, *args: Any, **named: Any) -> Dict[str, Any]:
    """The keys that rules say: a mapping from limits to rules, or one function that says all."""
    if callable(rules):
        said = rules(*args, **named) or {}
        return {name: key for name, key in said.items() if key is not None}
    keys = {}
    for name, rule in rules.items():
        key = rule(*args, **named) if callable(rule) else rule
        if key is not None:
            keys[name] = key
    return keys
