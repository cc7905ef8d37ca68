/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Run with the router preloaded, over fake_core.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netcdf.h>
#include <sys/xattr.h>

#include "support.h"

static void
test_stat__containers_look_like_files(void **state)
{
    (void) state;
    touch("store/exp%a.nc");
    char absolute[256];
    (void) snprintf(absolute, sizeof(absolute), "%s/esdm:/exp/a.nc", folder);
    const char *const paths[] = {"esdm://exp/a.nc", "esdm:/exp/a.nc", absolute};
    for (size_t i = 0; i < 3; i++) {
        struct stat st;
        struct stat64 st64;
        struct statx stx;
        assert_int_equal(stat(paths[i], &st), 0);
        assert_true(S_ISREG(st.st_mode));
        assert_int_equal(st.st_size, 12345);
        assert_int_equal(st.st_mtim.tv_sec, 1700000000);
        assert_int_equal(st.st_mtim.tv_nsec, 5);
        assert_int_equal(lstat(paths[i], &st), 0);
        assert_int_equal(stat64(paths[i], &st64), 0);
        assert_int_equal(st64.st_ino, st.st_ino);
        assert_int_equal(lstat64(paths[i], &st64), 0);
        assert_int_equal(fstatat(AT_FDCWD, paths[i], &st, 0), 0);
        assert_int_equal(statx(AT_FDCWD, paths[i], 0, STATX_ALL, &stx), 0);
        assert_int_equal(stx.stx_size, 12345);
        assert_int_equal(stx.stx_btime.tv_sec, 1600000000);
        assert_int_equal(stx.stx_ino, st.st_ino);
    }
}

