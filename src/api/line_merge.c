/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Merges whose programs ended between the commit and the note of what was merged. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/line_parts.h"
#include "api/line_tags.h"
#include "api/line_vector.h"
#include "base/error.h"
#include "base/ids.h"

/* Who is that long before the commit was interrupted. */
#define LONG_NS (UINT64_C(3600) * 1000000000)
/* As tags say them (esdm__line_way). Versions that know no vectors skip what they cannot read, as
 * they would take the tag without noting anything. */
static const char *const ways[] = {"UP:", "DOWN:", "SIDE:"};
/* As older versions said them. */
static const char *const old_ways[] = {"up:", "down:", "side:"};
#define WAYS (sizeof ways / sizeof *ways)

static void
tag_into(const char *uuid, esdm__tag_name tag)
{
    (void) snprintf(tag, sizeof(esdm__tag_name), ESDM__INTO_TAG "%s", uuid);
}

static void
tag_came(const char *uuid, esdm__tag_name tag)
{
    (void) snprintf(tag, sizeof(esdm__tag_name), ESDM__CAME_TAG "%s", uuid);
}

static const char *
branch_of(const char *name)
{
    const char *branch = esdm__name_branch(name, NULL);
    return branch != NULL ? branch : "";
}

/* Of the same container; no branch: that itself. */
static void
beside(const char *name, const char *branch, char ret[ESDM_CONTAINER_NAME_MAX + 1])
{
    if (branch[0] != '\0')
        esdm__line_beside(name, branch, ret);
    else
        esdm__line_base(name, ret);
}

esdm_status
esdm__line_merge_begin(esdm_session *session, const char *line, uint64_t snapshot, const char *into,
                       esdm__line_way way, const char *has, esdm__line_merge *ret, esdm_error *err)
{
    esdm__tag_name tag;
    esdm__line l;
    size_t bytes = strlen(has) + ESDM_BRANCH_MAX + 16;
    esdm__uuid_new(ret->uuid);
    tag_into(ret->uuid, tag);
    (void) snprintf(ret->name, sizeof ret->name, ESDM__CAME_TAG "%s", ret->uuid);
    ret->author = malloc(bytes);
    if (ret->author == NULL)
        return esdm__error_nomem(err, bytes, "a merge");
    (void) snprintf(ret->author, bytes, "%s%s:%s", ways[way], branch_of(line), has);
    esdm_status status = esdm__line_find(session, line, &l, err);
    if (status == ESDM_OK)
        status = esdm__line_tag_need(session, &l, tag, snapshot, branch_of(into), err);
    if (status == ESDM_OK)
        ret->tag = (esdm_meta_tag){.name = ret->name, .author = ret->author};
    return status;
}

static void
take(esdm_session *session, const char *line, const char *into, const char *uuid)
{
    esdm__tag_name tag;
    esdm__line l;
    esdm_error ignored;
    tag_came(uuid, tag);
    if (esdm__line_find(session, into, &l, &ignored) == ESDM_OK)
        esdm__line_tag_take(session, &l, tag);
    tag_into(uuid, tag);
    if (esdm__line_find(session, line, &l, &ignored) == ESDM_OK)
        esdm__line_tag_take(session, &l, tag);
}

void
esdm__line_merge_end(esdm_session *session, const char *line, const char *into,
                     const esdm__line_merge *merge)
{
    if (merge->tag.name != NULL)
        take(session, line, into, merge->uuid);
}

/* ---- interrupted ---------------------------------------------------------------------------- */

static bool
begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* Of their commits. */
static int
in_order(const void *a, const void *b)
{
    const struct esdm__tag_pair *x = a;
    const struct esdm__tag_pair *y = b;
    return x->snapshot < y->snapshot ? -1 : x->snapshot > y->snapshot;
}

