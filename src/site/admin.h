/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SITE_ADMIN_H
#define ESDM_SITE_ADMIN_H

/** @file What making, checking and removing sites have in common. */

#include "esdm/sys/data_target.h"
#include "esdm/sys/meta_store.h"
#include "site/site.h"

/* ---- the parts of a site -------------------------------------------------------------------- */

typedef struct esdm__part {
    const esdm__site_target *target;
    const esdm_data_plugin *data; /* one of the two is set */
    const esdm_meta_plugin *meta;
    esdm_plugin_config config; /* borrows from the site */
} esdm__part;

/** Targets first, the metadata store at index ntargets. */
esdm_status esdm__part_at(const esdm__site *site, size_t index, esdm__part *ret_part,
                          esdm_error *err);

/* ---- reports -------------------------------------------------------------------------------- */

typedef struct esdm__report_to {
    esdm_plugin_reporter report; /* never NULL: plug-ins need not check */
    void *user;
} esdm__report_to;

/** @param report NULL: nobody listens. */
esdm__report_to esdm__reporter(esdm_site_reporter report, void *user);
void esdm__say(const esdm__report_to *to, const char *format, ...) ESDM_PRINTF(2, 3);

/* ---- contents ------------------------------------------------------------------------------- */

typedef struct esdm__contents {
    uint64_t containers;
    uint64_t packs;
    uint64_t used_bytes;
    uint64_t free_bytes;
    uint64_t total_bytes; /* of what the targets lie on, where it is known */
} esdm__contents;

/** Adds what one part holds. ESDM_ENOENT: it was never made. */
esdm_status esdm__part_contents(const esdm__part *part, esdm__contents *sum, esdm_error *err);
/** Sums up all parts; one that was never made counts as empty. @param ret_made how many were. */
esdm_status esdm__site_contents(const esdm__site *site, esdm__contents *ret_sum, size_t *ret_made,
                                esdm_error *err);
/** "1.5 MiB" */
void esdm__format_bytes(uint64_t bytes, char ret_text[24]);

/* ---- options -------------------------------------------------------------------------------- */

/** Loads what the options name, which may be NULL: *options points to something afterwards. */
esdm_status esdm__site_load_options(const esdm_site_options **options, esdm__site **ret_site,
                                    esdm_error *err);

#endif
