/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * Template of a metadata store: copy the folder, rename `template`, fill in the functions. The
 * contract is in esdm/sys/meta_store.h. Until a function does its work it returns ESDM_ENOTSUP,
 * never ESDM_OK.
 */

#include "base/error.h"
#include "esdm/sys/meta_store.h"

static esdm_status
not_yet(const char *what, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOTSUP, "template: %s is not implemented", what);
}

/* mkfs: make and mark the place; repeating it changes nothing. */
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

/* Remove what make and ESDM wrote, nothing else. */
static esdm_status
template_remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                void *user, esdm_error *err)
{
    (void) config, (void) dry_run, (void) report, (void) user;
    return not_yet("remove", err);
}

/* The id that make was given; ESDM_ENOENT before that. */
static esdm_status
template_site_id(const esdm_plugin_config *config, char ret_id[ESDM_META_UUID_BYTES],
                 esdm_error *err)
{
    (void) config, (void) ret_id;
    return not_yet("site_id", err);
}

/* Without permission to write, or read_only: reads work, commits are ESDM_EACCES. A newer format is
 * ESDM_ENOTSUP. Many threads use the handle: lock inside. */
static esdm_status
template_open(const esdm_plugin_config *config, bool read_only, void **ret_store, esdm_error *err)
{
    (void) config, (void) read_only, (void) ret_store;
    return not_yet("open", err);
}

/* Accepts NULL. In a forked child it must not touch what its parent uses. */
static void
template_close(void *store)
{
    (void) store;
}

/* Whether commits are permitted; cheap. */
static bool
template_is_writable(void *store)
{
    (void) store;
    return false;
}

/* ESDM_ENOENT when the name is not there. */
static esdm_status
template_container_find(void *store, const char *name, esdm_meta_container *ret_record,
                        esdm_error *err)
{
    (void) store, (void) name, (void) ret_record;
    return not_yet("container_find", err);
}

/* Byte order of names; a prefix means itself and what lies below "prefix/". */
static esdm_status
template_container_list(void *store, const char *prefix, esdm_meta_container_visitor visit,
                        void *user, esdm_error *err)
{
    (void) store, (void) prefix, (void) visit, (void) user;
    return not_yet("container_list", err);
}

/* Free the name; the record becomes garbage and stays whole for who has it pinned. */
static esdm_status
template_container_remove(void *store, const char *name, uint64_t *ret_container, esdm_error *err)
{
    (void) store, (void) name, (void) ret_container;
    return not_yet("container_remove", err);
}

/* One transaction; the record that had the name `to` becomes garbage. */
static esdm_status
template_container_move(void *store, const char *from, const char *to, bool replace,
                        const char *keep_as, uint64_t *ret_replaced, esdm_error *err)
{
    (void) store, (void) from, (void) to, (void) replace, (void) keep_as, (void) ret_replaced;
    return not_yet("container_move", err);
}

/* One consistent read, and pinned: nobody may delete the snapshot between the two. */
static esdm_status
template_snapshot_open(void *store, const char *name, uint64_t snapshot, uint64_t known_container,
                       uint64_t known_structure, esdm_meta_snapshot *ret_snapshot, esdm_error *err)
{
    (void) store, (void) name, (void) snapshot, (void) known_container, (void) known_structure;
    (void) ret_snapshot;
    return not_yet("snapshot_open", err);
}

/* Pins count, hold in all processes, and die with the process. */
static esdm_status
template_pin(void *store, uint64_t container, uint64_t snapshot, esdm_error *err)
{
    (void) store, (void) container, (void) snapshot;
    return not_yet("pin", err);
}

static void
template_unpin(void *store, uint64_t container, uint64_t snapshot)
{
    (void) store, (void) container, (void) snapshot;
}

/* Oldest first. */
static esdm_status
template_snapshot_list(void *store, const char *name, esdm_meta_snapshot_visitor visit, void *user,
                       esdm_error *err)
{
    (void) store, (void) name, (void) visit, (void) user;
    return not_yet("snapshot_list", err);
}

/* Pages with added <= snapshot < removed (or never removed). */
static esdm_status
template_page_list(void *store, uint64_t container, uint64_t snapshot, uint32_t dataset,
                   esdm_meta_page_visitor visit, void *user, esdm_error *err)
{
    (void) store, (void) container, (void) snapshot, (void) dataset, (void) visit, (void) user;
    return not_yet("page_list", err);
}

/* The bytes of a page as they were committed; malloc'ed for the caller. */
static esdm_status
template_page_load(void *store, uint64_t page, void **ret_data, size_t *ret_bytes, esdm_error *err)
{
    (void) store, (void) page, (void) ret_data, (void) ret_bytes;
    return not_yet("page_load", err);
}

/* Everything in one transaction, or nothing: `pages`, then what next_page() yields. Check for the
 * three conflicts inside it. */
static esdm_status
template_commit(void *store, const esdm_meta_commit *commit, esdm_meta_committed *ret_committed,
                esdm_error *err)
{
    (void) store, (void) commit, (void) ret_committed;
    return not_yet("commit", err);
}

/* All conditions hold for each match, one of them for the object itself. */
static esdm_status
template_find(void *store, const esdm_meta_condition *conditions, size_t nconditions,
              esdm_meta_match_visitor visit, void *user, esdm_error *err)
{
    (void) store, (void) conditions, (void) nconditions, (void) visit, (void) user;
    return not_yet("find", err);
}

