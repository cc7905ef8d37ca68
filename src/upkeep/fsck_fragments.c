/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file One index page and what it refers to. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/blob.h"
#include "io/read/fetch.h"
#include "layout/places.h"
#include "upkeep/fsck.h"

/* Heads that are read with one call of the target. */
#define HEADS       64u
#define HEADS_BYTES (1u << 20)

/* One fragment of the page. */
typedef struct item {
    esdm__fragment fragment;
    uint32_t good;      /* places where it was found to be right */
    uint32_t bad;       /* where it was not */
    uint32_t unchecked; /* where nobody can look from here */
} item;

typedef struct page_check {
    esdm__fsck_container *container;
    const esdm_meta_page *entry;
    item *items; /* owned; in packs alone; by pack and position */
    size_t count;
    char *dataset;      /* owned */
    uint64_t elsewhere; /* fragments whose values lie outside of the site */
    uint64_t bytes;
} page_check;

/* One place of the fragments that lie in one pack. */
typedef struct stretch {
    page_check *page;
    item *items;
    size_t count;
    esdm__target *target;
    const char *target_name;
    const char *pack;
} stretch;

/* ---- reports ------------------------------------------------------------------------------ */

static void
print_box(const esdm__fragment *fragment, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t d = 0; d < fragment->box.rank && used < room; d++) {
        uint64_t last = fragment->box.lo[d] + fragment->box.n[d] - 1;
        int n = snprintf(text + used, room - used, "%s%" PRIu64 ":%" PRIu64, d > 0 ? ", " : "",
                         fragment->box.lo[d], last);
        used += n > 0 ? (size_t) n : 0;
    }
}

static void
report(const stretch *s, esdm_status status, const item *first, const char *what)
{
    char place[512];
    if (first != NULL)
        (void) snprintf(place, sizeof place, "target '%s', pack '%s', byte %" PRIu64,
                        s->target_name, s->pack, first->fragment.position);
    else
        (void) snprintf(place, sizeof place, "target '%s', pack '%s'", s->target_name, s->pack);
    const esdm_finding finding = {
        .kind = ESDM_FINDING_PROBLEM,
        .status = status,
        .container = s->page->container->label,
        .dataset = s->page->dataset,
        .place = place,
        .what = what,
        .remedy = NULL,
    };
    esdm__fsck_report(s->page->container, &finding);
}

/* What cannot be read any more, after all places were looked at. */
static void
report_lost(const page_check *p)
{
    char box[ESDM_MAX_RANK * 44];
    char what[sizeof box + 160];
    size_t lost = 0;
    const item *first = NULL;
    for (size_t i = 0; i < p->count; i++) {
        if (p->items[i].good > 0 || p->items[i].bad == 0 || p->items[i].unchecked > 0)
            continue;
        first = first == NULL ? &p->items[i] : first;
        lost++;
    }
    if (lost == 0)
        return;
    print_box(&first->fragment, box, sizeof box);
    (void) snprintf(what, sizeof what,
                    "%zu fragment%s cannot be read; the first has the indices %s", lost,
                    lost == 1 ? "" : "s", box);
    const esdm_finding finding = {
        .kind = ESDM_FINDING_CONSEQUENCE,
        .status = ESDM_ECORRUPT,
        .container = p->container->label,
        .dataset = p->dataset,
        .what = what,
        .remedy = "bring the pack back from a backup, or write these values again",
    };
    esdm__fsck_report(p->container, &finding);
}

/* Fragments with fewer sound copies than the site wants, or with places that are wrong, are stored
 * anew when something is left of them. */
static esdm_status
note_needs(const page_check *p, esdm_error *err)
{
    esdm__fsck_container *c = p->container;
    esdm__fsck *check = c->check;
    uint32_t wanted = esdm__site_copies(check->session->site, c->name, p->dataset);
    uint32_t possible = wanted < check->targets ? wanted : check->targets;
    size_t fewer = 0;
    bool room = true;
    (void) pthread_mutex_lock(&check->lock);
    for (size_t i = 0; i < p->count && room; i++) {
        const item *it = &p->items[i];
        if (it->good == 0 || it->unchecked > 0)
            continue;
        fewer += it->good < wanted;
        if (it->good < possible || it->bad > 0)
            room = esdm__needs_add(&c->needs, &it->fragment, possible);
    }
    (void) pthread_mutex_unlock(&check->lock);
    if (!room)
        return esdm__error_nomem(err, sizeof(esdm__need), "what is to be repaired");
    if (fewer > 0) {
        char what[120];
        (void) snprintf(what, sizeof what, "%zu fragment%s %s fewer sound copies than %u", fewer,
                        fewer == 1 ? "" : "s", fewer == 1 ? "has" : "have", wanted);
        const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                      .status = ESDM_ENOENT,
                                      .container = c->label,
                                      .dataset = p->dataset,
                                      .what = what,
                                      .remedy = "esdm-fsck --repair makes more"};
        esdm__fsck_report(c, &finding);
    }
    return ESDM_OK;
}

