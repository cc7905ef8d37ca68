/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What lines of commits have in common, as tags tell it. */

#include "api/lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/formers.h"
#include "base/buffer.h"
#include "base/error.h"
#include "io/session/journaling.h"

#define PARENT_TAG "esdm:parent:"
#define BEHIND_TAG "esdm:behind"
/* "esdm:holds:BRANCH:IN"; no branch has ':' in its name. */
#define TAG_BYTES (sizeof "esdm:holds:" + 2 * (ESDM_BRANCH_MAX + 1))

typedef char tag_name[TAG_BYTES];

/* "WHAT", or "WHAT:BRANCH" when the line is a branch. */
static void
tag_in(const char *what, const char *line, tag_name tag)
{
    const char *branch = esdm__name_branch(line, NULL);
    (void) snprintf(tag, TAG_BYTES, "%s%s%s", what, branch != NULL ? ":" : "",
                    branch != NULL ? branch : "");
}

static void
tag_began(const char *line, tag_name tag)
{
    (void) snprintf(tag, TAG_BYTES, ESDM__BRANCH_TAG "%s", esdm__name_branch(line, NULL));
}

static void
tag_holds(const char *line, const char *in, tag_name tag)
{
    const char *branch = esdm__name_branch(in, NULL);
    (void) snprintf(tag, TAG_BYTES, ESDM__HOLDS_TAG "%s:%s", esdm__name_branch(line, NULL),
                    branch != NULL ? branch : "");
}

/* A tag that is looked for. */
typedef struct wanted {
    const char *name;
    bool begins; /* it begins with this; the rest of its name goes to `text` */
    uint64_t snapshot;
    char text[ESDM_BRANCH_MAX + 1]; /* else its author */
} wanted;

static bool
look(const esdm_meta_tag *tag, void *user)
{
    wanted *w = user;
    size_t bytes = strlen(w->name);
    if (w->begins ? strncmp(tag->name, w->name, bytes) != 0 : strcmp(tag->name, w->name) != 0)
        return true;
    w->snapshot = tag->snapshot;
    (void) snprintf(w->text, sizeof w->text, "%s",
                    w->begins             ? tag->name + bytes
                    : tag->author != NULL ? tag->author
                                          : "");
    return false;
}

static esdm_status
find_tag(esdm_session *session, uint64_t record, wanted *w, esdm_error *err)
{
    w->snapshot = 0;
    if (session->meta->tag_list == NULL)
        return ESDM_OK;
    return session->meta->tag_list(session->store, record, look, w, err);
}

/* ---- lines --------------------------------------------------------------------------------- */

typedef struct line {
    char stored[ESDM__FORMER_NAME_BYTES];
    uint64_t record; /* 0: there is none */
} line;

static esdm_status
find_line(esdm_session *session, const char *name, line *ret, esdm_error *err)
{
    esdm_meta_container record = {0};
    esdm_error why = {0};
    esdm_status status = session->meta->container_find(session->store, name, &record, &why);
    (void) snprintf(ret->stored, sizeof ret->stored, "%s", name);
    ret->record = status == ESDM_OK ? record.container : 0;
    if (status == ESDM_OK || status == ESDM_ENOENT)
        return ESDM_OK;
    return esdm__error_set(err, status, "%s", why.message);
}

/* The line of that name that has the tag, which may be a former container. */
static esdm_status
find_tagged(esdm_session *session, const char *name, const char *tag, line *ret,
            uint64_t *ret_snapshot, esdm_error *err)
{
    wanted w = {.name = tag};
    esdm__formers all;
    esdm_status status = find_line(session, name, ret, err);
    if (status == ESDM_OK && ret->record != 0)
        status = find_tag(session, ret->record, &w, err);
    *ret_snapshot = w.snapshot;
    if (status != ESDM_OK || w.snapshot != 0)
        return status;
    ret->record = 0;
    status = esdm__formers_load(session, name, &all, err);
    for (size_t i = all.count; i-- > 0 && status == ESDM_OK && w.snapshot == 0;) {
        status = find_tag(session, all.items[i].record, &w, err);
        if (w.snapshot == 0)
            continue;
        (void) snprintf(ret->stored, sizeof ret->stored, "%s", all.items[i].stored);
        ret->record = all.items[i].record;
    }
    esdm__formers_clear(&all);
    *ret_snapshot = w.snapshot;
    return status;
}

