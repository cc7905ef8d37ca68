/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_DESCRIPTORS_H
#define ESDM_DESCRIPTORS_H

/**
 * @file
 * For a library that stands between programs and libc, as the preloaded one of the NetCDF plug-in
 * does: it keeps close(), dup2() and their like off the descriptors that ESDM has open.
 *
 * Threads: any, at any time; both functions may be called in signal handlers.
 */

#include <stdbool.h>

#include "esdm/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where the limit of the process allows it, what is kept has numbers from here on: programs have a
 *  few dozen files open, and the usual limit is 1024. With a lower one, from its half on. */
#define ESDM_DESCRIPTORS_MIN 512
/** No number from here on is kept. */
#define ESDM_DESCRIPTORS_MAX 65536

/**
 * Whether the program must not close `fd`, since ESDM has it open. To be asked before each close.
 *
 * false in a forked child, which may close what it has inherited, and while ESDM itself closes.
 */
ESDM_API bool esdm_descriptor_is_kept(int fd);

/**
 * To be called with each descriptor that libc has opened: gives back the one to use. Another one,
 * and `fd` is closed, when a library that ESDM uses has opened it. @param fd -1 is accepted; keeps
 * errno.
 */
ESDM_API int esdm_descriptor_opened(int fd);

#ifdef __cplusplus
}
#endif
#endif
