/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* How many bytes of packs that are not stored yet may lie in memory. */
#include "pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What lies in packs that are not sealed; no server is asked as long as they are small. */

enum { PACKS = 200, BLOB = 100 << 10 };
static const uint64_t MEMORY = UINT64_C(4) << 20;

static esdm_error error;

static s3__target *
open_target(uint64_t memory_bytes)
{
    s3__target *target = NULL;
    const esdm_plugin_config config = {
        .name = "cloud",
        .json = "{\"bucket\": \"abc\", \"endpoint\": \"http://127.0.0.1:1\", \"access_key\": "
                "\"AK\", \"secret_key\": \"SK\"}",
        .path = "site.json: targets[0]",
        .site_id = "",
        .memory_bytes = memory_bytes};
    assert_int_equal(s3__target_new(&config, &target, &error), ESDM_OK);
    return target;
}

static void *
create(s3__target *target)
{
    static unsigned number;
    char name[64];
    void *pack = NULL;
    (void) snprintf(name, sizeof name, "00112233445566778899aabbccddeeff-0123456789abcdef-%x",
                    number++);
    assert_int_equal(s3__pack_create(target, name, &pack, &error), ESDM_OK);
    return pack;
}

static void
append(void *pack, size_t bytes)
{
    static uint8_t data[1 << 20];
    uint64_t position = 0;
    const esdm_iov iov = {data, bytes};
    assert_true(bytes <= sizeof data);
    assert_int_equal(s3__pack_append(pack, &iov, 1, &position, &error), ESDM_OK);
}

/* PACKS packs with `bytes` each, as the engine has them: what is full ends. However many there are,
 * they have about what the target may have. Returns how many ended. */
static size_t
fill_packs(size_t bytes)
{
    s3__target *target = open_target(MEMORY);
    void *packs[PACKS] = {NULL};
    size_t ended = 0;
    for (size_t i = 0; i < PACKS; i++) {
        packs[i] = create(target);
        append(packs[i], bytes);
        if (s3__pack_is_full(packs[i])) {
            assert_int_equal(s3__pack_discard(packs[i], &error), ESDM_OK);
            packs[i] = NULL;
            ended++;
        }
        assert_true(atomic_load(&target->held_bytes) <= 2 * MEMORY);
    }
    for (size_t i = 0; i < PACKS; i++)
        assert_int_equal(s3__pack_discard(packs[i], &error), ESDM_OK);
    assert_true(atomic_load(&target->filling_bytes) == 0 && atomic_load(&target->held_bytes) == 0);
    s3__close(target);
    return ended;
}

static void
test_pack__many_small_ones_have_a_bound(void **state)
{
    (void) state;
    size_t ended = fill_packs(BLOB);
    assert_true(ended > PACKS / 2 && ended < PACKS - MEMORY / BLOB / 2);
}

/* Each has a buffer. */
static void
test_pack__tiny_ones_count(void **state)
{
    (void) state;
    assert_true(fill_packs(100) > PACKS / 2);
}

/* Memory that packs have which are being stored is no reason to end small ones: a slow server
 * would get objects of one fragment each. */
static void
test_pack__those_that_end_do_not_count(void **state)
{
    (void) state;
    s3__target *target = open_target(MEMORY);
    atomic_fetch_add(&target->held_bytes, 4 * MEMORY);
    void *small = create(target);
    append(small, BLOB);
    assert_false(s3__pack_is_full(small));
    append(small, 1 << 20);
    assert_true(s3__pack_is_full(small));
    assert_int_equal(s3__pack_discard(small, &error), ESDM_OK);
    atomic_fetch_sub(&target->held_bytes, 4 * MEMORY);
    s3__close(target);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack__many_small_ones_have_a_bound),
        cmocka_unit_test(test_pack__tiny_ones_count),
        cmocka_unit_test(test_pack__those_that_end_do_not_count),
    };
    return cmocka_run_group_tests_name("s3.pack", tests, NULL, NULL);
}
