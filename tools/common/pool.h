/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_POOL_H
#define ESDM_TOOLS_POOL_H

/** @file Things that take time to open, shared by all who use them at once, and kept open a while
 *  afterwards. Locked inside; things are opened and closed outside of the lock. */

#include <stdbool.h>

#include "esdm/esdm.h"

typedef struct tool_pool tool_pool;
typedef struct tool_held tool_held;

/** Opens what is wanted. Threads: any; that of one key by one at a time. @param wanted as given to
 *  tool_pool_get(). @param ret_thing owned by the pool, not NULL with ESDM_OK. */
typedef esdm_status (*tool_pool_opener)(void *user, const void *wanted, void **ret_thing,
                                        esdm_error *err);
typedef void (*tool_pool_closer)(void *thing);

/** @param most_idle things that nobody uses and that stay open, so that the next one need not wait.
 */
tool_pool *tool_pool_new(tool_pool_opener open, tool_pool_closer close, void *user,
                         unsigned most_idle);
/** Nobody may use a thing any more. NULL is accepted. */
void tool_pool_free(tool_pool *pool);
/** The thing of a key, opened if it is not open. @param ret_held owned: tool_pool_put(). */
ESDM_MUST_CHECK esdm_status tool_pool_get(tool_pool *pool, const char *key, const void *wanted,
                                          tool_held **ret_held, esdm_error *err);
void tool_pool_put(tool_pool *pool, tool_held *held);
/** Borrowed while it is held. */
void *tool_held_thing(const tool_held *held);

#endif
