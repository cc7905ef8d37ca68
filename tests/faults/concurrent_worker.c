/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * One process of many that use the same containers at once; run by test_concurrent_history.py,
 * which kills some. What may be seen stands in the file LEDGER, which they share.
 *
 *     concurrent_worker LEDGER SEED make | write N | read | branch N | keep N | check | remove |
 *                                   counts
 */

#include "faults/concurrent_ledger.h"

#include "esdm/branch.h"
#include "esdm/history.h"

static uint64_t seed;
static esdm_session *session;

static uint32_t
any(uint32_t below)
{
    return (uint32_t) (next_random(&seed) % below);
}

static bool
goes_on(void)
{
    return atomic_load(&shared->stop) == 0;
}

static const char *
name_of(uint32_t container)
{
    static const char *const names[CONTAINERS] = {"h0", "h1", "sub/h2", "sub/h3"};
    return names[container];
}

static esdm_container *
open_named(const char *name, esdm_open_mode mode)
{
    esdm_container *handle;
    esdm_status status =
        esdm_container_open(session, name, mode, ESDM_SNAPSHOT_LATEST, &handle, ERR);
    if (status != ESDM_OK)
        die("%s: %s: %s", name, esdm_status_string(status), ERR->message);
    return handle;
}

/* ---- writers ------------------------------------------------------------------------------- */

static void
make(void)
{
    for (uint32_t c = 0; c < CONTAINERS; c++) {
        esdm_container *handle;
        esdm_dimension *dims[2];
        esdm_dimension *wide[2];
        esdm_dataset *dataset;
        ok(esdm_container_create(session, name_of(c), ESDM_CREATE_NEW, &handle, ERR));
        esdm_group *root = esdm_container_root(handle);
        ok(esdm_dimension_create(root, "row", ROWS, &dims[0], ERR));
        ok(esdm_dimension_create(root, "column", COLUMNS, &dims[1], ERR));
        ok(esdm_dataset_create(root, "a", ESDM_TYPE_INT64, 2, dims, &dataset, ERR));
        ok(esdm_dataset_create(root, "b", ESDM_TYPE_INT64, 2, dims, &dataset, ERR));
        wide[0] = dims[0];
        ok(esdm_dimension_create(root, "wide", WIDE, &wide[1], ERR));
        ok(esdm_dataset_create(root, "c", ESDM_TYPE_INT64, 2, wide, &dataset, ERR));
        for (uint32_t row = 0; row < ROWS; row++)
            write_sequence(handle, c, row, 0);
        ok(esdm_container_close(handle, ERR));
    }
}

/* A number that none was told before, also by a process that was killed. */
static uint64_t
next_sequence(uint32_t container, uint32_t row)
{
    return atomic_fetch_add(&shared->begun[container][row], 2) + 2;
}

static void
write_some(uint32_t row)
{
    uint32_t c = any(CONTAINERS);
    esdm_container *handle = open_named(name_of(c), ESDM_OPEN_WRITE);
    uint32_t commits = any(6) == 0 ? MANY : 1 + any(4);
    for (uint32_t n = commits; n > 0 && (goes_on() || n == commits); n--) {
        uint64_t sequence = next_sequence(c, row);
        if (any(4) == 0) {
            write_sequence(handle, c, row, sequence - 1);
            add_one(&shared->counts.drafts);
            if (any(3) == 0 && commits < MANY) {
                esdm_container_discard(handle);
                return;
            }
        }
        write_sequence(handle, c, row, sequence);
        ok(esdm_container_commit(handle, NULL, ERR));
        at_least(c, row, sequence);
        add_one(&shared->counts.commits);
        if (any(8) == 0) { /* one's own row is as one has written it */
            contents seen;
            read_contents(handle, c, name_of(c), &seen);
            if (seen.sequences[row] != sequence)
                die("%s: a writer reads its row as of %" PRIu64 ", not of %" PRIu64, name_of(c),
                    seen.sequences[row], sequence);
        }
    }
    ok(esdm_container_close(handle, ERR));
    if (commits == MANY && goes_on())
        add_one(&shared->counts.freed);
}

