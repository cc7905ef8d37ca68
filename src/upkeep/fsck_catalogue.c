/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What the catalogue says, against itself. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/error.h"
#include "io/container/dataset_io.h"
#include "meta/attribute_index.h"
#include "site/site.h"
#include "upkeep/fsck.h"
#include "upkeep/upkeep.h"

/* ---- the store ---------------------------------------------------------------------------- */

void
esdm__fsck_report_store(esdm__fsck *check, const char *what)
{
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = ESDM_ECORRUPT,
                                  .what = what,
                                  .remedy = "bring the metadata store back from a backup"};
    check->result.problems++;
    check->store_damaged = true;
    if (check->options->report != NULL)
        check->options->report(&finding, check->options->user);
}

void
esdm__fsck_store(esdm__fsck *check)
{
    esdm_error error = {0};
    if (esdm__store_check(check->session, &error) == ESDM_ECORRUPT)
        esdm__fsck_report_store(check, error.message);
}

/* ---- totals ------------------------------------------------------------------------------- */

void
esdm__fsck_report_rows(esdm__fsck_container *c, const char *dataset, const char *what,
                       const char *remedy)
{
    const esdm_finding finding = {.kind = ESDM_FINDING_PROBLEM,
                                  .status = ESDM_ECORRUPT,
                                  .container = c->label,
                                  .dataset = dataset,
                                  .what = what,
                                  .remedy = remedy};
    esdm__fsck_report(c, &finding);
    c->check->store_damaged = true;
}

static void
report_totals(esdm__fsck_container *c, uint64_t listed, uint64_t committed)
{
    char what[200];
    (void) snprintf(what, sizeof what,
                    "the directory of its index lists %" PRIu64 " fragments, and %" PRIu64
                    " were committed: values may read as fill values, or as they were before",
                    listed, committed);
    esdm__fsck_report_rows(c, NULL, what, ESDM__FSCK_WRITE_AGAIN);
}

static void
check_owner(esdm__fsck_container *c, const esdm_meta_page *entry)
{
    char dataset[32];
    char what[120];
    if (esdm__container_dataset(c->model, entry->dataset) != NULL)
        return;
    (void) snprintf(dataset, sizeof dataset, "dataset %" PRIu32, entry->dataset);
    (void) snprintf(what, sizeof what,
                    "index page %" PRIu64 " belongs to it, and there is no such dataset",
                    entry->page);
    esdm__fsck_report_rows(c, dataset, what, ESDM__FSCK_WRITE_AGAIN);
}

esdm_status
esdm__fsck_totals(esdm__fsck_container *c, esdm_error *err)
{
    const esdm_session *session = c->check->session;
    esdm__page_list pages = {0};
    esdm_meta_container now;
    uint64_t before;
    uint64_t snapshot;
    esdm__container_position(c->model, &before, &snapshot);
    esdm_status status = esdm__page_list_load(session, c->record, snapshot, 0, &pages, err);
    const esdm__page_sums sums = esdm__page_list_sums(&pages);
    for (size_t i = 0; i < pages.count; i++)
        check_owner(c, &pages.entries[i]);
    esdm__page_list_clear(&pages);
    /* Somebody may have committed since. */
    if (status == ESDM_OK &&
        session->meta->container_find(session->store, c->stored, &now, NULL) == ESDM_OK &&
        now.container == c->record && now.snapshot == snapshot &&
        !esdm__page_sums_agree(&sums, &now))
        report_totals(c, sums.fragments, now.fragments);
    return status;
}

/* ---- the attribute index ------------------------------------------------------------------ */

/* The entries of an index in any order: stores give them by dataset, or as they were committed. */
typedef struct index_sum {
    uint64_t entries;
    uint64_t sum;
    esdm__buffer scratch;
} index_sum;

