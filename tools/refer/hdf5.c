/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * Where the chunks of HDF5 datasets lie. HDF5's own functions for that walk the index of chunks
 * from its start each time. Here HDF5 reads chunk after chunk through a file driver that notes
 * address and length of what would be read of raw data, and reads nothing.
 */

#include "refer/refer.h"
#include "refer/remote.h"

#include <dlfcn.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a file driver that notes ------------------------------------------------------------- */

typedef struct noting_file {
    H5FD_t base;
    int fd;
    remote_object *remote; /* borrowed; NULL: a file */
    haddr_t eoa;
    haddr_t eof;
} noting_file;

typedef struct noted {
    bool on;
    unsigned reads;
    haddr_t address;
    size_t bytes;
} noted;

/* One process looks at one file at a time, in one thread. */
static noted note;
static int descriptor;
static remote_object *remote;
static uint64_t length;

static H5FD_t *
noting_open(const char *name, unsigned flags, hid_t properties, haddr_t max)
{
    (void) name;
    (void) properties;
    (void) max;
    noting_file *f = flags == H5F_ACC_RDONLY ? calloc(1, sizeof *f) : NULL;
    if (f == NULL)
        return NULL;
    f->fd = descriptor;
    f->remote = remote;
    f->eof = length;
    return &f->base;
}

static herr_t
noting_close(H5FD_t *file)
{
    free(file);
    return 0;
}

static herr_t
noting_query(const H5FD_t *file, unsigned long *flags)
{
    (void) file;
    *flags = 0;
    return 0;
}

static haddr_t
noting_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void) type;
    return ((const noting_file *) file)->eoa;
}

static herr_t
noting_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address)
{
    (void) type;
    ((noting_file *) file)->eoa = address;
    return 0;
}

static haddr_t
noting_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void) type;
    return ((const noting_file *) file)->eof;
}

static herr_t
noting_read(H5FD_t *file, H5FD_mem_t type, hid_t properties, haddr_t address, size_t bytes,
            void *buffer)
{
    const noting_file *f = (const noting_file *) file;
    uint8_t *to = buffer;
    (void) properties;
    if (note.on && type == H5FD_MEM_DRAW) {
        note.reads++;
        note.address = address + f->base.base_addr;
        note.bytes = bytes;
        return 0;
    }
    if (f->remote != NULL)
        return remote_read(f->remote, address + f->base.base_addr, to, bytes) ? 0 : -1;
    while (bytes > 0) {
        ssize_t n = pread(f->fd, to, bytes, (off_t) (address + f->base.base_addr));
        if (n < 0)
            return -1;
        if (n == 0) { /* behind the end: zeros, as HDF5's own drivers have it */
            memset(to, 0, bytes);
            return 0;
        }
        to += n;
        address += (haddr_t) n;
        bytes -= (size_t) n;
    }
    return 0;
}

static herr_t
noting_write(H5FD_t *file, H5FD_mem_t type, hid_t properties, haddr_t address, size_t bytes,
             const void *buffer)
{
    (void) file;
    (void) type;
    (void) properties;
    (void) address;
    (void) bytes;
    (void) buffer;
    return -1;
}

