/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Checking a site: each part by itself, then whether they fit together. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/site_packs.h"
#include "monitor/runs.h"
#include "site/admin.h"
#include "site/catalogue.h"
#include "site/kept.h"

/* ---- parts ---------------------------------------------------------------------------------- */

static void
report_healthy(const esdm__part *part, const esdm__contents *sum, const esdm__report_to *to)
{
    if (part->meta != NULL) {
        esdm__say(to, "metadata (%s): good, %" PRIu64 " container%s", part->target->plugin,
                  sum->containers, sum->containers == 1 ? "" : "s");
        return;
    }
    char used[24], left[24];
    esdm__format_bytes(sum->used_bytes, used);
    esdm__format_bytes(sum->free_bytes, left);
    esdm__say(to, "target \"%s\" (%s): good, %s in %" PRIu64 " pack%s, %s free", part->target->name,
              part->target->plugin, used, sum->packs, sum->packs == 1 ? "" : "s",
              sum->free_bytes > 0 ? left : "an unknown amount");
}

/* Packs that the catalogue has on a target, and that are not there. */
static esdm_status
check_packs(const esdm__site *site, size_t index, const esdm__part *part, esdm__kept *kept,
            esdm_error *err)
{
    uint64_t missing = 0;
    esdm_status status = esdm__kept_compare(kept, site, index, part, &missing, err);
    if (status != ESDM_OK || missing == 0)
        return status;
    return esdm__error_set(err, ESDM_ECORRUPT,
                           "%s: %" PRIu64 " of the %" PRIu64 " packs that the catalogue has on "
                           "target \"%s\" are not there; esdm-fsck tells which, and of what",
                           part->target->path, missing, esdm__kept_on(kept, index),
                           part->target->name);
}

static esdm_status
check_part(const esdm__site *site, size_t index, esdm__kept *kept, const esdm__report_to *to,
           esdm__contents *ret_sum, esdm_error *err)
{
    esdm__part part;
    esdm__contents sum = {0};
    esdm_status status = esdm__part_at(site, index, &part, err);
    if (status != ESDM_OK) {
        esdm__say(to, "%s", err->message);
        return status;
    }
    /* They report what they find themselves. */
    status = part.meta != NULL ? part.meta->check(&part.config, to->report, to->user, err)
                               : part.data->check(&part.config, to->report, to->user, err);
    if (status == ESDM_ENOENT && part.meta == NULL && part.target->local) {
        esdm__say(to, "target \"%s\" (%s): this node has none yet", part.target->name,
                  part.target->plugin);
        return ESDM_OK;
    }
    if (status != ESDM_OK) {
        if (part.meta == NULL)
            esdm__say(to, "target \"%s\" (%s): not usable as it is", part.target->name,
                      part.target->plugin);
        return status;
    }
    status = esdm__part_contents(&part, &sum, err);
    if (status == ESDM_OK && part.meta == NULL)
        status = check_packs(site, index, &part, kept, err);
    if (status != ESDM_OK)
        esdm__say(to, "%s", err->message);
    else
        report_healthy(&part, &sum, to);
    *ret_sum = sum;
    return status;
}

static void
visit_part(const esdm_site_options *options, const esdm__site *site, size_t index,
           esdm_status status, const esdm_error *problem, const esdm__contents *sum)
{
    bool metadata = index == site->ntargets;
    const esdm__site_target *part = metadata ? &site->metadata : &site->targets[index];
    const esdm_part_health health = {
        .name = metadata ? "metadata" : part->name,
        .plugin = part->plugin,
        .metadata = metadata,
        .status = status,
        .problem = status != ESDM_OK ? problem->message : NULL,
        .packs = sum->packs,
        .used_bytes = sum->used_bytes,
        .free_bytes = sum->free_bytes,
        .total_bytes = sum->total_bytes,
    };
    if (options->part != NULL)
        options->part(&health, options->user);
}

static esdm_status
check_parts(const esdm__site *site, esdm__kept *kept, const esdm_site_options *options,
            const esdm__report_to *to, esdm_error *err)
{
    esdm_status first = ESDM_OK;
    for (size_t i = 0; i <= site->ntargets; i++) {
        esdm_error problem = {0};
        esdm__contents sum = {0};
        esdm_status status = check_part(site, i, kept, to, &sum, &problem);
        visit_part(options, site, i, status, &problem, &sum);
        if (status != ESDM_OK && first == ESDM_OK) {
            first = status;
            *err = problem;
        }
    }
    return first;
}

