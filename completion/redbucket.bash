# SPDX-License-Identifier: MIT
# Made by completion/make.py; the parts that stay are in redbucket.bash.in.
# shellcheck shell=bash

# The command that stands on the line, or nothing; also whether "--" stood behind `run`.
_redbucket_command() {
    local i
    command='' behind=''
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        --)
            [[ $command != run ]] || behind=$((i + 1))
            return
            ;;
        -c | --config | -s | --store | -l | --limit | --cost | --format | --frames | --interval | --key | --keys | --max | --output | --pace | --prefix | --reorder | --rows | --seconds | --suggest | --threads | --try | --zone | -o)
            i=$((i + 1))
            [[ ${COMP_WORDS[i]} != '=' ]] || i=$((i + 1))
            ;;
        -* | = | :) ;;
        *) [[ $command ]] || command=${COMP_WORDS[i]} ;;
        esac
    done
}

# Names of limits, from -l on the line and from the configuration in this folder, each with a "=".
_redbucket_limits() {
    local i config=${REDBUCKET_CONFIG:-redbucket.conf}
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -l | --limit) printf '%s=\n' "${COMP_WORDS[i + 1]%%:*}" ;;
        -c | --config) config=${COMP_WORDS[i + 1]} ;;
        esac
    done
    [[ ! -r $config ]] ||
        sed -n 's/^[[:space:]]*limit[[:space:]]\{1,\}\([A-Za-z0-9_.-]\{1,\}\).*/\1=/p' "$config"
}

_redbucket_options() {
    case $1 in
        request) words='--cost --wait' ;;
        peek) words='--cost' ;;
        refund) words='--cost' ;;
        charge) words='--cost' ;;
        reset) words='--cost' ;;
        run) words='--cost --wait' ;;
        replay) words='--format --key --output --reorder --suggest --try -o' ;;
        check) words='--metrics' ;;
        keys) words='--all --zone --prefix --max --pace' ;;
        top) words='--once --frames --interval --rows --level --zone --pace' ;;
        bench) words='--seconds --threads --keys --metrics' ;;
    *) words='request peek refund charge reset run replay check keys top bench' ;;
    esac
}

_redbucket_choices() {
    case $1 in
        'replay --format') words='auto combined common jsonl' ;;
        'replay --output') words='summary jsonl html' ;;
    *) words='' ;;
    esac
}

_redbucket() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local command behind words
    COMPREPLY=()
    _redbucket_command
    if [[ $behind ]]; then
        local kind=-f
        ((COMP_CWORD > behind)) || kind=-c
        mapfile -t COMPREPLY < <(compgen $kind -- "$current")
        return
    fi
    if [[ $current == '=' ]]; then
        current=''
    elif [[ $before == '=' ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    _redbucket_choices "$command $before"
    if [[ $words ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        return
    fi
    case $before in
    -c | --config | -o)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    -s | --store)
        compopt -o nospace 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -W 'memory: shm: redis:// rediss:// unix:// redis+sentinel:// redis+cluster://' -- "$current")
        return
        ;;
    --key)
        compopt -o nospace 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -W "$(_redbucket_limits)" -- "$current")
        return
        ;;
    -l | --limit | --cost | --format | --frames | --interval | --keys | --max | --output | --pace | --prefix | --reorder | --rows | --seconds | --suggest | --threads | --try | --zone) return ;;
    esac
    _redbucket_options "$command"
    if [[ $current == -* ]]; then
        [[ $command ]] || words=''
        mapfile -t COMPREPLY < <(compgen -W "$words -c --config -s --store -l --limit --json -h --help --version" -- "$current")
    elif [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    elif [[ $command == replay ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    else
        compopt -o nospace 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -W "$(_redbucket_limits)" -- "$current")
    fi
}

complete -F _redbucket redbucket
