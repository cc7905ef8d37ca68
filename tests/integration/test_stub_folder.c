/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What containers tell of the stub file that stands for them. */

#include "testing.h"

static esdm_session *session;

static void
make(const char *name, const char *folder)
{
    esdm_container *container;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, ERR));
    ok(esdm_container_set_stub(container, 7, 8, folder, NULL, ERR));
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

/* Which folder of that path it is, and whether the container was renamed since. */
static void
check_made(const char *name, const char *place, bool renamed)
{
    esdm_container *container;
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, ERR));
    check(esdm_container_stub_is_at(container, place) == (place != NULL));
    check(!esdm_container_stub_is_at(container, "elsewhere"));
    check(!esdm_container_stub_is_at(container, "") && !esdm_container_stub_is_at(container, NULL));
    check(esdm_container_stub_is_renamed(container) == renamed);
    ok(esdm_container_close(container, ERR));
}

static void
make_at(const char *name, const char *place)
{
    esdm_container *container;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, ERR));
    ok(esdm_container_set_stub(container, 7, 8, "/run", place, ERR));
    ok(esdm_container_close(container, ERR));
}

static void
test_place_and_name_are_told(void)
{
    char here[ESDM_STUB_PLACE_BYTES];
    char below[ESDM_STUB_PLACE_BYTES];
    esdm_stub_place(session, "/proc", here);
    check(here[0] != '\0' && strchr(here, ' ') == NULL);
    esdm_stub_place(session, "/proc/not/there", below);
    check(strcmp(here, below) == 0);
    esdm_stub_place(session, "/", below);
    check(below[0] != '\0' && strcmp(here, below) != 0);
    esdm_stub_place(session, "not whole", below);
    check(below[0] == '\0');
    make_at("p/a.nc", here);
    check_made("p/a.nc", here, false);
    ok(esdm_container_clone(session, "p/a.nc", "p/clone.nc", false, ERR));
    check_made("p/clone.nc", NULL, false);
    ok(esdm_container_move(session, "p/a.nc", "p/b.nc", false, ERR));
    check_made("p/b.nc", here, true);
    make_at("p/c.nc.pid12.ncks.tmp", here);
    ok(esdm_container_move(session, "p/c.nc.pid12.ncks.tmp", "p/c.nc", false, ERR));
    check_made("p/c.nc", here, false);
    ok(esdm_container_move(session, "p/c.nc", "p/d.nc", false, ERR));
    check_made("p/d.nc", here, true);
    make_at("p/e.nc", "with blank");
    check_made("p/e.nc", NULL, false);
}

/* Step by step, also when nothing has the name any more. */
static void
test_renames_are_told_when_all_are_gone(void)
{
    char to[ESDM_CONTAINER_NAME_MAX + 1];
    make("r/1", "/run");
    ok(esdm_container_move(session, "r/1", "r/2", false, ERR));
    ok(esdm_container_move(session, "r/2", "r/3", false, ERR));
    ok(esdm_container_erase(session, "r/3", ERR));
    ok(esdm_container_renamed_to(session, "r/1", to, ERR));
    check(strcmp(to, "r/2") == 0);
    ok(esdm_container_renamed_to(session, to, to, ERR));
    check(strcmp(to, "r/3") == 0);
    fails(esdm_container_renamed_to(session, "r/3", to, ERR), ESDM_ENOENT, "known to be renamed");
    fails(esdm_container_renamed(session, "r/1", to, NULL, ERR), ESDM_ENOENT,
          "known to be renamed");
}

static void
test_wrong_ones_are_refused(void)
{
    esdm_container *container;
    ok(esdm_container_create(session, "wrong.nc", ESDM_CREATE_NEW, &container, ERR));
    fails(esdm_container_set_stub(container, 0, 1, "/run", NULL, ERR), ESDM_EINVAL, "not 0");
    fails(esdm_container_set_stub(container, 1, 0, "/run", NULL, ERR), ESDM_EINVAL, "not 0");
    fails(esdm_container_set_stub(container, 1, 1, "run", NULL, ERR), ESDM_EINVAL, "whole path");
    check(esdm_container_stub(container, NULL) == 0);
    /* What somebody else has put into the hint is not believed. */
    static const char *const texts[] = {"",
                                        "0 ",
                                        "UUID",
                                        "UUID 0",
                                        "UUID 0 ",
                                        "UUID 0  - /run",
                                        "UUID 9 wrong.nc - /run",
                                        "UUID 18446744073709551616 wrong.nc - /run",
                                        "UUID 8 wrong.nc /run",
                                        "UUID 8 wrong.nc - run",
                                        "UUID 8 wrong.nc  /run",
                                        "UUID 8 wrong.nc"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char text[200];
        bool own = strncmp(texts[i], "UUID", 4) == 0;
        snprintf(text, sizeof text, "%s%s", own ? esdm_container_uuid(container) : "",
                 texts[i] + (own ? 4 : 0));
        ok(esdm_container_set_hint(container, ESDM_HINT_STUB_FOLDER, text, ERR));
        check(esdm_container_stub_folder(container) == NULL);
        check(!esdm_container_stub_is_at(container, "-") &&
              !esdm_container_stub_is_renamed(container));
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
    test_place_and_name_are_told();
    test_renames_are_told_when_all_are_gone();
    test_wrong_ones_are_refused();
    esdm_session_close(session);
    return 0;
}
