/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What ESDM refuses and netCDF does not: what becomes of containers, and what is told on stderr. */

#include <errno.h>
#include <netcdf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_site.h"

enum { TOLD_BYTES = 4000 };

static FILE *heard;
static int former;

static void
listen_to_stderr(void)
{
    heard = tmpfile();
    assert_non_null(heard);
    fflush(stderr);
    former = dup(STDERR_FILENO);
    assert_true(dup2(fileno(heard), STDERR_FILENO) >= 0);
}

/* What was told since. */
static const char *
told(void)
{
    static char text[TOLD_BYTES];
    fflush(stderr);
    (void) dup2(former, STDERR_FILENO);
    close(former);
    rewind(heard);
    text[fread(text, 1, sizeof text - 1, heard)] = '\0';
    fclose(heard);
    return text;
}

static int
count_of(const char *text, const char *what)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        n++;
    return n;
}

/* In define mode. */
static int
define(const char *path, int mode, const char *variable, const char *tolerance)
{
    int ncid;
    int x;
    int v;
    assert_int_equal(nc_create(path, mode, &ncid), NC_NOERR);
    assert_int_equal(nc_def_dim(ncid, "x", 3, &x), NC_NOERR);
    assert_int_equal(nc_def_var(ncid, variable, NC_FLOAT, 1, &x, &v), NC_NOERR);
    assert_int_equal(
        nc_put_att_text(ncid, v, "esdm_absolute_tolerance", strlen(tolerance), tolerance),
        NC_NOERR);
    return ncid;
}

static void
make(const char *path)
{
    assert_int_equal(nc_close(define(path, NC_NETCDF4, "good", "0.1")), NC_NOERR);
}

