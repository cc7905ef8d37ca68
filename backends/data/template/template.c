/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Template of a data target: copy the folder, rename `template`, fill in the functions. The
 * contract is in esdm/sys/data_target.h. Until a function does its work it returns ESDM_ENOTSUP,
 * never ESDM_OK: a caller must not believe that data is stored.
 */

#include "base/error.h"
#include "esdm/sys/data_target.h"

static esdm_status
not_yet(const char *what, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOTSUP, "template: %s is not implemented", what);
}

/* mkfs: make and mark the place. Repeating it changes nothing; foreign content is ESDM_EEXIST and
 * stays untouched. A dry run only reports. base/place.h does this for directories. */
static esdm_status
template_make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
              void *user, esdm_error *err)
{
    (void) config, (void) dry_run, (void) report, (void) user;
    return not_yet("make", err);
}

/* Report every problem, return the first; write nothing. */
static esdm_status
template_check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
               esdm_error *err)
{
    (void) config, (void) report, (void) user;
    return not_yet("check", err);
}

/* Remove all packs and the mark and nothing else; ESDM_EINVAL when the mark is not this site's. */
static esdm_status
template_remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                void *user, esdm_error *err)
{
    (void) config, (void) dry_run, (void) report, (void) user;
    return not_yet("remove", err);
}

/* Check the configuration object and the mark; need no write permission. The handle is used by
 * many threads at once. */
static esdm_status
template_open(const esdm_plugin_config *config, void **ret_target, esdm_error *err)
{
    (void) config, (void) ret_target;
    return not_yet("open", err);
}

/* After all packs were sealed; accepts NULL. */
static void
template_close(void *target)
{
    (void) target;
}

/* Space, and what the packs of this site use of it. total_bytes 0: not known. */
static esdm_status
template_usage(void *target, esdm_target_usage *ret_usage, esdm_error *err)
{
    (void) target, (void) ret_usage;
    return not_yet("usage", err);
}

/* Start an empty pack under a name that must be free (ESDM_EEXIST). One thread at a time uses it.
 */
static esdm_status
template_pack_create(void *target, const char *name, void **ret_pack, esdm_error *err)
{
    (void) target, (void) name, (void) ret_pack;
    return not_yet("pack_create", err);
}

/* Append all pieces or nothing; tell where the first byte lies. Do not copy large pieces. */
static esdm_status
template_pack_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
                     esdm_error *err)
{
    (void) pack, (void) iov, (void) niov, (void) ret_position;
    return not_yet("pack_append", err);
}

/* What was appended survives power loss; a target that cannot promise this says ESDM_ENOTSUP. */
static esdm_status
template_pack_sync(void *pack, esdm_error *err)
{
    (void) pack;
    return not_yet("pack_sync", err);
}

/* Publish the whole pack to all readers and free the handle, also on failure; accepts NULL. */
static esdm_status
template_pack_seal(void *pack, esdm_error *err)
{
    if (pack == NULL)
        return ESDM_OK;
    return not_yet("pack_seal", err);
}

/* Fill all ranges, which come sorted; merge neighbours. Past the end is ESDM_ECORRUPT. */
static esdm_status
template_pack_read(void *target, const char *name, const esdm_range *ranges, size_t nranges,
                   esdm_error *err)
{
    (void) target, (void) name, (void) ranges, (void) nranges;
    return not_yet("pack_read", err);
}

/* A pack that is not there is ESDM_OK. */
static esdm_status
template_pack_remove(void *target, const char *name, esdm_error *err)
{
    (void) target, (void) name;
    return not_yet("pack_remove", err);
}

/* Visit the packs whose names begin with `prefix` (NULL: all) until the visitor returns false. */
static esdm_status
template_pack_list(void *target, const char *prefix, esdm_pack_visitor visit, void *user,
                   esdm_error *err)
{
    (void) target, (void) prefix, (void) visit, (void) user;
    return not_yet("pack_list", err);
}

/* The one global symbol: esdm_data_<name>_plugin. */
extern const esdm_data_plugin esdm_data_template_plugin;
const esdm_data_plugin esdm_data_template_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_data_plugin),
             .kind = ESDM_PLUGIN_DATA,
             .name = "template",
             .summary = "a template; stores nothing"},
    .flags = 0, /* ESDM_DATA_READ_UNSEALED if packs can be read while they are written */
    .make = template_make,
    .check = template_check,
    .remove = template_remove,
    .open = template_open,
    .close = template_close,
    .usage = template_usage,
    .pack_create = template_pack_create,
    .pack_append = template_pack_append,
    .pack_sync = template_pack_sync,
    .pack_seal = template_pack_seal,
    .pack_read = template_pack_read,
    .pack_remove = template_pack_remove,
    .pack_list = template_pack_list,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_data_template_plugin.base;
}
#endif
