/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_ESDM_H
#define ESDM_ESDM_H

/** @file The whole public C API, but for programs with MPI (esdm/mpi.h, which needs <mpi.h>). */

#include "esdm/accuracy.h"
#include "esdm/accuracy_attributes.h"
#include "esdm/branch.h"
#include "esdm/chunk.h"
#include "esdm/comm.h"
#include "esdm/container.h"
#include "esdm/descriptors.h"
#include "esdm/digest.h"
#include "esdm/float_env.h"
#include "esdm/history.h"
#include "esdm/monitor.h"
#include "esdm/placement.h"
#include "esdm/reference.h"
#include "esdm/seal.h"
#include "esdm/session.h"
#include "esdm/shapes.h"
#include "esdm/site.h"
#include "esdm/statistics.h"
#include "esdm/status.h"
#include "esdm/stream.h"
#include "esdm/text.h"
#include "esdm/types.h"
#include "esdm/upkeep.h"
#include "esdm/usertypes.h"
#include "esdm/version.h"
#include "esdm/view.h"
#include "esdm/virtual.h"

#endif