/* ---- readers ------------------------------------------------------------------------------- */

static void
read_newest(void)
{
    contents least, most, seen, again;
    uint32_t c = any(CONTAINERS);
    copy_least(c, &least);
    esdm_container *handle = open_named(name_of(c), ESDM_OPEN_READ);
    for (uint32_t n = 1 + any(3); n > 0; n--) {
        copy_begun(c, &most);
        read_contents(handle, c, name_of(c), &seen);
        is_legal(name_of(c), &seen, &least, &most);
        for (uint32_t row = 0; row < ROWS; row++)
            at_least(c, row, seen.sequences[row]);
        add_one(&shared->counts.reads);
        if (any(3) == 0) { /* what is open stays */
            (void) usleep(any(200000));
            read_contents(handle, c, name_of(c), &again);
            is_same(name_of(c), &again, &seen);
            add_one(&shared->counts.again);
        }
        copy_least(c, &least);
        ok(esdm_container_refresh(handle, ERR));
    }
    ok(esdm_container_close(handle, ERR));
}

static void
read_earlier(void)
{
    static const contents nothing;
    char name[64];
    contents most, seen;
    uint32_t c = any(CONTAINERS);
    snprintf(name, sizeof name, "%s@-%u", name_of(c), 1 + any(2));
    if (read_named(session, name, c, &seen)) {
        copy_begun(c, &most);
        is_legal(name, &seen, &nothing, &most);
        add_one(&shared->counts.earlier);
    }
}

static void
name_of_slot(uint32_t number, char *ret, size_t size)
{
    slot *s = &shared->slots[number];
    uint32_t use = atomic_load(&s->use);
    const char *base = name_of(atomic_load(&s->container));
    if (use % 2 == 0)
        snprintf(ret, size, "%s@tag:t%u-%u", base, number, use);
    else
        snprintf(ret, size, "clone%u-%u", number, use);
}

static void
read_kept(void)
{
    char name[64];
    contents seen, wanted;
    uint32_t number = any(SLOTS);
    slot *s = &shared->slots[number];
    uint32_t use = atomic_load(&s->use);
    uint32_t c = atomic_load(&s->container);
    name_of_slot(number, name, sizeof name);
    for (uint32_t row = 0; row < ROWS; row++)
        wanted.sequences[row] = atomic_load(&s->sequences[row]);
    if (atomic_load(&s->state) != SLOT_THERE || atomic_load(&s->use) != use)
        return;
    if (!read_named(session, name, c, &seen)) {
        if (atomic_load(&s->state) == SLOT_THERE && atomic_load(&s->use) == use)
            die("%s is gone", name);
        return;
    }
    is_same(name, &seen, &wanted);
    add_one(&shared->counts.kept);
}

static void
read_something(void)
{
    uint32_t what = any(10);
    if (what < 6)
        read_newest();
    else if (what < 7)
        read_earlier();
    else
        read_kept();
}

/* ---- branches ------------------------------------------------------------------------------ */

/* Two branches of each of two containers. */
static uint32_t
container_of(uint32_t brancher)
{
    return brancher / 2;
}

/* Merges both ways never meet what others wrote: every writer has rows of its own. */
static void
merge(const char *name, const char *branch)
{
    for (int tries = 0; tries < 200; tries++) {
        esdm_merge_result result = {0};
        esdm_status status = esdm_merge(session, name, branch, NULL, &result, ERR);
        if (status == ESDM_OK)
            return;
        if (status != ESDM_ECONFLICT || result.open_conflicts > 0)
            die("merging %s and %s: %s: %s (%" PRIu64 " conflicts)", name,
                branch != NULL ? branch : "its container", esdm_status_string(status), ERR->message,
                result.open_conflicts);
        add_one(&shared->counts.meetings); /* others wrote again and again */
    }
    die("%s: nothing was merged in 200 tries", name);
}

