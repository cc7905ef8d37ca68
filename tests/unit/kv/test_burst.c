/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Shards of Kyoto Cabinet between many readers, writers and forked children. */
#include "kv.h"

#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Many small packs one after the other: their shard stays open, and others come to it. */

enum { PACKS = 200 };

static char folder[64];
static char json[128];
static esdm_error error;

static esdm_plugin_config
config(void)
{
    return (esdm_plugin_config){.name = "tiny",
                                .json = json,
                                .path = "site.json: targets[0]",
                                .site_id = "5eed5eed5eed5eed5eed5eed5eed5eed"};
}

static kv__target *
open_target(void)
{
    void *target = NULL;
    const esdm_plugin_config made = config();
    assert_int_equal(kv__open(&made, &target, &error), ESDM_OK);
    return target;
}

static kv__target *
make_target(void)
{
    (void) snprintf(folder, sizeof folder, "/tmp/esdm-kv.XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void) snprintf(json, sizeof json, "{\"directory\": \"%s/kv\"}", folder);
    const esdm_plugin_config made = config();
    assert_int_equal(kv__make(&made, false, NULL, NULL, &error), ESDM_OK);
    return open_target();
}

static void
remove_target(kv__target *target)
{
    const esdm_plugin_config made = config();
    kv__close(target);
    assert_int_equal(kv__remove(&made, false, NULL, NULL, &error), ESDM_OK);
    assert_int_equal(rmdir(folder), 0);
}

static const char *
name_of(unsigned number)
{
    static char name[64];
    (void) snprintf(name, sizeof name, "00112233445566778899aabbccddeeff-0123456789abcdef-%x",
                    number);
    return name;
}

static esdm_status
store(kv__target *target, unsigned number)
{
    void *pack = NULL;
    uint64_t position = 0;
    esdm_status status = kv__pack_create(target, name_of(number), &pack, &error);
    if (status == ESDM_OK)
        status = kv__pack_append(pack, &(esdm_iov){&number, sizeof number}, 1, &position, &error);
    return status == ESDM_OK ? kv__pack_seal(pack, &error) : status;
}

static bool
is_there(kv__target *target, unsigned number)
{
    unsigned found = 0;
    return kv__pack_read(target, name_of(number), &(esdm_range){0, sizeof found, &found}, 1,
                         &error) == ESDM_OK &&
           found == number;
}

static unsigned
count_databases(const kv__target *target)
{
    unsigned found = 0;
    DIR *dir = opendir(target->directory);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        found += kv__is_database(entry->d_name);
    (void) closedir(dir);
    return found;
}

/* Whether this process has a shard open. Asked for without opening it, which would unlock it. */
static bool
has_shard_open(void)
{
    char file[KV__FILE_BYTES];
    bool found = false;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    kv__shard_file(name_of(0), file);
    for (struct dirent *entry = readdir(dir); entry != NULL && !found; entry = readdir(dir)) {
        char path[PATH_MAX] = "";
        const char *last = NULL;
        if (readlinkat(dirfd(dir), entry->d_name, path, sizeof path - 1) > 0)
            last = strrchr(path, '/');
        found = last != NULL && strcmp(last + 1, file) == 0;
    }
    (void) closedir(dir);
    return found;
}

/* Stores packs until their shard is open after one: a machine that is too busy makes no bursts. */
static unsigned
store_until_held(kv__target *target)
{
    unsigned stored = 0;
    do
        assert_int_equal(store(target, stored++), ESDM_OK);
    while (!has_shard_open() && stored < PACKS);
    return stored;
}

static bool
all_are_there(kv__target *target)
{
    bool good = true;
    for (unsigned i = 0; i < PACKS && good; i++)
        good = is_there(target, i);
    return good;
}

static bool
few_are_there(kv__target *target)
{
    return is_there(target, 0) && !is_there(target, 1);
}

/* What another process of this program can be asked, with a target of its own. */
static const struct question {
    const char *name;
    bool (*answer)(kv__target *target);
} questions[] = {{"all", all_are_there}, {"few", few_are_there}};

/* Not forked: the keeper may be allocating at this moment, and the child would wait for its lock in
 * the allocator of GCC's address sanitizer, which knows nothing of forks. */
static bool
ask_another_process(const char *question)
{
    pid_t child = 0;
    int status = 0;
    char name[16];
    (void) snprintf(name, sizeof name, "%s", question);
    char program[] = "unit_kv_burst";
    char *const arguments[] = {program, name, json, NULL};
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
    return WEXITSTATUS(status) == 0;
}

/* In that process. 0: yes, 1: no, 2: there is no such question. */
static int
answer_question(const char *question, const char *target_json)
{
    (void) snprintf(json, sizeof json, "%s", target_json);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
        if (strcmp(questions[i].name, question) == 0)
            _exit(questions[i].answer(open_target()) ? 0 : 1);
    }
    return 2;
}

