/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_ERROR_H
#define ESDM_BASE_ERROR_H

/** @file Filling esdm_error. All functions accept err == NULL and return the status given. */

#include "esdm/status.h"

/** Sets status and text; os_errno becomes 0. */
esdm_status esdm__error_set(esdm_error *err, esdm_status status, const char *format, ...)
    ESDM_PRINTF(3, 4);

/**
 * For a failed system call: maps `os_errno` to a status (ENOSPC, EDQUOT → ESDM_ENOSPC; EACCES,
 * EPERM, EROFS → ESDM_EACCES; ENOENT → ESDM_ENOENT; EEXIST → ESDM_EEXIST; ENOMEM → ESDM_ENOMEM;
 * ETIMEDOUT → ESDM_ETIMEDOUT; other → ESDM_EIO) and appends ": <strerror>" to the text.
 */
esdm_status esdm__error_set_errno(esdm_error *err, int os_errno, const char *format, ...)
    ESDM_PRINTF(3, 4);

/** Puts "<text>: " before the message that is there, adding context on the way up. */
esdm_status esdm__error_prefix(esdm_error *err, esdm_status status, const char *format, ...)
    ESDM_PRINTF(3, 4);

/** ESDM_ENOMEM: "out of memory (<bytes> bytes for <what>)". */
esdm_status esdm__error_nomem(esdm_error *err, size_t bytes, const char *what);

/* The analyzer does not see that these return the status they are given. */
#ifdef __clang_analyzer__
#define esdm__error_set(err, status, ...)                                                          \
    ((void) esdm__error_set((err), (status), __VA_ARGS__), (status))
#define esdm__error_prefix(err, status, ...)                                                       \
    ((void) esdm__error_prefix((err), (status), __VA_ARGS__), (status))
#define esdm__error_nomem(err, bytes, what)                                                        \
    ((void) esdm__error_nomem((err), (bytes), (what)), ESDM_ENOMEM)
#endif

#endif
