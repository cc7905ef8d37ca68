/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The operations of the plug-in `postgres`: a PostgreSQL database as a metadata store. */

#include "base/descriptor.h"
#include "postgres.h"

static bool
is_writable(void *self)
{
    const postgres__store *store = self;
    return store->writable;
}

extern const esdm_meta_plugin esdm_meta_postgres_plugin;
const esdm_meta_plugin esdm_meta_postgres_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_meta_plugin),
             .kind = ESDM_PLUGIN_META,
             .name = "postgres",
             .summary = "schema of a PostgreSQL database"},
    .make = postgres__make,
    .check = postgres__check,
    .remove = postgres__remove,
    .site_id = postgres__site_id,
    .open = postgres__open,
    .close = postgres__close,
    .is_writable = is_writable,
    .container_find = postgres__container_find,
    .container_list = postgres__container_list,
    .container_remove = postgres__container_remove,
    .container_move = postgres__container_move,
    .container_move_seen = postgres__container_move_seen,
    .snapshot_open = postgres__snapshot_open,
    .pin = postgres__pin,
    .unpin = postgres__unpin,
    .snapshot_list = postgres__snapshot_list,
    .snapshot_at = postgres__snapshot_at,
    .page_list = postgres__page_list,
    .page_load = postgres__page_load,
    .commit = postgres__commit,
    .find = postgres__find,
    .garbage = postgres__garbage,
    .forget = postgres__forget,
    .state = postgres__state,
    .set_state = postgres__set_state,
    .attributes = postgres__attributes,
    .extent_list = postgres__extent_list,
    .extent_put = postgres__extent_put,
    .extent_names = postgres__extent_names,
    .extent_merge = postgres__extent_merge,
    .values = postgres__values,
    .import = postgres__import,
    .fact_get = postgres__fact_get,
    .fact_put = postgres__fact_put,
    .fact_list = postgres__fact_list,
    .record_list = postgres__record_list,
    .writer_begin = postgres__writer_begin,
    .writer_end = postgres__writer_end,
    .writer_lives = postgres__writer_lives,
    .relocate = postgres__relocate,
    .prune = postgres__prune,
    .writer_check = postgres__writer_check,
    .facets = postgres__facets,
    .find_expression = postgres__find_expression,
    .ordered = postgres__ordered,
    .find_among = postgres__find_among,
    .find_estimate = postgres__find_estimate,
    .hold = postgres__hold,
    .release = postgres__release,
    .view_set = postgres__view_set,
    .view_level = postgres__view_level,
    .clone = postgres__clone,
    .shared_list = postgres__shared_list,
    .share = postgres__share,
    .commit_shares = true,
    .commit_tags = true,
    .commit_follows = true,
    .connects = true,
    .shared_of = postgres__shared_of,
    .tag_set = postgres__tag_set,
    .tag_remove = postgres__tag_remove,
    .tag_list = postgres__tag_list,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM__DESCRIPTORS_SHARED

ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_meta_postgres_plugin.base;
}
#endif