/* To one shard. */
static void
write_for_ever(kv__target *target)
{
    char file[KV__FILE_BYTES];
    kv__shard_file(name_of(0), file);
    for (;;) {
        kv__handle *shard = NULL;
        if (kv__acquire(target, file, KV__WRITE, 10000, &shard, &error) != ESDM_OK ||
            kcdbbegintran(kv__database(shard), 0) == 0 ||
            kcdbset(kv__database(shard), "x", 1, "y", 1) == 0 ||
            kcdbendtran(kv__database(shard), 1) == 0 ||
            kv__release_soon(target, shard, &error) != ESDM_OK)
            _exit(1);
    }
}

/* Who writes without a pause shuts nobody out: a reader waits KV__READ_WAIT_MS at most. */
static void
test_burst__readers_of_a_busy_writer_have_their_turns(void **state)
{
    (void) state;
    kv__target *target = make_target();
    assert_int_equal(store(target, 0), ESDM_OK);
    pid_t writer = fork();
    if (writer == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
        write_for_ever(open_target());
    for (int i = 0; i < 50; i++) {
        assert_true(is_there(target, 0));
        (void) usleep(5000);
    }
    assert_int_equal(waitpid(writer, NULL, WNOHANG), 0);
    (void) kill(writer, SIGKILL);
    assert_int_equal(waitpid(writer, NULL, 0), writer);
    assert_true(is_there(target, 0)); /* whatever was cut off */
    assert_int_equal(store(target, 300), ESDM_OK);
    remove_target(target);
}

static void
test_burst__a_shard_stays_open_until_its_target_is_closed(void **state)
{
    (void) state;
    unsigned stored = PACKS;
    kv__target *target = NULL;
    for (int attempt = 0; attempt < 20 && stored == PACKS; attempt++) {
        if (target != NULL)
            remove_target(target);
        target = make_target();
        stored = store_until_held(target);
    }
    assert_true(stored < PACKS);
    kv__close(target);
    assert_false(has_shard_open());
    target = open_target();
    assert_true(is_there(target, stored - 1));
    remove_target(target);
}

static void
test_burst__a_shard_that_stays_open_is_closed_for_all_who_need_it(void **state)
{
    (void) state;
    kv__target *target = make_target();
    for (unsigned i = 0; i < PACKS; i++)
        assert_int_equal(store(target, i), ESDM_OK);
    assert_true(all_are_there(target)); /* readers of this process */
    for (unsigned i = PACKS; i < 2 * PACKS; i++)
        assert_int_equal(store(target, i), ESDM_OK);
    assert_true(ask_another_process("all")); /* the keeper closes it for another one */
    for (unsigned i = 1; i < 2 * PACKS; i++)
        assert_int_equal(kv__pack_remove(target, name_of(i), &error), ESDM_OK);
    assert_true(ask_another_process("few"));
    assert_int_equal(store(target, 0), ESDM_EEXIST);
    remove_target(target);
}

static void
test_burst__an_empty_shard_is_removed_and_made_anew(void **state)
{
    (void) state;
    kv__target *target = make_target();
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 8; i++)
            assert_int_equal(store(target, 8 * round + i), ESDM_OK);
        for (unsigned i = 0; i < 8; i++)
            assert_int_equal(kv__pack_remove(target, name_of(8 * round + i), &error), ESDM_OK);
        assert_int_equal(count_databases(target), 0);
    }
    assert_int_equal(store(target, 0xc0), ESDM_OK);
    kv__close(target); /* which closes the shard, too */
    target = open_target();
    assert_true(is_there(target, 0xc0));
    remove_target(target);
}

