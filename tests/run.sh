#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Installs what is missing, builds ESDM and runs its tests. One command for a fresh Debian 12.
#
#   tests/run.sh                       what each commit is tested with, in about 12 minutes on 2 cores
#   tests/run.sh --quick               everything, with smaller inputs
#   tests/run.sh --long                everything: larger inputs, longer sweeps, more sites and versions
#   tests/run.sh --sanitize address,undefined    built with sanitizers, without the tests "plain"
#   tests/run.sh --sanitize thread               the tests "threads" alone
#                                      Of the tests "drawn" a sanitized run and the first form take one half
#                                      each, drawn by the commit: .ci/run has all of them.
#   tests/run.sh --fuzz SECONDS        fuzzes each target and NetCDF calls that long, nothing else
#   tests/run.sh --tidy                clang-tidy with checks that take minutes, and nothing else
#
# More options: --only REGEX (ctest -R), --whole (all that are drawn from; --quick and --long have
# them, too), --all (with --sanitize: all tests), --no-install, --build-alone (no tests),
# --build FOLDER, --minutes N (tests end after N minutes: those that did not run count as failed).
# Real data is looked for in $ESDM_TEST_DATA, else ../shared/data beside the project; where it is
# absent, tests/support/make_data.py makes some like it. The results are also in BUILD/tests.xml
# (JUnit), processors' times in BUILD/times.txt. Ends with the tests that took longest and ctest's own summary.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD

size=default sanitize= fuzz= tidy=no install=yes build= only= all=no whole=no minutes= alone=no
usage() { sed -n '3,20s/^# \{0,1\}//p' "$source/tests/run.sh"; }
while [ $# -gt 0 ]; do
    case $1 in
    --quick) size=quick ;;
    --long) size=long ;;
    --sanitize) sanitize=${2:?--sanitize needs address,undefined or thread} && shift ;;
    --fuzz) fuzz=${2:?--fuzz needs seconds} && shift ;;
    --tidy) tidy=yes ;;
    --no-install) install=no ;;
    --build) build=${2:?--build needs a folder} && shift ;;
    --only) only=${2:?--only needs a regular expression} && shift ;;
    --all) all=yes ;;
    --build-alone) alone=yes ;;
    --whole) whole=yes ;;
    --minutes) minutes=${2:?--minutes needs a number} && shift ;;
    -h | --help) usage && exit 0 ;;
    *) echo "run.sh: unknown option '$1' (see --help)" >&2 && exit 2 ;;
    esac
    shift
