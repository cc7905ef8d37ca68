#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
# test_esdm_run.sh ESDM_RUN FOLDER_OF_THE_PLUG_IN C_COMPILER
set -u
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cp "$1" "$2/libesdm-netcdf.so" "$2/libesdm-netcdf-core.so" "$tmp" || exit 1
run=$tmp/esdm-run
cc=$3
cd "$tmp" || exit 1
mkdir store
export FAKE_CORE_STORE="$tmp/store" FAKE_CORE_LOG="$tmp/log"
unset LD_PRELOAD ESDM_CONFIG ESDM_DEBUG
failures=0

# check NAME WANTED_STATUS PATTERN COMMAND…: exit status, and a pattern in what it prints.
check() {
    name=$1 wanted=$2 pattern=$3
    shift 3
    "$@" >out 2>&1
    status=$?
    if [ $status -ne "$wanted" ] || { [ -n "$pattern" ] && ! grep -q -e "$pattern" out; }; then
        echo "FAILED $name: status $status, wanted $wanted, and '$pattern' in:"
        cat out
        failures=$((failures + 1))
    fi
}

check help 0 'EXIT STATUS' "$run" --help
check version 0 '^esdm-run (ESDM) [0-9]' "$run" --version
check no_program 125 'no program given' "$run"
check bad_option 125 'esdm-run --help' "$run" --nonsense ls
check not_found 127 'no such program' "$run" no-such-program-here
check not_found_path 127 'no such program' "$run" ./nope
touch plain
check not_executable 126 'not executable' "$run" ./plain
check folder 126 'is a folder' "$run" ./store
check exit_status 7 '' "$run" -q sh -c 'exit 7'
check arguments 0 '^a b|-v|$' "$run" sh -c 'printf "%s|" "$@"' x 'a b' -v
touch store/a
check netcdf_program 0 '^classic\|^netCDF-4' "$run" ncdump -k esdm://a
check keeps_preload 0 "^/nonexistent.so:$tmp/libesdm-netcdf.so\$" \
    env LD_PRELOAD=/nonexistent.so "$run" -n sh
check preload_once 0 "^$tmp/libesdm-netcdf.so\$" env LD_PRELOAD="$tmp/libesdm-netcdf.so" "$run" -n sh
check verbose 0 'starting .*LD_PRELOAD=' "$run" -v true
check site_missing 125 "site configuration 'x.json': No such file" "$run" --site x.json true
echo '{}' >site.json
check site 0 "^$tmp/site.json\$" "$run" -q --site=site.json sh -c 'echo $ESDM_CONFIG'

cat >hello.c <<'END'
int main(void) { return 3; }
END
"$cc" -o dynamic hello.c
check no_netcdf 3 'warning: .*does not link the NetCDF' "$run" ./dynamic
check no_netcdf_quiet 3 '' "$run" -q ./dynamic
check no_netcdf_strict 126 'does not link the NetCDF' "$run" --strict ./dynamic
if "$cc" -static -o static hello.c 2>/dev/null; then
    check static 126 'cannot hook .*statically linked' "$run" ./static
fi
# Another machine and another class: the header of a real program, changed.
cp dynamic arm && printf '\267\000' | dd of=arm bs=1 seek=18 conv=notrunc 2>/dev/null
case $(uname -m) in
x86_64) check machine 126 'another kind of machine' "$run" ./arm ;;
esac
cp dynamic small && printf '\001' | dd of=small bs=1 seek=4 conv=notrunc 2>/dev/null
check class 126 '32-bit' "$run" ./small

printf '#!/bin/sh\nexit 5\n' >script && chmod +x script
check script 5 '' "$run" ./script
printf '#!/usr/bin/env -S no-such-interpreter -x\n' >broken && chmod +x broken
check script_interpreter 127 "first line of './broken'" "$run" ./broken
printf 'exit 6\n' >bare && chmod +x bare
check script_without_first_line 6 '' "$run" -q ./bare
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    cp dynamic privileged && chmod 4755 privileged && chmod 755 "$tmp"
    check setuid 126 'is setuid' setpriv --reuid=65534 --clear-groups "$run" "$tmp/privileged"
fi
mkdir 'with space' && cp esdm-run libesdm-netcdf*.so 'with space'
check space 125 'colon or a space' './with space/esdm-run' -q true
mkdir alone && cp esdm-run alone
PATH=$PATH check alone 125 'cannot find libesdm-netcdf.so\|colon' sh -c \
    'test ! -e /usr/local/lib/libesdm-netcdf.so || { echo colon; exit 125; }; ./alone/esdm-run true'
[ $failures -eq 0 ] && echo "all passed"
exit $failures