static void
limit_files(rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    (void) signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Nothing can be written any more while the shard is open; whoever closes it, the next call that
 * stores says so, once. */
static void
test_burst__a_shard_that_cannot_be_closed_is_told(void **state)
{
    (void) state;
    for (int sync = 0; sync < 2; sync++) {
        bool told = false;
        for (int attempt = 0; attempt < 50 && !told; attempt++) {
            void *pack = NULL;
            uint64_t position = 0;
            kv__target *target = make_target();
            unsigned last = store_until_held(target);
            limit_files(0);
            kv__release_all(target);
            limit_files(RLIM_INFINITY);
            assert_int_equal(kv__pack_create(target, name_of(last), &pack, &error), ESDM_OK);
            assert_int_equal(
                kv__pack_append(pack, &(esdm_iov){&last, sizeof last}, 1, &position, &error),
                ESDM_OK);
            esdm_status status = sync ? kv__pack_sync(pack, &error) : kv__pack_seal(pack, &error);
            told = status != ESDM_OK;
            if (told) {
                assert_int_equal(status, ESDM_EIO);
                assert_non_null(strstr(error.message, "cannot close"));
            }
            if (sync != 0)
                assert_int_equal(kv__pack_sync(pack, &error), ESDM_OK);
            if (told || sync != 0)
                assert_int_equal(kv__pack_seal(pack, &error), ESDM_OK);
            for (unsigned i = 0; i <= last; i++)
                assert_true(is_there(target, i));
            remove_target(target);
        }
        assert_true(told);
    }
}

/* ---- forks -------------------------------------------------------------------------------- */

static char shared_file[KV__FILE_BYTES];

/* Takes the shard as often, in turns with others. */
static void *
take_turns(void *target)
{
    for (int i = 0; i < 100; i++) {
        kv__handle *handle = NULL;
        if (kv__acquire(target, shared_file, KV__WRITE, 10000, &handle, NULL) != ESDM_OK ||
            kv__release(handle, NULL) != ESDM_OK)
            return NULL;
    }
    return target;
}

static int
take_turns_in_child(void)
{
    pthread_t threads[3];
    bool good = true;
    (void) alarm(120); /* ends a child that waits for threads of its parent */
    kv__target *target = open_target();
    kv__shard_file(name_of(1000), shared_file);
    for (size_t i = 0; i < 3; i++)
        good &= pthread_create(&threads[i], NULL, take_turns, target) == 0;
    for (size_t i = 0; i < 3 && good; i++) {
        void *done = NULL;
        good = pthread_join(threads[i], &done) == 0 && done != NULL;
    }
    kv__close(target);
    return good ? 0 : 1;
}

/* Those that wait for a shard in the parent are not there. */
static void
test_burst__a_child_does_not_wait_for_waiting_threads(void **state)
{
    (void) state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* it allows no threads in such a child */
#endif
    pthread_t waiting;
    void *done = NULL;
    int status = 0;
    kv__handle *handle = NULL;
    kv__target *target = make_target();
    kv__shard_file(name_of(0), shared_file);
    assert_int_equal(kv__acquire(target, shared_file, KV__WRITE, 1000, &handle, &error), ESDM_OK);
    assert_int_equal(pthread_create(&waiting, NULL, take_turns, target), 0);
    (void) usleep(200000); /* it waits by now; else the child has less to get wrong */
    pid_t child = fork();
    if (child == 0)
        _exit(take_turns_in_child());
    assert_true(child > 0);
    assert_int_equal(kv__release(handle, &error), ESDM_OK);
    assert_int_equal(pthread_join(waiting, &done), 0);
    assert_non_null(done);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    remove_target(target);
}

static atomic_bool stop;

static bool
make_and_discard(kv__target *target, unsigned number)
{
    void *pack = NULL;
    char name[KV__NAME_MAX];
    (void) snprintf(name, sizeof name, "00112233445566778899aabbccddeeff-fedcba98-%x", number);
    return kv__pack_create(target, name, &pack, NULL) == ESDM_OK &&
           kv__pack_discard(pack, NULL) == ESDM_OK;
}

static void *
make_and_discard_always(void *target)
{
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        if (!make_and_discard(target, i))
            return NULL;
    }
    return target;
}

/* Nor for one that has just made a pack. */
static void
test_burst__a_child_does_not_wait_for_threads_that_make_packs(void **state)
{
    (void) state;
    enum { OPEN = 3000, FORKS = 30 };
    static void *packs[OPEN];
    pthread_t busy;
    void *done = NULL;
    kv__target *target = make_target();
    for (unsigned i = 0; i < OPEN; i++)
        assert_int_equal(kv__pack_create(target, name_of(i), &packs[i], &error), ESDM_OK);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&busy, NULL, make_and_discard_always, target), 0);
    for (unsigned i = 0; i < FORKS; i++) {
        int status = 0;
        (void) usleep(1000);
        pid_t child = fork();
        if (child == 0) {
            (void) alarm(100);
            kv__target *own = open_target();
            bool good = make_and_discard(own, UINT32_MAX);
            kv__close(own);
            _exit(good ? 0 : 1);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(busy, &done), 0);
    assert_non_null(done);
    for (unsigned i = 0; i < OPEN; i++)
        assert_int_equal(kv__pack_discard(packs[i], &error), ESDM_OK);
    remove_target(target);
}

int
main(int argc, char **argv)
{
    if (argc == 3)
        return answer_question(argv[1], argv[2]);
    const struct CMUnitTest tests[] = {
        /* first: its child starts a thread, which has no parent with threads so far */
        cmocka_unit_test(test_burst__readers_of_a_busy_writer_have_their_turns),
        cmocka_unit_test(test_burst__a_shard_stays_open_until_its_target_is_closed),
        cmocka_unit_test(test_burst__a_shard_that_stays_open_is_closed_for_all_who_need_it),
        cmocka_unit_test(test_burst__an_empty_shard_is_removed_and_made_anew),
        cmocka_unit_test(test_burst__a_shard_that_cannot_be_closed_is_told),
        cmocka_unit_test(test_burst__a_child_does_not_wait_for_waiting_threads),
        cmocka_unit_test(test_burst__a_child_does_not_wait_for_threads_that_make_packs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