done
jobs=$(nproc)
step() { printf '\n== %s (%d min %02d s)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

if [ $install = yes ]; then
    step "packages"
    tools/install-deps.sh test
fi
# With the packages above MPI tests have all they need: they fail where they would be skipped.
if command -v dpkg-query >/dev/null && dpkg-query -W libnetcdf-mpi-dev mpich >/dev/null 2>&1; then
    export ESDM_TEST_MPI=${ESDM_TEST_MPI:-required}
fi
export ESDM_TEST_DATA=${ESDM_TEST_DATA:-$(realpath -m "$source/../shared/data")}
export ESDM_TEST_SIZE=$size
# Of many cases a test draws some: with each commit others, the same whenever this commit is tested.
if [ -z "${ESDM_TEST_SEED:-}" ]; then
    seed=$(git rev-parse --short=7 HEAD 2>/dev/null | cut -c1-7) || seed=
    export ESDM_TEST_SEED=$((16#${seed:-$(date +%y%j)}))
fi
# ASan takes the 16 bytes before a block of thread-local memory of a loaded library for a header of
# glibc, which it is no more; where such a block begins a page, the search for leaks then reads wild
# addresses ("Tracer caught signal 11"). Without the interceptor such blocks are found as any other.
# Undefined behaviour is a trap there (cmake/EsdmBuild.cmake), told with its stack.
export ASAN_OPTIONS=${ASAN_OPTIONS:-strict_string_checks=1:detect_stack_use_after_return=1:intercept_tls_get_addr=0:handle_sigill=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1} # fuzz targets have its texts
races=$source/tests/support/races.txt
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1:suppressions=$races}

# numpy's OpenBLAS starts a thread for each processor in each program that imports it; no test has it compute.
export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}

# A compiler's cache finds what a clone in another folder compiled: paths count from the project.
# What it has not got is compiled without a preprocessor's run before: that is a fifth of a compilation, and most of
# what continuous integration compiles is new to it. What it has got it finds by the files that were read.
export CCACHE_BASEDIR=$source CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1

# configure FOLDER [CMAKE OPTION…]
configure() {
    local launcher=()
    if command -v ccache >/dev/null; then
        launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    fi
    cmake -S "$source" -B "$1" -G Ninja -DESDM_WERROR=ON "${launcher[@]}" "${@:2}" >"$source/$1.log" 2>&1 ||
        { cat "$source/$1.log" && exit 1; }
    rm -f "$source/$1.log"
}

# What is built here is built to be tested once: stacks need names and lines alone, which is compiled in less
# time and a quarter of the bytes to link; and gold links in half the time of ld.
gold=
if command -v ld.gold >/dev/null; then
    gold=-fuse-ld=gold
fi
linked=(-D{CMAKE_EXE,CMAKE_SHARED,CMAKE_MODULE}_LINKER_FLAGS="${LDFLAGS:-} $gold")
lines_alone=(-DCMAKE_C_FLAGS_RELWITHDEBINFO="-O2 -g1 -DNDEBUG")
# Sanitizers at -O2 take 1.5 times as long to compile, and the tests wait for other things.
less_optimised=(-DCMAKE_C_FLAGS_RELWITHDEBINFO="-O1 -g1 -DNDEBUG -Wno-format-truncation")

if [ -n "$fuzz" ]; then
    step "fuzzing, $fuzz s a target"
    build=${build:-build-fuzz}
    configure "$build" -DCMAKE_C_COMPILER=clang-14 -DESDM_FUZZ=ON \
        -DESDM_SANITIZE=fuzzer-no-link,address,undefined -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O1 -g1 -DNDEBUG"
    ninja -C "$build" fuzz-targets
    [ $alone = no ] || exit 0
    tests/fuzz/run.sh "$build" "$fuzz"
    # NetCDF programs need GCC's runtime: they are of the build of --sanitize address,undefined.
    step "fuzzing of NetCDF calls, $fuzz s"
    sanitized=build-test-address
    configure "$sanitized" -DESDM_SANITIZE=address,undefined "${less_optimised[@]}" "${linked[@]}"
    ninja -C "$sanitized" nc_fuzz
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 \
        "$sanitized/tests/netcdf/compare/fuzz/nc_fuzz" --seconds "$fuzz" \
        --seed "${NC_FUZZ_SEED:-1}"
    exit
fi

if [ $tidy = yes ]; then
    step "clang-tidy"
    build=${build:-build-tidy}
    configure "$build" -DCMAKE_C_COMPILER=clang-14
    ninja -C "$build" >"$build/ninja.log" || { tail -30 "$build/ninja.log" && exit 1; } # generated headers
    tests/unit/check_tidy.sh "$source" "$(realpath "$build")" all
    exit
fi

step "build${sanitize:+ with $sanitize}"
build=${build:-build-test${sanitize:+-${sanitize%%,*}}}
options=("${lines_alone[@]}" "${linked[@]}") chosen=() programs=all
if [ -n "$sanitize" ]; then
    options=(-DESDM_SANITIZE="$sanitize" "${less_optimised[@]}" "${linked[@]}")
    if [ $all = no ] && [ -z "$only" ]; then
        case $sanitize in
        thread) chosen=(-L '^threads$') programs=threads ;;
        *) chosen=(-LE '^plain$') programs=sanitizers ;;
        esac
    fi
fi
mkdir -p "$build"
exec 9>"$build/lock" # .ci/run builds ahead
flock 9
configure "$build" "${options[@]}" -DESDM_TEST_PROGRAMS=$programs
ninja -C "$build" -j "$jobs" 9>&-
exec 9>&-
[ $alone = no ] || exit 0

# Known times let ctest begin with the longest tests in a fresh build folder, too.
mkdir -p "$build/Testing/Temporary"
costs=$build/Testing/Temporary/CTestCostData.txt
[ -e "$costs" ] || cp tests/support/costs.txt "$costs"

step "tests, size $size, ESDM_TEST_SEED=$ESDM_TEST_SEED${chosen:+, ${chosen[*]}}"
# Of the tests "drawn" a sanitizer's short form and the default form take one half each.
half=
if [ $whole = no ] && [ $all = no ] && [ -z "$only" ]; then
    case $size,$sanitize in
    long,*) ;;
    *,?*) half=drawn ;;
    default,) half=--others ;;
    esac
fi
if [ -n "$half" ]; then
    left_out=$(tests/support/drawn.py ${half#drawn} "$ESDM_TEST_SEED" tests/support/costs.txt \
        ctest --test-dir "$build" ${chosen[@]+"${chosen[@]}"})
    if [ -n "$left_out" ]; then
        echo "Left out by the draw of this commit (--whole has them):"
        paste -sd' ' <<<"$left_out" | fold -s -w 120
        chosen+=(-E "^($(sed 's/\./\\./g' <<<"$left_out" | paste -sd'|'))\$")
    fi
fi
if [ -n "$minutes" ]; then
    # After this time ctest starts no test, ends those that run, and counts both as failed.
    left=$((minutes * 60 - SECONDS))
    if [ $left -lt 60 ]; then
        echo "run.sh: the $minutes minutes are over before the tests begin" >&2
        exit 1
    fi
    chosen+=(--stop-time "$(date -d "+$left seconds" '+%H:%M:%S')")
fi
results=$PWD/$build/tests.xml
[ "${build#/}" = "$build" ] || results=$build/tests.xml
rm -f "$results"
# More than half of their time tests wait for servers, ranks, clocks or the disk: seven keep two cores busy.
tests/support/summary.py "$results" ctest --test-dir "$build" -j $((7 * jobs / 2)) \
    --output-on-failure --no-tests=error ${only:+-R "$only"} "${chosen[@]}" --output-junit "$results"
