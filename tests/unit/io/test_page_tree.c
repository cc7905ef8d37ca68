/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The index pages of very many ranks come to rank 0 in few and full pages, each record once; and
 * how long rank 0 holds the lock of the catalogue for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/page_copies.h"
#include "esdm/sys/meta_store.h"
#include "io/ranks/page_source.h"
#include "io/ranks/page_stream.h"
#include "layout/index_private.h"
#include "plugin/registry.h"
#include "support/sim_comm.h"

/* The one in which SQLite runs needs more. */
enum { STACK_BYTES = 48 << 10, STACK_BYTES_SQLITE = 256 << 10 };

/* What every rank has, and what rank 0 gets. */
typedef struct story {
    uint32_t datasets;
    int every;   /* each so-many-th rank has data */
    int failing; /* a rank that cannot make its pages; -1: none */
    size_t gathered_bytes;
    uint8_t *seen; /* a rank and dataset: records that came */
    size_t pages;
    size_t records;
    size_t bytes;
    double gather_s;              /* CPU of rank 0 until it has all pages, without messages */
    uint64_t late;                /* messages that rank 0 received while it yielded pages */
    const esdm_meta_plugin *meta; /* where rank 0 publishes; NULL: it looks at the pages alone */
    void *store;
    esdm__page_copies copies; /* of all that was published */
    sim_world *world;
    esdm_error error;
} story;

/* One record of this rank in a page, for each dataset. */
static void
make_pages(int rank, uint32_t datasets, esdm__page_set *ret_set, esdm_meta_new_page *ret_pages)
{
    char pack[64];
    esdm__index *index = esdm__index_new(2);
    esdm__fragment f = {.raw_bytes = 400, .stored_bytes = 500, .head_bytes = 80};
    snprintf(pack, sizeof pack, "0123456789abcdef0123456789abcdef-%08x-1", rank);
    esdm__box_set(&f.box, 2, (uint64_t[]){(uint64_t) rank, 0}, (uint64_t[]){1, 100});
    f.pack = esdm__index_pack(index, "scratch", pack);
    assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
    assert_int_equal(esdm__index_encode(index, NULL, 0, ret_set, NULL), ESDM_OK);
    assert_int_equal(ret_set->npages, 1);
    for (uint32_t i = 0; i < datasets; i++) {
        ret_pages[i] = ret_set->pages[0];
        ret_pages[i].dataset = i + 1;
    }
    esdm__index_free(index);
}

typedef struct tally {
    story *s;
    uint32_t dataset;
} tally;

static bool
note_fragment(const esdm__fragment *fragment, void *user)
{
    tally *t = user;
    t->s->seen[fragment->box.lo[0] * t->s->datasets + t->dataset - 1]++;
    t->s->records++;
    return true;
}

/* Rank 0 looks at what it would publish. */
static esdm_status
take_all(esdm__page_source *source, story *s, esdm_error *err)
{
    const esdm_meta_new_page *page = NULL;
    uint32_t last = 0;
    esdm_status status;
    while ((status = esdm__page_source_next(source, &page, err)) == ESDM_OK && page != NULL) {
        esdm__page *decoded = NULL;
        const esdm_meta_page entry = esdm__page_entry(page);
        tally t = {s, page->dataset};
        assert_true(page->dataset >= last);
        last = page->dataset;
        assert_int_equal(esdm__page_decode(&entry, page->data, page->bytes, &decoded, NULL),
                         ESDM_OK);
        assert_true(esdm__page_visit(decoded, note_fragment, &t));
        esdm__page_unref(decoded);
        s->pages++;
        s->bytes += page->bytes;
    }
    return status;
}

/* ---- a catalogue ---------------------------------------------------------------------------- */

/* Statements of the thread that writes: when the lock was asked for, and when it was given back. */
static struct lock {
    struct timespec taken;
    struct timespec taken_cpu;
    double held_s;
    double held_cpu_s;
} lock;

