/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Packs in Kyoto Cabinet whose database could not be made, or was never made. */
#include "kv.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

/* Databases that could not be made, and what is left of them. A limit of file sizes stands for a
 * full disk. */

#define NAME  "00112233445566778899aabbccddeeff-0123456789abcdef-0"
#define OWN   "p-" NAME ".kch"
#define SHARD "s-0123456789abcdef-0.kch"

enum { LARGE = 2 << 20 };

static char folder[64];
static char json[128];
static esdm_error error;

static esdm_plugin_config
config(void)
{
    return (esdm_plugin_config){.name = "tiny",
                                .json = json,
                                .path = "site.json: targets[0]",
                                .site_id = "5eed5eed5eed5eed5eed5eed5eed5eed"};
}

static kv__target *
make_target(void)
{
    void *target = NULL;
    (void) snprintf(folder, sizeof folder, "/tmp/esdm-kv.XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void) snprintf(json, sizeof json, "{\"directory\": \"%s/kv\"}", folder);
    const esdm_plugin_config made = config();
    assert_int_equal(kv__make(&made, false, NULL, NULL, &error), ESDM_OK);
    assert_int_equal(kv__open(&made, &target, &error), ESDM_OK);
    return target;
}

static void
remove_target(kv__target *target)
{
    const esdm_plugin_config made = config();
    kv__close(target);
    assert_int_equal(kv__remove(&made, false, NULL, NULL, &error), ESDM_OK);
    assert_int_equal(rmdir(folder), 0);
}

static unsigned
count_databases(const kv__target *target)
{
    unsigned found = 0;
    DIR *dir = opendir(target->directory);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        found += kv__is_database(entry->d_name);
    (void) closedir(dir);
    return found;
}

static void
limit_files(rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    (void) signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void *
create(kv__target *target)
{
    void *pack = NULL;
    assert_int_equal(kv__pack_create(target, NAME, &pack, &error), ESDM_OK);
    return pack;
}

static esdm_status
append(void *pack, size_t bytes)
{
    static const uint8_t data[LARGE] = "begin";
    uint64_t position = 1;
    esdm_status status = kv__pack_append(pack, &(esdm_iov){data, bytes}, 1, &position, &error);
    assert_int_equal(position, status == ESDM_OK ? 0 : 1);
    return status;
}

static esdm_status
read_back(kv__target *target)
{
    char text[6] = "";
    esdm_status status =
        kv__pack_read(target, NAME, &(esdm_range){0, sizeof text, text}, 1, &error);
    assert_string_equal(text, status == ESDM_OK ? "begin" : "");
    return status;
}

static void
put_file(const kv__target *target, const char *file, const char *text)
{
    int fd = openat(target->fd, file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(close(fd), 0);
}

static void
test_kv__a_large_pack_whose_database_could_not_be_made_goes_on_later(void **state)
{
    (void) state;
    kv__target *target = make_target();
    void *pack = create(target);
    limit_files(8 << 10);
    for (int i = 0; i < 2; i++) {
        assert_int_not_equal(append(pack, LARGE), ESDM_OK);
        assert_int_not_equal(error.status, ESDM_EEXIST);
        assert_int_equal(count_databases(target), 0);
    }
    limit_files(RLIM_INFINITY);
    assert_int_equal(append(pack, LARGE), ESDM_OK);
    assert_int_equal(kv__pack_seal(pack, &error), ESDM_OK);
    assert_int_equal(read_back(target), ESDM_OK);
    remove_target(target);
}

static void
test_kv__so_does_a_small_one(void **state)
{
    (void) state;
    kv__target *target = make_target();
    void *pack = create(target);
    assert_int_equal(append(pack, 100), ESDM_OK);
    limit_files(8 << 10);
    assert_int_not_equal(kv__pack_seal(pack, &error), ESDM_OK);
    assert_int_equal(count_databases(target), 0);
    limit_files(RLIM_INFINITY);
    assert_int_equal(kv__pack_seal(pack, &error), ESDM_OK);
    assert_int_equal(read_back(target), ESDM_OK);
    remove_target(target);
}

static void
test_kv__what_is_left_of_a_large_pack_does_not_hide_a_small_one(void **state)
{
    (void) state;
    static const char *const left[] = {"", "no database"};
    kv__target *target = make_target();
    void *pack = create(target);
    assert_int_equal(append(pack, 100), ESDM_OK);
    assert_int_equal(kv__pack_seal(pack, &error), ESDM_OK);
    for (size_t i = 0; i < 2; i++) {
        put_file(target, OWN, left[i]);
        assert_int_equal(read_back(target), ESDM_OK);
    }
    assert_int_equal(unlinkat(target->fd, SHARD, 0), 0); /* it is the damaged one */
    assert_int_not_equal(read_back(target), ESDM_OK);
    assert_int_not_equal(read_back(target), ESDM_ENOENT);
    assert_non_null(strstr(error.message, OWN));
    put_file(target, OWN, "");
    assert_int_equal(read_back(target), ESDM_ENOENT);
    remove_target(target);
}

static bool
count(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    unsigned *found = user;
    (void) name, (void) bytes, (void) modified_ns;
    ++*found;
    return true;
}

/* What a writer that was killed leaves. */
static void
put_zeros(const kv__target *target, off_t bytes)
{
    put_file(target, SHARD, "");
    int fd = openat(target->fd, SHARD, O_WRONLY);
    assert_int_equal(ftruncate(fd, bytes), 0);
    assert_int_equal(close(fd), 0);
}

static void
test_kv__shards_that_were_never_made_hold_no_packs(void **state)
{
    (void) state;
    static const off_t sizes[] = {0, 50000};
    unsigned found = 0;
    kv__target *target = make_target();
    for (size_t i = 0; i < 2; i++) { /* the pack that is removed, or lost, is a large one, say */
        put_zeros(target, sizes[i]);
        put_file(target, OWN, "");
        assert_int_equal(kv__pack_remove(target, NAME, &error), ESDM_OK);
        assert_int_equal(count_databases(target), 0);
        assert_int_equal(kv__pack_remove(target, NAME, &error), ESDM_OK);
        put_zeros(target, sizes[i]);
        void *pack = create(target);
        assert_int_equal(append(pack, 100), ESDM_OK);
        assert_int_equal(kv__pack_seal(pack, &error), ESDM_OK);
        assert_int_equal(read_back(target), ESDM_OK);
        assert_int_equal(kv__pack_remove(target, NAME, &error), ESDM_OK);
        assert_int_equal(count_databases(target), 0);
    }
    kv__handle *shard = NULL; /* made, but nothing was stored in it */
    assert_int_equal(kv__acquire(target, SHARD, KV__WRITE, 0, &shard, &error), ESDM_OK);
    assert_int_equal(kv__release(shard, &error), ESDM_OK);
    assert_int_equal(count_databases(target), 1);
    assert_int_equal(kv__pack_remove(target, NAME, &error), ESDM_OK);
    assert_int_equal(count_databases(target), 0);
    put_zeros(target, 50000);
    put_file(target, "s-fedcba9876543210-0.kch", "");
    assert_int_equal(kv__pack_list(target, NULL, count, &found, &error), ESDM_OK);
    assert_int_equal(found, 0);
    assert_int_equal(read_back(target), ESDM_ENOENT);
    put_file(target, SHARD, "no database");
    assert_int_not_equal(kv__pack_remove(target, NAME, &error), ESDM_OK);
    assert_int_equal(count_databases(target), 2);
    assert_int_not_equal(kv__pack_list(target, NULL, count, &found, &error), ESDM_OK);
    remove_target(target);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kv__a_large_pack_whose_database_could_not_be_made_goes_on_later),
        cmocka_unit_test(test_kv__so_does_a_small_one),
        cmocka_unit_test(test_kv__what_is_left_of_a_large_pack_does_not_hide_a_small_one),
        cmocka_unit_test(test_kv__shards_that_were_never_made_hold_no_packs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
