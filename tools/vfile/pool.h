/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_VFILE_POOL_H
#define ESDM_TOOLS_VFILE_POOL_H

/** @file Virtual files that are shared by their readers, and kept open a while. Locked inside. */

#include "common/pool.h"
#include "vfile/vfile.h"

typedef struct vfile_pool vfile_pool;
typedef tool_held vfile_shared;

/** @param most_idle files that nobody uses and that stay open, so that the next one need not wait.
 */
vfile_pool *vfile_pool_new(esdm_session *session, unsigned most_idle);
/** Nobody may use a file any more. */
void vfile_pool_free(vfile_pool *pool);

/**
 * The file of a snapshot, opened if it is not open.
 * @param created_ns of the container: one that took its name is another file.
 * @param ret_file owned: vfile_pool_put().
 */
esdm_status vfile_pool_get(vfile_pool *pool, const char *name, uint64_t created_ns,
                           uint64_t snapshot, esdm_vfile_format format, vfile_shared **ret_file,
                           esdm_error *err);
void vfile_pool_put(vfile_pool *pool, vfile_shared *file);
/** Borrowed while the file is held. */
esdm_vfile *vfile_of(const vfile_shared *file);

#endif
