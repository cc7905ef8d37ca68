/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Verifying a site: all containers, then the packs that none of them refers to. */

#include "upkeep/fsck.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/container_io.h"
#include "io/io.h"
#include "io/session/former.h"
#include "upkeep/asked.h"
#include "upkeep/upkeep.h"

void
esdm__fsck_report(esdm__fsck_container *c, const esdm_finding *finding)
{
    esdm__fsck *check = c->check;
    (void) pthread_mutex_lock(&check->lock);
    bool wrong = finding->kind == ESDM_FINDING_PROBLEM || finding->kind == ESDM_FINDING_REPAIRED;
    if (c->waits &&
        (finding->kind == ESDM_FINDING_PROBLEM || finding->kind == ESDM_FINDING_CONSEQUENCE) &&
        esdm__fsck_findings_add(&c->waiting, finding)) {
        (void) pthread_mutex_unlock(&check->lock);
        return;
    }
    check->result.problems += wrong;
    check->result.repaired += finding->kind == ESDM_FINDING_REPAIRED;
    if (check->options->report != NULL)
        check->options->report(finding, check->options->user);
    (void) pthread_mutex_unlock(&check->lock);
}

char *
esdm__fsck_dataset_name(const esdm__fsck_container *c, uint32_t dataset)
{
    char *text = NULL;
    const esdm_dataset *known =
        c->model != NULL ? esdm__container_dataset(c->model, dataset) : NULL;
    if (known != NULL)
        return esdm__dataset_path(known);
    return asprintf(&text, "dataset %" PRIu32, dataset) < 0 ? NULL : text;
}

/* ---- one container ------------------------------------------------------------------------ */

typedef struct page_task {
    esdm__fsck_container *container;
    const esdm__page_list *pages;
} page_task;

static esdm_status
check_page(void *context, size_t i, esdm_error *err)
{
    const page_task *task = context;
    esdm__fsck_container *c = task->container;
    esdm__fsck *check = c->check;
    const esdm_meta_page entry = esdm__page_list_at(task->pages, i);
    esdm_status status = esdm__fsck_page(c, &entry, err);
    (void) pthread_mutex_lock(&check->lock);
    check->looked_at += c->again ? 0 : entry.records;
    if (check->options->progress != NULL && check->fragments > 0)
        check->options->progress((double) check->looked_at / (double) check->fragments, c->label,
                                 check->options->user);
    (void) pthread_mutex_unlock(&check->lock);
    return status;
}

/* What the store cannot tell because its own rows are damaged is a problem of the container; the
 * check goes on with what can be read. */
static esdm_status
tell_damage(esdm__fsck_container *c, esdm_status status, const esdm_error *error)
{
    if (status != ESDM_ECORRUPT)
        return status;
    if (strstr(c->told.message, error->message) == NULL) /* it may have been told with a prefix */
        esdm__fsck_report_rows(c, NULL, error->message,
                               "bring the metadata store back from a backup");
    c->told = *error;
    return ESDM_OK;
}

/* @param dataset 0: of all datasets */
static esdm_status
check_pages_of(esdm__fsck_container *c, uint32_t dataset, esdm_error *err)
{
    esdm__page_list pages = {0};
    page_task task = {.container = c, .pages = &pages};
    esdm_status status = esdm__page_list_load(c->check->session, c->record,
                                              ESDM_META_EVERY_SNAPSHOT, dataset, &pages, err);
    if (status == ESDM_OK)
        status = esdm__pool_run(c->check->session->pool, pages.count, check_page, &task, err);
    esdm__page_list_clear(&pages);
    return status;
}

static esdm_status
check_pages(esdm__fsck_container *c, esdm_error *err)
{
    esdm_error error = {0};
    esdm_status status = check_pages_of(c, 0, &error);
    if (status == ESDM_ECORRUPT && c->model != NULL) {
        status = tell_damage(c, status, &error);
        for (size_t i = 0; i < c->model->datasets.count && status == ESDM_OK; i++) {
            const esdm_dataset *dataset = c->model->datasets.items[i];
            status = tell_damage(c, check_pages_of(c, dataset->id, &error), &error);
        }
    }
    if (status != ESDM_OK && err != NULL)
        *err = error;
    return status;
}

