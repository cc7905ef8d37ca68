/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which descriptors the program must leave alone. */

#include "router/boundary.h"

#include <esdm/descriptors.h>

bool
esdmnc_descriptor_is_kept(int fd)
{
    return esdm_descriptor_is_kept(fd);
}

int
esdmnc_descriptor_opened(int fd)
{
    return esdm_descriptor_opened(fd);
}

unsigned
esdmnc_descriptor_limit(void)
{
    return ESDM_DESCRIPTORS_MAX;
}
