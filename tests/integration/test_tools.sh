#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The command-line tools as people and scripts use them: results, messages, exit statuses.
set -eu
. "$ESDM_SOURCE/tests/support/site.sh"
. "$ESDM_SOURCE/tests/support/expect.sh"

# ---- help and versions -------------------------------------------------------------------------

for program in esdm-mkfs esdm-ls esdm-stat esdm-find esdm-cp esdm-rm esdm-restore esdm-fsck esdm-gc esdm-drain esdm-pattern esdm-advise esdm-reduce \
    esdm-diff esdm-explain esdm-replay esdm-seal esdm-tune; do
    expect 0 $program --help
    says "Usage:"
    says "Exit status:"
    says "Examples:"
    expect 0 $program --version
    says "$program (ESDM) "
    expect 2 $program --no-such-option
    says "$program: "
done
expect 2 esdm
says "Commands:"
expect 0 esdm help
says "Examples:"
expect 0 esdm help ls
says "esdm-ls [OPTION"
expect 0 esdm --version
expect 2 esdm nonsense
says "there is no command 'nonsense'"
expect 0 esdm ls
expect 2 esdm-rm
expect 2 esdm-stat
expect 2 esdm-find
expect 2 esdm-cp one
expect 2 esdm-ls -0 -l

make_small_files

# ---- copying: everything that NetCDF has ---------------------------------------------------------

cat >all.cdl <<'END'
netcdf all {
dimensions: x = 3 ; t = UNLIMITED ; u = UNLIMITED ; nobody = UNLIMITED ; length = 5 ;
variables:
  byte b(x) ; b:_FillValue = -1b ; b:valid_range = -100b, 100b ;
  char c(x, length) ; c:_FillValue = "*" ;
  short s(t, x) ; s:_Endianness = "big" ; s:_ChunkSizes = 2, 3 ; s:_DeflateLevel = 3 ;
    s:_Shuffle = "true" ; s:_Fletcher32 = "true" ;
  int i(x) ; i:_Endianness = "little" ; i:_Storage = "contiguous" ;
  float f(t, u) ; f:_FillValue = NaNf ;
  double d ; d:units = "" ;
  ubyte ub(x) ; ushort us(x) ;
  uint ui(x) ; ui:_NoFill = "true" ;
  int64 i64(x) ; i64:_FillValue = -9223372036854775807LL ;
  uint64 u64(x) ; u64:big = 18446744073709551615ULL ;
  string str(t) ; string str:flags = "one", "two \"quoted\"", "" ;
  string alone ;
  int t(t) ; t:units = "days since 2000-1-1" ;
  float small(x) ; small:_Storage = "compact" ;
  float with\ blank(x) ; with\ blank:Größe = "ä€𝄞" ;
  float lonely(nobody) ;
  :title = "everything" ; :empty = "" ; :one = 1b ; :two = 2s, 3s ; :three = 4 ;
  :four = 1.5f, NaNf, Infinityf ; :five = -0., 1e-310 ; :six = 1ub ; :seven = 2us ; :eight = 3u ;
  :nine = -5LL ; :ten = 6ULL ; string :eleven = "text" ;
data:
  b = 1, _, 3 ; c = "abc", "defgh", "*" ; s = 1, 2, 3, 4, 5, 6, 7, 8, 9 ; i = 1, 2, 3 ;
  f = {1, 2}, {NaN, 4}, {_, 6} ; d = 3.14159 ; ub = 0, 255, 7 ; us = 0, 65535, 7 ;
  ui = 0, 4294967295, 7 ; i64 = -9223372036854775807, 9223372036854775807, 0 ;
  u64 = 18446744073709551615, 0, 1 ; str = "first", "", "third with \n new line" ;
  alone = "alone" ; t = 0, 1, 2 ; small = 1, 2, 3 ; with\ blank = 1, 2, 3 ;
group: g1 {
  dimensions: x = 2 ;
  variables: float v(t, x) ; :where = "g1" ;
  data: v = 1, 2, 3, 4, 5, 6 ;
  group: deep {
    dimensions: z = 4 ;
    variables: int w(z, x, x) ;
    data: w = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 ;
  }
}
group: g2 { }
}
END
ncgen -4 -o all.nc all.cdl
cat >classic.cdl <<'END'
netcdf classic {
dimensions: time = UNLIMITED ; x = 3 ; n = 4 ;
variables: byte b(x) ; char c(time, n) ; short s(time, x) ; s:_FillValue = 7s ; int i(time) ;
  float f(x) ; double d(time, x) ; int scalar ; :title = "classic" ; :empty = "" ;
data: b = 1, 2, 3 ; c = "abcd", "ef", "ghi" ; s = 1, 2, 3, 4, _, 6, 7, 8, 9 ; i = 1, 2, 3 ;
  f = 1, 2, 3 ; d = 1, 2, 3, 4, 5, 6, 7, 8, 9 ; scalar = 42 ;
}
END
for kind in 1 2 3 4 5; do
    ncgen -k $kind -o classic$kind.nc classic.cdl 2>/dev/null