/* ---- heads and data ----------------------------------------------------------------------- */

static void
judge(const stretch *s, item *it, esdm_status status, const esdm_error *error)
{
    char what[ESDM_ERROR_MESSAGE_BYTES + 40];
    it->good += status == ESDM_OK;
    it->bad += status != ESDM_OK;
    if (status == ESDM_OK)
        return;
    (void) snprintf(what, sizeof what, "a fragment is damaged: %s", error->message);
    report(s, status, it, what);
}

static esdm_status
check_data(const stretch *s, item *it, esdm_error *err)
{
    esdm_error error = {0};
    uint8_t *blob = NULL;
    esdm_status status = esdm__fetch_verified(s->page->container->check->session, &it->fragment,
                                              s->target, &blob, &error);
    free(blob);
    s->page->bytes += it->fragment.stored_bytes;
    if (status == ESDM_ENOMEM) {
        if (err != NULL)
            *err = error;
        return status;
    }
    judge(s, it, status, &error);
    return ESDM_OK;
}

/* Reads the heads of items[0 … count-1] at once, else one after the other. */
static esdm_status
check_heads(const stretch *s, item *items, size_t count, size_t bytes, esdm_error *err)
{
    esdm_range ranges[HEADS];
    esdm_session *session = s->page->container->check->session;
    uint8_t *heads = malloc(bytes + 1);
    if (heads == NULL)
        return esdm__error_nomem(err, bytes, "heads of fragments");
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        ranges[i] =
            (esdm_range){items[i].fragment.position, items[i].fragment.head_bytes, heads + at};
        at += items[i].fragment.head_bytes;
    }
    esdm_status status = esdm__session_read(session, s->target, s->pack, ranges, count, NULL);
    for (size_t i = 0; i < count; i++) {
        esdm_error error = {0};
        esdm_status one = status;
        if (status != ESDM_OK)
            one = esdm__session_read(session, s->target, s->pack, &ranges[i], 1, &error);
        if (one == ESDM_OK)
            one = esdm__fetch_check_head(&items[i].fragment, ranges[i].buffer, &error);
        judge(s, &items[i], one, &error);
    }
    s->page->bytes += bytes;
    free(heads);
    return ESDM_OK;
}

static bool
fits(const item *it, uint64_t pack_bytes)
{
    const esdm__fragment *f = &it->fragment;
    return f->head_bytes >= ESDM__BLOB_HEADER_BYTES && f->head_bytes <= f->stored_bytes &&
           f->stored_bytes <= pack_bytes && f->position <= pack_bytes - f->stored_bytes;
}

/* Writers append to packs while they are checked: whether this one reaches further by now. */
static bool
has_grown(const stretch *s, const item *it)
{
    const esdm__fragment *f = &it->fragment;
    uint8_t byte;
    if (!fits(it, UINT64_MAX / 2))
        return false;
    esdm_range last = {f->position + f->stored_bytes - 1, 1, &byte};
    esdm_session *session = s->page->container->check->session;
    return esdm__session_read(session, s->target, s->pack, &last, 1, NULL) == ESDM_OK;
}