static void
check_good(const char *path)
{
    int ncid;
    int v;
    assert_int_equal(nc_open(path, NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_inq_varid(ncid, "good", &v), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static const int modes[] = {NC_NETCDF4, NC_NETCDF4 | NC_CLASSIC_MODEL, 0, NC_64BIT_DATA};
enum { MODES = sizeof modes / sizeof modes[0] };

static void
test_statement__closing_leaves_what_stood_there(void **state)
{
    (void) state;
    const char *path = "esdm://refused/close.nc";
    for (int i = 0; i < 4 * MODES; i++) {
        make(path);
        listen_to_stderr();
        int ncid = define(path, modes[i % MODES], "bad", "abc");
        int enddef = i < MODES ? NC_EINVAL : nc_enddef(ncid);
        int sync = i < 2 * MODES ? NC_EINVAL : nc_sync(ncid);
        int last = i < 3 * MODES ? nc_close(ncid) : NC_EINVAL;
        const char *text = told();
        assert_int_equal(enddef, NC_EINVAL);
        assert_int_equal(sync, NC_EINVAL);
        assert_int_equal(last, NC_EINVAL);
        assert_non_null(strstr(text, "attribute 'esdm_absolute_tolerance' of variable 'bad'"));
        if (i >= 3 * MODES)
            assert_int_equal(nc_abort(ncid), NC_NOERR); /* as ever: nothing stays */
        else
            check_good(path);
    }
}

static void
test_statement__nothing_is_made_of_it(void **state)
{
    (void) state;
    const char *path = "esdm://refused/new.nc";
    int ncid = define(path, NC_NETCDF4, "bad", "abc");
    assert_int_equal(nc_enddef(ncid), NC_EINVAL);
    assert_int_equal(nc_close(ncid), NC_EINVAL);
    assert_int_equal(nc_open(path, NC_NOWRITE, &ncid), ENOENT);
}

static void
test_statement__can_be_set_right(void **state)
{
    (void) state;
    const char *path = "esdm://refused/right.nc";
    int ncid = define(path, NC_NETCDF4, "good", "abc");
    assert_int_equal(nc_enddef(ncid), NC_EINVAL);
    assert_int_equal(nc_put_att_text(ncid, 0, "esdm_absolute_tolerance", 3, "0.1"), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    check_good(path);
}

/* Runs it in a process of its own, which is not to fail. */
static void
in_child(void (*run)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        run();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void
end_without_close(void)
{
    make("esdm://refused/exit.nc");
    int ncid = define("esdm://refused/exit.nc", NC_NETCDF4, "bad", "abc");
    if (nc_enddef(ncid) != NC_EINVAL)
        _exit(1);
    exit(0); /* not _exit(): open files are looked at */
}

/* The first test: a session that the child inherits would be a leak of memory at its exit. */
static void
test_statement__the_end_leaves_what_stood_there(void **state)
{
    (void) state;
    in_child(end_without_close);
    check_good("esdm://refused/exit.nc");
}

static void
test_create__tells_what_is_in_the_way(void **state)
{
    (void) state;
    const char *within = "esdm://refused/taken/b/c.nc";
    int ncid;
    make("esdm://refused/taken");
    listen_to_stderr();
    int keeping = nc_create(within, NC_NETCDF4 | NC_NOCLOBBER, &ncid);
    const char *text = told();
    assert_int_equal(keeping, NC_EEXIST);
    assert_int_equal(count_of(text, "\n"), 1);
    assert_non_null(strstr(text, "'refused/taken' is a container"));
    listen_to_stderr();
    int replacing = nc_create(within, NC_NETCDF4, &ncid);
    int above = nc_create("esdm://refused", NC_NETCDF4, &ncid);
    text = told();
    assert_int_equal(replacing, NC_EEXIST);
    assert_int_equal(above, NC_EEXIST);
    assert_int_equal(count_of(text, "\n"), 2);
    assert_non_null(strstr(text, "'refused' is a folder of containers"));
    listen_to_stderr();
    int itself = nc_create("esdm://refused/taken", NC_NETCDF4 | NC_NOCLOBBER, &ncid);
    text = told();
    assert_int_equal(itself, NC_EEXIST);
    assert_string_equal(text, "");
}

/* The default site, as one that somebody has configured. */
static void
configure(void)
{
    char path[200];
    snprintf(path, sizeof path, "%s/site.json", folder);
    FILE *file = fopen(path, "w");
    if (file == NULL || setenv("ESDM_CONFIG", path, 1) != 0)
        _exit(1);
    fprintf(file,
            "{\"targets\": [{\"name\": \"local\", \"plugin\": \"posix\", \"directory\": "
            "\"%s/esdm/data\"}], \"metadata\": {\"plugin\": \"sqlite\", \"directory\": "
            "\"%s/esdm/meta\"}}\n",
            folder, folder);
    fclose(file);
}

static void
create_without_target(void)
{
    int ncid;
    configure();
    listen_to_stderr();
    int rc = nc_create("esdm://refused/target.nc", NC_NETCDF4, &ncid);
    const char *text = told();
    if (rc != NC_ETRUNC || strstr(text, "esdm: create 'refused/target.nc': ") == NULL ||
        strstr(text, "/esdm/data' does not exist") == NULL) {
        fprintf(stderr, "%d: %s\n", rc, text);
        _exit(1);
    }
}

static void
test_create__tells_that_a_target_is_missing(void **state)
{
    (void) state;
    char data[200];
    char away[200];
    make("esdm://refused/there.nc");
    snprintf(data, sizeof data, "%s/esdm/data", folder);
    snprintf(away, sizeof away, "%s/esdm/away", folder);
    assert_int_equal(rename(data, away), 0);
    in_child(create_without_target);
    assert_int_equal(rename(away, data), 0);
}

static void
create_without_site(void)
{
    int ncid;
    (void) setenv("ESDM_CONFIG", "/nowhere/site.json", 1);
    listen_to_stderr();
    int first = nc_create("esdm://refused/site.nc", NC_NETCDF4, &ncid);
    int second = nc_create("esdm://refused/site.nc", NC_NETCDF4, &ncid);
    int third = nc_open("esdm://refused/site.nc", NC_NOWRITE, &ncid);
    const char *text = told();
    if (first == NC_NOERR || second != first || third != first ||
        count_of(text, "esdm: cannot open the site: ESDM_CONFIG") != 1 ||
        count_of(text, "\n") != 1) {
        fprintf(stderr, "%d %d %d: %s\n", first, second, third, text);
        _exit(1);
    }
}

static void
test_site__why_it_does_not_open_is_told_once(void **state)
{
    (void) state;
    in_child(create_without_site);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statement__the_end_leaves_what_stood_there),
        cmocka_unit_test(test_statement__closing_leaves_what_stood_there),
        cmocka_unit_test(test_statement__nothing_is_made_of_it),
        cmocka_unit_test(test_statement__can_be_set_right),
        cmocka_unit_test(test_create__tells_what_is_in_the_way),
        cmocka_unit_test(test_create__tells_that_a_target_is_missing),
        cmocka_unit_test(test_site__why_it_does_not_open_is_told_once),
    };
    return cmocka_run_group_tests(tests, make_site, remove_site);
}
