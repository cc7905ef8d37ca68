#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
# Installs the Debian 12 packages that ESDM needs and that are missing; touches nothing else.
#
#   tools/install-deps.sh build     to compile and use ESDM
#   tools/install-deps.sh mpi       for programs that run on several ranks, with OpenMPI or MPICH
#   tools/install-deps.sh clients   the stock NetCDF programs of the quick start
#   tools/install-deps.sh fuzz      to compile what is fuzzed
#   tools/install-deps.sh test      what the test suite needs on top of all of these
#   tools/install-deps.sh guest     a Linux of its own, for the long form of the tests on NFS
#   tools/install-deps.sh --list GROUP…   print the packages and do nothing
#
# Groups can be combined. Needs root or sudo only when something is missing.
set -eu

build="build-essential cmake ninja-build pkg-config libjansson-dev libsqlite3-dev liblz4-dev libzstd-dev
    libxxhash-dev libpcre2-dev libglib2.0-dev libnetcdf-dev libpq-dev libkyotocabinet-dev libcurl4-gnutls-dev
    libssl-dev libzfp-dev libfpzip-dev libaec-dev libdeflate-dev libhdf5-dev libfuse3-dev libmicrohttpd-dev
    libudunits2-dev libeccodes-dev libotf2-trace-dev"
mpi="libopenmpi-dev openmpi-bin mpich libmpich-dev"
clients="netcdf-bin nco cdo python3 python3-netcdf4 python3-xarray python3-numpy fuse3"
fuzz="git ccache libcmocka-dev clang-14 libclang-rt-14-dev"
test="clang-format-14 clang-tidy-14 gfortran libnetcdff-dev strace valgrind python3-venv python3-certifi python3-jsonschema sqlite3 util-linux bubblewrap
    ca-certificates chromium postgresql-15 openssl ncview gdal-bin r-cran-ncdf4 xvfb python3-dask libnetcdf-mpi-dev libnetcdf-pnetcdf-dev libpnetcdf-dev
    python3-mpi4py zlib1g-dev golang-go hdf5-tools python3-h5py otf2-tools"
guest="user-mode-linux nfs-kernel-server nfs-common kmod iproute2"

list_only=no
packages=
for argument in "$@"; do
    case $argument in
    --list) list_only=yes ;;
    build) packages="$packages $build" ;;
    mpi) packages="$packages $mpi" ;;
    clients) packages="$packages $clients" ;;
    fuzz) packages="$packages $build $fuzz" ;;
    test) packages="$packages $build $mpi $clients $fuzz $test" ;;
    guest) packages="$packages $guest" ;;
    -h | --help)
        sed -n '3,13s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "install-deps.sh: unknown group '$argument'; known: build, mpi, clients, fuzz, test, guest" >&2
        exit 2
        ;;
    esac
done
if [ -z "$packages" ]; then
    echo "install-deps.sh: name a group: build, mpi, clients, fuzz, test, guest (see --help)" >&2
    exit 2
fi
if [ $list_only = yes ]; then
    printf '%s\n' $packages | sort -u
    exit 0
fi
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "install-deps.sh: this is not Debian; please see to these packages yourself:" >&2
    printf '    %s\n' $packages | sort -u >&2
    exit 0
fi

missing=
for package in $(printf '%s\n' $packages | sort -u); do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "install-deps.sh: not root and no sudo; please install:$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
# Tell apart a stale package list (worth an update) from a real failure by trying once more.
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
        -o Dpkg::Use-Pty=0 install $missing </dev/null
}
$as_root apt-get -q update </dev/null
install || { sleep 5 && $as_root apt-get -q update </dev/null && install; }
