# SPDX-License-Identifier: MIT
"""A WSGI application with limits in front of it, under the standard library's server.

    python3 limited_wsgi.py [STORE [PORT]]

Each address may ask twice a second and five more at once, and the next two wait for their turn; who
sends a key has ten times that, under his key as well. What is left is told in header fields, and
whoever asks too often gets a 429 that says when to come back.
"""

import sys
from wsgiref.simple_server import make_server

from redbucket import RateLimit, Zone, from_url
from redbucket.wsgi import RateLimitMiddleware, client_address, header


def hello(environ, start_response):
    permit = environ["redbucket.response"]
    start_response("200 OK", [("Content-Type", "text/plain; charset=utf-8")])
    return [f"hello, {permit.remaining} left\n".encode()]


def limited(app, store):
    limiter = from_url(store)
    limiter.configure(ip=RateLimit(Zone("ip", rate=2), burst=5, delay=2),
                      key=RateLimit(Zone("key", rate=20), burst=50))
    return RateLimitMiddleware(app, limiter, {"ip": client_address, "key": header("X-Api-Key")})


def main(store="memory:", port="8000"):
    with make_server("127.0.0.1", int(port), limited(hello, store)) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
