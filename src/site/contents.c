/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What a site holds. */

#include <stdio.h>

#include "base/arguments.h"
#include "base/error.h"
#include "base/site_packs.h"
#include "site/admin.h"

static bool
count_container(const char *name, const esdm_meta_container *record, void *user)
{
    (void) record;
    ((esdm__contents *) user)->containers += name[0] != '/'; /* former ones are not told */
    return true;
}

static esdm_status
meta_contents(const esdm__part *part, esdm__contents *sum, esdm_error *err)
{
    void *store = NULL;
    esdm_status status = part->meta->open(&part->config, true, &store, err);
    if (status != ESDM_OK)
        return status;
    status = part->meta->container_list(store, NULL, count_container, sum, err);
    part->meta->close(store);
    return status;
}

/* What the site itself has there is not its content. */
static bool
take_off(const char *name, uint64_t bytes, uint64_t modified_ns, void *user)
{
    esdm_target_usage *usage = user;
    (void) name;
    (void) modified_ns;
    usage->packs -= usage->packs > 0;
    usage->used_bytes -= bytes < usage->used_bytes ? bytes : usage->used_bytes;
    return true;
}

static esdm_status
data_contents(const esdm__part *part, esdm__contents *sum, esdm_error *err)
{
    void *target = NULL;
    esdm_target_usage usage = {0};
    esdm_status status = part->data->open(&part->config, &target, err);
    if (status != ESDM_OK)
        return status;
    status = part->data->usage(target, &usage, err);
    if (status == ESDM_OK)
        status = part->data->pack_list(target, ESDM__SITE_PACKS, take_off, &usage, err);
    part->data->close(target);
    sum->packs += usage.packs;
    sum->used_bytes += usage.used_bytes;
    sum->free_bytes += usage.free_bytes;
    sum->total_bytes += usage.total_bytes;
    return status;
}

esdm_status
esdm__part_contents(const esdm__part *part, esdm__contents *sum, esdm_error *err)
{
    return part->meta != NULL ? meta_contents(part, sum, err) : data_contents(part, sum, err);
}

esdm_status
esdm__site_contents(const esdm__site *site, esdm__contents *ret_sum, size_t *ret_made,
                    esdm_error *err)
{
    esdm__contents sum = {0};
    *ret_made = 0;
    for (size_t i = 0; i <= site->ntargets; i++) {
        esdm__part part;
        esdm_error why;
        esdm_status status = esdm__part_at(site, i, &part, &why);
        if (status == ESDM_OK) {
            status = esdm__part_contents(&part, &sum, &why);
            *ret_made += status == ESDM_OK;
            if (status == ESDM_ENOENT)
                continue;
        }
        if (status != ESDM_OK) {
            if (err != NULL)
                *err = why;
            return status;
        }
    }
    *ret_sum = sum;
    return ESDM_OK;
}

void
esdm__format_bytes(uint64_t bytes, char ret_text[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double) bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
        value /= 1024;
    (void) snprintf(ret_text, 24, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

esdm_status
esdm_site_contents(const esdm_site_options *options, uint64_t *ret_containers, uint64_t *ret_bytes,
                   esdm_error *err)
{
    ESDM__NEED(err, ret_containers);
    ESDM__NEED(err, ret_bytes);
    esdm__site *site = NULL;
    esdm__contents sum = {0};
    size_t made = 0;
    esdm_status status = esdm__site_load_options(&options, &site, err);
    if (status == ESDM_OK) {
        esdm_error why = {0};
        status = esdm__site_resolve(site, &why);
        if (status == ESDM_ENOENT) /* its targets may be there all the same, and are errors then */
            status = ESDM_OK;
        else if (status != ESDM_OK && err != NULL)
            *err = why;
    }
    if (status == ESDM_OK)
        status = esdm__site_contents(site, &sum, &made, err);
    if (status == ESDM_OK && made == 0)
        status = esdm__error_set(err, ESDM_ENOENT,
                                 "the site \"%s\" of %s was not made yet; run "
                                 "esdm-mkfs",
                                 site->name, site->source);
    esdm__site_free(site);
    if (status == ESDM_OK) {
        *ret_containers = sum.containers;
        *ret_bytes = sum.used_bytes;
    }
    return status;
}
