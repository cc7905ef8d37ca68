/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/error.h"

/* Calls of these are macros for the analyzer; their definitions are not. */
#undef esdm__error_set
#undef esdm__error_prefix
#undef esdm__error_nomem

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *
esdm_status_string(esdm_status status)
{
    switch (status) {
    case ESDM_OK:
        return "success";
    case ESDM_EINVAL:
        return "invalid argument";
    case ESDM_ENOENT:
        return "no such object";
    case ESDM_EEXIST:
        return "object exists";
    case ESDM_ECONFLICT:
        return "conflicting change by another writer";
    case ESDM_ENOTSUP:
        return "not supported";
    case ESDM_ENOMEM:
        return "out of memory";
    case ESDM_ENOSPC:
        return "no space left";
    case ESDM_EACCES:
        return "permission denied";
    case ESDM_EIO:
        return "input/output error";
    case ESDM_ETIMEDOUT:
        return "timed out";
    case ESDM_ECORRUPT:
        return "stored data is damaged";
    case ESDM_ECANCELED:
        return "canceled";
    }
    return "unknown status";
}

static void
set_text(esdm_error *err, esdm_status status, int os_errno, const char *format, va_list args)
{
    err->status = status;
    err->os_errno = os_errno;
    (void) vsnprintf(err->message, sizeof err->message, format, args);
}

esdm_status
esdm__error_set(esdm_error *err, esdm_status status, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        set_text(err, status, 0, format, args);
        va_end(args);
    }
    return status;
}

static esdm_status
status_from_errno(int os_errno)
{
    switch (os_errno) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return ESDM_ENOSPC;
    case EACCES:
    case EPERM:
    case EROFS:
        return ESDM_EACCES;
    case ENOENT:
        return ESDM_ENOENT;
    case EEXIST:
        return ESDM_EEXIST;
    case ENOMEM:
        return ESDM_ENOMEM;
    case ETIMEDOUT:
        return ESDM_ETIMEDOUT;
    default:
        return ESDM_EIO;
    }
}

esdm_status
esdm__error_set_errno(esdm_error *err, int os_errno, const char *format, ...)
{
    esdm_status status = status_from_errno(os_errno);
    if (err == NULL)
        return status;
    va_list args;
    va_start(args, format);
    set_text(err, status, os_errno, format, args);
    va_end(args);

    char reason[128];
    const char *text = strerror_r(os_errno, reason, sizeof reason); /* GNU variant */
    size_t used = strlen(err->message);
    (void) snprintf(err->message + used, sizeof err->message - used, ": %s", text);
    return status;
}

esdm_status
esdm__error_prefix(esdm_error *err, esdm_status status, const char *format, ...)
{
    if (err == NULL)
        return status;
    char old[ESDM_ERROR_MESSAGE_BYTES];
    memcpy(old, err->message, sizeof old);
    int os_errno = err->os_errno;
    va_list args;
    va_start(args, format);
    set_text(err, status, os_errno, format, args);
    va_end(args);
    size_t used = strlen(err->message);
    (void) snprintf(err->message + used, sizeof err->message - used, ": %s", old);
    return status;
}

esdm_status
esdm__error_nomem(esdm_error *err, size_t bytes, const char *what)
{
    return esdm__error_set(err, ESDM_ENOMEM, "out of memory (%zu bytes for %s)", bytes, what);
}
