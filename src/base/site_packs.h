/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_SITE_PACKS_H
#define ESDM_BASE_SITE_PACKS_H

/** @file Names of packs that belong to the site instead of a container: journals and backups. */

#include <stdbool.h>
#include <string.h>

#define ESDM__SITE_PACKS     "000000000000000000000000"
#define ESDM__JOURNAL_PACKS  ESDM__SITE_PACKS "6a6f7572"
#define ESDM__BACKUP_PACKS   ESDM__SITE_PACKS "6261636b"
#define ESDM__SITE_PACK_NAME 96 /**< bytes of such a name, at most */

static inline bool
esdm__is_site_pack(const char *name)
{
    return strncmp(name, ESDM__SITE_PACKS, sizeof ESDM__SITE_PACKS - 1) == 0;
}

#endif
