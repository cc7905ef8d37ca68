/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_SHIM_H
#define ESDMNC_SHIM_H

/**
 * @file
 * The libc shim: file calls on `esdm:` paths, so that programs which look before they open (or
 * rename after they close) find what they expect. Every other path costs one strncmp. Nothing is
 * allocated and no lock is taken on that way, and everything works before constructors ran and in
 * forked children.
 *
 * `FOLDER/esdm:/NAME` (a path that was made absolute by force) is tried only after the real call
 * failed with ENOENT.
 */

#include "router/router.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/** In the environment of programs that NCO starts (habits.c): its cp makes files to be written to.
 */
#define SHIM_COPIES "ESDM_NC_COPIES"

/** The next definition of `name` after ours, looked up once. */
#define SHIM_REAL(name)                                                                            \
    ({                                                                                             \
        static void *found_;                                                                       \
        void *real_ = __atomic_load_n(&found_, __ATOMIC_RELAXED);                                  \
        if (!real_) {                                                                              \
            real_ = dlsym(RTLD_NEXT, #name);                                                       \
            __atomic_store_n(&found_, real_, __ATOMIC_RELAXED);                                    \
        }                                                                                          \
        (__typeof__(&(name))) real_;                                                               \
    })

/** The path itself when it begins with `esdm:`, else NULL. NULL is allowed. */
static inline const char *
shim_path(const char *path)
{
    return path && strncmp(path, "esdm:", 5) == 0 ? path : NULL;
}

/** After a failed real call: the `esdm:` part of a path that was made absolute, else NULL. */
const char *shim_missing(const char *path);

/** What stat() of an `esdm:` path finds. @return 0 or an errno. */
int shim_lookup(const char *path, esdmnc_stat *ret, bool *ret_is_folder);

/** Sets errno and returns -1; 0 for `error` 0. */
int shim_return(int error);

/** A descriptor that reads as a stub of a container's format. -1 and errno. */
int shim_stub_descriptor(const char *container, bool close_on_exec);
/** What a program that has opened `fd` for reading is shown in its place: owned by the caller, who
 *  closes `fd` then. -1: `fd` itself, whatever it is. Keeps errno. */
int shim_stub_shown(int fd, bool close_on_exec);

/** To be called with what the real call has opened: moves it when a library that ESDM uses has
 * opened it (descriptors.c). -1 is accepted. Keeps errno. */
int shim_descriptor_opened(int fd);

/** From a NetCDF code to an errno. */
int shim_errno(int nc_status);

#endif
