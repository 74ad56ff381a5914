#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what bash, zsh and fish complete a command line of redbucket's by.

usage: completion/make.py COMMAND FOLDER

Everything is asked of the command itself (tables.py), so that a new command, option or word of a list
is completed once this was run again; a test compares what is here with what this would write. The
parts that don't change are beside this, in redbucket.*.in.
"""

import os
import re
import sys

import tables

HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = "# Made by completion/make.py; the parts that stay are in %s.\n"

# The common options: letter or none, long name, what its value is, description.
COMMON = {
    "-c": ("config", "file", "the configuration"),
    "-s": ("store", "store", "where the state lives"),
    "-l": ("limit", "text", "add a limit, NAME:RATE,burst=N,delay=N"),
    "--json": ("json", None, "one JSON object a line"),
    "--help": ("help", None, "what there is"),
    "--version": ("version", None, "the version"),
}

# What the help of a command doesn't say in a line.
DESCRIPTIONS = {
    ("reset", "--cost"): "has no effect",
    ("replay", "--format"): "how a line is to be read",
    ("replay", "--output"): "what to print",
    ("replay", "--reorder"): "put lines in order of time within so many seconds",
    ("replay", "--suggest"): "suggest limits that leave this share of requests untouched",
}


class Option:
    """letter or "", long name, value: None, "optional", "text", "file", "store", "limit", a list."""

    def __init__(self, letter, name, value, description):
        self.letter, self.name, self.value, self.description = letter, name, value, description

    def spellings(self):
        return [f"-{self.letter}"] * bool(self.letter) + [f"--{self.name}"] * bool(self.name)


def short(text):
    return re.split(r"[;:.(]|, ", text)[0].strip()


def own_option(table, command, option, described):
    form, text = described.get(option, ("", ""))
    description = DESCRIPTIONS.get((command, option)) or short(text)
    if not description:
        sys.exit(f"{command} {option}: its help has no description")
    value = table.choices(command, option) or None
    if form.startswith("[="):
        value = "optional"
    elif value is None and table.takes_value(command, option):
        value = "limit" if option == "--key" else "text"
    return Option("", option[2:], value, description)


def options_of(table, command):
    described = table.described(command)
    options = [own_option(table, command, name, described) for name in table.options(command)]
    if command == "replay":
        options.append(Option("o", "", "file", "where the page goes"))
    return options


def common_options(table):
    if set(table.common) != set(COMMON):
        sys.exit(f"common options: {table.common}, but known are {list(COMMON)}")
    return [Option(name[1] if name[1] != "-" else "h" if name == "--help" else "", *COMMON[name])
            for name in table.common]


def template(name, **parts):
    with open(os.path.join(HERE, f"{name}.in"), encoding="utf-8") as file:
        text = file.read()
    for key, value in parts.items():
        text = text.replace(f"@{key}@", value)
    return text


# ---- bash -----------------------------------------------------------------------------------------

def valued(options):
    return [word for option in options if option.value not in (None, "optional")
            for word in option.spellings()]


# Behind which bash offers something whatever the command is.
BASH_COMPLETED = ("-c", "--config", "-s", "--store", "-o", "--key")


def bash_options(options):
    return " ".join(word for option in options for word in option.spellings())


def bash(table, common, own):
    options = "\n".join(f"        {name}) words='{bash_options(own[name])}' ;;" for name in own)
    choices = "\n".join(
        f"        '{name} --{option.name}') words='{' '.join(option.value)}' ;;"
        for name in own for option in own[name] if isinstance(option.value, list))
    behind = valued(common) + sorted({word for name in own for word in valued(own[name])})
    return template(
        "redbucket.bash", HEAD=HEAD % "redbucket.bash.in", COMMANDS=" ".join(own), OPTIONS=options,
        CHOICES=choices, COMMON=bash_options(common), STORES=" ".join(table.stores()),
        VALUED=" | ".join(dict.fromkeys(behind)),
        FREE=" | ".join(dict.fromkeys(word for word in behind if word not in BASH_COMPLETED)))


# ---- zsh ------------------------------------------------------------------------------------------

ZSH_VALUES = {"text": ":value: ", "file": ":file:_files", "store": ":store:_redbucket_stores",
              "limit": ":limit:_redbucket_limits"}


def zsh_option(option):
    value = option.value
    action = f":value:({' '.join(value)})" if isinstance(value, list) else ZSH_VALUES.get(value, "")
    words = option.spellings()
    if value == "optional":
        words, action = [f"{word}=-" for word in words], "::seconds: "
    elif action:
        words = [f"{word}=" if word.startswith("--") else word for word in words]
    # Limits and --try are given more than once.
    stars = "*" if option.name in ("limit", "key", "try") else ""
    text = re.sub(r"([\[\]:\\])", r"\\\1", option.description).replace("'", "'\\''")
    lines = [f"'{stars}{word}[{text}]{action}'" for word in words]
    return "\n".join(f"        {line}" for line in lines)


def zsh(table, common, own):
    summaries = {name: table.commands[name].replace("'", "'\\''") for name in own}
    commands = "\n".join(f"        '{name}:{summaries[name]}'" for name in own)
    cases = []
    for name, options in own.items():
        specs = "\n".join(zsh_option(option) for option in options)
        cases.append(f"    {name}) own=(\n{specs}\n        ) ;;" if specs else f"    {name}) ;;")
    return template(
        "redbucket.zsh", HEAD=HEAD % "redbucket.zsh.in", COMMANDS=commands,
        COMMON="\n".join(zsh_option(option) for option in common), OPTIONS="\n".join(cases),
        STORES=" ".join(f"'{store}'" for store in table.stores()))


# ---- fish -----------------------------------------------------------------------------------------

FISH_VALUES = {"text": " -x", "file": " -r -F", "store": " -x -a '(__redbucket_stores)'",
               "limit": " -x -a '(__redbucket_limits)'"}


def fish_option(option, condition):
    value = option.value
    kind = f" -x -a '{' '.join(value)}'" if isinstance(value, list) else FISH_VALUES.get(value, "")
    names = f" -s {option.letter}" * bool(option.letter) + f" -l {option.name}" * bool(option.name)
    text = option.description.replace("'", "\\'")
    return f"complete -c redbucket -n '{condition}'{names}{kind} -d '{text}'"


def fish(table, common, own):
    lines = [fish_option(option, "not __redbucket_behind") for option in common]
    for name, options in own.items():
        text = table.commands[name].replace("'", "\\'")
        lines.append(f"complete -c redbucket -n '__redbucket_is none' -a {name} -d '{text}'")
        lines += [fish_option(option, f"__redbucket_is {name}") for option in options]
    behind = sorted({word for options in (common, *own.values()) for word in valued(options)})
    return template("redbucket.fish", HEAD=HEAD % "redbucket.fish.in", COMPLETIONS="\n".join(lines),
                    COMMANDS=" ".join(own), VALUED=" ".join(behind), STORES=" ".join(table.stores()))


def texts(command):
    """{name of a file: what is to be in it}"""
    table = tables.Tables(command)
    common = common_options(table)
    own = {name: options_of(table, name) for name in table.commands}
    return {"redbucket.bash": bash(table, common, own), "_redbucket": zsh(table, common, own),
            "redbucket.fish": fish(table, common, own)}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for name, text in texts(os.path.abspath(sys.argv[1])).items():
        with open(os.path.join(sys.argv[2], name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