done
# What CDL cannot say: attributes of length zero, strides of NaN bits.
cat >special.py <<'END'
import sys
import netCDF4, numpy
for kind in ("NETCDF4", "NETCDF3_CLASSIC"):
    with netCDF4.Dataset(f"special-{kind}.nc", "w", format=kind) as f:
        f.createDimension("x", 4)
        v = f.createVariable("v", "f8", ("x",))
        v.set_auto_mask(False)
        v[:] = numpy.array([0x7ff0000000000001, 0xfff8dead0000beef, 0x8000000000000000, 1],
                           dtype="u8").view("f8")
        for code in ("i1", "i2", "i4", "f4", "f8"):
            f.setncattr(f"none_{code}", numpy.array([], dtype=code))
END
$python special.py
mkdir out
for file in all classic1 classic2 classic3 classic4 classic5 special-NETCDF4 \
    special-NETCDF3_CLASSIC; do
    expect 0 esdm-cp $file.nc esdm://kinds/$file.nc
    expect 0 esdm-cp esdm://kinds/$file.nc esdm://kinds/again/$file.nc
    expect 0 esdm-cp esdm:kinds/again/$file.nc out/
    same_file $file.nc out/$file.nc
    [ "$(ncdump -k $file.nc)" = "$(ncdump -k out/$file.nc)" ] || fail "kind of $file"
done
cat >bits.py <<'END'
import sys
import netCDF4
for kind in ("NETCDF4", "NETCDF3_CLASSIC"):
    bits = []
    for folder in (".", "out"):
        with netCDF4.Dataset(f"{folder}/special-{kind}.nc") as f:
            f.set_auto_mask(False)
            bits.append(f["v"][:].tobytes())
            for name in f.ncattrs():
                bits.append(bytes(name, "ascii") + f.getncattr(name).dtype.str.encode())
                assert f.getncattr(name).size == 0
    half = len(bits) // 2
    assert bits[:half] == bits[half:], kind
END
expect 0 $python bits.py
expect 0 esdm-cp --format=netcdf4 esdm://kinds/classic1.nc out/converted.nc
[ "$(ncdump -k out/converted.nc)" = netCDF-4 ] || fail "--format"
expect 1 esdm-cp --format=classic esdm://kinds/all.nc out/impossible.nc
[ ! -e out/impossible.nc ] || fail "a half file was left"
expect 2 esdm-cp --format=word esdm://kinds/all.nc out/x.nc
no_leftovers "after copying"

cat >types.cdl <<'END'
netcdf types { types: compound pair { int a ; float b ; } ; dimensions: x = 2 ;
variables: int fine(x) ; pair p(x) ; data: p = {1, 2}, {3, 4} ; }
END
ncgen -4 -o types.nc types.cdl
expect 0 esdm-cp types.nc esdm://types.nc
expect 1 esdm-cp --format=classic esdm://types.nc types2.nc
expect 1 esdm-cp --format=classic types.nc esdm://types2.nc
says "format classic has no user-defined types"
expect 0 esdm-stat types.nc
says "compound pair: int32 a, float32 b"
expect 0 esdm-rm types.nc

# ---- copying: what is asked for, and nothing else -------------------------------------------------

expect 0 esdm-cp small.nc esdm://a.nc
expect 4 esdm-cp small.nc esdm://a.nc/below
says "'a.nc' is a container: nothing can lie below it"
for tool in esdm-ls esdm-stat "esdm-rm -n"; do
    expect 0 $tool esdm:a.nc
    expect 0 $tool esdm://a.nc
done
expect 0 esdm-rm a.nc
expect 0 esdm-cp small.nc esdm://a.nc/below
for tool in esdm-stat esdm-rm; do
    expect 3 $tool esdm:a.nc
    says "there is no container 'a.nc', but 1 below it: see esdm-ls 'a.nc'"