static void
test_stat__missing_ones_do_not_exist(void **state)
{
    (void) state;
    struct stat st;
    memset(&st, 7, sizeof(st));
    assert_int_equal(stat("esdm://exp/a.nc", &st), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(st.st_size, 0x0707070707070707);
    assert_int_equal(access("esdm://exp/a.nc", F_OK), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(stat("/nonexistent/esdm:/x", &st), -1);
    assert_int_equal(errno, ENOENT);
}

static void
test_stat__root_is_a_folder(void **state)
{
    (void) state;
    struct stat st;
    assert_int_equal(stat("esdm://", &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(access("esdm:", X_OK), 0);
    assert_int_equal(open("esdm://", O_RDONLY), -1);
    assert_int_equal(unlink("esdm://"), -1);
    assert_int_equal(errno, EISDIR);
}

static void
test_stat__folders_exist_by_what_lies_below(void **state)
{
    (void) state;
    struct stat st;
    touch("store/exp%run1%a.nc");
    assert_int_equal(stat("esdm://exp/run1", &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(stat("esdm://exp/", &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(stat("esdm://exp/run", &st), -1);
    assert_int_equal(errno, ENOENT);
    int ncid;
    assert_int_equal(nc_create("esdm://new/sub/b.nc", NC_CLOBBER, &ncid), NC_NOERR);
    assert_int_equal(remove("store/new%sub%b.nc"), 0); /* as if not committed yet */
    assert_int_equal(stat("esdm://new", &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(stat("esdm://new", &st), -1);
}

static void
test_mkdir__has_nothing_to_do(void **state)
{
    (void) state;
    touch("store/exp%a.nc");
    assert_int_equal(mkdir("esdm://new", 0777), 0);
    assert_int_equal(mkdir("esdm://exp", 0777), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(mkdir("esdm://exp/a.nc", 0777), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(mkdir("esdm:", 0777), -1);
    assert_int_equal(mkdirat(AT_FDCWD, "esdm:/other", 0777), 0);
    assert_false(is_there("./esdm:"));
}

static void
test_chmod__only_what_holds_anyway(void **state)
{
    (void) state;
    touch("store/a");
    assert_int_equal(chmod("esdm://a", 0644), 0);
    assert_int_equal(chmod("esdm://a", 0444), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(chmod("esdm://b", 0644), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(system("chmod u+w esdm://a"), 0);
}

static void
test_stat__too_long_names_are_errors(void **state)
{
    (void) state;
    char path[2048] = "esdm://";
    memset(path + 7, 'x', 1500);
    struct stat st;
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(errno, ENAMETOOLONG);
}

static void
test_access__no_execution(void **state)
{
    (void) state;
    touch("store/a");
    assert_int_equal(access("esdm://a", R_OK | W_OK), 0);
    assert_int_equal(euidaccess("esdm://a", R_OK), 0);
    assert_int_equal(faccessat(AT_FDCWD, "esdm://a", R_OK, 0), 0);
    assert_int_equal(access("esdm://a", X_OK), -1);
    assert_int_equal(errno, EACCES);
}

static void
test_open__reading_gives_stub_bytes(void **state)
{
    (void) state;
    touch("store/a");
    char bytes[1024];
    int fd = open("esdm://a", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(read(fd, bytes, sizeof(bytes)) > 100);
    assert_memory_equal(bytes, "CDF\001ESDM", 8);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(close(fd), 0);
    FILE *file = fopen("esdm://a", "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, 8, file), 8);
    assert_memory_equal(bytes, "CDF\001ESDM", 8);
    assert_int_equal(fclose(file), 0);
}

static void
test_open__copied_bytes_are_a_stub_that_reads(void **state)
{
    (void) state;
    int ncid;
    touch("store/exp%a");
    copy_file("esdm://exp/a", "copy.nc");
    assert_int_equal(nc_open("copy.nc", NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_true(logged("open 0 'exp/a' 0x0"));
    assert_int_equal(nc_open("copy.nc", NC_WRITE, &ncid), NC_EPERM);
}

static void
test_open__bytes_look_like_the_format(void **state)
{
    (void) state;
    const struct {
        const char *name;
        const char *kind;
    } cases[] = {
        {"a", "classic"}, {"a.cdf2", "64-bit offset"}, {"a.cdf5", "cdf5"}, {"a.nc4", "netCDF-4"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[64];
        char command[128];
        int ncid;
        (void) snprintf(path, sizeof(path), "store/%s", cases[i].name);
        touch(path);
        (void) snprintf(path, sizeof(path), "esdm://%s", cases[i].name);
        copy_file(path, "copy.nc");
        /* A valid empty file of that kind without ESDM … */
        (void) snprintf(command, sizeof(command), "LD_PRELOAD= ncdump -k copy.nc | grep -qx '%s'",
                        cases[i].kind);
        assert_int_equal(system(command), 0);
        assert_int_equal(system("LD_PRELOAD= ncdump copy.nc >/dev/null"), 0);
        /* … and the container with it. */
        assert_int_equal(nc_open("copy.nc", NC_NOWRITE, &ncid), NC_NOERR);
        assert_int_equal(nc_close(ncid), NC_NOERR);
        (void) snprintf(command, sizeof(command), "open 0 '%s' 0x0", cases[i].name);
        assert_true(logged(command));
    }
}

/* Reads the magic, and cannot change anything. Closes it. */
static void
expect_unwritable(int fd, const char *magic)
{
    char bytes[4];
    struct stat st;
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    assert_int_equal(read(fd, bytes, 4), 4);
    assert_memory_equal(bytes, magic, 4);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(write(fd, "text", 4), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(lseek(fd, 0, SEEK_END), st.st_size);
    assert_int_equal(write(fd, "text", 4), -1);
    assert_int_equal(pread(fd, bytes, 4, 0), 4);
    assert_memory_equal(bytes, magic, 4);
    assert_int_equal(close(fd), 0);
}

/* As GDAL does with what it has written. */
static void
test_open__updates_fail_at_the_first_write(void **state)
{
    (void) state;
    touch("store/a");
    expect_unwritable(open("esdm://a", O_RDWR), "CDF\001");
    expect_unwritable(openat(AT_FDCWD, "esdm://a", O_RDWR | O_CLOEXEC), "CDF\001");
    char bytes[8];
    FILE *file = fopen("esdm://a", "r+b");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, 8, file), 8);
    assert_memory_equal(bytes, "CDF\001ESDM", 8);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    (void) fwrite("text", 1, 4, file);
    assert_int_equal(fflush(file), EOF);
    (void) fclose(file);
    int fd = open("esdm://a", O_RDONLY);
    assert_int_equal(write(fd, "text", 4), -1);
    assert_int_equal(close(fd), 0);
    assert_int_equal(open("esdm://absent", O_RDWR), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(open("esdm://", O_RDWR), -1);
    assert_int_equal(errno, EISDIR);
}

/* This program links libnetcdf: of stub files, too, it sees bytes of the container's format. */
static void
test_open__stub_files_look_like_the_format(void **state)
{
    (void) state;
    char bytes[4];
    char command[300];
    touch("store/a.cdf2");
    copy_file("esdm://a.cdf2", "bytes");
    (void) setenv("ESDM_NC_ROUTE", folder, 1);
    int ncid;
    assert_int_equal(nc_create("a.cdf2", NC_CLOBBER, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    (void) unsetenv("ESDM_NC_ROUTE");

    int fd = open("a.cdf2", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, bytes, 4), 4);
    assert_memory_equal(bytes, "CDF\002", 4);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(close(fd), 0);
    fd = openat(AT_FDCWD, "a.cdf2", O_RDONLY);
    assert_int_equal(read(fd, bytes, 4), 4);
    assert_memory_equal(bytes, "CDF\002", 4);
    assert_int_equal(close(fd), 0);
    FILE *file = fopen("a.cdf2", "rb");
    assert_int_equal(fread(bytes, 1, 4, file), 4);
    assert_memory_equal(bytes, "CDF\002", 4);
    assert_int_equal(fclose(file), 0);
    expect_unwritable(open("a.cdf2", O_RDWR), "CDF\002");
    file = fopen("a.cdf2", "r+b");
    assert_non_null(file);
    expect_unwritable(dup(fileno(file)), "CDF\002");
    assert_int_equal(fclose(file), 0);
    /* Programs that do not link it see the stub that is there; so does the router itself. */
    (void) snprintf(command, sizeof(command), "head -c 8 a.cdf2 | cmp - <(printf 'CDF\\1ESDM')");
    char shell[400];
    (void) snprintf(shell, sizeof(shell), "bash -c \"%s\"", command);
    assert_int_equal(system(shell), 0);
    assert_int_equal(nc_open("a.cdf2", NC_WRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_open__writing_bytes_is_refused(void **state)
{
    (void) state;
    touch("store/a");
    assert_int_equal(open("esdm://a", O_WRONLY), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(open("esdm://a", O_RDWR | O_TRUNC), -1);
    assert_int_equal(open("esdm://a", O_RDWR | O_APPEND), -1);
    assert_int_equal(open("esdm://new", O_WRONLY | O_CREAT, 0666), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(open("esdm://new", O_RDONLY), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(open("esdm://a", O_WRONLY | O_CREAT | O_EXCL, 0666), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(open("esdm://a", O_RDONLY | O_DIRECTORY), -1);
    assert_int_equal(errno, ENOTDIR);
    assert_null(fopen("esdm://a", "a+"));
    assert_null(fopen("esdm://a", "w"));
    assert_int_equal(creat("esdm://a", 0666), -1);
    assert_true(is_there("store/a"));
    assert_false(is_there("store/new"));
}

static void
test_rename__renames_containers(void **state)
{
    (void) state;
    touch("store/exp%a.pid1.tmp");
    assert_int_equal(rename("esdm://exp/a.pid1.tmp", "esdm:/exp/a"), 0);
    assert_true(is_there("store/exp%a"));
    assert_int_equal(renameat(AT_FDCWD, "esdm://exp/a", AT_FDCWD, "esdm://exp/b"), 0);
    touch("store/c");
    assert_int_equal(renameat2(AT_FDCWD, "esdm://exp/b", AT_FDCWD, "esdm://c", 1), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(renameat2(AT_FDCWD, "esdm://exp/b", AT_FDCWD, "esdm://c", 0), 0);
    assert_int_equal(rename("esdm://missing", "esdm://x"), -1);
    assert_int_equal(errno, ENOENT);
    char from[256];
    char to[256];
    (void) snprintf(from, sizeof(from), "%s/esdm:/c", folder);
    (void) snprintf(to, sizeof(to), "%s/esdm:/d", folder);
    assert_int_equal(rename(from, to), 0);
    assert_true(is_there("store/d"));
}

static void
test_rename__never_between_container_and_file(void **state)
{
    (void) state;
    touch("store/a");
    touch("file");
    assert_int_equal(rename("file", "esdm://a"), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_true(is_there("file"));
    assert_int_equal(rename("esdm://a", "moved"), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    /* What a program does next when it copies and removes instead must not lose the data. */
    assert_int_equal(unlink("esdm://a"), -1);
    assert_true(is_there("store/a"));
}

static void
test_unlink__removes_containers(void **state)
{
    (void) state;
    touch("store/u1");
    touch("store/u2");
    touch("store/u3");
    assert_int_equal(unlink("esdm://u1"), 0);
    assert_int_equal(remove("esdm:/u2"), 0);
    assert_int_equal(unlinkat(AT_FDCWD, "esdm:///u3", AT_REMOVEDIR), -1);
    assert_int_equal(unlinkat(AT_FDCWD, "esdm:///u3", 0), 0);
    assert_false(is_there("store/u1") || is_there("store/u2") || is_there("store/u3"));
    assert_int_equal(unlink("esdm://u1"), -1);
    assert_int_equal(errno, ENOENT);
}

static void
test_realpath__keeps_esdm_paths(void **state)
{
    (void) state;
    char buffer[PATH_MAX];
    char *path = realpath("esdm://exp/../a", NULL);
    assert_string_equal(path, "esdm://exp/../a");
    free(path);
    assert_ptr_equal(realpath("esdm://b", buffer), buffer);
    assert_string_equal(buffer, "esdm://b");
    assert_ptr_equal(realpath("/tmp/..", buffer), buffer);
    assert_string_equal(buffer, "/");
    assert_null(realpath("/nonexistent/x", buffer));
    path = canonicalize_file_name("esdm://c");
    assert_string_equal(path, "esdm://c");
    free(path);
}

static void
test_xattr__containers_have_none(void **state)
{
    (void) state;
    char value[16];
    touch("store/a");
    assert_int_equal(getxattr("esdm://a", "user.x", value, sizeof(value)), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(listxattr("esdm://b", value, sizeof(value)), -1);
    assert_int_equal(errno, ENOENT);
}

static void
test_shim__other_paths_are_untouched(void **state)
{
    (void) state;
    struct stat st;
    assert_int_equal(stat("esdm", &st), -1);
    int fd = open("plain", O_RDWR | O_CREAT | O_EXCL, 0640);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    mode_t mask = umask(0);
    (void) umask(mask);
    assert_int_equal(st.st_mode & 0777, 0640 & ~mask);
    assert_int_equal(close(fd), 0);
    assert_int_equal(rename("plain", "other"), 0);
    FILE *file = fopen("other", "r+");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(access("other", R_OK), 0);
    assert_int_equal(remove("other"), 0);
    assert_int_equal(mkdir("d", 0777), 0);
    assert_int_equal(unlinkat(AT_FDCWD, "d", AT_REMOVEDIR), 0);
    assert_false(is_there("log"));
}

static void
test_shim__programs_see_containers(void **state)
{
    (void) state;
    touch("store/a.pid7.tmp");
    assert_int_equal(system("mv -f esdm://a.pid7.tmp esdm://a"), 0);
    assert_true(is_there("store/a"));
    assert_int_equal(system("test -f esdm://a && ls -l esdm://a >out 2>&1 && grep -q 12345 out"),
                     0);
    assert_true(system("mv esdm://a gone.nc 2>/dev/null") != 0);
    assert_true(is_there("store/a"));
    assert_true(system("cp out esdm://b 2>/dev/null") != 0);
    assert_int_equal(system("rm -f esdm://a"), 0);
    assert_false(is_there("store/a"));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_stat__containers_look_like_files),
        TEST(test_stat__missing_ones_do_not_exist),
        TEST(test_stat__root_is_a_folder),
        TEST(test_stat__folders_exist_by_what_lies_below),
        TEST(test_mkdir__has_nothing_to_do),
        TEST(test_chmod__only_what_holds_anyway),
        TEST(test_stat__too_long_names_are_errors),
        TEST(test_access__no_execution),
        TEST(test_open__reading_gives_stub_bytes),
        TEST(test_open__copied_bytes_are_a_stub_that_reads),
        TEST(test_open__bytes_look_like_the_format),
        TEST(test_open__stub_files_look_like_the_format),
        TEST(test_open__updates_fail_at_the_first_write),
        TEST(test_open__writing_bytes_is_refused),
        TEST(test_rename__renames_containers),
        TEST(test_rename__never_between_container_and_file),
        TEST(test_unlink__removes_containers),
        TEST(test_realpath__keeps_esdm_paths),
        TEST(test_xattr__containers_have_none),
        TEST(test_shim__other_paths_are_untouched),
        TEST(test_shim__programs_see_containers),
    };
    return cmocka_run_group_tests_name("shim", tests, NULL, NULL);
}
