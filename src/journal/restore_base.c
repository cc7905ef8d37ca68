/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The catalogue that a restoration begins with. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "journal/restore.h"
#include "journal/whole.h"

/* Begins the note of a catalogue that is of no use as long as this is not completed. */
static const char from_backup[] = "is being brought back from a backup";
static const char up_to_date[] = "is being brought up to date";
#define CALL_AGAIN "; call esdm-mkfs --restore again to complete it"

static void
format_time(uint64_t ns, char ret_text[32])
{
    time_t seconds = (time_t) (ns / 1000000000u);
    struct tm date;
    (void) gmtime_r(&seconds, &date);
    (void) strftime(ret_text, 32, "%Y-%m-%d %H:%M:%S UTC", &date);
}

static esdm__part *
metadata(const esdm__restoration *r)
{
    return &r->parts[r->site->ntargets];
}

static esdm_status
open_store(esdm__restoration *r, bool read_only, esdm_error *err)
{
    const esdm__part *part = metadata(r);
    esdm_plugin_config config = part->config;
    config.migrating = true;
    esdm_status status = part->meta->open(&config, read_only, &r->catalogue.store, err);
    if (status != ESDM_OK) {
        r->catalogue.store = NULL;
        return status;
    }
    r->catalogue.plugin = part->meta;
    if (read_only || part->meta->is_writable(r->catalogue.store))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_EACCES, "%s: no permission to write", part->target->path);
}

static void
close_store(esdm__restoration *r)
{
    if (r->catalogue.store != NULL)
        r->catalogue.plugin->close(r->catalogue.store);
    r->catalogue.store = NULL;
}

/* ---- of a backup ---------------------------------------------------------------------------- */

static esdm_status
next_piece(void *user, const void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    esdm__backup_reader *reader = user;
    esdm__journal_record record;
    bool end = reader == NULL;
    *ret_data = NULL;
    *ret_bytes = 0;
    while (!end) {
        esdm_status status = esdm__backup_read(reader, &record, &end, err);
        if (status != ESDM_OK)
            return status;
        if (end || record.kind != ESDM__JOURNAL_BYTES)
            continue;
        *ret_data = esdm__journal_blob(&record.body, ret_bytes);
        return ESDM_OK;
    }
    return ESDM_OK;
}

static esdm_status
import_piece(esdm__restoration *r, esdm__journal_record *record, esdm_error *err)
{
    const esdm_meta_plugin *meta = r->catalogue.plugin;
    esdm__whole whole = {0};
    esdm_status status = ESDM_OK;
    if (record->kind == ESDM__JOURNAL_FACT) {
        char *name = esdm__journal_text(&record->body);
        char *text = esdm__journal_text(&record->body);
        if (name != NULL && text != NULL && meta->fact_put != NULL)
            status = meta->fact_put(r->catalogue.store, name, text, err);
        free(name);
        free(text);
        return status;
    }
    if (record->kind != ESDM__JOURNAL_WHOLE)
        return ESDM_OK;
    status = esdm__journal_take_whole(record, &whole, err);
    if (status == ESDM_OK && whole.nsnapshots > 0) {
        /* The sums are of the pages that the newest snapshot sees. */
        for (size_t i = 0; i < whole.npages; i++) {
            const esdm__whole_page *page = &whole.pages[i];
            whole.record.raw_bytes += page->removed == 0 ? page->entry.raw_bytes : 0;
            whole.record.stored_bytes += page->removed == 0 ? page->entry.stored_bytes : 0;
            whole.record.fragments += page->removed == 0 ? page->entry.records : 0;
        }
        status = esdm__whole_index(&whole, err);
    }
    if (status == ESDM_OK)
        status = esdm__whole_import(&whole, &r->catalogue, &r->catalogue, err);
    esdm__whole_clear(&whole);
    return status;
}

static esdm_status
import_all(esdm__restoration *r, esdm__backup_reader *reader, esdm_error *err)
{
    bool end = reader == NULL;
    esdm_status status = ESDM_OK;
    while (status == ESDM_OK && !end) {
        esdm__journal_record record;
        status = esdm__backup_read(reader, &record, &end, err);
        if (status == ESDM_OK && !end)
            status = import_piece(r, &record, err);
    }
    return status;
}

