/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Target, packs and bytes that the tests of data targets share, and the list of these tests. */
#include "data.h"

#include <stdlib.h>

const esdm_data_plugin *
data_plugin(void)
{
    return (const esdm_data_plugin *) place_current;
}

int
data_setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    place_init(&f->place, place_current_kind);
    assert_ok(data_plugin()->make(&f->place.config, false, NULL, NULL, &place_error));
    assert_ok(data_plugin()->open(&f->place.config, &f->target, &place_error));
    *state = f;
    return 0;
}

int
data_teardown(void **state)
{
    fixture *f = *state;
    data_plugin()->close(f->target);
    assert_ok(data_plugin()->remove(&f->place.config, false, NULL, NULL, &place_error));
    place_clear(&f->place);
    free(f);
    return 0;
}

uint8_t
data_byte(uint64_t pack, uint64_t position)
{
    uint64_t x = (position + pack * UINT64_C(1000003)) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint8_t) (x >> 56);
}

void
data_fill(uint8_t *to, uint64_t pack, uint64_t position, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = data_byte(pack, position + i);
}

void
data_make_pack(void *target, const char *name, uint64_t pack, size_t bytes)
{
    void *handle = NULL;
    uint64_t position = 99;
    uint8_t *data = malloc(bytes + 1);
    assert_non_null(data);
    data_fill(data, pack, 0, bytes);
    assert_ok(data_plugin()->pack_create(target, name, &handle, &place_error));
    esdm_iov piece = {.data = data, .bytes = bytes};
    assert_ok(data_plugin()->pack_append(handle, &piece, 1, &position, &place_error));
    assert_int_equal(position, 0);
    assert_ok(data_plugin()->pack_seal(handle, &place_error));
    free(data);
}

void
data_check_pack(void *target, const char *name, uint64_t pack, uint64_t position, size_t bytes)
{
    uint8_t *data = malloc(bytes + 1);
    assert_non_null(data);
    esdm_range range = {.position = position, .bytes = bytes, .buffer = data};
    assert_ok(data_plugin()->pack_read(target, name, &range, 1, &place_error));
    for (size_t i = 0; i < bytes; i++) {
        if (data[i] != data_byte(pack, position + i))
            fail_msg("%s: wrong byte at %llu", name, (unsigned long long) (position + i));
    }
    free(data);
}

int
main(void)
{
    /* A loadable one: not armed, it must behave as any other. */
    const esdm_plugin *plugin = NULL;
    if (getenv("ESDM_TEST_ONLY") == NULL &&
        esdm__plugin_find(ESDM_PLUGIN_DATA, "faulty", &plugin, &place_error) != ESDM_OK)
        return 1;
    int failed = place_run_all(ESDM_PLUGIN_DATA, "data.place", data_place_tests, data_place_count);
    failed += place_run_all(ESDM_PLUGIN_DATA, "data.pack", data_pack_tests, data_pack_count);
    failed += place_run_all(ESDM_PLUGIN_DATA, "data.full", data_full_tests, data_full_count);
    failed += place_run_all(ESDM_PLUGIN_DATA, "data.stress", data_stress_tests, data_stress_count);
    return failed;
}
