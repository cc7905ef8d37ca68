/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Messages for fuzz_messages.c in the packings that ecCodes writes. */

#include "seeds_grib.h"

#include <eccodes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 12, COLUMNS = 16, VALUES = ROWS * COLUMNS };

static bool
set_grid(codes_handle *h)
{
    return codes_set_long(h, "Ni", COLUMNS) == 0 && codes_set_long(h, "Nj", ROWS) == 0 &&
           codes_set_double(h, "latitudeOfFirstGridPointInDegrees", 60) == 0 &&
           codes_set_double(h, "longitudeOfFirstGridPointInDegrees", 0) == 0 &&
           codes_set_double(h, "latitudeOfLastGridPointInDegrees", 50) == 0 &&
           codes_set_double(h, "longitudeOfLastGridPointInDegrees", 30) == 0;
}

static bool
set_values(codes_handle *h, const char *packing, bool bitmap)
{
    double values[VALUES];
    size_t length = strlen(packing);
    for (int i = 0; i < VALUES; i++)
        values[i] =
            bitmap && i % COLUMNS < 3 ? -9e33 : 280 + (i % COLUMNS) / 2.0 + (i * 37 % 101) / 32.0;
    return codes_set_double(h, "missingValue", -9e33) == 0 &&
           codes_set_long(h, "bitmapPresent", bitmap) == 0 &&
           codes_set_long(h, "bitsPerValue", 12) == 0 &&
           codes_set_double_array(h, "values", values, VALUES) == 0 &&
           codes_set_string(h, "packingType", packing, &length) == 0;
}

void
seeds_grib(void (*save)(const void *head, size_t head_bytes, const void *message, size_t bytes))
{
    static const char *const packings[2][8] = {
        {"grid_simple", "grid_second_order", "grid_ieee", "grid_simple_matrix"},
        {"grid_simple", "grid_ieee", "grid_jpeg", "grid_png", "grid_ccsds", "grid_second_order",
         "grid_complex", "grid_complex_spatial_differencing"}};
    static const char *const samples[2] = {"regular_ll_pl_grib1", "regular_ll_pl_grib2"};
    for (int k = 0; k < 2 * 8 * 2; k++) {
        const char *packing = packings[k / 16][k / 2 % 8];
        codes_handle *h =
            packing != NULL ? codes_grib_handle_new_from_samples(NULL, samples[k / 16]) : NULL;
        const void *message = NULL;
        size_t bytes = 0;
        const uint8_t head[3] = {(uint8_t) k, VALUES & 255, VALUES >> 8};
        if (h != NULL && set_grid(h) && set_values(h, packing, k % 2 != 0) &&
            codes_get_message(h, &message, &bytes) == 0)
            save(head, sizeof head, message, bytes);
        if (h != NULL)
            (void) codes_handle_delete(h);
    }
}
