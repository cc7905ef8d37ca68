/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What stands in front of a stub so that it looks like another kind of NetCDF file: a valid, empty
 * one of that kind, whose readers do not mind what follows. Programs such as cdo choose the kind of
 * their output by the magic number of the input.
 */
#include "router/router.h"

static const unsigned char cdf2[32] = "CDF\002";
static const unsigned char cdf5[48] = "CDF\005";

/** An empty HDF5 file: superblock version 2, the header of the root group (attributes and links in
 *  order of creation, as netCDF-4 has them), and its checksum. */
static const unsigned char hdf5[239] = {
    0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a,         0x0a,         0x02,         0x08,
    0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,         0x00,         0x00,         0x00,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,         0xff,         0xef,         0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x30,         0x00,         0x00,         0x00,
    0x00, 0x00, 0x00, 0x00, 0x94, 0x33, 0x45,         0x0f,         0x4f,         0x48,
    0x44, 0x52, 0x02, 0x0c, 0xb4, 0x02, 0x22,         0x00,         0x00,         0x00,
    0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00,         0x00,         0x00,         0x00,
    0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,         0xff,         0xff,         0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,         0xff,         0xff,         0xff,
    0xff, 0xff, 0xff, 0xff, 0xff, 0x0a, 0x02,         0x00,         0x01,         0x00,
    0x00, 0x00, 0x00, 0x00, 0x7e, 0x00, 0x00,         0x00,         0x00,         0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, [235] = 0x63, [236] = 0x28, [237] = 0xac, [238] = 0x1c,
};

static const struct kind {
    int format;
    const unsigned char *bytes;
    size_t length;
} kinds[] = {{NC_FORMAT_64BIT_OFFSET, cdf2, sizeof(cdf2)},
             {NC_FORMAT_64BIT_DATA, cdf5, sizeof(cdf5)},
             {NC_FORMAT_NETCDF4, hdf5, sizeof(hdf5)},
             {NC_FORMAT_NETCDF4_CLASSIC, hdf5, sizeof(hdf5)}};

const unsigned char *
esdmnc__stub_prefix(int format, size_t *ret_length)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].format == format) {
            *ret_length = kinds[i].length;
            return kinds[i].bytes;
        }
    }
    *ret_length = 0;
    return NULL;
}

bool
esdmnc__stub_find(const unsigned char *bytes, size_t size, size_t *ret_offset)
{
    if (size >= ESDMNC_STUB_MAGIC_LEN &&
        memcmp(bytes, ESDMNC_STUB_MAGIC, ESDMNC_STUB_MAGIC_LEN) == 0) {
        *ret_offset = 0;
        return true;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t length = kinds[i].length;
        if (size >= length + ESDMNC_STUB_MAGIC_LEN && memcmp(bytes, kinds[i].bytes, length) == 0 &&
            memcmp(bytes + length, ESDMNC_STUB_MAGIC, ESDMNC_STUB_MAGIC_LEN) == 0) {
            *ret_offset = length;
            return true;
        }
    }
    return false;
}
