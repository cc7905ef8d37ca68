/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What containers tell of the stub file that stands for them. */

#include "testing.h"

static esdm_session *session;

static void
make(const char *name, const char *folder)
{
    esdm_container *container;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, ERR));
    ok(esdm_container_set_stub(container, 7, 8, folder, ERR));
    ok(esdm_container_close(container, ERR));
}

/* @param folder NULL: it tells none. */
static void
check_told(const char *name, const char *folder)
{
    esdm_container *container;
    uint64_t version;
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, ERR));
    const char *told = esdm_container_stub_folder(container);
    if (told == NULL ? folder != NULL : folder == NULL || strcmp(told, folder) != 0)
        die("%s: '%s', expected '%s'", name, told ? told : "nothing", folder ? folder : "nothing");
    check(esdm_container_stub(container, &version) == 7 && version == 8);
    ok(esdm_container_close(container, ERR));
}

/* Whatever is in names and paths. */
static void
test_folder__is_told(void)
{
    make("exp/sub/a.nc", "/scratch/run/sub");
    check_told("exp/sub/a.nc", "/scratch/run/sub");
    make("a.nc", "/");
    check_told("a.nc", "/");
    make("1 2/ 3/a b.nc", "/with  spaces /and 7 /x");
    check_told("1 2/ 3/a b.nc", "/with  spaces /and 7 /x");
}

static void
test_folder__is_that_of_the_last_create(void)
{
    make("again.nc", "/one");
    make("again.nc", "/two");
    check_told("again.nc", "/two");
    make("again.nc", "");
    check_told("again.nc", NULL);
    make("again.nc", NULL);
    check_told("again.nc", NULL);
    make("again.nc", "/latin/\xfc");
    check_told("again.nc", NULL);
}

static void
test_folder__of_another_name_or_container_is_none(void)
{
    make("exp/a.nc", "/run");
    ok(esdm_container_clone(session, "exp/a.nc", "exp/clone.nc", false, ERR));
    check_told("exp/clone.nc", NULL);
    ok(esdm_container_move(session, "exp/a.nc", "exp/b.nc", false, ERR)); /* as NCO does */
    check_told("exp/b.nc", "/run");
    ok(esdm_container_move(session, "exp/b.nc", "exp2/b.nc", false, ERR));
    check_told("exp2/b.nc", NULL);
    ok(esdm_container_move(session, "exp2/b.nc", "exp/deep/b.nc", false, ERR));
    check_told("exp/deep/b.nc", NULL);
    ok(esdm_container_move(session, "exp/deep/b.nc", "b.nc", false, ERR));
    check_told("b.nc", NULL);
    ok(esdm_container_move(session, "b.nc", "exp/c.nc", false, ERR));
    check_told("exp/c.nc", "/run");
}

static void
test_wrong_ones_are_refused(void)
{
    esdm_container *container;
    ok(esdm_container_create(session, "wrong.nc", ESDM_CREATE_NEW, &container, ERR));
    fails(esdm_container_set_stub(container, 0, 1, "/run", ERR), ESDM_EINVAL, "not 0");
    fails(esdm_container_set_stub(container, 1, 0, "/run", ERR), ESDM_EINVAL, "not 0");
    fails(esdm_container_set_stub(container, 1, 1, "run", ERR), ESDM_EINVAL, "whole path");
    check(esdm_container_stub(container, NULL) == 0);
    /* What somebody else has put into the hint is not believed. */
    static const char *const texts[] = {
        "",        "0 ",          "UUID",         "UUID 0",
        "UUID 0 ", "UUID 0  run", "UUID 9  /run", "UUID 18446744073709551616  /run"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[200];
        bool own = strncmp(texts[i], "UUID", 4) == 0;
        snprintf(text, sizeof text, "%s%s", own ? esdm_container_uuid(container) : "",
                 texts[i] + (own ? 4 : 0));
        ok(esdm_container_set_hint(container, ESDM_HINT_STUB_FOLDER, text, ERR));
        check(esdm_container_stub_folder(container) == NULL);
    }
    esdm_container_discard(container);
}

int
main(void)
{
    make_site();
    session = open_session();
    test_folder__is_told();
    test_folder__is_that_of_the_last_create();
    test_folder__of_another_name_or_container_is_none();
    test_wrong_ones_are_refused();
    esdm_session_close(session);
    return 0;
}
