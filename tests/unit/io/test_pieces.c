/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Records whose lengths do not fit their boxes: a page can be forged, its checksum too. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "codec/blob.h"
#include "io/encode/strings.h"
#include "io/io.h"
#include "io/read/read.h"

enum { CELLS = 1000, PIECES = 2 };

static uint8_t stored[4096];

static esdm_status
read_stored(void *target, const char *name, const esdm_range *ranges, size_t nranges,
            esdm_error *err)
{
    (void) target;
    (void) name;
    (void) err;
    for (size_t i = 0; i < nranges; i++)
        memcpy(ranges[i].buffer, stored + ranges[i].position, ranges[i].bytes);
    return ESDM_OK;
}

static const esdm_data_plugin plugin = {.pack_read = read_stored};
static esdm__target target = {.plugin = &plugin, .name = "fake", .state = ESDM__TARGET_OPEN};
static esdm__site site;
static esdm_session session = {.site = &site, .targets = &target, .ntargets = 1};
static esdm_container *container;
static esdm_dataset *numbers;
static esdm_dataset *texts;

static int
set_up(void **state)
{
    esdm_dimension *cell;
    (void) state;
    container = esdm__container_new("c");
    assert_non_null(container);
    container->session = &session;
    esdm_group *root = esdm_container_root(container);
    assert_int_equal(esdm_dimension_create(root, "cell", CELLS, &cell, NULL), ESDM_OK);
    assert_int_equal(
        esdm_dataset_create(root, "numbers", ESDM_TYPE_FLOAT64, 1, &cell, &numbers, NULL), ESDM_OK);
    assert_int_equal(esdm_dataset_create(root, "texts", ESDM_TYPE_STRING, 1, &cell, &texts, NULL),
                     ESDM_OK);
    return 0;
}

static int
tear_down(void **state)
{
    (void) state;
    esdm__container_free(container);
    return 0;
}

/* Reads pieces of a selection along one axis into memory whose elements are `stride` apart. */
static esdm_status
read_with(esdm_status (*read)(const esdm__transfer *, const esdm__piece *, size_t, esdm_error *),
          esdm_dataset *dataset, const esdm_dataspace *space, const esdm__piece *pieces,
          size_t npieces, const esdm__memory *memory, esdm_error *err)
{
    esdm__elements elements;
    assert_int_equal(esdm__elements_of(dataset, &elements, NULL), ESDM_OK);
    const esdm__transfer t = {
        .dataset = dataset, .elements = &elements, .space = space, .memory = *memory};
    return read != NULL ? read(&t, pieces, npieces, err)
                        : esdm__read_pieces(&t, pieces, npieces, NULL, err);
}

static esdm_status
read_pieces(esdm_dataset *dataset, const esdm_dataspace *space, const esdm__piece *pieces,
            size_t npieces, const esdm__memory *memory, esdm_error *err)
{
    return read_with(NULL, dataset, space, pieces, npieces, memory, err);
}

/* Reads all cells through pieces that are CELLS / PIECES long each. */
static void
assert_corrupt(esdm_dataset *dataset, esdm__fragment *fragments)
{
    static void *buffer[CELLS];
    esdm__piece pieces[PIECES];
    esdm_dataspace space;
    esdm_error error = {0};
    for (uint64_t i = 0; i < PIECES; i++) {
        esdm__box_set(&fragments[i].box, 1, (uint64_t[]){i * CELLS / PIECES},
                      (uint64_t[]){CELLS / PIECES});
        pieces[i] = (esdm__piece){.fragment = &fragments[i], .part = fragments[i].box};
    }
    assert_int_equal(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){CELLS}, NULL), ESDM_OK);
    esdm_status status =
        read_pieces(dataset, &space, pieces, PIECES,
                    &(esdm__memory){dataset->type, buffer, (int64_t[]){1}}, &error);
    assert_int_equal(status, ESDM_ECORRUPT);
    assert_non_null(strstr(error.message, "do not fit its box"));
}

static void
test_pieces__inline_data_is_shorter_than_its_box(void **state)
{
    (void) state;
    uint8_t *data = calloc(1, 16);
    esdm__fragment fragments[PIECES];
    for (size_t i = 0; i < PIECES; i++)
        fragments[i] = (esdm__fragment){.inline_data = data, .raw_bytes = 16, .stored_bytes = 16};
    session.pool = esdm__pool_new(1, 0);
    assert_corrupt(numbers, fragments);
    assert_corrupt(texts, fragments);
    esdm__pool_free(session.pool);
    free(data);
}

