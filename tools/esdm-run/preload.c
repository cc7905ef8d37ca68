/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Where the plug-in comes in LD_PRELOAD. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm-run/esdm-run.h"

/** Whether `list` (separated by colons and spaces) holds `entry`. */
static bool
list_has(const char *list, const char *entry)
{
    size_t length = strlen(entry);
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ": ");
        if (n == length && memcmp(at, entry, n) == 0) {
            return true;
        }
        at += n;
        at += strspn(at, ": ");
    }
    return false;
}

/* The first libnetcdf in a list of libraries, else the list's end. Calls would get there first. */
static const char *
find_netcdf(const char *list)
{
    static const char separators[] = ": ";
    const char *item = list + strspn(list, separators);
    while (*item) {
        size_t length = strcspn(item, separators);
        const char *name = memrchr(item, '/', length);
        name = name ? name + 1 : item;
        if (strncmp(name, "libnetcdf", 9) == 0 && strncmp(name, "libnetcdff", 10) != 0) {
            break;
        }
        item += length + strspn(item + length, separators);
    }
    return item;
}

bool
preload_add(const char *library)
{
    const char *present = getenv("LD_PRELOAD");
    if (!present || !present[0]) {
        return setenv("LD_PRELOAD", library, 1) == 0;
    }
    if (list_has(present, library)) {
        return true;
    }
    /* Behind what is there: sanitizer runtimes insist on being first. */
    size_t size = strlen(present) + strlen(library) + 2;
    char *value = malloc(size);
    if (!value) {
        return false;
    }
    const char *netcdf = find_netcdf(present);
    if (*netcdf) {
        (void) snprintf(value, size, "%.*s%s:%s", (int) (netcdf - present), present, library,
                        netcdf);
    } else {
        (void) snprintf(value, size, "%s:%s", present, library);
    }
    bool done = setenv("LD_PRELOAD", value, 1) == 0;
    free(value);
    return done;
}
