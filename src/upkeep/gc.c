/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Removing what nobody can reach. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/ids.h"
#include "io/session/former.h"
#include "upkeep/guarded.h"
#include "upkeep/shapes.h"
#include "upkeep/upkeep.h"

typedef struct collection {
    esdm_session *session;
    const esdm_gc_options *options;
    esdm__inventory packs;
    esdm__inventory files; /* that are held */
    esdm_gc_result result;
} collection;

static bool
count_garbage(uint64_t container, const char *uuid, void *user)
{
    (void) container, (void) uuid;
    ++*(uint64_t *) user;
    return true;
}

static void
report_pack(const collection *c, bool file, const esdm__pack_entry *entry, esdm_status status,
            const char *what)
{
    char place[256];
    if (c->options->report == NULL)
        return;
    (void) snprintf(place, sizeof place, "target '%s', %s '%s'",
                    c->session->targets[entry->target].name, file ? "held file" : "pack",
                    entry->name);
    const esdm_finding finding = {.kind =
                                      status == ESDM_OK ? ESDM_FINDING_NOTE : ESDM_FINDING_PROBLEM,
                                  .status = status,
                                  .place = place,
                                  .what = what};
    c->options->report(&finding, c->options->user);
}

static void
remove_stray(collection *c, bool file, const esdm__pack_entry *entry)
{
    const esdm__target *target = &c->session->targets[entry->target];
    esdm_error error = {0};
    esdm_status status = ESDM_OK;
    if (!c->options->dry_run)
        status = (file ? target->plugin->file_remove
                       : target->plugin->pack_remove)(target->handle, entry->name, &error);
    report_pack(c, file, entry, status,
                status != ESDM_OK     ? error.message
                : c->options->dry_run ? "would be removed"
                                      : "removed");
    c->result.failed += status != ESDM_OK;
    if (status != ESDM_OK)
        return;
    c->result.packs++;
    c->result.bytes += entry->bytes;
}

static esdm_status
remove_strays(collection *c, esdm__inventory *packs, esdm_error *err)
{
    esdm__strays strays = {0};
    uint64_t now_ns = esdm__now_ns();
    esdm__inventory_sort(packs);
    esdm_status status = packs->count > 0 || !packs->files
                             ? esdm__strays_find(c->session, packs, NULL, true, &strays, err)
                             : ESDM_OK;
    c->result.living += strays.living;
    for (uint64_t i = 0; i < strays.dead && status == ESDM_OK; i++) {
        const esdm__pack_entry *entry = &packs->entries[strays.dead_packs[i]];
        if (!esdm__pack_is_old(entry, c->options->any_age, c->options->age_s, now_ns))
            c->result.young++;
        else if (esdm__stray_may_be_unknown(&strays, entry)) {
            report_pack(c, packs->files, entry, ESDM_OK,
                        "kept: it came after the backup that the catalogue was made of");
            c->result.young++;
        } else if (esdm__stray_stays_dead(c->session, entry))
            remove_stray(c, packs->files, entry);
        else
            c->result.living++;
    }
    free(strays.dead_packs);
    return status;
}

/* Packs, and clones of files that pinned containers do not need any more. */
static esdm_status
remove_all_strays(collection *c, esdm_error *err)
{
    (void) esdm__targets_report(c->session, c->options->report, c->options->user);
    esdm_status status = esdm__inventory_add(&c->packs, c->session, NULL, err);
    if (status == ESDM_OK)
        status = remove_strays(c, &c->packs, err);
    if (status == ESDM_OK)
        status = esdm__inventory_add_files(&c->files, c->session, err);
    if (status == ESDM_OK)
        status = remove_strays(c, &c->files, err);
    if (status == ESDM_OK && !c->options->dry_run)
        esdm__guarded_forget(c->session);
    return status;
}

static bool
note_record(uint64_t container, const char *uuid, const char *name, void *user)
{
    (void) uuid;
    if (name != NULL) {
        esdm__buffer_put_u64(user, container);
        esdm__buffer_put(user, name, strlen(name) + 1);
    }
    return true;
}

/* Snapshots that the history does not keep go at commits, now and then: here of all containers. One
 * whose rows are damaged keeps what it has. */
static esdm_status
prune_all(const esdm_session *session, esdm_error *err)
{
    esdm__buffer numbers;
    esdm__buffer_init(&numbers);
    esdm_status status = session->meta->record_list(session->store, note_record, &numbers, err);
    if (status == ESDM_OK && numbers.failed)
        status = esdm__error_nomem(err, numbers.bytes, "records");
    esdm__cursor cursor;
    esdm__cursor_init(&cursor, numbers.data, numbers.bytes);
    while (status == ESDM_OK && esdm__cursor_left(&cursor) > 0) {
        esdm_error why = {0};
        uint64_t record = esdm__cursor_u64(&cursor);
        const char *name = (const char *) cursor.data + cursor.position;
        (void) esdm__cursor_take(&cursor, strlen(name) + 1);
        status = esdm__upkeep_prune(session, record, name, &why);
        if (status == ESDM_ECORRUPT || status == ESDM_ENOENT) /* removed meanwhile */
            status = ESDM_OK;
        else if (status != ESDM_OK && err != NULL)
            *err = why;
    }
    esdm__buffer_clear(&numbers);
    return status;
}

/* What a damaged store has lost looks like nobody's. */
static esdm_status
refuse_damaged(const esdm_session *session, esdm_error *err)
{
    esdm_error error = {0};
    esdm_status status = esdm__store_check(session, &error);
    /* A full disk or a missing right is no danger; a check that did not come to its end is. */
    if (status != ESDM_ECORRUPT && status != ESDM_EIO && status != ESDM_ENOMEM &&
        status != ESDM_ETIMEDOUT)
        return ESDM_OK;
    return esdm__error_set(err, status, "nothing is removed: %.400s", error.message);
}

esdm_status
esdm__upkeep_gc(esdm_session *session, const esdm_gc_options *options, esdm_gc_result *ret_result,
                esdm_error *err)
{
    collection c = {.session = session, .options = options};
    esdm__former_sum former = {0};
    esdm_status status = refuse_damaged(session, err);
    if (status == ESDM_OK) /* noted, so that nothing goes that it does not know */
        (void) esdm__put_back_report(session, options->report, options->user);
    if (status == ESDM_OK)
        status = esdm__former_sweep(session, options->replaced, options->dry_run, &former, err);
    if (status == ESDM_OK)
        status = esdm__shapes_sweep(session, options->dry_run, &c.result.shapes,
                                    &c.result.shapes_bytes, &c.result.failed, err);
    c.result.former = former.containers;
    c.result.former_bytes = former.bytes;
    if (status == ESDM_OK && !options->dry_run)
        status = prune_all(session, err);
    if (status == ESDM_OK)
        status = session->meta->garbage(session->store, count_garbage, &c.result.containers, err);
    if (status == ESDM_OK && !options->dry_run)
        esdm__session_collect(session);
    if (status == ESDM_OK)
        status = remove_all_strays(&c, err);
    esdm__inventory_clear(&c.files);
    esdm__inventory_clear(&c.packs);
    *ret_result = c.result;
    return status;
}
