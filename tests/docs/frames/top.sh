# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# The traffic that docs/keys.md watches, for some seconds: one key far above its limit that asks on and
# on, and two that keep to it.
redbucket -l ip:1 reset ip=192.0.2.7
redbucket -l ip:1 reset ip=2001:db8::1
set -- redbucket -l ip:5/s,burst=1000
"$@" charge --cost 3000 ip=192.0.2.2
"$@" charge --cost 100 ip=192.0.2.1
"$@" charge --cost 100 ip=192.0.2.3
# shellcheck disable=SC2016 # for the inner shell
timeout 30 sh -c 'while :; do
    "$@" charge --cost 3 ip=192.0.2.2
    "$@" request ip=192.0.2.3
    "$@" request ip=192.0.2.1
done' sh "$@" >/dev/null 2>&1 &
traffic=$!
trap 'kill "$traffic"; wait "$traffic"' EXIT
