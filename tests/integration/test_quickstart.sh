#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The quickstart on a build that is there: each step does what its heading says.
set -eu
. "$ESDM_SOURCE/tests/support/site.sh"
. "$ESDM_SOURCE/tests/support/expect.sh"
[ -z "${ESDM_SANITIZE:-}" ] || skip "programs would need the sanitizer's runtime"
for program in ncks cdo nccopy ncdump ncatted; do
    command -v $program >/dev/null || skip "$program is not installed"
done
/usr/bin/python3 -c 'import netCDF4, xarray' 2>/dev/null || skip "xarray is not installed"
expect 0 "$ESDM_SOURCE/tools/quickstart.sh" --built "$ESDM_BUILD" "$SITE_DIR/quick"
for text in "no difference: every dimension" "disk1: " "disk2: " "targets take turns" "largest error" \
    "demo/rounded.nc:/tas" "compressed.nc" "* 2 "; do
    says "$text"
done
# What it says in the end works: the same data in Python; the folder and the page have tests of their own.
for text in "esdm-mount seen" "http://localhost"; do
    says "$text"
done
sed -n "s/^ *\(export [A-Z].*\|python3 -c .*\)$/\1/p" <<<"$output" >said.sh
grep -q "^python3 -c" said.sh || fail "no word of Python in the end"
sed -i "s#^python3#/usr/bin/python3#" said.sh
bash -e said.sh >said.txt 2>&1 || fail "$(cat said.sh said.txt)"
grep -q "tas.*time, lat, lon" said.txt || fail "Python sees: $(cat said.txt)"
# The commands that it shows can be typed as they stand.
{ grep "^export" said.sh; echo "cd '$SITE_DIR/quick'"; sed -n 's/^\$ \(esdm-find .*\|esdm-run cdo -s ntime .*\|esdm-cp --accuracy .*\)$/\1/p' <<<"$output" |
    sed 's/^esdm-cp /&-f /'; } >typed.sh
[ "$(grep -c "^esdm-" typed.sh)" = 3 ] || fail "it shows other commands: $(cat typed.sh)"
bash -e typed.sh >typed.txt 2>&1 || fail "$(cat typed.sh typed.txt)"
grep -q "^demo/input.nc:/tas" typed.txt && grep -q "^146" typed.txt || fail "typed: $(cat typed.txt)"
# Both questions of README find something in it.
{ grep "^export" said.sh; sed -n '/^## Find/,/^## Use/{/^esdm-\(find\|run cdo\) /p}' "$ESDM_SOURCE/README.md"; } >asked.sh
[ "$(grep -c "^esdm-" asked.sh)" = 2 ] || fail "README asks otherwise: $(cat asked.sh)"
bash -e asked.sh >found.txt 2>&1 || fail "$(cat asked.sh found.txt)"
grep -q "demo/input.nc:/tas" found.txt && grep -q "2002-12-2" found.txt || fail "found: $(cat found.txt)"
expect 0 "$ESDM_SOURCE/tools/install-deps.sh" --list mpi
says libopenmpi-dev
says libmpich-dev
# A build of minutes tells how far it is.
folder=$PWD
eval "$(sed -n '/^progress()/,/^}/p' "$ESDM_SOURCE/tools/quickstart.sh")"
for step in $(seq 1 40); do echo "[$step/40] Building C object $step"; done | progress >steps.txt
[ "$(head -n 2 steps.txt | tr '\n' ';')" = "1 of 40 steps;4 of 40 steps;" ] || fail "progress: $(cat steps.txt)"
[ "$(tail -n 1 steps.txt)" = "40 of 40 steps" ] && [ "$(wc -l <steps.txt)" -le 11 ] || fail "progress: $(cat steps.txt)"
[ "$(wc -l <build.log)" = 40 ] || fail "the log of the build has $(wc -l <build.log) lines"
# What is left out, as its package is missing, is told where it is configured, with the package.
cat >pkg-config <<'END'
#!/bin/sh
case "$*" in *libpq*|*fuse3*) exit 1 ;; esac
exec /usr/bin/pkg-config "$@"
END
chmod +x pkg-config
expect 0 cmake -S "$ESDM_SOURCE" -B configured -DESDM_TESTS=OFF -DPKG_CONFIG_EXECUTABLE="$PWD/pkg-config"
for text in "is built with: " "Left out, since packages are missing" "install-deps.sh" \
    "metadata in PostgreSQL: libpq-dev" "mounted folders: libfuse3-dev"; do
    says "$text"
done
