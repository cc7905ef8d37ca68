/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Targets on which nothing fits any more. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include "data.h"

/* Appends until nothing fits, then checks that the pack is as it was and goes on with less. */
static void
fill_up(const place *p)
{
    enum { PIECE = 300000 };
    void *target = NULL;
    void *pack = NULL;
    uint64_t position = 0;
    uint64_t end = 0;
    esdm_status status = ESDM_OK;
    uint8_t *data = malloc(PIECE);
    assert_non_null(data);
    assert_ok(data_plugin()->open(&p->config, &target, &place_error));
    assert_ok(data_plugin()->pack_create(target, PACK "f", &pack, &place_error));
    for (int i = 0; i < 100 && status == ESDM_OK; i++) {
        data_fill(data, 15, end, PIECE);
        esdm_iov pieces[2] = {{.data = data, .bytes = 1000},
                              {.data = data + 1000, .bytes = PIECE - 1000}};
        position = UINT64_MAX;
        status = data_plugin()->pack_append(pack, pieces, 2, &position, &place_error);
        if (status == ESDM_OK) {
            assert_int_equal(position, end);
            end += PIECE;
        }
    }
    assert_int_equal(status, ESDM_ENOSPC);
    assert_true(position == UINT64_MAX);
    assert_true(strlen(place_error.message) > 0);
    assert_true(end > 0);
    data_fill(data, 15, end, 100);
    esdm_iov small = {.data = data, .bytes = 100};
    assert_ok(data_plugin()->pack_append(pack, &small, 1, &position, &place_error));
    assert_int_equal(position, end);
    assert_ok(data_plugin()->pack_seal(pack, &place_error));
    data_check_pack(target, PACK "f", 15, 0, (size_t) end + 100);
    uint8_t byte = 0;
    esdm_range past = {.position = end + 100, .bytes = 1, .buffer = &byte};
    assert_status(data_plugin()->pack_read(target, PACK "f", &past, 1, &place_error),
                  ESDM_ECORRUPT);
    data_plugin()->close(target);
    free(data);
}

static void
test_pack__full_memory_target(void **state)
{
    (void) state;
    skip_if(strcmp(place_current->name, "mem") != 0);
    place p;
    place_init(&p, place_current_kind);
    (void) snprintf(p.json, sizeof p.json, "{\"plugin\": \"mem\", \"capacity_bytes\": 1000000}");
    assert_ok(data_plugin()->make(&p.config, false, NULL, NULL, &place_error));
    fill_up(&p);
    assert_ok(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error));
    place_clear(&p);
}

static void
limited_fill(void *user)
{
    struct rlimit limit = {.rlim_cur = 1000000, .rlim_max = 1000000};
    (void) signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(9);
    fill_up(user);
}

static void
test_pack__file_size_limit(void **state)
{
    (void) state;
    skip_if(!place_current_kind->has_directory || place_current_kind->bucket);
    place p;
    place_init(&p, place_current_kind);
    assert_ok(data_plugin()->make(&p.config, false, NULL, NULL, &place_error));
    assert_int_equal(place_in_child(limited_fill, &p), 0);
    assert_ok(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error));
    place_clear(&p);
}

static void
test_pack__full_disk(void **state)
{
    (void) state;
    place p;
    skip_if(!place_current_kind->has_directory || place_current_kind->bucket);
    place_init(&p, place_current_kind);
    if (mount("tmpfs", p.folder, "tmpfs", 0, "size=2m,mode=0755") != 0) {
        place_clear(&p);
        skip();
    }
    assert_ok(data_plugin()->make(&p.config, false, NULL, NULL, &place_error));
    assert_status(data_plugin()->check(&p.config, NULL, NULL, &place_error), ESDM_ENOSPC);
    fill_up(&p);
    assert_ok(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error));
    assert_int_equal(umount(p.folder), 0);
    place_clear(&p);
}

const struct CMUnitTest data_full_tests[] = {
    cmocka_unit_test(test_pack__full_memory_target),
    cmocka_unit_test(test_pack__file_size_limit),
    cmocka_unit_test(test_pack__full_disk),
};
const size_t data_full_count = sizeof data_full_tests / sizeof data_full_tests[0];
