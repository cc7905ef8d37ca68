/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout_support.h"

/*
 * Every allocation fails once, one after the other: the call says ESDM_ENOMEM and leaves its
 * outputs alone, nothing leaks, and the same call succeeds afterwards. Sanitizers bring their own
 * malloc, so there is nothing to do with them.
 */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
int
main(void)
{
    return 0;
}
#else

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void __libc_free(void *memory);

static long fail_at = -1; /* allocations until the one that fails; < 0: none does */
static bool failed;
static long live;

static bool
fails(void)
{
    if (fail_at < 0 || fail_at-- > 0)
        return false;
    failed = true;
    return true;
}

void *
malloc(size_t bytes)
{
    void *memory = fails() ? NULL : __libc_malloc(bytes);
    live += memory != NULL;
    return memory;
}

void *
calloc(size_t n, size_t bytes)
{
    void *memory = fails() ? NULL : __libc_calloc(n, bytes);
    live += memory != NULL;
    return memory;
}

void *
realloc(void *old, size_t bytes)
{
    void *memory = fails() ? NULL : __libc_realloc(old, bytes);
    live += memory != NULL && old == NULL;
    return memory;
}

void
free(void *memory)
{
    live -= memory != NULL;
    __libc_free(memory);
}

/* One call to try; true: it succeeded. A failing one must say ESDM_ENOMEM. */
typedef bool (*attempt_fn)(void *user);

static void
fail_each_allocation(attempt_fn attempt, void *user)
{
    for (long n = 0;; n++) {
        assert_true(n < 10000);
        failed = false;
        fail_at = n;
        long before = live;
        bool ok = attempt(user);
        fail_at = -1;
        if (ok && !failed)
            return;
        /* What was allocated for a cache or a list that grew may stay, but not for ever more. */
        assert_true(ok || live - before <= 8);
        if (ok) /* it found a way without */
            continue;
    }
}

typedef struct subject {
    esdm__index *index;
    store *s;
    esdm__box request;
} subject;

static bool
try_resolve(void *user)
{
    subject *x = user;
    esdm__plan plan;
    memset(&plan, 0x5a, sizeof plan);
    const esdm__plan untouched = plan;
    esdm_status st = esdm__index_resolve(x->index, &x->request, &plan, NULL);
    if (st != ESDM_OK) {
        assert_int_equal(st, ESDM_ENOMEM);
        assert_memory_equal(&plan, &untouched, sizeof plan);
        return false;
    }
    uint64_t elements = 0;
    for (size_t i = 0; i < plan.npieces; i++)
        elements += esdm__box_elements(&plan.pieces[i].part);
    assert_int_equal(elements, esdm__box_elements(&x->request));
    assert_true(plan.covered);
    esdm__plan_clear(&plan);
    return true;
}

static bool
try_encode(void *user)
{
    subject *x = user;
    esdm__page_set set;
    memset(&set, 0x5a, sizeof set);
    const esdm__page_set untouched = set;
    uint64_t *candidates;
    size_t count;
    esdm_status st = esdm__index_merge_candidates(x->index, &candidates, &count, NULL);
    if (st == ESDM_OK) {
        st = esdm__index_encode(x->index, candidates, count, &set, NULL);
        free(candidates);
    }
    if (st != ESDM_OK) {
        assert_int_equal(st, ESDM_ENOMEM);
        assert_memory_equal(&set, &untouched, sizeof set);
        return false;
    }
    esdm__page_set_clear(&set);
    return true;
}

static bool
try_decode(void *user)
{
    subject *x = user;
    const store_page *p = &x->s->pages[x->s->count - 1];
    esdm__page *page = (esdm__page *) x;
    esdm_status st = esdm__page_decode(&p->entry, p->data, p->bytes, &page, NULL);
    if (st != ESDM_OK) {
        assert_int_equal(st, ESDM_ENOMEM);
        assert_ptr_equal(page, x);
        return false;
    }
    esdm__page_unref(page);
    return true;
}

static bool
try_open(void *user)
{
    subject *x = user;
    uint64_t *missing;
    size_t count;
    esdm__index *index = esdm__index_new(2);
    if (index == NULL)
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < x->s->count; i++) {
        esdm_status st = x->s->pages[i].removed
                             ? ESDM_OK
                             : esdm__index_add_page(index, &x->s->pages[i].entry, NULL);
        assert_true(st == ESDM_OK || st == ESDM_ENOMEM);
        ok = st == ESDM_OK;
    }
    if (ok) {
        esdm_status st = esdm__index_missing(index, &x->request, &missing, &count, NULL);
        assert_true(st == ESDM_OK || st == ESDM_ENOMEM);
        ok = st == ESDM_OK;
    }
    if (ok)
        free(missing);
    esdm__index_free(index);
    return ok;
}

