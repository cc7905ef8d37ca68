/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Stubs and routed folders; run with the router preloaded, over fake_core.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "creating.h"
#include "support.h"

static void
route_here(void)
{
    char here[256];
    (void) snprintf(here, sizeof(here), "/nonexistent:%s/routed=exp", folder);
    assert_int_equal(mkdir("routed", 0777), 0);
    (void) setenv("ESDM_NC_ROUTE", here, 1);
}

static void
test_route__creates_there_make_container_and_stub(void **state)
{
    (void) state;
    route_here();
    assert_int_equal(mkdir("routed/sub", 0777), 0);
    make("routed/sub/a.nc");
    assert_true(is_there("store/exp%sub%a.nc"));
    assert_true(is_there("routed/sub/a.nc"));
    make("elsewhere.nc");
    assert_false(logged("elsewhere"));
    int ncid;
    (void) unsetenv("ESDM_NC_ROUTE");
    assert_int_equal(nc_open("routed/sub/a.nc", NC_WRITE, &ncid), NC_NOERR);
    assert_true(logged("open 0 'exp/sub/a.nc' 0x1"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_route__folders_of_the_site_come_after_the_environment(void **state)
{
    (void) state;
    assert_int_equal(mkdir("routed", 0777), 0);
    assert_int_equal(mkdir("by_site", 0777), 0);
    char here[PATH_MAX];
    assert_non_null(getcwd(here, sizeof(here)));
    char site[PATH_MAX + 20];
    char environment[PATH_MAX + 20];
    (void) snprintf(site, sizeof(site), "%s", here);
    (void) snprintf(environment, sizeof(environment), "%s/routed=exp", here);
    (void) setenv("FAKE_CORE_ROUTE", site, 1);
    (void) setenv("ESDM_NC_ROUTE", environment, 1);
    make("routed/a.nc");
    make("by_site/b.nc");
    (void) unsetenv("FAKE_CORE_ROUTE");
    (void) unsetenv("ESDM_NC_ROUTE");
    assert_true(logged("'exp/a.nc'"));
    assert_true(logged("/by_site/b.nc'"));
    assert_false(logged("/routed/a.nc'"));
    assert_true(is_there("by_site/b.nc"));
}

static void
test_route__stubs_are_valid_files_without_esdm(void **state)
{
    (void) state;
    route_here();
    make("routed/a.nc");
    assert_int_equal(system("LD_PRELOAD= ncdump -h routed/a.nc > out 2>&1 && "
                            "grep -q 'esdm_container = \"exp/a.nc\"' out"),
                     0);
    assert_int_equal(system("LD_PRELOAD= ncdump -k routed/a.nc | grep -qx classic"), 0);
}

static void
test_route__noclobber_sees_stubs_and_files(void **state)
{
    (void) state;
    route_here();
    make("routed/a.nc");
    touch("routed/b.nc");
    int ncid;
    assert_int_equal(nc_create("routed/a.nc", NC_NOCLOBBER, &ncid), NC_EEXIST);
    assert_int_equal(nc_create("routed/b.nc", NC_NOCLOBBER, &ncid), NC_EEXIST);
    make("routed/b.nc");
    assert_int_equal(nc_open("routed/b.nc", NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_true(logged("open 0 'exp/b.nc'"));
}

static void
test_route__diskless_creates_leave_no_stub(void **state)
{
    (void) state;
    route_here();
    assert_int_equal(nc_close(create("routed/a.nc", NC_DISKLESS)), NC_NOERR);
    assert_true(logged("create 0 'exp/a.nc' 0x8"));
    assert_false(is_there("routed/a.nc"));
    assert_int_equal(nc_close(create("routed/a.nc", NC_DISKLESS | NC_PERSIST)), NC_NOERR);
    assert_true(is_there("routed/a.nc"));
}

static void
test_route__abort_takes_the_stub_away(void **state)
{
    (void) state;
    route_here();
    int ncid = create("routed/a.nc", NC_CLOBBER);
    assert_true(is_there("routed/a.nc"));
    assert_int_equal(nc_abort(ncid), NC_NOERR);
    assert_false(is_there("routed/a.nc"));
    make("routed/b.nc");
    assert_int_equal(nc_open("routed/b.nc", NC_WRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_abort(ncid), NC_NOERR);
    assert_true(is_there("routed/b.nc"));
}

static void
test_route__a_moved_stub_keeps_its_container(void **state)
{
    (void) state;
    route_here();
    make("routed/a.nc");
    assert_int_equal(rename("routed/a.nc", "moved.nc"), 0);
    make("routed/a.nc");
    int ncid;
    assert_int_equal(nc_open("moved.nc", NC_WRITE, &ncid), NC_NOERR);
    assert_true(logged("open 0 'exp/a.nc' 0x1"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(nc_open("routed/a.nc", NC_WRITE, &ncid), NC_NOERR);
    assert_true(logged("open 0 'exp/a.nc~2' 0x1"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    /* Moved back to a name that is taken by nobody's stub: it keeps its container. */
    assert_int_equal(unlink("routed/a.nc"), 0);
    assert_int_equal(rename("moved.nc", "routed/a.nc~2"), 0);
    assert_int_equal(nc_open("routed/a.nc~2", NC_WRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_false(logged("rename"));
}

static void
test_route__a_container_follows_its_stub_within_routed_folders(void **state)
{
    (void) state;
    route_here();
    make("routed/a.nc.pid1.tmp");
    assert_int_equal(rename("routed/a.nc.pid1.tmp", "routed/a.nc"), 0);
    assert_true(logged("rename 'exp/a.nc.pid1.tmp' 'exp/a.nc'"));
    int ncid;
    assert_int_equal(nc_open("routed/a.nc", NC_WRITE, &ncid), NC_NOERR);
    assert_true(logged("open 0 'exp/a.nc' 0x1"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    make("routed/a.nc.pid2.tmp");
    assert_int_equal(system("mv -f routed/a.nc.pid2.tmp routed/a.nc"), 0);
    assert_true(is_there("store/exp%a.nc"));
    assert_false(is_there("store/exp%a.nc.pid2.tmp"));
    assert_false(is_there("routed/a.nc.pid2.tmp"));
}

static void
test_route__a_move_that_was_cut_off_still_opens(void **state)
{
    (void) state;
    route_here();
    make("routed/a.tmp");
    assert_int_equal(rename("store/exp%a.tmp", "store/exp%a.nc"), 0);
    assert_int_equal(system("LD_PRELOAD= mv routed/a.tmp routed/a.nc"), 0);
    int ncid;
    assert_int_equal(nc_open("routed/a.nc", NC_WRITE, &ncid), NC_NOERR);
    assert_true(logged("open 0 'exp/a.nc' 0x1"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_route__a_copied_stub_does_not_alias(void **state)
{
    (void) state;
    route_here();
    make("routed/a.nc");
    copy_file("routed/a.nc", "routed/copy.nc");
    int ncid;
    assert_int_equal(nc_open("routed/copy.nc", NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(unlink("log"), 0);
    assert_int_equal(nc_open("routed/copy.nc", NC_WRITE, &ncid), NC_EPERM);
    assert_false(is_there("log"));
    make("routed/copy.nc"); /* overwriting it leaves the original alone */
    assert_true(logged("create 0 'exp/copy.nc'"));
    assert_int_equal(nc_delete("routed/copy.nc"), NC_NOERR);
    assert_true(is_there("store/exp%a.nc"));
    assert_false(is_there("store/exp%copy.nc"));
    copy_file("routed/a.nc", "copy.nc");
    make("copy.nc"); /* not routed: it becomes a plain file */
    assert_false(logged("create 0 'exp/a.nc'"));
}

static void
test_route__delete_takes_stub_and_container(void **state)
{
    (void) state;
    route_here();
    make("routed/a.nc");
    copy_file("routed/a.nc", "routed/copy.nc");
    assert_int_equal(nc_delete("routed/copy.nc"), NC_NOERR);
    assert_true(is_there("store/exp%a.nc"));
    assert_false(is_there("routed/copy.nc"));
    assert_int_equal(nc_delete("routed/a.nc"), NC_NOERR);
    assert_false(is_there("store/exp%a.nc"));
    assert_false(is_there("routed/a.nc"));
}

static void
test_route__folder_without_permission_gives_the_error(void **state)
{
    (void) state;
    int ncid;
    if (geteuid() == 0) {
        skip();
    }
    route_here();
    assert_int_equal(chmod("routed", 0555), 0);
    assert_int_equal(nc_create("routed/a.nc", NC_CLOBBER, &ncid), EACCES);
    assert_int_equal(chmod("routed", 0777), 0);
    assert_true(logged("abort"));
}

static void
test_route__damaged_stub_is_an_error(void **state)
{
    (void) state;
    FILE *file = fopen("bad.nc", "w");
    assert_non_null(file);
    (void) fwrite("CDF\001ESDMxxxxxxxxxxxxxxxxxxxxxxxx", 1, 32, file);
    (void) fclose(file);
    int ncid;
    assert_true(nc_open("bad.nc", NC_NOWRITE, &ncid) != NC_NOERR);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_route__creates_there_make_container_and_stub),
        TEST(test_route__folders_of_the_site_come_after_the_environment),
        TEST(test_route__stubs_are_valid_files_without_esdm),
        TEST(test_route__noclobber_sees_stubs_and_files),
        TEST(test_route__diskless_creates_leave_no_stub),
        TEST(test_route__abort_takes_the_stub_away),
        TEST(test_route__a_moved_stub_keeps_its_container),
        TEST(test_route__a_container_follows_its_stub_within_routed_folders),
        TEST(test_route__a_move_that_was_cut_off_still_opens),
        TEST(test_route__a_copied_stub_does_not_alias),
        TEST(test_route__delete_takes_stub_and_container),
        TEST(test_route__folder_without_permission_gives_the_error),
        TEST(test_route__damaged_stub_is_an_error),
    };
    return cmocka_run_group_tests_name("routes", tests, NULL, NULL);
}
