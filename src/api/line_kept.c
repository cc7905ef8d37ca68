/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What lines have of each other is noted and kept, as long as some line needs it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/line_tags.h"
#include "api/line_vector.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/ids.h"

/* A merge that has read what a line has takes less. */
#define LONG_NS (UINT64_C(3600) * 1000000000)

/* ---- noting --------------------------------------------------------------------------------- */

esdm_status
esdm__line_note_vector(esdm_session *session, const esdm__line *l, const char *uuid,
                       uint64_t snapshot, const char *text, esdm_error *err)
{
    esdm__tag_name tag;
    (void) snprintf(tag, sizeof tag, ESDM__HAS_TAG "%s", uuid);
    return esdm__line_tag_set(session, l, tag, snapshot, text, err);
}

/* Who settles it for another one notes the same: the tag is called as the branch itself. */
esdm_status
esdm__line_begin_vector(esdm_session *session, const char *parent, const esdm__line *l,
                        uint64_t snapshot, esdm_error *err)
{
    esdm__line from;
    esdm__vector has = {0};
    esdm_meta_container record;
    esdm_error why = {0};
    bool there = false;
    uint64_t fork = 0;
    char *text = NULL;
    esdm_status status = session->meta->container_find(session->store, l->stored, &record, &why);
    if (status == ESDM_ENOENT || (status == ESDM_OK && record.container != l->record))
        return ESDM_OK; /* it was removed meanwhile */
    if (status != ESDM_OK)
        return esdm__error_set(err, status, "%s", why.message);
    status = esdm__line_find(session, parent, &from, err);
    if (status == ESDM_OK) /* else it is another one of its name */
        status = esdm__line_fork_of(session, l->stored, &from, &fork, err);
    if (status != ESDM_OK || fork == 0)
        return status;
    status = esdm__line_vector(session, parent, &from, snapshot, &has, err);
    if (status == ESDM_OK)
        status = esdm__line_is_there(session, &from, &there, err);
    if (status == ESDM_OK && there) {
        text = esdm__vector_text(&has);
        status = text != NULL ? esdm__line_note_vector(session, l, record.uuid, snapshot, text, err)
                              : esdm__error_nomem(err, has.count * sizeof *has.items, "lines");
    }
    free(text);
    esdm__vector_clear(&has);
    return status;
}

esdm_status
esdm__line_keep(esdm_session *session, const char *name, const esdm__vector *has,
                const esdm__vector *brings, const char *uuid, esdm_error *err)
{
    esdm__tag_name tag;
    esdm_status status = ESDM_OK;
    (void) snprintf(tag, sizeof tag, ESDM__KEPT_TAG "%s", uuid);
    for (size_t i = 0; i < brings->count && status == ESDM_OK; i++) {
        const esdm__vector_item *one = &brings->items[i];
        char full[ESDM_CONTAINER_NAME_MAX + 1];
        esdm__line l;
        if (one->snapshot <= esdm__vector_get(has, one->id))
            continue;
        status = esdm__line_by_id(session, name, one->branch, one->id, &l, full, err);
        if (status != ESDM_OK || l.record == 0 || strcmp(l.stored, full) != 0)
            continue; /* a former line goes when it is to go */
        status = esdm__line_tag_set(session, &l, tag, one->snapshot, NULL, err);
    }
    return status;
}

/* ---- what is not needed any more ------------------------------------------------------------ */

typedef struct one_line {
    esdm__line l;
    esdm__vector has; /* its newest snapshot */
} one_line;

/* All lines of a container. */
typedef struct family {
    esdm_session *session;
    one_line *items; /* owned */
    size_t count;
} family;

static esdm_status
add_line(const char *name, void *user, esdm_error *err)
{
    family *f = user;
    esdm_meta_container record;
    esdm_error why = {0};
    esdm_status status = f->session->meta->container_find(f->session->store, name, &record, &why);
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status != ESDM_OK)
        return esdm__error_set(err, status, "%s", why.message);
    if (!esdm__array_grow(&f->items, f->count, sizeof *f->items))
        return esdm__error_nomem(err, f->count * sizeof *f->items, "lines");
    one_line *one = &f->items[f->count++];
    *one = (one_line){.l = {.record = 0}};
    esdm__line_fill(&one->l, name, record.container, record.uuid);
    return esdm__line_vector(f->session, name, &one->l, record.snapshot, &one->has, err);
}