static void
change_branch(const char *full, uint32_t c, uint32_t row, contents *now)
{
    contents seen;
    uint64_t sequence = next_sequence(c, row);
    esdm_container *handle = open_named(full, ESDM_OPEN_WRITE);
    write_sequence(handle, c, row, sequence);
    ok(esdm_container_close(handle, ERR));
    now->sequences[row] = sequence;
    if (!read_named(session, full, c, &seen))
        die("%s is gone", full);
    is_same(full, &seen, now);
    add_one(&shared->counts.changes);
}

static void
branch_off(uint32_t number)
{
    char branch[16];
    char full[64];
    contents least, most, now;
    uint32_t row = WRITERS + number;
    uint32_t c = container_of(number);
    snprintf(branch, sizeof branch, "line%u", number);
    snprintf(full, sizeof full, "%s@branch:%s", name_of(c), branch);
    copy_least(c, &least);
    esdm_status status = esdm_branch_create(session, name_of(c), branch, NULL, ERR);
    if (status == ESDM_EEXIST) { /* of one that was killed, perhaps in a merge that nothing notes */
        ok(esdm_branch_remove(session, name_of(c), branch, ERR));
        status = esdm_branch_create(session, name_of(c), branch, NULL, ERR);
    }
    ok(status);
    if (!read_named(session, full, c, &now))
        die("%s is gone", full);
    copy_begun(c, &most);
    is_legal(full, &now, &least, &most);
    add_one(&shared->counts.branches);
    for (uint32_t rounds = 1 + any(3); rounds > 0; rounds--) {
        for (uint32_t n = any(3); n > 0; n--)
            change_branch(full, c, row, &now);
        if (any(2) == 0) {
            uint64_t own = now.sequences[row];
            copy_least(c, &least);
            least.sequences[row] = own;
            merge(full, NULL);
            if (!read_named(session, full, c, &now))
                die("%s is gone", full);
            copy_begun(c, &most);
            most.sequences[row] = own;
            is_legal(full, &now, &least, &most);
            add_one(&shared->counts.caught_up);
        }
        if (any(3) != 0) {
            merge(name_of(c), branch);
            at_least(c, row, now.sequences[row]);
            add_one(&shared->counts.merges);
        }
    }
    ok(esdm_branch_remove(session, name_of(c), branch, ERR));
}

/* ---- tags and clones ----------------------------------------------------------------------- */

static void
drop(uint32_t number)
{
    char name[64];
    slot *s = &shared->slots[number];
    uint32_t use = atomic_load(&s->use);
    atomic_store(&s->state, SLOT_GOING);
    name_of_slot(number, name, sizeof name);
    esdm_status status;
    if (use % 2 == 0) {
        char *at = strstr(name, "@tag:");
        *at = '\0';
        status = esdm_container_untag(session, name, at + strlen("@tag:"), ERR);
    } else {
        status = any(2) == 0 ? esdm_container_remove(session, name, ERR)
                             : esdm_container_erase(session, name, ERR);
    }
    if (status != ESDM_ENOENT) /* one that was killed may have done it */
        ok(status);
    atomic_store(&s->state, SLOT_FREE);
}

static void
keep(uint32_t number)
{
    char name[64];
    contents least, most, seen;
    slot *s = &shared->slots[number];
    uint32_t use = atomic_load(&s->use) + 1;
    uint32_t c = any(use % 2 == 0 ? CONTAINERS : SHARING); /* tags of all, clones of these */
    atomic_store(&s->container, c);
    atomic_store(&s->use, use);
    atomic_store(&s->state, SLOT_MAKING);
    name_of_slot(number, name, sizeof name);
    copy_least(c, &least);
    if (use % 2 == 0)
        ok(esdm_container_tag(session, name_of(c), strstr(name, "@tag:") + strlen("@tag:"), false,
                              NULL, ERR));
    else
        ok(esdm_container_clone(session, name_of(c), name, false, ERR));
    copy_begun(c, &most);
    if (!read_named(session, name, c, &seen))
        die("%s is not there", name);
    is_legal(name, &seen, &least, &most);
    for (uint32_t row = 0; row < ROWS; row++)
        atomic_store(&s->sequences[row], seen.sequences[row]);
    atomic_store(&s->state, SLOT_THERE);
    add_one(use % 2 == 0 ? &shared->counts.tags : &shared->counts.clones);
}

