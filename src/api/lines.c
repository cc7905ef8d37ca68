/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What lines of commits have in common, as tags tell it. */

#include "api/line_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/formers.h"
#include "api/line_tags.h"
#include "api/line_vector.h"
#include "base/error.h"
#include "io/session/journaling.h"

/* ---- lines --------------------------------------------------------------------------------- */

esdm_status
esdm__line_find(esdm_session *session, const char *name, esdm__line *ret, esdm_error *err)
{
    esdm_meta_container record = {0};
    esdm_error why = {0};
    esdm_status status = session->meta->container_find(session->store, name, &record, &why);
    if (status == ESDM_OK)
        esdm__line_fill(ret, name, record.container, record.uuid);
    else
        esdm__line_fill(ret, name, 0, "");
    if (status == ESDM_OK || status == ESDM_ENOENT)
        return ESDM_OK;
    return esdm__error_set(err, status, "%s", why.message);
}

void
esdm__line_fill(esdm__line *l, const char *stored, uint64_t record, const char *uuid)
{
    (void) snprintf(l->stored, sizeof l->stored, "%s", stored);
    (void) snprintf(l->id, sizeof l->id, "%.*s", ESDM__LINE_ID_BYTES - 1, uuid);
    l->record = record;
}

esdm_status
esdm__line_is_there(esdm_session *session, const esdm__line *l, bool *ret, esdm_error *err)
{
    esdm__line now;
    esdm_status status = esdm__line_find(session, l->stored, &now, err);
    *ret = status == ESDM_OK && l->record != 0 && now.record == l->record;
    return status;
}

/* The line of that name that has the tag, which may be a former container. */
static esdm_status
find_tagged(esdm_session *session, const char *name, const char *tag, esdm__line *ret,
            uint64_t *ret_snapshot, esdm_error *err)
{
    esdm__tag_wanted w = {.name = tag};
    esdm__formers all;
    esdm_status status = esdm__line_find(session, name, ret, err);
    if (status == ESDM_OK && ret->record != 0)
        status = esdm__tag_look(session, ret->record, &w, err);
    *ret_snapshot = w.snapshot;
    if (status != ESDM_OK || w.snapshot != 0)
        return status;
    ret->record = 0;
    status = esdm__formers_load(session, name, &all, err);
    for (size_t i = all.count; i-- > 0 && status == ESDM_OK && w.snapshot == 0;) {
        status = esdm__tag_look(session, all.items[i].record, &w, err);
        if (w.snapshot == 0)
            continue;
        esdm__line_fill(ret, all.items[i].stored, all.items[i].record, all.items[i].uuid);
    }
    esdm__formers_clear(&all);
    *ret_snapshot = w.snapshot;
    return status;
}

void
esdm__line_base(const char *name, char ret[ESDM_CONTAINER_NAME_MAX + 1])
{
    size_t bytes = strlen(name);
    (void) esdm__name_branch(name, &bytes);
    (void) snprintf(ret, ESDM_CONTAINER_NAME_MAX + 1, "%.*s", (int) bytes, name);
}

/* Of the same container. */
void
esdm__line_beside(const char *name, const char *branch, char ret[ESDM_CONTAINER_NAME_MAX + 1])
{
    size_t bytes = strlen(name);
    (void) esdm__name_branch(name, &bytes);
    (void) snprintf(ret, ESDM_CONTAINER_NAME_MAX + 1, "%.*s" ESDM__BRANCH_MARK "%s", (int) bytes,
                    name, branch);
}

static esdm_status
parent_of(esdm_session *session, const char *name, uint64_t record,
          char ret_parent[ESDM_CONTAINER_NAME_MAX + 1], uint64_t *ret_from, esdm_error *err)
{
    esdm__tag_name began;
    esdm__line container;
    esdm__tag_wanted w = {.name = ESDM__PARENT_TAG, .begins = true};
    esdm_status status = esdm__tag_look(session, record, &w, err);
    if (status == ESDM_OK && w.snapshot != 0) {
        esdm__line_beside(name, w.text, ret_parent);
    } else if (status == ESDM_OK) {
        esdm__line_base(name, ret_parent);
        esdm__line_tag_began(name, began);
        w = (esdm__tag_wanted){.name = began};
        status = esdm__line_find(session, ret_parent, &container, err);
        if (status == ESDM_OK && container.record != 0)
            status = esdm__tag_look(session, container.record, &w, err);
    }
    if (status == ESDM_OK && ret_from != NULL)
        *ret_from = w.snapshot;
    return status;
}

