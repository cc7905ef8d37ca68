#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# A program that was compiled against the headers of each version of tests/unit/abi, as the history has them, runs
# with the library of this one: same values, and nothing is written beyond the structures that it allocates.
. "$ESDM_SOURCE/tests/support/site.sh"

git -C "$ESDM_SOURCE" rev-parse HEAD >/dev/null 2>&1 || skip "there is no history of ESDM: earlier headers are not known"
[ -z "${ESDM_SANITIZE:-}" ] || skip "a program without a sanitizer cannot load a library with one"
count=0
for file in "$ESDM_SOURCE"/tests/unit/abi/*.txt; do
    case $file in *-old.txt) continue ;; esac
    version=$(basename "$file" .txt)
    # The file holds what the headers of the commit say that wrote it.
    commit=$(git -C "$ESDM_SOURCE" log -1 --format=%H -- "$file")
    [ -n "$commit" ] || continue # it is written anew in this tree
    mkdir "$version"
    git -C "$ESDM_SOURCE" archive "$commit" src/include/esdm | tar -x -C "$version"
    cc -Wall -Werror -I "$version/src/include" "$ESDM_SOURCE/tests/integration/earlier_program.c" -o "$version/program" \
        "$ESDM_BUILD/libesdm.so" "-Wl,-rpath,$ESDM_BUILD" || fail "$version ($commit): it does not compile"
    said=$("$version/program") || fail "$version, headers of $commit: $said"
    [ "$said" = "as it was" ] || fail "$version: $said"
    esdm-ls | grep -qx 'old.nc' || fail "$version: ESDM was not in the path"
    esdm-rm --for-good old.nc
    echo "$version: headers of $commit"
    count=$((count + 1))
done
[ $count -gt 0 ] || skip "no file of tests/unit/abi is in the history"
