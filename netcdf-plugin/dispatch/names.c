/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Names of dimensions, variables, attributes and groups: netCDF's rules and NFC. */

#include "internal.h"

#include <stdlib.h>
#include <string.h>

static bool
is_ascii(const char *name)
{
    for (; *name != '\0'; name++)
        if ((unsigned char) *name > 0x7f)
            return false;
    return true;
}

void
esdmnc_name_copy(const char *name, char *ret_name)
{
    memcpy(ret_name, name, strlen(name) + 1);
}

static int
copy_name(const char *name, char *ret_normalised)
{
    size_t bytes = strlen(name);
    if (bytes > NC_MAX_NAME)
        return NC_EMAXNAME;
    memcpy(ret_normalised, name, bytes + 1);
    return NC_NOERR;
}

/* The libnetcdf at hand normalises, so that names mean the same as in its files. A copy that does
 * not offer the function gets its names unchanged: nearly all text is in NFC already. */
int
esdmnc_name_normalise(int instance, const char *name, char *ret_normalised)
{
    const esdmnc_library *library = esdmnc_library_get(instance);
    if (is_ascii(name) || library == NULL || library->utf8_normalize == NULL)
        return copy_name(name, ret_normalised);
    unsigned char *normalised = NULL;
    if (library->utf8_normalize((const unsigned char *) name, &normalised) != NC_NOERR)
        return NC_EBADNAME;
    int rc = copy_name((const char *) normalised, ret_normalised);
    free(normalised);
    return rc;
}

/* Names start with a letter, a digit, '_' or a character beyond ASCII; control characters, '/'
 * and a space at the end are not allowed. */
static bool
follows_rules(const char *name)
{
    unsigned char first = (unsigned char) name[0];
    bool starts_well = first > 0x7f || first == '_' || (first >= '0' && first <= '9') ||
                       (first >= 'A' && first <= 'Z') || (first >= 'a' && first <= 'z');
    if (!starts_well)
        return false;
    for (const char *at = name; *at != '\0'; at++) {
        unsigned char c = (unsigned char) *at;
        if (c < ' ' || c == 0x7f || c == '/')
            return false;
    }
    return name[strlen(name) - 1] != ' ';
}

int
esdmnc_name_check(int instance, const char *name, char *ret_normalised)
{
    if (name == NULL)
        return NC_EINVAL;
    if (strlen(name) > NC_MAX_NAME)
        return NC_EMAXNAME;
    if (!follows_rules(name))
        return NC_EBADNAME;
    return esdmnc_name_normalise(instance, name, ret_normalised);
}
