/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Index pages that a commit merges, while others need the memory that these take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "esdm/esdm.h"
#include "io/commit/commit.h"
#include "io/container/dataset_io.h"
#include "layout/index.h"

#define CELLS        4096u
#define MOST_COMMITS 200u

static const char config[] =
    "{\"site\": {\"name\": \"t\"}, \"metadata\": {\"plugin\": \"sqlite\", \"directory\": \"m\"},"
    "\"targets\": [{\"name\": \"disk\", \"plugin\": \"posix\", \"directory\": \"d\"}]}";

static int
make_site(void **state)
{
    char *folder = strdup(access("/dev/shm", W_OK) == 0 ? "/dev/shm/esdm-test-merge-XXXXXX"
                                                        : "/tmp/esdm-test-merge-XXXXXX");
    const esdm_site_options options = {.config_path = "site.json"};
    FILE *file = NULL;
    if (folder == NULL || mkdtemp(folder) == NULL || chdir(folder) != 0 ||
        (file = fopen("site.json", "w")) == NULL || fputs(config, file) < 0 || fclose(file) != 0)
        return -1;
    *state = folder;
    return esdm_site_create(&options, NULL) == ESDM_OK ? 0 : -1;
}

static int
remove_site(void **state)
{
    char command[128];
    (void) snprintf(command, sizeof command, "rm -rf %s", (char *) *state);
    free(*state);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void
commit_cell(esdm_container *container, esdm_dataset *dataset, uint64_t at)
{
    const double value = (double) at;
    esdm_dataspace space;
    assert_int_equal(ESDM_OK, esdm_dataspace_init(&space, 1, &at, (uint64_t[]){1}, NULL));
    assert_int_equal(ESDM_OK, esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, &value, NULL, NULL));
    assert_int_equal(ESDM_OK, esdm_container_commit(container, NULL, NULL));
}

/* @return whether there was something to merge. */
static bool
check_kept(esdm_dataset *dataset)
{
    esdm__dataset_io *io = NULL;
    esdm__merge merge = {0};
    assert_int_equal(ESDM_OK, esdm__dataset_io_get(dataset, &io, NULL));
    assert_int_equal(ESDM_OK, esdm__dataset_load_directory(dataset, io, NULL));
    assert_int_equal(ESDM_OK, esdm__merge_begin(dataset, io, false, &merge, NULL));
    (void) pthread_mutex_lock(&io->lock);
    esdm__index_evict(io->index, 0); /* as a reader of the same handle does */
    bool ready = esdm__merge_is_ready(&merge, io);
    (void) pthread_mutex_unlock(&io->lock);
    assert_true(ready);
    bool some = merge.count > 0;
    esdm__merge_clear(&merge);
    (void) pthread_mutex_lock(&io->lock);
    esdm__index_evict(io->index, 0);
    assert_int_equal(0, esdm__index_memory_bytes(io->index)); /* nobody else held any */
    (void) pthread_mutex_unlock(&io->lock);
    esdm__dataset_io_put(dataset);
    return some;
}

static void
test_merged_pages__stay_until_they_are_merged(void **state)
{
    const esdm_session_options options = {.config_path = "site.json"};
    esdm_session *session;
    esdm_container *container;
    esdm_dimension *dimension;
    esdm_dataset *dataset;
    unsigned merges = 0;
    (void) state;
    assert_int_equal(ESDM_OK, esdm_session_open(&options, &session, NULL));
    assert_int_equal(ESDM_OK,
                     esdm_container_create(session, "x", ESDM_CREATE_NEW, &container, NULL));
    esdm_group *root = esdm_container_root(container);
    assert_int_equal(ESDM_OK, esdm_dimension_create(root, "cell", CELLS, &dimension, NULL));
    assert_int_equal(
        ESDM_OK, esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT64, 1, &dimension, &dataset, NULL));
    for (unsigned i = 0; i < MOST_COMMITS && merges < 2; i++) {
        commit_cell(container, dataset, (uint64_t) i * 769 % CELLS);
        merges += check_kept(dataset);
    }
    assert_int_equal(2, merges);
    assert_int_equal(ESDM_OK, esdm_container_close(container, NULL));
    esdm_session_close(session);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_merged_pages__stay_until_they_are_merged, make_site,
                                        remove_site),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
