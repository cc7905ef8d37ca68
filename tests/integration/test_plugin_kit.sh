#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# A plug-in is built from what is installed alone, by pkg-config and by CMake, and stores data.
. "$ESDM_SOURCE/tests/support/site.sh"

prefix=$SITE_DIR/prefix
cmake --install "$ESDM_BUILD" --prefix "$prefix" >install.log || fail "$(cat install.log)"
flags=
[ -z "${ESDM_SANITIZE:-}" ] || flags="-fsanitize=${ESDM_SANITIZE%%,*}"

# The version is one number everywhere, and programs name the version of the functions that they use.
export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name esdm-plugin.pc)")
cat >version.c <<'C'
#include <stdio.h>

#include "esdm/esdm.h"

int
main(void)
{
    printf("%s\n", esdm_version());
    return esdm_version_number() != ESDM_VERSION_NUMBER;
}
C
cc $flags version.c -o version $(pkg-config --cflags --libs esdm) || fail "version.c"
[ "$(LD_LIBRARY_PATH=$(pkg-config --variable=libdir esdm) ./version)" = "$(pkg-config --modversion esdm)" ] ||
    fail "esdm_version()"
objdump -T version | grep -q 'ESDM_1.*esdm_version' || fail "no symbol version: $(objdump -T version)"

# kit NAME ID: the template's sources as a codec of somebody else.
kit() {
    mkdir "$1"
    sed "s/template/$1/g; s/\.id = 200/.id = $2/" "$ESDM_SOURCE/backends/codec/template/template.c" >"$1/$1.c"
}
kit shell 210
cc $flags -shared -fPIC -Wall -Werror shell/shell.c -o esdm-codec-shell.so \
    $(pkg-config --cflags --libs esdm-plugin) || fail "plug-in by pkg-config"

kit cmake 211
cat >cmake/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(plugin C)
find_package(esdm REQUIRED)
esdm_add_plugin(codec cmake cmake.c)
CMAKE
{ cmake -S cmake -B cmake/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" &&
    cmake --build cmake/build; } >cmake.log 2>&1 || fail "$(cat cmake.log)"

# Both export their entry alone, and data go through them: the installed tools use them.
export PATH=$prefix/bin:$PATH
seq 1 4000 | awk 'BEGIN { print "netcdf x { dimensions: n = 4000 ; variables: int v(n) ; data: v =" }
    { printf "%s%d", (NR > 1 ? ", " : ""), $1 / 100 } END { print " ; }" }' >x.cdl
ncgen -4 -o x.nc x.cdl
for name in shell cmake; do
    file=$(find . -name "esdm-codec-$name.so")
    exported=$(nm -D --defined-only "$file" | awk '{ print $3 }' | grep -v '^_\|^__' | tr '\n' ' ')
    [ "$exported" = "esdm_plugin_entry " ] || [ -n "$flags" ] || fail "$file exports $exported"
    python3 - "$name" <<'PYTHON'
import json, os, sys
site = json.load(open(os.environ["ESDM_CONFIG"]))
site.setdefault("engine", {}).update(codec=sys.argv[1], inline=0)
json.dump(site, open(f"{sys.argv[1]}.json", "w"))
PYTHON
    ESDM_PLUGIN_PATH=$PWD/$(dirname "$file")
    export ESDM_PLUGIN_PATH
    esdm-cp --config "$name.json" x.nc "esdm://$name.nc" || fail "stored by $name"
    esdm-stat --config "$name.json" --fragments "$name.nc" >stat.txt || fail "esdm-stat"
    grep -q "$name" stat.txt || fail "not stored by $name: $(cat stat.txt)"
    esdm-cp --config "$name.json" "esdm://$name.nc" back.nc && ncdump x.nc >x.txt &&
        ncdump -n x back.nc | diff - x.txt || fail "read by $name"
    rm back.nc
    # Without the plug-in the data are not read wrongly.
    ESDM_PLUGIN_PATH=/nowhere expect_fail esdm-cp --config "$SITE_DIR/site.json" "esdm://$name.nc" lost.nc
done

# A data target of somebody else: the sources of posix under another name, outside of the project, with a site of its own.
mkdir outside
cp "$ESDM_SOURCE"/backends/data/posix/*.[ch] outside
sed -i 's/esdm_data_posix/esdm_data_outside/g; s/"posix"/"outside"/g' outside/*.[ch]
cc $flags -shared -fPIC -Wall -Werror outside/*.c -o outside/esdm-data-outside.so \
    $(pkg-config --cflags --libs esdm-plugin) || fail "data target by pkg-config"
cat >outside.json <<JSON
{"site": {"name": "outside"}, "metadata": {"plugin": "sqlite", "directory": "$PWD/outside-metadata"},
 "targets": [{"name": "theirs", "plugin": "outside", "directory": "$PWD/outside-packs"}], "engine": {"inline": 0}}
JSON
export ESDM_CONFIG=$PWD/outside.json ESDM_PLUGIN_PATH=$PWD/outside
esdm-mkfs >/dev/null || fail "esdm-mkfs on the target"
esdm-cp x.nc esdm://x.nc || fail "stored on the target"
[ "$(find outside-packs -type f -size +1k | wc -l)" -gt 0 ] || fail "no pack: $(find outside-packs)"
esdm-cp esdm://x.nc back.nc && ncdump x.nc >x.txt && ncdump -n x back.nc | diff - x.txt || fail "read from the target"
esdm-fsck --data >/dev/null || fail "esdm-fsck of the target"
ESDM_PLUGIN_PATH=/nowhere expect_fail esdm-cp esdm://x.nc lost.nc
esdm-rm --yes --for-good x.nc && esdm-gc --yes --age=0 >/dev/null
[ "$(find outside-packs -type f -size +1k | wc -l)" -eq 0 ] || fail "packs are left: $(find outside-packs)"