/* A line that was taken out of the configuration too early, or lost. */
static esdm_status
check_elsewhere(const esdm__site *site, const esdm__kept *kept, const esdm__report_to *to,
                esdm_error *err)
{
    uint64_t packs = esdm__kept_on(kept, site->ntargets);
    esdm_error why = {0};
    if (packs == 0)
        return ESDM_OK;
    esdm_status status = esdm__error_set(
        &why, ESDM_ECORRUPT,
        "%" PRIu64 " pack%s that the catalogue has lie%s on targets that are not in the "
        "configuration, such as \"%s\": bring its lines back (esdm-drain --from empties a target "
        "before they go)",
        packs, packs == 1 ? "" : "s", packs == 1 ? "s" : "", kept->elsewhere);
    esdm__say(to, "%s", why.message);
    *err = why;
    return status;
}

/* ---- packs without a container -------------------------------------------------------------- */

#define UUID_DIGITS (ESDM_META_UUID_BYTES - 1)

typedef struct strays {
    esdm__buffer known; /* uuids of containers, UUID_DIGITS each; sorted before packs are visited */
    uint64_t packs;
    uint64_t bytes;
    uint64_t saved; /* packs of journals and backups */
} strays;

static bool
note_container(const char *name, const esdm_meta_container *record, void *user)
{
    (void) name;
    esdm__buffer_put(&((strays *) user)->known, record->uuid, UUID_DIGITS);
    return true;
}

static int
compare_uuids(const void *a, const void *b)
{
    return memcmp(a, b, UUID_DIGITS);
}

static bool
note_pack(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    (void) modified_ns;
    strays *all = user;
    if (esdm__is_site_pack(name)) {
        all->saved++;
        return true;
    }
    if (strlen(name) >= UUID_DIGITS && all->known.bytes > 0 &&
        bsearch(name, all->known.data, all->known.bytes / UUID_DIGITS, UUID_DIGITS,
                compare_uuids) != NULL)
        return true;
    all->packs++;
    all->bytes += bytes;
    return true;
}

/* A journal lacks what no backup has: a loss of the catalogue would be one of data. */
static void
report_journal(const esdm__part *part, void *store, const esdm__report_to *to)
{
    char *text = NULL;
    if (part->meta->fact_get == NULL ||
        part->meta->fact_get(store, ESDM__FACT_JOURNAL_LACKS, &text, NULL) != ESDM_OK)
        return;
    time_t since = (time_t) (strtoull(text, NULL, 10) / 1000000000u);
    struct tm date = {0};
    char when[32] = "";
    (void) gmtime_r(&since, &date);
    (void) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &date);
    esdm__say(to,
              "note: the journal lacks changes of the catalogue since %s: no target took them in "
              "time. The next backup has them; look at the targets, and do not lose the catalogue "
              "before that",
              when);
    free(text);
}

/* What was committed before that may be missing. */
static void
report_put_back(const esdm__part *part, void *store, const esdm__report_to *to)
{
    char *text = NULL;
    if (part->meta->fact_get == NULL ||
        part->meta->fact_get(store, ESDM__FACT_PUT_BACK, &text, NULL) != ESDM_OK)
        return;
    esdm__say(to, "note: an older copy of the catalogue was put back: 'esdm-mkfs --restore' looks "
                  "for what is missing since; until then nothing goes that the catalogue does not "
                  "know");
    free(text);
}

/* As when the target that had the journal was taken away. */
static void
report_unsaved(const esdm__site *site, const strays *all, const esdm__report_to *to)
{
    if (all->saved > 0 || all->known.bytes == 0 || (!site->journal && site->backup_s == 0))
        return;
    esdm__say(to,
              "note: neither a journal nor a backup of the catalogue lies on the targets: if the "
              "catalogue is lost now, so are all containers. Was a target taken away that had "
              "them? Name it again, and let 'esdm-drain --from' empty it. Until then copy the "
              "catalogue yourself");
}

static esdm_status
list_containers(const esdm__part *part, strays *all, const esdm__report_to *to, esdm_error *err)
{
    void *store = NULL;
    esdm_status status = part->meta->open(&part->config, true, &store, err);
    if (status != ESDM_OK)
        return status;
    status = part->meta->container_list(store, NULL, note_container, all, err);
    report_journal(part, store, to);
    report_put_back(part, store, to);
    part->meta->close(store);
    if (status == ESDM_OK && all->known.failed)
        status = esdm__error_nomem(err, all->known.bytes, "the names of containers");
    if (status == ESDM_OK && all->known.bytes > 0)
        qsort(all->known.data, all->known.bytes / UUID_DIGITS, UUID_DIGITS, compare_uuids);
    return status;
}

