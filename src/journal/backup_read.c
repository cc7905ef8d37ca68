/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Finding and reading backups. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/backup.h"

typedef struct listing {
    esdm__backup *items; /* owned */
    size_t count;
    size_t target;
    bool failed;
} listing;

static bool
note_backup(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    listing *to = user;
    size_t prefix = sizeof ESDM__BACKUP_PACKS - 1;
    if (strlen(name) >= sizeof to->items->name || name[prefix] != '-')
        return true;
    esdm__backup *grown = realloc(to->items, (to->count + 1) * sizeof *grown);
    to->failed = grown == NULL;
    if (grown == NULL)
        return false;
    to->items = grown;
    esdm__backup *one = &to->items[to->count++];
    *one = (esdm__backup){.target = to->target,
                          .bytes = bytes,
                          .start_ns = strtoull(name + prefix + 1, NULL, 16),
                          .modified_ns = modified_ns};
    memcpy(one->name, name, strlen(name) + 1);
    return true;
}

/* The newest first; of one backup that lies on several targets in their order. */
static int
by_age(const void *a, const void *b)
{
    const esdm__backup *x = a;
    const esdm__backup *y = b;
    int order = -strcmp(x->name, y->name);
    return order != 0 ? order : (x->target > y->target) - (x->target < y->target);
}

esdm_status
esdm__backup_list(const esdm__journal_target *targets, size_t ntargets, esdm__backup **ret_backups,
                  size_t *ret_count, esdm_error *err)
{
    listing all = {0};
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < ntargets && status == ESDM_OK; i++) {
        all.target = i;
        status = targets[i].plugin->pack_list(targets[i].handle, ESDM__BACKUP_PACKS, note_backup,
                                              &all, err);
        if (status != ESDM_OK)
            status = esdm__error_prefix(err, status, "target '%s'", targets[i].name);
    }
    if (status == ESDM_OK && all.failed)
        status = esdm__error_nomem(err, all.count * sizeof *all.items, "the list of backups");
    if (status != ESDM_OK) {
        free(all.items);
        return status;
    }
    if (all.count > 0)
        qsort(all.items, all.count, sizeof *all.items, by_age);
    *ret_backups = all.items;
    *ret_count = all.count;
    return ESDM_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

static esdm_status
not_whole(const esdm__backup_reader *reader, const char *why, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "backup '%s' on target '%s' is not whole: %s",
                           reader->records.pack, reader->records.target->name, why);
}

static esdm_status
read_first(esdm__backup_reader *reader, esdm_error *err)
{
    esdm__journal_record record;
    uint64_t position;
    bool end = false;
    esdm_status status = esdm__journal_read(&reader->records, &record, &position, &end, err);
    if (status != ESDM_OK)
        return status;
    if (reader->records.newer > 0)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "backup '%s' on target '%s' is of a newer ESDM: use that one",
                               reader->records.pack, reader->records.target->name);
    if (end || record.kind != ESDM__JOURNAL_BEGIN || position != 0)
        return not_whole(reader, "its beginning is missing", err);
    char *form = esdm__journal_text(&record.body);
    char *site_id = esdm__journal_text(&record.body);
    bool good = form != NULL && site_id != NULL && strlen(site_id) < sizeof reader->site_id;
    if (good) {
        reader->is_file = strcmp(form, "file") == 0;
        memcpy(reader->site_id, site_id, strlen(site_id) + 1);
    }
    free(form);
    free(site_id);
    return good ? ESDM_OK : not_whole(reader, "its beginning is damaged", err);
}

esdm_status
esdm__backup_open(const esdm__backup *backup, const esdm__journal_target *targets,
                  esdm__backup_reader *ret_reader, esdm_error *err)
{
    *ret_reader = (esdm__backup_reader){.pieces = 0};
    esdm__journal_reader_init(&ret_reader->records, &targets[backup->target], backup->name,
                              backup->bytes);
    return read_first(ret_reader, err);
}

esdm_status
esdm__backup_read(esdm__backup_reader *reader, esdm__journal_record *ret_record, bool *ret_end,
                  esdm_error *err)
{
    uint64_t position;
    bool end = false;
    *ret_end = false;
    esdm_status status = esdm__journal_read(&reader->records, ret_record, &position, &end, err);
    if (status != ESDM_OK)
        return status;
    if (end || reader->records.damaged > 0 || reader->records.newer > 0)
        return not_whole(reader, end ? "its end is missing" : "a part of it is damaged", err);
    if (ret_record->kind != ESDM__JOURNAL_END) {
        reader->pieces++;
        return ESDM_OK;
    }
    if (esdm__cursor_varint(&ret_record->body) != reader->pieces)
        return not_whole(reader, "a part of it is missing", err);
    reader->ended = true;
    *ret_end = true;
    return ESDM_OK;
}

void
esdm__backup_close(esdm__backup_reader *reader)
{
    esdm__journal_reader_clear(&reader->records);
}

esdm_status
esdm__backup_verify(const esdm__backup *backup, const esdm__journal_target *targets,
                    esdm_error *err)
{
    esdm__backup_reader reader;
    esdm__journal_record record;
    bool end = false;
    esdm_status status = esdm__backup_open(backup, targets, &reader, err);
    while (status == ESDM_OK && !end)
        status = esdm__backup_read(&reader, &record, &end, err);
    esdm__backup_close(&reader);
    return status;
}
