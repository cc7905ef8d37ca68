/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Tags of a container as the journals tell of them: those of users, and the engine's own
 * (seals, retractions, where branches began and what of them was merged). */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/commit.h"
#include "journal/replay.h"

static esdm_meta_tag *
find(const esdm__whole *whole, const char *name)
{
    for (size_t i = 0; i < whole->ntags; i++) {
        if (strcmp(whole->tags[i].name, name) == 0)
            return &whole->tags[i];
    }
    return NULL;
}

static void
free_texts(const esdm_meta_tag *tag)
{
    free((void *) tag->name);
    free((void *) tag->author);
}

static void
drop(esdm__whole *whole, esdm_meta_tag *tag)
{
    free_texts(tag);
    *tag = whole->tags[--whole->ntags];
}

static bool
is_same(const esdm_meta_tag *a, const esdm_meta_tag *b)
{
    return a->snapshot == b->snapshot && a->created_ns == b->created_ns &&
           strcmp(a->author, b->author) == 0;
}

/* What a record tells happens to the tag of that name. false: out of memory. */
static bool
apply(esdm__whole *whole, const esdm_meta_tag *told, uint64_t time_ns, esdm__replayed *result)
{
    esdm_meta_tag *there = find(whole, told->name);
    if (there != NULL && (there->created_ns > time_ns || is_same(there, told)))
        return true;
    if (there == NULL && told->snapshot == 0)
        return true;
    if (there != NULL)
        drop(whole, there);
    result->tags++;
    return told->snapshot == 0 || esdm__whole_tag(whole, told);
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const esdm_meta_tag *) a)->name, ((const esdm_meta_tag *) b)->name);
}

esdm_status
esdm__replay_tags(const esdm__scan *scan, const esdm__journal_ref *refs, size_t nrefs,
                  uint64_t since_ns, esdm__whole *whole, esdm__replayed *result, esdm_error *err)
{
    for (size_t i = 0; i < nrefs; i++) {
        esdm__journal_record record;
        esdm_meta_tag told = {.name = NULL};
        uint8_t *data = NULL;
        if (refs[i].kind != ESDM__JOURNAL_TAG || refs[i].time_ns < since_ns)
            continue;
        esdm_status status = esdm__scan_load(scan, &refs[i], &record, &data, err);
        if (status == ESDM_OK)
            status = esdm__journal_take_tag(&record, &told, err);
        free(data);
        bool room = status != ESDM_OK || apply(whole, &told, refs[i].time_ns, result);
        free_texts(&told);
        if (status == ESDM_ENOMEM)
            return status;
        if (!room)
            return esdm__error_nomem(err, sizeof told, "the tags of a container");
        result->damaged += status != ESDM_OK;
    }
    if (whole->ntags > 0)
        qsort(whole->tags, whole->ntags, sizeof *whole->tags, by_name);
    return ESDM_OK;
}

/* ---- tags without their snapshots ----------------------------------------------------------- */

static bool
has_snapshot(const esdm__whole *whole, uint64_t snapshot)
{
    for (size_t i = 0; i < whole->nsnapshots; i++) {
        if (whole->snapshots[i].snapshot == snapshot)
            return true;
    }
    return false;
}

static void
tell(const esdm__replay_rules *rules, const esdm_meta_tag *tag)
{
    static const char began[] = "esdm:branch:";
    if (strcmp(tag->name, ESDM_META_TAG_SEAL) == 0)
        esdm__say(rules->say,
                  "container '%s': snapshot %" PRIu64 ", which was sealed, is lost: the container "
                  "is not sealed any more",
                  rules->name, tag->snapshot);
    else if (strncmp(tag->name, began, sizeof began - 1) == 0)
        esdm__say(rules->say,
                  "container '%s': snapshot %" PRIu64 ", with which the branch '%s' began, is lost",
                  rules->name, tag->snapshot, tag->name + sizeof began - 1);
    else
        esdm__say(rules->say, "container '%s': snapshot %" PRIu64 " with the tag '%s' is lost",
                  rules->name, tag->snapshot, tag->name);
}

void
esdm__replay_check_tags(esdm__whole *whole, const esdm__replay_rules *rules, esdm__replayed *result)
{
    for (size_t i = whole->ntags; i-- > 0;) {
        esdm_meta_tag *tag = &whole->tags[i];
        if (has_snapshot(whole, tag->snapshot))
            continue;
        if (strcmp(tag->name, ESDM_META_TAG_RETRACTION) == 0 && whole->nsnapshots > 0) {
            tag->snapshot = whole->record.snapshot; /* it is about all of them */
            continue;
        }
        tell(rules, tag);
        result->lost_tags++;
        drop(whole, tag);
    }
    if (whole->ntags > 0)
        qsort(whole->tags, whole->ntags, sizeof *whole->tags, by_name);
}
