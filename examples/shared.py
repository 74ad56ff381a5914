# SPDX-License-Identifier: MIT
"""Takes one permit from a server's limits, the same as shared.c does, and shares them with it.

    python3 shared.py [STORE]
"""

import sys

from redbucket import RateLimit, StoreError, Zone, from_url

try:
    with from_url(sys.argv[1] if len(sys.argv) > 1 else "redis://localhost") as limiter:
        limiter.configure(user=RateLimit(Zone("user", rate=0.1), burst=2),
                          ip=RateLimit(Zone("ip", rate=5), burst=20))
        response = limiter.request(user="alice", ip="192.0.2.7")
except (StoreError, ValueError) as error:
    sys.exit(f"Python: {error}")

if response.accepted:
    print(f"Python: accepted after {response.delay:.3f} s, {response.remaining} remaining")
else:
    print(f"Python: rejected, retry after {response.retry_after:.3f} s")
