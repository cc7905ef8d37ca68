/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SYS_PLUGIN_H
#define ESDM_SYS_PLUGIN_H

/**
 * @file
 * What every plug-in has in common.
 *
 * A plug-in is one constant ops table. Built-in ones are compiled into libesdm and listed in a
 * table that CMake generates; others are shared objects `esdm-<kind>-<name>.so` in the plug-in
 * folders ($ESDM_PLUGIN_PATH, `esdm` beside libesdm, then the installed folder) that export one
 * symbol, `esdm_plugin_entry`.
 *
 * Plug-ins see esdm/sys/ headers and src/base only; `libesdm-plugin.a` has the latter for plug-ins
 * that are built outside of this project (pkg-config esdm-plugin, CMake: esdm_add_plugin()). They
 * never print, never exit, never abort on input.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "esdm/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Version of all structures in esdm/sys/, and the oldest one that this ESDM still takes: a plug-in
 * outside of the two is refused (ESDM_ENOTSUP).
 *
 * Structures grow at their end only, with a new version each time, so that within the window
 * - an ops table that is shorter than ours is one of an older version: its missing functions and
 *   flags count as NULL and 0. What came after ESDM_PLUGIN_ABI_OLDEST may therefore be missing;
 * - a plug-in reads of what it is given only what it knows, and sets of what it fills in only what
 *   it knows: the caller has set all of it to zero before.
 * Structures that are handed over as arrays (esdm_iov) never change. Any other change raises
 * ESDM_PLUGIN_ABI_OLDEST, too.
 */
#define ESDM_PLUGIN_ABI        9
#define ESDM_PLUGIN_ABI_OLDEST 7

typedef enum esdm_plugin_kind {
    ESDM_PLUGIN_DATA = 1,
    ESDM_PLUGIN_META = 2,
    ESDM_PLUGIN_CODEC = 3,
    ESDM_PLUGIN_SOURCE = 4
} esdm_plugin_kind;

/** First member of every ops table; never grows. */
typedef struct esdm_plugin {
    uint32_t abi; /**< ESDM_PLUGIN_ABI */
    esdm_plugin_kind kind;
    size_t table_bytes;  /**< of the whole ops table: sizeof(esdm_codec_plugin) */
    const char *name;    /**< as in the configuration: "posix" */
    const char *summary; /**< one line for help texts */
} esdm_plugin;

/** The symbol `esdm_plugin_entry` of a loadable plug-in: returns its ops table, static. */
typedef const esdm_plugin *(*esdm_plugin_entry_fn)(void);
#define ESDM_PLUGIN_ENTRY "esdm_plugin_entry"

/** Configuration handed to a plug-in. Borrowed during the call. */
typedef struct esdm_plugin_config {
    const char *name;    /**< name of the target, or "metadata" */
    const char *json;    /**< the plug-in's object of the site configuration, as JSON text */
    const char *path;    /**< where it stands, for messages: "site.json: targets[0]" */
    const char *site_id; /**< id of the site, 32 hex digits; what mkfs marks the place with. "": the
                              site has no metadata store (yet), and no existing mark is its own */
    uint64_t memory_bytes; /**< what the plug-in's buffers may take, about; 0: not said */
    bool migrating;        /**< for metadata stores: esdm_site_migrate() opens them in any state */
    bool durable; /**< "durability": "system": what a call changed survives power loss when it
                       returns, also where the call has no such argument of its own */
    bool later;   /**< for metadata stores: `site_id` is known to be right and nobody may ask
                     anything:   open() need not reach a server, the first call can. Since interface
                     8;   a   plug-in that does not know it opens at once */
} esdm_plugin_config;

/** One line for each step done, or that would be done. */
typedef void (*esdm_plugin_reporter)(const char *line, void *user);

/** Piece of memory, in the manner of struct iovec. */
typedef struct esdm_iov {
    const void *data;
    size_t bytes;
} esdm_iov;

#ifdef __cplusplus
}
#endif
#endif
