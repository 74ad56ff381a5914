# SPDX-License-Identifier: MIT
"""Prints the Lua script of the Python package redbucket 0.1.0 for one limit named "user".

Run by report.py in an environment that has the package; the text is never kept.
"""

import redbucket


class Recorder:
    """Stands in for the client: keeps what would be registered."""

    def __init__(self):
        self.scripts = []

    def register_script(self, text):
        self.scripts.append(text)

    @staticmethod
    def info(section=None):
        return {"redis_version": "7.0.0", "section": section}


def main():
    recorder = Recorder()
    limiter = redbucket.RedisScriptRateLimiter(recorder)
    zone = redbucket.Zone("user", rate=1e6, expiry=60)
    limiter.configure(user=redbucket.RateLimit(zone, burst=1e9, delay=0))
    print(recorder.scripts[0])


if __name__ == "__main__":
    main()