static void
base_name(const char *name, char ret[ESDM_CONTAINER_NAME_MAX + 1])
{
    size_t bytes = strlen(name);
    (void) esdm__name_branch(name, &bytes);
    (void) snprintf(ret, ESDM_CONTAINER_NAME_MAX + 1, "%.*s", (int) bytes, name);
}

/* Of the same container. */
static void
beside(const char *name, const char *branch, char ret[ESDM_CONTAINER_NAME_MAX + 1])
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
    tag_name began;
    line container;
    wanted w = {.name = PARENT_TAG, .begins = true};
    esdm_status status = find_tag(session, record, &w, err);
    if (status == ESDM_OK && w.snapshot != 0) {
        beside(name, w.text, ret_parent);
    } else if (status == ESDM_OK) {
        base_name(name, ret_parent);
        tag_began(name, began);
        w = (wanted){.name = began};
        status = find_line(session, ret_parent, &container, err);
        if (status == ESDM_OK && container.record != 0)
            status = find_tag(session, container.record, &w, err);
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
    line l;
    tag_name merged;
    uint64_t from = 0;
    wanted w = {.name = merged};
    esdm_status status = find_line(session, name, &l, err);
    if (status == ESDM_OK)
        status = parent_of(session, name, l.record, ret_parent, &from, err);
    if (status == ESDM_OK && ret_from != NULL)
        *ret_from = from;
    if (status != ESDM_OK || ret_merged == NULL)
        return status;
    tag_in(ESDM__MERGED_TAG, ret_parent, merged);
    status = find_tag(session, l.record, &w, err);
    *ret_merged = w.snapshot;
    return status;
}

/* ---- what is in both ------------------------------------------------------------------------ */

/* Who keeps it. */
typedef struct common {
    line holder;
    uint64_t snapshot;
    bool related;
    bool is_fork;                     /* what they began with, and nothing since */
    bool is_own;                      /* the branch itself keeps it */
    char branch[ESDM_BRANCH_MAX + 1]; /* the holder's */
} common;