static void
test_pieces__blobs_are_shorter_than_their_boxes(void **state)
{
    (void) state;
    static const esdm__pack_name pack = {"fake", "pack"};
    const esdm__chain none = {0};
    esdm__blob blob;
    esdm__fragment fragments[PIECES];
    const double raw[2] = {1, 2};
    assert_int_equal(
        esdm__blob_encode(&none, ESDM_TYPE_FLOAT64, 8, 1, raw, sizeof raw, &blob, NULL), ESDM_OK);
    size_t bytes = blob.head_bytes + blob.payload_bytes;
    for (size_t i = 0; i < PIECES; i++) {
        memcpy(stored + i * bytes, blob.head, blob.head_bytes);
        memcpy(stored + i * bytes + blob.head_bytes, raw, sizeof raw);
        fragments[i] = (esdm__fragment){.raw_bytes = sizeof raw,
                                        .stored_bytes = bytes,
                                        .position = i * bytes,
                                        .pack = &pack,
                                        .head_bytes = (uint32_t) blob.head_bytes};
    }
    esdm__blob_clear(&blob);
    session.pool = esdm__pool_new(1, 0);
    assert_corrupt(numbers, fragments);
    esdm__pool_free(session.pool);
}

/* Every third cell, of a constant and of a kind that nobody knows here. */
static void
test_pieces__constants_are_spread_and_unknown_kinds_refused(void **state)
{
    (void) state;
    static const double value = 7.75;
    esdm_dataspace space;
    esdm_error error = {0};
    float cells[CELLS] = {0};
    const esdm__memory memory = {ESDM_TYPE_FLOAT32, cells, (int64_t[]){3}};
    esdm__fragment fragment = {.kind = ESDM__KIND_CONSTANT,
                               .inline_data = (const uint8_t *) &value,
                               .raw_bytes = CELLS * sizeof value,
                               .stored_bytes = sizeof value};
    esdm__box_set(&fragment.box, 1, NULL, (uint64_t[]){CELLS});
    const esdm__piece piece = {.fragment = &fragment, .part = fragment.box};
    session.pool = esdm__pool_new(1, 0);
    assert_int_equal(esdm_dataspace_init(&space, 1, (uint64_t[]){1}, (uint64_t[]){333}, NULL),
                     ESDM_OK);
    assert_int_equal(esdm_dataspace_set_stride(&space, (uint64_t[]){3}, NULL), ESDM_OK);
    assert_int_equal(read_pieces(numbers, &space, &piece, 1, &memory, NULL), ESDM_OK);
    for (size_t i = 0; i < CELLS; i++)
        assert_true(cells[i] == (i % 3 == 0 && i < 999 ? 7.75f : 0));

    fragment.stored_bytes = 4; /* no double */
    assert_int_equal(read_pieces(numbers, &space, &piece, 1, &memory, NULL), ESDM_ECORRUPT);
    fragment.kind = 9;
    fragment.inline_data = NULL;
    assert_int_equal(read_pieces(numbers, &space, &piece, 1, &memory, &error), ESDM_ENOTSUP);
    assert_non_null(strstr(error.message, "kind 9"));
    assert_non_null(strstr(error.message, "newer ESDM"));
    esdm__pool_free(session.pool);
}

/* A forged box of almost any size is cut into few parts. */
static void
test_pieces__a_huge_box_is_no_huge_plan(void **state)
{
    (void) state;
    static double buffer[2];
    static const esdm__pack_name pack = {"fake", "pack"};
    const uint64_t cells = UINT64_C(1) << 60;
    esdm__fragment fragment = {
        .raw_bytes = 16, .stored_bytes = 64, .pack = &pack, .head_bytes = 48};
    esdm_dataspace space;
    esdm_error error = {0};
    esdm__box_set(&fragment.box, 1, (uint64_t[]){0}, &cells);
    const esdm__piece piece = {.fragment = &fragment, .part = fragment.box};
    assert_int_equal(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){2}, NULL), ESDM_OK);
    space.has_stride = true;
    space.stride[0] = cells / 2;
    session.pool = esdm__pool_new(2, 0);
    esdm_status status =
        read_with(esdm__read_dense, numbers, &space, &piece, 1,
                  &(esdm__memory){ESDM_TYPE_FLOAT64, buffer, (int64_t[]){1}}, &error);
    esdm__pool_free(session.pool);
    assert_int_equal(status, ESDM_ECORRUPT);
    assert_non_null(strstr(error.message, "do not fit its box"));
}

