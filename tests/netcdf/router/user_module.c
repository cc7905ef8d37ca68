/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A library that a program loads and that calls libnetcdf: its calls are the program's. */
#include <netcdf.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int user_create(const char *path, int mode, int *ncidp);
EXPORT int user_open(const char *path, int mode, int *ncidp);

int
user_create(const char *path, int mode, int *ncidp)
{
    volatile int status = nc_create(path, mode, ncidp);
    return status; /* no tail call: the router looks at the return address */
}

int
user_open(const char *path, int mode, int *ncidp)
{
    volatile int status = nc_open(path, mode, ncidp);
    return status;
}
