/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Many threads and processes at once. Threads report by flags: assertions are the main
 * thread's. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data.h"

enum { THREADS = 8, PACKS = place_by_build(60, 200), PACK_BYTES = 3000 };

static void
pack_name(char name[80], unsigned writer, unsigned n)
{
    (void) snprintf(name, 80, "%02xbbccddeeff00112233445566778899-%x-%x", n * 7 % 256, writer, n);
}

/* true when all went well */
static bool
write_pack(void *target, const char *name, uint64_t pattern)
{
    uint8_t data[PACK_BYTES];
    void *pack = NULL;
    uint64_t position = 0;
    data_fill(data, pattern, 0, sizeof data);
    if (data_plugin()->pack_create(target, name, &pack, NULL) != ESDM_OK)
        return false;
    bool good = true;
    for (size_t at = 0; at < sizeof data && good; at += 1000) {
        esdm_iov pieces[2] = {{.data = data + at, .bytes = 400},
                              {.data = data + at + 400, .bytes = 600}};
        good = data_plugin()->pack_append(pack, pieces, 2, &position, NULL) == ESDM_OK &&
               position == at;
    }
    return data_plugin()->pack_seal(pack, NULL) == ESDM_OK && good;
}

static esdm_status
read_pack(void *target, const char *name, uint64_t pattern, bool *ret_right)
{
    uint8_t data[300];
    esdm_range ranges[3] = {{.position = 5, .bytes = 100, .buffer = data},
                            {.position = 1000, .bytes = 100, .buffer = data + 100},
                            {.position = PACK_BYTES - 100, .bytes = 100, .buffer = data + 200}};
    esdm_status status = data_plugin()->pack_read(target, name, ranges, 3, NULL);
    *ret_right = true;
    for (size_t r = 0; r < 3 && status == ESDM_OK; r++) {
        for (size_t i = 0; i < 100; i++)
            *ret_right &= data[r * 100 + i] == data_byte(pattern, ranges[r].position + i);
    }
    return status;
}

typedef struct worker {
    pthread_t thread;
    fixture *f;
    unsigned number;
    bool good;
} worker;

static atomic_bool removed[PACKS];

static void *
write_and_read(void *user)
{
    worker *w = user;
    w->good = true;
    for (unsigned n = 0; n < PACKS && w->good; n++) {
        char name[80];
        bool right = false;
        pack_name(name, w->number, n);
        w->good = write_pack(w->f->target, name, w->number * 1000 + n) &&
                  read_pack(w->f->target, name, w->number * 1000 + n, &right) == ESDM_OK && right;
        pack_name(name, w->number, n / 2);
        w->good = w->good &&
                  read_pack(w->f->target, name, w->number * 1000 + n / 2, &right) == ESDM_OK &&
                  right;
    }
    return NULL;
}

static void
run_workers(fixture *f, void *(*body)(void *) )
{
    worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.f = f, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        if (!workers[i].good)
            fail_msg("thread %u failed", i);
    }
}

static void
test_stress__threads_write_and_read_their_packs(void **state)
{
    fixture *f = *state;
    esdm_target_usage usage;
    run_workers(f, write_and_read);
    assert_ok(data_plugin()->usage(f->target, &usage, &place_error));
    assert_int_equal(usage.packs, THREADS * PACKS);
}

/* Everybody reads all packs while thread 0 removes them: a read is right or says ENOENT. */
static void *
read_or_remove(void *user)
{
    worker *w = user;
    w->good = true;
    for (unsigned round = 0; round < 4 * PACKS && w->good; round++) {
        char name[80];
        bool right = true;
        unsigned n = (round * (w->number + 3)) % PACKS;
        pack_name(name, 99, n);
        if (w->number == 0 && round % 8 == 0) {
            atomic_store(&removed[n], true);
            w->good = data_plugin()->pack_remove(w->f->target, name, NULL) == ESDM_OK;
            continue;
        }
        esdm_status status = read_pack(w->f->target, name, n, &right);
        w->good =
            right && (status == ESDM_OK || (status == ESDM_ENOENT && atomic_load(&removed[n])));
    }
    return NULL;
}

static void
test_stress__removal_while_others_read(void **state)
{
    fixture *f = *state;
    for (unsigned n = 0; n < PACKS; n++) {
        char name[80];
        pack_name(name, 99, n);
        atomic_store(&removed[n], false);
        assert_true(write_pack(f->target, name, n));
    }
    run_workers(f, read_or_remove);
}

