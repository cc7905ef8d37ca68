/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The operations of the plug-in `sqlite`: a SQLite database as a metadata store. */

#include "store.h"

static bool
is_writable(void *self)
{
    const sqlite__store *store = self;
    return store->writable || store->refused.status != ESDM_OK; /* then a write tells why not */
}

extern const esdm_meta_plugin esdm_meta_sqlite_plugin;
const esdm_meta_plugin esdm_meta_sqlite_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_meta_plugin),
             .kind = ESDM_PLUGIN_META,
             .name = "sqlite",
             .summary = "embedded SQLite database in a directory"},
    .make = sqlite__make,
    .check = sqlite__check,
    .remove = sqlite__remove,
    .site_id = sqlite__site_id,
    .open = sqlite__open,
    .close = sqlite__close,
    .is_writable = is_writable,
    .container_find = sqlite__container_find,
    .container_list = sqlite__container_list,
    .container_remove = sqlite__container_remove,
    .container_move = sqlite__container_move,
    .container_move_seen = sqlite__container_move_seen,
    .snapshot_open = sqlite__snapshot_open,
    .pin = sqlite__pin,
    .unpin = sqlite__unpin,
    .snapshot_list = sqlite__snapshot_list,
    .snapshot_at = sqlite__snapshot_at,
    .page_list = sqlite__page_list,
    .page_load = sqlite__page_load,
    .commit = sqlite__commit,
    .find = sqlite__find,
    .garbage = sqlite__garbage,
    .forget = sqlite__forget,
    .state = sqlite__state,
    .set_state = sqlite__set_state,
    .attributes = sqlite__attributes,
    .import = sqlite__import,
    .fact_get = sqlite__fact_get,
    .fact_put = sqlite__fact_put,
    .fact_list = sqlite__fact_list,
    .record_list = sqlite__record_list,
    .writer_begin = sqlite__writer_begin,
    .writer_end = sqlite__writer_end,
    .writer_lives = sqlite__writer_lives,
    .relocate = sqlite__relocate,
    .prune = sqlite__prune_record,
    .settle = sqlite__settle,
    .backup = sqlite__backup,
    .restore = sqlite__restore,
    .facets = sqlite__facets,
    .find_expression = sqlite__find_expression,
    .ordered = sqlite__ordered,
    .find_among = sqlite__find_among,
    .find_estimate = sqlite__find_estimate,
    .hold = sqlite__hold,
    .release = sqlite__release,
    .view_set = sqlite__view_set,
    .view_level = sqlite__view_level,
    .clone = sqlite__clone,
    .shared_list = sqlite__shared_list,
    .share = sqlite__share,
    .commit_shares = true,
    .commit_tags = true,
    .commit_follows = true,
    .tag_set = sqlite__tag_set,
    .tag_remove = sqlite__tag_remove,
    .tag_list = sqlite__tag_list,
    .extent_list = sqlite__extent_list,
    .extent_put = sqlite__extent_put,
    .extent_names = sqlite__extent_names,
    .extent_merge = sqlite__extent_merge,
    .values = sqlite__values,
    .shared_of = sqlite__shared_of,
    .why_read_only = sqlite__why_read_only,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_meta_sqlite_plugin.base;
}
#endif