/* What the author of such a tag says. @param ret_has NULL: an older version has noted it. */
static bool
read_author(const char *author, esdm__line_way *ret_way, char ret_branch[ESDM_BRANCH_MAX + 1],
            const char **ret_has)
{
    size_t way = 0;
    while (way < WAYS && !begins_with(author, ways[way]) && !begins_with(author, old_ways[way]))
        way++;
    if (way == WAYS)
        return false;
    const char *branch = author + strlen(ways[way]); /* both are as long */
    const char *end = strchr(branch, ':');
    *ret_way = (esdm__line_way) way;
    *ret_has = end != NULL ? end + 1 : NULL;
    (void) snprintf(ret_branch, ESDM_BRANCH_MAX + 1, "%.*s",
                    (int) (end != NULL ? (size_t) (end - branch) : strlen(branch)), branch);
    return true;
}

static esdm_status
settle_one(esdm_session *session, const char *into, const esdm__line *ours,
           const struct esdm__tag_pair *came, esdm_error *err)
{
    char line[ESDM_CONTAINER_NAME_MAX + 1], branch[ESDM_BRANCH_MAX + 1];
    esdm__tag_name tag;
    esdm__line l;
    esdm__line_way way;
    const char *has;
    esdm__tag_wanted w = {.name = tag};
    esdm_status status = ESDM_OK;
    if (came->snapshot == 0 || !read_author(came->author, &way, branch, &has))
        return ESDM_OK;
    tag_into(came->rest, tag);
    beside(into, branch, line);
    if (has != NULL)
        status = esdm__line_note_vector(session, ours, came->rest, came->snapshot, has, err);
    if (status == ESDM_OK)
        status = esdm__line_find(session, line, &l, err);
    if (status == ESDM_OK && l.record != 0)
        status = esdm__tag_look(session, l.record, &w, err);
    if (status == ESDM_OK && w.snapshot != 0 && way == ESDM__LINE_DOWN)
        status =
            esdm__line_caught_up(session, into, w.snapshot, line, l.record, came->snapshot, err);
    else if (status == ESDM_OK && w.snapshot != 0 && way == ESDM__LINE_UP)
        status = esdm__line_merged(session, line, l.record, w.snapshot, into, came->snapshot, err);
    if (status == ESDM_OK)
        take(session, line, into, came->rest);
    return status;
}

esdm_status
esdm__line_merge_settle(esdm_session *session, const char *into, esdm_error *err)
{
    esdm__line l;
    esdm__tag_texts all = {0};
    esdm_status status = ESDM_OK;
    if (session->meta->tag_list == NULL)
        return ESDM_OK;
    status = esdm__line_find(session, into, &l, err);
    if (status == ESDM_OK && l.record != 0)
        status = esdm__tag_texts_load(session, l.record, ESDM__CAME_TAG, &all, err);
    if (all.count > 1)
        qsort(all.items, all.count, sizeof *all.items, in_order);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++)
        status = settle_one(session, into, &l, &all.items[i], err);
    esdm__tag_texts_clear(&all);
    return status;
}

void
esdm__line_merge_sweep(esdm_session *session, const char *line)
{
    char into[ESDM_CONTAINER_NAME_MAX + 1];
    esdm__line l, other;
    esdm__tag_texts all;
    esdm_error ignored;
    uint64_t now_ns = esdm__now_ns();
    if (esdm__line_find(session, line, &l, &ignored) != ESDM_OK || l.record == 0)
        return;
    esdm_status status = esdm__tag_texts_load(session, l.record, ESDM__INTO_TAG, &all, &ignored);
    for (size_t i = 0; i < all.count && status == ESDM_OK; i++) {
        esdm__tag_name tag;
        esdm__tag_wanted w = {.name = tag};
        const struct esdm__tag_pair *one = &all.items[i];
        tag_came(one->rest, tag);
        beside(line, one->author, into);
        if (one->created_ns + LONG_NS > now_ns ||
            esdm__line_find(session, into, &other, &ignored) != ESDM_OK ||
            (other.record != 0 && esdm__tag_look(session, other.record, &w, &ignored) != ESDM_OK))
            continue;
        if (w.snapshot == 0) {
            tag_into(one->rest, tag);
            esdm__line_tag_take(session, &l, tag);
        }
    }
    esdm__tag_texts_clear(&all);
}
