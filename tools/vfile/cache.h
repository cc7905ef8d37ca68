/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_VFILE_CACHE_H
#define ESDM_TOOLS_VFILE_CACHE_H

/** @file The folder of sparse files. Under the lock of headers. */

#include "vfile/inner.h"

/** Path of a file in the folder, which is made; owned. NULL: there is no safe folder. */
char *vf_cache_path(const char *name, esdm_error *err);
/** Gives a sparse file its name. */
esdm_status vf_cache_keep(const char *made, const char *path, esdm_error *err);
/** Removes the oldest files beyond the size that the folder may have. */
void vf_cache_trim(void);

#endif
