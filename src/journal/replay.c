/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "journal/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/commit.h"
#include "journal/whole.h"
#include "layout/page.h"
#include "layout/places.h"

#define SECOND_NS UINT64_C(1000000000)

/* A page that was stored anew: the bytes `data` have its fragments elsewhere. */
typedef struct version {
    uint64_t from; /* checksum of the page before */
    uint64_t to;
    uint8_t *data; /* owned */
    size_t bytes;
    bool used;
} version;

typedef struct replay {
    const esdm__scan *scan;
    const esdm__journal_ref *refs;
    size_t nrefs;
    esdm__whole *whole;
    version *versions; /* owned */
    size_t nversions;
    esdm__replayed result;
} replay;

static esdm_status
no_memory(esdm_error *err)
{
    return esdm__error_nomem(err, sizeof(esdm__whole_page), "the record of a container");
}

esdm_status
esdm__replay_load_pages(const esdm__catalogue *from, esdm__whole *whole, esdm_error *err)
{
    for (size_t i = 0; i < whole->npages; i++) {
        esdm__whole_page *page = &whole->pages[i];
        if (page->data != NULL)
            continue;
        esdm_status status =
            from->plugin->page_load(from->store, page->number, &page->data, &page->bytes, err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

/* ---- pages that moved ----------------------------------------------------------------------- */

static bool
take_moved(replay *r, const esdm__journal_record *record)
{
    esdm__cursor body = record->body;
    while (!body.failed && esdm__cursor_left(&body) > 0) {
        size_t bytes = 0;
        uint64_t from = esdm__cursor_u64(&body);
        const uint8_t *data = esdm__journal_blob(&body, &bytes);
        if (body.failed || bytes < ESDM__PAGE_HEADER_BYTES)
            return false;
        uint8_t *copy = malloc(bytes);
        if (copy == NULL || !esdm__array_grow(&r->versions, r->nversions, sizeof *r->versions)) {
            free(copy);
            return false;
        }
        memcpy(copy, data, bytes);
        r->versions[r->nversions++] = (version){
            .from = from, .to = esdm__journal_page_sum(data, bytes), .data = copy, .bytes = bytes};
    }
    return !body.failed;
}

static esdm_status
load_versions(replay *r, esdm_error *err)
{
    for (size_t i = 0; i < r->nrefs; i++) {
        esdm__journal_record record;
        uint8_t *data = NULL;
        if (r->refs[i].kind != ESDM__JOURNAL_MOVED)
            continue;
        esdm_status status = esdm__scan_load(r->scan, &r->refs[i], &record, &data, err);
        if (status == ESDM_ENOMEM)
            return status;
        if (status != ESDM_OK || !take_moved(r, &record))
            r->result.damaged++;
        free(data);
    }
    return ESDM_OK;
}

/* The next form of a page; NULL: there is none. The last one told of counts. */
static version *
next_version(const replay *r, uint64_t sum)
{
    for (size_t i = r->nversions; i-- > 0;) {
        if (r->versions[i].from == sum && r->versions[i].to != sum)
            return &r->versions[i];
    }
    return NULL;
}

/* Whether a page is, or became, the one with that checksum. */
static bool
is_page(const replay *r, const esdm__whole_page *page, uint64_t sum)
{
    uint64_t now = esdm__journal_page_sum(page->data, page->bytes);
    for (size_t i = 0; i <= r->nversions; i++) {
        if (now == sum)
            return true;
        const version *next = next_version(r, now);
        if (next == NULL)
            return false;
        now = next->to;
    }
    return false;
}

/* Packs that the page names and that are on no target. What lies on a node's own target is not
 * seen from elsewhere. */
static uint64_t
count_lost(replay *r, const esdm__whole_page *page, const void *data, size_t bytes)
{
    const esdm_meta_page entry = {.dataset = page->entry.dataset,
                                  .records = page->entry.records,
                                  .added = page->added,
                                  .level = page->entry.level,
                                  .absolute = page->entry.absolute,
                                  .raw_bytes = page->entry.raw_bytes,
                                  .stored_bytes = page->entry.stored_bytes,
                                  .rank = page->entry.rank,
                                  .box = page->entry.box};
    esdm__page *decoded = NULL;
    uint64_t lost = 0;
    if (esdm__page_decode(&entry, data, bytes, &decoded, NULL) != ESDM_OK)
        return 1;
    for (uint32_t i = 0; i < decoded->npacks; i++) {
        bool local = strchr(decoded->packs[i].target, '@') != NULL;
        r->result.failed |= !esdm__whole_share(r->whole, decoded->packs[i].pack);
        lost += !local && !esdm__scan_has_pack(r->scan, decoded->packs[i].pack);
    }
    esdm__page_unref(decoded);
    return lost;
}

/* Gives a page its newest form whose packs are there. */
static bool
settle_page(replay *r, esdm__whole_page *page)
{
    const version *best = NULL;
    uint64_t lost = count_lost(r, page, page->data, page->bytes);
    const version *next = next_version(r, esdm__journal_page_sum(page->data, page->bytes));
    for (size_t i = 0; next != NULL && i < r->nversions; i++) {
        uint64_t lost_then = count_lost(r, page, next->data, next->bytes);
        if (lost_then <= lost) {
            best = next;
            lost = lost_then;
        }
        next = next_version(r, next->to);
    }
    r->result.lost_packs += lost;
    if (best == NULL)
        return true;
    void *data = malloc(best->bytes);
    if (data == NULL)
        return false;
    memcpy(data, best->data, best->bytes);
    free(page->data);
    page->data = data;
    page->bytes = best->bytes;
    r->result.moved++;
    return true;
}

/* ---- commits -------------------------------------------------------------------------------- */

static bool
merge_lengths(const esdm_meta_import_snapshot *before, const esdm__journal_commit *commit,
              esdm_meta_import_snapshot *one)
{
    size_t most = (before != NULL ? before->nlengths : 0) + commit->nlengths;
    esdm_meta_length *all = malloc((most + 1) * sizeof *all);
    size_t count = 0;
    size_t i = 0;
    size_t k = 0;
    if (all == NULL)
        return false;
    while (i < (before != NULL ? before->nlengths : 0) || k < commit->nlengths) {
        const esdm_meta_length *x =
            before != NULL && i < before->nlengths ? &before->lengths[i] : NULL;
        const esdm_meta_length *y = k < commit->nlengths ? &commit->lengths[k] : NULL;
        if (y == NULL || (x != NULL && x->dimension < y->dimension)) {
            /* One of both is there. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
            all[count++] = *x;
            i++;
        } else if (x == NULL || y->dimension < x->dimension) {
            all[count++] = *y;
            k++;
        } else {
            all[count++] = x->length > y->length ? *x : *y;
            i++;
            k++;
        }
    }
    one->lengths = all;
    one->nlengths = count;
    return true;
}

/* Takes texts out of the commit. */
static bool
add_snapshot(replay *r, const esdm__journal_ref *ref, esdm__journal_commit *commit)
{
    esdm__whole *whole = r->whole;
    if (!esdm__array_grow(&whole->snapshots, whole->nsnapshots, sizeof *whole->snapshots))
        return false;
    const esdm_meta_import_snapshot *before =
        whole->nsnapshots > 0 ? &whole->snapshots[whole->nsnapshots - 1] : NULL;
    esdm_meta_import_snapshot one = {.snapshot = commit->snapshot,
                                     .parent = commit->snapshot - 1,
                                     .structure = commit->structure,
                                     .time_ns = ref->time_ns};
    if (!merge_lengths(before, commit, &one))
        return false;
    one.writer = commit->writer;
    one.message = commit->message;
    one.document = commit->document;
    one.document_bytes = commit->document_bytes;
    commit->writer = NULL;
    commit->message = NULL;
    if (commit->document != NULL)
        whole->record.datasets = commit->datasets;
    commit->document = NULL;
    whole->snapshots[whole->nsnapshots++] = one;
    if (whole->record.created_ns == 0)
        whole->record.created_ns = ref->time_ns;
    whole->record.snapshot = commit->snapshot;
    whole->record.structure = commit->structure;
    whole->record.modified_ns = ref->time_ns;
    return true;
}

static void
retire_merged(replay *r, const esdm__journal_commit *commit)
{
    for (size_t i = 0; i < commit->nmerged; i++) {
        for (size_t k = 0; k < r->whole->npages; k++) {
            esdm__whole_page *page = &r->whole->pages[k];
            if (page->removed != 0 || page->added == commit->snapshot ||
                !is_page(r, page, commit->merged[i]))
                continue;
            page->removed = commit->snapshot;
            break;
        }
    }
}

static bool
add_pages(replay *r, esdm__cursor *body, uint64_t snapshot)
{
    while (!body->failed && esdm__cursor_left(body) > 0) {
        esdm__journal_page page;
        if (!esdm__journal_page_take(body, &page))
            return false;
        if (!esdm__whole_copy_page(r->whole, &page.page, snapshot, 0))
            return false;
    }
    return !body->failed;
}

static bool
add_parts(replay *r, const esdm__journal_commit *commit)
{
    for (size_t i = 0; i < r->nrefs && commit->id != 0; i++) {
        const esdm__journal_ref *ref = &r->refs[i];
        esdm__journal_record record;
        uint8_t *data = NULL;
        if (ref->kind != ESDM__JOURNAL_PART || ref->part_of != commit->id)
            continue;
        bool good = esdm__scan_load(r->scan, ref, &record, &data, NULL) == ESDM_OK;
        if (good) {
            (void) esdm__cursor_varint(&record.body);
            good = add_pages(r, &record.body, commit->snapshot);
        }
        free(data);
        if (!good)
            return false;
    }
    return true;
}

static esdm_status
add_commit(replay *r, const esdm__journal_ref *ref, esdm_error *err)
{
    esdm__journal_record record;
    esdm__journal_commit commit = {0};
    esdm__cursor pages;
    uint8_t *data = NULL;
    uint64_t head = r->whole->record.snapshot;
    esdm_status status = esdm__scan_load(r->scan, ref, &record, &data, err);
    if (status == ESDM_OK)
        status = esdm__journal_take_commit(&record, &commit, &pages, err);
    if (status == ESDM_OK && r->whole->nsnapshots == 0 && commit.document == NULL) {
        r->result.lost_commits++; /* its structure is not known */
    } else if (status == ESDM_OK) {
        r->result.lost_commits += commit.snapshot - head - 1;
        retire_merged(r, &commit);
        bool good = add_snapshot(r, ref, &commit) && add_parts(r, &commit) &&
                    add_pages(r, &pages, commit.snapshot);
        r->result.commits++;
        r->result.damaged += !good;
    } else if (status != ESDM_ENOMEM) {
        r->result.damaged++;
        status = ESDM_OK;
    }
    esdm__journal_commit_clear(&commit);
    free(data);
    return status;
}

/* What a clone began with, unless the backup has it. */
static esdm_status
add_clone(replay *r, const esdm__journal_ref *ref, esdm_error *err)
{
    esdm__journal_record record;
    esdm__journal_cloned clone = {0};
    esdm__whole begun = {0};
    uint8_t *data = NULL;
    esdm_status status = esdm__scan_load(r->scan, ref, &record, &data, err);
    if (status == ESDM_OK)
        status = esdm__journal_take_clone(&record, &clone, &begun, err);
    free(data);
    esdm__journal_cloned_clear(&clone);
    if (status != ESDM_OK) {
        r->result.damaged++;
        return status == ESDM_ENOMEM ? status : ESDM_OK;
    }
    free(begun.name);
    begun.name = r->whole->name;
    r->whole->name = NULL;
    esdm__whole_clear(r->whole);
    *r->whole = begun;
    r->result.commits++;
    return ESDM_OK;
}

/* Where a catalogue was brought back without its last commits, the numbers of those were given
 * again: what came later counts. */
static void
find_valid(const replay *r, bool *valid)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = r->nrefs; i-- > 0;) {
        const esdm__journal_ref *ref = &r->refs[i];
        valid[i] = ref->kind == ESDM__JOURNAL_COMMIT && ref->snapshot < least;
        if (valid[i])
            least = ref->snapshot;
    }
}

static esdm_status
add_commits(replay *r, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    bool *valid = calloc(r->nrefs + 1, sizeof *valid);
    if (valid == NULL)
        return no_memory(err);
    find_valid(r, valid);
    for (size_t i = 0; i < r->nrefs && status == ESDM_OK && r->whole->nsnapshots == 0; i++) {
        if (r->refs[i].kind == ESDM__JOURNAL_CLONE)
            status = add_clone(r, &r->refs[i], err);
    }
    for (size_t i = 0; i < r->nrefs && status == ESDM_OK; i++) {
        if (valid[i] && r->refs[i].snapshot > r->whole->record.snapshot)
            status = add_commit(r, &r->refs[i], err);
    }
    free(valid);
    return status;
}

/* ---- in the end ----------------------------------------------------------------------------- */

static void
free_snapshot(const esdm_meta_import_snapshot *one)
{
    free((void *) one->writer);
    free((void *) one->message);
    free((void *) one->document);
    free((void *) one->lengths);
}

static bool
has_tag(const esdm__whole *whole, uint64_t snapshot)
{
    bool found = false;
    for (size_t i = 0; i < whole->ntags && !found; i++)
        found = whole->tags[i].snapshot == snapshot;
    return found;
}

static bool
is_shown(const esdm__whole *whole, const esdm__whole_page *page)
{
    bool shown = page->removed == 0;
    for (size_t i = 0; i < whole->nsnapshots && !shown; i++)
        shown = page->added <= whole->snapshots[i].snapshot &&
                whole->snapshots[i].snapshot < page->removed;
    return shown;
}

/* Drops the snapshots that neither number nor age keeps and nothing names, and the pages that none
 * of the others sees. The next one that stays gets the document. */
static void
prune(esdm__whole *whole, const esdm__retention *keep)
{
    uint64_t now_s = esdm__now_ns() / SECOND_NS;
    uint64_t since_s = keep->age_s < now_s ? now_s - keep->age_s : 0;
    size_t history = keep->count > 0 ? keep->count : 1;
    size_t drop = whole->nsnapshots > history ? whole->nsnapshots - history : 0;
    size_t kept = 0;
    const char *document = NULL;
    size_t bytes = 0;
    for (size_t i = 0; i < whole->nsnapshots; i++) {
        esdm_meta_import_snapshot *one = &whole->snapshots[i];
        if (one->document != NULL) {
            free((void *) document);
            document = one->document;
            bytes = one->document_bytes;
            one->document = NULL;
        }
        bool young = keep->age_s > 0 && one->time_ns / SECOND_NS >= since_s;
        if (i < drop && !young && !has_tag(whole, one->snapshot)) {
            free_snapshot(one);
            continue;
        }
        one->document = document;
        one->document_bytes = bytes;
        document = NULL;
        whole->snapshots[kept++] = *one;
    }
    whole->nsnapshots = kept;
    size_t left = 0;
    for (size_t i = 0; i < whole->npages; i++) {
        esdm__whole_page *page = &whole->pages[i];
        if (is_shown(whole, page)) {
            whole->pages[left++] = *page;
        } else {
            free((void *) page->entry.box);
            free(page->data);
        }
    }
    whole->npages = left;
}

static int
by_dataset(const void *a, const void *b)
{
    const esdm__whole_page *x = a;
    const esdm__whole_page *y = b;
    if (x->entry.dataset != y->entry.dataset)
        return x->entry.dataset < y->entry.dataset ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static void
sum_up(esdm__whole *whole)
{
    esdm_meta_container *record = &whole->record;
    record->raw_bytes = 0;
    record->stored_bytes = 0;
    record->fragments = 0;
    for (size_t i = 0; i < whole->npages; i++) {
        const esdm__whole_page *page = &whole->pages[i];
        if (page->removed != 0)
            continue;
        record->raw_bytes += page->entry.raw_bytes;
        record->stored_bytes += page->entry.stored_bytes;
        record->fragments += page->entry.records;
    }
}

static int
by_number(const void *a, const void *b)
{
    const esdm__whole_page *x = a;
    const esdm__whole_page *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

esdm_status
esdm__replay(const esdm__scan *scan, const esdm__journal_ref *refs, size_t nrefs,
             const esdm__replay_rules *rules, esdm__whole *whole, esdm__replayed *ret_result,
             esdm_error *err)
{
    replay r = {.scan = scan, .refs = refs, .nrefs = nrefs, .whole = whole};
    if (whole->npages > 0) /* new ones get numbers behind the last */
        qsort(whole->pages, whole->npages, sizeof *whole->pages, by_number);
    esdm_status status = load_versions(&r, err);
    if (status == ESDM_OK)
        status = add_commits(&r, err);
    if (status == ESDM_OK && whole->nsnapshots == 0)
        status = esdm__error_set(err, ESDM_ENOENT, "no record of its structure is left");
    if (status == ESDM_OK) /* they keep snapshots */
        status = esdm__replay_tags(scan, refs, nrefs, rules->tags_since_ns, whole, &r.result, err);
    if (status == ESDM_OK) {
        prune(whole, &rules->keep);
        esdm__replay_check_tags(whole, rules, &r.result);
    }
    for (size_t i = 0; i < whole->npages && status == ESDM_OK; i++) {
        if (!settle_page(&r, &whole->pages[i]) || r.result.failed)
            status = no_memory(err);
    }
    if (status == ESDM_OK) {
        sum_up(whole);
        if (whole->npages > 0)
            qsort(whole->pages, whole->npages, sizeof *whole->pages, by_dataset);
    }
    for (size_t i = 0; i < r.nversions; i++)
        free(r.versions[i].data);
    free(r.versions);
    *ret_result = r.result;
    return status;
}
