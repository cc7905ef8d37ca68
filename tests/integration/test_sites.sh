#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Site configurations, and esdm-mkfs as people and scripts use it: results, messages, exit statuses.
set -eu
. "$ESDM_SOURCE/tests/support/site.sh"
. "$ESDM_SOURCE/tests/support/expect.sh"

# ---- site configurations -----------------------------------------------------------------------

# The schema and the tool agree on the examples and on what is wrong.
cat >schema.py <<'END'
import json, pathlib, subprocess, sys
import jsonschema
source = pathlib.Path(sys.argv[1])
schema = json.loads((source / "schemas/site.schema.json").read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)

def tool(text):
    pathlib.Path("candidate.json").write_text(text)
    run = subprocess.run(["esdm-mkfs", "--validate", "candidate.json"], capture_output=True)
    return run.returncode == 0, run.stderr.decode()

examples = sorted((source / "site-config").glob("*.json"))
assert len(examples) >= 3
for path in examples:
    text = path.read_text()
    validator.validate(json.loads(text))
    good, message = tool(text)
    assert good, message

good = {"targets": [{"name": "a", "plugin": "posix", "directory": "a"}],
        "metadata": {"plugin": "sqlite", "directory": "m"}}
assert tool(json.dumps(good))[0]
wrong = [
    {"engin": {}}, {"engine": {"threads": -1}}, {"engine": {"memory": "lots"}},
    {"engine": {"codec": ""}}, {"engine": {"codec": "+"}}, {"history": 0}, {"durability": "no"},
    {"site": {"name": "a b"}}, {"site": {"id": "x"}}, {"netcdf": {"routes": "x"}},
    {"netcdf": {"routes": [""]}}, {"targets": []}, {"targets": [{"name": "a", "plugin": "posix"}]},
    {"targets": [{"plugin": "posix", "directory": "a"}]},
    {"targets": [{"name": "a", "plugin": "posix", "directory": 1}]},
    {"targets": [{"name": "a", "plugin": "posix", "directory": "a", "x": 1}]},
    {"metadata": {"plugin": "sqlite"}}, {"metadata": {"plugin": "sqlite", "directory": "m", "x": 1}},
]
for change in wrong:
    text = json.dumps({**good, **change})
    assert not validator.is_valid(json.loads(text)), f"the schema accepts {text}"
    accepted, message = tool(text)
    assert not accepted, f"esdm-mkfs accepts {text}"
    assert "candidate.json" in message, message
END
expect 0 env USER=someone HOME="$SITE_DIR" $python schema.py "$ESDM_SOURCE"

mkdir more
printf '{\n "targets": [,\n}' >more/broken.json
expect 1 esdm-mkfs more/broken.json
says "more/broken.json: line 2, column "
expect 3 esdm-mkfs more/absent.json
says "more/absent.json"
printf '{"targets":[{"name":"a","plugin":"posix","directory":"a"}],
  "metadata":{"plugin":"sqlite","directory":"m"},"engine":{"treads":1}}' >more/key.json
expect 1 esdm-mkfs more/key.json
says 'more/key.json: engine: unknown key "treads"; did you mean "threads"?'
expect 3 env ESDM_CONFIG=more/absent.json esdm-ls
says "ESDM_CONFIG, which must name the file of a site configuration (JSON), is 'more/absent.json'"
expect 1 env ESDM_CONFIG=/tmp esdm-ls
says "ESDM_CONFIG is '/tmp', a folder"
printf '{"targets":[{"name":"a","plugin":"posix","directory":"a"},],
  "metadata":{"plugin":"sqlite","directory":"m"}}' >more/comma.json
expect 1 esdm-mkfs more/comma.json
says "take away the comma before it"
printf '{"targets":[{"name":"a","plugin":"posix","directory":"/proc/x/a"}],
  "metadata":{"plugin":"sqlite","directory":"/proc/x/m"}}' >more/proc.json
expect 3 esdm-mkfs more/proc.json
case $output in "make directory"*) fail "reported before it was done: $output" ;; esac
expect 3 esdm-mkfs --dry-run more/proc.json
says "'/proc' is a file system of the kernel (proc)"
printf '{"targets":[{"name":"a","plugin":"posix","directory":"shut/b/a"}],
  "metadata":{"plugin":"sqlite","directory":"m"}}' >more/shut.json