/* So is a forged length of interleaved fragments, which are cut into bands. */
static void
test_pieces__a_huge_length_is_no_huge_plan(void **state)
{
    (void) state;
    static double buffer[2];
    static const esdm__pack_name pack = {"fake", "pack"};
    const uint64_t cells = UINT64_C(1) << 60;
    esdm__fragment fragment = {.raw_bytes = UINT64_C(1) << 62,
                               .stored_bytes = 64,
                               .pack = &pack,
                               .head_bytes = 48,
                               .strided = true,
                               .stride = {2}};
    esdm_dataspace space;
    esdm_error error = {0};
    esdm__box_set(&fragment.box, 1, (uint64_t[]){0}, &cells);
    const esdm__piece piece = {.fragment = &fragment, .part = fragment.box};
    const esdm__piece pieces[2] = {piece, piece};
    assert_int_equal(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){2}, NULL), ESDM_OK);
    space.has_stride = true;
    space.stride[0] = cells / 2;
    session.pool = esdm__pool_new(2, 0);
    esdm_status status =
        read_with(esdm__read_bands, numbers, &space, pieces, 2,
                  &(esdm__memory){ESDM_TYPE_FLOAT64, buffer, (int64_t[]){1}}, &error);
    esdm__pool_free(session.pool);
    assert_int_equal(status, ESDM_ECORRUPT);
    assert_non_null(strstr(error.message, "is impossible"));
}

/* A read is repeated when fragments were moved meanwhile: what it has put there before is freed. */
static void
test_pieces__texts_are_read_twice(void **state)
{
    enum { TEXT = 1000, ROUNDS = 20 };
    static char *buffer[CELLS];
    static char text[TEXT + 1];
    static const char *list[CELLS];
    (void) state;
    memset(text, 't', TEXT);
    for (size_t i = 0; i < CELLS; i++)
        list[i] = i == 1 ? NULL : text;
    bool has_null = false;
    esdm__buffer data;
    esdm__buffer_init(&data);
    assert_int_equal(esdm__strings_encode(list, CELLS, &data, &has_null, NULL), ESDM_OK);
    esdm__fragment fragment = {
        .inline_data = data.data, .raw_bytes = data.bytes, .stored_bytes = data.bytes};
    esdm_dataspace space;
    esdm__box_set(&fragment.box, 1, (uint64_t[]){0}, (uint64_t[]){CELLS});
    const esdm__piece piece = {.fragment = &fragment, .part = fragment.box};
    assert_int_equal(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){CELLS}, NULL), ESDM_OK);
    session.pool = esdm__pool_new(1, 0);
    size_t before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        assert_int_equal(read_pieces(texts, &space, &piece, 1,
                                     &(esdm__memory){ESDM_TYPE_STRING, buffer, (int64_t[]){1}},
                                     NULL),
                         ESDM_OK);
        struct mallinfo2 memory = mallinfo2();
        if (round == 0)
            before = memory.uordblks;
        else if (memory.uordblks > before + (size_t) CELLS * TEXT)
            fail_msg("%zu bytes more after %d rounds", memory.uordblks - before, round);
    }
    esdm__pool_free(session.pool);
    for (size_t i = 0; i < CELLS; i++) {
        if (i == 1)
            assert_ptr_equal(buffer[i], esdm__text_null);
        else
            assert_string_equal(buffer[i], text);
        if (i != 1)
            free(buffer[i]);
    }
    esdm__buffer_clear(&data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pieces__inline_data_is_shorter_than_its_box, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_pieces__constants_are_spread_and_unknown_kinds_refused,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pieces__blobs_are_shorter_than_their_boxes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_pieces__a_huge_box_is_no_huge_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_pieces__a_huge_length_is_no_huge_plan, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_pieces__texts_are_read_twice, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
