/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A looser promise takes no more bytes, and what is like nothing else does not choose for all. */
#define _XOPEN_SOURCE 700
#include "testing.h"

#include <math.h>

#define NY    700
#define NX    700
#define PLANE ((size_t) NY * NX)

static esdm_session *
open_site(void)
{
    static char config[1024];
    esdm_session *session;
    make_site(); /* for its folder */
    snprintf(config, sizeof config,
             "{\"site\":{\"name\":\"looser\"},\"targets\":[{\"name\":\"disk\",\"plugin\":\"posix\","
             "\"directory\":\"%s/data\"}],\"metadata\":{\"plugin\":\"sqlite\",\"directory\":"
             "\"%s/meta\"},\"engine\":{\"inline\":0,\"threads\":1}}",
             test_folder, test_folder);
    esdm_site_options options = {.config_json = config};
    esdm_session_options how = {.config_json = config};
    ok(esdm_site_create(&options, ERR));
    ok(esdm_session_open(&how, &session, ERR));
    return session;
}

static bool
add_bytes(const esdm_fragment_info *info, void *user)
{
    *(uint64_t *) user += info->stored_bytes;
    return true;
}

/* Bytes that planes take, all written at once. */
static uint64_t
stored(esdm_session *session, const char *quantities, uint64_t planes, const float *values)
{
    static const char *const names[] = {"t", "y", "x"};
    static int turn;
    const uint64_t size[3] = {planes, NY, NX}, zero[3] = {0, 0, 0};
    char name[32];
    uint64_t bytes = 0;
    esdm_container *container;
    esdm_dimension *dims[3];
    esdm_dataset *dataset;
    esdm_dataspace space;
    esdm_accuracy accuracy;
    snprintf(name, sizeof name, "c%d", turn++);
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    for (int d = 0; d < 3; d++)
        ok(esdm_dimension_create(root, names[d], size[d], &dims[d], ERR));
    ok(esdm_dataset_create(root, "v", ESDM_TYPE_FLOAT32, 3, dims, &dataset, ERR));
    esdm_accuracy_init(&accuracy);
    ok(esdm_accuracy_parse(&accuracy, quantities, NULL, ERR));
    ok(esdm_dataset_set_accuracy(dataset, &accuracy, ERR));
    ok(esdm_dataspace_init(&space, 3, zero, size, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_FLOAT32, values, NULL, ERR));
    ok(esdm_container_commit(container, NULL, ERR));
    ok(esdm_dataset_fragments(dataset, add_bytes, &bytes, ERR));
    ok(esdm_container_close(container, ERR));
    return bytes;
}

static void
takes_no_more(esdm_session *session, const char *strict, const char *loose, unsigned percent,
              const float *values)
{
    uint64_t one = stored(session, strict, 1, values);
    uint64_t other = stored(session, loose, 1, values);
    if (other > one + one * percent / 100)
        die("%s: %" PRIu64 " bytes, but %s: %" PRIu64, strict, one, loose, other);
}

static float
noise(size_t i)
{
    return (float) ((uint32_t) (i * 2654435761u) >> 8) / 0x1p24F;
}

static void
whole_metres(float *values, size_t i)
{
    values[i] = rintf(600 + 300 * sinf((float) (i % NX) * 0.02F) * cosf((float) (i / NX) * 0.015F) +
                      2 * noise(i));
}

/* Ice at the pole alone: what is best for it is not what is best for land and sea. */
static void
test_the_first_fragment_does_not_choose_for_all(esdm_session *session, float *values)
{
    const uint64_t planes = 12;
    for (size_t i = 0; i < planes * PLANE; i++)
        whole_metres(values, i);
    uint64_t all = stored(session, "mode=balanced", planes, values);
    for (size_t i = 0; i < 3 * PLANE; i++)
        values[i] = i % 4096 == 0 ? 2 : 3;
    uint64_t with_ice = stored(session, "mode=balanced", planes, values);
    if (with_ice > all)
        die("%" PRIu64 " bytes, and %" PRIu64 " where some of it is ice", all, with_ice);
}

static void
test_looser_takes_no_more(esdm_session *session, float *values)
{
    for (size_t i = 0; i < PLANE; i++)
        whole_metres(values, i);
    takes_no_more(session, "digits=5; mode=balanced", "digits=3; mode=balanced", 2, values);
    /* Sparse clouds: half are zeros, among all others. */
    for (size_t i = 0; i < PLANE; i++)
        values[i] = noise(i / 3) < 0.7F ? 0 : 1e-5F * (1 + noise(i));
    takes_no_more(session, "range=0.001; exact=0; mode=speed", "range=0.001; mode=speed", 5,
                  values);
    /* Most of it is quiet: errors are no longer like those of chance. */
    for (size_t i = 0; i < PLANE; i++)
        values[i] = 280 + 10 * sinf((float) (i % NX) * 0.01F) + noise(i);
    for (int psnr = 100; psnr > 60; psnr--) {
        char strict[64], loose[64];
        snprintf(strict, sizeof strict, "psnr=%d; mode=balanced", psnr);
        snprintf(loose, sizeof loose, "psnr=%d; mode=balanced", psnr - 1);
        takes_no_more(session, strict, loose, 10, values);
    }
}

/* Whoever says how far numbers may be off wants fewer bytes, also in mode speed. */
static void
test_speed_stores_no_tolerance_as_it_comes(esdm_session *session, float *values)
{
    for (size_t i = 0; i < PLANE; i++)
        values[i] = 280 + 10 * noise(i);
    uint64_t bytes = stored(session, "abs=0.0005; mode=speed", 1, values);
    if (bytes > PLANE * sizeof *values * 3 / 4)
        die("%" PRIu64 " bytes of %zu", bytes, PLANE * sizeof *values);
}

int
main(void)
{
    esdm_session *session = open_site();
    float *values = malloc(12 * PLANE * sizeof *values);
    check(values != NULL);
    test_the_first_fragment_does_not_choose_for_all(session, values);
    test_looser_takes_no_more(session, values);
    test_speed_stores_no_tolerance_as_it_comes(session, values);
    free(values);
    esdm_session_close(session);
    return 0;
}
