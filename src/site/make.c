/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Making what a site configuration describes (esdm-mkfs, and the embedded default). */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "monitor/runs.h"
#include "site/admin.h"
#include "site/kept.h"
#include "site/parts.h"

static esdm_status
part_make(const esdm__site *site, size_t index, bool dry_run, const esdm__report_to *to,
          esdm_error *err)
{
    esdm__part p;
    esdm_status status = esdm__part_at(site, index, &p, err);
    if (status != ESDM_OK)
        return status;
    return p.meta != NULL ? p.meta->make(&p.config, dry_run, to->report, to->user, err)
                          : p.data->make(&p.config, dry_run, to->report, to->user, err);
}

/* The store comes first: who is interrupted then finds the id of the targets there. */
static esdm_status
make_parts(const esdm__site *site, bool dry_run, const esdm__report_to *to, esdm_error *err)
{
    esdm_status status = part_make(site, site->ntargets, dry_run, to, err);
    for (size_t i = 0; i < site->ntargets && status == ESDM_OK; i++)
        status = part_make(site, i, dry_run, to, err);
    return status;
}

/* Whether a target of a site that exists was never made, or is away. */
static bool
is_absent(const esdm__part *part)
{
    void *handle = NULL;
    if (part->target->local || (part->data->flags & ESDM_DATA_VOLATILE) != 0)
        return false; /* each node, or process, makes its own */
    esdm_status status = part->data->open(&part->config, &handle, NULL);
    if (status == ESDM_OK)
        part->data->close(handle);
    return status == ESDM_ENOENT;
}

/* A disk that is not mounted looks like a target that was never made. */
static esdm_status
refuse_lost(const esdm__site *site, esdm_error *err)
{
    esdm__kept kept = {0};
    bool loaded = false;
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < site->ntargets && status == ESDM_OK; i++) {
        esdm__part part;
        status = esdm__part_at(site, i, &part, err);
        if (status != ESDM_OK || !is_absent(&part))
            continue;
        if (!loaded)
            status = esdm__kept_load(site, &kept, err);
        loaded = true;
        uint64_t packs = status == ESDM_OK ? esdm__kept_on(&kept, i) : 0;
        if (packs > 0)
            status = esdm__error_set(
                err, ESDM_EEXIST,
                "%s: target \"%s\" is not there, and the catalogue has %" PRIu64 " pack%s on it: "
                "bring it back (is its disk mounted?); only if they are lost for good, make it "
                "anew with --yes, and let esdm-fsck tell what is lost",
                part.target->path, part.target->name, packs, packs == 1 ? "" : "s");
    }
    esdm__kept_clear(&kept);
    return status;
}

/* Whether the store that the mark tells of has no catalogue: it was never made, or is lost. */
static esdm_status
has_no_catalogue(const esdm__site *site, bool *ret_none, esdm_error *err)
{
    esdm__part part;
    void *store = NULL;
    esdm_error why = {0};
    esdm_status status = esdm__part_at(site, site->ntargets, &part, &why);
    if (status == ESDM_OK)
        status = part.meta->open(&part.config, true, &store, &why);
    if (status == ESDM_OK)
        part.meta->close(store);
    else if (status != ESDM_ENOENT && err != NULL)
        *err = why;
    *ret_none = status == ESDM_ENOENT;
    return status == ESDM_ENOENT ? ESDM_OK : status;
}

/* With an empty catalogue all packs would be taken for garbage, and be lost for the right one. */
static esdm_status
refuse_empty(const esdm__site *site, esdm_error *err)
{
    bool none = false;
    esdm_status status = has_no_catalogue(site, &none, err);
    for (size_t i = 0; i < site->ntargets && status == ESDM_OK && none; i++) {
        esdm__part part;
        esdm__contents holds = {0};
        esdm_error why = {0};
        status = esdm__part_at(site, i, &part, err);
        if (status == ESDM_OK && (part.data->flags & ESDM_DATA_VOLATILE) == 0 &&
            esdm__part_contents(&part, &holds, &why) == ESDM_OK && holds.packs > 0)
            status = esdm__error_set(
                err, ESDM_EEXIST,
                "%s: the metadata store has no catalogue, and target \"%s\" holds %" PRIu64
                " pack%s of this site: esdm-mkfs --restore brings the catalogue back from backups "
                "and journals; only if it is lost for good, make an empty one with --yes, for "
                "which these packs are garbage",
                site->metadata.path, part.target->name, holds.packs, holds.packs == 1 ? "" : "s");
    }
    return status;
}

/* A new site is tried out without an id: a mark that some target has cannot be its own then, and
 * packs without their metadata store, or of a site with another one, are not taken over. */
