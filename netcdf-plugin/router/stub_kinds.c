/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What stands in front of a stub so that it looks like another kind of NetCDF file: a valid one of
 * that kind without variables, whose attributes tell what it is, and whose readers do not mind what
 * follows. Programs such as cdo choose the kind of their output by the magic number of the input.
 */
#include "router/stub.h"

#include <stdlib.h>
#include <string.h>

/* ---- HDF5 ----------------------------------------------------------------------------------- */

enum {
    SUPERBLOCK_BYTES = 48,
    HEADER_BYTES = 8, /**< of an object, before its messages */
    MESSAGE_BYTES = 6,
    MESSAGE_LINKS = 0x02,
    MESSAGE_GROUP = 0x0a,
    MESSAGE_ATTRIBUTE = 0x0c,
    MESSAGE_ATTRIBUTES = 0x15
};

/** Little-endian numbers; `full` when there is no room. */
typedef struct image {
    unsigned char *bytes;
    size_t size;
    size_t used;
    bool full;
} image;

static void
put(image *f, const void *bytes, size_t length)
{
    if (f->full || length > f->size - f->used) {
        f->full = true;
        return;
    }
    memcpy(f->bytes + f->used, bytes, length);
    f->used += length;
}

static void
put_number(image *f, uint64_t value, size_t length)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (unsigned char) (value >> (8 * i));
    }
    put(f, bytes, length);
}