esdm_status
esdm__line_parent(esdm_session *session, const char *name,
                  char ret_parent[ESDM_CONTAINER_NAME_MAX + 1], uint64_t *ret_from,
                  uint64_t *ret_merged, esdm_error *err)
{
    esdm__line l;
    esdm__tag_name merged;
    uint64_t from = 0;
    esdm__tag_wanted w = {.name = merged};
    esdm_status status = esdm__line_find(session, name, &l, err);
    if (status == ESDM_OK)
        status = parent_of(session, name, l.record, ret_parent, &from, err);
    if (status == ESDM_OK && from == 0)
        status = esdm__line_begun(session, name, ret_parent, &from, err);
    if (status == ESDM_OK && ret_from != NULL)
        *ret_from = from;
    if (status != ESDM_OK || ret_merged == NULL)
        return status;
    esdm__line_tag_in(ESDM__MERGED_TAG, ret_parent, merged);
    status = esdm__tag_look(session, l.record, &w, err);
    *ret_merged = w.snapshot;
    return status;
}

/* ---- what is in both ------------------------------------------------------------------------ */

esdm_status
esdm__line_fork_of(esdm_session *session, const char *name, const esdm__line *in,
                   uint64_t *ret_fork, esdm_error *err)
{
    esdm__tag_name began;
    esdm__tag_wanted w = {.name = began};
    *ret_fork = 0;
    if (in->record == 0 || esdm__name_branch(name, NULL) == NULL)
        return ESDM_OK;
    esdm__line_tag_began(name, began);
    esdm_status status = esdm__tag_look(session, in->record, &w, err);
    *ret_fork = w.snapshot;
    return status;
}

esdm_status
esdm__line_fork(esdm_session *session, const char *name, const char *in, uint64_t *ret_fork,
                esdm_error *err)
{
    esdm__line other;
    *ret_fork = 0;
    if (esdm__name_branch(name, NULL) == NULL)
        return ESDM_OK;
    esdm_status status = esdm__line_find(session, in, &other, err);
    return status == ESDM_OK ? esdm__line_fork_of(session, name, &other, ret_fork, err) : status;
}