/* ---- a pack being appended to --------------------------------------------------------------- */

typedef struct growing {
    fixture *f;
    atomic_uint_fast64_t length;
    atomic_bool done;
    bool good;
} growing;

static void *
read_growing(void *user)
{
    growing *g = user;
    uint8_t data[64];
    g->good = true;
    while (!atomic_load(&g->done) && g->good) {
        uint64_t length = atomic_load(&g->length);
        if (length < sizeof data)
            continue;
        esdm_range range = {.position = length - sizeof data, .bytes = sizeof data, .buffer = data};
        g->good = data_plugin()->pack_read(g->f->target, PACK "e", &range, 1, NULL) == ESDM_OK;
        for (size_t i = 0; i < sizeof data && g->good; i++)
            g->good = data[i] == data_byte(14, range.position + i);
    }
    return NULL;
}

static void
test_stress__reader_follows_a_writer(void **state)
{
    fixture *f = *state;
    skip_if((data_plugin()->flags & ESDM_DATA_READ_UNSEALED) == 0);
    growing g = {.f = f};
    pthread_t reader;
    void *pack = NULL;
    uint8_t data[777];
    assert_ok(data_plugin()->pack_create(f->target, PACK "e", &pack, &place_error));
    assert_int_equal(pthread_create(&reader, NULL, read_growing, &g), 0);
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t position = 0;
        data_fill(data, 14, i * sizeof data, sizeof data);
        esdm_iov piece = {.data = data, .bytes = sizeof data};
        assert_ok(data_plugin()->pack_append(pack, &piece, 1, &position, &place_error));
        atomic_store(&g.length, position + sizeof data);
    }
    atomic_store(&g.done, true);
    assert_int_equal(pthread_join(reader, NULL), 0);
    assert_true(g.good);
    assert_ok(data_plugin()->pack_seal(pack, &place_error));
}

/* ---- processes ------------------------------------------------------------------------------ */

static void
write_in_children(void *user)
{
    const fixture *f = user;
    pid_t children[8];
    for (unsigned c = 0; c < 8; c++) {
        children[c] = fork();
        if (children[c] != 0)
            continue;
        void *target = NULL;
        bool good = data_plugin()->open(&f->place.config, &target, NULL) == ESDM_OK;
        for (unsigned n = 0; n < 50 && good; n++) {
            char name[80];
            pack_name(name, 100 + c, n);
            good = write_pack(target, name, c * 1000 + n);
        }
        data_plugin()->close(target);
        _exit(good ? 0 : 1);
    }
    for (unsigned c = 0; c < 8; c++) {
        int status = 0;
        if (waitpid(children[c], &status, 0) != children[c] || status != 0)
            _exit(1);
    }
}

static void
test_stress__processes_share_a_target(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->shared);
    skip_if_forks_have_threads();
    assert_int_equal(place_in_child(write_in_children, f), 0);
    for (unsigned c = 0; c < 8; c++) {
        for (unsigned n = 0; n < 50; n++) {
            char name[80];
            pack_name(name, 100 + c, n);
            data_check_pack(f->target, name, c * 1000 + n, 0, PACK_BYTES);
        }
    }
}

static void
removed_by_another(void *user)
{
    const fixture *f = user;
    void *target = NULL;
    if (data_plugin()->open(&f->place.config, &target, NULL) != ESDM_OK ||
        data_plugin()->pack_remove(target, PACK "d", NULL) != ESDM_OK)
        _exit(1);
    data_plugin()->close(target);
}

static void
test_stress__removal_by_another_process_is_harmless(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->shared);
    skip_if_forks_have_threads();
    bool right = false;
    assert_true(write_pack(f->target, PACK "d", 13));
    assert_ok(read_pack(f->target, PACK "d", 13, &right));
    assert_true(right);
    assert_int_equal(place_in_child(removed_by_another, f), 0);
    esdm_status status = read_pack(f->target, PACK "d", 13, &right);
    assert_true(status == ESDM_ENOENT || (status == ESDM_OK && right));
}

const struct CMUnitTest data_stress_tests[] = {
    WITH_PLACE(test_stress__threads_write_and_read_their_packs),
    WITH_PLACE(test_stress__removal_while_others_read),
    WITH_PLACE(test_stress__reader_follows_a_writer),
    WITH_PLACE(test_stress__processes_share_a_target),
    WITH_PLACE(test_stress__removal_by_another_process_is_harmless),
};
const size_t data_stress_count = sizeof data_stress_tests / sizeof data_stress_tests[0];