done
expect 0 esdm-rm -g a.nc/below
expect 0 esdm-rm -g a.nc
expect 3 esdm-stat a.nc
[ "$output" = "esdm-stat: there is no container 'a.nc'" ] || fail "$output"
expect 0 esdm-cp small.nc esdm://a.nc
expect 3 esdm-cp esdm://a.nc absent/a.nc
says "there is no folder 'absent'"
expect 2 esdm-find units = K
says "put it in quotes"
says "expected one of"
expect 2 esdm-find 'units = m s-1'
says "a value with blanks must be in quotes"
expect 3 esdm-find 'units = M'
says "nothing has units = M"
expect 3 esdm-find ':title = "small" and unitz ~ "K and" and v:unitz != 3 and v:units = K'
[ "$output" = "esdm-find: query, column 22: nothing has an attribute 'unitz'; did you mean 'units'?
esdm-find: query, column 42: no variable 'v' has an attribute 'unitz'; did you mean 'units'?" ] || fail "$output"
expect 4 esdm-cp small.nc esdm://a.nc
says "--force"
says "--skip-existing"
expect 3 esdm-rm 'a*'
says "to remove many: esdm-rm -r PREFIX"
expect 3 esdm-stat --snapshot 9 a.nc
[ "$output" = "esdm-stat: container 'a.nc' has no snapshot 9; there is only 1" ] || fail "$output"
expect 3 esdm-stat --explain --snapshot 9 a.nc
says "there is only 1"
expect 0 esdm-cp -f classic1.nc esdm://a.nc
expect 0 esdm-cp esdm://a.nc out/a.nc
same_file_name=$(ncdump -h out/a.nc | grep -c time)
[ "$same_file_name" -gt 1 ] || fail "--force did not replace"
expect 4 esdm-cp esdm://a.nc out/a.nc
expect 0 esdm-cp -f esdm://a.nc out/a.nc
expect 3 esdm-cp absent.nc esdm://b.nc
says "absent.nc"
expect 3 esdm-cp esdm://absent.nc out/b.nc
says "absent.nc"
expect 1 esdm-cp small.cdl esdm://b.nc
says "small.cdl: cannot open"
expect 2 esdm-cp small.nc out/b.nc
says "use cp"
expect 2 esdm-cp esdm://a.nc esdm://a.nc
expect 2 esdm-cp out esdm://tree
says "--recursive"
expect 2 esdm-cp small.nc out/../small.nc esdm://two/
says "two sources"
expect 1 esdm-cp small.nc esdm://../up.nc
expect 3 esdm-cp esdm://a.nc out/no/such/folder/a.nc
expect 0 esdm-cp -n small.nc all.nc esdm://many/
says "all.nc -> esdm://many/all.nc"
expect 3 esdm-ls many
expect 0 esdm-cp small.nc all.nc esdm://many/
expect 0 esdm-ls many
[ "$output" = "many/all.nc"$'\n'"many/small.nc" ] || fail "listing: $output"

# Trees, and failures in the middle of them.
mkdir -p tree/a/b tree/c
cp small.nc tree/one.nc && cp all.nc tree/a/two.nc && cp classic1.nc tree/a/b/three.nc
echo "not copied" >tree/readme.txt
expect 0 esdm-cp -r -j2 --json tree esdm://tree
says '"copied": 3'
says '"verified": true'
expect 0 esdm-cp -r esdm://tree tree2
for file in one.nc a/two.nc a/b/three.nc; do
    same_file tree/$file tree2/$file
done
mkfifo tree/pipe.nc
expect 0 timeout 60 esdm-cp -r tree esdm://tree3
says "passed over 'tree/pipe.nc', which is no regular file"
expect 1 timeout 60 esdm-cp tree/pipe.nc esdm://b.nc
says "'tree/pipe.nc' is no regular file"
rm tree/pipe.nc
echo "no NetCDF file" >tree/a/four.nc
expect 1 esdm-cp -f -r -j 2 tree esdm://tree3
says "tree/a/four.nc"
says "3 copied and verified, 1 failed"
expect 3 esdm-cp -r tree/c esdm://empty
expect 0 esdm-cp -r esdm://tree esdm://tree4
expect 0 esdm-ls tree4
[ "$(wc -l <<<"$output")" = 3 ] || fail "prefix to prefix: $output"

# What is wrong on the command line is told once, and nothing is opened.
for text in 'v: absolute=1' 'v: abs=zero' 'v: abs=0.01 K; mode=quick' 'v: exact=1,2' 'v: abs=-1 K'; do
    expect 2 env ESDM_CONFIG=/nowhere.json esdm-cp -r --accuracy "$text" tree esdm://wrong
    says "esdm-cp: --accuracy '$text': "
    [ "$(grep -c -- --accuracy <<<"$output")" = 1 ] || fail "told more than once: $output"
done
says "must not be negative"
expect 0 esdm-cp -f --accuracy 'v: abs=1 K; exact=1 2 3' small.nc esdm://exact.nc
expect 2 esdm-cp -f --accuracy 'v: exact=1,2' small.nc esdm://exact.nc
says "divided by blanks"
expect 2 esdm-cp -j 0 small.nc esdm://jobs.nc
says "--jobs needs a number from 1"
expect 2 esdm-cp -j -1 small.nc esdm://jobs.nc
expect 0 esdm-cp -j 1 small.nc esdm://jobs.nc

# Messages name what was typed, not the name that a copy has meanwhile.
expect 4 esdm-cp small.nc esdm://jobs.nc/below.nc
says "jobs.nc/below.nc"
case $output in *.esdm-cp-*) fail "a temporary name is shown: $output" ;; esac
expect 1 esdm-cp --format=classic esdm://kinds/all.nc out/impossible.nc
case $output in *.esdm-cp-*) fail "a temporary name is shown: $output" ;; esac

