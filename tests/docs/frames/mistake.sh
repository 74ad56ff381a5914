# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# A configuration with a mistake in line 7.
printf 'limit user {\n    rate = 5/s\n    burst = 10\n}\n\nlimit ip {\n    rate = 10q\n}\n' >redbucket.conf
