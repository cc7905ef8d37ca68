/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Mending a container: fragments are stored anew from what is sound of them, then all is
 *  looked at once more. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/dataset_io.h"
#include "upkeep/fsck.h"
#include "upkeep/move.h"

/* ---- findings that wait ------------------------------------------------------------------- */

static bool
copy_text(const char *text, const char **ret_copy)
{
    *ret_copy = text != NULL ? strdup(text) : NULL;
    return text == NULL || *ret_copy != NULL;
}

static void
free_finding(esdm_finding *finding)
{
    free((void *) finding->container);
    free((void *) finding->dataset);
    free((void *) finding->place);
    free((void *) finding->what);
    free((void *) finding->remedy);
}

bool
esdm__fsck_findings_add(esdm__fsck_findings *list, const esdm_finding *finding)
{
    esdm_finding copy = {.kind = finding->kind, .status = finding->status};
    bool good = copy_text(finding->container, &copy.container);
    good = copy_text(finding->dataset, &copy.dataset) && good;
    good = copy_text(finding->place, &copy.place) && good;
    good = copy_text(finding->what, &copy.what) && good;
    good = copy_text(finding->remedy, &copy.remedy) && good;
    esdm_finding *grown = good ? realloc(list->items, (list->count + 1) * sizeof *grown) : NULL;
    if (grown == NULL) {
        free_finding(&copy);
        return false;
    }
    list->items = grown;
    list->items[list->count++] = copy;
    return true;
}

void
esdm__fsck_findings_clear(esdm__fsck_findings *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_finding(&list->items[i]);
    free(list->items);
    *list = (esdm__fsck_findings){0};
}

static bool
same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
holds(const esdm__fsck_findings *list, const esdm_finding *finding)
{
    for (size_t i = 0; i < list->count; i++) {
        const esdm_finding *one = &list->items[i];
        if (same_text(one->dataset, finding->dataset) && same_text(one->place, finding->place) &&
            same_text(one->what, finding->what))
            return true;
    }
    return false;
}

/* ---- storing anew ------------------------------------------------------------------------- */

static bool
wants(void *user, uint32_t dataset, const esdm__fragment *fragment, uint32_t *ret_copies)
{
    const esdm__fsck_container *c = user;
    (void) dataset;
    *ret_copies = esdm__needs_find(&c->needs, fragment);
    return *ret_copies > 0;
}

static esdm_status
store_anew(esdm__fsck_container *c, esdm_error *err)
{
    esdm__moved moved = {0};
    esdm_error error = {0};
    const esdm__move_job job = {.session = c->check->session,
                                .name = c->name,
                                .container = c->record,
                                .uuid = esdm__io_of(c->model)->uuid,
                                .model = c->model,
                                .wants = wants,
                                .user = c};
    esdm_status status = esdm__move(&job, &moved, NULL, &error);
    if (status == ESDM_ENOMEM) {
        if (err != NULL)
            *err = error;
        return status;
    }
    if (status == ESDM_OK)
        return ESDM_OK;
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = status,
                                  .container = c->label,
                                  .what = error.message,
                                  .remedy = "see to it that there is room, and repair again"};
    esdm__fsck_report(c, &finding);
    return ESDM_OK;
}

esdm_status
esdm__fsck_repair(esdm__fsck_container *c,
                  esdm_status (*look)(esdm__fsck_container *, esdm_error *), esdm_error *err)
{
    esdm__fsck_findings before = c->waiting;
    esdm_status status = ESDM_OK;
    bool again = c->needs.count > 0 && c->model != NULL;
    if (again) {
        c->waiting = (esdm__fsck_findings){0};
        c->again = true;
        c->nsources_told = 0;
        c->told = (esdm_error){0}; /* the second look is to tell it again */
        atomic_store(&c->absent, 0);
        status = store_anew(c, err);
        esdm__needs_clear(&c->needs);
        if (status == ESDM_OK)
            status = look(c, err);
    }
    esdm__fsck_findings after = again ? c->waiting : (esdm__fsck_findings){0};
    c->waiting = (esdm__fsck_findings){0};
    c->waits = false;
    for (size_t i = 0; i < before.count; i++) {
        bool repaired = again && status == ESDM_OK && !holds(&after, &before.items[i]);
        if (again && status == ESDM_OK && !repaired)
            continue;
        if (repaired) {
            before.items[i].kind = ESDM_FINDING_REPAIRED;
            free((void *) before.items[i].remedy);
            before.items[i].remedy = strdup("stored anew");
        }
        esdm__fsck_report(c, &before.items[i]);
    }
    for (size_t i = 0; i < after.count; i++) {
        if (status == ESDM_OK || !holds(&before, &after.items[i]))
            esdm__fsck_report(c, &after.items[i]);
    }
    esdm__fsck_findings_clear(&before);
    esdm__fsck_findings_clear(&after);
    return status;
}