static void
keep_something(uint32_t keeper, bool begins)
{
    for (uint32_t i = keeper; i < SLOTS && begins; i += KEEPERS) {
        uint32_t state = atomic_load(&shared->slots[i].state);
        if (state == SLOT_MAKING || state == SLOT_GOING)
            drop(i);
    }
    uint32_t number = keeper + KEEPERS * any(SLOTS / KEEPERS);
    if (atomic_load(&shared->slots[number].state) == SLOT_FREE)
        keep(number);
    else if (any(3) == 0)
        drop(number);
    (void) usleep(any(100000));
}

/* ---- in the end ---------------------------------------------------------------------------- */

/* All that stays is as it should be. */
static void
check_all(void)
{
    for (uint32_t c = 0; c < CONTAINERS; c++) {
        contents least, most, seen;
        copy_least(c, &least);
        copy_begun(c, &most);
        if (!read_named(session, name_of(c), c, &seen))
            die("%s is gone", name_of(c));
        is_legal(name_of(c), &seen, &least, &most);
        for (uint32_t row = 0; row < ROWS; row++)
            at_least(c, row, seen.sequences[row]);
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        char name[64];
        contents seen, wanted;
        slot *s = &shared->slots[i];
        if (atomic_load(&s->state) != SLOT_THERE)
            continue;
        name_of_slot(i, name, sizeof name);
        if (!read_named(session, name, atomic_load(&s->container), &seen))
            die("%s is gone", name);
        for (uint32_t row = 0; row < ROWS; row++)
            wanted.sequences[row] = atomic_load(&s->sequences[row]);
        is_same(name, &seen, &wanted);
    }
}

static void
remove_all(void)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        if (atomic_load(&shared->slots[i].state) != SLOT_FREE)
            drop(i);
    }
    for (uint32_t b = 0; b < BRANCHERS; b++) {
        char branch[16];
        snprintf(branch, sizeof branch, "line%u", b);
        esdm_status status = esdm_branch_remove(session, name_of(container_of(b)), branch, ERR);
        if (status != ESDM_ENOENT)
            ok(status);
    }
    for (uint32_t c = 0; c < CONTAINERS; c++)
        ok(esdm_container_erase(session, name_of(c), ERR));
}

static void
print_counts(void)
{
    const counts *n = &shared->counts;
    printf("%" PRIu64 " commits, %" PRIu64 " not committed, %" PRIu64
           " reads of the newest, %" PRIu64 " read again, %" PRIu64
           " of earlier snapshots, %" PRIu64 " of tags and clones\n",
           n->commits, n->drafts, n->reads, n->again, n->earlier, n->kept);
    printf("%" PRIu64 " tags, %" PRIu64 " clones, %" PRIu64 " branches, %" PRIu64
           " commits to them, %" PRIu64 " catches up, %" PRIu64 " merges, %" PRIu64
           " begun anew, %" PRIu64 " closes after a MiB was written over\n",
           n->tags, n->clones, n->branches, n->changes, n->caught_up, n->merges, n->meetings,
           n->freed);
}

int
main(int argc, char **argv)
{
    check(argc == 4 || argc == 5);
    const char *role = argv[3];
    uint32_t number = argc == 5 ? (uint32_t) strtoul(argv[4], NULL, 10) : 0;
    map_ledger(argv[1]);
    seed = strtoull(argv[2], NULL, 10);
    session = open_session();
    bool begins = true;
    do {
        if (strcmp(role, "write") == 0)
            write_some(number);
        else if (strcmp(role, "read") == 0)
            read_something();
        else if (strcmp(role, "branch") == 0)
            branch_off(number);
        else if (strcmp(role, "keep") == 0)
            keep_something(number, begins);
        else
            break;
        begins = false;
    } while (goes_on());
    if (strcmp(role, "make") == 0)
        make();
    else if (strcmp(role, "check") == 0)
        check_all();
    else if (strcmp(role, "remove") == 0)
        remove_all();
    else if (strcmp(role, "counts") == 0)
        print_counts();
    esdm_session_close(session);
    return 0;
}
