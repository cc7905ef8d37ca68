/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Mode archive: what it stores in one piece, and that small readers can still read it. */
#define _XOPEN_SOURCE 700
#include "testing.h"

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <time.h>

#define MIB   (UINT64_C(1) << 20)
#define BOUND 0.05

/* ---- sites and data ----------------------------------------------------------------------- */

/* The configuration of the site, whose engine may differ each time. */
static const char *
config_with(const char *engine)
{
    static char config[1024];
    snprintf(config, sizeof config,
             "{\"site\":{\"name\":\"archive\"},\"targets\":[{\"name\":\"disk\","
             "\"plugin\":\"posix\",\"directory\":\"%s/data\"}],\"metadata\":{\"plugin\":\"sqlite\","
             "\"directory\":\"%s/meta\"},\"engine\":{\"inline\":0,%s}}",
             test_folder, test_folder, engine);
    return config;
}

static esdm_session *
open_with(const char *engine)
{
    esdm_session *session;
    esdm_session_options options = {.config_json = config_with(engine)};
    ok(esdm_session_open(&options, &session, ERR));
    return session;
}

static float
value_at(uint64_t i)
{
    return (float) (280 + 12 * sin((double) (i % 4096) * 0.003) +
                    0.3 * cos((double) (i / 4096) * 0.1) + 0.01 * (double) (i * 7919 % 89));
}

static float *
make_values(uint64_t count)
{
    float *values = malloc(count * sizeof *values);
    check(values != NULL);
    for (uint64_t i = 0; i < count; i++)
        values[i] = value_at(i);
    return values;
}

static void
state_accuracy(esdm_dataset *dataset, const char *quantities)
{
    esdm_accuracy accuracy;
    esdm_accuracy_init(&accuracy);
    ok(esdm_accuracy_parse(&accuracy, quantities, NULL, ERR));
    ok(esdm_dataset_set_accuracy(dataset, &accuracy, ERR));
}

static esdm_dataset *
define(esdm_session *session, const char *name, const uint64_t *size, const uint64_t *chunk,
       const char *quantities, esdm_container **ret_container)
{
    static const char *const names[] = {"t", "y", "x"};
    esdm_dimension *dims[3];
    esdm_dataset *dataset;
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, ret_container, ERR));
    esdm_group *root = esdm_container_root(*ret_container);
    for (int d = 0; d < 3; d++)
        ok(esdm_dimension_create(root, names[d], size[d], &dims[d], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 3, dims, &dataset, ERR));
    if (chunk != NULL)
        ok(esdm_dataset_set_chunk(dataset, chunk, ERR));
    state_accuracy(dataset, quantities);
    return dataset;
}

/* Writes indices [first, first + count) of the slowest dimension. */
static void
write_planes(esdm_dataset *dataset, const uint64_t *size, uint64_t first, uint64_t count,
             const float *values)
{
    esdm_dataspace space;
    const uint64_t offset[3] = {first, 0, 0};
    const uint64_t extent[3] = {count, size[1], size[2]};
    ok(esdm_dataspace_init(&space, 3, offset, extent, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, values + first * size[1] * size[2], NULL,
                  ERR));
}

static esdm_status
read_point(esdm_dataset *dataset, const uint64_t *at, float *ret_value)
{
    esdm_dataspace space;
    const uint64_t one[3] = {1, 1, 1};
    ok(esdm_dataspace_init(&space, 3, at, one, ERR));
    return esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, ret_value, NULL, ERR);
}

static void
check_value(float again, uint64_t i)
{
    if (!(fabsl((long double) again - (long double) value_at(i)) <= (long double) BOUND))
        die("element %" PRIu64 ", %.9g, became %.9g", i, (double) value_at(i), (double) again);
}

typedef struct found {
    uint64_t fragments;
    uint64_t largest;
    uint64_t position;
    uint64_t stored_bytes;
    char pack[256];
} found;

static bool
note_fragment(const esdm_fragment_info *info, void *user)
{
    found *f = user;
    f->fragments++;
    f->largest = info->raw_bytes > f->largest ? info->raw_bytes : f->largest;
    f->position = info->position;
    f->stored_bytes += info->stored_bytes;
    snprintf(f->pack, sizeof f->pack, "%s", info->pack);
    return true;
}

static found
find_fragments(esdm_dataset *dataset)
{
    found f = {0};
    ok(esdm_dataset_fragments(dataset, note_fragment, &f, ERR));
    return f;
}