static esdm_status
list_packs(const esdm__part *part, strays *all, esdm_error *err)
{
    void *target = NULL;
    esdm_status status = part->data->open(&part->config, &target, err);
    if (status != ESDM_OK)
        return status;
    status = part->data->pack_list(target, NULL, note_pack, all, err);
    part->data->close(target);
    return status;
}

/* A note, no failure: who is writing a new container at this moment has such packs, and so has who
 * still reads one that was removed. */
static esdm_status
report_strays(const esdm__site *site, const esdm__report_to *to, esdm_error *err)
{
    strays all = {0};
    esdm__part part;
    esdm__buffer_init(&all.known);
    esdm_status status = esdm__part_at(site, site->ntargets, &part, err);
    if (status == ESDM_OK)
        status = list_containers(&part, &all, to, err);
    for (size_t i = 0; i < site->ntargets && status == ESDM_OK; i++) {
        status = esdm__part_at(site, i, &part, err);
        if (status == ESDM_OK)
            status = list_packs(&part, &all, err);
    }
    if (status == ESDM_OK)
        report_unsaved(site, &all, to);
    esdm__buffer_clear(&all.known);
    if (status == ESDM_OK && all.packs > 0) {
        char size[24];
        esdm__format_bytes(all.bytes, size);
        esdm__say(to,
                  "note: %" PRIu64 " pack%s (%s) belong%s to no container: one that is being "
                  "written for the first time or was removed and is still read, or a killed "
                  "program left %s behind",
                  all.packs, all.packs == 1 ? "" : "s", size, all.packs == 1 ? "s" : "",
                  all.packs == 1 ? "it" : "them");
    } else if (status != ESDM_OK) {
        esdm__say(to, "%s", err->message);
    }
    return status;
}

static void
say_foreign(void *context, uid_t user, uid_t owner)
{
    esdm__say(context,
              "note: runs of user %llu are not recorded (monitor.runs): the folder of that number "
              "belongs to user %llu; remove it",
              (unsigned long long) user, (unsigned long long) owner);
}

/* Programs do not tell that they cannot record what they did. */
static void
report_runs(const esdm__site *site, const esdm__report_to *to)
{
    const char *folder = site->monitor.runs;
    const char *why = folder != NULL ? esdm__runs_problem(folder) : NULL;
    if (why != NULL)
        esdm__say(to, "note: runs are not recorded in '%s' (monitor.runs): %s", folder, why);
    unsigned foreign =
        folder != NULL && why == NULL ? esdm__runs_foreign(folder, say_foreign, (void *) to) : 0;
    if (foreign > ESDM__RUNS_TOLD)
        esdm__say(to, "note: so are those of %u others", foreign - ESDM__RUNS_TOLD);
}

/* ---- the site ------------------------------------------------------------------------------- */

static esdm_status
check_site(esdm__site *site, const esdm_site_options *options, const esdm__report_to *to,
           esdm_error *err)
{
    esdm_status status = esdm__site_resolve(site, err);
    if (status != ESDM_OK && status != ESDM_ENOENT) {
        esdm__say(to, "%s", err->message);
        return status;
    }
    /* Without a store, targets that are there belong to somebody else: they say so. */
    esdm__kept kept = {0};
    esdm_error why = {0};
    esdm_status read = esdm__kept_load(site, &kept, &why);
    status = check_parts(site, &kept, options, to, err);
    bool good = status == ESDM_OK && read == ESDM_OK;
    esdm_error elsewhere = {0};
    esdm_status other = check_elsewhere(site, &kept, to, &elsewhere);
    if (status == ESDM_OK && other != ESDM_OK) {
        *err = elsewhere;
        status = other;
    }
    esdm__kept_clear(&kept);
    if (status == ESDM_OK && read != ESDM_OK) { /* else the store has told why */
        esdm__say(to, "%s", why.message);
        *err = why;
        status = read;
    }
    report_runs(site, to);
    if (good) { /* also where packs lie elsewhere: who lacks a target may lack backups on it */
        other = report_strays(site, to, &why);
        if (status == ESDM_OK && other != ESDM_OK) {
            *err = why;
            status = other;
        }
    }
    return status;
}

esdm_status
esdm_site_check(const esdm_site_options *options, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = esdm__site_load_options(&options, &site, err);
    if (status == ESDM_OK) {
        const esdm__report_to to = esdm__reporter(options->report, options->user);
        esdm_error problem = {0};
        if (site->warning != NULL)
            esdm__say(&to, "note: %s", site->warning);
        status = check_site(site, options, &to, &problem);
        if (status != ESDM_OK && err != NULL)
            *err = problem;
    }
    esdm__site_free(site);
    return status;
}
