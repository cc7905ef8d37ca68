/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Bringing the catalogue of a site back from what lies on its targets.
 *
 * 1. The targets are opened; their marks say which site it was.
 * 2. What the journals have and which packs there are is listed, before the catalogue is looked
 *    at, so that a catalogue in use is never behind.
 * 3. The catalogue that is there is taken if it is sound; else the newest whole backup; else an
 *    empty one. It is closed to others while it is changed.
 * 4. What the journals tell since is added, container by container.
 * 5. The catalogue is opened, and a backup of it made: with that, what was told before is told. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/put_back.h"
#include "journal/restore.h"

/* ---- the site ------------------------------------------------------------------------------- */

/* Id of the site in the mark of the store, or of a target. */
static esdm_status
find_id(esdm__restoration *r, esdm_error *err)
{
    const esdm__part *store = &r->parts[r->site->ntargets];
    char id[ESDM__UUID_BYTES] = "";
    esdm_error why = {0};
    esdm_status status = store->meta->site_id(&store->config, id, &why);
    for (size_t i = 0; i < r->site->ntargets && status != ESDM_OK; i++) {
        const esdm__part *part = &r->parts[i];
        char found[ESDM__UUID_BYTES];
        if (part->data->site_id == NULL || part->target->local ||
            part->data->site_id(&part->config, found, NULL) != ESDM_OK)
            continue;
        if (id[0] != '\0' && strcmp(id, found) != 0)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "%s: target \"%s\" belongs to site %s, another target to site "
                                   "%s: the configuration is not that of the site that is lost",
                                   part->target->path, part->target->name, found, id);
        memcpy(id, found, sizeof id);
    }
    if (id[0] == '\0' && r->site->stated_id[0] != '\0')
        memcpy(id, r->site->stated_id, sizeof id);
    if (id[0] == '\0')
        return esdm__error_set(err, ESDM_ENOENT,
                               "no target of the site \"%s\" of %s is there: nothing can be "
                               "brought back",
                               r->site->name, r->site->source);
    memcpy(r->site->id, id, sizeof r->site->id);
    return ESDM_OK;
}

static esdm_status
load_parts(esdm__restoration *r, esdm_error *err)
{
    size_t count = r->site->ntargets;
    r->parts = calloc(count + 1, sizeof *r->parts);
    r->targets = calloc(count + 1, sizeof *r->targets);
    if (r->parts == NULL || r->targets == NULL)
        return esdm__error_nomem(err, (count + 1) * sizeof *r->parts, "the parts of the site");
    for (size_t i = 0; i <= count; i++) {
        esdm_status status = esdm__part_at(r->site, i, &r->parts[i], err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

/* One that cannot be opened is told of: what it holds seems to be missing. */
static void
open_targets(esdm__restoration *r)
{
    for (size_t i = 0; i < r->site->ntargets; i++) {
        const esdm__part *part = &r->parts[i];
        esdm__journal_target *target = &r->targets[r->ntargets];
        esdm_error why = {0};
        if ((part->data->flags & ESDM_DATA_VOLATILE) != 0)
            continue;
        esdm_status status = part->data->open(&part->config, &target->handle, &why);
        if (status == ESDM_OK) {
            target->plugin = part->data;
            target->name = part->target->name;
            r->ntargets++;
        } else if (!part->target->local) {
            esdm__say(r->say, "target \"%s\" is not looked at: %s", part->target->name,
                      why.message);
            r->result.targets_absent++;
        }
    }
}

/* ---- in the end ----------------------------------------------------------------------------- */

static esdm_status
complete(esdm__restoration *r, esdm_error *err)
{
    const esdm__catalogue *to = &r->catalogue;
    esdm_error why = {0};
    size_t stored = 0;
    esdm_status status = ESDM_OK;
    if (!r->kept || r->result.restored > 0)
        status = to->plugin->fact_put != NULL ? esdm__unknown_since(to, r->base_ns, err) : ESDM_OK;
    if (status == ESDM_OK)
        status = esdm__put_back_end(to, r->targets, r->ntargets, err);
    if (status == ESDM_OK && !r->kept)
        status = to->plugin->set_state(to->store, ESDM_META_ACTIVE, "", err);
    if (status != ESDM_OK)
        return status;
    if (r->kept && r->result.restored == 0)
        return ESDM_OK;
    if (esdm__backup_make(to, r->site->id, r->targets, r->ntargets, &stored, &why) == ESDM_OK)
        esdm__say(r->say, "a backup of the catalogue as it is now lies on %zu target%s", stored,
                  stored == 1 ? "" : "s");
    else
        esdm__say(r->say, "no backup of the catalogue as it is now could be made: %s", why.message);
    return ESDM_OK;
}

static void
tell_journal(esdm__restoration *r)
{
    r->result.damaged_bytes = r->scan.damaged;
    if (r->scan.damaged > 0)
        esdm__say(r->say,
                  "%" PRIu64 " bytes of the journals make no whole record: damage, or what a "
                  "program was writing when it was killed",
                  r->scan.damaged);
    if (r->scan.unread > 0)
        esdm__say(r->say, "%" PRIu64 " packs of the journals cannot be read", r->scan.unread);
    if (r->scan.newer > 0)
        esdm__say(r->say, "%" PRIu64 " records of the journals are of a newer ESDM: use that",
                  r->scan.newer);
}

static esdm_status
restore(esdm__restoration *r, esdm_error *err)
{
    esdm_status status = load_parts(r, err);
    if (status == ESDM_OK)
        status = find_id(r, err);
    if (status != ESDM_OK)
        return status;
    open_targets(r);
    /* Who calls frees what it has. NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    status = esdm__scan_targets(r->targets, r->ntargets, &r->scan, err);
    if (status == ESDM_OK) {
        tell_journal(r);
        status = esdm__restore_base(r, err);
    }
    if (status == ESDM_OK)
        status = esdm__restore_containers(r, err);
    return status == ESDM_OK && !r->dry_run ? complete(r, err) : status;
}

static void
clear(esdm__restoration *r)
{
    if (r->catalogue.store != NULL)
        r->catalogue.plugin->close(r->catalogue.store);
    esdm__scan_clear(&r->scan);
    for (size_t i = 0; i < r->ntargets; i++)
        r->targets[i].plugin->close(r->targets[i].handle);
    free(r->targets);
    free(r->parts);
    esdm__site_free(r->site);
}

esdm_status
esdm_site_restore(const esdm_site_options *options, esdm_restore_result *ret_result,
                  esdm_error *err)
{
    esdm__restoration r = {.site = NULL};
    esdm_status status = esdm__site_load_options(&options, &r.site, err);
    const esdm__report_to say = esdm__reporter(options != NULL ? options->report : NULL,
                                               options != NULL ? options->user : NULL);
    r.say = &say;
    r.dry_run = options != NULL && options->dry_run;
    if (status == ESDM_OK)
        status = restore(&r, err);
    if (ret_result != NULL)
        *ret_result = r.result;
    clear(&r);
    return status;
}
