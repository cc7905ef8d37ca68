#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Stores of every released format version stay readable, whole, and can be written to.
. "$ESDM_SOURCE/tests/support/site.sh"

versions=0
for golden in "$ESDM_SOURCE"/tests/golden/*/; do
    store=$SITE_DIR/$(basename "$golden")
    mkdir "$store"
    tar -xJf "$golden/store.tar.xz" -C "$store"
    export ESDM_CONFIG=$store/site.json
    esdm-mkfs --check >check.log || fail "esdm-mkfs --check of $golden: $(cat check.log)"
    for container in $(esdm-ls); do
        client ncdump "esdm://$container" >got.cdl || fail "$golden: $container"
        diff "$golden/$(basename "$container" .nc).cdl" got.cdl >difference.txt ||
            fail "$golden: $container reads otherwise: $(head -20 difference.txt)"
    done
    [ "$(esdm-ls | wc -l)" = "$(ls "$golden"/*.cdl | wc -l)" ] || fail "$golden: $(esdm-ls)"
    client ncatted -h -a now,global,c,c,written esdm://folder/classic.nc || fail "$golden: writing"
    client ncdump -h esdm://folder/classic.nc | grep -q ':now = "written"' || fail "$golden: written"
    versions=$((versions + 1))
done
[ $versions -gt 0 ] || fail "no stores found"
