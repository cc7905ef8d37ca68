/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_SHARED_FILE_SYSTEMS_H
#define ESDM_BASE_SHARED_FILE_SYSTEMS_H

/** @file File systems that several nodes see. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whether all nodes that mount it see the same, as far as the type tells that statfs() gives
 *  (`f_type`; the numbers are those of statfs(2) and of the clients' sources). Of AFS, FUSE, 9P and
 *  VirtualBox it depends on who asks: not here. */
static inline bool
esdm__file_system_is_shared(uint32_t type)
{
    static const uint32_t known[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB2 */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x00c36400, /* Ceph */
        0x73757245, /* Coda */
        0x19830326, /* BeeGFS */
        0xaad7aaea, /* PanFS */
        0x20030528, /* OrangeFS */
        0x7461636f, /* OCFS2 */
        0x01161970, /* GFS2 */
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i] == type)
            return true;
    }
    return false;
}

/** Whether what a node has written stays in its memory until it flushes or closes the file, so that
 * other nodes do not find it. Of the others that are shared, memories of nodes agree (Lustre, GPFS,
 * Ceph), or keep nothing. */
static inline bool
esdm__file_system_shows_late(uint32_t type)
{
    return type == 0x6969 || type == 0x517b || type == 0xff534d42 || type == 0xfe534d42 ||
           type == 0x73757245 || type == 0x19830326; /* NFS, SMB thrice, Coda, BeeGFS */
}

#endif
