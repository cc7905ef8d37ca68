/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The cache of decoded blocks. */
#include "io/session/cache.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 16, BLOCK = 20000, ROUNDS = 2000 };

/* Every lock that the cache takes is counted; not where a sanitizer has to see them. */
#if !defined(__SANITIZE_THREAD__)
static atomic_uint locks;

int
pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*real)(pthread_mutex_t *);
    if (real == NULL)
        *(void **) &real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    atomic_fetch_add(&locks, 1);
    return real(mutex);
}
#endif

static esdm__cache_key
key(uint32_t block)
{
    esdm__cache_key k = esdm__cache_key_of("target", "pack", 4096);
    k.block = block;
    return k;
}

static void
test_cache__gives_back_what_was_put(void **state)
{
    (void) state;
    esdm__cache *cache = esdm__cache_new(1 << 20);
    char data[100];
    char out[100] = {0};
    memset(data, 'x', sizeof data);
    esdm__cache_key k = key(1);
    assert_false(esdm__cache_get(cache, &k, out, sizeof out));
    esdm__cache_put(cache, &k, data, sizeof data);
    assert_true(esdm__cache_get(cache, &k, out, sizeof out));
    assert_memory_equal(data, out, sizeof out);
    assert_true(esdm__cache_get_part(cache, &k, 90, out, 10));
    assert_false(esdm__cache_get_part(cache, &k, 91, out, 10));
    k = key(2);
    assert_false(esdm__cache_get(cache, &k, out, sizeof out));
    esdm__cache_free(cache);
}

static void
test_cache__least_recently_used_goes_first(void **state)
{
    (void) state;
    esdm__cache *cache = esdm__cache_new(4000);
    char data[900] = {0};
    esdm__cache_key k;
    for (uint32_t i = 0; i < 4; i++) {
        k = key(i);
        esdm__cache_put(cache, &k, data, sizeof data);
    }
    k = key(0);
    assert_true(esdm__cache_get(cache, &k, data, sizeof data));
    k = key(4);
    esdm__cache_put(cache, &k, data, sizeof data);
    k = key(1);
    assert_false(esdm__cache_get(cache, &k, data, sizeof data));
    k = key(0);
    assert_true(esdm__cache_get(cache, &k, data, sizeof data));
    esdm__cache_free(cache);
}

static void
test_cache__too_large_blocks_are_not_kept(void **state)
{
    (void) state;
    esdm__cache *cache = esdm__cache_new(1000);
    char data[500] = {0};
    esdm__cache_key k = key(0);
    esdm__cache_put(cache, &k, data, sizeof data);
    assert_false(esdm__cache_get(cache, &k, data, sizeof data));
    esdm__cache_free(cache);
}

/* A block that is read for the first time costs a put: one lock for each thread that there is. */
static void
test_cache__one_thread_takes_few_locks(void **state)
{
    (void) state;
#if defined(__SANITIZE_THREAD__)
    skip();
#else
    char data[100] = {0};
    esdm__cache *cache = esdm__cache_new(1 << 20);
    esdm__cache_key k = key(0);
    assert_false(esdm__cache_get(cache, &k, data, sizeof data));
    unsigned before = locks;
    for (uint32_t i = 0; i < 100; i++) {
        k = key(i);
        assert_false(esdm__cache_get(cache, &k, data, sizeof data));
        esdm__cache_put(cache, &k, data, sizeof data);
        assert_true(esdm__cache_has(cache, &k));
    }
    /* A get and a look take one each, a put the first lane's and this thread's. */
    assert_in_range(locks - before, 300, 400);
    esdm__cache_block blocks[ESDM__CACHE_BLOCKS_MOST];
    for (uint32_t i = 0; i < ESDM__CACHE_BLOCKS_MOST; i++)
        blocks[i] = (esdm__cache_block){key(90 + i), data, sizeof data}; /* some are there */
    before = locks;
    esdm__cache_put_blocks(cache, blocks, ESDM__CACHE_BLOCKS_MOST);
    assert_in_range(locks - before, 1, 2);
    for (uint32_t i = 0; i < ESDM__CACHE_BLOCKS_MOST; i++)
        assert_true(esdm__cache_get(cache, &blocks[i].key, data, sizeof data));
    esdm__cache_wanted wanted[ESDM__CACHE_BLOCKS_MOST];
    for (uint32_t i = 0; i < ESDM__CACHE_BLOCKS_MOST; i++)
        wanted[i] = (esdm__cache_wanted){.key = key(200 + i), .data = data, .bytes = sizeof data};
    before = locks;
    esdm__cache_get_blocks(cache, wanted, ESDM__CACHE_BLOCKS_MOST);
    assert_int_equal(locks - before, 1);
    for (uint32_t i = 0; i < ESDM__CACHE_BLOCKS_MOST; i++)
        assert_false(wanted[i].found);
    esdm__cache_free(cache);
#endif
}

