/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Behaves in an undefined way, as its argument says: for what a sanitized build says of it.
 */

#include <limits.h>
#include <stdint.h>
#include <string.h>

static volatile int number = 40;

int
main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    int values[16] = {0};
    if (strcmp(kind, "shift") == 0)
        number = 1 << number;
    else if (strcmp(kind, "overflow") == 0)
        number = INT_MAX - 1 + number;
    else if (strcmp(kind, "alignment") == 0)
        number = *(int *) (void *) ((char *) values + number % 3);
    else if (strcmp(kind, "bounds") == 0)
        number = values[number];
    return 0;
}
