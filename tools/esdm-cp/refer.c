/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Containers whose values stay in the NetCDF file: esdm-cp --reference, and esdm-ref. */

#include "esdm-cp/esdm-cp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "refer/grib.h"
#include "refer/refer.h"
#include "refer/remote.h"
#include "refer/zarr.h"

struct cp_referrer {
    char *path; /* absolute */
    int fd;
    struct stat is;
    uint64_t bytes; /* its size */
    bool other;     /* neither classic nor HDF5: cp_end has what is needed */
    bool classic;
    classic_header header;
    hdf5_file *hdf5;
    remote_object *remote; /* borrowed; NULL: a file */
};

static int64_t
nanoseconds(struct timespec t)
{
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- classic ------------------------------------------------------------------------------ */

static bool
read_beginning(void *file, void *data, size_t bytes, size_t *ret_bytes)
{
    const cp_referrer *r = file;
    ssize_t n = r->remote == NULL                        ? pread(r->fd, data, bytes, 0)
                : remote_read(r->remote, 0, data, bytes) ? (ssize_t) bytes
                                                         : -1;
    *ret_bytes = n < 0 ? 0 : (size_t) n;
    return n >= 0;
}

static bool
read_header(cp_referrer *r)
{
    return classic_read(read_beginning, r, r->bytes, &r->header, NULL, NULL);
}

static esdm_status
cut_off(const cp_referrer *r, const cp_dataset *dataset, esdm_error *err)
{
    return tool_error_set(err, ESDM_ECORRUPT,
                          "%s: the file was cut off: values of %s lie behind its end", r->path,
                          dataset->path);
}

static esdm_status
refer_classic(const cp_referrer *r, const cp_dataset *dataset, esdm_file_layout *layout,
              esdm_error *err)
{
    esdm_file_part part = {0};
    uint64_t bytes = dataset->type->bytes, end = 0, all = 1;
    const classic_variable *v = &r->header.variables[dataset->from.varid];
    for (uint32_t d = 0; d < dataset->rank; d++) {
        part.size[d] = dataset->dimensions[d]->length;
        all *= part.size[d];
        if (d > 0 || !v->record)
            bytes *= part.size[d];
    }
    if (bytes != v->bytes || (v->record && part.size[0] != r->header.records))
        return tool_error_set(err, ESDM_ECORRUPT, "%s: the header of %s contradicts libnetcdf",
                              r->path, dataset->path);
    if (all == 0)
        return ESDM_OK;
    part.position = v->begin;
    part.bytes = v->bytes;
    if (v->record && (__builtin_mul_overflow(r->header.record_bytes, r->header.records - 1, &end) ||
                      __builtin_add_overflow(part.bytes, end, &part.bytes)))
        return cut_off(r, dataset, err);
    if (__builtin_add_overflow(part.position, part.bytes, &end) || end > r->bytes)
        return cut_off(r, dataset, err);
    layout->big_endian = dataset->type->bytes > 1;
    layout->record_bytes = v->record ? r->header.record_bytes : 0;
    return esdm_dataset_refer(dataset->to.dataset, layout, &part, 1, err);
}

/* ---- HDF5 --------------------------------------------------------------------------------- */

static bool
fill_fits(const cp_dataset *dataset, const hdf5_values *values)
{
    bool is_default;
    const void *fill = esdm_dataset_fill(dataset->to.dataset, &is_default);
    return values->complete || dataset->nofill || values->fill == NULL || fill == NULL ||
           memcmp(fill, values->fill, dataset->type->bytes) == 0;
}

static char *
group_of(const cp_dataset *dataset)
{
    g_autofree char *folder = g_path_get_dirname(dataset->path);
    return g_strdup(folder);
}

static esdm_status
refer_hdf5(const cp_referrer *r, const cp_dataset *dataset, const esdm_file_layout *layout,
           bool *ret_referred, const char **ret_why, esdm_error *err)
{
    hdf5_values values = {0};
    esdm_status status = ESDM_OK;
    g_autofree char *group = group_of(dataset);
    if (!hdf5_look(r->hdf5, group, dataset->name, dataset->rank, dataset->type->bytes, &values))
        values.why_not = "HDF5 cannot open it";
    if (values.why_not == NULL && !fill_fits(dataset, &values))
        values.why_not = "its missing values are others than its attributes say";
    *ret_referred = values.why_not == NULL;
    *ret_why = values.why_not;
    if (*ret_referred) {
        esdm_file_layout whole = values.layout;
        whole.location = layout->location;
        whole.bytes = layout->bytes;
        whole.modified_ns = layout->modified_ns;
        whole.changed_ns = layout->changed_ns;
        whole.inode = layout->inode;
        whole.identity = layout->identity;
        status = esdm_dataset_refer(dataset->to.dataset, &whole, values.parts, values.nparts, err);
    }
    hdf5_values_clear(&values);
    return status;
}

/* ---- all ---------------------------------------------------------------------------------- */

void
cp_referrer_free(cp_referrer *r)
{
    if (r == NULL)
        return;
    hdf5_close(r->hdf5);
    if (r->fd >= 0)
        (void) close(r->fd);
    free(r->header.variables);
    free(r->path);
    g_free(r);
}

static esdm_status
open_remote(cp_referrer *r, const char *url, esdm_error *err)
{
    remote_kind kind = REMOTE_HDF5;
    r->fd = -1;
    r->path = strdup(url);
    esdm_status status = remote_kind_of(url, &kind, err);
    if (status == ESDM_OK)
        status = remote_open(url, &r->remote, err);
    if (status != ESDM_OK)
        return status;
    r->bytes = r->remote->state.bytes;
    r->classic = kind == REMOTE_CLASSIC;
    r->other = kind == REMOTE_GRIB;
    if (r->other || (r->classic && read_header(r)))
        return ESDM_OK;
    if (!r->classic)
        r->hdf5 = hdf5_open_remote(r->remote);
    return r->hdf5 != NULL ? ESDM_OK
                           : tool_error_set(err, ESDM_ENOTSUP, "'%s': no %s that can be read", url,
                                            r->classic ? "header of netCDF classic" : "HDF5");
}

esdm_status
cp_referrer_new(const char *name, cp_referrer **ret, esdm_error *err)
{
    cp_referrer *r = g_new0(cp_referrer, 1);
    if (zarr_is_store(name) || gribs_is_file(name)) {
        r->other = true;
        r->fd = -1;
        *ret = r;
        return ESDM_OK;
    }
    if (esdm_location_is_remote(name)) {
        esdm_status status = open_remote(r, name, err);
        if (status == ESDM_OK)
            *ret = r;
        else
            cp_referrer_free(r);
        return status;
    }
    r->path = realpath(name, NULL);
    r->fd = r->path != NULL ? open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (r->fd < 0 || fstat(r->fd, &r->is) != 0 || !S_ISREG(r->is.st_mode)) {
        int why = r->fd < 0 ? errno : EINVAL;
        cp_referrer_free(r);
        return tool_error_set(err, ESDM_EINVAL, "%s: only a file can be referred to: %s", name,
                              g_strerror(why));
    }
    uint8_t magic[4] = {0};
    r->bytes = (uint64_t) r->is.st_size;
    (void) !pread(r->fd, magic, sizeof magic, 0);
    r->classic = memcmp(magic, "CDF", 3) == 0;
    if (r->classic ? read_header(r) : (r->hdf5 = hdf5_open(r->path, r->fd)) != NULL) {
        *ret = r;
        return ESDM_OK;
    }
    cp_referrer_free(r);
    return tool_error_set(err, ESDM_ENOTSUP, "%s: neither netCDF classic nor HDF5 that can be read",
                          name);
}

/* Of a type whose elements are bytes of fixed meaning. */
static bool
is_plain(const cp_type *type)
{
    return !type->varies && type->kind != ESDM_CLASS_COMPOUND && type->kind != ESDM_CLASS_VLEN;
}

esdm_status
cp_refer(const cp_referrer *r, const cp_end *source, const cp_dataset *dataset, bool *ret_referred,
         const char **ret_why, esdm_error *err)
{
    if (source->ops != NULL && source->ops->refer != NULL)
        return source->ops->refer(source, dataset, ret_referred, ret_why, err);
    esdm_file_layout layout = {.location = r->path,
                               .bytes = (uint64_t) r->is.st_size,
                               .modified_ns = nanoseconds(r->is.st_mtim),
                               .changed_ns = nanoseconds(r->is.st_ctim),
                               .inode = (uint64_t) r->is.st_ino};
    if (r->remote != NULL) {
        layout.bytes = r->remote->state.bytes;
        layout.modified_ns = r->remote->state.modified_ns;
        layout.identity = r->remote->state.identity;
    }
    *ret_referred = false;
    *ret_why = "elements of that type are no plain bytes";
    if (!is_plain(dataset->type))
        return ESDM_OK;
    if (!r->classic)
        return refer_hdf5(r, dataset, &layout, ret_referred, ret_why, err);
    if (dataset->from.varid < 0 || (size_t) dataset->from.varid >= r->header.nvariables)
        return tool_error_set(err, ESDM_ECORRUPT, "%s: a variable without a header", r->path);
    *ret_referred = true;
    return refer_classic(r, dataset, &layout, err);
}

esdm_status
cp_referrer_check(const cp_referrer *r, esdm_error *err)
{
    struct stat is;
    if (r->other ||
        r->remote != NULL) /* readers find out: what is referred to was looked at before */
        return ESDM_OK;
    if (fstat(r->fd, &is) == 0 && is.st_size == r->is.st_size &&
        nanoseconds(is.st_mtim) == nanoseconds(r->is.st_mtim) &&
        nanoseconds(is.st_ctim) == nanoseconds(r->is.st_ctim))
        return ESDM_OK;
    return tool_error_set(err, ESDM_ECONFLICT, "%s: the file was changed meanwhile; try again",
                          r->path);
}
