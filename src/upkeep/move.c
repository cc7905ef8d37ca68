/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/move.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "codec/outline.h"
#include "io/packs/page_list.h"
#include "io/packs/sources.h"
#include "io/read/fetch.h"
#include "io/session/journaling.h"
#include "layout/packs.h"
#include "layout/places.h"
#include "upkeep/inventory.h"

/* Pages that are replaced with one call, and bytes that are stored for them. */
#define BATCH_PAGES 64u
#define BATCH_BYTES (UINT64_C(256) << 20)
/* What is stored where it is read in parts, and outlines that are known at a time. */
#define OUTLINED_BYTES (UINT64_C(1) << 20)
#define OUTLINES_MOST  (UINT64_C(64) << 20)

/* A fragment that was stored anew: pages of several snapshots may name it. */
typedef struct moved_blob {
    const esdm__pack_name *from; /* interned; NULL: free slot */
    uint64_t position;
    const esdm__pack_name *to; /* NULL: could not be read */
    uint64_t new_position;
    uint8_t *outline; /* owned; NULL: none is kept of it */
    uint32_t outline_bytes;
} moved_blob;

/* Where the fragments go that lay in packs of one uuid: to packs of the same uuid, which all
 * containers may refer to that referred to those. */
typedef struct destination {
    char uuid[ESDM__UUID_BYTES];
    esdm__pack_set *packs;
} destination;

struct esdm__mover {
    const esdm__move_job *job; /* at hand */
    esdm_session *session;
    destination *destinations; /* owned */
    size_t ndestinations;
    esdm__packs *names; /* of old and new packs */
    bool *allowed;      /* targets, for the page at hand; owned */
    moved_blob *table;  /* open addressing; a power of two */
    size_t slots;
    size_t used;
    esdm_meta_relocation batch[BATCH_PAGES];
    uint64_t batch_sums[BATCH_PAGES]; /* checksums of the pages as they were */
    size_t count;
    uint64_t batch_bytes;
    uint64_t batch_fragments;
    uint64_t outlines; /* bytes of those in the table */
    bool first_pass;   /* of a run; later ones meet the same pages that cannot be read */
    esdm__moved result;
    esdm_error first; /* why a fragment could not be read */
};
typedef esdm__mover mover;

/* ---- what was moved already --------------------------------------------------------------- */

static moved_blob *
slot_of(moved_blob *table, size_t slots, const esdm__pack_name *from, uint64_t position)
{
    uint64_t key[2] = {(uint64_t) (uintptr_t) from, position};
    size_t at = (size_t) esdm__checksum(key, sizeof key) & (slots - 1);
    while (table[at].from != NULL && (table[at].from != from || table[at].position != position))
        at = (at + 1) & (slots - 1);
    return &table[at];
}

static bool
make_room(mover *m)
{
    if (2 * (m->used + 1) <= m->slots)
        return true;
    size_t slots = m->slots > 0 ? 2 * m->slots : 1024;
    moved_blob *table = calloc(slots, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < m->slots; i++) {
        if (m->table[i].from != NULL)
            *slot_of(table, slots, m->table[i].from, m->table[i].position) = m->table[i];
    }
    free(m->table);
    m->table = table;
    m->slots = slots;
    return true;
}

/* ---- where to ----------------------------------------------------------------------------- */

static esdm_status
find_destination(mover *m, const char *pack, esdm__pack_set **ret_packs, esdm_error *err)
{
    for (size_t i = 0; i < m->ndestinations; i++) {
        *ret_packs = m->destinations[i].packs;
        if (strncmp(m->destinations[i].uuid, pack, ESDM__UUID_DIGITS) == 0)
            return ESDM_OK;
    }
    esdm__pack_owner owner = {.session = m->session, .moves = true, .durable = true};
    (void) snprintf(owner.uuid, sizeof owner.uuid, "%.*s", (int) ESDM__UUID_DIGITS, pack);
    if (!esdm__array_grow(&m->destinations, m->ndestinations, sizeof *m->destinations))
        return esdm__error_nomem(err, sizeof owner, "moving fragments");
    destination *one = &m->destinations[m->ndestinations];
    memcpy(one->uuid, owner.uuid, sizeof one->uuid);
    one->packs = *ret_packs = esdm__pack_set_new(&owner);
    if (one->packs == NULL)
        return esdm__error_nomem(err, sizeof owner, "moving fragments");
    m->ndestinations++;
    return ESDM_OK;
}

