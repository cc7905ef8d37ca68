/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* A part of many cases: the long form has all of them, the others each n-th. $ESDM_TEST_SEED says
 * which comes first, so that over many commits all are tried. */
#ifndef ESDM_UNIT_FIELD_SOME_CASES_H
#define ESDM_UNIT_FIELD_SOME_CASES_H

#include <stdlib.h>
#include <string.h>

/** Sanitizers make the codec slow: they have a part in the long form, too. */
static inline int
each_nth(int n)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return n;
#else
    const char *size = getenv("ESDM_TEST_SIZE");
    return size != NULL && strcmp(size, "long") == 0 ? 1 : n;
#endif
}

/** The first of them, from 0 on: others with other commits, and with another `turn`. */
static inline int
first_of(int n, size_t turn)
{
    const char *seed = getenv("ESDM_TEST_SEED");
    return (int) (((seed != NULL ? strtoul(seed, NULL, 10) : 0) + turn) % (unsigned long) n);
}

#endif
