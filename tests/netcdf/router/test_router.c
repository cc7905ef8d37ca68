/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Run with the router preloaded, over fake_core.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <netcdf.h>
#include <netcdf_filter.h>
#include <netcdf_mem.h>
#include <pthread.h>
#include <sys/wait.h>

#include "creating.h"
#include "support.h"

extern int nc_def_var_chunking_ints(int, int, int, int *);
extern int nc_inq_var_chunking_ints(int, int, int *, int *);
extern int nc_set_var_chunk_cache_ints(int, int, int, int, int);
extern int nc_get_var_chunk_cache_ints(int, int, int *, int *, int *);
extern int nc_create_par(const char *, int, intptr_t, intptr_t, int *);
extern int nc_open_par(const char *, int, intptr_t, intptr_t, int *);
extern int nc_create_par_fortran(const char *, int, int, int, int *);
extern int nc_open_par_fortran(const char *, int, int, int, int *);
extern int nc__testurl(const char *, char **);

static void
test_router__esdm_paths_reach_the_dispatcher(void **state)
{
    (void) state;
    int ncid = create("esdm://exp/a.nc", NC_NETCDF4);
    char path[NC_MAX_NAME + 1];
    size_t length = 0;
    assert_int_equal(nc_inq_path(ncid, &length, path), NC_NOERR);
    assert_string_equal(path, "esdm://exp/a.nc");
    int format = 0;
    assert_int_equal(nc_inq_format_extended(ncid, &format, NULL), NC_NOERR);
    assert_int_equal(format, NC_FORMATX_UDF0);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_true(logged("create 0 'exp/a.nc' 0x1000"));
    assert_true(logged("close 0"));
    assert_true(is_there("store/exp%a.nc"));
}

static void
test_router__spellings_of_a_path_are_one_container(void **state)
{
    (void) state;
    make("esdm://exp/a.nc");
    char absolute[256];
    (void) snprintf(absolute, sizeof(absolute), "%s/esdm:/exp/a.nc", folder);
    const char *const paths[] = {
        "esdm:exp/a.nc",    "esdm:/exp/a.nc",    "esdm:///exp/a.nc", "esdm:////exp/a.nc",
        "esdm://exp/a.nc/", "  esdm://exp/a.nc", absolute,           "esdm:/exp/a.nc",
        "ESDM://exp/a.nc",  "Esdm:/exp/a.nc"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int ncid = -1;
        assert_int_equal(nc_open(paths[i], NC_NOWRITE, &ncid), NC_NOERR);
        assert_int_equal(nc_close(ncid), NC_NOERR);
        assert_true(logged("open 0 'exp/a.nc' 0x0"));
        assert_int_equal(unlink("log"), 0);
    }
}

static void
test_router__a_real_folder_called_esdm_is_respected(void **state)
{
    (void) state;
    char absolute[256];
    assert_int_equal(mkdir("./esdm:", 0777), 0);
    (void) snprintf(absolute, sizeof(absolute), "%s/esdm:/x.nc", folder);
    make(absolute);
    assert_false(logged("create"));
    struct stat st;
    assert_int_equal(stat(absolute, &st), 0);
    assert_true(st.st_size > 8 && st.st_size != 12345);
}

