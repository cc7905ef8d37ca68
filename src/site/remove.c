/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Removing a site: what ESDM made and wrote, nothing else. */

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "site/admin.h"
#include "site/parts.h"

static esdm_status
part_remove(const esdm__part *part, bool dry_run, const esdm__report_to *to, esdm_error *err)
{
    return part->meta != NULL
               ? part->meta->remove(&part->config, dry_run, to->report, to->user, err)
               : part->data->remove(&part->config, dry_run, to->report, to->user, err);
}

/* ESDM_ENOENT of a part means that it is gone already: an interrupted removal can be repeated, for
 * the store, which knows the id of the others, goes last. A site of which nothing is there is
 * ESDM_ENOENT itself. */
static esdm_status
remove_parts(const esdm__site *site, bool dry_run, const esdm__report_to *to, esdm_error *err)
{
    size_t absent = 0;
    for (size_t i = 0; i <= site->ntargets; i++) {
        esdm__part part;
        esdm_error problem;
        esdm_status status = esdm__part_at(site, i, &part, err);
        if (status != ESDM_OK)
            return status;
        status = part_remove(&part, dry_run, to, &problem);
        if (status == ESDM_ENOENT) {
            esdm__say(to, "%s: nothing to remove (%s)", part.target->path, problem.message);
            absent++;
        } else if (status != ESDM_OK) {
            if (err != NULL)
                *err = problem;
            return status;
        }
    }
    if (absent <= site->ntargets)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOENT, "nothing of the site \"%s\" of %s is there",
                           site->name, site->source);
}

static esdm_status
refuse_data(const esdm__site *site, esdm_error *err)
{
    esdm__contents sum = {0};
    size_t made = 0;
    esdm_status status = esdm__site_contents(site, &sum, &made, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "cannot tell whether the site holds data");
    if (sum.containers == 0 && sum.used_bytes == 0)
        return ESDM_OK;
    char size[24];
    esdm__format_bytes(sum.used_bytes, size);
    return esdm__error_set(err, ESDM_EEXIST,
                           "the site \"%s\" holds %" PRIu64 " container%s and %s in %" PRIu64
                           " pack%s; removing it destroys them, which must be asked for",
                           site->name, sum.containers, sum.containers == 1 ? "" : "s", size,
                           sum.packs, sum.packs == 1 ? "" : "s");
}

static void
remove_embedded_folder(const esdm__site *site)
{
    char *base = NULL;
    if (site->embedded && esdm__site_data_folder(&base, NULL) == ESDM_OK)
        (void) rmdir(base); /* only when empty; anything else in it is not ours */
    free(base);
}

static esdm_status
remove_site(esdm__site *site, const esdm_site_options *options, const esdm__report_to *to,
            esdm_error *err)
{
    esdm_error why = {0};
    esdm_status status = esdm__site_resolve(site, &why);
    if (status != ESDM_OK && status != ESDM_ENOENT) {
        if (err != NULL)
            *err = why;
        return status;
    }
    if (!options->remove_data && !options->dry_run) {
        status = refuse_data(site, err);
        if (status != ESDM_OK)
            return status;
    }
    /* Nothing is removed unless every part may be. */
    const esdm__report_to silent = esdm__reporter(NULL, NULL);
    status = remove_parts(site, true, options->dry_run ? to : &silent, err);
    if (status != ESDM_OK || options->dry_run)
        return status;
    status = remove_parts(site, false, to, err);
    if (status == ESDM_OK)
        remove_embedded_folder(site);
    return status;
}

esdm_status
esdm_site_remove(const esdm_site_options *options, esdm_error *err)
{
    esdm__site *site = NULL;
    esdm_status status = esdm__site_load_options(&options, &site, err);
    if (status == ESDM_OK) {
        const esdm__report_to to = esdm__reporter(options->report, options->user);
        status = remove_site(site, options, &to, err);
    }
    esdm__site_free(site);
    return status;
}
