/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Several libnetcdf in one process, loaded RTLD_LOCAL as Python does it. Run with the router
 * preloaded; argv[1] is the folder that make_copies.py filled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <netcdf.h>
#include <netcdf_filter.h>

#include "support.h"

static char copies_folder[PATH_MAX];

typedef struct copy {
    __typeof__(&nc_create) create;
    __typeof__(&nc_open) open;
    __typeof__(&nc_close) close;
    __typeof__(&nc_inq_path) inq_path;
    __typeof__(&nc_inq_format_extended) inq_format_extended;
    __typeof__(&nc_set_default_format) set_default_format;
} copy;

static void *
load(const char *name)
{
    char path[PATH_MAX + 64];
    (void) snprintf(path, sizeof(path), "%s/%s", copies_folder, name);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fail_msg("%s", dlerror());
    }
    return handle;
}

static copy
bind_copy(void *handle)
{
    copy c;
    void *found[] = {dlsym(handle, "nc_create"),
                     dlsym(handle, "nc_open"),
                     dlsym(handle, "nc_close"),
                     dlsym(handle, "nc_inq_path"),
                     dlsym(handle, "nc_inq_format_extended"),
                     dlsym(handle, "nc_set_default_format")};
    memcpy(&c, found, sizeof(c));
    return c;
}

static void
test_copies__same_ncid_different_instances(void **state)
{
    (void) state;
    copy a = bind_copy(load("libnetcdf-plain.so"));
    copy b = bind_copy(load("libnetcdf-second.so"));
    assert_ptr_not_equal(a.create, b.create);
    int one = -1;
    int two = -1;
    assert_int_equal(a.create("esdm://one", NC_NETCDF4, &one), NC_NOERR);
    assert_int_equal(b.create("esdm://two", NC_NETCDF4, &two), NC_NOERR);
    assert_int_equal(one, two);
    assert_int_equal(a.close(one), NC_NOERR);
    assert_int_equal(b.close(two), NC_NOERR);
    assert_true(logged("table 0 ") && logged("table 1 "));
    assert_true(logged("create 0 'one'") && logged("create 1 'two'"));
    assert_true(logged("close 0") && logged("close 1"));
}

/* The public calls of the process, as a program sees them that was linked with the symbolic copy:
 * the router's come first. Its own dlsym() would get the copy's, which nothing can hook. */
static void
test_copies__second_layer_serves_symbolic_ones(void **state)
{
    (void) state;
    char path[NC_MAX_NAME + 1];
    size_t length = 0;
    int ncid = -1;
    int format = 0;
    void *module = load("libuser-symbolic.so");
    __typeof__(&nc_create) create = (__typeof__(&nc_create)) dlsym(module, "user_create");
    __typeof__(&nc_open) open_it = (__typeof__(&nc_open)) dlsym(module, "user_open");
    copy direct = bind_copy(module);
    assert_non_null(create);
    assert_int_equal(create("esdm://s/a.nc", NC_64BIT_DATA, &ncid), NC_NOERR);
    assert_true(logged("create 2 's/a.nc' 0x20"));
    assert_int_equal(direct.inq_format_extended(ncid, &format, NULL), NC_NOERR);
    assert_int_equal(format, NC_FORMATX_UDF0);
    assert_int_equal(direct.inq_path(ncid, &length, path), NC_NOERR);
    assert_string_equal(path, "esdm:s/a.nc");
    assert_int_equal(direct.close(ncid), NC_NOERR);
    assert_int_equal(direct.set_default_format(NC_FORMAT_NETCDF4, NULL), NC_NOERR);
    assert_int_equal(create("esdm://s/b.nc", NC_CLOBBER, &ncid), NC_NOERR);
    assert_true(logged("create 2 's/b.nc' 0x1000"));
    assert_int_equal(direct.close(ncid), NC_NOERR);
    assert_int_equal(direct.set_default_format(NC_FORMAT_CLASSIC, NULL), NC_NOERR);
    assert_int_equal(create("esdm://s/b.nc", NC_NETCDF4 | NC_64BIT_DATA, &ncid), NC_EINVAL);
    assert_int_equal(create("esdm://s/b.nc", NC_NOCLOBBER, &ncid), NC_EEXIST);
    assert_int_equal(open_it("esdm:///s/a.nc", NC_WRITE, &ncid), NC_NOERR);
    assert_true(logged("open 2 's/a.nc' 0x1"));
    assert_int_equal(direct.close(ncid), NC_NOERR);
    assert_int_equal(open_it("esdm://missing", NC_NOWRITE, &ncid), ENOENT);
    /* stubs and routed folders */
    char route[256];
    (void) snprintf(route, sizeof(route), "%s=r", folder);
    (void) setenv("ESDM_NC_ROUTE", route, 1);
    assert_int_equal(create("stub.nc", NC_CLOBBER, &ncid), NC_NOERR);
    assert_int_equal(direct.close(ncid), NC_NOERR);
    assert_true(logged("create 2 'r/stub.nc' 0x0"));
    (void) unsetenv("ESDM_NC_ROUTE");
    assert_int_equal(open_it("stub.nc", NC_NOWRITE, &ncid), NC_NOERR);
    assert_true(logged("open 2 'r/stub.nc' 0x0"));
    assert_int_equal(direct.close(ncid), NC_NOERR);
    /* plain files */
    assert_int_equal(create("plain.nc", NC_CLOBBER, &ncid), NC_NOERR);
    assert_int_equal(direct.close(ncid), NC_NOERR);
    assert_int_equal(open_it("plain.nc", NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(direct.inq_format_extended(ncid, &format, NULL), NC_NOERR);
    assert_int_equal(format, NC_FORMATX_NC3);
    assert_int_equal(direct.close(ncid), NC_NOERR);
}

int
main(int argc, char **argv)
{
    (void) snprintf(copies_folder, sizeof(copies_folder), "%s", argc > 1 ? argv[1] : ".");
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_copies__same_ncid_different_instances),
        TEST(test_copies__second_layer_serves_symbolic_ones),
    };
    return cmocka_run_group_tests_name("copies", tests, NULL, NULL);
}