static esdm_status
make_with_id(esdm__site *site, bool dry_run, const esdm__report_to *to, esdm_error *err)
{
    /* Nothing is touched unless every part can be made. */
    const esdm__report_to silent = esdm__reporter(NULL, NULL);
    esdm_status status = make_parts(site, true, dry_run ? to : &silent, err);
    if (status != ESDM_OK || dry_run)
        return status;
    if (site->id[0] == '\0' && site->stated_id[0] != '\0')
        memcpy(site->id, site->stated_id, sizeof site->id);
    else if (site->id[0] == '\0')
        esdm__uuid_new(site->id);
    return make_parts(site, false, to, err);
}

/* What is browsed is counted from the beginning. Without it all is there too, only slower. */
static void
keep_views(const esdm__site *site, const esdm__report_to *to)
{
    esdm__part part;
    void *store = NULL;
    esdm_error why = {0};
    esdm_status status = esdm__part_at(site, site->ntargets, &part, &why);
    if (status == ESDM_OK)
        status = part.meta->open(&part.config, false, &store, &why);
    if (status == ESDM_OK) {
        status = esdm__site_views_keep(site, part.meta, store, false, &why);
        part.meta->close(store);
    }
    if (status != ESDM_OK)
        esdm__say(to, "note: no counts are kept for views: %s", why.message);
}

/* Where all users' runs are recorded. Without it programs run as well. */
static void
keep_runs(const esdm__site *site, const esdm__report_to *to)
{
    esdm_error why = {0};
    if (site->monitor.runs != NULL && esdm__runs_make(site->monitor.runs, &why) != ESDM_OK)
        esdm__say(to, "note: runs are not recorded: %s", why.message);
}

static esdm_status
make_site(esdm__site *site, bool dry_run, bool anew, const esdm__report_to *to, esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = esdm__site_resolve(site, &why);
    bool fresh = status == ESDM_ENOENT;
    if (status == ESDM_OK && !anew)
        status = refuse_lost(site, &why);
    if (status == ESDM_OK && !anew)
        status = refuse_empty(site, &why);
    if (status == ESDM_OK || fresh)
        status = make_with_id(site, dry_run, to, &why);
    /* When somebody else made the store meanwhile, its id counts. */
    if (status == ESDM_EEXIST && fresh && esdm__site_resolve(site, NULL) == ESDM_OK)
        status = make_with_id(site, dry_run, to, &why);
    if (status == ESDM_OK && !dry_run)
        keep_views(site, to);
    if (status == ESDM_OK && !dry_run)
        keep_runs(site, to);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* The default site is made by whoever comes first: a lock on its folder lets the others wait.
 * Some network file systems cannot lock a folder; there the plug-ins' own care must do. */
static esdm_status
make_embedded(esdm__site *site, const esdm__report_to *to, esdm_error *err)
{
    char *base = NULL;
    esdm_status status = esdm__site_data_folder(&base, err);
    if (status == ESDM_OK)
        status = esdm__site_make_folders(base, err);
    if (status != ESDM_OK) {
        free(base);
        return esdm__error_prefix(err, status, "the default site cannot be made");
    }
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        status = esdm__error_set_errno(err, errno, "cannot open the folder '%s'", base);
        free(base);
        return status;
    }
    free(base);
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    status = make_site(site, false, false, to, err);
    (void) close(fd); /* gives up the lock */
    return status;
}

esdm_status
esdm__site_make(esdm__site *site, bool dry_run, bool anew, esdm_plugin_reporter report, void *user,
                esdm_error *err)
{
    const esdm__report_to to = esdm__reporter(report, user);
    if (site->warning != NULL)
        esdm__say(&to, "note: %s", site->warning);
    if (site->embedded && !dry_run)
        return make_embedded(site, &to, err);
    return make_site(site, dry_run, anew, &to, err);
}

static esdm_status
refuse_volatile(const esdm__site *site, esdm_error *err)
{
    for (size_t i = 0; i < site->ntargets; i++) {
        esdm__part part;
        esdm_status status = esdm__part_at(site, i, &part, err);
        if (status != ESDM_OK)
            return status;
        if ((part.data->flags & ESDM_DATA_VOLATILE) != 0)
            return esdm__error_set(
                err, ESDM_ENOTSUP,
                "%s: target \"%s\" of plug-in '%s' exists only inside one "
                "process and would be gone at the end of this one: use \"posix\", "
                "or let the program that uses it call esdm_site_create()",
                part.target->path, part.target->name, part.target->plugin);
    }
    return ESDM_OK;
}

esdm_status
esdm_site_create(const esdm_site_options *options, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = esdm__site_load_options(&options, &site, err);
    if (status == ESDM_OK && options->lasting)
        status = refuse_volatile(site, err);
    if (status == ESDM_OK)
        status = esdm__site_make(site, options->dry_run, options->anew, options->report,
                                 options->user, err);
    esdm__site_free(site);
    return status;
}
