/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/readers.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own_process.h"
#include "io/session/earlier.h"
#include "io/session/reads.h"
#include "io/session/session.h"

#define DATASETS_MOST 64u   /* of a session */
#define PATTERNS_MOST 16u   /* that a session has asked for */
#define FACTS_MOST    1000u /* of the site */
#define LARGE         4u    /* fragments, or more: smaller datasets are read as a whole anyhow */

/* A dataset that this session reads. */
typedef struct seen {
    struct seen *next;
    uint64_t record; /* of the container */
    uint32_t id;     /* of the dataset */
    uint32_t rank;
    bool adapted; /* its writer has cut as readers wanted */
    size_t element_bytes;
    char *pattern; /* owned, so the next two */
    char *path;
    char *container;
    uint64_t cell[ESDM__CUTS][ESDM_MAX_RANK];
    esdm__reads now;
} seen;

/* What the site has of containers of a name. */
typedef struct known {
    char *pattern; /* owned */
    json_t *fact;  /* owned; NULL: nothing */
} known;

struct esdm__readers {
    const esdm_session *session;
    pthread_mutex_t lock; /* guards all below; no lock is taken under it but the store's */
    seen *list;
    size_t count;
    known patterns[PATTERNS_MOST];
    size_t npatterns;
    pid_t owner; /* a forked child writes nothing */
    bool settled;
};

esdm__readers *
esdm__readers_new(const esdm_session *session)
{
    esdm__readers *readers =
        esdm__earlier_is_off(session->site) ? NULL : calloc(1, sizeof *readers);
    if (readers == NULL)
        return NULL;
    readers->session = session;
    readers->owner = esdm__own_pid();
    (void) pthread_mutex_init(&readers->lock, NULL);
    return readers;
}

static void
free_seen(seen *s)
{
    free(s->pattern);
    free(s->path);
    free(s->container);
    free(s);
}

void
esdm__readers_free(esdm__readers *readers)
{
    if (readers == NULL)
        return;
    for (seen *s = readers->list, *next; s != NULL; s = next) {
        next = s->next;
        free_seen(s);
    }
    for (size_t i = 0; i < readers->npatterns; i++) {
        free(readers->patterns[i].pattern);
        json_decref(readers->patterns[i].fact);
    }
    (void) pthread_mutex_destroy(&readers->lock);
    free(readers);
}

uint64_t
esdm__readers_gathered(const esdm_session *session)
{
    uint64_t most = session->site->engine.memory_bytes / 16;
    uint64_t wide = session->fragment_bytes * ESDM__READERS_WIDER;
    uint64_t bytes = wide < most ? wide : most;
    uint64_t stated = session->site->engine.gather_bytes;
    return stated > bytes ? stated : bytes;
}

/* ---- what is read --------------------------------------------------------------------------- */

bool
esdm__readers_count(const esdm__readers *readers, const esdm_dataset *dataset)
{
    const esdm_container *container = dataset->group->container;
    size_t element_bytes = esdm_type_size(dataset->type);
    if (readers == NULL || element_bytes == 0)
        return false;
    uint64_t least = readers->session->fragment_bytes * LARGE / element_bytes;
    uint64_t elements = 1;
    if (dataset->rank < 2 || dataset->stated->chunk != NULL || container->provider != NULL)
        return false;
    for (uint32_t d = 0; d < dataset->rank && elements < least; d++) {
        uint64_t length = esdm_dimension_length(dataset->dimensions[d]);
        elements = length > 0 && elements > UINT64_MAX / length ? UINT64_MAX : elements * length;
    }
    return elements >= least;
}

