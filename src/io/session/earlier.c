/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/own_process.h"
#include "io/session/earlier_parts.h"

/* Reads that are asked for early: of a use that was seen once, and of one that was seen more often.
 */
#define DEPTH_NEW     8u
#define DEPTH_TRUSTED 64u
/* And before the first read of a dataset. */
#define AT_ONCE_NEW     1u
#define AT_ONCE_TRUSTED 8u

/* ---- uses ---------------------------------------------------------------------------------- */

esdm__use *
esdm__use_new(const char *container, const char *dataset, uint32_t rank, const uint64_t *lengths)
{
    esdm__use *use = calloc(1, sizeof *use);
    if (use == NULL)
        return NULL;
    use->container = strdup(container);
    use->dataset = strdup(dataset);
    use->rank = rank;
    use->before.rank = rank;
    use->now.rank = rank;
    use->trust = ESDM__TRUST_NEW;
    if (rank > 0)
        memcpy(use->lengths, lengths, rank * sizeof *lengths);
    if (use->container != NULL && use->dataset != NULL)
        return use;
    esdm__use_free(use);
    return NULL;
}

void
esdm__use_free(esdm__use *use)
{
    if (use == NULL)
        return;
    esdm__loops_clear(&use->before);
    esdm__loops_clear(&use->now);
    free(use->container);
    free(use->dataset);
    free(use);
}

static bool
same_lengths(const esdm__use *use, uint32_t rank, const uint64_t *lengths)
{
    return use->rank == rank &&
           (rank == 0 || memcmp(use->lengths, lengths, rank * sizeof *lengths) == 0);
}

/* ---- the record ---------------------------------------------------------------------------- */

bool
esdm__earlier_is_off(const esdm__site *site)
{
    const char *stated = secure_getenv("ESDM_EARLIER_RUNS");
    if (stated != NULL && strcmp(stated, "off") == 0)
        return true;
    bool on = stated != NULL && strcmp(stated, "prefetch") == 0;
    return !on && !site->engine.earlier_runs;
}

esdm__earlier *
esdm__earlier_new(const esdm__site *site)
{
    if (esdm__earlier_is_off(site) || site->id[0] == '\0')
        return NULL;
    esdm__earlier *earlier = calloc(1, sizeof *earlier);
    if (earlier == NULL)
        return NULL;
    (void) pthread_mutex_init(&earlier->lock, NULL);
    earlier->owner = esdm__own_pid();
    if (!esdm__earlier_place(earlier, site->id)) {
        esdm__earlier_free(earlier);
        return NULL;
    }
    esdm__earlier_load(earlier);
    return earlier;
}

void
esdm__earlier_free(esdm__earlier *earlier)
{
    if (earlier == NULL)
        return;
    for (esdm__use *use = earlier->uses, *next; use != NULL; use = next) {
        next = use->next;
        esdm__use_free(use);
    }
    (void) pthread_mutex_destroy(&earlier->lock);
    free(earlier->program);
    free(earlier->folder);
    free(earlier);
}

/* ---- what is read -------------------------------------------------------------------------- */

esdm__use *
esdm__earlier_expected(esdm__earlier *earlier, const char *container, size_t i,
                       const char **ret_dataset)
{
    esdm__use *found = NULL;
    (void) pthread_mutex_lock(&earlier->lock);
    for (esdm__use *use = earlier->uses; use != NULL && found == NULL; use = use->next) {
        if (use->trust > 0 && !use->astray && use->before.count > 0 &&
            strcmp(use->container, container) == 0 && i-- == 0)
            found = use;
    }
    if (found != NULL)
        found->held = true;
    (void) pthread_mutex_unlock(&earlier->lock);
    if (found != NULL)
        *ret_dataset = found->dataset;
    return found;
}