/* What an interrupted call has left in a store that is filled container by container. */
static esdm_status
empty_store(esdm__restoration *r, esdm_error *err)
{
    esdm__buffer names;
    const esdm_meta_plugin *meta = r->catalogue.plugin;
    esdm_status status = esdm__catalogue_names(&r->catalogue, &names, err);
    const char *at = (const char *) names.data;
    for (size_t i = 0; i < names.bytes && status == ESDM_OK; i += strlen(at + i) + 1) {
        uint64_t container = 0;
        status = meta->container_remove(r->catalogue.store, at + i, &container, err);
        if (status == ESDM_OK)
            status = meta->forget(r->catalogue.store, container, err);
    }
    esdm__buffer_clear(&names);
    return status;
}

/* @param reader NULL: there is no backup, an empty store is made. */
static esdm_status
make_store(esdm__restoration *r, esdm__backup_reader *reader, esdm_error *err)
{
    const esdm__part *part = metadata(r);
    char note[ESDM_META_NOTE_BYTES];
    (void) snprintf(note, sizeof note, "%s" CALL_AGAIN, from_backup);
    bool is_file = reader == NULL || reader->is_file;
    if (is_file && part->meta->restore != NULL) {
        esdm_status status = part->meta->restore(&part->config, next_piece, reader, note,
                                                 r->say->report, r->say->user, err);
        return status == ESDM_OK ? open_store(r, false, err) : status;
    }
    if (reader != NULL && is_file)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "the backup is of another kind of metadata store than \"%s\": "
                               "restore the site with that, then move it with esdm-mkfs --migrate",
                               part->target->plugin);
    esdm_plugin_config config = part->config;
    config.migrating = true;
    esdm_status status = part->meta->make(&config, false, r->say->report, r->say->user, err);
    if (status == ESDM_OK)
        status = open_store(r, false, err);
    if (status == ESDM_OK)
        status = part->meta->set_state(r->catalogue.store, ESDM_META_ARRIVING, note, err);
    if (status == ESDM_OK)
        status = empty_store(r, err);
    return status == ESDM_OK ? import_all(r, reader, err) : status;
}

/* The newest backup that is whole. *ret_found NULL: there is none. */
static esdm_status
find_backup(const esdm__restoration *r, esdm__backup *all, size_t count, esdm__backup **ret_found)
{
    *ret_found = NULL;
    for (size_t i = 0; i < count && *ret_found == NULL; i++) {
        esdm_error why = {0};
        esdm_status status = esdm__backup_verify(&all[i], r->targets, &why);
        if (status == ESDM_OK)
            *ret_found = &all[i];
        else
            esdm__say(r->say, "%s", why.message);
        if (status == ESDM_ENOTSUP)
            return status;
    }
    return ESDM_OK;
}

static esdm_status
use_backup(esdm__restoration *r, const esdm__backup *backup, esdm_error *err)
{
    esdm__backup_reader reader;
    char when[32];
    format_time(backup->start_ns, when);
    esdm__say(r->say, "%s the backup of %s on target \"%s\"", r->dry_run ? "would use" : "use",
              when, r->targets[backup->target].name);
    r->result.from_backup = true;
    r->result.backup_ns = r->base_ns = backup->start_ns;
    if (r->dry_run)
        return ESDM_OK;
    esdm_status status = esdm__backup_open(backup, r->targets, &reader, err);
    if (status == ESDM_OK && strcmp(reader.site_id, r->site->id) != 0)
        status = esdm__error_set(err, ESDM_ECORRUPT, "backup '%s' is of another site (%s)",
                                 backup->name, reader.site_id);
    if (status == ESDM_OK)
        status = make_store(r, &reader, err);
    esdm__backup_close(&reader);
    return status;
}

