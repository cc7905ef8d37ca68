#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# fetch.sh FOLDER SOURCE [--fetch]: unpacks the source of the installed netCDF-C (SOURCE: netcdf) or
# netCDF-Fortran (netcdf-fortran) below FOLDER and prints where. Taken from $ESDM_NETCDF_SOURCE or
# $ESDM_NETCDF_FORTRAN_SOURCE (an unpacked source or its archive), else from the user's cache, else,
# with --fetch, from Debian's source packages through a list of its own: the system's configuration
# of apt is not touched. Exit status 77 when there is no way to get it.
set -euo pipefail
mkdir -p "${1:?fetch.sh FOLDER SOURCE}"
folder=$(realpath "$1")
target=$folder/$2
cache=${ESDM_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/esdm-tests}
case $2 in
netcdf) package=libnetcdf-dev given=${ESDM_NETCDF_SOURCE:-} ;;
netcdf-fortran) package=libnetcdff-dev given=${ESDM_NETCDF_FORTRAN_SOURCE:-} ;;
*) echo "fetch.sh: unknown source '$2'" >&2 && exit 2 ;;
esac

unpack() { # ARCHIVE
    rm -rf "$target.part" && mkdir -p "$target.part"
    tar -xf "$1" -C "$target.part" --strip-components=1
    rm -rf "$target" && mv "$target.part" "$target"
}

# Puts the archive into the cache; its name has the version.
fetch() { # VERSION SOURCE ARCHIVE
    local state=$folder/apt codename
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:?}")
    mkdir -p "$state/lists/partial" "$state/parts"
    # The mirror that the system uses, with sources in place of binaries.
    grep -rhoE 'https?://[^ ]+' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
        grep -E '/debian/?$' | sort -u | sed "s|.*|deb-src & $codename main|" >"$state/src.list"
    local options=(-o "Dir::Etc::SourceList=$state/src.list" -o "Dir::Etc::SourceParts=$state/parts"
        -o "Dir::State::Lists=$state/lists")
    apt-get "${options[@]}" -qq update
    (cd "$state" && apt-get "${options[@]}" -qq --download-only source "$2=$1")
    mkdir -p "$cache"
    cp "$(ls "$state/$2"_*.orig.tar.*)" "$3.part" && mv "$3.part" "$3"
}

exec 9>"$folder/fetch.lock"
flock 9 # tests run at the same time
if [ ! -f "$target/configure.ac" ]; then
    version=$(dpkg-query -W -f '${source:Version}' $package 2>/dev/null) || version=
    archive=$cache/$2-$version.orig.tar
    [ -n "$given" ] || [ ! -f "$archive" ] || given=$archive
    if [ -z "$given" ] && [ "${3:-}" = --fetch ]; then
        fetch "$version" "$2" "$archive" >&2 || { echo "the source of $2 cannot be fetched" >&2 && exit 77; }
        given=$archive
    fi
    if [ -d "$given" ]; then
        rm -rf "$target" && cp -r "$given" "$target" # configuring writes into it
    elif [ -f "$given" ]; then
        unpack "$given"
    else
        echo "no source of $2: it can be named in the environment (see fetch.sh)" >&2
        exit 77
    fi
fi
echo "$target"
