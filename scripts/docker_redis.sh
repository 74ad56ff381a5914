#!/bin/sh
# SPDX-License-Identifier: MIT
#
# A Redis server in a container, for as long as a command runs or until it is stopped. Docker and
# Podman do; the first of the two that is here is taken, or what $CONTAINER_ENGINE names. The server
# is reached from this machine alone, by a port that the engine chooses.
#
# usage: scripts/docker_redis.sh [-t TAG | -i IMAGE] [-n NAME] [COMMAND [ARGUMENT...]]
#   -t TAG     of the image "redis"; "alpine" when not given
#   -i IMAGE   another image, "valkey/valkey:8" say
#   -n NAME    what the container is called; "redis" when not given
#   COMMAND    is run with REDIS_URL and REDIS_CONTAINER in its environment; when it ends, however
#              that is, the container is stopped, and the status is the command's
#
# Without a command the server stays, and what is printed makes those two variables in a shell:
#   eval "$(scripts/docker_redis.sh)"
#   ... "$REDIS_URL" ...
#   docker stop "$REDIS_CONTAINER"
set -eu

PORT=6379
TRIES=100 # a tenth of a second apart
USAGE="usage: $0 [-t TAG | -i IMAGE] [-n NAME] [COMMAND [ARGUMENT...]]"

tag=alpine
image=''
name=redis
container=''

# Standard output is for the shell that evaluates it.
say() {
    printf '%s\n' "docker_redis: $*" >&2
}

fail() {
    status=$1
    shift
    say "$@"
    exit "$status"
}

misused() {
    say "$1"
    printf '%s\n' "$USAGE" >&2
    exit 2
}

find_engine() {
    engine=${CONTAINER_ENGINE:-}
    [ -z "$engine" ] || return 0
    for engine in docker podman; do
        ! command -v "$engine" >/dev/null 2>&1 || return 0
    done
    fail 1 'neither docker nor podman is here'
}

# Podman looks short names up nowhere by itself.
image_of_tag() {
    case ${engine##*/} in
    podman*) printf 'docker.io/library/redis:%s' "$1" ;;
    *) printf 'redis:%s' "$1" ;;
    esac
}

# Called on every way out while the container is ours to stop.
stop() {
    status=$?
    trap - EXIT
    [ -z "$container" ] || "$engine" stop "$container" >/dev/null 2>&1 ||
        say "could not stop $container"
    exit "$status"
}

# Asked inside the container: before the server listens, an engine's port may take connections.
# Images of Valkey may have only a client of that name.
answers() {
    for client in redis-cli valkey-cli; do
        [ "$("$engine" exec "$container" "$client" ping 2>/dev/null)" != PONG ] || return 0
    done
    return 1
}

wait_for_server() {
    tries=$TRIES
    until answers; do
        tries=$((tries - 1))
        if [ "$tries" -eq 0 ]; then
            "$engine" logs "$container" 2>&1 | tail -n 5 >&2
            fail 1 'the server did not start'
        fi
        sleep 0.1
    done
}

# The engine may name an address of each family, a line each.
published_port() {
    place=$("$engine" port "$container" "$PORT" | sed -n 1p)
    case ${place##*:} in
    '' | *[!0-9]*) fail 1 "no port of $container is published" ;;
    *) printf '%s' "${place##*:}" ;;
    esac
}

# As one word of a shell, whatever is in it.
quoted() {
    printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"
}

find_engine_and_options() {
    while getopts ':ht:i:n:' option; do
        case $option in
        h)
            printf '%s\n' "$USAGE"
            exit 0
            ;;
        t) tag=$OPTARG image='' ;;
        i) image=$OPTARG ;;
        n) name=$OPTARG ;;
        :) misused "-$OPTARG takes an argument" ;;
        *) misused "no option -$OPTARG" ;;
        esac
    done
    find_engine
    [ -n "$image" ] || image=$(image_of_tag "$tag")
}

find_engine_and_options "$@"
shift $((OPTIND - 1))

trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
container=$("$engine" run --rm -d "-p127.0.0.1::$PORT" "--name=$name" "$image") ||
    fail 1 "$engine could not run $image as $name"
wait_for_server
port=$(published_port)
say "container $(printf '%.12s' "$container") serves on port $port"

REDIS_CONTAINER=$container
REDIS_URL=redis://localhost:$port
if [ $# -eq 0 ]; then
    trap - EXIT
    printf 'export REDIS_CONTAINER=%s\n' "$(quoted "$REDIS_CONTAINER")"
    printf 'export REDIS_URL=%s\n' "$(quoted "$REDIS_URL")"
else
    export REDIS_CONTAINER REDIS_URL
    "$@"
fi
