# bash completion of invert(1): commands, options, formats, files, and ids of jobs.
# shellcheck shell=bash

# Ids of jobs, where a server answers quickly.
_invert_ids() {
    invert list --quiet --limit 50 --timeout 2s 2>/dev/null | cut -d ' ' -f 1
}

_invert() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} choices=
    local command=${COMP_WORDS[1]}
    local common='--server --token-file --cacert --cert --key --timeout --retry-max --json --quiet
        --help --version'
    COMPREPLY=()
    case $before in
    --to | -f | --from | -F)
        choices='npy npz json mtx csv'
        ;;
    --status | -S)
        choices='accepted running successful failed'
        ;;
    --method | -m)
        choices='auto lu lu_factor tridiagonal ism iterative gauss_jordan'
        ;;
    --output | -o | --token-file | -t | --cacert | -c | --cert | -C | --key | -k)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    --option | -p | --idempotency-key | -i | --direct-max | -d | --since | -N | --limit | -n | \
        --server | -s | --timeout | -T | --retry-max | -r)
        return
        ;;
    *)
        case $word:$command in
        -*:list) choices="--status --since --limit $common" ;;
        -*:fetch) choices="--output --to $common" ;;
        -*:status | -*:wait | -*:cancel) choices=$common ;;
        -*) choices="--output --to --from --method --option --async --idempotency-key --direct-max
            $common" ;;
        *:list) return ;;
        *:status | *:wait | *:cancel | *:fetch)
            [ "$COMP_CWORD" -eq 1 ] || choices=$(_invert_ids)
            ;;
        esac
        if [ "$COMP_CWORD" -eq 1 ] && [ "${word#-}" = "$word" ]; then
            choices='status wait fetch cancel list'
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
    if [ -z "$choices" ] || { [ "$COMP_CWORD" -eq 1 ] && [ "${word#-}" = "$word" ]; }; then
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word")
    fi
}

complete -o filenames -F _invert invert