/* ---- one blob ----------------------------------------------------------------------------- */

/* A fragment of the page that is to be stored anew. */
typedef struct task {
    esdm__fragment fragment;
    const esdm__pack_name *from; /* interned */
    esdm__pack_set *to;          /* borrowed */
    uint32_t copies;
    esdm__place place; /* where it went; pack NULL: it cannot be read */
    uint8_t *outline;  /* owned, until the table has it */
    uint32_t outline_bytes;
    esdm_error why;
} task;

typedef struct page_tasks {
    mover *mover;
    uint32_t dataset;
    task *tasks; /* owned */
    size_t count;
} page_tasks;

static esdm_status
read_sound(esdm_session *session, const esdm__fragment *fragment, uint8_t **ret_blob,
           esdm_error *err)
{
    esdm__sources sources;
    esdm_error first = {0};
    esdm_status status = esdm__sources_of(session, fragment->pack, &sources, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0;; i++) {
        esdm_error error = {0};
        status = esdm__fetch_verified(session, fragment, sources.targets[i], ret_blob, &error);
        if (status != ESDM_OK && first.status == ESDM_OK) {
            first = error;
            first.status = status;
        }
        if (!esdm__sources_go_on(&sources, i, status))
            break;
    }
    if (status == ESDM_OK)
        return ESDM_OK;
    if (err != NULL)
        *err = first;
    return first.status;
}

/* Where reads wait for a network; without memory for it a reader asks for the head. */
static void
make_outline(const mover *m, task *t, const uint8_t *blob)
{
    const esdm__fragment *f = &t->fragment;
    uint32_t bytes = esdm__outline_bytes(blob, f->head_bytes, f->stored_bytes);
    if (f->stored_bytes - f->head_bytes <= OUTLINED_BYTES || bytes == 0 ||
        !esdm__sources_are_far(m->session, esdm__place_target_name(&t->place)))
        return;
    t->outline = malloc(bytes);
    if (t->outline == NULL)
        return;
    esdm__outline_make(blob, f->head_bytes, t->outline);
    t->outline_bytes = bytes;
}

static esdm_status
move_blob(void *context, size_t i, esdm_error *err)
{
    page_tasks *page = context;
    mover *m = page->mover;
    task *t = &page->tasks[i];
    uint8_t *blob = NULL;
    esdm_status status = read_sound(m->job->session, &t->fragment, &blob, &t->why);
    if (status == ESDM_ENOMEM) {
        if (err != NULL)
            *err = t->why;
        return status;
    }
    t->why.status = status;
    if (status != ESDM_OK)
        return ESDM_OK; /* it stays where it is */
    const esdm__pack_hint hint = {
        .copies = t->copies, .global = m->job->global, .allowed = m->allowed};
    const esdm_iov iov = {blob, (size_t) t->fragment.stored_bytes};
    status = esdm__pack_set_append(t->to, &hint, &iov, 1, &t->place, err);
    if (status == ESDM_OK)
        make_outline(m, t, blob);
    free(blob);
    return status;
}

/* ---- one page ----------------------------------------------------------------------------- */

static const esdm__pack_name *
intern(mover *m, const esdm__pack_name *name)
{
    return name == NULL ? NULL : esdm__packs_intern(m->names, name->target, name->pack);
}

/* A fragment whose bytes are somewhere else already. */
static esdm_status
note_stored(mover *m, const esdm__fragment *fragment, bool *ret_stored, esdm_error *err)
{
    const esdm__pack_name *to = NULL;
    uint64_t position = 0;
    *ret_stored = m->job->stored_at != NULL && fragment->pack != NULL && !m->job->dry_run &&
                  m->job->stored_at(m->job->user, fragment, &to, &position);
    if (!*ret_stored)
        return ESDM_OK;
    const esdm__pack_name *from = intern(m, fragment->pack);
    to = intern(m, to);
    if (from == NULL || to == NULL || !make_room(m))
        return esdm__error_nomem(err, sizeof *fragment, "a fragment");
    moved_blob *slot = slot_of(m->table, m->slots, from, fragment->position);
    m->used += slot->from == NULL;
    free(slot->outline);
    *slot = (moved_blob){
        .from = from, .position = fragment->position, .to = to, .new_position = position};
    return ESDM_OK;
}