static void
report_document(esdm__fsck_container *c, uint64_t snapshot, esdm_status status, const char *what)
{
    char place[64];
    if (snapshot == ESDM_SNAPSHOT_LATEST)
        (void) snprintf(place, sizeof place, "newest snapshot");
    else
        (void) snprintf(place, sizeof place, "snapshot %" PRIu64, snapshot);
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = status,
                                  .container = c->label,
                                  .place = place,
                                  .what = what,
                                  .remedy = status == ESDM_ENOTSUP
                                                ? "use a newer ESDM"
                                                : "bring the metadata store back from a backup"};
    esdm__fsck_report(c, &finding);
}

/* Opens the container at a snapshot; what is wrong with its structure is reported.
 * @param ret_model NULL when it cannot be read, or has gone. */
static esdm_status
open_model(esdm__fsck_container *c, uint64_t snapshot, esdm_container **ret_model, esdm_error *err)
{
    esdm_error error = {0};
    *ret_model = NULL;
    esdm_status status =
        esdm__io_open(c->check->session, c->stored, ESDM_OPEN_READ, snapshot, ret_model, &error);
    if (status == ESDM_OK || status == ESDM_ENOENT)
        return ESDM_OK;
    if (status == ESDM_ECORRUPT || status == ESDM_ENOTSUP) {
        report_document(c, snapshot, status, error.message);
        c->told = error;
        c->check->store_damaged = c->check->store_damaged || status == ESDM_ECORRUPT;
        return ESDM_OK;
    }
    if (err != NULL)
        *err = error;
    return status;
}

typedef struct snapshots {
    uint64_t *numbers; /* owned */
    size_t count;
    bool failed;
} snapshots;

static bool
note_snapshot(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
              const char *message, void *user)
{
    snapshots *to = user;
    (void) parent, (void) time_ns, (void) writer, (void) message;
    uint64_t *grown = realloc(to->numbers, (to->count + 1) * sizeof *grown);
    to->failed = grown == NULL;
    if (grown == NULL)
        return false;
    to->numbers = grown;
    to->numbers[to->count++] = snapshot;
    return true;
}

/* The documents of older snapshots that are kept. */
static esdm_status
check_history(esdm__fsck_container *c, esdm_error *err)
{
    const esdm_session *session = c->check->session;
    snapshots list = {0};
    esdm_status status =
        session->meta->snapshot_list(session->store, c->stored, note_snapshot, &list, err);
    if (status == ESDM_ENOENT) /* removed since it was listed */
        status = ESDM_OK;
    else if (status == ESDM_OK && list.failed)
        status = esdm__error_nomem(err, list.count * sizeof *list.numbers, "snapshots");
    for (size_t i = 0; i + 1 < list.count && status == ESDM_OK; i++) {
        esdm_container *model = NULL;
        status = open_model(c, list.numbers[i], &model, err);
        esdm__container_drop(model);
    }
    free(list.numbers);
    return status;
}

static esdm_status
check_model(esdm__fsck_container *c, esdm_error *err)
{
    esdm_status status = open_model(c, ESDM_SNAPSHOT_LATEST, &c->model, err);
    if (status != ESDM_OK || c->model == NULL)
        return status;
    c->record = esdm__io_of(c->model)->record;
    status = tell_damage(c, esdm__fsck_attributes(c, err), err);
    return status == ESDM_OK ? tell_damage(c, esdm__fsck_totals(c, err), err) : status;
}