static const H5FD_class_t noting_class = {
    .name = "esdm-noting",
    .maxaddr = ((haddr_t) 1 << 62) - 1,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = noting_open,
    .close = noting_close,
    .query = noting_query,
    .get_eoa = noting_get_eoa,
    .set_eoa = noting_set_eoa,
    .get_eof = noting_get_eof,
    .read = noting_read,
    .write = noting_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* ---- files -------------------------------------------------------------------------------- */

struct hdf5_file {
    hid_t file;
    hid_t driver;
    int fd;
    remote_object *remote;
};

static hdf5_file *
open_noting(const char *path)
{
    hdf5_file *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->fd = descriptor;
    f->remote = remote;
    (void) H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    f->driver = H5FDregister(&noting_class);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    (void) H5Pset_driver(access, f->driver, NULL);
    f->file = H5Fopen(path, H5F_ACC_RDONLY, access);
    (void) H5Pclose(access);
    if (f->file >= 0)
        return f;
    (void) H5FDunregister(f->driver);
    free(f);
    return NULL;
}

hdf5_file *
hdf5_open(const char *path, int fd)
{
    off_t end = lseek(fd, 0, SEEK_END);
    if (end < 0)
        return NULL;
    descriptor = fd;
    remote = NULL;
    length = (uint64_t) end;
    return open_noting(path);
}

hdf5_file *
hdf5_open_remote(remote_object *object)
{
    descriptor = -1;
    remote = object;
    length = object->state.bytes;
    return open_noting(object->url);
}

/* ---- what libnetcdf opens ------------------------------------------------------------------ */

static char *stood_for; /* path */
static remote_object *stands_for;

void
hdf5_stand_for(const char *path, remote_object *object)
{
    free(stood_for);
    stood_for = path != NULL ? strdup(path) : NULL;
    stands_for = object;
}

__attribute__((visibility("default"))) hid_t
H5Fopen(const char *name, unsigned flags, hid_t access)
{
    static hid_t (*real)(const char *, unsigned, hid_t);
    static hid_t driver = -1;
    if (real == NULL) {
        void *found = dlsym(RTLD_NEXT, "H5Fopen");
        memcpy(&real, &found, sizeof real);
    }
    if (stood_for == NULL || name == NULL || strcmp(name, stood_for) != 0)
        return real(name, flags, access);
    if (driver < 0)
        driver = H5FDregister(&noting_class);
    remote = stands_for;
    descriptor = -1;
    length = remote->state.bytes;
    hid_t own = access == H5P_DEFAULT ? H5Pcreate(H5P_FILE_ACCESS) : H5Pcopy(access);
    (void) H5Pset_driver(own, driver, NULL);
    hid_t file = real(name, flags, own);
    (void) H5Pclose(own);
    return file;
}

void
hdf5_close(hdf5_file *file)
{
    if (file == NULL)
        return;
    (void) H5Fclose(file->file);
    (void) H5FDunregister(file->driver);
    free(file);
}

void
hdf5_values_clear(hdf5_values *values)
{
    for (uint32_t i = 0; values->filters != NULL && i < values->layout.nfilters; i++)
        free((void *) (uintptr_t) values->filters[i].values);
    free(values->filters);
    free(values->chunk);
    free(values->parts);
    free(values->fill);
    *values = (hdf5_values){0};
}

/* ---- one dataset -------------------------------------------------------------------------- */

typedef struct look {
    const hdf5_file *file;
    hid_t dataset, properties, type;
    uint32_t rank;
    hsize_t extent[ESDM_MAX_RANK];
    hsize_t chunk[ESDM_MAX_RANK];
    hdf5_values *to;
} look;

static const char *
look_at_type(look *l, size_t element_bytes)
{
    H5T_class_t class = H5Tget_class(l->type);
    hid_t base = class == H5T_ENUM ? H5Tget_super(l->type) : H5Tcopy(l->type);
    bool plain = class == H5T_OPAQUE || (class == H5T_STRING && H5Tis_variable_str(l->type) == 0);
    bool order = class == H5T_INTEGER || class == H5T_ENUM || class == H5T_FLOAT;
    const char *why = NULL;
    if (!plain && !order)
        why = "elements of that type are no plain bytes";
    else if (H5Tget_size(l->type) != element_bytes)
        why = "its elements have another size in the file";
    else if (order && (H5Tget_precision(base) != 8 * element_bytes || H5Tget_offset(base) != 0))
        why = "its numbers do not fill their bytes";
    else if (class == H5T_FLOAT && H5Tequal(base, H5T_IEEE_F32LE) <= 0 &&
             H5Tequal(base, H5T_IEEE_F32BE) <= 0 && H5Tequal(base, H5T_IEEE_F64LE) <= 0 &&
             H5Tequal(base, H5T_IEEE_F64BE) <= 0)
        why = "its numbers are not those of IEEE 754";
    else if (order && element_bytes > 1) {
        H5T_order_t is = H5Tget_order(base);
        l->to->layout.big_endian = is == H5T_ORDER_BE;
        if (is != H5T_ORDER_BE && is != H5T_ORDER_LE)
            why = "its byte order is neither big nor little endian";
    }
    (void) H5Tclose(base);
    return why;
}

static const char *
look_at_filters(look *l)
{
    int n = H5Pget_nfilters(l->properties);
    if (n < 0 || n > 32)
        return "its filters cannot be read";
    l->to->filters = calloc((size_t) n + 1, sizeof *l->to->filters);
    if (l->to->filters == NULL)
        return "no memory";
    l->to->layout.filters = l->to->filters;
    for (int i = 0; i < n; i++) {
        unsigned values[64], flags = 0, config = 0;
        size_t nvalues = 64;
        H5Z_filter_t id =
            H5Pget_filter2(l->properties, (unsigned) i, &flags, &nvalues, values, 0, NULL, &config);
        if (id != 1 && id != 2 && id != 3 && id != 32001 && id != 32015)
            return "it has a filter that ESDM does not undo";
        nvalues = nvalues > 64 ? 64 : nvalues;
        uint32_t *copy = malloc((nvalues + 1) * sizeof *copy);
        if (copy == NULL)
            return "no memory";
        memcpy(copy, values, nvalues * sizeof *copy);
        l->to->filters[i] =
            (esdm_file_filter){.id = (uint32_t) id, .nvalues = (uint32_t) nvalues, .values = copy};
        l->to->layout.nfilters = (uint32_t) i + 1;
    }
    return NULL;
}

static void
look_at_fill(look *l, size_t element_bytes)
{
    H5D_fill_value_t is = H5D_FILL_VALUE_UNDEFINED;
    hid_t native = H5Tget_native_type(l->type, H5T_DIR_ASCEND);
    if (H5Pfill_value_defined(l->properties, &is) >= 0 && is != H5D_FILL_VALUE_UNDEFINED &&
        native >= 0 && H5Tget_size(native) == element_bytes &&
        (l->to->fill = calloc(1, element_bytes)) != NULL &&
        H5Pget_fill_value(l->properties, native, l->to->fill) < 0) {
        free(l->to->fill);
        l->to->fill = NULL;
    }
    (void) H5Tclose(native);
}

static const char *
look_at_contiguous(look *l, size_t element_bytes)
{
    hsize_t bytes = element_bytes;
    uint64_t stored = H5Dget_storage_size(l->dataset);
    haddr_t address = H5Dget_offset(l->dataset);
    if (H5Pget_external_count(l->properties) > 0)
        return "its values lie in further files";
    for (uint32_t d = 0; d < l->rank; d++)
        bytes *= l->extent[d];
    if (stored == 0 || bytes == 0) {
        l->to->complete = bytes == 0;
        return NULL;
    }
    if (address == HADDR_UNDEF || stored < bytes || address > length || length - address < bytes)
        return "its values lie behind the end of the file";
    l->to->parts = calloc(1, sizeof *l->to->parts);
    if (l->to->parts == NULL)
        return "no memory";
    for (uint32_t d = 0; d < l->rank; d++)
        l->to->parts->size[d] = l->extent[d];
    l->to->parts->position = address;
    l->to->parts->bytes = bytes;
    l->to->nparts = 1;
    l->to->complete = true;
    return NULL;
}

/* What ties the chunk's bytes to their content. An object on a server has an identity, and a
 * request for each chunk would take long. */
static void
look_at_checksum(const look *l, esdm_file_part *part)
{
    uint32_t n = l->to->layout.nfilters;
    uint32_t last = n > 0 ? l->to->filters[n - 1].id : 0;
    if (n == 0 || part->bytes < 4 || (part->filter_mask >> (n - 1) & 1u) != 0 ||
        (last != 1 && last != 3) || l->file->remote != NULL ||
        pread(l->file->fd, &part->checksum, 4, (off_t) (part->position + part->bytes - 4)) != 4)
        return;
    part->checksum_kind = last == 1 ? ESDM_FILE_CHECKSUM_ADLER32 : ESDM_FILE_CHECKSUM_FLETCHER32;
}

/* @param ret_found false: the chunk was never written. */
static const char *
look_at_chunk(look *l, const hsize_t *at, void *unused, bool *ret_found)
{
    hsize_t bytes = 0;
    uint32_t mask = 0;
    *ret_found = false;
    if (H5Dget_chunk_storage_size(l->dataset, at, &bytes) < 0 || bytes == 0)
        return NULL;
    note = (noted){.on = true};
    herr_t failed = H5Dread_chunk(l->dataset, H5P_DEFAULT, at, &mask, unused);
    note.on = false;
    if (failed < 0 || note.reads != 1 || note.bytes != bytes || note.address > length ||
        length - note.address < bytes)
        return "a chunk lies behind the end of the file, or cannot be found";
    esdm_file_part *part = &l->to->parts[l->to->nparts++];
    *part = (esdm_file_part){.position = note.address, .bytes = bytes, .filter_mask = mask};
    for (uint32_t d = 0; d < l->rank; d++) {
        part->offset[d] = at[d];
        part->size[d] = l->extent[d] - at[d] < l->chunk[d] ? l->extent[d] - at[d] : l->chunk[d];
    }
    look_at_checksum(l, part);
    *ret_found = true;
    return NULL;
}

static bool
next_chunk(const look *l, hsize_t *at)
{
    uint32_t d = l->rank;
    while (d > 0) {
        d--;
        at[d] += l->chunk[d];
        if (at[d] < l->extent[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static const char *
look_at_chunks(look *l)
{
    hsize_t at[ESDM_MAX_RANK] = {0};
    uint64_t chunks = 1;
    unsigned options = 0;
    uint8_t unused[8];
    const char *why = look_at_filters(l);
    if (why != NULL || H5Pget_chunk(l->properties, (int) l->rank, l->chunk) != (int) l->rank)
        return why != NULL ? why : "its chunks cannot be read";
    l->to->chunk = calloc(l->rank + 1, sizeof *l->to->chunk);
    if (l->to->chunk == NULL)
        return "no memory";
    for (uint32_t d = 0; d < l->rank; d++) {
        l->to->chunk[d] = l->chunk[d];
        if (l->chunk[d] == 0 ||
            __builtin_mul_overflow(chunks, (l->extent[d] + l->chunk[d] - 1) / l->chunk[d], &chunks))
            return "its chunks cannot be counted";
    }
    l->to->layout.chunk = l->to->chunk;
    l->to->layout.edges_plain = H5Pget_chunk_opts(l->properties, &options) >= 0 &&
                                (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) != 0;
    l->to->complete = true;
    if (chunks == 0)
        return NULL;
    if (chunks > UINT64_C(1) << 26)
        return "it has very many chunks";
    l->to->parts = malloc((size_t) chunks * sizeof *l->to->parts);
    if (l->to->parts == NULL)
        return "no memory";
    do {
        bool found = false;
        why = look_at_chunk(l, at, unused, &found);
        l->to->complete &= found;
    } while (why == NULL && next_chunk(l, at));
    return why;
}

static const char *
look_at_all(look *l, size_t element_bytes)
{
    hid_t space = H5Dget_space(l->dataset);
    int rank = H5Sget_simple_extent_ndims(space);
    bool fits = rank == (int) l->rank && H5Sget_simple_extent_type(space) != H5S_NULL &&
                H5Sget_simple_extent_dims(space, l->extent, NULL) == rank;
    (void) H5Sclose(space);
    if (!fits)
        return "it has other dimensions in the file";
    const char *why = look_at_type(l, element_bytes);
    if (why != NULL)
        return why;
    look_at_fill(l, element_bytes);
    switch (H5Pget_layout(l->properties)) {
    case H5D_CONTIGUOUS:
        return look_at_contiguous(l, element_bytes);
    case H5D_CHUNKED:
        return look_at_chunks(l);
    case H5D_COMPACT:
        return "its values lie in the file's header";
    default:
        return "its values lie in further files";
    }
}

/* A variable that is named like a dimension which it does not have is stored under another name. */
static hid_t
open_dataset(const hdf5_file *file, const char *group, const char *name)
{
    char path[4096];
    const char *slash = strcmp(group, "/") == 0 ? "" : "/";
    (void) snprintf(path, sizeof path, "%s%s_nc4_non_coord_%s", group, slash, name);
    hid_t dataset = H5Dopen2(file->file, path, H5P_DEFAULT);
    if (dataset >= 0)
        return dataset;
    (void) snprintf(path, sizeof path, "%s%s%s", group, slash, name);
    return H5Dopen2(file->file, path, H5P_DEFAULT);
}

bool
hdf5_look(hdf5_file *file, const char *group, const char *name, uint32_t rank, size_t element_bytes,
          hdf5_values *ret)
{
    look l = {.file = file, .rank = rank, .to = ret};
    l.dataset = open_dataset(file, group, name);
    if (l.dataset < 0)
        return false;
    l.properties = H5Dget_create_plist(l.dataset);
    l.type = H5Dget_type(l.dataset);
    ret->why_not = look_at_all(&l, element_bytes);
    (void) H5Tclose(l.type);
    (void) H5Pclose(l.properties);
    (void) H5Dclose(l.dataset);
    return true;
}