static esdm_status
find_behind(esdm_session *session, const line *l, const char *name, const char *in, common *ret,
            esdm_error *err)
{
    tag_name behind, holds;
    char holder[ESDM_CONTAINER_NAME_MAX + 1];
    tag_in(BEHIND_TAG, in, behind);
    wanted w = {.name = behind};
    esdm_status status = find_tag(session, l->record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    ret->related = true;
    (void) snprintf(ret->branch, sizeof ret->branch, "%s", w.text);
    beside(name, w.text, holder);
    tag_holds(name, in, holds);
    return find_tagged(session, holder, holds, &ret->holder, &ret->snapshot, err);
}

static esdm_status
find_common(esdm_session *session, const char *name, const char *in, common *ret, esdm_error *err)
{
    tag_name merged, began;
    line l, other;
    tag_in(ESDM__MERGED_TAG, in, merged);
    tag_began(name, began);
    wanted w = {.name = merged};
    *ret = (common){.snapshot = 0};
    esdm_status status = find_line(session, name, &l, err);
    if (status == ESDM_OK)
        status = find_line(session, in, &other, err);
    if (status != ESDM_OK || l.record == 0 || other.record == 0)
        return status;
    status = find_tag(session, l.record, &w, err);
    if (status == ESDM_OK && w.snapshot != 0) {
        *ret = (common){.holder = l, .snapshot = w.snapshot, .related = true, .is_own = true};
        (void) snprintf(ret->branch, sizeof ret->branch, "%s", esdm__name_branch(name, NULL));
        return ESDM_OK;
    }
    if (status == ESDM_OK)
        status = find_behind(session, &l, name, in, ret, err);
    if (status != ESDM_OK || ret->related)
        return status;
    w.name = began;
    status = find_tag(session, other.record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    *ret = (common){.holder = other, .snapshot = w.snapshot, .related = true, .is_fork = true};
    const char *branch = esdm__name_branch(in, NULL);
    (void) snprintf(ret->branch, sizeof ret->branch, "%s", branch != NULL ? branch : "");
    return ESDM_OK;
}

esdm_status
esdm__line_common(esdm_session *session, const char *name, const char *in, esdm__common *ret,
                  esdm_error *err)
{
    common c;
    esdm_status status = find_common(session, name, in, &c, err);
    if (status == ESDM_OK) {
        *ret = (esdm__common){.snapshot = c.snapshot, .related = c.related};
        (void) snprintf(ret->holder, sizeof ret->holder, "%s", c.holder.stored);
    }
    return status;
}

/* ---- noting --------------------------------------------------------------------------------- */

static esdm_status
set_tag(esdm_session *session, const line *on, const char *name, uint64_t snapshot,
        const char *author, esdm_error *err)
{
    const esdm_meta_tag tag = {.name = name,
                               .snapshot = snapshot,
                               .author = author != NULL ? author : esdm__session_writer(session)};
    return esdm__noted_tag(session, on->stored, on->record, &tag, true, err);
}

static void
take_tag(esdm_session *session, const line *from, const char *name)
{
    esdm_error ignored;
    if (from->record != 0 && session->meta->tag_remove != NULL)
        (void) !esdm__noted_untag(session, from->stored, from->record, name, &ignored);
}

/* What is kept elsewhere for a branch is not needed any more. @param but who keeps it now; NULL:
 * the branch itself. */
static void
drop_behind(esdm_session *session, const char *name, const line *l, const char *in, const line *but)
{
    tag_name holds, behind;
    common c = {.snapshot = 0};
    esdm_error ignored;
    if (find_behind(session, l, name, in, &c, &ignored) != ESDM_OK || !c.related)
        return;
    tag_in(BEHIND_TAG, in, behind);
    tag_holds(name, in, holds);
    if (but == NULL)
        take_tag(session, l, behind);
    if (c.snapshot != 0 && (but == NULL || but->record != c.holder.record))
        take_tag(session, &c.holder, holds);
}

/* The branch itself keeps what of it is in the other line. */
static esdm_status
note_own(esdm_session *session, const char *name, const line *l, const char *in, uint64_t snapshot,
         esdm_error *err)
{
    tag_name merged;
    tag_in(ESDM__MERGED_TAG, in, merged);
    esdm_status status = set_tag(session, l, merged, snapshot, NULL, err);
    if (status == ESDM_OK)
        drop_behind(session, name, l, in, NULL);
    return status;
}

/* Somebody else does. */
static esdm_status
note_behind(esdm_session *session, const char *name, const line *l, const char *in, const common *c,
            uint64_t began, esdm_error *err)
{
    tag_name holds, behind;
    tag_holds(name, in, holds);
    tag_in(BEHIND_TAG, in, behind);
    esdm_status status = set_tag(session, &c->holder, holds, c->snapshot, NULL, err);
    if (status == ESDM_OK)
        drop_behind(session, name, l, in, &c->holder);
    return status == ESDM_OK ? set_tag(session, l, behind, began, c->branch, err) : status;
}

/* One line that the parent of a new branch began with. */
static esdm_status
begin_in(esdm_session *session, const char *parent, const char *name, const line *l, const char *in,
         uint64_t from, esdm_error *err)
{
    tag_name began;
    common c;
    line other;
    tag_began(parent, began);
    wanted w = {.name = began};
    esdm_status status = find_common(session, parent, in, &c, err);
    if (status != ESDM_OK || c.snapshot == 0)
        return status;
    if (c.snapshot >= from)
        status = note_own(session, name, l, in, from, err);
    else if (!c.is_fork)
        status = note_behind(session, name, l, in, &c, from, err);
    if (status == ESDM_OK)
        status = find_line(session, in, &other, err);
    if (status == ESDM_OK)
        status = find_tag(session, other.record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    tag_began(name, began);
    return set_tag(session, &other, began, w.snapshot, NULL, err);
}

esdm_status
esdm__line_begin(esdm_session *session, const char *parent, const char *name, uint64_t snapshot,
                 esdm_error *err)
{
    tag_name tag;
    line l;
    char in[ESDM_CONTAINER_NAME_MAX + 1], of[ESDM_CONTAINER_NAME_MAX + 1];
    const char *branch = esdm__name_branch(parent, NULL);
    esdm_status status = find_line(session, name, &l, err);
    (void) snprintf(tag, sizeof tag, PARENT_TAG "%s", branch != NULL ? branch : "");
    if (status == ESDM_OK && branch != NULL)
        status = set_tag(session, &l, tag, snapshot, NULL, err);
    tag_in(ESDM__MERGED_TAG, parent, tag);
    if (status == ESDM_OK)
        status = set_tag(session, &l, tag, snapshot, NULL, err);
    (void) snprintf(of, sizeof of, "%s", parent);
    for (bool more = branch != NULL; more && status == ESDM_OK;) {
        status = esdm__line_parent(session, of, in, NULL, NULL, err);
        if (status == ESDM_OK)
            status = begin_in(session, parent, name, &l, in, snapshot, err);
        (void) snprintf(of, sizeof of, "%s", in);
        more = esdm__name_branch(of, NULL) != NULL;
    }
    return status;
}

/* ---- after a merge -------------------------------------------------------------------------- */

/* A line that is, up to a snapshot, in another one now. */
typedef struct spread {
    const char *name;
    uint64_t snapshot;
    const char *in;
    bool newest; /* the snapshot is its newest one: it has all that was merged into it */
} spread;

/* So is what it has of a branch. */
static esdm_status
spread_to(esdm_session *session, const spread *s, const char *name, esdm_error *err)
{
    common has, there;
    line l, other;
    uint64_t from = 0;
    char parent[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_status status = find_common(session, name, s->name, &has, err);
    if (status == ESDM_OK && has.related)
        status = find_common(session, name, s->in, &there, err);
    if (status != ESDM_OK || !has.related || !there.related || has.snapshot == 0)
        return status;
    status = find_line(session, name, &l, err);
    if (status == ESDM_OK)
        status = esdm__line_parent(session, name, parent, &from, NULL, err);
    if (status == ESDM_OK)
        status = find_line(session, s->name, &other, err);
    if (status != ESDM_OK)
        return status;
    bool direct = strcmp(parent, s->name) == 0;
    uint64_t fork = direct ? from : has.is_fork ? has.snapshot : 0;
    if (!s->newest && fork == 0) /* when it came into the line is not known */
        return ESDM_OK;
    if (!s->newest && fork > s->snapshot) {
        has = (common){.holder = other, .snapshot = s->snapshot};
        (void) snprintf(has.branch, sizeof has.branch, "%s", esdm__name_branch(s->name, NULL));
    } else if (!s->newest && direct) {
        has = (common){.holder = l, .snapshot = from, .is_own = true};
    }
    if (has.snapshot <= there.snapshot)
        return ESDM_OK;
    return has.is_own ? note_own(session, name, &l, s->in, has.snapshot, err)
                      : note_behind(session, name, &l, s->in, &has, from, err);
}

/* Texts of tags whose names begin alike. */
typedef struct texts {
    const char *begins;
    struct pair {
        char *rest;   /* owned; of the tag's name */
        char *author; /* owned */
        uint64_t snapshot;
    } * items; /* owned */
    size_t count;
    bool failed;
} texts;

static bool
note_text(const esdm_meta_tag *tag, void *user)
{
    texts *t = user;
    size_t bytes = strlen(t->begins);
    if (strncmp(tag->name, t->begins, bytes) != 0)
        return true;
    t->failed = !esdm__array_grow(&t->items, t->count, sizeof *t->items);
    if (t->failed)
        return false;
    struct pair *one = &t->items[t->count++];
    *one = (struct pair){strdup(tag->name + bytes), strdup(tag->author != NULL ? tag->author : ""),
                         tag->snapshot};
    t->failed = one->rest == NULL || one->author == NULL;
    return !t->failed;
}

static void
clear_texts(texts *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->items[i].rest);
        free(t->items[i].author);
    }
    free(t->items);
}

/* clear_texts(), in any case. */
static esdm_status
load_texts(esdm_session *session, uint64_t record, const char *begins, texts *t, esdm_error *err)
{
    *t = (texts){.begins = begins};
    esdm_status status = session->meta->tag_list(session->store, record, note_text, t, err);
    return status == ESDM_OK && t->failed
               ? esdm__error_nomem(err, t->count * sizeof *t->items, "tags")
               : status;
}

/* To the branches that began with it, directly or not: its tags name them. */
static esdm_status
spread_to_all(esdm_session *session, const spread *s, uint64_t record, esdm_error *err)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    texts all;
    esdm_status status = load_texts(session, record, ESDM__BRANCH_TAG, &all, err);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        beside(s->name, all.items[i].rest, name);
        status = spread_to(session, s, name, err);
    }
    clear_texts(&all);
    return status;
}