static esdm_status
check_record(esdm__fsck_container *c, esdm_error *err)
{
    esdm_status status = check_model(c, err);
    if (status == ESDM_OK)
        status = tell_damage(c, check_history(c, err), err);
    c->waits = c->check->options->repair;
    if (status == ESDM_OK)
        status = check_pages(c, err);
    if (status == ESDM_OK && c->waits)
        status = esdm__fsck_repair(c, check_pages, err);
    c->waits = false;
    for (size_t i = 0; i < c->waiting.count; i++) /* of a look that did not come to its end */
        esdm__fsck_report(c, &c->waiting.items[i]);
    return status;
}

static esdm_status
check_container(esdm__fsck *check, const char *name, esdm_error *err)
{
    char label[ESDM__FORMER_NAME_BYTES];
    esdm__former former;
    esdm__fsck_container c = {.check = check, .stored = name, .name = name, .label = label};
    esdm__former_tell(name, label, sizeof label);
    if (esdm__former_parse(name, &former))
        c.name = former.name;
    esdm_meta_container record;
    esdm_error error = {0};
    esdm_status status =
        check->session->meta->container_find(check->session->store, name, &record, &error);
    if (status == ESDM_ENOENT) /* removed since it was listed */
        return ESDM_OK;
    c.record = record.container;
    if (status == ESDM_OK)
        status = check_record(&c, &error);
    status = tell_damage(&c, status, &error);
    esdm__needs_clear(&c.needs);
    esdm__fsck_findings_clear(&c.waiting);
    esdm__container_drop(c.model);
    check->result.containers++;
    if (status != ESDM_OK && err != NULL)
        *err = error;
    return status == ESDM_OK ? ESDM_OK : esdm__error_prefix(err, status, "container '%s'", label);
}

/* ---- all of them -------------------------------------------------------------------------- */

typedef struct name_list {
    esdm__fsck *check;
    char **names; /* owned */
    char **uuids;
    size_t count;
} name_list;

static bool
note_name(const char *name, const esdm_meta_container *record, void *user)
{
    name_list *to = user;
    char **names = realloc(to->names, (to->count + 1) * sizeof *names);
    to->names = names != NULL ? names : to->names;
    char **uuids = realloc(to->uuids, (to->count + 1) * sizeof *uuids);
    to->uuids = uuids != NULL ? uuids : to->uuids;
    char *name_copy = strdup(name);
    char *uuid_copy = strdup(record->uuid);
    if (names == NULL || uuids == NULL || name_copy == NULL || uuid_copy == NULL) {
        free(name_copy);
        free(uuid_copy);
        return false;
    }
    to->names[to->count] = name_copy;
    to->uuids[to->count++] = uuid_copy;
    to->check->fragments += record->fragments;
    return true;
}

static void
clear_names(name_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->names[i]);
        free(list->uuids[i]);
    }
    free(list->names);
    free(list->uuids);
}

/* Packs first: what is made afterwards is looked for when a page refers to it. */
static esdm_status
list_packs(esdm__fsck *check, const name_list *list, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (check->options->containers == NULL)
        status = esdm__inventory_add(&check->packs, check->session, NULL, err);
    for (size_t i = 0; check->options->containers != NULL && i < list->count && status == ESDM_OK;
         i++)
        status = esdm__inventory_add(&check->packs, check->session, list->uuids[i], err);
    esdm__inventory_sort(&check->packs);
    check->result.packs = check->packs.count;
    return status;
}

static int
by_uuid(const void *a, const void *b)
{
    return strncmp(*(char *const *) a, *(char *const *) b, ESDM__UUID_DIGITS);
}

/* How many of them are of containers that the catalogue does not know: of writers that were killed
 * before their first commit, or of a catalogue that is older than its targets. */
static uint64_t
count_unknown(const esdm__fsck *check, const name_list *list, const esdm__strays *strays)
{
    uint64_t unknown = 0;
    if (list->count == 0)
        return strays->dead;
    char **uuids = malloc((list->count + 1) * sizeof *uuids);
    if (uuids == NULL)
        return 0;
    memcpy(uuids, list->uuids, list->count * sizeof *uuids);
    qsort(uuids, list->count, sizeof *uuids, by_uuid);
    for (uint64_t i = 0; i < strays->dead; i++) {
        const char *name = check->packs.entries[strays->dead_packs[i]].name;
        unknown += bsearch(&name, uuids, list->count, sizeof *uuids, by_uuid) == NULL;
    }
    free(uuids);
    return unknown;
}

