/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Heads and sections of GRIB messages, without ecCodes. Everything may be hostile. */

#include <stdio.h>
#include <string.h>

#include "refer/grib.h"

static uint64_t
big(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* Messages of GRIB 1 with more than 8 MiB count in units of 120 bytes (ECMWF's convention). */
#define LONG_FLAG UINT64_C(0x800000)

bool
gribs_head(const uint8_t head[GRIB_HEAD_BYTES], gribs_place *ret)
{
    if (memcmp(head, "GRIB", 4) != 0 || (head[7] != 1 && head[7] != 2))
        return false;
    ret->edition = head[7];
    ret->bytes = head[7] == 1 ? big(head + 4, 3) : big(head + 8, 8);
    return ret->bytes >= 20 && ret->bytes <= INT64_MAX &&
           (head[7] == 2 || (ret->bytes & LONG_FLAG) == 0);
}

static bool
grid1(const uint8_t *message, uint64_t bytes, const uint8_t **ret_section, size_t *ret_bytes)
{
    uint64_t at = 8;
    if (bytes < 8 + 28 + 4)
        return false;
    uint64_t first = big(message + at, 3);
    bool has_grid = (message[at + 7] & 0x80) != 0;
    if (first < 28 || first > bytes - 4 - at - 3 || !has_grid)
        return false;
    at += first;
    uint64_t length = big(message + at, 3);
    if (length < 6 || length > bytes - 4 - at)
        return false;
    *ret_section = message + at;
    *ret_bytes = (size_t) length;
    return true;
}

bool
gribs_grid_section(const uint8_t *message, uint64_t bytes, const uint8_t **ret_section,
                   size_t *ret_bytes, unsigned *ret_fields)
{
    bool found = false;
    *ret_fields = 1;
    if (bytes < 20 || memcmp(message + bytes - 4, "7777", 4) != 0)
        return false;
    if (message[7] == 1)
        return grid1(message, bytes, ret_section, ret_bytes);
    *ret_fields = 0;
    for (uint64_t at = 16; at < bytes - 4;) {
        if (bytes - 4 - at < 5)
            return false;
        uint64_t length = big(message + at, 4);
        if (length < 5 || length > bytes - 4 - at)
            return false;
        if (message[at + 4] == 3 && !found) {
            *ret_section = message + at;
            *ret_bytes = (size_t) length;
            found = true;
        }
        *ret_fields += message[at + 4] == 7;
        at += length;
    }
    return found && *ret_fields > 0;
}

bool
gribs_is_file(const char *path)
{
    uint8_t head[GRIB_HEAD_BYTES];
    gribs_place place;
    FILE *file = g_file_test(path, G_FILE_TEST_IS_REGULAR) ? fopen(path, "rbe") : NULL;
    bool is = file != NULL && fread(head, sizeof head, 1, file) == 1 && gribs_head(head, &place);
    if (file != NULL)
        (void) fclose(file);
    return is;
}