/* Of a line between the branch and the one that has it now: up to where the branch began. */
static esdm_status
spread_from(esdm_session *session, const char *between, const char *name, const char *in,
            esdm_error *err)
{
    tag_name began;
    common there;
    line l;
    tag_began(name, began);
    wanted w = {.name = began};
    esdm_status status = find_line(session, between, &l, err);
    if (status == ESDM_OK && l.record != 0)
        status = find_tag(session, l.record, &w, err);
    if (status != ESDM_OK || w.snapshot == 0)
        return status;
    status = find_common(session, between, in, &there, err);
    if (status != ESDM_OK || !there.related)
        return status;
    const spread s = {.name = between, .snapshot = w.snapshot, .in = in};
    if (w.snapshot > there.snapshot)
        status = note_own(session, between, &l, in, w.snapshot, err);
    return status == ESDM_OK ? spread_to_all(session, &s, l.record, err) : status;
}

esdm_status
esdm__line_merged(esdm_session *session, const char *name, uint64_t snapshot, const char *in,
                  esdm_error *err)
{
    char of[ESDM_CONTAINER_NAME_MAX + 1], parent[ESDM_CONTAINER_NAME_MAX + 1];
    line l;
    esdm_meta_container record;
    esdm_status status = session->meta->container_find(session->store, name, &record, err);
    if (status == ESDM_OK)
        status = find_line(session, name, &l, err);
    if (status != ESDM_OK)
        return status;
    const spread s = {
        .name = name, .snapshot = snapshot, .in = in, .newest = record.snapshot == snapshot};
    status = spread_to_all(session, &s, record.container, err);
    (void) snprintf(of, sizeof of, "%s", name);
    while (status == ESDM_OK) {
        status = esdm__line_parent(session, of, parent, NULL, NULL, err);
        if (status != ESDM_OK || esdm__name_branch(parent, NULL) == NULL || strcmp(parent, in) == 0)
            break;
        status = spread_from(session, parent, name, in, err);
        (void) snprintf(of, sizeof of, "%s", parent);
    }
    return status == ESDM_OK ? note_own(session, name, &l, in, snapshot, err) : status;
}