static bool
sum_entry(const esdm_meta_attribute *entry, void *user)
{
    index_sum *to = user;
    const char *texts[3] = {entry->dataset_path, entry->name, entry->text};
    to->scratch.bytes = 0;
    esdm__buffer_put_u32(&to->scratch, entry->dataset);
    for (size_t i = 0; i < 3; i++) {
        esdm__buffer_put_u8(&to->scratch, texts[i] != NULL);
        if (texts[i] != NULL)
            esdm__buffer_put(&to->scratch, texts[i], strlen(texts[i]) + 1);
    }
    bool none = entry->number != entry->number; /* one is as good as another */
    esdm__buffer_put_u8(&to->scratch, entry->has_number);
    if (entry->has_number && !none)
        esdm__buffer_put(&to->scratch, &entry->number, sizeof entry->number);
    to->entries++;
    to->sum += esdm__checksum(to->scratch.data, to->scratch.bytes);
    return !to->scratch.failed;
}

/* Publishes the attribute index anew, by a commit without changes: stores keep it for the newest
 * snapshot alone. */
static esdm_status
rewrite_index(esdm__fsck_container *c, const esdm__attribute_index *right, esdm_error *err)
{
    esdm_session *session = c->check->session;
    const esdm__container_io *io = esdm__io_of(c->model);
    char *document = NULL;
    size_t bytes = 0;
    esdm_meta_committed committed;
    esdm_status status = esdm__document_write(c->model, &document, &bytes, err);
    const esdm_meta_commit commit = {
        .kind = ESDM_META_UPDATE,
        .container = io->record,
        .structure = io->structure,
        .document = document,
        .document_bytes = bytes,
        .datasets = (uint32_t) c->model->datasets.count,
        .attributes = right->entries,
        .nattributes = right->count,
        .writer = esdm__session_writer(session),
        .message = "esdm-fsck: attribute index",
        .durable = session->site->durability == ESDM__DURABLE_SYSTEM,
        .history = UINT32_MAX, /* what goes is not its matter */
    };
    if (status == ESDM_OK)
        status = session->meta->commit(session->store, &commit, &committed, err);
    free(document);
    return status;
}

static void
report_index(esdm__fsck_container *c, const esdm__attribute_index *right)
{
    esdm_error error = {0};
    esdm_finding finding = {
        .kind = ESDM_FINDING_PROBLEM,
        .status = ESDM_ECORRUPT,
        .container = c->label,
        .what = "the attribute index differs from the attributes, so that esdm-find answers wrong",
        .remedy = "esdm-fsck --repair makes it anew",
    };
    if (c->check->options->repair) {
        esdm_status status = rewrite_index(c, right, &error);
        finding.kind = status == ESDM_OK ? ESDM_FINDING_REPAIRED : ESDM_FINDING_PROBLEM;
        finding.remedy = status == ESDM_OK ? "it was made anew" : error.message;
    }
    esdm__fsck_report(c, &finding);
}

esdm_status
esdm__fsck_attributes(esdm__fsck_container *c, esdm_error *err)
{
    const esdm_session *session = c->check->session;
    index_sum stored = {0};
    index_sum right = {0};
    esdm__attribute_index index = {0};
    uint64_t before;
    uint64_t snapshot;
    esdm__container_position(c->model, &before, &snapshot);
    esdm__buffer_init(&stored.scratch);
    esdm__buffer_init(&right.scratch);
    esdm_status status = esdm__attribute_index_make(c->model, &index, err);
    for (size_t i = 0; i < index.count && status == ESDM_OK; i++)
        (void) sum_entry(&index.entries[i], &right);
    if (status == ESDM_OK)
        status = session->meta->attributes(session->store, c->record, sum_entry, &stored, err);
    if (status == ESDM_ECORRUPT) { /* a list that cannot be read differs */
        stored.entries = right.entries + 1;
        status = ESDM_OK;
    }
    bool failed = stored.scratch.failed || right.scratch.failed;
    esdm__buffer_clear(&stored.scratch);
    esdm__buffer_clear(&right.scratch);
    if (status == ESDM_OK && failed)
        status = esdm__error_nomem(err, 1, "the attribute index");
    bool differs = stored.entries != right.entries || stored.sum != right.sum;
    if (status == ESDM_OK && differs) {
        esdm_meta_container now; /* somebody may have committed between */
        differs = session->meta->container_find(session->store, c->stored, &now, NULL) == ESDM_OK &&
                  now.container == c->record && now.snapshot == snapshot;
        if (differs)
            report_index(c, &index);
    }
    esdm__attribute_index_clear(&index);
    return status;
}