/* The fragments of the page that have not been stored anew yet. */
static esdm_status
list_tasks(page_tasks *p, const esdm__page *page, bool *ret_any, esdm_error *err)
{
    mover *m = p->mover;
    p->tasks = calloc(page->records.count, sizeof *p->tasks);
    if (p->tasks == NULL)
        return esdm__error_nomem(err, page->records.count * sizeof *p->tasks, "fragments");
    for (uint32_t i = 0; i < page->records.count; i++) {
        task *t = &p->tasks[p->count];
        bool stored = false;
        esdm__records_fragment(&page->records, i, &t->fragment);
        esdm_status known = note_stored(m, &t->fragment, &stored, err);
        if (known != ESDM_OK)
            return known;
        *ret_any |= stored;
        if (stored || t->fragment.pack == NULL ||
            !m->job->wants(m->job->user, p->dataset, &t->fragment, &t->copies))
            continue;
        t->from = intern(m, t->fragment.pack);
        if (t->from == NULL || !make_room(m))
            return esdm__error_nomem(err, sizeof *t, "a fragment");
        moved_blob *slot = slot_of(m->table, m->slots, t->from, t->fragment.position);
        *ret_any |= slot->from == NULL || slot->to != NULL;
        if (slot->from != NULL)
            continue;
        esdm_status status = find_destination(m, t->from->pack, &t->to, err);
        if (status != ESDM_OK)
            return status;
        *slot = (moved_blob){.from = t->from, .position = t->fragment.position};
        m->used++;
        p->count++;
    }
    return ESDM_OK;
}

static esdm_status
note_results(page_tasks *p, esdm_error *err)
{
    mover *m = p->mover;
    for (size_t i = 0; i < p->count; i++) {
        task *t = &p->tasks[i];
        moved_blob *slot = slot_of(m->table, m->slots, t->from, t->fragment.position);
        if (t->place.pack == NULL) {
            m->result.failed++;
            if (m->first.status == ESDM_OK)
                m->first = t->why;
            continue;
        }
        slot->to = esdm__packs_intern(m->names, esdm__place_target_name(&t->place),
                                      esdm__place_pack_name(&t->place));
        slot->new_position = t->place.position;
        if (m->outlines + t->outline_bytes <= OUTLINES_MOST) {
            m->outlines += t->outline_bytes;
            slot->outline = t->outline;
            slot->outline_bytes = t->outline_bytes;
            t->outline = NULL;
        }
        if (slot->to == NULL)
            return esdm__error_nomem(err, sizeof *t, "the name of a pack");
        m->batch_fragments++;
        m->batch_bytes += t->fragment.stored_bytes;
        m->result.bytes += t->fragment.stored_bytes;
        if (m->job->moved != NULL)
            m->job->moved(m->job->user, t->from->pack, t->fragment.stored_bytes);
    }
    return ESDM_OK;
}

/* What moved far away has an outline from now on, if its page has room for it; what came near needs
 * none. */
static void
move_outline(const mover *m, esdm__records *records, uint32_t index, const moved_blob *slot)
{
    bool far = esdm__sources_are_far(m->session, slot->to->target);
    if (slot->outline != NULL || !far)
        (void) esdm__records_set_outline(records, index, slot->outline, slot->outline_bytes);
}

/* The page with the new places; *ret_changed whether there are any. */
static esdm_status
rewrite_page(mover *m, const esdm_meta_page *entry, esdm__page *page, bool *ret_changed,
             esdm_meta_relocation *ret_page, esdm_error *err)
{
    esdm__records *records = &page->records; /* nobody else has the page */
    uint32_t *order = malloc(records->count * sizeof *order);
    if (order == NULL)
        return esdm__error_nomem(err, records->count * sizeof *order, "an index page");
    *ret_changed = false;
    esdm_status status = ESDM_OK;
    for (uint32_t i = 0; i < records->count && status == ESDM_OK; i++) {
        esdm__record *record = &records->items[i];
        order[i] = i;
        if (record->pack == NULL)
            continue;
        const esdm__pack_name *from = intern(m, record->pack);
        if (from == NULL) {
            status = esdm__error_nomem(err, sizeof *record, "the name of a pack");
            break;
        }
        record->pack = from;
        const moved_blob *slot = slot_of(m->table, m->slots, from, record->position);
        if (slot->from == NULL || slot->to == NULL)
            continue;
        record->pack = slot->to;
        record->position = slot->new_position;
        move_outline(m, records, i, slot);
        *ret_changed = true;
    }
    uint8_t *data = NULL;
    if (status == ESDM_OK && *ret_changed)
        status = esdm__page_encode(records, order, records->count, entry->absolute, &data,
                                   &ret_page->bytes, err);
    free(order);
    ret_page->page = entry->page;
    ret_page->data = data;
    ret_page->moved = false;
    return status;
}

