# SPDX-License-Identifier: LGPL-3.0-or-later
# What the completions of ESDM's tools in fish have in common.

# Names of one level below the folder of the word; folders end with a slash.
function __esdm_names
    set -l word (commandline -ct)
    set -l before (string match -r '^esdm://' -- $word)
    set word (string replace -r '^esdm://' '' -- $word)
    set -l folder (string match -r '^(.*)/' -- $word)[2]
    esdm-ls --depth 1 -- $folder 2>/dev/null | string replace -r '^' "$before"
    if test -z "$folder"
        esdm-ls --views 2>/dev/null | string replace -r ':.*' ':/' | string replace -r '^' "$before"
    end
end

function __esdm_urls
    if string match -q 'esdm://*' -- (commandline -ct)
        __esdm_names
    else
        echo esdm://
    end
end

# NAME= is followed by the values of that attribute.
function __esdm_values
    set -l name (string match -r '^([^=]+)=' -- (commandline -ct))[2]
    if test -n "$name"
        esdm-find --facets $name --json "exists $name" 2>/dev/null |
            sed -n 's/^ \{6\}"\(.*\)": [0-9]*,\{0,1\}$/\1/p' | string replace -r '^' "$name="
    end
end

function __esdm_commands
    esdm --help | string match -r '^  [a-z]+ ' | string trim
end

# `esdm COMMAND …` completes as `esdm-COMMAND …`.
function __esdm_of_command
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    complete -C "esdm-$words[2] $words[3..-1] $word"
end
