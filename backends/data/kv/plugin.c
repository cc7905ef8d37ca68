/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The operations of the plug-in `kv`: Kyoto Cabinet databases as a data target. */

#include "base/descriptor.h"
#include "kv.h"

extern const esdm_data_plugin esdm_data_kv_plugin;
const esdm_data_plugin esdm_data_kv_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_data_plugin),
             .kind = ESDM_PLUGIN_DATA,
             .name = "kv",
             .summary = "packs as records of Kyoto Cabinet databases in a directory"},
    .flags = ESDM_DATA_CACHED,
    .make = kv__make,
    .check = kv__check,
    .remove = kv__remove,
    .open = kv__open,
    .close = kv__close,
    .usage = kv__usage,
    .pack_create = kv__pack_create,
    .pack_append = kv__pack_append,
    .pack_sync = kv__pack_sync,
    .pack_seal = kv__pack_seal,
    .pack_read = kv__pack_read,
    .pack_remove = kv__pack_remove,
    .pack_list = kv__pack_list,
    .pack_discard = kv__pack_discard,
    .pack_recall = kv__pack_recall,
    .space = kv__space,
    .site_id = kv__site_id,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM__DESCRIPTORS_SHARED

ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_data_kv_plugin.base;
}
#endif
