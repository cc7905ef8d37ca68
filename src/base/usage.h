/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_USAGE_H
#define ESDM_BASE_USAGE_H

/** @file What data targets say of their space. Pure but for the question to the file system. */

#include "esdm/sys/data_target.h"

/** Space of the file system of an open directory; nothing is counted as used yet. */
esdm_status esdm__usage_of_directory(int fd, const char *plugin, const char *directory,
                                     esdm_target_usage *ret_usage, esdm_error *err);
/** An esdm_pack_visitor that adds packs to the esdm_target_usage `user`. */
bool esdm__usage_add(const char *name, uint64_t bytes, uint64_t modified_ns, void *user);

#endif
