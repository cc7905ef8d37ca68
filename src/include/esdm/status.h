/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_STATUS_H
#define ESDM_STATUS_H

/**
 * @file
 * Status codes and the caller-owned error object.
 *
 * Every fallible function returns an esdm_status and takes an `esdm_error *err` as its last
 * argument. `err` may be NULL when the text is not wanted. On ESDM_OK `err` is untouched; on
 * failure it is overwritten. NULL for an argument that is not said to be optional is ESDM_EINVAL,
 * with its name in the text; functions without a status return NULL, 0 or false then. `ret_*`
 * arguments are written on success only, unless stated.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ESDM_API          __attribute__((visibility("default")))
#define ESDM_MUST_CHECK   __attribute__((warn_unused_result))
#define ESDM_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define ESDM_API
#define ESDM_MUST_CHECK
#define ESDM_PRINTF(f, a)
#endif

/** What happened. The numbers are part of the ABI and never reused. */
typedef enum esdm_status {
    ESDM_OK = 0,
    ESDM_EINVAL = 1,     /**< wrong argument, name or configuration */
    ESDM_ENOENT = 2,     /**< container, object, target or configuration does not exist */
    ESDM_EEXIST = 3,     /**< the name is taken */
    ESDM_ECONFLICT = 4,  /**< another writer changed the structure first; reopen and retry */
    ESDM_ENOTSUP = 5,    /**< known, but this build, plug-in or store version cannot do it */
    ESDM_ENOMEM = 6,     /**< memory or the memory budget is exhausted */
    ESDM_ENOSPC = 7,     /**< a target is full or over quota */
    ESDM_EACCES = 8,     /**< permission denied or read-only */
    ESDM_EIO = 9,        /**< the storage failed */
    ESDM_ETIMEDOUT = 10, /**< a lock or a server did not answer in time */
    ESDM_ECORRUPT = 11,  /**< stored bytes are damaged (checksum, format) */
    ESDM_ECANCELED = 12  /**< the caller or an earlier error stopped the work */
} esdm_status;

/** Longest error text, including the final NUL. */
#define ESDM_ERROR_MESSAGE_BYTES 500

/** Caller-owned description of a failure. Needs no clear: it holds no pointers. */
typedef struct esdm_error {
    esdm_status status;
    int os_errno; /**< errno of the failing system call, or 0 */
    char message[ESDM_ERROR_MESSAGE_BYTES];
} esdm_error;

/** A short fixed English text for `status` ("no such object"). Never NULL. Thread-safe. */
ESDM_API const char *esdm_status_string(esdm_status status);

#ifdef __cplusplus
}
#endif
#endif
