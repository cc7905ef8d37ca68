#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# tests/fuzz/run.sh BUILD SECONDS: fuzzes each target that long, from generated seeds and what
# earlier runs in this build folder found. A finding stays in BUILD/fuzz/NAME.findings and fails.
set -euo pipefail
build=$(realpath "$1") seconds=$2
source=$(realpath "$(dirname "$0")/../..")

mkdir -p "$build/fuzz/seeds/site"
"$build/tests/fuzz/fuzz_seeds" "$build/fuzz/seeds"
cp "$source"/site-config/*.json "$source/tests/support/site.json" "$build/fuzz/seeds/site/"

fuzz() {
    name=${1##*/fuzz_}
    mkdir -p "$build/fuzz/$name" "$build/fuzz/$name.findings" "$build/fuzz/seeds/$name"
    if "$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$build/fuzz/$name.findings/" "$build/fuzz/$name" \
        "$build/fuzz/seeds/$name" >"$build/fuzz/$name.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/fuzz/$name.log")
        seeds=$(find "$build/fuzz/seeds/$name" -type f | wc -l)
        echo "fuzz $name: nothing found in ${seconds} s, $runs runs from $seeds seeds"
    else
        echo "fuzz $name: FAILED; the input is in $build/fuzz/$name.findings"
        grep -v '^#' "$build/fuzz/$name.log" | head -60
        return 1
    fi
}
export -f fuzz
export build seconds
find "$build/tests/fuzz" -maxdepth 1 -type f -executable -name 'fuzz_*' ! -name fuzz_seeds |
    sort | xargs -P "$(nproc)" -I{} bash -c 'fuzz {}'