mkdir more/shut && chmod a=rx more/shut more/shut/..
if [ "$(id -u)" = 0 ]; then # root may write everywhere
    chmod a+x .
    as_nobody="setpriv --reuid 65534 --regid 65534 --clear-groups"
    # Not in a closed TMPDIR, or with a build in a closed folder.
    $as_nobody test -r more/shut.json && $as_nobody "$(command -v esdm-mkfs)" --version >/dev/null 2>&1 &&
        expect 1 $as_nobody "$(command -v esdm-mkfs)" --dry-run more/shut.json &&
        says "cannot make directory"
else
    expect 1 esdm-mkfs --dry-run more/shut.json
    says "cannot make directory"
fi
chmod u+w more more/shut
printf '{"targets":[{"name":"a","plugin":"mem"}],
  "metadata":{"plugin":"sqlite","directory":"m"}}' >more/mem.json
expect 1 esdm-mkfs more/mem.json
says "exists only inside one process"
expect 1 esdm-mkfs --dry-run more/mem.json
[ ! -e more/m ] || fail "a store was made"
expect 0 esdm-mkfs --validate more/mem.json

# ---- making, checking, removing ----------------------------------------------------------------

cat >more/site.json <<'END'
{"site": {"name": "more"}, "targets": [{"name": "a", "plugin": "posix", "directory": "a"}],
 "metadata": {"plugin": "sqlite", "directory": "m"}}
END
expect 0 esdm-mkfs --dry-run more/site.json
[ ! -e more/a ] || fail "a dry run made something"
expect 3 esdm-mkfs --check more/site.json
mkdir more/a && echo "years of work" >more/a/thesis
expect 4 esdm-mkfs more/site.json
[ "$(ls more/a)" = thesis ] && [ ! -e more/m ] || fail "a foreign folder was touched"
rm -r more/a
expect 0 esdm-mkfs more/site.json
expect 0 esdm-mkfs more/site.json
expect 0 esdm-mkfs --check more/site.json
says "the site is good"
expect 0 esdm-mkfs --check --json more/site.json
says '"status": "ok"'
make_small_files
expect 0 esdm-cp --config more/site.json small.nc esdm://small.nc
expect 4 esdm-mkfs --remove more/site.json
says "--yes"
expect 0 esdm-mkfs --remove --dry-run more/site.json
expect 0 esdm-ls --config more/site.json
says "small.nc"
if command -v script >/dev/null; then # on a terminal it asks
    script -qec "esdm-mkfs --remove more/site.json" /dev/null <<<n >answer || true
    grep -q "1 container (" answer || fail "it did not ask: $(cat answer)"
    expect 0 esdm-ls --config more/site.json
fi
echo keep >more/a/notes
expect 0 esdm-mkfs --remove --yes more/site.json
[ "$(ls more/a)" = notes ] && [ ! -e more/m ] || fail "removal was not exact: $(ls more/a)"
expect 3 esdm-mkfs --remove --yes more/site.json

# Another configuration with the same name does not get at the packs, nor do they go unasked.
for i in 1 2; do
    cat >more/name$i.json <<END
{"site": {"name": "a"}, "targets": [{"name": "disk", "plugin": "posix", "directory": "ad"}],
 "metadata": {"plugin": "sqlite", "directory": "am$i"}}
END
done
expect 0 esdm-mkfs more/name1.json
expect 0 esdm-cp --config more/name1.json field.nc esdm://x.nc
packs=$(find more/ad -type f | sort)
expect 4 esdm-mkfs more/name2.json
says "targets[0]: directory '$SITE_DIR/more/ad' belongs to another site"
expect 4 esdm-mkfs --dry-run more/name2.json
expect 1 esdm-mkfs --check more/name2.json
expect 1 esdm-mkfs --remove more/name2.json
expect 1 esdm-mkfs --remove --yes more/name2.json
says "belongs to another site"
[ "$(find more/ad -type f | sort)" = "$packs" ] && [ ! -e more/am2 ] || fail "packs were touched"
expect 0 esdm-mkfs --check more/name1.json
mv more/am1 more/lost
expect 4 esdm-mkfs more/name1.json
says "the metadata store of this one is not there"
says "esdm-mkfs --restore"
expect 3 esdm-ls --config more/name1.json
says "esdm-mkfs --restore"
mv more/lost more/am1
rm more/am1/catalogue.sqlite*
expect 4 esdm-mkfs more/name1.json
says "brings the catalogue back from backups"
expect 0 esdm-mkfs --yes more/name1.json
expect 0 esdm-mkfs --check more/name1.json
says "belongs to no container"
expect 4 esdm-mkfs --remove more/name1.json
says "though no container"
[ "$(find more/ad -type f | sort)" = "$packs" ] || fail "packs were touched"
expect 0 esdm-mkfs --remove --yes more/name1.json
[ ! -e more/ad ] || fail "the site was not removed"

