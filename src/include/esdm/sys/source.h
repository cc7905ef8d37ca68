/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_SYS_SOURCE_H
#define ESDM_SYS_SOURCE_H

/**
 * @file
 * Objects elsewhere that containers refer to, by URL: they are only read. `esdm-source-NAME.so`
 * serves the schemes that the engine gives it ("http": http and https).
 *
 * What is read must be what was seen when the reference was made: an object that was changed is
 * ESDM_ECONFLICT, whatever the server offers to find that out; never other bytes. Messages name the
 * URL. Threads: a handle is used by many at once. Each function may block, within the time that the
 * configuration states ("timeout", in seconds).
 */

#include "esdm/sys/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What an object was. Zeroed before it is filled in. */
typedef struct esdm_source_state {
    uint64_t bytes;
    int64_t modified_ns; /**< since 1970; INT64_MIN: the server does not say */
    char identity[256];  /**< as the plug-in wrote it; "" */
} esdm_source_state;

typedef struct esdm_source_plugin {
    esdm_plugin base;
    /** @param config its json is "references" of the site configuration. @param ret_source owned,
     *  close(). Nothing is asked of a server. */
    esdm_status (*open)(const esdm_plugin_config *config, void **ret_source, esdm_error *err);
    /** NULL is accepted. */
    void (*close)(void *source);
    /** ESDM_ENOENT: there is no such object. ESDM_ENOTSUP: the server says nothing by which a
     *  change could be found out. ESDM_ECONFLICT: it was written just now, so that a further change
     *  could not be found out; later it will be. */
    esdm_status (*stat)(void *source, const char *url, esdm_source_state *ret_state,
                        esdm_error *err);
    /** Fills the buffer. ESDM_ECONFLICT: the object is another one. ESDM_ENOTSUP: the server has no
     *  ranges. */
    esdm_status (*read)(void *source, const char *url, const esdm_source_state *was,
                        uint64_t position, void *buffer, size_t bytes, esdm_error *err);
    /** Reads a small object as a whole. @param most more bytes are ESDM_EINVAL. @param ret_data
     *  owned, free(). */
    esdm_status (*load)(void *source, const char *url, size_t most, esdm_source_state *ret_state,
                        void **ret_data, size_t *ret_bytes, esdm_error *err);
} esdm_source_plugin;

#ifdef __cplusplus
}
#endif
#endif