static void
test_router__other_paths_stay_with_libnetcdf(void **state)
{
    (void) state;
    make("plain.nc");
    make("./esdm_not.nc");
    int ncid = create("four.nc", NC_NETCDF4);
    int varid;
    int chunk = 1;
    int dimid;
    assert_int_equal(nc_def_dim(ncid, "x", 4, &dimid), NC_NOERR);
    assert_int_equal(nc_def_var(ncid, "v", NC_INT, 1, &dimid, &varid), NC_NOERR);
    assert_int_equal(nc_def_var_chunking_ints(ncid, varid, NC_CHUNKED, &chunk), NC_NOERR);
    int storage = -1;
    chunk = 0;
    assert_int_equal(nc_inq_var_chunking_ints(ncid, varid, &storage, &chunk), NC_NOERR);
    assert_int_equal(storage, NC_CHUNKED);
    assert_int_equal(chunk, 1);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(nc_open("plain.nc", NC_NOWRITE, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(nc_open("missing.nc", NC_NOWRITE, &ncid), ENOENT);
    assert_int_equal(nc_delete("plain.nc"), NC_NOERR);
    assert_false(is_there("plain.nc"));
    assert_false(is_there("log"));
}

static void
test_router__memory_images_stay_with_libnetcdf(void **state)
{
    (void) state;
    int ncid = -1;
    int old = 0;
    NC_memio memio = {0};
    assert_int_equal(nc_set_default_format(NC_FORMAT_CLASSIC, &old), NC_NOERR);
    const char *const labels[] = {"label", "esdm://label"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(nc_create_mem(labels[i], NC_CLOBBER, 4096, &ncid), NC_NOERR);
        assert_int_equal(nc_close_memio(ncid, &memio), NC_NOERR);
        assert_int_equal(nc_open_mem(labels[i], NC_NOWRITE, memio.size, memio.memory, &ncid),
                         NC_NOERR);
        assert_int_equal(nc_close(ncid), NC_NOERR);
        free(memio.memory);
    }
    assert_false(is_there("log"));
}

static void
test_router__bytes_of_a_stub_are_the_container(void **state)
{
    (void) state;
    char bytes[8192];
    int ncid;
    touch("store/exp%a.nc");
    int fd = open("esdm://exp/a.nc", O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof(bytes));
    assert_int_equal(close(fd), 0);
    assert_true(size > 0);
    assert_int_equal(nc_open_mem("label", NC_NOWRITE, (size_t) size, bytes, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
    char line[64];
    (void) snprintf(line, sizeof(line), "open 0 'exp/a.nc' 0x%x", NC_DISKLESS);
    assert_true(logged(line));

    /* What is not locked becomes the library's: it hands the bytes back, or frees them. */
    NC_memio given = {.size = (size_t) size, .memory = malloc(sizeof(bytes))};
    assert_non_null(given.memory);
    memcpy(given.memory, bytes, (size_t) size);
    assert_int_equal(nc_open_memio("label", NC_WRITE, &given, &ncid), NC_NOERR);
    NC_memio back = {0};
    assert_int_equal(nc_close_memio(ncid, &back), NC_NOERR);
    assert_ptr_equal(back.memory, given.memory);
    assert_int_equal(back.size, size);
    assert_int_equal(nc_open_memio("label", NC_WRITE, &back, &ncid), NC_NOERR);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_router__errors_of_the_dispatcher_come_through(void **state)
{
    (void) state;
    int ncid = 4711;
    assert_int_equal(nc_open("esdm://missing", NC_NOWRITE, &ncid), ENOENT);
    make("esdm://there");
    assert_int_equal(nc_create("esdm://there", NC_NOCLOBBER, &ncid), NC_EEXIST);
    assert_int_equal(ncid, 4711);
}

static void
test_router__create_flags_that_contradict_are_refused(void **state)
{
    (void) state;
    int ncid;
    const struct {
        int mode;
        int status;
    } cases[] = {{NC_NETCDF4 | NC_64BIT_OFFSET, NC_EINVAL},
                 {NC_64BIT_DATA | NC_64BIT_OFFSET, NC_EINVAL},
                 {NC_DISKLESS | NC_MMAP, NC_EDISKLESS},
                 {NC_MMAP | NC_NETCDF4, NC_EINVAL}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(nc_create("esdm://x", cases[i].mode, &ncid), cases[i].status);
    }
    assert_false(logged("create"));
    assert_int_equal(nc_close(create("esdm://x", NC_DISKLESS | NC_PERSIST)), NC_NOERR);
    assert_true(logged("create 0 'x' 0x4008"));
    assert_int_equal(nc_open("esdm://x", NC_DISKLESS | NC_WRITE, &ncid), NC_NOERR);
    assert_true(logged("open 0 'x' 0x9"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_router__default_format_decides_when_no_flag_does(void **state)
{
    (void) state;
    const struct {
        int format;
        const char *line;
    } cases[] = {{NC_FORMAT_64BIT_OFFSET, "create 0 'x' 0x200"},
                 {NC_FORMAT_64BIT_DATA, "create 0 'x' 0x20"},
                 {NC_FORMAT_NETCDF4, "create 0 'x' 0x1000"},
                 {NC_FORMAT_NETCDF4_CLASSIC, "create 0 'x' 0x1100"},
                 {NC_FORMAT_CLASSIC, "create 0 'x' 0x0"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(nc_set_default_format(cases[i].format, NULL), NC_NOERR);
        make("esdm://x");
        assert_true(logged(cases[i].line));
    }
    assert_int_equal(nc_set_default_format(NC_FORMAT_NETCDF4, NULL), NC_NOERR);
    assert_int_equal(unlink("log"), 0);
    assert_int_equal(nc_close(create("esdm://x", NC_64BIT_OFFSET)), NC_NOERR);
    assert_true(logged("create 0 'x' 0x200"));
    assert_int_equal(nc_set_default_format(NC_FORMAT_CLASSIC, NULL), NC_NOERR);
}

static void
test_router__parallel_calls_reach_the_dispatcher(void **state)
{
    (void) state;
    int ncid = -1;
    assert_int_equal(nc_create_par_fortran("esdm://x", NC_NETCDF4, 7, 0, &ncid), NC_NOERR);
    assert_true(logged("ranks 1 7"));
    assert_true(logged("create 0 'x' 0x1000 parallel"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(unlink("log"), 0);
    assert_int_equal(nc_create_par("esdm://c", NC_64BIT_DATA, 9, 0, &ncid), NC_NOERR); /* classic */
    assert_true(logged("ranks 0 9"));
    assert_true(logged("create 0 'c' 0x20 parallel"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(nc_open_par("esdm://x", NC_WRITE, 9, 0, &ncid), NC_NOERR);
    assert_true(logged("open 0 'x' 0x1 parallel"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(unlink("log"), 0);
    assert_int_equal(nc_open("esdm://x", NC_NOWRITE, &ncid), NC_NOERR);
    assert_false(logged("parallel"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_router__parallel_calls_are_checked(void **state)
{
    (void) state;
    int ncid = -1;
    assert_int_equal(nc_create_par("esdm://x", NC_DISKLESS, 0, 0, &ncid), NC_EINVAL);
    assert_int_equal(nc_create_par("esdm://x", NC_64BIT_DATA | NC_NETCDF4, 0, 0, &ncid), NC_EINVAL);
    assert_int_equal(nc_open_par("esdm://none", NC_NOWRITE, 0, 0, &ncid), ENOENT);
    assert_false(logged("create"));
    (void) setenv("FAKE_CORE_NO_MPI", "1", 1);
    assert_int_equal(nc_create_par("esdm://x", NC_NETCDF4, 0, 0, &ncid), NC_ENOPAR);
    assert_int_equal(nc_open_par_fortran("esdm://x", NC_NOWRITE, 0, 0, &ncid), NC_ENOPAR);
    (void) unsetenv("FAKE_CORE_NO_MPI");
    /* What is not ours stays with libnetcdf, whose serial build refuses. */
    assert_int_equal(nc_create_par("plain.nc", NC_NETCDF4, 0, 0, &ncid), NC_ENOPAR);
    assert_int_equal(nc_open_par_fortran("plain.nc", NC_NOWRITE, 0, 0, &ncid), NC_ENOPAR);
}

static void
test_router__parallel_calls_follow_stubs_and_routes(void **state)
{
    (void) state;
    int ncid = -1;
    assert_int_equal(mkdir("routed", 0777), 0);
    (void) setenv("ESDM_NC_ROUTE", "routed=r", 1);
    assert_int_equal(nc_create_par("routed/a.nc", NC_CLOBBER, 1, 0, &ncid), NC_NOERR);
    assert_true(logged("create 0 'r/a.nc' 0x0 parallel"));
    assert_true(is_there("routed/a.nc"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(nc_open_par("routed/a.nc", NC_NOWRITE, 1, 0, &ncid), NC_NOERR);
    assert_true(logged("open 0 'r/a.nc' 0x0 parallel"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
    assert_int_equal(nc_create_par("routed/b.nc", NC_CLOBBER, 1, 0, &ncid), NC_NOERR);
    assert_int_equal(nc_abort(ncid), NC_NOERR);
    assert_false(is_there("routed/b.nc")); /* its stub went with it */
    (void) unsetenv("ESDM_NC_ROUTE");
}

static void
test_router__calls_that_bypass_dispatch_are_served(void **state)
{
    (void) state;
    int ncid = create("esdm://x", NC_NETCDF4);
    int chunks[2] = {3, 5};
    int storage = -1;
    assert_int_equal(nc_def_var_chunking_ints(ncid, 0, NC_CHUNKED, chunks), NC_NOERR);
    assert_true(logged("chunking 0 0 3 5"));
    chunks[1] = -1;
    assert_int_equal(nc_def_var_chunking_ints(ncid, 0, NC_CHUNKED, chunks), NC_NOERR);
    assert_true(logged("chunking 0 0 3 18446744073709551615"));
    assert_int_equal(nc_inq_var_chunking_ints(ncid, 0, &storage, chunks), NC_NOERR);
    assert_int_equal(storage, NC_CHUNKED);
    assert_int_equal(chunks[0], 7);
    assert_int_equal(chunks[1], 9);
    int size = 0;
    int slots = 0;
    int part = 0;
    assert_int_equal(nc_set_var_chunk_cache_ints(ncid, 0, 16, -1, 75), NC_NOERR);
    assert_int_equal(nc_get_var_chunk_cache_ints(ncid, 0, &size, &slots, &part), NC_NOERR);
    assert_int_equal(size, 16);
    assert_int_equal(slots, -1);
    assert_int_equal(part, 75);
    unsigned int level = 4;
    assert_int_equal(nc_def_var_filter(ncid, 0, 1, 1, &level), NC_NOERR);
    assert_true(logged("filter 1"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_router__values_in_memory_are_copied_and_freed(void **state)
{
    (void) state;
    int ncid = create("esdm://x", NC_NETCDF4);
    char *words[2] = {strdup("one"), NULL};
    char **copy = NULL;
    assert_int_equal(nc_copy_data_all(ncid, NC_STRING, words, 2, (void **) &copy), NC_NOERR);
    assert_string_equal(copy[0], "one");
    assert_ptr_not_equal(copy[0], words[0]);
    assert_null(copy[1]);
    assert_int_equal(nc_reclaim_data_all(ncid, NC_STRING, copy, 2), NC_NOERR);
    assert_int_equal(nc_reclaim_data(ncid, NC_STRING, words, 2), NC_NOERR);
    int64_t numbers[3] = {1, -2, 3};
    int64_t others[3] = {0};
    assert_int_equal(nc_copy_data(ncid, NC_INT64, numbers, 3, others), NC_NOERR);
    assert_memory_equal(numbers, others, sizeof(numbers));
    assert_int_equal(nc_reclaim_data(ncid, NC_INT64, numbers, 3), NC_NOERR);
    char *owned[2] = {strdup("a"), strdup("b")};
    char **copied = NULL;
    assert_int_equal(nc_copy_data_all(ncid, 40, owned, 2, (void **) &copied), NC_NOERR);
    assert_string_equal(copied[1], "b");
    assert_int_equal(nc_reclaim_data(ncid, 40, owned, 2), NC_NOERR);
    assert_null(owned[0]);
    assert_int_equal(nc_copy_data(ncid, 40, copied, 1, owned), NC_NOERR);
    assert_string_equal(owned[0], "a");
    assert_int_equal(nc_reclaim_data_all(ncid, 40, copied, 2), NC_NOERR);
    assert_int_equal(nc_reclaim_data(ncid, 40, owned, 1), NC_NOERR);
    assert_int_equal(nc_reclaim_data(ncid, 40, NULL, 1), NC_EINVAL);
    assert_int_equal(nc_copy_data_all(ncid, 77, numbers, 3, (void **) &copied), NC_EBADTYPE);
    assert_int_equal(nc_reclaim_data(ncid, 77, numbers, 3), NC_EBADTYPE);
    assert_int_equal(nc_copy_data(ncid, 77, numbers, 3, others), NC_EBADTYPE);
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void
test_router__delete_removes_the_container(void **state)
{
    (void) state;
    make("esdm://exp/x");
    assert_int_equal(nc_delete("esdm://exp/x"), NC_NOERR);
    assert_false(is_there("store/exp%x"));
    assert_int_equal(nc_delete("esdm://exp/x"), ENOENT);
}

static void
test_router__no_url_for_ncdump(void **state)
{
    (void) state;
    char *base = NULL;
    assert_int_equal(nc__testurl("esdm://x", &base), 0);
    assert_null(base);
    assert_int_equal(nc__testurl("http://host/x.nc", &base), 1);
    free(base);
}

/* ---- processes and threads --------------------------------------------------------------------
 */

static void
test_router__works_in_a_forked_child(void **state)
{
    (void) state;
    int ncid = create("esdm://parent", NC_CLOBBER);
    pid_t child = fork();
    if (child == 0) {
        int other = -1;
        int status = nc_create("esdm://child", NC_CLOBBER, &other);
        _exit(status == NC_NOERR && nc_close(other) == NC_NOERR ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_there("store/child"));
    assert_int_equal(nc_close(ncid), NC_NOERR);
}

static void *
stat_many(void *missing)
{
    size_t bad = 0;
    for (int i = 0; i < 2000; i++) {
        struct stat st;
        bad += stat("esdm://there", &st) != 0;
        bad += stat("esdm://nowhere", &st) == 0;
        bad += stat("/", &st) != 0;
    }
    *(size_t *) missing = bad;
    return NULL;
}

static void
test_router__shim_serves_many_threads(void **state)
{
    (void) state;
    make("esdm://there");
    pthread_t threads[8];
    size_t bad[8];
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, stat_many, &bad[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(bad[i], 0);
    }
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)
    const struct CMUnitTest tests[] = {
        TEST(test_router__esdm_paths_reach_the_dispatcher),
        TEST(test_router__spellings_of_a_path_are_one_container),
        TEST(test_router__a_real_folder_called_esdm_is_respected),
        TEST(test_router__other_paths_stay_with_libnetcdf),
        TEST(test_router__memory_images_stay_with_libnetcdf),
        TEST(test_router__bytes_of_a_stub_are_the_container),
        TEST(test_router__errors_of_the_dispatcher_come_through),
        TEST(test_router__create_flags_that_contradict_are_refused),
        TEST(test_router__default_format_decides_when_no_flag_does),
        TEST(test_router__parallel_calls_reach_the_dispatcher),
        TEST(test_router__parallel_calls_are_checked),
        TEST(test_router__parallel_calls_follow_stubs_and_routes),
        TEST(test_router__calls_that_bypass_dispatch_are_served),
        TEST(test_router__values_in_memory_are_copied_and_freed),
        TEST(test_router__delete_removes_the_container),
        TEST(test_router__no_url_for_ncdump),
        TEST(test_router__works_in_a_forked_child),
        TEST(test_router__shim_serves_many_threads),
    };
    return cmocka_run_group_tests_name("router", tests, NULL, NULL);
}