/* @param pack_bytes as it was when packs were listed. */
static esdm_status
check_contents(const stretch *s, uint64_t pack_bytes, esdm_error *err)
{
    const esdm_error cut = {.message = "the pack ends before it"};
    bool data = s->page->container->check->options->data;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < s->count && status == ESDM_OK;) {
        size_t n = 0;
        size_t bytes = 0;
        while (n < HEADS && i + n < s->count && fits(&s->items[i + n], pack_bytes) &&
               (n == 0 || bytes + s->items[i + n].fragment.head_bytes <= HEADS_BYTES))
            bytes += s->items[i + n++].fragment.head_bytes;
        if (n == 0) {
            const esdm__fragment *f = &s->items[i].fragment;
            if (has_grown(s, &s->items[i]))
                pack_bytes = f->position + f->stored_bytes;
            else
                judge(s, &s->items[i++], ESDM_ECORRUPT, &cut);
            continue;
        }
        if (!data)
            status = check_heads(s, &s->items[i], n, bytes, err);
        for (size_t k = 0; data && k < n && status == ESDM_OK; k++)
            status = check_data(s, &s->items[i + k], err);
        i += n;
    }
    return status;
}

/* ---- packs -------------------------------------------------------------------------------- */

static void
judge_all(const stretch *s, esdm_status status, const char *what)
{
    char text[200];
    for (size_t i = 0; i < s->count; i++)
        s->items[i].bad++;
    (void) snprintf(text, sizeof text, "%s; an index page needs it for %zu fragment%s", what,
                    s->count, s->count == 1 ? "" : "s");
    report(s, status, NULL, text);
}

/* Whether the page is still there: else its packs may be gone with good reason. */
static bool
is_current(const page_check *p)
{
    const esdm_session *session = p->container->check->session;
    void *data = NULL;
    size_t bytes = 0;
    esdm_status status =
        session->meta->page_load(session->store, p->entry->page, &data, &bytes, NULL);
    free(data);
    return status != ESDM_ENOENT;
}

static esdm_status
check_place(stretch *s, const esdm__pack_place *place, esdm_error *err)
{
    esdm__fsck *check = s->page->container->check;
    s->target = esdm__session_target(check->session, place->target);
    s->target_name = place->target;
    if (place->node[0] != '\0' && strcmp(place->node, check->session->node) != 0) {
        for (size_t i = 0; i < s->count; i++)
            s->items[i].unchecked++;
        return ESDM_OK;
    }
    if (s->target == NULL) {
        judge_all(s, ESDM_ENOENT, "the site configuration has no such target");
        return ESDM_OK;
    }
    if (esdm__target_need(check->session, s->target, NULL) != ESDM_OK) {
        judge_all(s, ESDM_EIO, "the target cannot be opened");
        return ESDM_OK;
    }
    esdm__pack_entry *entry = esdm__inventory_find(
        &check->packs, (uint32_t) (s->target - check->session->targets), s->pack);
    if (entry != NULL) {
        atomic_store(&entry->used, true);
        return check_contents(s, entry->bytes, err);
    }
    /* It may have been made since the packs were listed. */
    uint8_t byte;
    esdm_range range = {s->items[0].fragment.position, 1, &byte};
    esdm_status status = esdm__session_read(check->session, s->target, s->pack, &range, 1, NULL);
    if (status == ESDM_OK)
        return check_contents(s, UINT64_MAX / 2, err);
    if (is_current(s->page))
        judge_all(s, ESDM_ENOENT, "the pack is missing");
    return ESDM_OK;
}

static esdm_status
check_pack(page_check *p, size_t first, size_t count, esdm_error *err)
{
    const esdm__pack_name *name = p->items[first].fragment.pack;
    const char *places = name->target;
    esdm__pack_place place;
    esdm_status status = ESDM_OK;
    while (status == ESDM_OK && esdm__places_next(&places, &place)) {
        stretch s = {.page = p, .items = &p->items[first], .count = count, .pack = name->pack};
        status = check_place(&s, &place, err);
    }
    return status;
}

/* ---- page --------------------------------------------------------------------------------- */

static bool
note_fragment(const esdm__fragment *fragment, void *user)
{
    page_check *p = user;
    if (fragment->pack != NULL)
        p->items[p->count++].fragment = *fragment;
    return true;
}

static int
by_place(const void *a, const void *b)
{
    const esdm__fragment *x = &((const item *) a)->fragment;
    const esdm__fragment *y = &((const item *) b)->fragment;
    if (x->pack != y->pack)
        return (uintptr_t) x->pack < (uintptr_t) y->pack ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

static esdm_status
check_fragments(page_check *p, const esdm__page *page, esdm_error *err)
{
    p->items = calloc(page->records.count, sizeof *p->items);
    if (p->items == NULL)
        return esdm__error_nomem(err, page->records.count * sizeof *p->items, "fragments");
    (void) esdm__page_visit(page, note_fragment, p);
    qsort(p->items, p->count, sizeof *p->items, by_place);
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < p->count && status == ESDM_OK;) {
        size_t n = 1;
        while (i + n < p->count && p->items[i + n].fragment.pack == p->items[i].fragment.pack)
            n++;
        status = check_pack(p, i, n, err);
        i += n;
    }
    if (status == ESDM_OK)
        report_lost(p);
    return status == ESDM_OK ? note_needs(p, err) : status;
}