static double
seconds_since(const struct timespec *from, clockid_t clock)
{
    struct timespec now;
    (void) clock_gettime(clock, &now);
    return (double) (now.tv_sec - from->tv_sec) + 1e-9 * (double) (now.tv_nsec - from->tv_nsec);
}

static int
note_lock(unsigned what, void *user, void *statement, void *more)
{
    const char *sql = sqlite3_sql(statement);
    (void) user, (void) more;
    if (what == SQLITE_TRACE_STMT && strcmp(sql, "BEGIN IMMEDIATE") == 0) {
        (void) clock_gettime(CLOCK_MONOTONIC, &lock.taken);
        (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &lock.taken_cpu);
    } else if (what == SQLITE_TRACE_PROFILE && strcmp(sql, "COMMIT") == 0) {
        lock.held_s = seconds_since(&lock.taken, CLOCK_MONOTONIC);
        lock.held_cpu_s = seconds_since(&lock.taken_cpu, CLOCK_THREAD_CPUTIME_ID);
    }
    return 0;
}

static int
watch_link(sqlite3 *db, char **ret_text, const void *api)
{
    (void) ret_text, (void) api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE, note_lock, NULL);
}

static esdm_status
publish(story *s, const char *name, esdm_meta_page_source next, void *user, esdm_error *err)
{
    static const char document[] = "{}";
    char uuid[33];
    esdm_meta_committed done;
    esdm_meta_commit commit = {.kind = ESDM_META_CREATE,
                               .name = name,
                               .uuid = uuid,
                               .document = document,
                               .document_bytes = sizeof document - 1,
                               .datasets = s->datasets,
                               .next_page = next,
                               .next_page_user = user,
                               .writer = "ranks",
                               .message = "",
                               .history = 1};
    (void) snprintf(uuid, sizeof uuid, "%032lx", (unsigned long) name[0]);
    if (next == NULL) {
        commit.pages = s->copies.pages;
        commit.npages = s->copies.count;
    }
    return s->meta->commit(s->store, &commit, &done, err);
}

typedef struct copying {
    esdm__page_source *source;
    esdm__page_copies *to;
} copying;

static esdm_status
next_copied(void *user, const esdm_meta_new_page **ret_page, esdm_error *err)
{
    copying *c = user;
    esdm_status status = esdm__page_source_next(c->source, ret_page, err);
    if (status == ESDM_OK && *ret_page != NULL)
        assert_true(esdm__page_copies_add(c->to, *ret_page));
    return status;
}

/* The first run keeps what comes, the second one is measured. */
static esdm_status
publish_all(story *s, esdm__page_source *source, esdm_error *err)
{
    if (s->copies.count > 0)
        return publish(s, "a", esdm__page_source_next, source, err);
    return publish(s, "b", next_copied, &(copying){source, &s->copies}, err);
}

/* ---- a commit ------------------------------------------------------------------------------- */

static void
commit_pages(esdm_comm *comm, void *user)
{
    story *s = user;
    esdm__tree tree;
    esdm__page_set set = {0};
    esdm__page_source *source = NULL;
    esdm_error failure = {0};
    bool some = comm->rank % s->every == 0;
    esdm_meta_new_page *pages = malloc((s->datasets + 1) * sizeof *pages);
    assert_int_equal(esdm__tree_make(comm, &tree, NULL), ESDM_OK);
    assert_int_equal(esdm__page_source_new(comm, &tree, &source, NULL), ESDM_OK);
    if (some)
        make_pages(comm->rank, s->datasets, &set, pages);
    if (comm->rank == s->failing)
        failure = (esdm_error){.status = ESDM_ENOSPC, .message = "there is no room"};
    double before = sim_cpu_s(comm);
    esdm__page_source_expect(source, pages, some ? s->datasets : 0);
    if (failure.status == ESDM_OK)
        failure.status = esdm__page_source_begin(source, &failure);
    if (comm->rank == 0) {
        if (failure.status == ESDM_OK)
            failure.status = esdm__page_source_gather(source, s->gathered_bytes, &failure);
        s->gather_s = sim_cpu_s(comm) - before;
        s->late = sim_counts_of(s->world, 0)->received;
        if (failure.status == ESDM_OK)
            failure.status =
                s->meta != NULL ? publish_all(s, source, &failure) : take_all(source, s, &failure);
        s->late = sim_counts_of(s->world, 0)->received - s->late;
        s->error = failure;
    } else {
        assert_int_equal(
            esdm__pages_send(comm, tree.parent, &failure, esdm__page_source_next, source, NULL),
            ESDM_OK);
    }
    esdm__page_source_end(source);
    esdm__page_source_free(source);
    esdm__page_set_clear(&set);
    esdm__tree_clear(&tree);
    free(pages);
}