/* In place of the one that was not used for the longest time; with the lock held. */
static bool
make_room(esdm__earlier *earlier)
{
    esdm__use **oldest = NULL;
    if (earlier->count < ESDM__USES_MOST)
        return true;
    for (esdm__use **at = &earlier->uses; *at != NULL; at = &(*at)->next) {
        /* Others have a pointer to one that they asked for. */
        if (!(*at)->held && !(*at)->read && atomic_load(&(*at)->account.requests) == 0 &&
            (*at)->trust <= 0 && (oldest == NULL || (*at)->seen_s < (*oldest)->seen_s))
            oldest = at;
    }
    if (oldest == NULL)
        return false;
    esdm__use *gone = *oldest;
    *oldest = gone->next;
    esdm__use_free(gone);
    earlier->count--;
    return true;
}

/* The same dataset of another container, which an earlier run read: files of a series. */
static const esdm__use *
like(const esdm__earlier *earlier, const char *dataset, uint32_t rank, const uint64_t *lengths)
{
    const esdm__use *found = NULL;
    for (const esdm__use *use = earlier->uses; use != NULL; use = use->next) {
        if (use->before.count > 0 && strcmp(use->dataset, dataset) == 0 &&
            same_lengths(use, rank, lengths) && (found == NULL || use->seen_s > found->seen_s))
            found = use;
    }
    return found;
}

/* With the lock held. */
static esdm__use *
add(esdm__earlier *earlier, const char *container, const char *dataset, uint32_t rank,
    const uint64_t *lengths)
{
    const esdm__use *model = like(earlier, dataset, rank, lengths);
    esdm__use *use = esdm__use_new(container, dataset, rank, lengths);
    if (use == NULL)
        return NULL;
    if (model != NULL && esdm__loops_copy(&model->before, &use->before))
        use->trust = model->trust < ESDM__TRUST_NEW ? model->trust : ESDM__TRUST_NEW;
    if (!make_room(earlier)) {
        esdm__use_free(use);
        return NULL;
    }
    use->next = earlier->uses;
    earlier->uses = use;
    earlier->count++;
    return use;
}

esdm__use *
esdm__earlier_use(esdm__earlier *earlier, const char *container, const char *dataset, uint32_t rank,
                  const uint64_t *lengths)
{
    (void) pthread_mutex_lock(&earlier->lock);
    esdm__use *use = earlier->uses;
    while (use != NULL &&
           (strcmp(use->container, container) != 0 || strcmp(use->dataset, dataset) != 0))
        use = use->next;
    if (use != NULL && !use->read && use->rank != rank) { /* it was made anew */
        esdm__loops_clear(&use->before);
        use->rank = rank;
        use->before.rank = rank;
        use->now.rank = rank;
    }
    if (use == NULL)
        use = add(earlier, container, dataset, rank, lengths);
    if (use != NULL && use->rank == rank && !same_lengths(use, rank, lengths)) {
        use->other_length = true;
        memcpy(use->lengths, lengths, rank * sizeof *lengths);
    }
    if (use != NULL)
        use->held = true;
    (void) pthread_mutex_unlock(&earlier->lock);
    return use != NULL && use->rank == rank ? use : NULL;
}

static bool
follow(esdm__use *use, const esdm_dataspace *space)
{
    esdm_dataspace expected;
    if (use->astray || use->before.count == 0)
        return false;
    if (esdm__loops_get(&use->before, &use->at, &expected) &&
        esdm__same_selection(&expected, space)) {
        esdm__loops_next(&use->before, &use->at);
        use->followed++;
        return true;
    }
    use->astray = true;
    return false;
}

void
esdm__earlier_note(esdm__earlier *earlier, esdm__use *use, const esdm_dataspace *space,
                   esdm__foreseen *ret)
{
    (void) pthread_mutex_lock(&earlier->lock);
    if (!use->read)
        use->read_as = earlier->order++;
    use->read = true;
    esdm__loops_add(&use->now, space);
    ret->follows = follow(use, space) && use->trust > 0;
    ret->ends = ret->follows && !use->before.cut && !use->other_length;
    ret->depth = 0;
    if (ret->follows)
        ret->depth = use->trust > ESDM__TRUST_NEW ? DEPTH_TRUSTED : DEPTH_NEW;
    (void) pthread_mutex_unlock(&earlier->lock);
}

