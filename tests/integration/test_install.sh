#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# An installed ESDM is found by pkg-config and by find_package; the example of docs/reference.md compiles
# against it from public headers alone and runs; the page shows that very program.
. "$ESDM_SOURCE/tests/support/site.sh"

prefix=$SITE_DIR/prefix
cmake --install "$ESDM_BUILD" --prefix "$prefix" >install.log || fail "$(cat install.log)"
library=$(find "$prefix" -name libesdm.so -printf '%h\n')
for file in bin/esdm-run bin/esdm-mkfs bin/esdm-ls bin/esdm-cp include/esdm/esdm.h \
    share/esdm/schemas/site.schema.json; do
    [ -e "$prefix/$file" ] || fail "not installed: $file"
done
# The manual pages that headers and tools speak of.
for page in $(grep -ohE 'esdm-[a-z]+\(1\)' "$ESDM_SOURCE"/src/include/esdm/*.h | sort -u | tr -d '()') esdm1; do
    file=$prefix/share/man/man1/${page%1}.1
    [ -s "$file" ] || fail "no manual page: $file"
    grep -q "^.SH Name" "$file" || fail "manual page: $(cat "$file")"
done
if [ -e "$prefix/include/esdm/base" ] || [ -e "$prefix/include/base" ]; then
    fail "internal headers were installed"
fi

flags=
[ -z "${ESDM_SANITIZE:-}" ] || flags="-fsanitize=${ESDM_SANITIZE%%,*}"
# The package was configured for another prefix.
pc=$(find "$prefix" -name esdm.pc)
for variable in prefix:"$prefix" libdir:"$library" includedir:"$prefix/include"; do
    folder=$(pkg-config --variable="${variable%%:*}" "$pc")
    [ "$(realpath "$folder")" = "$(realpath "${variable#*:}")" ] || fail "esdm.pc: ${variable%%:*}=$folder"
done
cc $flags "$ESDM_SOURCE/tests/integration/example.c" -o example \
    $(pkg-config --cflags --libs "$pc") || fail "pkg-config build"
output=$(LD_LIBRARY_PATH=$library ./example) || fail "example"
[ "$output" = "tas at (45, 90): 274.35 K at first, 297.35 K at last" ] || fail "example: $output"

mkdir project
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(esdm REQUIRED)
add_executable(example ${EXAMPLE})
target_link_libraries(example PRIVATE esdm::esdm)
CMAKE
{ cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS="$flags" \
    -DEXAMPLE="$ESDM_SOURCE/tests/integration/example.c" &&
    cmake --build project/build; } >project.log 2>&1 || fail "$(cat project.log)"
project/build/example >output.txt || fail "example built by find_package"
[ "$(cat output.txt)" = "$output" ] || fail "example built by find_package: $(cat output.txt)"

# Installed tools find the installed library and plug-in without help.
"$prefix/bin/esdm-ls" | grep -q '^example/tas.nc' || fail "installed esdm-ls"
PATH=$prefix/bin:$PATH client ncdump -h esdm://example/tas.nc | grep -q 'float tas(time, lat, lon)' ||
    fail "installed esdm-run"

# Completion in shells: options as --help tells them, names and views level by level, values of attributes.
export PATH=$prefix/bin:$PATH
completed() { # LINE: what bash would complete it to
    bash --norc -c '
        COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$'"' \t\n\"\'><=;|&(:'"'
        read -ra COMP_WORDS <<<"$1"; [ "${1% }" = "$1" ] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        . "$2/share/bash-completion/completions/${COMP_WORDS[0]}"
        function=$(complete -p "${COMP_WORDS[0]}") && function=${function#*-F } && "${function%% *}" "${COMP_WORDS[0]}"
        printf "[%s]" "${COMPREPLY[@]}"' completed "$1" "$prefix"
}
esdm-cp -q "esdm://example/tas.nc" esdm://example/more/tas.nc || fail "copy"
esdm-attr --set mip_era=CMIP6 --set activity_id=ScenarioMIP example/more/tas.nc >attr.log || fail "$(cat attr.log)"
for case in 'esdm-ls --dep|[--depth=]' 'esdm-ls ex|[example/]' 'esdm-ls example/|[example/more/][example/tas.nc]' \
    'esdm-stat example/t|[example/tas.nc ]' 'esdm-cp esdm://example/m|[//example/more/]' 'esdm-cp esd|[esdm://]' \
    'esdm st|[stat ]' 'esdm ls example/m|[example/more/]' 'esdm-run ncdump esdm://example/more/|[//example/more/tas.nc ]' \
    'esdm-find units=|[K ]' 'esdm-ls cord|[cordex:/]' 'esdm-ls cmip6:/CM|[/CMIP6/]' 'esdm-stat cmip6:/CMIP6/Sc|[/CMIP6/ScenarioMIP/]' \
    'esdm-run ncdump esdm://cmip6:/CM|[/CMIP6/]'; do
    found=$(completed "${case%%|*}")
    [ "$found" = "${case#*|}" ] || fail "completion of '${case%%|*}': $found, not ${case#*|}"
done
if command -v fish >/dev/null; then
    found=$(fish --no-config -c "source $prefix/share/fish/vendor_completions.d/esdm-ls.fish; complete -C 'esdm-ls example/m'")
    [ "${found%%[[:space:]]*}" = example/more/ ] || fail "completion in fish: $found"
    found=$(fish --no-config -c "source $prefix/share/fish/vendor_completions.d/esdm-ls.fish; complete -C 'esdm-ls cmip6:/CMIP6/Sc'")
    [ "${found%%[[:space:]]*}" = cmip6:/CMIP6/ScenarioMIP/ ] || fail "completion in fish: $found"
fi
if command -v zsh >/dev/null; then
    for file in "$prefix"/share/zsh/site-functions/*; do zsh -n "$file" || fail "$file"; done
fi

# The block in the page between ```c and ``` is the program, word for word.
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' "$ESDM_SOURCE/docs/reference.md" >readme.c
sed 1d "$ESDM_SOURCE/tests/integration/example.c" | diff - readme.c >readme.diff ||
    fail "docs/reference.md shows another example.c: $(head -20 readme.diff)"