static void
run(sim_world *w, int size, story *s)
{
    s->seen = calloc((size_t) size * s->datasets, 1);
    s->pages = s->records = s->bytes = 0;
    s->error = (esdm_error){0};
    s->world = w;
    sim_run(w, commit_pages, s);
}

static void
expect_once(const story *s, int size)
{
    assert_int_equal(s->error.status, ESDM_OK);
    for (int r = 0; r < size; r++)
        for (uint32_t d = 0; d < s->datasets; d++)
            assert_int_equal(s->seen[(size_t) r * s->datasets + d], r % s->every == 0);
}

static void
test_page_tree__each_record_comes_once(void **state)
{
    (void) state;
    static const int sizes[] = {1, 2, 9, 70, 600};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int every = 1; every < 4; every += 2) {
            story s = {.datasets = 1 + 11 * (uint32_t) i, .every = every, .failing = -1};
            sim_world *w = sim_world_new(sizes[i], every == 1 ? 0 : 16, 192 << 10);
            for (size_t gathered = 0; gathered < 2; gathered++) {
                s.gathered_bytes = gathered << 13; /* nothing, and a part of it */
                run(w, sizes[i], &s);
                expect_once(&s, sizes[i]);
                free(s.seen);
            }
            sim_world_free(w);
        }
    }
}

static void
test_page_tree__a_failure_below_is_told_by_name(void **state)
{
    (void) state;
    story s = {.datasets = 40, .every = 1, .gathered_bytes = 1 << 20};
    sim_world *w = sim_world_new(200, 0, 192 << 10);
    for (s.failing = 0; s.failing < 200; s.failing += 39) {
        run(w, 200, &s);
        assert_int_equal(s.error.status, ESDM_ENOSPC);
        assert_string_equal(s.error.message, "there is no room");
        free(s.seen);
    }
    sim_world_free(w);
}

/* Rank 0 with very many below. @param cpu_s most of it, with a tenfold reserve. */
static void
count_many(int size, uint32_t datasets, int every, double cpu_s)
{
    story s = {.datasets = datasets, .every = every, .failing = -1, .gathered_bytes = 1 << 30};
    sim_world *w = sim_world_new(size, 128, STACK_BYTES);
    run(w, size, &s);
    expect_once(&s, size);
    sim_counts most = sim_most(w);
    const sim_counts *first = sim_counts_of(w, 0);
    print_message(
        "%d ranks, %d with data, %d datasets: %d pages of %.1f MB; rank 0: %.0f ms of CPU "
        "before the transaction, %d messages received; any rank: %.0f ms, %d received, %d "
        "sent, %d deep\n",
        size, size / every, (int) datasets, (int) s.pages, 1e-6 * (double) s.bytes,
        1e3 * s.gather_s, (int) first->received, 1e3 * most.cpu_s, (int) most.received,
        (int) most.sent, (int) most.depth);
    assert_true(s.gather_s < cpu_s);
    assert_int_equal(s.late, 0); /* the transaction waits for nobody */
    assert_true(first->received < 200 + s.bytes / 8192);
    free(s.seen);
    sim_world_free(w);
}

