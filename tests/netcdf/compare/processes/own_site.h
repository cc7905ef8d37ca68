/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_NETCDF_OWN_SITE_H
#define TESTS_NETCDF_OWN_SITE_H

/** @file A default site of the program's own, which goes with it: setup and teardown of a group. */

#include <stdio.h>
#include <stdlib.h>

static char folder[100]; /* of the site */

static int
make_site(void **unused)
{
    (void) unused;
    snprintf(folder, sizeof folder, "/tmp/esdm-netcdf-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    return setenv("XDG_DATA_HOME", folder, 1) != 0 || setenv("XDG_CONFIG_HOME", folder, 1) != 0 ||
           unsetenv("ESDM_CONFIG") != 0;
}

static int
remove_site(void **unused)
{
    (void) unused;
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

#endif
