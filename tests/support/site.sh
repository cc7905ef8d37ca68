# SPDX-License-Identifier: LGPL-3.0-or-later
# Sourced by shell tests: a site of its own in a temporary folder, removed at exit.
#
#   . "$ESDM_SOURCE/tests/support/site.sh"
#   $SITE_DIR     the folder, also the working folder of the test
#   $ESDM_CONFIG  its site configuration; the site is made
#   fail TEXT, skip TEXT, expect_fail COMMAND…, client PROGRAM…
#
# $PATH begins with the tools that were built.
set -eu
: "${ESDM_BUILD:?set it to the build folder}" "${ESDM_SOURCE:?set it to the source folder}"

SITE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/esdm-test.XXXXXX")
trap 'chmod -R u+rwX "$SITE_DIR" 2>/dev/null; rm -rf "$SITE_DIR"' EXIT
trap 'exit 129' HUP INT TERM
site_hex=$(printf %s "${SITE_DIR##*/}" | od -An -v -tx1 | tr -d ' \n')
sed "s/@id@/${SITE_DIR##*/}/; s/@hex@/$site_hex/" "${ESDM_TEST_SITE:-$ESDM_SOURCE/tests/support/site.json}" \
    >"$SITE_DIR/site.json"
export ESDM_CONFIG=$SITE_DIR/site.json
export XDG_DATA_HOME=$SITE_DIR/xdg-data XDG_CONFIG_HOME=$SITE_DIR/xdg-config
export PATH=$ESDM_BUILD/tools:$PATH
cd "$SITE_DIR"
esdm-mkfs >/dev/null

fail() { echo "FAILED: $*" >&2 && exit 1; }
skip() { echo "SKIPPED: $*" && exit 77; }
# Runs an unmodified program with the plug-in preloaded.
client() {
    if [ -z "${ESDM_SANITIZE:-}" ]; then
        esdm-run "$@"
        return
    fi
    case $ESDM_SANITIZE in
    *address*) runtime=$(gcc -print-file-name=libasan.so) ;;
    *thread*) runtime=$(gcc -print-file-name=libtsan.so) ;;
    esac
    # Stock programs leak, and the plug-in is preloaded before the runtime.
    LD_PRELOAD=$runtime ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0 \
        esdm-run "$@"
}
# Runs a command that must fail in an orderly way: an exit status below 126, and a message.
expect_fail() {
    status=0
    output=$("$@" 2>&1) || status=$?
    [ $status != 0 ] || fail "succeeded, but should not: $*"
    [ $status -lt 126 ] || fail "status $status of: $*"
    [ -n "$output" ] || fail "no message from: $*"
}
