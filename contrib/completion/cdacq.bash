# Completion of cdacq for bash. All of it comes from the tool: see src/cli/base/complete.h.

# Sets `words` to those of COMP_WORDS after the first, up to the cursor. Bash also breaks words at colons, which paths may
# have: what no blank separates is one word.
_cdacq_words()
{
    local rest=$COMP_LINE piece i joins=
    words=()
    for ((i = 0; i <= COMP_CWORD; i++)); do
        piece=${COMP_WORDS[i]}
        [[ $rest == [[:blank:]]* ]] && joins=
        rest=${rest#*"$piece"}
        if [[ $joins && (${words[-1]} == *: || $piece == :*) ]]; then
            words[-1]+=$piece
        else
            words+=("$piece")
        fi
        joins=yes
    done
    words=("${words[@]:1}")
}

_cdacq()
{
    local current line word adds=words before=
    local -a words
    _cdacq_words
    current=${words[-1]}
    # Bash replaces only what follows the last colon.
    [[ ${COMP_WORDS[COMP_CWORD]} != "$current" && $current == *:* ]] && before=${current%:*}:
    COMPREPLY=()
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        if [[ -n $word ]]; then
            [[ $before ]] || word=${word%/}
            COMPREPLY+=("${word#"$before"}")
        else
            adds=${line#*$'\t'}
        fi
    done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)
    [[ $current == = ]] && current=
    case $adds in
    files) while IFS= read -r line; do COMPREPLY+=("${line#"$before"}"); done < <(compgen -f -- "$current") ;;
    folders) while IFS= read -r line; do COMPREPLY+=("${line#"$before"}"); done < <(compgen -d -- "$current") ;;
    esac
    # Names are quoted, and folders get a slash, unless only the end of their path is here.
    compopt -o filenames 2>/dev/null
    [[ $before && ${COMPREPLY[0]} == */ ]] && compopt -o nospace 2>/dev/null
}
complete -F _cdacq cdacq
