#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Stores of every released format version stay readable, whole, and can be written to.
. "$ESDM_SOURCE/tests/support/site.sh"
. "$ESDM_SOURCE/tests/golden/shown.sh"

# What earlier versions show as statements of accuracy tells, and states nothing of copies.
copies_state_nothing()
{
    esdm-cp -q -f esdm://accuracy.nc accuracy.nc || fail "$golden: esdm-cp"
    ncdump -h accuracy.nc >header.txt
    grep -q 'stated:esdm_stored_accuracy = "significant_digits=3; mode=archive"' header.txt &&
        ! grep -q esdm_significant_digits header.txt || fail "$golden: $(cat header.txt)"
    client ncks -h -O esdm://accuracy.nc esdm://copy.nc 2>told.txt || fail "$golden: ncks: $(cat told.txt)"
    # later ones show nothing that a program could take
    [ "$(basename "$golden")" -gt 5 ] || grep -q "is not taken" told.txt || fail "$golden: $(cat told.txt)"
    ! esdm-stat --json --accuracy copy.nc | grep -q '"stated": "significant' || fail "$golden: the copy states it"
    # in the old one itself it stays in force
    client ncatted -h -a note,stated,c,c,new esdm://accuracy.nc || fail "$golden: ncatted"
    esdm-stat --accuracy accuracy.nc | grep -q 'significant_digits=3; mode=archive' || fail "$golden: gone"
    esdm-rm copy.nc
}

version() { sqlite3 "$store/metadata/catalogue.sqlite" "PRAGMA user_version${1:-}"; }

# The first change has upgraded the catalogue; one that is newer than ours is refused.
upgraded()
{
    [ "$(version)" = 5 ] || fail "$golden: the catalogue has format $(version)"
    version "=7"
    esdm-ls 2>told.txt && fail "$golden: a newer catalogue is read"
    grep -q "has format 7, newer than" told.txt || fail "$golden: $(cat told.txt)"
    esdm-gc --yes --age=0 2>/dev/null && fail "$golden: a newer catalogue is collected"
    for change in "esdm-mkfs --remove --yes" "esdm-mkfs" "esdm-fsck --repair" "esdm-rm --yes fields.nc"; do
        $change >told.txt 2>&1 && fail "$golden: $change of a newer catalogue"
        grep -q "has format 7, newer than" told.txt || fail "$golden: $change: $(cat told.txt)"
    done
    version "=5"
}

# What was stored is cloned; each side then goes without the other.
clones()
{
    esdm-cp --reflink esdm://fields.nc esdm://later.nc || fail "$golden: cloning"
    client ncdump esdm://later.nc | diff <(sed 's/^netcdf fields/netcdf later/' "$golden/fields.cdl") - ||
        fail "$golden: the clone differs"
    esdm-rm --yes --for-good fields.nc
    esdm-gc --yes --age=0
    client ncdump esdm://later.nc | diff <(sed 's/^netcdf fields/netcdf later/' "$golden/fields.cdl") - ||
        fail "$golden: the clone went with its source"
    [ ! -e "$golden/clone.cdl" ] || client ncdump esdm://clone.nc@tag:cited | tail -n +2 |
        diff <(tail -n +2 "$golden/clone.cdl") - || fail "$golden: the old clone went with its source"
    esdm-fsck --data >fsck.log || fail "$golden: $(cat fsck.log)"
}

versions=0
for golden in "$ESDM_SOURCE"/tests/golden/[0-9]*/; do
    store=$SITE_DIR/$(basename "$golden")
    mkdir "$store"
    tar -xJf "$golden/store.tar.xz" -C "$store"
    export ESDM_CONFIG=$store/site.json
    format=$(version)
    esdm-mkfs --check >check.log || fail "esdm-mkfs --check of $golden: $(cat check.log)"
    [ ! -e "$golden/nudged.cdl" ] ||
        python3 "$ESDM_SOURCE/tests/golden/blocks.py" "$store/packs" 6 "6 in parts" >blocks.txt 2>&1 ||
        fail "$golden: $(cat blocks.txt)"
    for container in $(esdm-ls); do
        shown "$container" >got.cdl || fail "$golden: $container"
        diff "$golden/$(basename "$container" .nc).cdl" got.cdl >difference.txt ||
            fail "$golden: $container reads otherwise: $(head -20 difference.txt)"
    done
    [ ! -e "$golden/layers.coarse" ] || client ncdump 'esdm://layers.nc?accuracy=1%' |
        diff "$golden/layers.coarse" - >difference.txt ||
        fail "$golden: a layer reads otherwise: $(head -20 difference.txt)"
    [ "$(esdm-ls | wc -l)" = "$(ls "$golden"/*.cdl | wc -l)" ] || fail "$golden: $(esdm-ls)"
    # Who only reads changes no format, also where something is noted, as digests are.
    esdm-stat --digest fields.nc >/dev/null && esdm-fsck --data >fsck.log || fail "$golden: $(cat fsck.log)"
    [ "$(version)" = "$format" ] || fail "$golden: reading has made format $(version) of format $format"
    client ncatted -h -a now,global,c,c,written esdm://folder/classic.nc || fail "$golden: writing"
    client ncdump -h esdm://folder/classic.nc | grep -q ':now = "written"' || fail "$golden: written"
    [ ! -e "$golden/accuracy.cdl" ] || copies_state_nothing
    upgraded
    clones
    versions=$((versions + 1))
done
[ $versions -gt 0 ] || fail "no stores found"