static esdm_status
begin_anew(esdm__restoration *r, esdm_error *err)
{
    esdm__backup *all = NULL;
    esdm__backup *found = NULL;
    size_t count = 0;
    esdm_status status = esdm__backup_list(r->targets, r->ntargets, &all, &count, err);
    if (status == ESDM_OK) {
        status = find_backup(r, all, count, &found);
        if (status != ESDM_OK)
            status = esdm__error_set(err, status, "the newest backup is of a newer ESDM: use that");
    }
    if (status == ESDM_OK && found == NULL && r->scan.nrefs == 0)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "neither a backup of the catalogue nor a journal lies on the "
                                 "targets that can be reached: nothing can be brought back; was a "
                                 "target taken out of the configuration? Name it again");
    if (status == ESDM_OK && found != NULL)
        status = use_backup(r, found, err);
    if (status == ESDM_OK && found == NULL) {
        esdm__say(r->say, "there is no backup: the journals alone tell what the site holds");
        if (!r->dry_run)
            status = make_store(r, NULL, err);
    }
    free(all);
    return status;
}

/* ---- a catalogue that is there -------------------------------------------------------------- */

/* What the store's own check says; a full disk or a missing right is no damage. */
static bool
is_sound(const esdm__restoration *r)
{
    const esdm__part *part = metadata(r);
    esdm_error why = {0};
    esdm_plugin_config config = part->config;
    config.migrating = true;
    esdm_status status = part->meta->check(&config, NULL, NULL, &why);
    if (status != ESDM_ECORRUPT && status != ESDM_EIO)
        return true;
    esdm__say(r->say, "%s", why.message);
    return false;
}

static esdm_status
use_present(esdm__restoration *r, bool *ret_used, esdm_error *err)
{
    esdm_meta_state state = ESDM_META_ACTIVE;
    char note[ESDM_META_NOTE_BYTES] = "";
    esdm_error why = {0};
    *ret_used = false;
    esdm_status status = open_store(r, r->dry_run, &why);
    if (status == ESDM_OK)
        status = r->catalogue.plugin->state(r->catalogue.store, &state, note, &why);
    bool lost = status == ESDM_ENOENT || status == ESDM_ECORRUPT || status == ESDM_EIO;
    if (status != ESDM_OK && !lost) {
        if (err != NULL)
            *err = why;
        return status;
    }
    if (status == ESDM_ECORRUPT || status == ESDM_EIO)
        esdm__say(r->say, "%s", why.message);
    bool ours = strncmp(note, from_backup, sizeof from_backup - 1) == 0;
    bool updated = strncmp(note, up_to_date, sizeof up_to_date - 1) == 0;
    if (status == ESDM_OK && state != ESDM_META_ACTIVE && !ours && !updated) {
        close_store(r);
        return esdm__error_set(err, ESDM_EINVAL, "%s: the metadata store %.200s",
                               metadata(r)->target->path, note);
    }
    if (status != ESDM_OK || ours || !is_sound(r)) {
        close_store(r);
        return ESDM_OK;
    }
    esdm__say(r->say, "the catalogue is there and sound: it is kept, and gets what it lacks");
    *ret_used = true;
    r->kept = true;
    return ESDM_OK;
}

/* A database that was put back by hand into a directory without a mark. */
static esdm_status
adopt(esdm__restoration *r, bool *ret_adopted, esdm_error *err)
{
    const esdm__part *part = metadata(r);
    char note[ESDM_META_NOTE_BYTES];
    char id[ESDM__UUID_BYTES];
    esdm_error why = {0};
    *ret_adopted = false;
    if (part->meta->restore == NULL || r->dry_run ||
        part->meta->site_id(&part->config, id, NULL) != ESDM_ENOENT)
        return ESDM_OK;
    (void) snprintf(note, sizeof note, "%s" CALL_AGAIN, up_to_date);
    esdm_status status =
        part->meta->restore(&part->config, NULL, NULL, note, r->say->report, r->say->user, &why);
    *ret_adopted = status == ESDM_OK;
    if (status == ESDM_OK || status == ESDM_ENOENT || status == ESDM_ECORRUPT)
        return ESDM_OK;
    if (err != NULL)
        *err = why;
    return status;
}

esdm_status
esdm__restore_base(esdm__restoration *restoration, esdm_error *err)
{
    esdm__restoration *r = restoration;
    bool done = false;
    esdm_status status = adopt(r, &done, err);
    if (status == ESDM_OK)
        status = use_present(r, &done, err);
    if (status != ESDM_OK || done)
        return status;
    return begin_anew(r, err);
}
