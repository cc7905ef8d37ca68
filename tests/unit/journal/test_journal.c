/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* A journal on a target over a network that does not answer: nobody waits for ever, and memory has
 * a bound. */

#include "journal/journal.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "journal/commit.h"

#define UUID "0123456789abcdef0123456789abcdef"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all that follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool stands;    /* appends wait */
static unsigned waits; /* appends that do */
static size_t taken;   /* bytes */

static esdm_status
fake_create(void *target, const char *name, void **ret_pack, esdm_error *err)
{
    (void) name, (void) err;
    *ret_pack = target;
    return ESDM_OK;
}

static esdm_status
fake_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position, esdm_error *err)
{
    (void) pack, (void) err;
    (void) pthread_mutex_lock(&lock);
    waits++;
    (void) pthread_cond_broadcast(&changed);
    while (stands)
        (void) pthread_cond_wait(&changed, &lock);
    waits--;
    for (size_t i = 0; i < niov; i++)
        taken += iov[i].bytes;
    (void) pthread_mutex_unlock(&lock);
    *ret_position = 0;
    return ESDM_OK;
}

static esdm_status
fake_seal(void *pack, esdm_error *err)
{
    (void) pack, (void) err;
    return ESDM_OK;
}

static const esdm_data_plugin fake = {
    .concurrency = 4,
    .pack_create = fake_create,
    .pack_append = fake_append,
    .pack_seal = fake_seal,
};

static const esdm_data_plugin *
plugin_of(void *user, size_t i)
{
    (void) user, (void) i;
    return &fake;
}

static esdm_status
open_target(void *user, size_t i, esdm__journal_target *ret_target, esdm_error *err)
{
    static int handle;
    (void) user, (void) i, (void) err;
    *ret_target = (esdm__journal_target){.plugin = &fake, .handle = &handle, .name = "fake"};
    return ESDM_OK;
}

static void
stand(bool still)
{
    (void) pthread_mutex_lock(&lock);
    stands = still;
    (void) pthread_cond_broadcast(&changed);
    (void) pthread_mutex_unlock(&lock);
}

static void
wait_for_append(void)
{
    (void) pthread_mutex_lock(&lock);
    while (waits == 0)
        (void) pthread_cond_wait(&changed, &lock);
    (void) pthread_mutex_unlock(&lock);
}

static size_t
enter(esdm__journal *journal, bool wait)
{
    char name[1001];
    esdm__buffer record;
    memset(name, 'n', 1000);
    name[1000] = '\0';
    esdm__buffer_init(&record);
    size_t start = esdm__journal_start(&record, ESDM__JOURNAL_NAME, 1, UUID);
    esdm__journal_put_text(&record, name);
    esdm__journal_finish(&record, start);
    size_t bytes = record.bytes;
    esdm__journal_enter(journal, &record, wait);
    return bytes;
}

static void
test_journal__a_target_that_stands_holds_nobody_up(void **state)
{
    (void) state;
    const esdm__journal_host host = {.ntargets = 1,
                                     .plugin = plugin_of,
                                     .open = open_target,
                                     .queue_bytes = 10000,
                                     .wait_ms = 20};
    esdm__journal *journal = esdm__journal_new(&host);
    assert_true(journal != NULL);
    stand(true);
    size_t bytes = enter(journal, true);
    wait_for_append();
    for (int i = 0; i < 100; i++)
        (void) enter(journal, true);
    assert_true(esdm__journal_lacks(journal));
    assert_true(!esdm__journal_settle(journal)); /* returns */
    stand(false);
    while (!esdm__journal_settle(journal)) /* what waited is stored after all */
        ;
    (void) pthread_mutex_lock(&lock);
    printf("%zu of 101 records were stored\n", taken / bytes);
    assert_true(taken % bytes == 0 && taken >= bytes && taken <= bytes + host.queue_bytes);
    (void) pthread_mutex_unlock(&lock);
    (void) enter(journal, true);
    assert_true(esdm__journal_settle(journal)); /* and it is whole from now on */
    esdm__journal_free(journal);
}

static void
test_journal__who_must_not_wait_does_not(void **state)
{
    (void) state;
    const esdm__journal_host host = {.ntargets = 1,
                                     .plugin = plugin_of,
                                     .open = open_target,
                                     .queue_bytes = 3000,
                                     .wait_ms = 3600000};
    esdm__journal *journal = esdm__journal_new(&host);
    assert_true(journal != NULL);
    stand(true);
    (void) enter(journal, true);
    wait_for_append();
    for (int i = 0; i < 10; i++)
        (void) enter(journal, false); /* returns, though the target never answers */
    assert_true(esdm__journal_lacks(journal));
    stand(false);
    assert_false(esdm__journal_settle(journal));
    esdm__journal_free(journal);
}

static void *
release(void *argument)
{
    (void) argument;
    wait_for_append();
    stand(false);
    return NULL;
}

static void
test_journal__what_waits_is_stored_when_room_comes(void **state)
{
    (void) state;
    const esdm__journal_host host = {.ntargets = 1,
                                     .plugin = plugin_of,
                                     .open = open_target,
                                     .queue_bytes = 3000,
                                     .wait_ms = 300000};
    esdm__journal *journal = esdm__journal_new(&host);
    pthread_t thread;
    assert_true(journal != NULL);
    taken = 0;
    stand(true);
    int failure = pthread_create(&thread, NULL, release, NULL);
    assert_int_equal(failure, 0);
    size_t bytes = 0;
    for (int i = 0; i < 50; i++)
        bytes += enter(journal, true);
    assert_true(esdm__journal_settle(journal));
    (void) pthread_join(thread, NULL);
    assert_true(taken == bytes);
    esdm__journal_free(journal);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_journal__a_target_that_stands_holds_nobody_up),
        cmocka_unit_test(test_journal__who_must_not_wait_does_not),
        cmocka_unit_test(test_journal__what_waits_is_stored_when_room_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
