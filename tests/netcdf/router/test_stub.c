/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Stub files, written, copied, replaced and damaged; which paths and routed folders lead to
 * containers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "router/router.h"
#include "support.h"

static void
put_file(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static size_t
get_file(const char *path, unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t n = fread(bytes, 1, size, file);
    assert_int_equal(fclose(file), 0);
    return n;
}

static void
test_stub__reads_back_what_was_written(void **state)
{
    (void) state;
    esdmnc__stub stub;
    assert_int_equal(esdmnc__stub_write("a.nc", "exp/ä b.nc", 7, 9, ""), 0);
    assert_int_equal(esdmnc__stub_read("a.nc", &stub), NC_NOERR);
    assert_string_equal(stub.container, "exp/ä b.nc");
    assert_true(stub.is_original);
    assert_int_equal(stub.number, 7);
    assert_int_equal(stub.version, 9);
    assert_string_equal(stub.site, "");
    DIR *here = opendir(".");
    size_t files = 0;
    for (struct dirent *entry; (entry = readdir(here));) {
        files += entry->d_name[0] != '.';
    }
    assert_int_equal(closedir(here), 0);
    assert_int_equal(files, 2); /* the stub and the folder of the fixture */
}

static void
test_stub__tells_its_site_after_the_first_commit(void **state)
{
    (void) state;
    static const char site[] = "0123456789abcdef0123456789abcdef";
    esdmnc__stub stub;
    struct stat before;
    struct stat after;
    assert_int_equal(esdmnc__stub_write("a.nc", "x", 7, 9, ESDMNC_SITE_NONE), 0);
    assert_int_equal(esdmnc__stub_read("a.nc", &stub), NC_NOERR);
    assert_string_equal(stub.site, ESDMNC_SITE_NONE);
    assert_int_equal(stat("a.nc", &before), 0);
    assert_int_equal(esdmnc__stub_settle("a.nc", site), NC_NOERR);
    assert_int_equal(esdmnc__stub_renew("a.nc", 10), NC_NOERR);
    assert_int_equal(stat("a.nc", &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(esdmnc__stub_read("a.nc", &stub), NC_NOERR);
    assert_string_equal(stub.site, site);
    assert_string_equal(stub.container, "x");
    assert_int_equal(stub.number, 7);
    assert_int_equal(stub.version, 10);
    /* One of an earlier ESDM tells none, and nothing is written into it. */
    assert_int_equal(esdmnc__stub_write("a.nc", "esdm_site", 7, 9, ""), 0);
    assert_int_equal(esdmnc__stub_settle("a.nc", site), ENOENT);
    assert_int_equal(esdmnc__stub_read("a.nc", &stub), NC_NOERR);
    assert_string_equal(stub.container, "esdm_site");
    assert_int_equal(unlink("a.nc"), 0);
}

static void
test_stub__longest_name_fits(void **state)
{
    (void) state;
    char name[ESDMNC_NAME_MAX + 2];
    esdmnc__stub stub;
    memset(name, 'n', sizeof(name));
    name[ESDMNC_NAME_MAX] = '\0';
    assert_int_equal(esdmnc__stub_write("a.nc", name, 7, 9, ""), 0);
    assert_int_equal(esdmnc__stub_read("a.nc", &stub), NC_NOERR);
    assert_string_equal(stub.container, name);
    unsigned char bytes[64];
    assert_int_equal(esdmnc__stub_bytes(name, NC_FORMAT_CLASSIC, bytes, sizeof(bytes)), 0);
    assert_int_equal(esdmnc__stub_bytes(name, NC_FORMAT_NETCDF4, bytes, sizeof(bytes)), 0);
}

/** Whoever copies the bytes that an `esdm:` path shows can be told what they are. */
static void
test_stub__shapes_tell_what_they_are(void **state)
{
    (void) state;
    static const struct {
        int format;
        const char *kind;
    } shapes[] = {{NC_FORMAT_CLASSIC, "classic"},
                  {NC_FORMAT_64BIT_OFFSET, "64-bit offset"},
                  {NC_FORMAT_64BIT_DATA, "cdf5"},
                  {NC_FORMAT_NETCDF4, "netCDF-4"}};
    static const char *const names[] = {"x", "exp/ä b.nc", "0123456789/0123456789/0123456789.nc"};
    unsigned char bytes[ESDMNC_STUB_MAX];
    char command[256];
    esdmnc__stub stub;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) * 3; i++) {
        const char *name = names[i % 3];
        size_t size = esdmnc__stub_bytes(name, shapes[i / 3].format, bytes, sizeof(bytes));
        assert_true(size > 0);
        put_file("copy.nc", bytes, size);
        assert_int_equal(esdmnc__stub_parse(bytes, size, &stub), NC_NOERR);
        assert_string_equal(stub.container, name);
        assert_int_equal(esdmnc__stub_read("copy.nc", &stub), NC_NOERR);
        assert_string_equal(stub.container, name);
        assert_false(stub.is_original);
        (void) snprintf(command, sizeof(command),
                        "LD_PRELOAD= ncdump -k copy.nc | grep -qx '%s' && LD_PRELOAD= ncdump -h "
                        "copy.nc >out && grep -q 'esdm_container = \"%s\"' out && grep -q "
                        "'esdm_notice = .*esdm-cp THIS_FILE' out",
                        shapes[i / 3].kind, name);
        assert_int_equal(system(command), 0);
        bool exact = shapes[i / 3].format != NC_FORMAT_CLASSIC;
        bytes[size] = 0; /* a longer file that happens to hold a stub */
        assert_int_equal(esdmnc__stub_parse(bytes, size + 4, &stub), exact ? ENOENT : NC_NOERR);
    }
}

static void
test_stub__copy_is_no_original(void **state)
{
    (void) state;
    esdmnc__stub stub;
    assert_int_equal(esdmnc__stub_write("a.nc", "x", 7, 9, ""), 0);
    copy_file("a.nc", "b.nc");
    assert_int_equal(esdmnc__stub_read("b.nc", &stub), NC_NOERR);
    assert_false(stub.is_original);
    esdmnc__stub_drop("b.nc", "x");
    assert_true(is_there("b.nc"));
    esdmnc__stub_drop("a.nc", "y");
    assert_true(is_there("a.nc"));
    esdmnc__stub_drop("a.nc", "x");
    assert_false(is_there("a.nc"));
}

static void
test_stub__replaces_in_one_step(void **state)
{
    (void) state;
    esdmnc__stub stub;
    put_file("a.nc", (const unsigned char *) "data", 4);
    assert_int_equal(esdmnc__stub_write("a.nc", "x", 7, 9, ""), 0);
    assert_int_equal(esdmnc__stub_read("a.nc", &stub), NC_NOERR);
    assert_int_equal(esdmnc__stub_write("missing/a.nc", "x", 7, 9, ""), ENOENT);
}

static void
test_stub__other_files_are_none(void **state)
{
    (void) state;
    esdmnc__stub stub = {.container = "kept"};
    put_file("short", (const unsigned char *) "CDF\001ES", 6);
    put_file("classic", (const unsigned char *) "CDF\001\0\0\0\0\0\0\0\0", 12);
    assert_int_equal(esdmnc__stub_read("short", &stub), ENOENT);
    assert_int_equal(esdmnc__stub_read("classic", &stub), ENOENT);
    assert_int_equal(esdmnc__stub_read("missing", &stub), ENOENT);
    assert_int_equal(esdmnc__stub_read(".", &stub), ENOENT);
    assert_int_equal(mkfifo("fifo", 0666), 0);
    assert_int_equal(esdmnc__stub_read("fifo", &stub), ENOENT);
    assert_string_equal(stub.container, "kept");
}

/** Every cut and every single changed byte: never a crash (sanitizers look), never garbage taken
 *  for an original. */
static void
test_stub__damage_is_noticed_or_harmless(void **state)
{
    (void) state;
    unsigned char whole[ESDMNC_STUB_MAX];
    unsigned char bytes[ESDMNC_STUB_MAX];
    esdmnc__stub stub;
    assert_int_equal(esdmnc__stub_write("a.nc", "exp/x", 7, 9, ""), 0);
    size_t size = get_file("a.nc", whole, sizeof(whole));
    for (size_t cut = 8; cut < size - 8; cut++) {
        put_file("cut.nc", whole, cut);
        int status = esdmnc__stub_read("cut.nc", &stub);
        assert_int_equal(status, NC_ENOTNC);
    }
    for (size_t at = 8; at < size; at++) {
        memcpy(bytes, whole, size);
        bytes[at] ^= 0xff;
        put_file("changed.nc", bytes, size);
        int status = esdmnc__stub_read("changed.nc", &stub);
        assert_true(status == NC_NOERR || status == NC_ENOTNC);
        assert_true(status != NC_NOERR || !stub.is_original);
    }
}

static void
test_path__names(void **state)
{
    (void) state;
    char name[ESDMNC_NAME_MAX + 1];
    assert_non_null(esdmnc__path_prefixed("esdm:"));
    assert_null(esdmnc__path_prefixed("esdm"));
    assert_null(esdmnc__path_prefixed("./esdm:x"));
    assert_null(esdmnc__path_prefixed("/a/esdm:x"));
    assert_string_equal(esdmnc__path_prefixed("/no/such/esdm:/x/y"), "esdm:/x/y");
    assert_int_equal(esdmnc__path_container("esdm:///a//b/", name, sizeof(name)), NC_NOERR);
    assert_string_equal(name, "a//b");
    assert_int_equal(esdmnc__path_container("esdm://abc", name, 3), NC_EMAXNAME);
    assert_int_equal(esdmnc_resolve("esdm://abc", name, 3), NC_EMAXNAME);
    assert_int_equal(esdmnc_resolve("/nowhere", name, sizeof(name)), ENOENT);
    assert_int_equal(esdmnc_resolve(NULL, name, sizeof(name)), ENOENT);
}

static void
test_route__longest_match_is_the_first_entry(void **state)
{
    (void) state;
    char name[ESDMNC_NAME_MAX + 1];
    char routes[1024];
    char path[256];
    assert_int_equal(mkdir("r", 0777), 0);
    assert_int_equal(mkdir("r/s", 0777), 0);
    assert_int_equal(mkdir("rr", 0777), 0);
    assert_int_equal(symlink("r", "link"), 0);
    (void) snprintf(routes, sizeof(routes), ":%s/r/s=inner/:%s/r/=/outer:%s/x", folder, folder,
                    folder);
    (void) setenv("ESDM_NC_ROUTE", routes, 1);
    assert_int_equal(esdmnc__route_container("r/s/a", name, sizeof(name)), NC_NOERR);
    assert_string_equal(name, "inner//a");
    (void) snprintf(path, sizeof(path), "%s/link/./a", folder);
    assert_int_equal(esdmnc__route_container(path, name, sizeof(name)), NC_NOERR);
    assert_string_equal(name, "outer/a");
    assert_int_equal(esdmnc__route_container("rr/a", name, sizeof(name)), ENOENT);
    assert_int_equal(esdmnc__route_container("r/..", name, sizeof(name)), ENOENT);
    assert_int_equal(esdmnc__route_container("r/", name, sizeof(name)), ENOENT);
    assert_int_equal(esdmnc__route_container("nodir/a", name, sizeof(name)), ENOENT);
    (void) snprintf(routes, sizeof(routes), "%s/r", folder);
    (void) setenv("ESDM_NC_ROUTE", routes, 1);
    assert_int_equal(esdmnc__route_container("r/a", name, sizeof(name)), NC_NOERR);
    (void) snprintf(path, sizeof(path), "%s/r/a", folder + 1);
    assert_string_equal(name, path);
    assert_int_equal(esdmnc__route_container("r/a", name, 5), NC_EMAXNAME);
    (void) setenv("ESDM_NC_ROUTE", "/", 1);
    assert_int_equal(esdmnc__route_container("r/a", name, sizeof(name)), NC_NOERR);
    assert_string_equal(name, path);
}

static void
expect_route(const char *routes, const char *path, const char *expected)
{
    char name[ESDMNC_NAME_MAX + 1] = "";
    (void) setenv("ESDM_NC_ROUTE", routes, 1);
    int status = esdmnc__route_container(path, name, sizeof(name));
    assert_int_equal(status, expected ? NC_NOERR : ENOENT);
    assert_string_equal(name, expected ? expected : "");
}

static void
test_route__patterns(void **state)
{
    (void) state;
    char routes[1024];
    char whole[256];
    char at[PATH_MAX];
    assert_int_equal(system("mkdir -p r1/out r2/out/deep r3/in 'r[1]/out'; mkfifo r1/out/fifo"), 0);
    expect_route("r?/out=exp", "r1/out/a", "exp/r1/out/a");
    expect_route("r?/out/=exp", "r2/out/deep/a", "exp/r2/out/deep/a");
    expect_route("r?/out=exp", "r3/in/a", NULL);
    expect_route("r?/out=exp", "r1/a", NULL);
    expect_route("./r[12]/*.nc=n:*.nc=/m", "r2/a.nc", "n/r2/a.nc");
    expect_route("./r[12]/*.nc=n:*.nc=/m", "r2/out/a.nc", NULL);
    expect_route("./r[12]/*.nc=n:*.nc=/m", "a.nc", "m/a.nc");
    expect_route("r[1]=literal", "r[1]/out/a", "literal/out/a"); /* a folder that is there */
    expect_route("r[1]=literal", "r1/out/a", NULL);
    (void) snprintf(routes, sizeof(routes), "%s/r*/out", folder);
    (void) snprintf(whole, sizeof(whole), "%s/r1/out/a", folder + 1);
    expect_route(routes, "r1/out/a", whole);
    expect_route("*", "r1/out/a", whole);
    expect_route("nowhere:*", "r1/out/a", whole);
    (void) snprintf(whole, sizeof(whole), "all/%s/r3/in/a", folder + 1);
    expect_route("*=all", "r3/in/a", whole);
    expect_route("/=all", "r3/in/a", whole);
    for (const char *const *other = (const char *const[]){"r1/out/fifo", "r1/out", "/dev/null",
                                                          "/dev/stdout", "/proc/self/fd/1", NULL};
         *other != NULL; other++) {
        expect_route("*", *other, NULL);
    }
    (void) setenv("ESDM_NC_ROUTE", "r?/*.nc", 1);
    char name[ESDMNC_NAME_MAX + 1];
    assert_int_equal(esdmnc__route("r1/a.nc", name, sizeof(name), at), NC_NOERR);
    (void) snprintf(whole, sizeof(whole), "%s/r1", folder);
    assert_string_equal(at, whole);
    (void) setenv("ESDM_NC_ROUTE", "r?", 1);
    assert_int_equal(esdmnc__route("r1/out/a.nc", name, sizeof(name), at), NC_NOERR);
    assert_string_equal(at, whole);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_stub__reads_back_what_was_written),
        TEST(test_stub__tells_its_site_after_the_first_commit),
        TEST(test_stub__longest_name_fits),
        TEST(test_stub__shapes_tell_what_they_are),
        TEST(test_stub__copy_is_no_original),
        TEST(test_stub__replaces_in_one_step),
        TEST(test_stub__other_files_are_none),
        TEST(test_stub__damage_is_noticed_or_harmless),
        TEST(test_path__names),
        TEST(test_route__longest_match_is_the_first_entry),
        TEST(test_route__patterns),
    };
    return cmocka_run_group_tests_name("stub", tests, NULL, NULL);
}
