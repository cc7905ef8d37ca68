/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * ESDM's status as a NetCDF code. Positive codes are errno values, which nc_strerror() words well:
 *
 *   EINVAL    NC_EINVAL        ENOENT    ENOENT         EEXIST    NC_EEXIST
 *   ECONFLICT NC_ECANTWRITE    ENOTSUP   NC_ENOTBUILT   ENOMEM    NC_ENOMEM
 *   ENOSPC    ENOSPC           EACCES    EACCES         EIO       NC_EIO
 *   ETIMEDOUT ETIMEDOUT        ECORRUPT  NC_ETRUNC      ECANCELED ECANCELED
 *
 * NC_EPERM is kept for its netCDF meaning: writing to a file that was opened for reading.
 */

#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int
code_of(esdm_status status)
{
    switch (status) {
    case ESDM_OK:
        break; /* nobody reports a success here */
    case ESDM_EINVAL:
        return NC_EINVAL;
    case ESDM_ENOENT:
        return ENOENT;
    case ESDM_EEXIST:
        return NC_EEXIST;
    case ESDM_ECONFLICT:
        return NC_ECANTWRITE;
    case ESDM_ENOTSUP:
        return NC_ENOTBUILT;
    case ESDM_ENOMEM:
        return NC_ENOMEM;
    case ESDM_ENOSPC:
        return ENOSPC;
    case ESDM_EACCES:
        return EACCES;
    case ESDM_EIO:
        return NC_EIO;
    case ESDM_ETIMEDOUT:
        return ETIMEDOUT;
    case ESDM_ECORRUPT:
        return NC_ETRUNC;
    case ESDM_ECANCELED:
        return ECANCELED;
    }
    return NC_EINTERNAL;
}

int
esdmnc_error_loud(const esdm_error *err, const char *what, const char *name)
{
    int saved = errno;
    fprintf(stderr, "esdm: %s '%s': %s\n", what, name, err->message);
    errno = saved;
    return code_of(err->status);
}

int
esdmnc_error_site(const esdm_error *err)
{
    static char told[ESDM_ERROR_MESSAGE_BYTES];
    int saved = errno;
    if (strcmp(told, err->message) != 0)
        fprintf(stderr, "esdm: cannot open the site: %s\n", err->message);
    snprintf(told, sizeof told, "%s", err->message);
    errno = saved;
    return code_of(err->status);
}

int
esdmnc_error_quiet(const esdm_error *err, const char *what, const char *name)
{
    esdmnc_debug("%s '%s': %s", what, name, err->message);
    return code_of(err->status);
}

/* A program that ignores errors may fail a million times in a row. */
#define LOUD_MAX 20

static int
loud_at_first(const esdm_error *err, const char *what, const char *name)
{
    static atomic_int count;
    if (atomic_fetch_add(&count, 1) < LOUD_MAX)
        return esdmnc_error_loud(err, what, name);
    atomic_store(&count, LOUD_MAX); /* never wraps around */
    return esdmnc_error_quiet(err, what, name);
}

int
esdmnc_error(const esdm_error *err, const char *what, const char *name)
{
    switch (err->status) {
    case ESDM_EIO:
    case ESDM_ENOSPC:
    case ESDM_ECORRUPT:
    case ESDM_ECONFLICT:
        return loud_at_first(err, what, name);
    default:
        return esdmnc_error_quiet(err, what, name);
    }
}

int
esdmnc_error_data(const esdm_error *err, const char *what, const char *name)
{
    switch (err->status) {
    case ESDM_ENOENT:
    case ESDM_EACCES:
    case ESDM_ETIMEDOUT:
        return loud_at_first(err, what, name);
    default:
        return esdmnc_error(err, what, name);
    }
}
