/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_URL_H
#define ESDM_BASE_URL_H

/** @file URLs of places, as configurations name them: without a slash at the end. */

#include <stdbool.h>
#include <string.h>

/** Whether a URL is that of the place, or of something below it. */
static inline bool
esdm__url_is_in(const char *url, const char *place)
{
    size_t bytes = strlen(place);
    return strncmp(url, place, bytes) == 0 && (url[bytes] == '/' || url[bytes] == '\0');
}

#endif
