# Completion of cdacq for bash. All of it comes from the tool: see src/cli/complete.h.
_cdacq()
{
    local current=${COMP_WORDS[COMP_CWORD]} line word adds=words
    local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=()
    while IFS= read -r line; do
        word=${line%%$'\t'*}
        if [[ -n $word ]]; then
            COMPREPLY+=("${word%/}")
        else
            adds=${line#*$'\t'}
        fi
    done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete "${words[@]}" 2>/dev/null)
    [[ $current == = ]] && current=
    case $adds in
    files) while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current") ;;
    folders) while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -d -- "$current") ;;
    esac
    # Names are quoted, and folders get a slash.
    compopt -o filenames 2>/dev/null
}
complete -F _cdacq cdacq
