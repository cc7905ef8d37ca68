/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Memory of blocks that threads keep. */
#include "base/scratch.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void
test_scratch__pieces_do_not_overlap(void **state)
{
    (void) state;
    uint8_t *piece[9];
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < 9; i++) {
            size_t bytes = ((size_t) round * 7919 + i * 104729) % 3000000 + 1;
            piece[i] = esdm__scratch_new(bytes);
            assert_non_null(piece[i]);
            memset(piece[i], (int) i, bytes);
        }
        for (size_t i = 0; i < 9; i++) {
            size_t bytes = ((size_t) round * 7919 + i * 104729) % 3000000 + 1;
            assert_int_equal(piece[i][0], i);
            assert_int_equal(piece[i][bytes / 2], i);
            assert_int_equal(piece[i][bytes - 1], i);
        }
        for (size_t i = 0; i < 9; i++)
            esdm__scratch_free(piece[(i * 4) % 9]);
    }
    esdm__scratch_free(NULL);
}

static void
test_scratch__sizes_at_the_limits(void **state)
{
    (void) state;
    assert_null(esdm__scratch_new(SIZE_MAX));
    const size_t sizes[] = {0, 1, ESDM__SCRATCH_KEPT, ESDM__SCRATCH_KEPT + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int again = 0; again < 3; again++) {
            uint8_t *piece = esdm__scratch_new(sizes[i]);
            assert_non_null(piece);
            memset(piece, 1, sizes[i]);
            esdm__scratch_free(piece);
        }
    }
}

static void *
give_back(void *memory)
{
    esdm__scratch_free(memory);
    void *own = esdm__scratch_new(100000);
    if (own != NULL)
        memset(own, 2, 100000);
    esdm__scratch_free(own);
    return own != NULL ? memory : NULL;
}

static void
test_scratch__another_thread_gives_back(void **state)
{
    (void) state;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *done;
        uint8_t *piece = esdm__scratch_new(100000);
        assert_non_null(piece);
        memset(piece, 3, 100000);
        assert_int_equal(pthread_create(&thread, NULL, give_back, piece), 0);
        assert_int_equal(pthread_join(thread, &done), 0);
        assert_non_null(done);
    }
}

/* ---- large pieces ------------------------------------------------------------------------- */

enum { LARGE = 6 << 20 };

static void *
fill_large(void *number)
{
    for (int round = 0; round < 40; round++) {
        uint8_t *piece = esdm__scratch_new(LARGE + (size_t) round * 4096);
        if (piece == NULL)
            return NULL;
        for (size_t i = 0; i < LARGE; i += 4096)
            piece[i] = (uint8_t) (uintptr_t) number;
        for (size_t i = 0; i < LARGE; i += 4096) {
            if (piece[i] != (uint8_t) (uintptr_t) number)
                return NULL;
        }
        esdm__scratch_free(piece);
    }
    return number;
}

static void
test_scratch__large_pieces_have_one_owner(void **state)
{
    (void) state;
    pthread_t thread[6];
    for (uintptr_t i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, fill_large, (void *) (i + 1)), 0);
    for (size_t i = 0; i < 6; i++) {
        void *done = NULL;
        assert_int_equal(pthread_join(thread[i], &done), 0);
        assert_non_null(done);
    }
}

static size_t
resident_bytes(void)
{
    size_t all = 0;
    size_t resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%zu %zu", &all, &resident), 2);
    (void) fclose(file);
    return resident * (size_t) sysconf(_SC_PAGESIZE);
}

static void
test_scratch__few_large_pieces_are_kept(void **state)
{
    (void) state;
    enum { COUNT = 12 };
    uint8_t *piece[COUNT];
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their allocators keep what is freed */
#endif
    size_t before = resident_bytes();
    for (size_t i = 0; i < COUNT; i++) {
        piece[i] = esdm__scratch_new((size_t) 16 << 20);
        assert_non_null(piece[i]);
        memset(piece[i], 1, (size_t) 16 << 20);
    }
    for (size_t i = 0; i < COUNT; i++)
        esdm__scratch_free(piece[i]);
    size_t after = resident_bytes();
    if (after > before + ESDM__SCRATCH_LARGE + (8u << 20))
        fail_msg("%zu bytes were kept", after - before);
}

/* ---- unloading ---------------------------------------------------------------------------- */

static void *
use_module(void *use)
{
    int (*function)(size_t);
    memcpy(&function, use, sizeof function);
    return function(ESDM__SCRATCH_KEPT / 2) == 1 ? use : NULL;
}

/* What the thread that unloads it has, and threads that have ended. */
static void
test_scratch__unloading_frees_it(void **state)
{
    (void) state;
    enum { ROUNDS = 20 };
    size_t before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        void *done = NULL;
        void *module = dlopen(SCRATCH_MODULE, RTLD_NOW | RTLD_LOCAL);
        if (module == NULL)
            fail_msg("%s", dlerror());
        void *use = dlsym(module, "scratch_module_use");
        assert_non_null(use);
        assert_int_equal(pthread_create(&thread, NULL, use_module, &use), 0);
        assert_int_equal(pthread_join(thread, &done), 0);
        assert_non_null(done);
        assert_non_null(use_module(&use));
        assert_int_equal(dlclose(module), 0);
        assert_null(dlopen(SCRATCH_MODULE, RTLD_NOW | RTLD_NOLOAD)); /* it is gone */
        struct mallinfo2 memory = mallinfo2();
        if (round == 0)
            before = memory.uordblks + memory.hblkhd;
        else if (memory.uordblks + memory.hblkhd > before + ESDM__SCRATCH_KEPT)
            fail_msg("%zu bytes more after %d rounds", memory.uordblks + memory.hblkhd - before,
                     round);
    }
}

/* ---- the end of a process ----------------------------------------------------------------- */

/* In a child alone: pieces that a thread would give back while the process ends. */
static void *late[3];

/* Runs after the library's own destructors, which have no priority. */
__attribute__((destructor(101))) static void
go_on_after_the_end(void)
{
    if (late[0] == NULL)
        return;
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++)
        esdm__scratch_free(late[i]);
    void *piece = esdm__scratch_new(LARGE);
    if (piece == NULL)
        _exit(3);
    memset(piece, 1, LARGE);
    esdm__scratch_free(piece);
}

/* Threads may still read when a program ends. */
static void
test_scratch__works_while_the_process_ends(void **state)
{
    (void) state;
    (void) fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        void *kept[4];
        for (size_t i = 0; i < 4; i++)
            kept[i] = esdm__scratch_new(LARGE);
        for (size_t i = 0; i < sizeof late / sizeof late[0]; i++)
            late[i] = esdm__scratch_new(2 * LARGE);
        for (size_t i = 0; i < 4; i++)
            esdm__scratch_free(kept[i]);
        exit(late[0] != NULL && late[1] != NULL && late[2] != NULL ? 0 : 2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scratch__pieces_do_not_overlap),
        cmocka_unit_test(test_scratch__sizes_at_the_limits),
        cmocka_unit_test(test_scratch__another_thread_gives_back),
        cmocka_unit_test(test_scratch__large_pieces_have_one_owner),
        cmocka_unit_test(test_scratch__few_large_pieces_are_kept),
        cmocka_unit_test(test_scratch__unloading_frees_it),
        cmocka_unit_test(test_scratch__works_while_the_process_ends),
    };
    return cmocka_run_group_tests_name("base.scratch", tests, NULL, NULL);
}
