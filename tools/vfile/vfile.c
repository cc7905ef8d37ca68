/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Opening, closing and reading virtual files. */

#include "vfile/vfile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfile/cache.h"

/* Of the parts of esdm-cp: files are made without filters. */
cp_options cp_wants = {.deflate = CP_LEVEL_NONE, .zstd = CP_LEVEL_NONE};

/* libnetcdf and HDF5 serve one thread at a time. */
static pthread_mutex_t headers = PTHREAD_MUTEX_INITIALIZER;

static const char *const formats[] = {"netcdf4", "classic", "64bit-offset", "cdf5"};

bool
esdm_vfile_format_of(const char *text, esdm_vfile_format *ret_format)
{
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
        if (g_str_equal(text, formats[i])) {
            *ret_format = (esdm_vfile_format) i;
            return true;
        }
    }
    return false;
}

vf_dataset
vf_dataset_of(const cp_dataset *from, bool swap)
{
    vf_dataset d = {.dataset = from->from.dataset,
                    .rank = from->rank,
                    .swap = swap,
                    .clear = from->type->kind == ESDM_CLASS_COMPOUND,
                    .bytes = from->type->bytes,
                    .type = esdm_dataset_type(from->from.dataset),
                    .fill = esdm_dataset_fill(from->from.dataset, NULL)};
    for (uint32_t i = 0; i < d.rank; i++)
        d.shape[i] = d.box[i] = from->dimensions[i]->length;
    return d;
}

uint32_t
vf_dataset_add(esdm_vfile *file, const cp_dataset *from, bool swap)
{
    vf_dataset d = vf_dataset_of(from, swap);
    g_array_append_val(file->datasets, d);
    return file->datasets->len - 1;
}

/* ---- opening ------------------------------------------------------------------------------ */

/* Puts the container's name for the path of the header, which nobody typed. */
static void
name_container(const esdm_vfile *file, const char *path, esdm_error *err)
{
    g_autofree char *name = g_strdup_printf("%s as %s", file->end.name, formats[file->format]);
    g_autoptr(GString) text = g_string_new(err->message);
    g_string_replace(text, path, name, 0);
    g_strlcpy(err->message, text->str, sizeof err->message);
}

static esdm_status
make_header(esdm_vfile *file, const char *path, esdm_error *err)
{
    g_autofree char *id = g_uuid_string_random();
    g_autofree char *made = g_strdup_printf("%s.%s", path, id);
    esdm_status status = vf_make(file, made, err);
    if (status != ESDM_OK)
        name_container(file, made, err);
    if (status == ESDM_OK)
        status = vf_cache_keep(made, path, err);
    if (status != ESDM_OK)
        (void) unlink(made);
    return status;
}

/* Opens the sparse file, and asks where values lie in it. */
static esdm_status
open_header(esdm_vfile *file, const char *path, esdm_error *err)
{
    struct stat st;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file->fd < 0 || fstat(file->fd, &st) != 0)
        return tool_error_set(err, errno == ENOENT ? ESDM_ENOENT : ESDM_EIO,
                              "cannot open the header '%s': %s", path, g_strerror(errno));
    file->size = (uint64_t) st.st_size;
    return file->format == ESDM_VFILE_NETCDF4 ? vf_addresses(file, path, err)
                                              : vf_classic_addresses(file, err);
}

static void
forget_header(esdm_vfile *file)
{
    if (file->fd >= 0)
        (void) close(file->fd);
    file->fd = -1;
    g_array_set_size(file->datasets, 0);
    g_array_set_size(file->regions, 0);
    g_array_set_size(file->records.parts, 0);
    file->records = (vf_records){.parts = file->records.parts};
}

typedef struct timed {
    uint64_t snapshot;
    uint64_t time_ns;
} timed;

static bool
note_time(const esdm_snapshot_info *info, void *user)
{
    timed *t = user;
    t->time_ns = info->snapshot == t->snapshot ? info->time_ns : t->time_ns;
    return t->time_ns == 0;
}

/* When the snapshot was committed. 0: that of a query, which is no snapshot, or not known. */
static uint64_t
time_of_commit(const esdm_vfile *file)
{
    const char *name = esdm_container_name(file->end.container);
    timed t = {.snapshot = esdm_vfile_snapshot(file)};
    esdm_container_info info;
    if (t.snapshot == 0)
        return 0;
    if (esdm_container_stat(file->end.session, name, &info, NULL) == ESDM_OK &&
        info.snapshot == t.snapshot)
        return info.modified_ns;
    return esdm_container_snapshots(file->end.session, name, note_time, &t, NULL) == ESDM_OK
               ? t.time_ns
               : 0;
}

/* What tells the header from all others of a format. The copy of a site has containers of the same
 * UUID, and so has a catalogue that was put back from a backup: what both commit from then on has
 * the same numbers, but not the same times. */
static char *
name_header(const esdm_vfile *file)
{
    if (file->time_ns == 0)
        return g_uuid_string_random(); /* for this opening alone */
    return g_strdup_printf("%s-%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT, esdm_vfile_uuid(file),
                           (guint64) esdm_vfile_snapshot(file), (guint64) file->time_ns);
}

static esdm_status
find_header(esdm_vfile *file, esdm_error *err)
{
    esdm_error why = {0};
    /* Attributes tell of the accuracy with which a name asks to be read. */
    const char *asked = strchr(file->end.name, '?');
    g_autofree char *sum =
        asked != NULL ? g_compute_checksum_for_string(G_CHECKSUM_SHA256, asked, -1) : NULL;
    g_autofree char *own = name_header(file);
    g_autofree char *name = g_strdup_printf("%s%s%.16s-%s.vfile", own, sum != NULL ? "-" : "",
                                            sum != NULL ? sum : "", formats[file->format]);
    g_autofree char *path = vf_cache_path(name, err);
    if (path == NULL)
        return ESDM_EACCES;
    if (open_header(file, path, &why) == ESDM_OK)
        return ESDM_OK;
    /* There is none, or it is damaged. */
    forget_header(file);
    esdm_status status = make_header(file, path, err);
    if (status == ESDM_OK)
        status = open_header(file, path, err);
    vf_cache_trim();
    return status;
}

