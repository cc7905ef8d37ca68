/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_IO_H
#define ESDM_IO_IO_H

/** @file What the API layer calls: reads, writes, commits, life of containers. */

#include "io/commit/commit.h"
#include "io/container/accuracy.h"
#include "io/container/container_io.h"
#include "io/container/visit.h"
#include "io/read/ahead.h"
#include "io/read/read.h"
#include "io/write/write.h"

/* Of a container that ranks share the following are collective; see esdm/container.h. */
esdm_status esdm__io_commit(esdm_container *container, const char *message, esdm_error *err);
esdm_status esdm__io_refresh(esdm_container *container, esdm_error *err);

#endif
