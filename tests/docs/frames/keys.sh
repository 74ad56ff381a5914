# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# What is in the store that docs/keys.md lists: two keys that have drained a little, and 14 that are empty.
set -- redbucket -l ip:0.5/s,burst=9 charge
"$@" --cost 6.3 ip=192.0.2.7
"$@" --cost 3 ip=2001:db8::1
for key in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
    "$@" --cost 0.001 "ip=$key"
done