/* Whether another line has a snapshot of this one from `from` on, and before `to`. */
static bool
is_needed(const family *f, const one_line *of, uint64_t from, uint64_t to)
{
    bool needed = false;
    for (size_t i = 0; i < f->count && !needed; i++) {
        uint64_t has = esdm__vector_get(&f->items[i].has, of->l.id);
        needed = strcmp(f->items[i].l.id, of->l.id) != 0 && has >= from && has < to;
    }
    return needed;
}

static void
take_tag(const family *f, const one_line *of, const char *begins, const char *rest)
{
    esdm__tag_name tag;
    (void) snprintf(tag, sizeof tag, "%s%s", begins, rest);
    esdm__line_tag_take(f->session, &of->l, tag);
}

/* Of those on one snapshot the one whose name comes first stays. */
static void
sweep_kept(const family *f, const one_line *of, const esdm__tag_texts *all, uint64_t old_ns)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct esdm__tag_pair *one = &all->items[i];
        bool needed = is_needed(f, of, one->snapshot, one->snapshot + 1);
        for (size_t k = 0; k < all->count && needed; k++) {
            const struct esdm__tag_pair *other = &all->items[k];
            needed = other->snapshot != one->snapshot || other->created_ns > old_ns ||
                     strcmp(other->rest, one->rest) >= 0;
        }
        if (!needed && one->created_ns <= old_ns)
            take_tag(f, of, ESDM__KEPT_TAG, one->rest);
    }
}

/* What a merge has noted is needed as long as a line has a snapshot that has it, but nothing newer:
 * its newest one counts. */
static void
sweep_has(const family *f, const one_line *of, const esdm__tag_texts *all, uint64_t old_ns)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct esdm__tag_pair *one = &all->items[i];
        esdm__vector says = {0}, next_says = {0}, both = {0};
        const struct esdm__tag_pair *next = NULL;
        esdm_error ignored;
        for (size_t k = 0; k < all->count; k++) {
            const struct esdm__tag_pair *other = &all->items[k];
            if (other->snapshot > one->snapshot && other->created_ns <= old_ns &&
                (next == NULL || other->snapshot < next->snapshot))
                next = other;
        }
        if (next == NULL || is_needed(f, of, one->snapshot, next->snapshot))
            continue;
        /* It must say all that this one does: two merges at once do not know of each other. */
        if (esdm__vector_parse(&says, one->author, &ignored) == ESDM_OK &&
            esdm__vector_parse(&next_says, next->author, &ignored) == ESDM_OK &&
            esdm__vector_meet(&says, &next_says, &both, &ignored) == ESDM_OK &&
            esdm__vector_equal(&says, &both))
            take_tag(f, of, ESDM__HAS_TAG, one->rest);
        esdm__vector_clear(&says);
        esdm__vector_clear(&next_says);
        esdm__vector_clear(&both);
    }
}

void
esdm__line_sweep_vectors(esdm_session *session, const char *name)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    family f = {.session = session};
    esdm_error ignored;
    uint64_t now_ns = esdm__now_ns();
    uint64_t old_ns = now_ns > LONG_NS ? now_ns - LONG_NS : 0;
    if (session->meta->tag_remove == NULL || session->meta->tag_list == NULL)
        return;
    esdm__line_base(name, base);
    esdm_status status = add_line(base, &f, &ignored);
    if (status == ESDM_OK)
        status = esdm__branch_names(session, base, add_line, &f, &ignored);
    for (size_t i = 0; i < f.count && status == ESDM_OK; i++) {
        esdm__tag_texts kept = {0}, has = {0};
        status =
            esdm__tag_texts_load(session, f.items[i].l.record, ESDM__KEPT_TAG, &kept, &ignored);
        if (status == ESDM_OK)
            sweep_kept(&f, &f.items[i], &kept, old_ns);
        esdm__tag_texts_clear(&kept);
        if (status == ESDM_OK)
            status =
                esdm__tag_texts_load(session, f.items[i].l.record, ESDM__HAS_TAG, &has, &ignored);
        if (status == ESDM_OK)
            sweep_has(&f, &f.items[i], &has, old_ns);
        esdm__tag_texts_clear(&has);
    }
    for (size_t i = 0; i < f.count; i++)
        esdm__vector_clear(&f.items[i].has);
    free(f.items);
}