static bool
try_add(void *user)
{
    subject *x = user;
    size_t before = esdm__index_pending_count(x->index);
    esdm__fragment f = {
        .raw_bytes = 8, .stored_bytes = 8, .inline_data = (const uint8_t *) "12345678"};
    esdm__box_set(&f.box, 2, (const uint64_t[]){1, 1}, (const uint64_t[]){1, 1});
    for (int i = 0; i < 100; i++) {
        esdm_status st = esdm__index_add_pending(x->index, &f, NULL);
        if (st != ESDM_OK) {
            assert_int_equal(st, ESDM_ENOMEM);
            assert_int_equal(esdm__index_pending_count(x->index), before + (size_t) i);
            return false;
        }
    }
    return true;
}

static bool
try_intern(void *user)
{
    subject *x = user;
    static int n;
    char name[16];
    (void) snprintf(name, sizeof name, "%d", n++);
    for (int i = 0; i < 20; i++) {
        name[0] = (char) ('a' + i);
        if (esdm__index_pack(x->index, "t", name) == NULL)
            return false;
    }
    return true;
}

static void
add(esdm__index *index, uint64_t y, uint64_t x, uint64_t ny, uint64_t nx)
{
    esdm__fragment f = {.raw_bytes = 8, .stored_bytes = 8};
    esdm__box_set(&f.box, 2, (const uint64_t[]){y, x}, (const uint64_t[]){ny, nx});
    f.pack = esdm__index_pack(index, "t", y % 2 ? "a" : "b");
    f.position = 1000 * y + x;
    assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
}

static void
test_memory__every_failed_allocation_is_reported(void **state)
{
    (void) state;
    long before = live;
    store s = {0};
    subject x = {.index = esdm__index_new(2), .s = &s};
    esdm__box_set(&x.request, 2, NULL, (const uint64_t[]){40, 20});
    for (uint64_t round = 0; round < 40; round++) { /* overlapping, committed and pending */
        add(x.index, 0, 0, 40, 20);
        for (uint64_t i = 0; i < 40; i++)
            add(x.index, i, (i + round) % 15, 1, 3);
        if (round < 39)
            store_commit(&s, x.index, round < 20);
    }
    fail_each_allocation(try_resolve, &x);
    fail_each_allocation(try_encode, &x);
    fail_each_allocation(try_decode, &x);
    fail_each_allocation(try_open, &x);
    fail_each_allocation(try_intern, &x);
    fail_each_allocation(try_add, &x);
    esdm__index_free(x.index);
    store_clear(&s);
    assert_int_equal(live, before);
}

/* After a commit that could not enter its pages, no answer is given rather than a wrong one. */
static void
test_memory__a_commit_without_memory_never_loses_data(void **state)
{
    (void) state;
    for (long n = 0; n < 40; n++) {
        store s = {0};
        esdm__page_set set;
        esdm__plan plan;
        subject x = {.index = esdm__index_new(2), .s = &s};
        add(x.index, 0, 0, 4, 4);
        assert_int_equal(esdm__index_encode(x.index, NULL, 0, &set, NULL), ESDM_OK);
        uint64_t first = store_publish(&s, &set);
        fail_at = n;
        esdm__index_committed(x.index, &set, first, s.snapshot);
        fail_at = -1;
        esdm__page_set_clear(&set);
        esdm__box_set(&x.request, 2, NULL, (const uint64_t[]){4, 4});
        uint64_t *missing;
        size_t count;
        assert_int_equal(esdm__index_missing(x.index, &x.request, &missing, &count, NULL), ESDM_OK);
        store_load(&s, x.index, missing, count);
        free(missing);
        esdm_status st = esdm__index_resolve(x.index, &x.request, &plan, NULL);
        assert_true(st == ESDM_OK || st == ESDM_ENOMEM);
        if (st == ESDM_OK) {
            assert_int_equal(plan.npieces, 1);
            esdm__plan_clear(&plan);
        }
        esdm__index_free(x.index);
        store_clear(&s);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory__every_failed_allocation_is_reported),
        cmocka_unit_test(test_memory__a_commit_without_memory_never_loses_data),
    };
    return cmocka_run_group_tests_name("layout.memory", tests, NULL, NULL);
}
#endif