bool
esdm__earlier_foresee(esdm__earlier *earlier, const esdm__use *use, uint64_t k, esdm_dataspace *ret)
{
    (void) pthread_mutex_lock(&earlier->lock);
    esdm__loops_at at = use->at;
    for (uint64_t i = 1; i < k; i++)
        esdm__loops_next(&use->before, &at);
    bool known = esdm__loops_get(&use->before, &at, ret);
    (void) pthread_mutex_unlock(&earlier->lock);
    return known;
}

uint64_t
esdm__earlier_at_once(esdm__earlier *earlier, const esdm__use *use)
{
    (void) pthread_mutex_lock(&earlier->lock);
    uint64_t count = use->astray || use->trust <= 0 ? 0
                     : use->trust > ESDM__TRUST_NEW ? AT_ONCE_TRUSTED
                                                    : AT_ONCE_NEW;
    (void) pthread_mutex_unlock(&earlier->lock);
    return count;
}

esdm__ahead_account *
esdm__earlier_account(esdm__use *use)
{
    return &use->account;
}

void
esdm__earlier_cost(esdm__use *use, uint64_t ns)
{
    atomic_fetch_add(&use->cost_ns, ns);
}

/* ---- the end ------------------------------------------------------------------------------- */

static bool
has_helped(const esdm__use *use)
{
    uint64_t used = atomic_load(&use->account.used);
    return 2 * used >= atomic_load(&use->account.requests) &&
           atomic_load(&use->account.gained_ns) > atomic_load(&use->cost_ns);
}

/* What the next run is to think of it. */
static int
trust_after(const esdm__use *use)
{
    bool acted = atomic_load(&use->account.requests) > 0;
    bool same = use->read && !use->astray && use->before.count > 0;
    int more = use->trust < ESDM__TRUST_MOST ? use->trust + 1 : use->trust;
    int less = use->trust > ESDM__TRUST_LEAST + 1 ? use->trust - 2 : ESDM__TRUST_LEAST;
    if (acted && !has_helped(use))
        return less;
    if (same)
        return more;
    return use->trust > ESDM__TRUST_NEW ? ESDM__TRUST_NEW : use->trust;
}

static void
tell(const esdm__use *use, esdm__monitor *monitor)
{
    const esdm__action action = {.kind = "earlier runs",
                                 .container = use->container,
                                 .dataset = use->dataset,
                                 .requests = atomic_load(&use->account.requests),
                                 .used = atomic_load(&use->account.used),
                                 .bytes = atomic_load(&use->account.bytes),
                                 .gained_ns = atomic_load(&use->account.gained_ns),
                                 .cost_ns = atomic_load(&use->cost_ns),
                                 .stopped = use->astray       ? "the program read something else"
                                            : !use->read      ? "the program did not read it"
                                            : has_helped(use) ? NULL
                                                              : "it did not help"};
    esdm__monitor_action(monitor, &action);
}

/* @return whether the record is another one now */
static bool
conclude(esdm__use *use, esdm__monitor *monitor)
{
    bool acted = atomic_load(&use->account.requests) > 0;
    if (acted && monitor != NULL)
        tell(use, monitor);
    if (!acted && !use->read)
        return false;
    esdm__loops_end(&use->now);
    int trust = trust_after(use);
    bool changed = trust != use->trust || use->other_length;
    use->trust = trust;
    if (use->read) {
        changed |= !esdm__loops_equal(&use->before, &use->now);
        esdm__loops_clear(&use->before);
        use->before = use->now;
        use->now = (esdm__loops){.rank = use->rank};
        use->order = use->read_as;
        use->seen_s = (uint64_t) time(NULL);
    }
    return changed;
}

void
esdm__earlier_settle(esdm__earlier *earlier, esdm__monitor *monitor)
{
    if (earlier == NULL || earlier->owner != esdm__own_pid())
        return;
    bool changed = false;
    (void) pthread_mutex_lock(&earlier->lock);
    bool first = !earlier->settled;
    earlier->settled = true;
    for (esdm__use *use = earlier->uses; use != NULL && first; use = use->next) {
        bool read = use->read;
        changed |= conclude(use, monitor);
        changed |= read && earlier->stale;
        use->astray = true; /* whoever reads now is too late */
    }
    (void) pthread_mutex_unlock(&earlier->lock);
    if (first && changed)
        esdm__earlier_save(earlier);
}