/* How many fragments a field becomes that is written by so many planes at once. */
static uint64_t
fragments_of(esdm_session *session, const char *name, const uint64_t *size, const uint64_t *chunk,
             const char *quantities, uint64_t planes)
{
    esdm_container *container;
    esdm_dataset *dataset = define(session, name, size, chunk, quantities, &container);
    float *values = make_values(size[0] * size[1] * size[2]);
    for (uint64_t t = 0; t < size[0]; t += planes)
        write_planes(dataset, size, t, planes, values);
    ok(esdm_container_commit(container, NULL, ERR));
    free(values);
    found f = find_fragments(dataset);
    ok(esdm_container_close(container, ERR));
    return f.fragments;
}

/* ---- tests -------------------------------------------------------------------------------- */

static const char archive[] = "abs=0.05; mode=archive";

static void
test_what_fits_a_block_is_one_fragment(void)
{
    static const uint64_t size[3] = {5, 512, 512}; /* 5 MiB */
    static const uint64_t small[3] = {2, 512, 512};
    static const uint64_t chunk[3] = {1, 128, 512}; /* 256 KiB */
    esdm_session *session = open_with("\"threads\":1,\"memory\":\"256 MiB\"");
    check(fragments_of(session, "whole", size, NULL, archive, 5) == 1);
    check(fragments_of(session, "whole-fast", size, NULL, "mode=speed", 5) == 2);
    check(fragments_of(session, "planes", small, NULL, archive, 1) == 1);
    check(fragments_of(session, "planes-fast", small, NULL, "mode=speed", 1) == 2);
    check(fragments_of(session, "chunks", small, chunk, archive, 2) == 1);
    check(fragments_of(session, "chunks-fast", small, chunk, "mode=speed", 2) == 8);
    esdm_session_close(session);

    session = open_with("\"threads\":1,\"memory\":\"256 MiB\",\"fragment\":\"1 MiB\"");
    check(fragments_of(session, "stated", small, NULL, archive, 2) == 2);
    esdm_session_close(session);
}

/* The mode may change while data are written. */
static void
test_the_mode_may_change(void)
{
    static const uint64_t size[3] = {4, 512, 512};
    esdm_session *session = open_with("\"threads\":1,\"memory\":\"256 MiB\"");
    esdm_container *container;
    esdm_dataset *dataset = define(session, "change", size, NULL, "mode=speed", &container);
    float *values = make_values(size[0] * size[1] * size[2]);
    write_planes(dataset, size, 0, 2, values);
    state_accuracy(dataset, archive);
    for (uint64_t t = 2; t < 4; t++)
        write_planes(dataset, size, t, 1, values);
    ok(esdm_container_commit(container, NULL, ERR));
    found f = find_fragments(dataset);
    check(f.fragments == 2 && f.largest == 2 * MIB);
    free(values);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

/* A cache of 1 MiB keeps no block of 5 MiB. */
static void
test_small_readers_can_read_it(void)
{
    static const uint64_t size[3] = {5, 512, 512};
    esdm_session *session = open_with("\"threads\":1,\"memory\":\"4 MiB\",\"fragment\":\"1 MiB\"");
    esdm_container *container;
    esdm_dataspace space;
    uint64_t count = size[0] * size[1] * size[2];
    ok(esdm_container_open(session, "whole", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                           ERR));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    for (uint64_t i = 0; i < 12; i++) {
        float value;
        uint64_t e = i * 113003 % count;
        ok(read_point(dataset, (uint64_t[]){e / (512 * 512), e / 512 % 512, e % 512}, &value));
        check_value(value, e);
    }
    const uint64_t offset[3] = {0, 100, 7};
    const uint64_t column[3] = {5, 300, 1};
    float some[5 * 300];
    ok(esdm_dataspace_init(&space, 3, offset, column, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, some, NULL, ERR));
    for (uint64_t i = 0; i < 5 * 300; i++)
        check_value(some[i], (i / 300 * 512 + 100 + i % 300) * 512 + 7);
    float *all = malloc(count * sizeof *all);
    check(all != NULL);
    ok(esdm_dataspace_init(&space, 3, NULL, size, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, all, NULL, ERR));
    for (uint64_t i = 0; i < count; i++)
        check_value(all[i], i);
    free(all);
    esdm_container_discard(container);
    esdm_session_close(session);
}

static const char *wanted_pack;
static char pack_path[512];

static int
note_pack(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    size_t n = strlen(path);
    size_t wanted = strlen(wanted_pack);
    (void) status;
    (void) walk;
    if (kind == FTW_F && n >= wanted && strcmp(path + n - wanted, wanted_pack) == 0)
        snprintf(pack_path, sizeof pack_path, "%s", path);
    return 0;
}

/* Destroys the last bytes of a fragment. */
static void
damage(const found *f)
{
    char folder[300];
    uint8_t bytes[64];
    snprintf(folder, sizeof folder, "%s/data", test_folder);
    wanted_pack = f->pack;
    check(nftw(folder, note_pack, 8, FTW_PHYS) == 0 && pack_path[0] != '\0');
    int fd = open(pack_path, O_RDWR);
    off_t at = (off_t) (f->position + f->stored_bytes - sizeof bytes);
    check(fd >= 0 && pread(fd, bytes, sizeof bytes, at) == (ssize_t) sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] ^= 0xFF;
    check(pwrite(fd, bytes, sizeof bytes, at) == (ssize_t) sizeof bytes && close(fd) == 0);
}

/* Of a fragment of 3 blocks the last one is destroyed: only points in it cannot be read. */
static void
test_a_point_needs_its_block_alone(void)
{
    static const uint64_t size[3] = {3, 512, 512};
    static const char engine[] = "\"threads\":1,\"memory\":\"16 MiB\",\"fragment\":\"4 MiB\"";
    esdm_session *session = open_with(engine);
    esdm_container *container;
    float value;
    float *values = make_values(size[0] * size[1] * size[2]);
    esdm_dataset *dataset = define(session, "blocks", size, NULL, archive, &container);
    write_planes(dataset, size, 0, 3, values);
    ok(esdm_container_commit(container, NULL, ERR));
    found f = find_fragments(dataset);
    check(f.fragments == 1 && f.largest == 3 * MIB);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    free(values);

    damage(&f);
    session = open_with(engine); /* nothing of it is cached */
    ok(esdm_container_open(session, "blocks", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                           ERR));
    dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    for (uint64_t t = 0; t < 2; t++) {
        ok(read_point(dataset, (uint64_t[]){t, 511, 511}, &value));
        check_value(value, (t * 512 + 511) * 512 + 511);
    }
    fails(read_point(dataset, (uint64_t[]){2, 0, 0}, &value), ESDM_ECORRUPT, "block 2 of 3");
    esdm_container_discard(container);
    esdm_session_close(session);
}

static void
read_all(esdm_dataset *dataset, const uint64_t *size, float *values)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 3, NULL, size, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, ERR));
}

