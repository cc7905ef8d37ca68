/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_ROUTER_CREATING_H
#define TESTS_ROUTER_CREATING_H

/** @file Creating data sets through libnetcdf. After cmocka.h. */

#include <netcdf.h>

static inline int
create(const char *path, int mode)
{
    int ncid = -1;
    assert_int_equal(nc_create(path, mode, &ncid), NC_NOERR);
    return ncid;
}

static inline void
make(const char *path)
{
    assert_int_equal(nc_close(create(path, NC_CLOBBER)), NC_NOERR);
}

#endif
