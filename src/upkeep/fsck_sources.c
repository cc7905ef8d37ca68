/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fragments whose values lie outside of the site: whether their files are what they were. */

#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "esdm/reference.h"
#include "io/read/elsewhere.h"
#include "io/session/held_files.h"
#include "model/box.h"
#include "upkeep/fsck.h"

typedef struct sources {
    esdm__fsck_container *container;
    const char *dataset;
    uint64_t count; /* fragments that were looked at */
    uint64_t bytes; /* read of them */
    esdm_status status;
    esdm_error error; /* the check cannot go on */
} sources;

/* Whether a file of this container was told already; enters it otherwise, when `add` says so. */
static bool
was_told(const sources *s, const esdm__fragment *fragment, bool add)
{
    esdm__fsck_container *c = s->container;
    const esdm__source *source = fragment->elsewhere.source;
    uint64_t digest = esdm__checksum(source->data, source->bytes);
    bool found = false;
    (void) pthread_mutex_lock(&c->check->lock);
    for (uint32_t i = 0; i < c->nsources_told && !found; i++)
        found = c->sources_told[i] == digest;
    if (!found && add && c->nsources_told < ESDM__FSCK_SOURCES)
        c->sources_told[c->nsources_told++] = digest;
    (void) pthread_mutex_unlock(&c->check->lock);
    return found;
}

static void
tell(sources *s, const esdm__fragment *fragment, const esdm_error *error)
{
    char place[512], box[160], what[ESDM_ERROR_MESSAGE_BYTES + 300];
    esdm__source_describe(fragment, place, sizeof place);
    (void) esdm__box_print(&fragment->box, box, sizeof box);
    (void) snprintf(what, sizeof what, "fragment %s cannot be read: %s", box, error->message);
    /* Values that were let go are no damage, and what is pinned is in ESDM. */
    bool dropped = strstr(place, "'" ESDM_RECIPE_LOCATION "'") != NULL;
    bool held = strstr(place, "'" ESDM__HELD_PREFIX) != NULL;
    bool pinned = !held && s->container->model != NULL &&
                  esdm_container_hint(s->container->model, ESDM_REFERENCE_PIN) != NULL;
    if (pinned)
        (void) snprintf(what, sizeof what,
                        "fragment %s of snapshots before the container was pinned cannot be read: "
                        "%s",
                        box, error->message);
    const esdm_finding finding = {
        .kind = dropped || pinned ? ESDM_FINDING_NOTE : ESDM_FINDING_PROBLEM,
        .status = error->status,
        .container = s->container->label,
        .dataset = s->dataset,
        .place = place,
        .what = what,
        .remedy = dropped || pinned || held
                      ? NULL
                      : "bring the file back as it was, or refer to it again (esdm-ref -f)"};
    esdm__fsck_report(s->container, &finding);
}

static bool
look_at(const esdm__fragment *fragment, void *user)
{
    sources *s = user;
    const esdm__source_ops *ops = esdm__source_ops_of(fragment->kind);
    bool data = s->container->check->options->data;
    if (!esdm__kind_is_elsewhere(fragment->kind) || ops == NULL || ops->check == NULL)
        return true;
    s->count++;
    if (was_told(s, fragment, false))
        return true;
    esdm_error error = {0};
    esdm_status status = ops->check(s->container->check->session, fragment, data, &error);
    s->bytes += data ? fragment->stored_bytes : 0;
    if (status == ESDM_ENOMEM) {
        s->status = status;
        s->error = error;
        return false;
    }
    if (status != ESDM_OK && !was_told(s, fragment, true))
        tell(s, fragment, &error);
    return true;
}

esdm_status
esdm__fsck_sources(esdm__fsck_container *c, const char *dataset, const esdm__page *page,
                   uint64_t *count, uint64_t *bytes, esdm_error *err)
{
    sources s = {.container = c, .dataset = dataset};
    if (strcmp(c->stored, c->name) != 0)
        return ESDM_OK; /* a former container, whose files go on without it */
    (void) esdm__page_visit(page, look_at, &s);
    *count += s.count;
    *bytes += s.bytes;
    if (s.status != ESDM_OK && err != NULL)
        *err = s.error;
    return s.status;
}