static esdm_status
find_behind(esdm_session *session, const esdm__line *l, const char *name, const char *in,
            esdm__shared *ret, esdm_error *err)
{
    esdm__tag_name behind, holds;
    char holder[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__line_tag_in(ESDM__BEHIND_TAG, in, behind);
    esdm__tag_wanted w = {.name = behind};
    esdm_status status = esdm__tag_look(session, l->record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    ret->related = true;
    ret->since = w.snapshot;
    (void) snprintf(ret->branch, sizeof ret->branch, "%s", w.text);
    esdm__line_beside(name, w.text, holder);
    esdm__line_tag_holds(name, in, holds);
    return find_tagged(session, holder, holds, &ret->holder, &ret->snapshot, err);
}

esdm_status
esdm__line_shared(esdm_session *session, const char *name, const char *in, esdm__shared *ret,
                  esdm_error *err)
{
    esdm__tag_name merged, began;
    esdm__line l, other;
    esdm__line_tag_in(ESDM__MERGED_TAG, in, merged);
    esdm__line_tag_began(name, began);
    esdm__tag_wanted w = {.name = merged};
    *ret = (esdm__shared){.snapshot = 0};
    esdm_status status = esdm__line_find(session, name, &l, err);
    if (status == ESDM_OK)
        status = esdm__line_find(session, in, &other, err);
    if (status != ESDM_OK || l.record == 0 || other.record == 0)
        return status;
    status = esdm__tag_look(session, l.record, &w, err);
    uint64_t own = w.snapshot;
    if (status == ESDM_OK)
        status = find_behind(session, &l, name, in, ret, err);
    if (status == ESDM_OK && own != 0 && (ret->snapshot == 0 || own >= ret->since)) {
        *ret = (esdm__shared){
            .holder = l, .snapshot = own, .since = own, .related = true, .is_own = true};
        (void) snprintf(ret->branch, sizeof ret->branch, "%s", esdm__name_branch(name, NULL));
    }
    if (status != ESDM_OK || ret->related)
        return status;
    w.name = began;
    status = esdm__tag_look(session, other.record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    *ret =
        (esdm__shared){.holder = other, .snapshot = w.snapshot, .related = true, .is_fork = true};
    const char *branch = esdm__name_branch(in, NULL);
    (void) snprintf(ret->branch, sizeof ret->branch, "%s", branch != NULL ? branch : "");
    return ESDM_OK;
}

esdm_status
esdm__line_common(esdm_session *session, const char *name, const char *in, esdm__common *ret,
                  esdm_error *err)
{
    char parent[ESDM_CONTAINER_NAME_MAX + 1];
    uint64_t from = 0;
    esdm__shared c;
    esdm_status status = esdm__line_newest(session, name, in, &c, err);
    bool elsewhere = status == ESDM_OK && !c.is_own && !c.is_fork && !c.is_given && c.related;
    if (elsewhere)
        status = esdm__line_parent(session, name, parent, &from, NULL, err);
    if (status != ESDM_OK)
        return status;
    *ret = (esdm__common){.record = c.holder.record,
                          .snapshot = c.snapshot,
                          .related = c.related,
                          .is_given = c.is_given,
                          .is_late = elsewhere && c.since > from};
    (void) snprintf(ret->holder, sizeof ret->holder, "%s", c.holder.stored);
    return ESDM_OK;
}

/* ---- noting --------------------------------------------------------------------------------- */

static esdm_status
set_tag(esdm_session *session, const esdm__line *on, const char *name, uint64_t snapshot,
        const char *author, bool only_newer, esdm_error *err)
{
    const esdm_meta_tag tag = {.name = name,
                               .snapshot = snapshot,
                               .author = author != NULL ? author : esdm__session_writer(session),
                               .only_newer = only_newer};
    return esdm__noted_tag(session, on->stored, on->record, &tag, true, err);
}

esdm_status
esdm__line_tag_need(esdm_session *session, const esdm__line *on, const char *name,
                    uint64_t snapshot, const char *author, esdm_error *err)
{
    return set_tag(session, on, name, snapshot, author, false, err);
}

/* @param status of a note, and @param why it was not made. */
static esdm_status
unless_gone(esdm_status status, const esdm_error *why, esdm_error *err)
{
    if (status == ESDM_ENOENT)
        return ESDM_OK;
    if (status != ESDM_OK && err != NULL)
        *err = *why;
    return status;
}

esdm_status
esdm__line_tag_set(esdm_session *session, const esdm__line *on, const char *name, uint64_t snapshot,
                   const char *author, esdm_error *err)
{
    esdm_error why = {0};
    return unless_gone(set_tag(session, on, name, snapshot, author, false, &why), &why, err);
}

esdm_status
esdm__line_tag_raise(esdm_session *session, const esdm__line *on, const char *name,
                     uint64_t snapshot, const char *author, esdm_error *err)
{
    esdm_error why = {0};
    return unless_gone(set_tag(session, on, name, snapshot, author, true, &why), &why, err);
}

void
esdm__line_tag_take(esdm_session *session, const esdm__line *from, const char *name)
{
    esdm_error ignored;
    if (from->record != 0 && session->meta->tag_remove != NULL)
        (void) !esdm__noted_untag(session, from->stored, from->record, name, &ignored);
}

/* What is kept elsewhere for a branch is not needed any more. @param but who keeps it now; NULL:
 * the branch itself. */
static void
drop_behind(esdm_session *session, const char *name, const esdm__line *l, const char *in,
            const esdm__line *but)
{
    esdm__tag_name holds, behind;
    esdm__shared c = {.snapshot = 0};
    esdm_error ignored;
    if (find_behind(session, l, name, in, &c, &ignored) != ESDM_OK || !c.related)
        return;
    esdm__line_tag_in(ESDM__BEHIND_TAG, in, behind);
    esdm__line_tag_holds(name, in, holds);
    if (but == NULL)
        esdm__line_tag_take(session, l, behind);
    if (c.snapshot != 0 && (but == NULL || but->record != c.holder.record))
        esdm__line_tag_take(session, &c.holder, holds);
}

/* The branch itself keeps what of it is in the other line. */
esdm_status
esdm__line_note_own(esdm_session *session, const char *name, const esdm__line *l, const char *in,
                    uint64_t snapshot, esdm_error *err)
{
    esdm__tag_name merged;
    esdm__line_tag_in(ESDM__MERGED_TAG, in, merged);
    esdm_status status = esdm__line_tag_raise(session, l, merged, snapshot, NULL, err);
    if (status == ESDM_OK)
        drop_behind(session, name, l, in, NULL);
    return status;
}

/* Somebody else does. */
esdm_status
esdm__line_note_behind(esdm_session *session, const char *name, const esdm__line *l, const char *in,
                       const esdm__shared *c, uint64_t began, esdm_error *err)
{
    esdm__tag_name holds, behind;
    esdm__line_tag_holds(name, in, holds);
    esdm__line_tag_in(ESDM__BEHIND_TAG, in, behind);
    esdm_status status = esdm__line_tag_set(session, &c->holder, holds, c->snapshot, NULL, err);
    if (status == ESDM_OK)
        drop_behind(session, name, l, in, &c->holder);
    return status == ESDM_OK ? esdm__line_tag_set(session, l, behind, began, c->branch, err)
                             : status;
}

/* One line that the parent of a new branch began with. */
static esdm_status
begin_in(esdm_session *session, const char *parent, const char *name, const esdm__line *l,
         const char *in, uint64_t from, esdm_error *err)
{
    esdm__tag_name began;
    esdm__shared c, given;
    esdm__line other, above;
    uint64_t fork = 0;
    esdm__line_tag_began(parent, began);
    esdm__tag_wanted w = {.name = began};
    esdm_status status = esdm__line_shared(session, parent, in, &c, err);
    if (status == ESDM_OK)
        status = esdm__line_given(session, parent, in, &given, err);
    if (status == ESDM_OK)
        status = esdm__line_find(session, parent, &above, err);
    if (status == ESDM_OK) /* else another one of its name was looked at */
        status = esdm__line_fork_of(session, name, &above, &fork, err);
    if (status != ESDM_OK || c.snapshot == 0 || fork == 0)
        return status;
    bool is_given = given.snapshot != 0 && given.since <= from && given.since > c.since;
    if ((c.is_own || c.is_fork) && c.snapshot >= from)
        status = esdm__line_note_own(session, name, l, in, from, err);
    else if (!c.is_fork && !is_given && c.since <= from)
        status = esdm__line_note_behind(session, name, l, in, &c, from, err);
    if (status == ESDM_OK)
        status = esdm__line_find(session, in, &other, err);
    if (status == ESDM_OK)
        status = esdm__tag_look(session, other.record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    esdm__line_tag_began(name, began);
    status = esdm__line_tag_set(session, &other, began, w.snapshot, NULL, err);
    return status == ESDM_OK ? esdm__line_begin_given(session, parent, name, in, from, err)
                             : status;
}

/* What is done with each line of a container. */
typedef struct each {
    esdm_session *session;
    const char *parent;
    const char *name;
    const esdm__line *l;
    uint64_t from;
    uint64_t record; /* of `name` */
} each;

static esdm_status
begin_with(const char *other, void *user, esdm_error *err)
{
    const each *e = user;
    return strcmp(other, e->parent) == 0 || strcmp(other, e->name) == 0
               ? ESDM_OK
               : begin_in(e->session, e->parent, e->name, e->l, other, e->from, err);
}

/* Unless a merge was faster. */
static esdm_status
note_begin(esdm_session *session, const esdm__line *l, const char *name, uint64_t snapshot,
           esdm_error *err)
{
    esdm_error why = {0};
    const esdm_meta_tag tag = {
        .name = name, .snapshot = snapshot, .author = esdm__session_writer(session)};
    esdm_status status = esdm__noted_tag(session, l->stored, l->record, &tag, false, &why);
    return status == ESDM_EEXIST ? ESDM_OK : unless_gone(status, &why, err);
}

esdm_status
esdm__line_begin(esdm_session *session, const char *parent, const char *name, uint64_t record,
                 uint64_t snapshot, esdm_error *err)
{
    esdm__tag_name tag;
    esdm__line l;
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    const char *branch = esdm__name_branch(parent, NULL);
    esdm_status status = esdm__line_find(session, name, &l, err);
    if (status != ESDM_OK || l.record != record)
        return status;
    (void) snprintf(tag, sizeof tag, ESDM__PARENT_TAG "%s", branch != NULL ? branch : "");
    if (branch != NULL)
        status = note_begin(session, &l, tag, snapshot, err);
    esdm__line_tag_in(ESDM__MERGED_TAG, parent, tag);
    if (status == ESDM_OK)
        status = note_begin(session, &l, tag, snapshot, err);
    if (status == ESDM_OK)
        status = esdm__line_begin_vector(session, parent, &l, snapshot, err);
    if (status != ESDM_OK || branch == NULL)
        return status;
    /* All that the parent began with, also by way of branches that are gone. */
    each e = {.session = session, .parent = parent, .name = name, .l = &l, .from = snapshot};
    esdm__line_base(name, base);
    status = begin_with(base, &e, err);
    return status == ESDM_OK ? esdm__branch_names(session, base, begin_with, &e, err) : status;
}

/* ---- going ---------------------------------------------------------------------------------- */

/* What others keep for it. */
static void
drop_held(esdm_session *session, const char *name, uint64_t record)
{
    char in[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__line l = {.record = record};
    esdm__tag_texts behind;
    esdm_error ignored;
    (void) snprintf(l.stored, sizeof l.stored, "%s", name);
    if (esdm__tag_texts_load(session, record, ESDM__BEHIND_TAG, &behind, &ignored) == ESDM_OK) {
        for (size_t i = 0; i < behind.count; i++) {
            const char *rest = behind.items[i].rest;
            if (rest[0] == ':')
                esdm__line_beside(name, rest + 1, in);
            else
                esdm__line_base(name, in);
            drop_behind(session, name, &l, in, NULL);
        }
    }
    esdm__tag_texts_clear(&behind);
}

/* The name is looked at last: what another line of it has noted since stays. */
static esdm_status
untag(const char *other, void *user, esdm_error *err)
{
    const each *e = user;
    esdm__tag_name began;
    esdm__line l, now;
    esdm__line_tag_began(e->name, began);
    if (esdm__line_find(e->session, other, &l, err) == ESDM_OK &&
        esdm__line_find(e->session, e->name, &now, err) == ESDM_OK &&
        (now.record == 0 || now.record == e->record)) {
        esdm__line_untag_given(e->session, &l, e->name);
        esdm__line_tag_take(e->session, &l, began);
    }
    return ESDM_OK;
}

void
esdm__line_gone(esdm_session *session, const char *name, uint64_t record)
{
    char base[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error ignored;
    esdm__tag_wanted parent = {.name = ESDM__PARENT_TAG, .begins = true};
    each e = {.session = session, .name = name, .record = record};
    if (esdm__name_branch(name, NULL) == NULL || session->meta->tag_remove == NULL)
        return;
    esdm__line_base(name, base);
    drop_held(session, name, record);
    (void) !untag(base, &e, &ignored);
    if (esdm__tag_look(session, record, &parent, &ignored) == ESDM_OK && parent.snapshot != 0)
        (void) !esdm__branch_names(session, base, untag, &e, &ignored);
    esdm__line_sweep_vectors(session, base);
}

esdm_status
esdm__line_forget_of(esdm_session *session, const esdm__line *l, const char *gone, esdm_error *err)
{
    esdm__tag_name tags[4];
    esdm__tag_texts all;
    esdm__line now;
    bool any = false;
    esdm__line_tag_began(gone, tags[0]);
    esdm__line_tag_in(ESDM__MERGED_TAG, gone, tags[1]);
    esdm__line_tag_in(ESDM__BEHIND_TAG, gone, tags[2]);
    (void) snprintf(tags[3], sizeof tags[3], ESDM__GIVEN_TAG "%s", esdm__name_branch(gone, NULL));
    esdm_status status = esdm__tag_texts_load(session, l->record, "", &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        for (size_t k = 0; k < sizeof tags / sizeof *tags; k++)
            any |= strcmp(all.items[i].rest, tags[k]) == 0;
    }
    esdm__tag_texts_clear(&all);
    if (status == ESDM_OK && any)
        status = esdm__line_find(session, gone, &now, err);
    if (status != ESDM_OK || !any || now.record != 0)
        return status;
    drop_behind(session, l->stored, l, gone, NULL);
    for (size_t k = 0; k < sizeof tags / sizeof *tags; k++)
        esdm__line_tag_take(session, l, tags[k]);
    return ESDM_OK;
}

void
esdm__line_forget(esdm_session *session, const char *name)
{
    static const char *const kinds[] = {ESDM__MERGED_TAG, ESDM__PARENT_TAG, ESDM__BEHIND_TAG,
                                        ESDM__GIVEN_TAG,  ESDM__INTO_TAG,   ESDM__CAME_TAG,
                                        ESDM__HAS_TAG,    ESDM__KEPT_TAG};
    esdm__line l;
    esdm_error ignored;
    if (session->meta->tag_remove == NULL ||
        esdm__line_find(session, name, &l, &ignored) != ESDM_OK || l.record == 0)
        return;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        esdm__tag_texts all;
        if (esdm__tag_texts_load(session, l.record, kinds[k], &all, &ignored) == ESDM_OK) {
            for (size_t i = 0; i < all.count; i++) {
                esdm__tag_name tag;
                (void) snprintf(tag, sizeof tag, "%s%s", kinds[k], all.items[i].rest);
                esdm__line_tag_take(session, &l, tag);
            }
        }
        esdm__tag_texts_clear(&all);
    }
}