/* ---- batches ------------------------------------------------------------------------------ */

static void
clear_batch(mover *m)
{
    for (size_t i = 0; i < m->count; i++)
        free((void *) m->batch[i].data);
    m->count = 0;
    m->batch_bytes = 0;
    m->batch_fragments = 0;
}

/* From here on the new packs stay, whatever happens: the answer of the store may get lost. */
static esdm_status
publish_batch(mover *m, bool *ret_progress, esdm_error *err)
{
    const esdm_session *session = m->session;
    esdm_status status = ESDM_OK;
    if (m->count == 0)
        return ESDM_OK;
    for (size_t i = 0; i < m->ndestinations && status == ESDM_OK; i++) {
        status = esdm__pack_set_publish(m->destinations[i].packs, true, err);
        if (status == ESDM_OK)
            status = esdm__pack_set_check(m->destinations[i].packs, err);
    }
    for (size_t i = 0; i < m->ndestinations && status == ESDM_OK; i++)
        esdm__pack_set_offer(m->destinations[i].packs, true);
    if (status == ESDM_OK)
        status = session->meta->relocate(session->store, m->job->container, m->batch, m->count,
                                         true, err);
    if (status == ESDM_OK) {
        esdm__note_moved(m->job->session, m->job->uuid, m->batch, m->batch_sums, m->count);
        for (size_t i = 0; i < m->ndestinations; i++)
            esdm__pack_set_committed(m->destinations[i].packs);
        m->result.fragments += m->batch_fragments;
    }
    for (size_t i = 0; i < m->count && status == ESDM_OK; i++) {
        m->result.pages += m->batch[i].moved;
        *ret_progress |= m->batch[i].moved;
    }
    clear_batch(m);
    return status;
}

static const bool *
policy_of(const esdm__move_job *job, uint32_t dataset)
{
    if (job->model == NULL)
        return NULL;
    const esdm_dataset *known = esdm__container_dataset(job->model, dataset);
    char *path = known != NULL ? esdm__dataset_path(known) : NULL;
    const bool *allowed =
        path != NULL ? esdm__site_allowed(job->session->site, job->name, path) : NULL;
    free(path);
    return allowed;
}

uint32_t
esdm__move_targets(const esdm__move_job *job, uint32_t dataset, bool *ret_allowed)
{
    esdm_session *session = job->session;
    const bool *policy = policy_of(job, dataset);
    bool counts = false;
    uint32_t open = 0;
    for (size_t i = 0; policy != NULL && i < session->ntargets; i++)
        counts |= policy[i] && !(job->global && session->targets[i].local);
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        bool takes = !(job->global && target->local) && !target->retiring &&
                     (job->barred == NULL || !job->barred[i]);
        ret_allowed[i] = takes && (!counts || policy[i]);
        open += ret_allowed[i] && esdm__target_need(session, target, NULL) == ESDM_OK;
    }
    return open;
}

/* What a dry run does instead of storing. */
static esdm_status
count_tasks(page_tasks *p)
{
    for (size_t i = 0; i < p->count; i++)
        p->mover->result.bytes += p->tasks[i].fragment.stored_bytes;
    p->mover->result.fragments += p->count;
    return ESDM_OK;
}

static esdm_status
store_tasks(page_tasks *tasks, const esdm_meta_page *entry, esdm__page *page, bool any,
            esdm_error *err)
{
    mover *m = tasks->mover;
    esdm_status status = ESDM_OK;
    bool changed = false;
    (void) esdm__move_targets(m->job, entry->dataset, m->allowed);
    if (tasks->count > 0)
        status = esdm__pool_run(m->job->session->pool, tasks->count, move_blob, tasks, err);
    if (status == ESDM_OK)
        status = note_results(tasks, err);
    m->batch_sums[m->count] = page->checksum;
    if (status == ESDM_OK && any)
        status = rewrite_page(m, entry, page, &changed, &m->batch[m->count], err);
    m->count += status == ESDM_OK && changed;
    return status;
}

/* Nobody knows where the fragments of a damaged page lie, or of one of a newer version. */
static void
note_unread(mover *m, const esdm_meta_page *entry, const esdm_error *why, esdm_status status)
{
    if (!m->first_pass)
        return;
    m->result.failed += entry->records;
    if (m->first.status != ESDM_OK)
        return;
    m->first = *why;
    m->first.status = status;
}

