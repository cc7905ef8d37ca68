/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Making backups, and removing what they make superfluous. */

#include "journal/backup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/put_back.h"
#include "journal/whole.h"

/* Records of the form "containers" are appended when there are so many bytes. */
#define BATCH_BYTES ((size_t) 1 << 20)
/* A container that others change while it is loaded is loaded again. */
#define ATTEMPTS 100

/* A backup that is being written to several targets. */
typedef struct making {
    const esdm__catalogue *catalogue;
    const esdm__journal_target *targets;
    size_t ntargets;
    void **packs; /* one a target; NULL: it has failed */
    char name[ESDM__SITE_PACK_NAME];
    uint64_t pieces;
    esdm__buffer records;
    esdm_error first; /* why the first target failed */
} making;

/* ---- packs ---------------------------------------------------------------------------------- */

static void
note_failure(making *m, esdm_status status, const esdm_error *why)
{
    if (m->first.status == ESDM_OK) {
        m->first = *why;
        m->first.status = status;
    }
}

static void
drop_pack(making *m, size_t i)
{
    const esdm_data_plugin *plugin = m->targets[i].plugin;
    void *pack = m->packs[i];
    m->packs[i] = NULL;
    if (plugin->pack_discard != NULL) {
        (void) !plugin->pack_discard(pack, NULL);
        return;
    }
    (void) !plugin->pack_seal(pack, NULL);
    (void) !plugin->pack_remove(m->targets[i].handle, m->name, NULL);
}

static size_t
living_packs(const making *m)
{
    size_t count = 0;
    for (size_t i = 0; i < m->ntargets; i++)
        count += m->packs[i] != NULL;
    return count;
}

/* Appends what was collected to all packs. ESDM_OK as long as one takes it. */
static esdm_status
flush(making *m, esdm_error *err)
{
    const esdm_iov iov = {m->records.data, m->records.bytes};
    if (m->records.failed)
        return esdm__error_nomem(err, m->records.bytes, "a backup");
    for (size_t i = 0; i < m->ntargets && iov.bytes > 0; i++) {
        uint64_t position;
        esdm_error why = {0};
        if (m->packs[i] == NULL)
            continue;
        esdm_status status =
            m->targets[i].plugin->pack_append(m->packs[i], &iov, 1, &position, &why);
        if (status == ESDM_OK)
            continue;
        note_failure(m, status, &why);
        drop_pack(m, i);
    }
    m->records.bytes = 0;
    if (living_packs(m) > 0)
        return ESDM_OK;
    if (err != NULL)
        *err = m->first;
    return m->first.status;
}

static esdm_status
begin_packs(making *m, uint64_t start_ns, esdm_error *err)
{
    char id[ESDM__UUID_BYTES];
    esdm__uuid_new(id);
    (void) snprintf(m->name, sizeof m->name, ESDM__BACKUP_PACKS "-%016" PRIx64 "-%.8s", start_ns,
                    id);
    for (size_t i = 0; i < m->ntargets; i++) {
        esdm_error why = {0};
        esdm_status status =
            m->targets[i].plugin->pack_create(m->targets[i].handle, m->name, &m->packs[i], &why);
        if (status != ESDM_OK) {
            m->packs[i] = NULL;
            note_failure(m, status, &why);
        }
    }
    if (living_packs(m) > 0)
        return ESDM_OK;
    if (err != NULL)
        *err = m->first;
    return m->first.status;
}

/* @param ret_stored on how many targets it is whole. */
static esdm_status
end_packs(making *m, size_t *ret_stored, esdm_error *err)
{
    for (size_t i = 0; i < m->ntargets; i++) {
        const esdm_data_plugin *plugin = m->targets[i].plugin;
        esdm_error why = {0};
        void *pack = m->packs[i];
        if (pack == NULL)
            continue;
        if ((plugin->flags & ESDM_DATA_SEAL_DURABLE) == 0)
            (void) !plugin->pack_sync(pack, NULL);
        m->packs[i] = NULL;
        esdm_status status = plugin->pack_seal(pack, &why);
        *ret_stored += status == ESDM_OK;
        if (status == ESDM_OK)
            continue;
        note_failure(m, status, &why);
        if (plugin->pack_recall != NULL)
            (void) !plugin->pack_discard(pack, NULL);
        (void) !plugin->pack_remove(m->targets[i].handle, m->name, NULL);
    }
    if (*ret_stored > 0)
        return ESDM_OK;
    if (err != NULL)
        *err = m->first;
    return m->first.status;
}