static uint32_t
rotated(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static void
mix(uint32_t *a, uint32_t *b, uint32_t *c)
{
    static const int bits[6] = {4, 6, 8, 16, 19, 4};
    uint32_t *x[3] = {a, b, c};
    for (int i = 0; i < 6; i++) {
        uint32_t *first = x[i % 3];
        uint32_t *second = x[(i + 1) % 3];
        uint32_t *third = x[(i + 2) % 3];
        *first -= *third;
        *first ^= rotated(*third, bits[i]);
        *third += *second;
    }
}

static void
mix_last(uint32_t *a, uint32_t *b, uint32_t *c)
{
    static const int bits[7] = {14, 11, 25, 16, 4, 14, 24};
    uint32_t *x[3] = {c, a, b};
    for (int i = 0; i < 7; i++) {
        uint32_t *target = x[i % 3];
        const uint32_t *other = x[(i + 2) % 3];
        *target ^= *other;
        *target -= rotated(*other, bits[i]);
    }
}

/** Bob Jenkins' lookup3, hashlittle() with the initial value 0: HDF5's checksum of metadata. */
static uint32_t
checksum(const unsigned char *bytes, size_t length)
{
    uint32_t word[3];
    uint32_t a = 0xdeadbeef + (uint32_t) length;
    uint32_t b = a;
    uint32_t c = a;
    while (length > 0) {
        size_t part = length < 12 ? length : 12;
        unsigned char twelve[12] = {0};
        memcpy(twelve, bytes, part);
        for (int i = 0; i < 3; i++) {
            const unsigned char *w = twelve + (size_t) i * 4;
            word[i] = (uint32_t) w[0] | (uint32_t) w[1] << 8 | (uint32_t) w[2] << 16 |
                      (uint32_t) w[3] << 24;
        }
        a += word[0];
        b += word[1];
        c += word[2];
        bytes += part;
        length -= part;
        if (length > 0) {
            mix(&a, &b, &c);
        } else {
            mix_last(&a, &b, &c);
        }
    }
    return c;
}

static void
put_message(image *f, unsigned type, size_t bytes, unsigned flags, unsigned order)
{
    put_number(f, type, 1);
    put_number(f, bytes, 2);
    put_number(f, flags, 1);
    put_number(f, order, 2);
}

/** Counts of created objects, and three addresses of what a small group does not have. */
static void
put_index(image *f, unsigned created, size_t created_bytes)
{
    put_number(f, 0x0300, 2); /* orders of creation are kept, and an index by them */
    put_number(f, created, created_bytes);
    for (int i = 0; i < 3; i++) {
        put_number(f, UINT64_MAX, 8);
    }
}

/** A text of fixed length, as netCDF-4 writes them. */
static void
put_text(image *f, const char *name, const char *text, unsigned order)
{
    size_t name_bytes = strlen(name) + 1;
    size_t text_bytes = strlen(text);
    put_message(f, MESSAGE_ATTRIBUTE, 9 + name_bytes + 8 + 4 + text_bytes, 0, order);
    put_number(f, 3, 2); /* version, flags */
    put_number(f, name_bytes, 2);
    put_number(f, 8, 2); /* bytes of the datatype */
    put_number(f, 4, 2); /* and of the dataspace */
    put_number(f, 0, 1); /* the name is ASCII */
    put(f, name, name_bytes);
    put_number(f, 0x13, 4); /* a string, its end marked by NUL where it is shorter */
    put_number(f, text_bytes, 4);
    put_number(f, 2, 4); /* a scalar */
    put(f, text, text_bytes);
}

/** An HDF5 file: superblock version 2, then the header of the root group (attributes and links in
 *  order of creation, as netCDF-4 has them). @return bytes; 0: it does not fit. */
static size_t
hdf5_build(const char *container, unsigned char *bytes, size_t size)
{
    static const unsigned char signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    image f = {.bytes = bytes, .size = size, .used = SUPERBLOCK_BYTES};
    if (size < SUPERBLOCK_BYTES) {
        return 0;
    }
    put(&f, "OHDR\002\x0d", 6); /* order of creation; the next number has two bytes */
    size_t header = f.used;
    put_number(&f, 0, 2);
    put_message(&f, MESSAGE_LINKS, 34, 0, 0);
    put_index(&f, 0, 8);
    put_message(&f, MESSAGE_GROUP, 2, 1, 0);
    put_number(&f, 0, 2);
    put_message(&f, MESSAGE_ATTRIBUTES, 28, 4, 0);
    put_index(&f, 2, 2);
    put_text(&f, "esdm_container", container, 0);
    put_text(&f, "esdm_notice", esdmnc__stub_notice, 1);
    size_t end = f.used;
    put_number(&f, 0, 4);
    if (f.full) {
        return 0;
    }
    image part = {.bytes = bytes + header, .size = 2};
    put_number(&part, end - header - 2, 2);
    part = (image){.bytes = bytes + end, .size = 4};
    put_number(&part, checksum(bytes + SUPERBLOCK_BYTES, end - SUPERBLOCK_BYTES), 4);
    part = (image){.bytes = bytes, .size = SUPERBLOCK_BYTES};
    put(&part, signature, sizeof(signature));
    put_number(&part, 0x00080802, 4); /* version; bytes of offsets and of lengths; flags */
    put_number(&part, 0, 8);
    put_number(&part, UINT64_MAX, 8);
    put_number(&part, f.used, 8);
    put_number(&part, SUPERBLOCK_BYTES, 8); /* where the root group is */
    put_number(&part, checksum(bytes, SUPERBLOCK_BYTES - 4), 4);
    return f.used;
}

/* ---- all kinds ------------------------------------------------------------------------------ */

size_t
esdmnc__stub_prefix(const char *container, int format, unsigned char *bytes, size_t size)
{
    switch (format) {
    case NC_FORMAT_NETCDF4:
    case NC_FORMAT_NETCDF4_CLASSIC:
        return hdf5_build(container, bytes, size);
    case NC_FORMAT_64BIT_OFFSET:
        return esdmnc__stub_build(2, container, NULL, bytes, size);
    default:
        return esdmnc__stub_build(5, container, NULL, bytes, size);
    }
}

bool
esdmnc__stub_find(const unsigned char *bytes, size_t size, size_t *ret_offset)
{
    static const char *const begins[] = {"CDF\002", "CDF\005", "\x89HDF"};
    if (size < ESDMNC_STUB_MAGIC_LEN) {
        return false;
    }
    const unsigned char *found = bytes;
    if (memcmp(bytes, ESDMNC_STUB_MAGIC, ESDMNC_STUB_MAGIC_LEN) != 0) {
        bool other = false;
        for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
            other = other || memcmp(bytes, begins[i], 4) == 0;
        }
        found = other ? memmem(bytes, size, ESDMNC_STUB_MAGIC, ESDMNC_STUB_MAGIC_LEN) : NULL;
    }
    *ret_offset = found ? (size_t) (found - bytes) : 0;
    return found != NULL;
}

bool
esdmnc__stub_remains(const unsigned char *bytes, size_t size, char *container)
{
    static const char name[20] = "\0\0\0\016esdm_container"; /* counted, and padded */
    static const char notice[16] = "\0\0\0\013esdm_notice";
    bool classic = size > 8 && memcmp(bytes, "CDF", 3) == 0 && (bytes[3] == 1 || bytes[3] == 2);
    const unsigned char *at = classic ? memmem(bytes, size, name, sizeof(name)) : NULL;
    size_t rest = at ? size - (size_t) (at - bytes) - sizeof(name) : 0;
    if (rest < 8 || !memmem(at, rest, notice, 15)) {
        return false;
    }
    at += sizeof(name) + 4; /* the type */
    size_t length = (size_t) at[0] << 24 | (size_t) at[1] << 16 | (size_t) at[2] << 8 | at[3];
    if (length == 0 || length > rest - 8 || length > ESDMNC_NAME_MAX ||
        memchr(at + 4, '\0', length)) {
        return false;
    }
    memcpy(container, at + 4, length);
    container[length] = '\0';
    return true;
}
