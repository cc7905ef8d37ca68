/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The operations of the plug-in `s3`: a bucket as a data target. */

#include "base/descriptor.h"
#include "s3.h"

extern const esdm_data_plugin esdm_data_s3_plugin;
const esdm_data_plugin esdm_data_s3_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_data_plugin),
             .kind = ESDM_PLUGIN_DATA,
             .name = S3__PLUGIN,
             .summary = "packs as objects in a bucket of an S3 server"},
    .flags = ESDM_DATA_SEAL_DURABLE,
    .read_bytes = 1u << 20,
    .concurrency = 16,
    .make = s3__make,
    .check = s3__check,
    .remove = s3__remove,
    .open = s3__open,
    .close = s3__close,
    .usage = s3__usage,
    .pack_create = s3__pack_create,
    .pack_append = s3__pack_append,
    .pack_sync = s3__pack_sync,
    .pack_seal = s3__pack_seal,
    .pack_read = s3__pack_read,
    .pack_remove = s3__pack_remove,
    .pack_list = s3__pack_list,
    .pack_is_full = s3__pack_is_full,
    .pack_discard = s3__pack_discard,
    .pack_begin_seal = s3__pack_begin_seal,
    .pack_recall = s3__pack_recall,
    .site_id = s3__site_id,
    .pack_has_ended = s3__pack_has_ended,
    .open_and_read = s3__open_and_read,
    .second_requests = s3__second_requests,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM__DESCRIPTORS_SHARED

ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_data_s3_plugin.base;
}
#endif
