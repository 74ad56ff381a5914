# SPDX-License-Identifier: MIT
# Made by completion/make.py; the parts that stay are in redbucket.fish.in.

# The command that stands on the line, and "--" where that is the word behind which `run` has its own.
function __redbucket_words
    set -l skip no
    for word in (commandline -opc)[2..]
        if test $skip = yes
            set skip no
            continue
        end
        switch $word
            case --
                echo -- --
                return
            case --config --cost --format --frames --interval --key --keys --limit --max --output --pace --prefix --reorder --rows --seconds --store --suggest --threads --try --zone -c -l -o -s
                set skip yes
            case '-*'
                continue
            case '*'
                echo -- $word
        end
    end
end

function __redbucket_is
    set -l words (__redbucket_words)
    if test "$argv[1]" = none
        test (count $words) -eq 0
        return
    end
    test "$words[1]" = "$argv[1]"; and not contains -- -- $words
end

# Behind the "--" of `run` stands somebody else's command line.
function __redbucket_behind
    set -l words (__redbucket_words)
    test "$words[1]" = run; and contains -- -- $words
end

function __redbucket_behind_complete
    set -l words (commandline -opc)
    set -l at (contains -i -- -- $words)
    complete -C (string join ' ' -- $words[(math $at + 1)..] (commandline -ct))
end

# Names of limits, from -l on the line and from the configuration in this folder, each with a "=".
function __redbucket_limits
    set -l config redbucket.conf
    set -q REDBUCKET_CONFIG; and set config $REDBUCKET_CONFIG
    set -l last ''
    for word in (commandline -opc)
        switch $last
            case -l --limit
                echo (string split -m 1 : -- $word)[1]=
            case -c --config
                set config $word
        end
        set last $word
    end
    test -r $config; and string replace -rf '^\s*limit\s+([A-Za-z0-9_.-]+).*' '$1=' <$config
end

function __redbucket_stores
    printf '%s\n' memory: shm: redis:// rediss:// unix:// redis+sentinel:// redis+cluster://
end

complete -c redbucket -f
complete -c redbucket -n '__redbucket_behind' -a '(__redbucket_behind_complete)'
complete -c redbucket -n '__redbucket_is replay' -F
for name in request peek refund charge reset run keys
    complete -c redbucket -n "__redbucket_is $name" -a '(__redbucket_limits)'
end
complete -c redbucket -n 'not __redbucket_behind' -s c -l config -r -F -d 'the configuration'
complete -c redbucket -n 'not __redbucket_behind' -s s -l store -x -a '(__redbucket_stores)' -d 'where the state lives'
complete -c redbucket -n 'not __redbucket_behind' -s l -l limit -x -d 'add a limit, NAME:RATE,burst=N,delay=N'
complete -c redbucket -n 'not __redbucket_behind' -l json -d 'one JSON object a line'
complete -c redbucket -n 'not __redbucket_behind' -s h -l help -d 'what there is'
complete -c redbucket -n 'not __redbucket_behind' -l version -d 'the version'
complete -c redbucket -n '__redbucket_is none' -a request -d 'ask for a permit'
complete -c redbucket -n '__redbucket_is request' -l cost -x -d 'how much to take'
complete -c redbucket -n '__redbucket_is request' -l wait -d 'sleep a delay out'
complete -c redbucket -n '__redbucket_is none' -a peek -d 'say what a request would be answered, and take nothing'
complete -c redbucket -n '__redbucket_is peek' -l cost -x -d 'how much the request would take'
complete -c redbucket -n '__redbucket_is none' -a refund -d 'give back what was taken'
complete -c redbucket -n '__redbucket_is refund' -l cost -x -d 'how much to give back'
complete -c redbucket -n '__redbucket_is none' -a charge -d 'take without asking, for work done already'
complete -c redbucket -n '__redbucket_is charge' -l cost -x -d 'how much to take'
complete -c redbucket -n '__redbucket_is none' -a reset -d 'forget what was taken'
complete -c redbucket -n '__redbucket_is reset' -l cost -x -d 'has no effect'
complete -c redbucket -n '__redbucket_is none' -a run -d 'run a command once it has a permit'
complete -c redbucket -n '__redbucket_is run' -l cost -x -d 'how much to take'
complete -c redbucket -n '__redbucket_is run' -l wait -d 'ask again after a rejection'
complete -c redbucket -n '__redbucket_is none' -a replay -d 'what these limits would have done to recorded traffic'
complete -c redbucket -n '__redbucket_is replay' -l format -x -a 'auto combined common jsonl' -d 'how a line is to be read'
complete -c redbucket -n '__redbucket_is replay' -l key -x -a '(__redbucket_limits)' -d 'what a line counts by under this limit'
complete -c redbucket -n '__redbucket_is replay' -l output -x -a 'summary jsonl html' -d 'what to print'
complete -c redbucket -n '__redbucket_is replay' -l reorder -x -d 'put lines in order of time within so many seconds'
complete -c redbucket -n '__redbucket_is replay' -l suggest -x -d 'suggest limits that leave this share of requests untouched'
complete -c redbucket -n '__redbucket_is replay' -l try -x -d 'begins a set of limits'
complete -c redbucket -n '__redbucket_is replay' -s o -r -F -d 'where the page goes'
complete -c redbucket -n '__redbucket_is none' -a check -d 'show the configuration, and whether the store is there'
complete -c redbucket -n '__redbucket_is check' -l metrics -d 'print what the store has counted as OpenMetrics text'
complete -c redbucket -n '__redbucket_is none' -a keys -d 'list the buckets of a store, or look at some'
complete -c redbucket -n '__redbucket_is keys' -l all -d 'buckets that have drained by now'
complete -c redbucket -n '__redbucket_is keys' -l zone -x -d 'only buckets of this zone'
complete -c redbucket -n '__redbucket_is keys' -l prefix -x -d 'only keys that begin so'
complete -c redbucket -n '__redbucket_is keys' -l max -x -d 'stop after so many'
complete -c redbucket -n '__redbucket_is keys' -l pace -x -d 'at most so many steps a second'
complete -c redbucket -n '__redbucket_is none' -a top -d 'watch the hottest keys of a store, and how full it is'
complete -c redbucket -n '__redbucket_is top' -l once -d 'print one frame'
complete -c redbucket -n '__redbucket_is top' -l frames -x -d 'end after so many frames'
complete -c redbucket -n '__redbucket_is top' -l interval -x -d 'between two passes'
complete -c redbucket -n '__redbucket_is top' -l rows -x -d 'so many keys'
complete -c redbucket -n '__redbucket_is top' -l level -d 'the fullest keys first'
complete -c redbucket -n '__redbucket_is top' -l zone -x -d 'only buckets of this zone'
complete -c redbucket -n '__redbucket_is top' -l pace -x -d 'at most so many steps a second'
complete -c redbucket -n '__redbucket_is none' -a bench -d 'measure decisions a second and latency of this store, here'
complete -c redbucket -n '__redbucket_is bench' -l seconds -x -d 'for how long'
complete -c redbucket -n '__redbucket_is bench' -l threads -x -d 'from how many threads'
complete -c redbucket -n '__redbucket_is bench' -l keys -x -d 'over how many keys'
complete -c redbucket -n '__redbucket_is bench' -l metrics -d 'print what the store has counted meanwhile as OpenMetrics text'