static void
report_page(const page_check *p, esdm_status status, const char *what, const char *remedy)
{
    char place[64];
    (void) snprintf(place, sizeof place, "index page %" PRIu64, p->entry->page);
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = status,
                                  .container = p->container->label,
                                  .dataset = p->dataset,
                                  .place = place,
                                  .what = what,
                                  .remedy = remedy};
    esdm__fsck_report(p->container, &finding);
}

/* The rank that the document says; older snapshots may have datasets that it has not any more. */
static bool
rank_agrees(const page_check *p)
{
    const esdm_container *model = p->container->model;
    const esdm_dataset *dataset =
        model != NULL ? esdm__container_dataset(model, p->entry->dataset) : NULL;
    return dataset == NULL || dataset->rank == p->entry->rank;
}

#define ABSENT_MAX 64

/* A page that is not there: pruned, merged or moved since it was listed, or missing when the
 * directory lists it still, for entry and page go at once. */
static esdm_status
check_absent(const page_check *p, const esdm_error *absent, esdm_error *err)
{
    esdm__page_list now = {0};
    esdm_error error = {0};
    esdm_status status = ESDM_OK;
    /* Where many are missing, each look at the directory would find it so. */
    bool listed = atomic_load(&p->container->absent) >= ABSENT_MAX;
    if (!listed)
        status = esdm__page_list_load(p->container->check->session, p->container->record,
                                      ESDM_META_EVERY_SNAPSHOT, p->entry->dataset, &now, &error);
    for (size_t i = 0; i < now.count && status == ESDM_OK && !listed; i++)
        listed = now.entries[i].page == p->entry->page;
    esdm__page_list_clear(&now);
    if (listed) {
        (void) atomic_fetch_add(&p->container->absent, 1);
        report_page(p, ESDM_ENOENT, absent->message, ESDM__FSCK_WRITE_AGAIN);
    }
    if (status == ESDM_OK || status == ESDM_ENOENT) /* the container is gone */
        return ESDM_OK;
    if (err != NULL)
        *err = error;
    return esdm__error_prefix(err, status, "container '%s'", p->container->label);
}

esdm_status
esdm__fsck_page(esdm__fsck_container *c, const esdm_meta_page *entry, esdm_error *err)
{
    page_check p = {.container = c, .entry = entry};
    esdm__page *page = NULL;
    esdm_error error = {0};
    p.dataset = esdm__fsck_dataset_name(c, entry->dataset);
    if (p.dataset == NULL)
        return esdm__error_nomem(err, 1, "the name of a dataset");
    esdm_status status = esdm__page_fetch(c->check->session, entry, &page, &error);
    if (status == ESDM_ECORRUPT) {
        report_page(&p, status, error.message, ESDM__FSCK_WRITE_AGAIN);
        status = ESDM_OK;
    } else if (status == ESDM_ENOENT) {
        status = check_absent(&p, &error, err);
    } else if (status != ESDM_OK) {
        if (err != NULL)
            *err = error;
        status = esdm__error_prefix(err, status, "container '%s'", c->label);
    } else {
        if (!rank_agrees(&p))
            report_page(&p, ESDM_ECORRUPT, "its rank is not that of the dataset",
                        "bring the metadata store back from a backup");
        status = check_fragments(&p, page, err);
        if (status == ESDM_OK)
            status = esdm__fsck_sources(c, p.dataset, page, &p.elsewhere, &p.bytes, err);
    }
    (void) pthread_mutex_lock(&c->check->lock);
    c->check->result.pages += !c->again;
    c->check->result.fragments += c->again ? 0 : p.count + p.elsewhere;
    c->check->result.bytes += p.bytes;
    (void) pthread_mutex_unlock(&c->check->lock);
    esdm__page_unref(page);
    free(p.items);
    free(p.dataset);
    return status;
}
