# SPDX-License-Identifier: LGPL-3.0-or-later
# Completion of ESDM's tools in bash: options, names of containers, values of attributes. The files that are
# named after the tools set their options and source this one.

# The word under the cursor, colons and equals signs included, which bash parts words at.
_esdm_word() {
    local line=${COMP_LINE:0:COMP_POINT}
    line=${line##*[[:space:]]}
    line=${line#[\"\']}
    printf '%s' "$line"
}

# Names of one level below the folder of the word: folders end with a slash.
_esdm_names() {
    local word=$1 folder=
    case $word in */*) folder=${word%/*} ;; *) _esdm_views | _esdm_starting_with "$word" ;; esac
    esdm-ls --depth 1 -- ${folder:+"$folder"} 2>/dev/null | while IFS= read -r name; do
        case $name in "$word"*) printf '%s\n' "$name" ;; esac
    done
}

# Views as folders: "cmip6:/".
_esdm_views() {
    esdm-ls --views 2>/dev/null | sed 's|:.*|:/|'
}

# Values of an attribute, as JSON has them.
_esdm_values() {
    esdm-find --facets "$1" --json "exists $1" 2>/dev/null |
        sed -n 's/^ \{6\}"\(.*\)": [0-9]*,\{0,1\}$/\1/p'
}

# What bash is to put in place of the last part of the word: without what stands before its last colon or equals sign.
_esdm_reply() {
    local word=$1 before
    before=${word%"${word##*[:=]}"}
    case $COMP_WORDBREAKS in *:*) ;; *) before= ;; esac
    COMPREPLY=()
    while IFS= read -r found; do
        [ -z "$found" ] || COMPREPLY+=("${found#"$before"}")
    done
    # A folder or a scheme goes on; anything else is a word.
    if [ ${#COMPREPLY[@]} -eq 1 ]; then
        case ${COMPREPLY[0]} in */ | *=) ;; *) COMPREPLY[0]+=' ' ;; esac
    fi
}

_esdm_starting_with() {
    local word=$1 candidate
    while IFS= read -r candidate; do
        case $candidate in "$word"*) printf '%s\n' "$candidate" ;; esac
    done
}

# _esdm_complete_for TOOL: the options are in _esdm_options_TOOL.
_esdm_complete_for() {
    local tool=$1 word variable=_esdm_options_${1//-/_}
    word=$(_esdm_word)
    case $word in
    --*=*) # the value of an option: a file
        _esdm_reply "$word" < <(compgen -f -- "${word#*=}" | sed "s|^|${word%%=*}=|")
        return
        ;;
    -*)
        _esdm_reply "$word" < <(printf '%s\n' ${!variable} | _esdm_starting_with "$word")
        return
        ;;
    esdm://*)
        _esdm_reply "$word" < <(_esdm_names "${word#esdm://}" | sed 's|^|esdm://|')
        return
        ;;
    esac
    case $tool in
    esdm-ls | esdm-stat | esdm-rm | esdm-mv | esdm-attr | esdm-log | esdm-restore | esdm-reduce)
        _esdm_reply "$word" < <(_esdm_names "$word")
        ;;
    esdm-find)
        case $word in
        [A-Za-z_:]*=*)
            _esdm_reply "$word" < <(_esdm_values "${word%%=*}" | sed "s|^|${word%%=*}=|" | _esdm_starting_with "$word")
            ;;
        esac
        ;;
    esdm-run)
        if [ "$COMP_CWORD" -eq 1 ]; then
            _esdm_reply "$word" < <(compgen -c -- "$word" | sort -u)
        else
            _esdm_reply "$word" < <(compgen -f -- "$word"; _esdm_starting_with "$word" <<<esdm://)
        fi
        ;;
    *)
        _esdm_reply "$word" < <(
            compgen -f -- "$word" | while IFS= read -r file; do
                [ -d "$file" ] && file=$file/
                printf '%s\n' "$file"
            done
            _esdm_starting_with "$word" <<<esdm://
        )
        ;;
    esac
}

_esdm_complete() {
    _esdm_complete_for "${1##*/}"
}

# `esdm COMMAND …` completes as `esdm-COMMAND …`.
_esdm_complete_front() {
    local word
    if [ "$COMP_CWORD" -eq 1 ]; then
        word=$(_esdm_word)
        _esdm_reply "$word" < <(esdm --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p' | _esdm_starting_with "$word")
        return
    fi
    local file=$_esdm_folder/esdm-${COMP_WORDS[1]}
    [ ! -r "$file" ] || . "$file"
    COMP_CWORD=$((COMP_CWORD - 1))
    _esdm_complete_for "esdm-${COMP_WORDS[1]}"
}
