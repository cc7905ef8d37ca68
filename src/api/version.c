/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The version of the library that runs. */

#include "esdm/version.h"

#define TEXT_OF(number) #number
#define TEXT(number)    TEXT_OF(number)

int
esdm_version_number(void)
{
    return ESDM_VERSION_NUMBER;
}

const char *
esdm_version(void)
{
    return TEXT(ESDM_VERSION_MAJOR) "." TEXT(ESDM_VERSION_MINOR) "." TEXT(ESDM_VERSION_PATCH);
}