/* Garbage records that nobody has pinned. */
static esdm_status
template_garbage(void *store, esdm_meta_garbage_visitor visit, void *user, esdm_error *err)
{
    (void) store, (void) visit, (void) user;
    return not_yet("garbage", err);
}

/* ESDM_ECONFLICT for what is pinned or not garbage. Its number is never given again. */
static esdm_status
template_forget(void *store, uint64_t container, esdm_error *err)
{
    (void) store, (void) container;
    return not_yet("forget", err);
}

/* What set_state() has set last; ESDM_META_ACTIVE before. */
static esdm_status
template_state(void *store, esdm_meta_state *ret_state, char ret_note[ESDM_META_NOTE_BYTES],
               esdm_error *err)
{
    (void) store, (void) ret_state, (void) ret_note;
    return not_yet("state", err);
}

/* No change may be in progress when it returns, in any process. */
static esdm_status
template_set_state(void *store, esdm_meta_state state, const char *note, esdm_error *err)
{
    (void) store, (void) state, (void) note;
    return not_yet("set_state", err);
}

/* What the last commit with a document has handed over. */
static esdm_status
template_attributes(void *store, uint64_t container, esdm_meta_attribute_visitor visit, void *user,
                    esdm_error *err)
{
    (void) store, (void) container, (void) visit, (void) user;
    return not_yet("attributes", err);
}

/* One transaction; pages are asked for one after another, for they need not fit into memory. */
static esdm_status
template_import(void *store, const esdm_meta_import *import, esdm_error *err)
{
    (void) store, (void) import;
    return not_yet("import", err);
}

/* ESDM_ENOENT when there is none. */
static esdm_status
template_fact_get(void *store, const char *name, char **ret_text, esdm_error *err)
{
    (void) store, (void) name, (void) ret_text;
    return not_yet("fact_get", err);
}

/* NULL removes it. */
static esdm_status
template_fact_put(void *store, const char *name, const char *text, esdm_error *err)
{
    (void) store, (void) name, (void) text;
    return not_yet("fact_put", err);
}

static esdm_status
template_fact_list(void *store, const char *prefix, esdm_meta_fact_visitor visit, void *user,
                   esdm_error *err)
{
    (void) store, (void) prefix, (void) visit, (void) user;
    return not_yet("fact_list", err);
}

/* Garbage too, with name NULL. */
static esdm_status
template_record_list(void *store, esdm_meta_record_visitor visit, void *user, esdm_error *err)
{
    (void) store, (void) visit, (void) user;
    return not_yet("record_list", err);
}

/* Like a pin, it dies with its process. */
static esdm_status
template_writer_begin(void *store, const char *writer, esdm_error *err)
{
    (void) store, (void) writer;
    return not_yet("writer_begin", err);
}

static void
template_writer_end(void *store, const char *writer)
{
    (void) store, (void) writer;
}

static esdm_status
template_writer_lives(void *store, const char *writer, bool *ret_lives, esdm_error *err)
{
    (void) store, (void) writer, (void) ret_lives;
    return not_yet("writer_lives", err);
}

/* What commits do now and then, for one record. */
static esdm_status
template_prune(void *store, uint64_t container, uint32_t history, esdm_error *err)
{
    (void) store, (void) container, (void) history;
    return not_yet("prune", err);
}

/* New numbers, old entries. */
static esdm_status
template_relocate(void *store, uint64_t container, esdm_meta_relocation *pages, size_t npages,
                  bool durable, esdm_error *err)
{
    (void) store, (void) container, (void) pages, (void) npages, (void) durable;
    return not_yet("relocate", err);
}

/* The one global symbol: esdm_meta_<name>_plugin. */
extern const esdm_meta_plugin esdm_meta_template_plugin;
const esdm_meta_plugin esdm_meta_template_plugin = {
    .base = {.abi = ESDM_PLUGIN_ABI,
             .table_bytes = sizeof(esdm_meta_plugin),
             .kind = ESDM_PLUGIN_META,
             .name = "template",
             .summary = "a template; keeps nothing"},
    .make = template_make,
    .check = template_check,
    .remove = template_remove,
    .site_id = template_site_id,
    .open = template_open,
    .close = template_close,
    .is_writable = template_is_writable,
    .container_find = template_container_find,
    .container_list = template_container_list,
    .container_remove = template_container_remove,
    .container_move = template_container_move,
    .snapshot_open = template_snapshot_open,
    .pin = template_pin,
    .unpin = template_unpin,
    .snapshot_list = template_snapshot_list,
    .page_list = template_page_list,
    .page_load = template_page_load,
    .commit = template_commit,
    .find = template_find,
    .garbage = template_garbage,
    .forget = template_forget,
    .state = template_state,
    .set_state = template_set_state,
    .attributes = template_attributes,
    .import = template_import,
    .fact_get = template_fact_get,
    .fact_put = template_fact_put,
    .fact_list = template_fact_list,
    .record_list = template_record_list,
    .writer_begin = template_writer_begin,
    .writer_end = template_writer_end,
    .writer_lives = template_writer_lives,
    .relocate = template_relocate,
    .prune = template_prune,
};

#ifdef ESDM_PLUGIN_LOADABLE
ESDM_API const esdm_plugin *esdm_plugin_entry(void);

const esdm_plugin *
esdm_plugin_entry(void)
{
    return &esdm_meta_template_plugin.base;
}
#endif
