# SPDX-License-Identifier: MIT
"""Many tasks that together keep to somebody else's limits.

    python3 polite.py [STORE]

A host is asked 50 times a second at most, and a task waits for its turn without keeping the others
from theirs. With STORE on a server, such as redis://localhost, all programs that use it keep to the
limits together. Nobody waits longer than ten seconds.
"""

import asyncio
import sys
import time

from redbucket import RateLimit, Rejected, Zone
from redbucket.aio import AsyncRateLimiter


async def fetch(limiter, host, page):
    try:
        async with limiter.permit(host=host, timeout=10) as permit:
            return f"{host}/{page} after {permit.waited:.1f} s"  # here would be the request
    except Rejected as rejected:
        return f"{host}/{page}: {rejected}"


async def main(store="memory:"):
    begun = time.monotonic()
    async with AsyncRateLimiter(store) as limiter:
        limiter.configure(host=RateLimit(Zone("host", rate=50), delay=10))
        pages = [fetch(limiter, host, page) for host in ("www.example.org", "www.example.com")
                 for page in range(30)]
        for line in await asyncio.gather(*pages):
            print(line)
    print(f"{time.monotonic() - begun:.1f} s in all")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
