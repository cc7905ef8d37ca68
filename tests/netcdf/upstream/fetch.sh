#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# fetch.sh FOLDER: puts the source of the installed netCDF-C into FOLDER/netcdf-c and prints that
# path. Taken from $ESDM_NETCDF_SOURCE (an unpacked source or its archive), else from Debian's
# source packages through a list of its own: the system's configuration of apt is not touched.
# Exit status 77 when there is no way to get it.
set -euo pipefail
mkdir -p "${1:?fetch.sh FOLDER}"
folder=$(realpath "$1")
target=$folder/netcdf-c

unpack() { # ARCHIVE
    rm -rf "$target.part" && mkdir -p "$target.part"
    tar -xf "$1" -C "$target.part" --strip-components=1
    rm -rf "$target" && mv "$target.part" "$target"
}

fetch() {
    local state=$folder/apt codename version
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:?}")
    version=$(dpkg-query -W -f '${source:Version}' libnetcdf-dev)
    mkdir -p "$state/lists/partial" "$state/parts"
    # The mirror that the system uses, with sources in place of binaries.
    grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
        grep -E '/debian/?$' | sort -u | sed "s|.*|deb-src & $codename main|" >"$state/src.list"
    local options=(-o "Dir::Etc::SourceList=$state/src.list" -o "Dir::Etc::SourceParts=$state/parts"
        -o "Dir::State::Lists=$state/lists")
    apt-get "${options[@]}" -qq update
    (cd "$state" && apt-get "${options[@]}" -qq --download-only source "netcdf=$version")
    unpack "$(ls "$state"/netcdf_*.orig.tar.*)"
}

if [ ! -f "$target/nc_test/nc_test.c" ]; then
    given=${ESDM_NETCDF_SOURCE:-}
    if [ -d "$given" ]; then
        rm -rf "$target" && cp -r "$given" "$target" # configuring writes into it
    elif [ -f "$given" ]; then
        unpack "$given"
    elif [ "${2:-}" != --fetch ]; then
        echo "no source of netCDF-C: set ESDM_NETCDF_SOURCE, or run tests/run.sh --long" >&2
        exit 77
    else
        fetch >&2 || { echo "the source of netCDF-C cannot be fetched" >&2 && exit 77; }
    fi
fi
echo "$target"
