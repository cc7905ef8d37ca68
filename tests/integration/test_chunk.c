/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Chunks that are kept elsewhere: what is encoded comes back, and what is damaged does not. */

#include "testing.h"

#include "esdm/chunk.h"

#define check_is(value, wanted)  check((value) == (wanted))
#define check_not(value, wanted) check((value) != (wanted))

enum { ROWS = 37, COLUMNS = 211 };

static void
fill(float *values)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float) (280 + i % COLUMNS / 8) + (float) (i % 7) / 4;
}

static void
comes_back_with_each_chain(void)
{
    static const char *const chains[] = {"none", "lz4", "zstd", "shuffle+zstd", "field"};
    static float values[ROWS * COLUMNS];
    const uint64_t shape[] = {ROWS, COLUMNS};
    fill(values);
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        void *bytes = NULL, *back = NULL;
        size_t size = 0, got = 0;
        check_is(
            esdm_chunk_encode(chains[i], ESDM_TYPE_FLOAT32, 2, shape, values, &bytes, &size, NULL),
            ESDM_OK);
        check(i == 0 || size < sizeof values / 2);
        check_is(esdm_chunk_decode(bytes, size, sizeof values, &back, &got, NULL), ESDM_OK);
        check_is(got, sizeof values);
        check(memcmp(back, values, sizeof values) == 0);
        free(back);
        free(bytes);
    }
}

static void
damage_is_found(void)
{
    static float values[ROWS * COLUMNS];
    const uint64_t shape[] = {ROWS, COLUMNS};
    uint8_t *bytes = NULL;
    void *back = NULL;
    size_t size = 0, got = 0;
    esdm_error err;
    fill(values);
    check_is(esdm_chunk_encode("shuffle+zstd", ESDM_TYPE_FLOAT32, 2, shape, values,
                               (void **) &bytes, &size, NULL),
             ESDM_OK);
    for (size_t at = 0; at < size; at += 1 + size / 199) { /* a byte of each part */
        bytes[at] ^= 0x41;
        esdm_status st = esdm_chunk_decode(bytes, size, sizeof values, &back, &got, &err);
        check(st == ESDM_ECORRUPT || st == ESDM_ENOTSUP);
        bytes[at] ^= 0x41;
    }
    for (size_t cut = 0; cut < size; cut += 1 + size / 97)
        check_not(esdm_chunk_decode(bytes, cut, sizeof values, &back, &got, &err), ESDM_OK);
    check_is(esdm_chunk_decode(bytes, size, sizeof values - 1, &back, &got, &err), ESDM_ECORRUPT);
    check(back == NULL);
    free(bytes);
}

static void
wrong_arguments_are_told(void)
{
    const uint64_t shape[] = {2, 0}, huge[] = {UINT64_MAX / 2, 16};
    float value[2] = {1, 2};
    void *bytes = NULL;
    size_t size = 0;
    esdm_error err;
    check_is(esdm_chunk_encode("zstd", ESDM_TYPE_FLOAT32, 2, shape, value, &bytes, &size, &err),
             ESDM_EINVAL);
    check(strstr(err.message, "axis 1") != NULL);
    check_is(esdm_chunk_encode("zstd", ESDM_TYPE_FLOAT32, 2, huge, value, &bytes, &size, &err),
             ESDM_EINVAL);
    check_is(esdm_chunk_encode("zstd", ESDM_TYPE_STRING, 1, shape, value, &bytes, &size, &err),
             ESDM_EINVAL);
    check_is(esdm_chunk_encode("nothing", ESDM_TYPE_FLOAT32, 1, shape, value, &bytes, &size, &err),
             ESDM_ENOENT);
    check_is(esdm_chunk_encode("zstd", ESDM_TYPE_FLOAT32, 1, NULL, value, &bytes, &size, &err),
             ESDM_EINVAL);
    check_is(esdm_chunk_encode("zstd", ESDM_TYPE_FLOAT32, 33, shape, value, &bytes, &size, &err),
             ESDM_EINVAL);
    check(bytes == NULL);
    check_is(esdm_chunk_encode("none", ESDM_TYPE_FLOAT32, 0, NULL, value, &bytes, &size, &err),
             ESDM_OK);
    free(bytes);
}

int
main(void)
{
    comes_back_with_each_chain();
    damage_is_found();
    wrong_arguments_are_told();
    puts("ok");
    return 0;
}