/* Of a block of 5 MiB a point takes a part, until so many were read that all of it is kept; the
 * values are those of the whole each time. */
static void
test_a_point_takes_a_part_of_its_block(void)
{
    static const uint64_t size[3] = {5, 512, 512};
    const uint64_t count = size[0] * size[1] * size[2];
    float *values = malloc(count * sizeof *values);
    clock_t one = 0;
    clock_t all = 0;
    check(values != NULL);
    for (uint64_t turn = 0; turn < 5; turn++) {
        esdm_session *session = open_with("\"threads\":1,\"memory\":\"256 MiB\"");
        esdm_container *container;
        float value;
        ok(esdm_container_open(session, "whole", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                               ERR));
        esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
        const uint64_t at[3] = {turn, turn * 100, 77};
        clock_t begin = clock();
        ok(read_point(dataset, at, &value));
        clock_t took = clock() - begin;
        one = turn == 0 || took < one ? took : one;
        check_value(value, (at[0] * 512 + at[1]) * 512 + at[2]);
        begin = clock();
        read_all(dataset, size, values);
        took = clock() - begin;
        all = turn == 0 || took < all ? took : all;
        check(values[(at[0] * 512 + at[1]) * 512 + at[2]] == value);
        esdm_container_discard(container);
        esdm_session_close(session);
    }
    if (!(2 * one < all))
        die("a point took %.1f ms, all %.1f ms", 1e3 * (double) one / CLOCKS_PER_SEC,
            1e3 * (double) all / CLOCKS_PER_SEC);

    esdm_session *session = open_with("\"threads\":1,\"memory\":\"256 MiB\"");
    esdm_container *container;
    esdm_dataspace space;
    ok(esdm_container_open(session, "whole", ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                           ERR));
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "v");
    for (uint64_t i = 0; i < 40; i++) { /* columns through some parts, in steps */
        const uint64_t offset[3] = {0, i * 11, i * 12};
        const uint64_t column[3] = {5, 70, 1};
        float some[5 * 70];
        ok(esdm_dataspace_init(&space, 3, offset, column, ERR));
        ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, some, NULL, ERR));
        for (uint64_t k = 0; k < 5 * 70; k++)
            check(some[k] == values[(k / 70 * 512 + offset[1] + k % 70) * 512 + offset[2]]);
    }
    free(values);
    esdm_container_discard(container);
    esdm_session_close(session);
}