/* ---- going ---------------------------------------------------------------------------------- */

/* What others keep for it. */
static void
drop_held(esdm_session *session, const char *name, uint64_t record)
{
    char in[ESDM_CONTAINER_NAME_MAX + 1];
    line l = {.record = record};
    texts behind;
    esdm_error ignored;
    (void) snprintf(l.stored, sizeof l.stored, "%s", name);
    if (load_texts(session, record, BEHIND_TAG, &behind, &ignored) == ESDM_OK) {
        for (size_t i = 0; i < behind.count; i++) {
            const char *rest = behind.items[i].rest;
            if (rest[0] == ':')
                beside(name, rest + 1, in);
            else
                base_name(name, in);
            drop_behind(session, name, &l, in, NULL);
        }
    }
    clear_texts(&behind);
}

void
esdm__line_gone(esdm_session *session, const char *name, uint64_t record)
{
    tag_name began;
    char parent[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error ignored;
    line l = {.record = record};
    if (esdm__name_branch(name, NULL) == NULL || session->meta->tag_remove == NULL)
        return;
    tag_began(name, began);
    drop_held(session, name, record);
    (void) snprintf(parent, sizeof parent, "%s", name);
    while (l.record != 0 && esdm__name_branch(parent, NULL) != NULL) {
        char of[ESDM_CONTAINER_NAME_MAX + 1];
        uint64_t snapshot;
        (void) snprintf(of, sizeof of, "%s", parent);
        if (parent_of(session, of, l.record, parent, NULL, &ignored) != ESDM_OK ||
            find_tagged(session, parent, began, &l, &snapshot, &ignored) != ESDM_OK)
            return;
        take_tag(session, &l, began);
    }
}

void
esdm__line_forget(esdm_session *session, const char *name)
{
    static const char *const kinds[] = {ESDM__MERGED_TAG, PARENT_TAG, BEHIND_TAG};
    line l;
    esdm_error ignored;
    if (session->meta->tag_remove == NULL || find_line(session, name, &l, &ignored) != ESDM_OK ||
        l.record == 0)
        return;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        texts all;
        if (load_texts(session, l.record, kinds[k], &all, &ignored) == ESDM_OK) {
            for (size_t i = 0; i < all.count; i++) {
                tag_name tag;
                (void) snprintf(tag, sizeof tag, "%s%s", kinds[k], all.items[i].rest);
                take_tag(session, &l, tag);
            }
        }
        clear_texts(&all);
    }
}