static void
test_page_tree__of_very_many_ranks_costs_rank_0_little(void **state)
{
    (void) state;
    const char *size = getenv("ESDM_TEST_SIZE");
    bool large = size != NULL && strcmp(size, "long") == 0;
    count_many(large ? sim_many() : 8000, 20, 1, 5);
    count_many(sim_many(), 1, 1, 5);
    count_many(sim_many(), 20, 10000, 1); /* the empty ones cost a short message */
}

/* Rank 0 holds the lock for the pages of all ranks as long as for the same pages of its own. */
static void
test_page_tree__the_lock_is_held_for_the_pages_alone(void **state)
{
    (void) state;
    const char *form = getenv("ESDM_TEST_SIZE");
    const int size = form != NULL && strcmp(form, "long") == 0 ? sim_many() : 8000;
    char directory[] = "/tmp/esdm-pages.XXXXXX";
    char text[100];
    const esdm_plugin *plugin = NULL;
    story s = {.datasets = 20, .every = 1, .failing = -1, .gathered_bytes = 64 << 20};
    esdm_error err = {0};
    assert_non_null(mkdtemp(directory));
    (void) snprintf(text, sizeof text, "{\"directory\": \"%s/meta\"}", directory);
    const esdm_plugin_config config = {.name = "metadata",
                                       .json = text,
                                       .path = "metadata",
                                       .site_id = "0123456789abcdef0123456789abcdef"};
    assert_int_equal(sqlite3_auto_extension((void (*)(void)) watch_link), SQLITE_OK);
    assert_int_equal(esdm__plugin_find(ESDM_PLUGIN_META, "sqlite", &plugin, &err), ESDM_OK);
    s.meta = (const esdm_meta_plugin *) plugin;
    assert_int_equal(s.meta->make(&config, false, NULL, NULL, &err), ESDM_OK);
    assert_int_equal(s.meta->open(&config, false, &s.store, &err), ESDM_OK);
    sim_world *w = sim_world_new(size, 128, STACK_BYTES_SQLITE);
    double own_s = 1e9;
    double all_s = 1e9;
    double own_cpu_s = 1e9;
    double all_cpu_s = 1e9;
    for (int turn = 0; turn < 3; turn++) { /* the first one keeps the pages */
        run(w, size, &s);
        free(s.seen);
        assert_int_equal(s.error.status, ESDM_OK);
        assert_int_equal(s.late, 0); /* no message came meanwhile */
        if (turn > 0) {
            all_s = lock.held_s < all_s ? lock.held_s : all_s;
            all_cpu_s = lock.held_cpu_s < all_cpu_s ? lock.held_cpu_s : all_cpu_s;
        }
        assert_int_equal(
            s.meta->container_remove(s.store, turn > 0 ? "a" : "b", &(uint64_t){0}, &err), ESDM_OK);
        assert_int_equal(publish(&s, "c", NULL, NULL, &err), ESDM_OK);
        own_s = lock.held_s < own_s ? lock.held_s : own_s;
        own_cpu_s = lock.held_cpu_s < own_cpu_s ? lock.held_cpu_s : own_cpu_s;
        assert_int_equal(s.meta->container_remove(s.store, "c", &(uint64_t){0}, &err), ESDM_OK);
    }
    print_message(
        "%d ranks, 20 datasets, %d pages: the lock is held %.1f ms (%.1f of CPU), for the "
        "same pages in an array %.1f (%.1f)\n",
        size, (int) s.copies.count, 1e3 * all_s, 1e3 * all_cpu_s, 1e3 * own_s, 1e3 * own_cpu_s);
    assert_true(all_cpu_s - own_cpu_s < 0.05);
    sim_world_free(w);
    s.meta->close(s.store);
    sqlite3_reset_auto_extension();
    esdm__page_copies_clear(&s.copies);
    (void) snprintf(text, sizeof text, "rm -rf %s", directory);
    assert_int_equal(system(text), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page_tree__each_record_comes_once),
        cmocka_unit_test(test_page_tree__a_failure_below_is_told_by_name),
        cmocka_unit_test(test_page_tree__of_very_many_ranks_costs_rank_0_little),
        cmocka_unit_test(test_page_tree__the_lock_is_held_for_the_pages_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