/* ---- contents ------------------------------------------------------------------------------- */

static esdm_status
put_piece(void *user, const void *data, size_t bytes, esdm_error *err)
{
    making *m = user;
    size_t start = esdm__journal_start(&m->records, ESDM__JOURNAL_BYTES, 0, NULL);
    esdm__journal_put_blob(&m->records, data, bytes);
    esdm__journal_finish(&m->records, start);
    m->pieces++;
    return flush(m, err);
}

static esdm_status
put_container(making *m, const char *name, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = ESDM_ENOENT;
    for (int i = 0; i < ATTEMPTS && status == ESDM_ENOENT; i++) {
        esdm__whole whole = {0};
        esdm_meta_container found;
        status = esdm__whole_load(m->catalogue, name, &whole, &why);
        if (status == ESDM_OK)
            status = esdm__journal_put_whole(&m->records, m->catalogue, &whole, &why);
        if (status == ESDM_OK)
            m->pieces++;
        esdm__whole_clear(&whole);
        if (status == ESDM_ENOENT && m->catalogue->plugin->container_find(
                                         m->catalogue->store, name, &found, NULL) == ESDM_ENOENT)
            return ESDM_OK; /* it was removed or renamed: the journal knows */
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static bool
put_fact(const char *name, const char *text, void *user)
{
    making *m = user;
    size_t start = esdm__journal_start(&m->records, ESDM__JOURNAL_FACT, 0, NULL);
    esdm__journal_put_text(&m->records, name);
    esdm__journal_put_text(&m->records, text);
    esdm__journal_finish(&m->records, start);
    m->pieces++;
    return !m->records.failed;
}

static esdm_status
put_containers(making *m, esdm_error *err)
{
    esdm__buffer names;
    const esdm_meta_plugin *meta = m->catalogue->plugin;
    esdm_status status = esdm__catalogue_names(m->catalogue, &names, err);
    const char *end = (const char *) names.data + names.bytes;
    for (const char *name = (const char *) names.data; status == ESDM_OK && name < end;
         name += strlen(name) + 1) {
        status = put_container(m, name, err);
        if (status == ESDM_OK && m->records.bytes >= BATCH_BYTES)
            status = flush(m, err);
    }
    esdm__buffer_clear(&names);
    if (status == ESDM_OK && meta->fact_list != NULL)
        status = meta->fact_list(m->catalogue->store, "", put_fact, m, err);
    return status == ESDM_OK ? flush(m, err) : status;
}

static esdm_status
put_all(making *m, const char *site_id, uint64_t start_ns, esdm_error *err)
{
    const esdm_meta_plugin *meta = m->catalogue->plugin;
    bool is_file = meta->backup != NULL;
    size_t start = esdm__journal_start(&m->records, ESDM__JOURNAL_BEGIN, start_ns, NULL);
    esdm__journal_put_text(&m->records, is_file ? "file" : "containers");
    esdm__journal_put_text(&m->records, site_id);
    esdm__journal_put_text(&m->records, meta->base.name);
    esdm__journal_finish(&m->records, start);
    esdm_status status = flush(m, err);
    if (status == ESDM_OK)
        status =
            is_file ? meta->backup(m->catalogue->store, put_piece, m, err) : put_containers(m, err);
    if (status != ESDM_OK)
        return status;
    start = esdm__journal_start(&m->records, ESDM__JOURNAL_END, esdm__now_ns(), NULL);
    esdm__buffer_put_varint(&m->records, m->pieces);
    esdm__journal_finish(&m->records, start);
    return flush(m, err);
}

/* ---- what is superfluous -------------------------------------------------------------------- */

typedef struct doomed {
    esdm__buffer names; /* NUL-terminated */
    uint64_t before_ns;
} doomed;

static bool
note_old(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    doomed *d = user;
    (void) bytes;
    if (modified_ns < d->before_ns)
        esdm__buffer_put(&d->names, name, strlen(name) + 1);
    return !d->names.failed;
}

static void
remove_journals(const esdm__journal_target *target, uint64_t before_ns)
{
    doomed d = {.before_ns = before_ns};
    esdm__buffer_init(&d.names);
    esdm_status status =
        target->plugin->pack_list(target->handle, ESDM__JOURNAL_PACKS, note_old, &d, NULL);
    const char *end = (const char *) d.names.data + d.names.bytes;
    for (const char *name = (const char *) d.names.data;
         status == ESDM_OK && !d.names.failed && name < end; name += strlen(name) + 1)
        (void) !target->plugin->pack_remove(target->handle, name, NULL);
    esdm__buffer_clear(&d.names);
}

/* On one target: older generations, and journals that none of the kept ones needs. The clock is the
 * target's own. */
static void
remove_superfluous(const esdm__journal_target *target)
{
    esdm__backup *all = NULL;
    size_t count = 0;
    if (esdm__backup_list(target, 1, &all, &count, NULL) != ESDM_OK)
        return;
    for (size_t i = ESDM__BACKUP_GENERATIONS; i < count; i++)
        (void) !target->plugin->pack_remove(target->handle, all[i].name, NULL);
    size_t kept = count < ESDM__BACKUP_GENERATIONS ? count : ESDM__BACKUP_GENERATIONS;
    uint64_t margin_ns = ESDM__BACKUP_MARGIN_S * UINT64_C(1000000000);
    if (kept > 0 && all[kept - 1].modified_ns > margin_ns)
        remove_journals(target, all[kept - 1].modified_ns - margin_ns);
    free(all);
}

esdm_status
esdm__backup_make(const esdm__catalogue *catalogue, const char *site_id,
                  const esdm__journal_target *targets, size_t ntargets, size_t *ret_stored,
                  esdm_error *err)
{
    making m = {.catalogue = catalogue, .targets = targets, .ntargets = ntargets};
    size_t stored = 0;
    uint64_t from_ns;
    uint64_t start_ns = esdm__now_ns();
    if (ntargets == 0)
        return esdm__error_set(err, ESDM_ENOTSUP, "no target can hold a backup");
    m.packs = calloc(ntargets, sizeof *m.packs);
    if (m.packs == NULL)
        return esdm__error_nomem(err, ntargets * sizeof *m.packs, "a backup");
    esdm__buffer_init(&m.records);
    /* It does not tell what those before it do. */
    bool supersedes = !esdm__put_back_noted(catalogue, &from_ns);
    /* One that the catalogue does not know would show that an older copy was put back. */
    esdm_status status = esdm__put_back_know(catalogue, start_ns, err);
    if (status == ESDM_OK)
        status = begin_packs(&m, start_ns, err);
    if (status == ESDM_OK)
        status = put_all(&m, site_id, start_ns, err);
    if (status == ESDM_OK)
        status = end_packs(&m, &stored, err);
    for (size_t i = 0; i < ntargets; i++) {
        if (m.packs[i] != NULL)
            drop_pack(&m, i);
    }
    /* What took longer than the margin may lack what was entered meanwhile in older packs. */
    bool in_time = esdm__now_ns() - start_ns < ESDM__BACKUP_MARGIN_S / 2 * UINT64_C(1000000000);
    for (size_t i = 0; i < ntargets && status == ESDM_OK && in_time && supersedes; i++)
        remove_superfluous(&targets[i]);
    esdm__buffer_clear(&m.records);
    free(m.packs);
    if (ret_stored != NULL)
        *ret_stored = stored;
    return status;
}
