/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The operations of the plug-in `posix`: a folder as a data target. */

#include "posix.h"

extern const esdm_data_plugin esdm_data_posix_plugin;
const esdm_data_plugin esdm_data_posix_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_data_plugin),
             .kind = ESDM_PLUGIN_DATA,
             .name = "posix",
             .summary = "packs as files in a directory"},
    .flags = ESDM_DATA_READ_UNSEALED | ESDM_DATA_CACHED,
    .make = posix__make,
    .check = posix__check,
    .remove = posix__remove,
    .open = posix__open,
    .close = posix__close,
    .usage = posix__usage,
    .pack_create = posix__pack_create,
    .pack_append = posix__pack_append,
    .pack_sync = posix__pack_sync,
    .pack_seal = posix__pack_seal,
    .pack_read = posix__pack_read,
    .pack_remove = posix__pack_remove,
    .pack_list = posix__pack_list,
    .pack_evict = posix__pack_evict,
    .space = posix__space,
    .site_id = posix__site_id,
    .file_hold = posix__file_hold,
    .file_open = posix__file_open,
    .file_list = posix__file_list,
    .file_remove = posix__file_remove,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_data_posix_plugin.base;
}
#endif