esdm_status
esdm_vfile_open(esdm_session *session, const char *name, uint64_t snapshot,
                esdm_vfile_format format, esdm_vfile **ret_file, esdm_error *err)
{
    esdm_vfile *file = g_new0(esdm_vfile, 1);
    file->fd = -1;
    file->format = format;
    file->end = (cp_end){.is_container = true,
                         .name = g_strdup(name),
                         .session = session,
                         .snapshot = snapshot,
                         .ncid = -1};
    file->datasets = g_array_new(false, true, sizeof(vf_dataset));
    file->regions = g_array_new(false, true, sizeof(vf_region));
    file->records.parts = g_array_new(false, true, sizeof(vf_region));
    esdm_status status = cp_container_open(&file->end, &file->model, err);
    if (status == ESDM_OK) {
        vf_prepare(file);
        file->time_ns = time_of_commit(file);
        (void) pthread_mutex_lock(&headers);
        status = find_header(file, err);
        (void) pthread_mutex_unlock(&headers);
    }
    if (status != ESDM_OK) {
        esdm_vfile_close(file);
        return status;
    }
    *ret_file = file;
    return ESDM_OK;
}

void
esdm_vfile_close(esdm_vfile *file)
{
    if (file == NULL)
        return;
    forget_header(file);
    cp_model_free(file->model);
    cp_close(&file->end);
    g_array_unref(file->datasets);
    g_array_unref(file->regions);
    g_array_unref(file->records.parts);
    g_free(file->end.name);
    g_free(file);
}

uint64_t
esdm_vfile_size(const esdm_vfile *file)
{
    return file->size;
}

uint64_t
esdm_vfile_snapshot(const esdm_vfile *file)
{
    return esdm_container_snapshot(file->end.container);
}

uint64_t
esdm_vfile_time(const esdm_vfile *file)
{
    return file->time_ns;
}

const char *
esdm_vfile_uuid(const esdm_vfile *file)
{
    return esdm_container_uuid(file->end.container);
}

esdm_container *
esdm_vfile_container(const esdm_vfile *file)
{
    return file->end.container;
}

/* ---- reading ------------------------------------------------------------------------------ */

/* The number of regions that begin at or before a byte. */
static guint
regions_until(const GArray *regions, uint64_t at)
{
    guint low = 0, high = regions->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(regions, vf_region, middle).address <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Which region a byte is in. Else false, and where the next one begins. */
static bool
find_region(const GArray *regions, uint64_t at, vf_region *ret, uint64_t *ret_next)
{
    guint count = regions_until(regions, at);
    if (count > 0) {
        *ret = g_array_index(regions, vf_region, count - 1);
        if (at - ret->address < ret->bytes)
            return true;
    }
    *ret_next =
        count < regions->len ? g_array_index(regions, vf_region, count).address : UINT64_MAX;
    return false;
}

/* The same among the records. */
static bool
find_record(const vf_records *r, uint64_t at, vf_region *ret, uint64_t *ret_next)
{
    uint64_t record = (at - r->begin) / r->bytes, shift = record * r->bytes;
    if (record >= r->count)
        return *ret_next = UINT64_MAX, false;
    bool found = find_region(r->parts, at - shift, ret, ret_next);
    if (found) {
        ret->address += shift;
        ret->number = record;
    } else {
        *ret_next = *ret_next == UINT64_MAX ? r->begin + shift + r->bytes : *ret_next + shift;
    }
    return found;
}

static bool
find(const esdm_vfile *file, uint64_t at, vf_region *ret, uint64_t *ret_next)
{
    const vf_records *r = &file->records;
    if (r->count > 0 && at >= r->begin)
        return find_record(r, at, ret, ret_next);
    bool found = find_region(file->regions, at, ret, ret_next);
    if (!found && r->count > 0)
        *ret_next = MIN(*ret_next, r->begin);
    return found;
}

static esdm_status
read_header(const esdm_vfile *file, uint64_t at, size_t bytes, unsigned char *to, esdm_error *err)
{
    while (bytes > 0) {
        ssize_t got = pread(file->fd, to, bytes, (off_t) at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tool_error_set(err, ESDM_EIO, "%s as a file: cannot read its header: %s",
                                  file->end.name, got < 0 ? g_strerror(errno) : "it is too short");
        to += got;
        at += (uint64_t) got;
        bytes -= (size_t) got;
    }
    return ESDM_OK;
}

esdm_status
esdm_vfile_pread(esdm_vfile *file, void *buffer, size_t bytes, uint64_t offset, size_t *ret_read,
                 esdm_error *err)
{
    unsigned char *to = buffer;
    esdm_status status = ESDM_OK;
    size_t total = offset >= file->size ? 0 : (size_t) MIN(bytes, file->size - offset);
    for (size_t done = 0; done < total && status == ESDM_OK;) {
        vf_region region;
        uint64_t at = offset + done, next = 0;
        size_t piece = total - done;
        if (find(file, at, &region, &next)) {
            piece = (size_t) MIN(piece, region.address + region.bytes - at);
            status = vf_render(file, &region, at - region.address, piece, to + done, err);
        } else {
            piece = (size_t) MIN(piece, next - at);
            status = read_header(file, at, piece, to + done, err);
        }
        done += piece;
    }
    if (status == ESDM_OK)
        *ret_read = total;
    return status;
}