static esdm_status
check_orphans(esdm__fsck *check, const name_list *list, esdm_error *err)
{
    esdm__strays strays = {0};
    esdm_error error = {0};
    esdm_status status =
        esdm__strays_find(check->session, &check->packs, NULL, false, &strays, &error);
    if (status == ESDM_ECORRUPT) {
        if (!check->store_damaged) /* else it was told with its place */
            esdm__fsck_report_store(check, error.message);
        free(strays.dead_packs);
        return ESDM_OK;
    }
    if (status != ESDM_OK && err != NULL)
        *err = error;
    check->result.orphans = strays.dead;
    check->result.orphan_bytes = strays.dead_bytes;
    check->result.unpublished = strays.living;
    if (status == ESDM_OK && strays.dead > 0 && check->options->report != NULL) {
        char what[240], strange[96] = "";
        const uint64_t unknown = count_unknown(check, list, &strays);
        if (unknown > 0)
            (void) snprintf(strange, sizeof strange,
                            "; %" PRIu64 " of containers that the catalogue does not know",
                            unknown);
        (void) snprintf(what, sizeof what,
                        "%" PRIu64 " pack%s with %" PRIu64
                        " bytes that no container refers to, of writers that are gone%s",
                        strays.dead, strays.dead == 1 ? "" : "s", strays.dead_bytes, strange);
        const esdm_finding finding = {
            .kind = ESDM_FINDING_NOTE,
            .what = what,
            .remedy = check->store_damaged ? "mend the metadata store first: they may "
                                             "belong to what it has lost"
                      : unknown > 0        ? "when the catalogue was lost or put back from "
                                             "a backup: 'esdm-mkfs --restore --dry-run' "
                                             "tells what they are; else esdm-gc removes "
                                             "what is old enough"
                                           : "esdm-gc removes what is old enough"};
        check->options->report(&finding, check->options->user);
    }
    free(strays.dead_packs);
    return status;
}

esdm_status
esdm__upkeep_fsck(esdm_session *session, const esdm_fsck_options *options,
                  esdm_fsck_result *ret_result, esdm_error *err)
{
    esdm__fsck check = {.session = session, .options = options};
    name_list list = {.check = &check};
    (void) pthread_mutex_init(&check.lock, NULL);
    esdm_error error = {0};
    esdm_status status = esdm__asked_visit(session, options->containers, options->ncontainers, NULL,
                                           note_name, &list, &error);
    if (status == ESDM_ECORRUPT) { /* those that are known are looked at */
        esdm__fsck_report_store(&check, error.message);
        status = ESDM_OK;
    }
    if (status != ESDM_OK && err != NULL)
        *err = error;
    size_t absent = esdm__targets_report(session, options->report, options->user);
    check.result.problems += absent;
    check.targets = (uint32_t) (session->ntargets - absent);
    if (status == ESDM_OK && options->containers == NULL && !check.store_damaged)
        esdm__fsck_store(&check);
    if (status == ESDM_OK && options->containers == NULL && !check.store_damaged)
        check.result.problems += esdm__put_back_report(session, options->report, options->user);
    if (status == ESDM_OK)
        status = list_packs(&check, &list, err);
    for (size_t i = 0; i < list.count && status == ESDM_OK; i++)
        status = check_container(&check, list.names[i], err);
    if (status == ESDM_OK && options->containers == NULL)
        status = check_orphans(&check, &list, err);
    clear_names(&list);
    esdm__inventory_clear(&check.packs);
    (void) pthread_mutex_destroy(&check.lock);
    *ret_result = check.result;
    return status;
}