# One directory per store: inside another's is no place.
cat >more/inside.json <<'END'
{"targets": [{"name": "disk", "plugin": "posix", "directory": "ad"}],
 "metadata": {"plugin": "sqlite", "directory": "ad/meta"}}
END
expect 1 esdm-mkfs more/inside.json
says "metadata: the directory \"$SITE_DIR/more/ad/meta\" lies inside the one of targets[0]"
[ ! -e more/ad ] || fail "a directory was made"

# The umask decides who may write: a group shares a site.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && chmod 755 . &&
    setpriv --reuid=54321 --regid=54320 --clear-groups "$(command -v esdm-ls)" --version >/dev/null; then
    as() { (umask 002 && exec setpriv --reuid="$1" --regid=54320 --clear-groups "${@:2}"); }
    mkdir group && chgrp 54320 group && chmod 2775 group
    sed 's/"more"/"group"/' more/site.json >group/site.json
    expect 0 as 54321 esdm-mkfs group/site.json
    for user in 54321 54322 54321 54322; do
        expect 0 as $user esdm-cp -f --config group/site.json small.nc esdm://of/$user
        expect 0 as $user esdm-cp -f --config group/site.json field.nc esdm://shared.nc
        expect 0 as $user esdm-mkfs --check group/site.json
        expect 0 as $user esdm-ls --config group/site.json
        says shared.nc
        narrow=$(find group/a group/m ! -perm -0060)
        [ -z "$narrow" ] || fail "the group may not write: $narrow"
    done
    expect 0 as 54322 esdm-rm --config group/site.json of/54321
    expect 0 as 54322 esdm-mkfs --remove --yes group/site.json
    rm -r group
fi

# The default site needs no configuration, and a home.
(
    unset ESDM_CONFIG
    mkdir nowhere && cd nowhere
    no_site="there is no site yet: the default one is made when something is first written; one that others have made is named by ESDM_CONFIG"
    expect 0 esdm-ls
    [ "$output" = "esdm-ls: $no_site" ] || fail "a fresh account shows: $output"
    expect 0 esdm-ls --json
    says '"containers": []'
    for reading in "esdm-stat a" "esdm-find x=1" "esdm-rm -n a" "esdm-restore --list a"; do
        expect 3 $reading
        says "$no_site"
    done
    expect 3 esdm-cp esdm://a a.nc
    [ ! -e "$XDG_DATA_HOME/esdm" ] || fail "reading has made a site"
    expect 0 esdm-cp -q ../small.nc esdm://small.nc
    [ -z "$output" ] || fail "--quiet says: $output"
    rm -r "$XDG_DATA_HOME/esdm"
    expect 0 esdm-cp -j3 ../small.nc ../field.nc esdm://first/
    [ "$(grep -c "made the default site" <<<"$output")" = 1 ] || fail "not once: $output"
    rm -r "$XDG_DATA_HOME/esdm/data" # packs that are missing are not made up for
    expect 3 esdm-ls
    rm -r "$XDG_DATA_HOME/esdm"
    expect 0 esdm-cp ../small.nc esdm://small.nc
    [ -d "$XDG_DATA_HOME/esdm/meta" ] || fail "the default site is not in XDG_DATA_HOME"
    expect 0 esdm-ls
    says small.nc
    expect 0 esdm-mkfs --remove --yes
    [ ! -e "$XDG_DATA_HOME/esdm" ] || fail "the default site was not removed"
    unset XDG_DATA_HOME XDG_CONFIG_HOME
    expect 3 env -u HOME esdm-ls
    says "set HOME or XDG_DATA_HOME"
) || exit 1

echo "$steps commands as expected"
