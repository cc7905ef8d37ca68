/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_DIGEST_H
#define ESDM_API_DIGEST_H

/** @file Names that ask for a digest: NAME?digest. */

#include <stdbool.h>

/** @param ret_name room for ESDM_CONTAINER_NAME_MAX + 1: what stands before the "?digest". */
bool esdm__digest_is_asked(const char *name, char *ret_name);

#endif