static esdm_status
move_page(mover *m, const esdm_meta_page *entry, bool *ret_again, esdm_error *err)
{
    page_tasks tasks = {.mover = m, .dataset = entry->dataset};
    esdm__page *page = NULL;
    esdm_error error = {0};
    bool any = false;
    esdm_status status = esdm__page_fetch(m->job->session, entry, &page, &error);
    if (status == ESDM_ENOENT || status == ESDM_ECORRUPT || status == ESDM_ENOTSUP) {
        *ret_again |= status == ESDM_ENOENT; /* gone; its fragments may be in another one */
        if (status != ESDM_ENOENT)
            note_unread(m, entry, &error, status);
        return ESDM_OK;
    }
    if (status != ESDM_OK) {
        if (err != NULL)
            *err = error;
        return status;
    }
    if (!make_room(m))
        status = esdm__error_nomem(err, 1024 * sizeof *m->table, "moved fragments");
    if (status == ESDM_OK)
        status = list_tasks(&tasks, page, &any, err);
    if (status == ESDM_OK)
        status = m->job->dry_run ? count_tasks(&tasks) : store_tasks(&tasks, entry, page, any, err);
    esdm__page_unref(page);
    for (size_t i = 0; i < tasks.count; i++)
        free(tasks.tasks[i].outline);
    free(tasks.tasks);
    return status;
}

static esdm_status
run_pass(mover *m, bool *ret_progress, bool *ret_again, esdm_error *err)
{
    esdm__page_list pages = {0};
    esdm_status status = esdm__page_list_load_all(m->job->session, m->job->container, &pages, err);
    for (size_t i = 0; i < pages.count && status == ESDM_OK; i++) {
        const esdm_meta_page entry = esdm__page_list_at(&pages, i);
        status = move_page(m, &entry, ret_again, err);
        if (status == ESDM_OK && (m->count == BATCH_PAGES || m->batch_bytes >= BATCH_BYTES))
            status = publish_batch(m, ret_progress, err);
        if (status == ESDM_OK && m->job->step != NULL && !m->job->step(m->job->user))
            status = esdm__error_set(err, ESDM_ECANCELED, "stopped");
    }
    if (status == ESDM_OK)
        status = publish_batch(m, ret_progress, err);
    clear_batch(m);
    esdm__page_list_clear(&pages);
    return status;
}

esdm__mover *
esdm__mover_new(esdm_session *session)
{
    mover *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    m->session = session;
    m->names = esdm__packs_new();
    m->allowed = calloc(session->ntargets, sizeof(bool));
    if (m->names != NULL && m->allowed != NULL)
        return m;
    esdm__mover_free(m);
    return NULL;
}

void
esdm__mover_free(esdm__mover *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->ndestinations; i++)
        esdm__pack_set_free(m->destinations[i].packs);
    for (size_t i = 0; i < m->slots; i++)
        free(m->table[i].outline);
    esdm__packs_unref(m->names);
    free(m->destinations);
    free(m->table);
    free(m->allowed);
    free(m);
}

esdm_status
esdm__mover_run(esdm__mover *m, const esdm__move_job *job, esdm__moved *ret_moved,
                esdm_error *ret_first, esdm_error *err)
{
    bool progress = true;
    esdm_status status = ESDM_OK;
    m->job = job;
    m->result = (esdm__moved){0};
    m->first = (esdm_error){0};
    /* Others commit meanwhile and may merge pages: until there is nothing left to do. */
    for (int pass = 0; pass < ESDM__PAGE_LISTINGS && progress && status == ESDM_OK; pass++) {
        bool again = false;
        progress = false;
        m->first_pass = pass == 0;
        status = run_pass(m, &progress, &again, err);
        progress = (progress || again) && !job->dry_run;
    }
    m->job = NULL;
    *ret_moved = m->result;
    if (ret_first != NULL)
        *ret_first = m->first;
    return status == ESDM_OK ? ESDM_OK
                             : esdm__error_prefix(err, status, "container '%s'", job->name);
}

esdm_status
esdm__move(const esdm__move_job *job, esdm__moved *ret_moved, esdm_error *ret_first,
           esdm_error *err)
{
    esdm__mover *m = esdm__mover_new(job->session);
    if (m == NULL)
        return esdm__error_nomem(err, sizeof *m, "moving fragments");
    esdm_status status = esdm__mover_run(m, job, ret_moved, ret_first, err);
    esdm__mover_free(m);
    return status;
}