esdm-ls >all-names.txt
for whole in esdm:// esdm:; do
    expect 0 esdm-ls "$whole"
    diff all-names.txt <(echo "$output") >difference || fail "esdm-ls $whole: $(cat difference)"
done

expect 0 esdm-mkfs --check --json
says "\"config\": \"$ESDM_CONFIG\""
esdm-mkfs --remove --json </dev/null >refused.json 2>refused.txt && fail "--remove without --yes"
"$python" -c 'import json; r = json.load(open("refused.json"))
assert r["action"] == "remove" and r["status"] != "ok" and "--yes" in r["message"], r' ||
    fail "esdm-mkfs --remove --json: $(cat refused.json)"

expect 0 esdm-rm jobs.nc exact.nc

# Copying a tree again copies what is new.
mkdir -p again/a && cp small.nc again/one.nc
expect 0 esdm-cp -v -r -s again esdm://again
says "1 copied and verified, 0 skipped, 0 failed"
cp small.nc again/a/two.nc
expect 0 esdm-cp -n -r -s again esdm://again
[ "$output" = "again/a/two.nc -> esdm://again/a/two.nc" ] || fail "$output"
expect 0 esdm-cp -r --skip-existing again esdm://again
says "1 copied and verified, 1 skipped, 0 failed"
expect 0 esdm-cp -r -s --json again esdm://again
says '"skipped": 2'
says '"status": "skipped"'
expect 0 esdm-cp -s esdm://again/one.nc out/one.nc
expect 0 esdm-cp -s all.nc out/one.nc esdm://again/
cp out/one.nc before.nc
expect 0 esdm-cp -s esdm://again/all.nc out/one.nc
cmp out/one.nc before.nc || fail "--skip-existing replaced a file"
expect 2 esdm-cp -s -f small.nc esdm://again/one.nc
expect 0 esdm-rm -r again

# What cannot be written is said once.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && chmod 755 . &&
    setpriv --reuid=65534 --regid=65534 --clear-groups "$(command -v esdm-ls)" >/dev/null; then
    expect 1 setpriv --reuid=65534 --regid=65534 --clear-groups "$(command -v esdm-cp)" small.nc \
        esdm://not_allowed.nc
    [ "$(wc -l <<<"$output")" = 1 ] || fail "more than the error: $output"
fi

# An interrupted copy leaves nothing behind.
cat >large.py <<'END'
import netCDF4, numpy
with netCDF4.Dataset("large.nc", "w", format="NETCDF3_64BIT_OFFSET") as f:
    f.createDimension("x", 1000); f.createDimension("t", None)
    v = f.createVariable("v", "f4", ("t", "x"))
    v[:20000] = numpy.arange(20_000_000, dtype="f4").reshape(20000, 1000)
END
$python large.py
for delay in 0.02 0.05 0.1; do
    esdm-cp large.nc esdm://large.nc 2>/dev/null & copy=$!
    sleep $delay
    kill -INT $copy 2>/dev/null || true
    wait $copy || true
    no_leftovers "interrupted after $delay s"
    esdm-rm -f --for-good large.nc
