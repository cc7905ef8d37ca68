/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_COMMIT_CLONE_H
#define ESDM_IO_COMMIT_CLONE_H

#include "io/container/container_io.h"

/**
 * Makes a container of the snapshot that `source` has open for reading: one transaction of the
 * metadata store, no byte on a target but what the journal notes. Both share packs from then on.
 *
 * @param name normalised. @param replace by the rules of ESDM_CREATE_REPLACE.
 * @return ESDM_ECONFLICT: the source was removed or replaced, and is kept under no name.
 */
esdm_status esdm__io_clone(esdm_container *source, const char *name, bool replace, esdm_error *err);
/** The same for a new container. @param what it is called in its message: "branch". @param uuid of
 *  the new container. ESDM_EEXIST: another one has the name; of several that ask at once one gets
 *  it. */
esdm_status esdm__io_clone_as(esdm_container *source, const char *name, const char *what,
                              const char *uuid, esdm_error *err);

#endif