/* Fragments as each way of cutting would make them of what a writer gathers. */
static void
plan_cells(const esdm_session *session, const esdm_dataset *dataset, seen *s)
{
    uint64_t lengths[ESDM_MAX_RANK];
    uint64_t step = s->element_bytes;
    for (uint32_t d = 0; d < s->rank; d++) {
        lengths[d] = esdm_dimension_length(dataset->dimensions[d]);
        if (d > 0)
            step *= lengths[d];
    }
    uint64_t steps = step > 0 ? esdm__readers_gathered(session) / step : 1;
    steps = steps > 0 ? steps : 1;
    lengths[0] = steps < lengths[0] ? steps : lengths[0];
    esdm__box box;
    esdm__box_set(&box, s->rank, NULL, lengths);
    for (int cut = 0; cut < ESDM__CUTS; cut++) {
        const esdm__layout layout = {
            .rank = s->rank,
            .element_bytes = s->element_bytes,
            .cut = (esdm__cut) cut,
            .preferred_bytes = esdm__readers_preferred(session->fragment_bytes, (esdm__cut) cut)};
        esdm__cutter cutter;
        esdm__cutter_init(&cutter, &layout, &box);
        for (uint32_t d = 0; d < s->rank; d++)
            s->cell[cut][d] = cutter.cell[d] < lengths[d] ? cutter.cell[d] : lengths[d];
    }
}

static seen *
seen_new(const esdm_session *session, const esdm_dataset *dataset, uint64_t record)
{
    const esdm_container *container = dataset->group->container;
    seen *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->record = record;
    s->id = dataset->id;
    s->rank = dataset->rank;
    s->element_bytes = esdm_type_size(dataset->type);
    s->adapted = esdm_dataset_hint(dataset, ESDM__HINT_SHAPE) != NULL;
    s->pattern = esdm__reads_pattern(container->name);
    s->path = esdm__dataset_path(dataset);
    s->container = strdup(container->name);
    plan_cells(session, dataset, s);
    if (s->pattern != NULL && s->path != NULL && s->container != NULL)
        return s;
    free_seen(s);
    return NULL;
}

void
esdm__readers_note(esdm__readers *readers, const esdm_dataset *dataset, uint64_t record,
                   const esdm_dataspace *space, double seconds)
{
    if (record == 0) /* its own data */
        return;
    (void) pthread_mutex_lock(&readers->lock);
    seen *s = readers->list;
    while (s != NULL && (s->record != record || s->id != dataset->id))
        s = s->next;
    if (s == NULL && readers->count < DATASETS_MOST &&
        (s = seen_new(readers->session, dataset, record)) != NULL) {
        s->next = readers->list;
        readers->list = s;
        readers->count++;
    }
    if (s != NULL) {
        const uint64_t *const cells[ESDM__CUTS] = {s->cell[0], s->cell[1], s->cell[2]};
        esdm__reads_add(&s->now, space, s->element_bytes, cells, s->adapted, seconds);
    }
    (void) pthread_mutex_unlock(&readers->lock);
}

/* ---- facts ---------------------------------------------------------------------------------- */

static bool
may_write(const esdm__readers *readers)
{
    const esdm_session *session = readers->session;
    return !session->read_only && session->store != NULL && session->meta->fact_put != NULL &&
           session->meta->is_writable(session->store);
}

/* Owned; NULL: nothing is known. */
static json_t *
load_fact(const esdm_session *session, const char *pattern)
{
    char name[ESDM__READS_NAME_BYTES];
    char *text = NULL;
    esdm__reads_name(pattern, name);
    if (session->store == NULL || session->meta->fact_get == NULL ||
        session->meta->fact_get(session->store, name, &text, NULL) != ESDM_OK)
        return NULL;
    json_t *fact = esdm__reads_parse(text, pattern);
    free(text);
    return fact;
}

static void
store_fact(const esdm_session *session, const char *pattern, const json_t *fact)
{
    char name[ESDM__READS_NAME_BYTES];
    esdm__reads_name(pattern, name);
    char *text = json_dumps(fact, JSON_COMPACT);
    if (text != NULL)
        (void) !session->meta->fact_put(session->store, name, text, NULL);
    free(text);
}

typedef struct oldest {
    size_t count;
    uint64_t seen_s;
    char name[ESDM_META_FACT_NAME_MAX + 1];
} oldest;

static bool
note_oldest(const char *name, const char *text, void *user)
{
    oldest *o = user;
    uint64_t seen_s = esdm__reads_seen(text);
    if (o->count++ == 0 || seen_s < o->seen_s) {
        o->seen_s = seen_s;
        (void) snprintf(o->name, sizeof o->name, "%s", name);
    }
    return true;
}