done
expect 0 esdm-cp large.nc esdm://large.nc
expect 0 esdm-cp esdm://large.nc out/large.nc
cmp large.nc out/large.nc || fail "a large classic file is not the same byte for byte"

# ---- looking ---------------------------------------------------------------------------------------

expect 0 esdm-ls -l kinds
says "kinds/all.nc"
expect 0 esdm-cp field.nc esdm://field.nc
expect 0 esdm-stat --explain field.nc
case $(grep -c '"plugin"' "$ESDM_CONFIG") in
2) says "there was no choice: the site has no other target" ;;
esac
expect 0 esdm-rm field.nc
expect 0 esdm-ls --json kinds
$python -c 'import json,sys; d=json.loads(sys.argv[1]); c=d["containers"]
assert d["site"] == "test" and len(c) == 16, len(c)
assert all(x["snapshot"] == 1 for x in c) and c == sorted(c, key=lambda x: x["name"].encode())' \
    "$output" || fail "JSON of esdm-ls"
expect 3 esdm-ls absent
expect 0 esdm-stat -a --fragments kinds/all.nc
says "float32 with blank(x)  3"
says 'v(t, x)  3x2'
says ':eleven = "text"'
says "(inline)"
expect 0 esdm-stat large.nc
says "20000x1000"
says "disk: "
expect 0 esdm-stat --json --fragments kinds/all.nc large.nc
$python -c 'import json,sys; a, b = json.loads(sys.argv[1])["containers"]
assert [d["name"] for d in a["root"]["datasets"]][:3] == ["b", "c", "s"]
assert a["netcdf_format"] == "netcdf4" and a["root"]["groups"][0]["groups"][0]["name"] == "deep"
v, = b["root"]["datasets"]
assert v["shape"] == [20000, 1000] and v["raw_bytes"] == 80_000_000, v["raw_bytes"]
assert sum(f["raw_bytes"] for f in v["fragments"]) == 80_000_000
assert sum(t["stored_bytes"] for t in v["targets"]) == v["stored_bytes"]' "$output" ||
    fail "JSON of esdm-stat"
expect 3 esdm-stat absent.nc
expect 3 esdm-stat --snapshot 7 large.nc
status=0
esdm-ls >/dev/full 2>message || status=$?
[ $status = 1 ] && grep -q "cannot write the output" message || fail "a full disk went unnoticed"

# ---- finding ---------------------------------------------------------------------------------------

expect 0 esdm-find 'title = small'
says "many/small.nc"
expect 0 esdm-find -c 'units = K'
[ "$output" = "many/small.nc"$'\n'"tree/one.nc"$'\n'"tree3/one.nc"$'\n'"tree4/one.nc" ] ||
    fail "esdm-find -c: $output"
expect 0 esdm-find ':title ~ every* and ten >= 6' 'three < 5'
says "kinds/all.nc"
expect 0 esdm-find 'v:units = "K"'
says "many/small.nc:/v"
expect 0 esdm-find --json 'v:units = K and :title = small'
$python -c 'import json,sys; m=json.loads(sys.argv[1])["matches"]
assert {"container": "many/small.nc", "dataset": "/v"} in m' "$output" || fail "JSON of esdm-find"
expect 3 esdm-find 'title = absent'
says "nothing has title = absent; there is"
expect 2 esdm-find 'title = '
says "column 9"
expect 2 esdm-find 'title'

# ---- removing --------------------------------------------------------------------------------------

expect 0 esdm-rm -r -n tree4
[ "$(wc -l <<<"$output")" = 3 ] || fail "dry run of esdm-rm: $output"
expect 3 esdm-rm tree4
expect 0 esdm-rm -r -v tree4
expect 3 esdm-ls tree4
expect 3 esdm-rm -r tree4
expect 0 esdm-rm -f -r tree4
expect 0 esdm-ls tree3
expect 0 esdm-rm --json many/all.nc many/small.nc
says '"many/small.nc"'
expect 3 esdm-rm absent.nc a.nc
expect 3 esdm-stat a.nc

# ---- damage ----------------------------------------------------------------------------------------

esdm-gc --replaced-now --yes
pack=$(find packs -type f -size +100k | head -1)
$python - "$pack" <<'END'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(60_000)
    byte = f.read(1)[0]
    f.seek(60_000)
    f.write(bytes([byte ^ 1]))
END
expect 5 esdm-cp esdm://large.nc out/damaged.nc
[ ! -e out/damaged.nc ] || fail "a damaged copy has its name"
no_leftovers "after damage"

echo "$steps commands as expected"
