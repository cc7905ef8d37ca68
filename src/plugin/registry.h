/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_PLUGIN_REGISTRY_H
#define ESDM_PLUGIN_REGISTRY_H

/**
 * @file
 * Finds plug-ins by kind and name: first among the built-in ones, then as shared objects
 * `esdm-data-NAME.so`, `esdm-meta-NAME.so`, `esdm-codec-NAME.so`, `esdm-source-NAME.so` in the
 * folders of $ESDM_PLUGIN_PATH, in the folder `esdm` beside libesdm, and in the installed plug-in
 * folder. Loaded objects stay loaded. Threads: locked inside.
 */

#include "esdm/sys/codec.h"
#include "esdm/sys/data_target.h"
#include "esdm/sys/meta_store.h"
#include "esdm/sys/source.h"

/** ESDM_ENOENT: unknown, with the list of known names. ESDM_ENOTSUP: wrong ABI, wrong kind, or an
 * ops table with a missing function. @param ret_plugin static. */
esdm_status esdm__plugin_find(esdm_plugin_kind kind, const char *name,
                              const esdm_plugin **ret_plugin, esdm_error *err);
/** A codec by its stored id; NULL when none is loaded or loadable. */
const esdm_codec_plugin *esdm__plugin_codec_by_id(uint8_t id);
/** What ESDM calls the codec of this id that it brings along as a plug-in; NULL: none. */
const char *esdm__plugin_codec_name(uint8_t id);
/** Built-in and already loaded plug-ins of a kind, index from 0; NULL at the end. */
const esdm_plugin *esdm__plugin_at(esdm_plugin_kind kind, size_t index);

#endif
