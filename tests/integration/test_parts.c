/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Large uncompressed fragments, which several threads read in parts: everything comes as with one
 * thread. */
#define _XOPEN_SOURCE 700
#include "testing.h"

enum { STEPS = 3, LEVELS = 7, ROWS = 401, COLUMNS = 499 }; /* a fragment of 5.6 MB for each step */
enum { STEP_CELLS = LEVELS * ROWS * COLUMNS, CELLS = STEPS * STEP_CELLS };

static esdm_session *
open_with(unsigned threads)
{
    char config[1024];
    snprintf(
        config, sizeof config,
        "{\"site\":{\"name\":\"test\"},\"targets\":[{\"name\":\"disk\",\"plugin\":\"posix\","
        "\"directory\":\"%s/packs\"}],\"metadata\":{\"plugin\":\"sqlite\",\"directory\":"
        "\"%s/metadata\"},\"engine\":{\"threads\":%u,\"codec\":\"none\",\"fragment\":\"8 MiB\"}}",
        test_folder, test_folder, threads);
    esdm_session *session;
    esdm_session_options options = {.config_json = config};
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

static void
write_field(esdm_session *session)
{
    static const uint64_t size[] = {STEPS, LEVELS, ROWS, COLUMNS};
    static const char *const names[] = {"t", "z", "y", "x"};
    esdm_container *container;
    esdm_dimension *dims[4];
    esdm_dataset *dataset;
    int32_t *values = malloc(sizeof *values * STEP_CELLS);
    check(values != NULL);
    ok(esdm_container_create(session, "field", ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    for (int d = 0; d < 4; d++)
        ok(esdm_dimension_create(root, names[d], size[d], &dims[d], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_INT32, 4, dims, &dataset, ERR));
    for (uint64_t t = 0; t < STEPS; t++) {
        esdm_dataspace space;
        for (uint64_t i = 0; i < STEP_CELLS; i++)
            values[i] = (int32_t) ((t * STEP_CELLS + i) * UINT64_C(2654435761) >> 8);
        ok(esdm_dataspace_init(&space, 4, (uint64_t[]){t, 0, 0, 0},
                               (uint64_t[]){1, LEVELS, ROWS, COLUMNS}, ERR));
        ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, values, NULL, ERR));
    }
    ok(esdm_container_close(container, ERR));
    free(values);
}

typedef struct request {
    uint64_t offset[4];
    uint64_t size[4];
    uint64_t stride[4];
    bool backwards; /* the caller's rows */
    esdm_type type;
} request;

static const request requests[] = {
    {{0, 0, 0, 0}, {3, 7, 401, 499}, {1, 1, 1, 1}, false, ESDM_TYPE_INT32},
    {{1, 0, 0, 0}, {1, 7, 401, 499}, {1, 1, 1, 1}, false, ESDM_TYPE_INT32},
    {{1, 0, 0, 0}, {1, 7, 401, 499}, {1, 1, 1, 1}, false, ESDM_TYPE_INT16}, /* many do not fit */
    {{0, 0, 0, 0}, {3, 7, 401, 499}, {1, 1, 1, 1}, false, ESDM_TYPE_UINT8},
    {{2, 0, 0, 0}, {1, 7, 401, 499}, {1, 1, 1, 1}, false, ESDM_TYPE_FLOAT64},
    {{0, 1, 3, 5}, {3, 6, 390, 400}, {1, 1, 1, 1}, false, ESDM_TYPE_INT32},
    {{0, 0, 0, 0}, {2, 4, 200, 167}, {2, 2, 2, 3}, false, ESDM_TYPE_INT32},
    {{0, 0, 0, 0}, {3, 7, 401, 499}, {1, 1, 1, 1}, true, ESDM_TYPE_INT32},
    {{1, 6, 0, 0}, {1, 1, 401, 499}, {1, 1, 1, 1}, true, ESDM_TYPE_INT64},
};

/* What a request brings, with guards around. */
static uint8_t *
read_request(esdm_dataset *dataset, const request *r, uint64_t *ret_out_of_range)
{
    enum { ROOM = 8 * CELLS + 64 };
    esdm_dataspace space;
    uint8_t *memory = malloc(ROOM);
    check(memory != NULL);
    memset(memory, 0x5A, ROOM);
    size_t bytes = esdm_type_size(r->type);
    uint8_t *first = memory + 32;
    ok(esdm_dataspace_init(&space, 4, r->offset, r->size, ERR));
    space.has_stride = true;
    memcpy(space.stride, r->stride, sizeof r->stride);
    if (r->backwards) {
        int64_t row = (int64_t) r->size[3];
        space.has_memory_stride = true;
        space.memory_stride[3] = 1;
        space.memory_stride[2] = -row;
        space.memory_stride[1] = row * (int64_t) r->size[2];
        space.memory_stride[0] = space.memory_stride[1] * (int64_t) r->size[1];
        first += (size_t) row * (r->size[2] - 1) * bytes;
    }
    ok(esdm_read(dataset, &space, r->type, first, ret_out_of_range, ERR));
    return memory;
}

int
main(void)
{
    enum { COUNT = sizeof requests / sizeof requests[0], ROOM = 8 * CELLS + 64 };
    uint8_t *one[COUNT];
    uint64_t misfits[COUNT];
    make_site();
    for (unsigned threads = 1; threads <= 7; threads += 3) {
        esdm_session *session = open_with(threads);
        esdm_container *container;
        if (threads == 1)
            write_field(session);
        ok(esdm_container_open(session, "field", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                               ERR));
        esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t out_of_range = 0;
            uint8_t *got = read_request(dataset, &requests[i], &out_of_range);
            if (threads == 1) {
                one[i] = got;
                misfits[i] = out_of_range;
                continue;
            }
            if (memcmp(got, one[i], ROOM) != 0)
                die("request %zu differs with %u threads", i, threads);
            if (out_of_range != misfits[i])
                die("request %zu: %" PRIu64 " out of range with %u threads, %" PRIu64 " with one",
                    i, out_of_range, threads, misfits[i]);
            free(got);
        }
        ok(esdm_container_close(container, ERR));
        esdm_session_close(session);
    }
    check(misfits[2] > 0 && misfits[3] > misfits[2] && misfits[0] == 0);
    const int32_t *all = (const int32_t *) (const void *) (one[0] + 32);
    for (uint64_t i = 0; i < CELLS; i++)
        check(all[i] == (int32_t) (i * UINT64_C(2654435761) >> 8));
    for (size_t i = 0; i < COUNT; i++)
        free(one[i]);
    puts("ok");
    return 0;
}
