/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_VERSION_H
#define ESDM_VERSION_H

/**
 * @file
 * Which ESDM a program was compiled with, and which one it runs with.
 *
 * A program runs with every libesdm of the same soname that is at least as new as the one that it
 * was linked with: functions never change what they mean, and structures that programs allocate
 * themselves grow by a new version of the functions that take them (cmake/esdm.map).
 */

#include "esdm/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESDM_VERSION_MAJOR 0
#define ESDM_VERSION_MINOR 1
#define ESDM_VERSION_PATCH 0
/** One number for comparisons: 1002003 is 1.2.3. */
#define ESDM_VERSION_NUMBER                                                                        \
    (ESDM_VERSION_MAJOR * 1000000 + ESDM_VERSION_MINOR * 1000 + ESDM_VERSION_PATCH)

/** ESDM_VERSION_NUMBER of the library that runs. Any thread. */
ESDM_API int esdm_version_number(void);
/** The same as text: "0.1.0". Static. Any thread. */
ESDM_API const char *esdm_version(void);

#ifdef __cplusplus
}
#endif
#endif
