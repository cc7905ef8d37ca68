#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# clang-tidy has nothing to say about the C sources, by the checks of .clang-tidy. Those that follow
# paths through functions take minutes and are left out: `tests/run.sh --tidy` has them, too. In the default
# size it looks at what the last 30 commits and what is not committed have changed, and at a twelfth of the other
# sources, another one with each commit ($ESDM_TEST_SEED).
# Usage: check_tidy.sh SOURCE_FOLDER BUILD_FOLDER [all]
cd "$1" || exit 1
if ! command -v clang-tidy-14 >/dev/null; then
    echo "SKIPPED: clang-tidy-14 is not installed"
    exit 77
fi
without=(--checks='-clang-analyzer-*')
[ "${3:-}" != all ] || without=()
# Sources that this build compiles: optional ones have headers that may not be here.
compiled() {
    /usr/bin/python3 - "$PWD" "$2" "${3:-}" <<'P'
import json, os, random, subprocess, sys
folder, build, which = sys.argv[1:]
with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
    names = {os.path.relpath(entry["file"], folder) for entry in json.load(f)}
names = sorted(name for name in names if name.split("/")[0] in ("src", "backends", "netcdf-plugin", "tools")
               and "/template/" not in name and name.endswith(".c"))
if which != "all" and os.environ.get("ESDM_TEST_SIZE", "default") != "long":
    seed = random.Random(int(os.environ.get("ESDM_TEST_SEED", "1")))
    drawn = set(seed.sample(names, (len(names) + 11) // 12))
    for command in (["log", "-30", "--name-only", "--format="], ["diff", "--name-only", "HEAD"],
                    ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", "-C", folder, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False)
        if done.returncode != 0: # no repository: nobody knows what is new
            drawn = set(names)
            break
        drawn.update(done.stdout.split())
    names = [name for name in names if name in drawn]
print("\n".join(names))
P
}
names=$(compiled "$@") && [ -n "$names" ] || { echo "no compile commands in $2" && exit 1; }
echo "$(wc -l <<<"$names") files"
xargs -P 2 -n 20 clang-tidy-14 --quiet "${without[@]}" -p "$2" <<<"$names" 2>&1 |
    { grep -vE '^([0-9]+ (warning|error).* generated\.|[0-9]+ warnings? treated|Error while processing)' || true; }
exit "${PIPESTATUS[0]}"
