/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "layout/places.h"

#include <string.h>

static void
copy_part(char *to, size_t room, const char *from, size_t bytes)
{
    bytes = bytes < room ? bytes : room - 1;
    memcpy(to, from, bytes);
    to[bytes] = '\0';
}

bool
esdm__places_next(const char **text, esdm__pack_place *ret_place)
{
    const char *at = *text;
    if (*at == '\0')
        return false;
    size_t bytes = strcspn(at, ",");
    const char *node = memchr(at, '@', bytes);
    size_t target_bytes = node != NULL ? (size_t) (node - at) : bytes;
    copy_part(ret_place->target, sizeof ret_place->target, at, target_bytes);
    copy_part(ret_place->node, sizeof ret_place->node, node != NULL ? node + 1 : "",
              node != NULL ? bytes - target_bytes - 1 : 0);
    *text = at + bytes + (at[bytes] == ',');
    return true;
}

size_t
esdm__places_count(const char *text)
{
    size_t count = *text != '\0';
    for (; *text != '\0'; text++)
        count += *text == ',';
    return count;
}

bool
esdm__places_are_special(const char *text)
{
    return text[strcspn(text, ",@")] != '\0';
}