/* Before a new fact: of too many the one that was not added to for the longest time goes. */
static void
make_room(const esdm_session *session)
{
    oldest o = {.count = 0};
    if (session->meta->fact_list != NULL &&
        session->meta->fact_list(session->store, ESDM__READS_PREFIX, note_oldest, &o, NULL) ==
            ESDM_OK &&
        o.count >= FACTS_MOST)
        (void) !session->meta->fact_put(session->store, o.name, NULL, NULL);
}

static void
tell(const json_t *fact, const seen *s, esdm__monitor *monitor)
{
    double gain = esdm__reads_gain(fact, s->path, &s->now);
    const esdm__action action = {
        .kind = ESDM__ACTION_SHAPE,
        .container = s->container,
        .dataset = s->path,
        .requests = s->now.reads,
        .used = s->now.reads,
        .bytes = (uint64_t) s->now.bytes[1],
        .gained_ns = gain > 0 ? (uint64_t) (gain * 1e9) : 0,
        .cost_ns = gain < 0 ? (uint64_t) (-gain * 1e9) : 0,
        .stopped = esdm__reads_stopped(fact, s->path) ? "reads were faster as usual" : NULL};
    esdm__monitor_action(monitor, &action);
}

/* All that was seen of containers of the name of `first`, with the lock held. */
static void
settle_pattern(const esdm__readers *readers, const seen *first, esdm__monitor *monitor)
{
    json_t *fact = load_fact(readers->session, first->pattern);
    bool worth = fact != NULL;
    for (const seen *s = first; s != NULL && !worth; s = s->next)
        worth = strcmp(s->pattern, first->pattern) == 0 && esdm__reads_best(&s->now) != 0;
    if (worth && fact == NULL && may_write(readers)) {
        make_room(readers->session);
        fact = esdm__reads_fact(first->pattern);
    }
    for (const seen *s = first; s != NULL && fact != NULL; s = s->next) {
        if (strcmp(s->pattern, first->pattern) != 0)
            continue;
        esdm__reads_merge(fact, s->path, s->rank, &s->now);
        if (s->adapted && monitor != NULL)
            tell(fact, s, monitor);
    }
    if (fact != NULL && may_write(readers))
        store_fact(readers->session, first->pattern, fact);
    json_decref(fact);
}

void
esdm__readers_settle(esdm__readers *readers, esdm__monitor *monitor)
{
    /* At the end of a program the lock may never be given back. */
    if (readers == NULL || readers->owner != esdm__own_pid() ||
        pthread_mutex_trylock(&readers->lock) != 0)
        return;
    bool settled = readers->settled;
    readers->settled = true;
    for (const seen *s = readers->list; s != NULL && !settled; s = s->next) {
        bool first = true;
        for (const seen *before = readers->list; before != s; before = before->next)
            first = first && strcmp(before->pattern, s->pattern) != 0;
        if (first)
            settle_pattern(readers, s, monitor);
    }
    (void) pthread_mutex_unlock(&readers->lock);
}

/* ---- what writers ask ------------------------------------------------------------------------ */

/* With the lock held. Borrowed. */
static const json_t *
fact_of(esdm__readers *readers, const char *pattern)
{
    for (size_t i = 0; i < readers->npatterns; i++) {
        if (strcmp(readers->patterns[i].pattern, pattern) == 0)
            return readers->patterns[i].fact;
    }
    char *copy = readers->npatterns < PATTERNS_MOST ? strdup(pattern) : NULL;
    if (copy == NULL)
        return NULL;
    known *k = &readers->patterns[readers->npatterns++];
    *k = (known){.pattern = copy, .fact = load_fact(readers->session, pattern)};
    return k->fact;
}

bool
esdm__readers_want(esdm__readers *readers, const esdm_dataset *dataset, esdm__cut *ret_cut,
                   char *ret_why, size_t room)
{
    if (readers == NULL)
        return false;
    char *pattern = esdm__reads_pattern(dataset->group->container->name);
    char *path = esdm__dataset_path(dataset);
    int cut = 0;
    if (pattern != NULL && path != NULL) {
        (void) pthread_mutex_lock(&readers->lock);
        cut = esdm__reads_choose(fact_of(readers, pattern), path, dataset->rank, ret_why, room);
        (void) pthread_mutex_unlock(&readers->lock);
    }
    free(pattern);
    free(path);
    if (cut == 0)
        return false;
    *ret_cut = (esdm__cut) cut;
    return true;
}
