/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Messages of GRIB files one after the other: what may lie between them, and what is found
 * behind damage. A message is never passed over as if it were padding. */

#include <string.h>

#include "refer/grib.h"

/* Padding up to blocks of tapes and file systems. */
#define GAP_BYTES_MAX 65536u
/* Shorter than any message that has values: what it is, is of no matter. */
#define SHORTEST 64u
#define BLOCK    4096u
/* Of what is looked through behind damage. */
#define PIECE ((size_t) 1 << 20)

typedef struct bytes_at {
    gribs_file *file;
    uint64_t position;
} bytes_at;

static bool
read_at(void *message, uint64_t position, void *to, size_t bytes)
{
    const bytes_at *of = message;
    return position <= INT64_MAX - of->position &&
           gribs_file_read(of->file, of->position + position, to, bytes, false);
}

/* Zeros, and characters of telegrams: control characters are those that begin and end their lines.
 */
static bool
is_padding(uint8_t byte)
{
    return byte == 0 || (byte >= ' ' && byte < 127) || memchr("\1\2\3\4\t\n\r\36", byte, 8) != NULL;
}

static bool
is_text(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == 0 || !is_padding(bytes[i]))
            return false;
    }
    return true;
}

/* Whether a message begins here whose head is damaged or cut off: "GRIB" in a telegram's head has
 * text behind it. `n`: up to the end of the file, or many. */
static bool
is_broken_head(const uint8_t *at, size_t n)
{
    if (n < 8)
        return memcmp(at, "GRIB", MIN(n, 4)) == 0;
    return memcmp(at, "GRIB", 4) == 0 && !is_text(at + 4, 4);
}

/* Between two messages, or behind the last. */
typedef struct gap {
    gribs_file *file;
    uint64_t begin;
    bool binary; /* more than padding */
    uint8_t block[BLOCK];
    uint64_t block_at;
    size_t block_bytes;
} gap;

static gribs_found
message_at(gribs_file *file, uint64_t position, gribs_place *place, gribs_place *ret)
{
    bytes_at of = {.file = file, .position = position};
    place->position = position;
    if (place->is_long && !gribs_long(place, read_at, &of))
        return GRIBS_LOST;
    *ret = *place;
    return GRIBS_MESSAGE;
}

/* @return GRIBS_NO_MORE: it belongs to the gap. */
static gribs_found
look_at_byte(gap *g, size_t i, gribs_place *ret)
{
    gribs_place place = {0};
    const uint8_t *at = g->block + i;
    size_t left = g->block_bytes - i;
    if (left >= GRIB_HEAD_BYTES && gribs_head(at, &place))
        return message_at(g->file, g->block_at + i, &place, ret);
    if (is_broken_head(at, left))
        return GRIBS_LOST;
    g->binary |= !is_padding(*at);
    return GRIBS_NO_MORE;
}

static bool
is_too_long(const gap *g, uint64_t end)
{
    return end - g->begin > GAP_BYTES_MAX || (g->binary && end - g->begin >= SHORTEST);
}

/* Looks through a block. @param position where it begins; moved to its end, or to what was found.
 */
static gribs_found
look_through(gap *g, uint64_t *position, gribs_place *ret)
{
    bool last = g->block_at + g->block_bytes == g->file->bytes;
    gribs_found found = GRIBS_NO_MORE;
    for (size_t i = 0; i < g->block_bytes && (last || i + GRIB_HEAD_BYTES <= g->block_bytes); i++) {
        found = look_at_byte(g, i, ret);
        if (found != GRIBS_NO_MORE)
            return found;
        if (is_too_long(g, ++*position)) {
            *position = g->begin;
            return GRIBS_LOST;
        }
    }
    return GRIBS_NO_MORE;
}

gribs_found
gribs_find(gribs_file *file, uint64_t *position, gribs_place *ret)
{
    gap g = {.file = file, .begin = *position};
    gribs_found found = GRIBS_NO_MORE;
    while (found == GRIBS_NO_MORE && *position < file->bytes) {
        g.block_at = *position;
        g.block_bytes = g.block_at == g.begin ? GRIB_HEAD_BYTES : BLOCK;
        g.block_bytes = (size_t) MIN(g.block_bytes, file->bytes - g.block_at);
        if (!gribs_file_read(file, g.block_at, g.block, g.block_bytes, false))
            return GRIBS_FAILED;
        found = look_through(&g, position, ret);
    }
    return found;
}

/* ---- behind damage -------------------------------------------------------------------------- */

static bool
is_whole(gribs_file *file, uint64_t position, gribs_place *ret)
{
    uint8_t head[GRIB_HEAD_BYTES], end[4];
    gribs_place place = {0};
    return gribs_file_read(file, position, head, sizeof head, false) && gribs_head(head, &place) &&
           message_at(file, position, &place, ret) == GRIBS_MESSAGE &&
           ret->bytes <= file->bytes - position &&
           gribs_file_read(file, position + ret->bytes - 4, end, sizeof end, false) &&
           memcmp(end, "7777", 4) == 0;
}

bool
gribs_find_behind(gribs_file *file, uint64_t position, gribs_place *ret)
{
    if (file->remote != NULL)
        return false;
    g_autofree uint8_t *piece = g_malloc(PIECE);
    for (size_t n = 0; position + GRIB_HEAD_BYTES <= file->bytes; position += n - 3) {
        n = (size_t) MIN(PIECE, file->bytes - position);
        if (!gribs_file_read(file, position, piece, n, true))
            return false;
        const uint8_t *at = piece, *end = piece + n;
        for (; (at = memmem(at, (size_t) (end - at), "GRIB", 4)) != NULL; at++) {
            if (is_whole(file, position + (uint64_t) (at - piece), ret))
                return true;
        }
    }
    return false;
}