static uint64_t
write_whole_numbers(esdm_session *session, const char *name, const uint64_t *size,
                    const char *quantities, float *values)
{
    const uint64_t plane = size[1] * size[2];
    float *again = malloc(size[0] * plane * sizeof *again);
    esdm_container *container;
    esdm_dataset *dataset = define(session, name, size, NULL, quantities, &container);
    esdm_dataspace space;
    check(again != NULL);
    write_planes(dataset, size, 0, size[0], values);
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_dataspace_init(&space, 3, (const uint64_t[]){0, 0, 0}, size, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT32, again, NULL, ERR));
    for (uint64_t i = 0; i < size[0] * plane; i++)
        check(fabsf(again[i] - values[i]) <= 1e-4F * fabsf(values[i]));
    found f = find_fragments(dataset);
    check(f.fragments == 1);
    memcpy(values, again, size[0] * plane * sizeof *again);
    free(again);
    ok(esdm_container_close(container, ERR));
    return f.stored_bytes;
}

/* Whole metres: rounding of bits leaves them as they are, so that they look as if they had been
 * rounded before. Nothing that changes them is taken then, but what is shorter without loss is. */
static void
test_whole_numbers_take_no_more_than_without_loss(void)
{
    static const uint64_t size[3] = {1, 700, 700};
    const uint64_t count = size[1] * size[2];
    esdm_session *session = open_with("\"threads\":1,\"memory\":\"256 MiB\"");
    float *values = malloc(count * sizeof *values);
    check(values != NULL);
    for (uint64_t i = 0; i < count; i++)
        values[i] =
            rintf(6600 + 1500 * sinf((float) (i % 700) * 0.02F) * cosf((float) (i / 700) * 0.015F) +
                  (float) (i * 2654435761u >> 20 & 15));
    uint64_t exact = write_whole_numbers(session, "metres", size, "mode=archive", values);
    uint64_t lossy = write_whole_numbers(session, "about", size, "rel=1e-4; mode=archive", values);
    uint64_t twice = write_whole_numbers(session, "twice", size, "rel=1e-4; mode=archive", values);
    if (lossy > exact + exact / 50 || twice != lossy)
        die("%" PRIu64 " bytes within a tolerance, %" PRIu64 " again, %" PRIu64 " without loss",
            lossy, twice, exact);
    free(values);
    esdm_session_close(session);
}

static uint64_t
write_mixed(esdm_session *session, const char *name, const uint64_t *size, uint64_t at_once,
            const float *values)
{
    esdm_container *container;
    esdm_dataset *dataset = define(session, name, size, NULL, "rel=1e-4; mode=archive", &container);
    for (uint64_t t = 0; t < size[0]; t += at_once)
        write_planes(dataset, size, t, at_once, values);
    ok(esdm_container_commit(container, NULL, ERR));
    found f = find_fragments(dataset);
    check(f.fragments > 1);
    ok(esdm_container_close(container, ERR));
    return f.stored_bytes;
}

/* Whole metres that are kept without loss are not to keep others that are written with them. */
static void
test_whole_numbers_do_not_bind_others(void)
{
    static const uint64_t size[3] = {8, 700, 700};
    const uint64_t count = size[0] * size[1] * size[2];
    esdm_session *session = open_with("\"threads\":1,\"fragment\":\"4 MiB\"");
    float *values = malloc(count * sizeof *values);
    check(values != NULL);
    for (uint64_t i = 0; i < count; i++) {
        float x = 6600 + 1500 * sinf((float) (i % 700) * 0.02F) * cosf((float) (i / 700) * 0.015F) +
                  (float) (i * 2654435761u >> 16 & 255) / 16;
        values[i] = i < count / 2 ? rintf(x) : x;
    }
    uint64_t once = write_mixed(session, "once", size, size[0], values);
    uint64_t apart = write_mixed(session, "apart", size, 2, values);
    if (once > apart + apart / 4)
        die("%" PRIu64 " bytes written at once, %" PRIu64 " two by two", once, apart);
    free(values);
    esdm_session_close(session);
}

int
main(void)
{
    make_site(); /* for its folder */
    esdm_site_options options = {.config_json = config_with("\"threads\":1")};
    ok(esdm_site_create(&options, ERR));
    test_what_fits_a_block_is_one_fragment();
    test_the_mode_may_change();
    test_small_readers_can_read_it();
    test_a_point_takes_a_part_of_its_block();
    test_a_point_needs_its_block_alone();
    test_whole_numbers_take_no_more_than_without_loss();
    test_whole_numbers_do_not_bind_others();
    return 0;
}