static void
test_cache__blocks_are_found_beside_others(void **state)
{
    (void) state;
    esdm__cache *cache = esdm__cache_new(1 << 20);
    char data[4][100];
    char out[4][100] = {{0}};
    esdm__cache_wanted wanted[4];
    for (uint32_t i = 0; i < 4; i++) {
        memset(data[i], 'a' + (int) i, sizeof data[i]);
        wanted[i] = (esdm__cache_wanted){.key = key(i), .data = out[i], .bytes = sizeof out[i]};
        if (i != 2)
            esdm__cache_put(cache, &wanted[i].key, data[i], sizeof data[i]);
    }
    wanted[3].bytes++; /* longer than what is there */
    esdm__cache_get_blocks(cache, wanted, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(wanted[i].found == (i < 2));
        assert_int_equal(out[i][0], i < 2 ? data[i][0] : 0);
        assert_int_equal(out[i][99], i < 2 ? data[i][99] : 0);
    }
    esdm__cache_free(cache);
}

/* Threads that come one after the other each have a lane from then on; meanwhile others are put. */
static void *
come_and_read(void *user)
{
    char data[BLOCK];
    esdm__cache *cache = user;
    for (uint32_t i = 0; i < 4 * BLOCKS; i++) {
        esdm__cache_key k = key(i % BLOCKS);
        esdm__cache_wanted wanted = {.key = k, .data = data, .bytes = sizeof data};
        esdm__cache_get_blocks(cache, &wanted, 1);
        if (wanted.found)
            assert_int_equal(data[0], data[BLOCK - 1]);
        else
            esdm__cache_put(cache, &k, memset(data, (int) i % BLOCKS, sizeof data), sizeof data);
    }
    return NULL;
}

static void
test_cache__threads_come_while_others_put(void **state)
{
    (void) state;
    esdm__cache *cache = esdm__cache_new((uint64_t) BLOCK * 5);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[12];
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, come_and_read, cache), 0);
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        esdm__cache_free(cache);
        cache = esdm__cache_new((uint64_t) BLOCK * 5);
    }
    esdm__cache_free(cache);
}

/* Blocks that are copied by one thread go while others need room. */

static void *
read_and_put(void *user)
{
    esdm__cache *cache = user;
    static _Atomic unsigned seed;
    unsigned at = seed++;
    uint8_t *data = malloc(BLOCK);
    uint8_t *out = malloc(BLOCK);
    size_t wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        at = at * 1103515245u + 12345u;
        uint32_t block = (at >> 16) % BLOCKS;
        esdm__cache_key k = key(block);
        if (!esdm__cache_get(cache, &k, out, BLOCK)) {
            memset(data, (int) block, BLOCK);
            esdm__cache_put(cache, &k, data, BLOCK);
            continue;
        }
        for (int b = 0; b < BLOCK; b += 997)
            wrong += out[b] != block;
    }
    free(data);
    free(out);
    return wrong > 0 ? cache : NULL;
}

static void
test_cache__threads_copy_while_others_make_room(void **state)
{
    (void) state;
    esdm__cache *cache = esdm__cache_new(5 * BLOCK);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_and_put, cache), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;
        (void) pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    esdm__cache_free(cache);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache__gives_back_what_was_put),
        cmocka_unit_test(test_cache__least_recently_used_goes_first),
        cmocka_unit_test(test_cache__too_large_blocks_are_not_kept),
        cmocka_unit_test(test_cache__one_thread_takes_few_locks),
        cmocka_unit_test(test_cache__blocks_are_found_beside_others),
        cmocka_unit_test(test_cache__threads_come_while_others_put),
        cmocka_unit_test(test_cache__threads_copy_while_others_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
