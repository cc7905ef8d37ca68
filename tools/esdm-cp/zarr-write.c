/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Zarr stores as the target of a copy: a folder with metadata and one file for each chunk. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "esdm-cp/zarr.h"
#include "zarr/zarr.h"

/* A slab holds whole chunks. */
#define MOST_CHUNK     CP_SLAB_BYTES
#define USUAL_LEVEL    3
#define MOST_ENCODED   UINT32_MAX /* of texts, whose lengths have 32 bits */
#define TEXTS_AT_LEAST 4u

typedef struct writer {
    zarr_style style;
    char *codecs; /* of the style; owned */
    int level;    /* of zstd; 0: not compressed */
    const cp_model *model;
    char *folder;       /* of the chunk that was written last; owned */
    unsigned char *raw; /* a chunk; owned */
    size_t raw_bytes;
    GByteArray *texts;
    unsigned char *encoded;
    size_t encoded_bytes;
} writer;

static void
free_writer(void *state)
{
    writer *w = state;
    g_free(w->codecs);
    g_free(w->folder);
    free(w->raw);
    free(w->encoded);
    g_byte_array_unref(w->texts);
    g_free(w);
}

/* ---- files -------------------------------------------------------------------------------- */

static esdm_status
make_folder(const char *path, esdm_error *err)
{
    if (g_mkdir_with_parents(path, 0777) == 0)
        return ESDM_OK;
    return tool_error_set(err, errno == ENOSPC || errno == EDQUOT ? ESDM_ENOSPC : ESDM_EIO,
                          "cannot make the folder '%s': %s", path, g_strerror(errno));
}

static esdm_status
write_file(const char *path, const void *bytes, size_t count, esdm_error *err)
{
    const char *at = bytes;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool good = fd >= 0;
    while (good && count > 0) {
        ssize_t n = write(fd, at, count);
        if (n < 0 && errno == EINTR)
            continue;
        good = n > 0;
        at += MAX(n, 0);
        count -= (size_t) MAX(n, 0);
    }
    int problem = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        problem = errno;
    }
    if (good)
        return ESDM_OK;
    return tool_error_set(err, problem == ENOSPC || problem == EDQUOT ? ESDM_ENOSPC : ESDM_EIO,
                          "cannot write '%s': %s", path, g_strerror(problem));
}

static esdm_status
write_json(const char *folder, const char *name, GString *json, esdm_error *err)
{
    g_autofree char *path = g_build_filename(folder, name, NULL);
    esdm_status status = write_file(path, json->str, json->len, err);
    g_string_free(json, true);
    return status;
}

/* ---- structure ---------------------------------------------------------------------------- */

/* Names become names of files and folders. */
static esdm_status
check_name(const char *name, const char *path, esdm_error *err)
{
    static const char *const taken[] = {".",       "..",      "zarr.json", ".zgroup",
                                        ".zarray", ".zattrs", ".zmetadata"};
    for (size_t i = 0; i < G_N_ELEMENTS(taken); i++) {
        if (g_str_equal(name, taken[i]))
            return tool_error_set(err, ESDM_ENOTSUP, "%s: nothing can be called so in a Zarr store",
                                  path);
    }
    return ESDM_OK;
}

static esdm_status
check_attributes(const GPtrArray *attributes, const char *path, esdm_error *err)
{
    for (guint i = 0; i < attributes->len; i++) {
        const cp_attribute *a = g_ptr_array_index(attributes, i);
        if (a->type->path != NULL)
            return tool_error_set(err, ESDM_ENOTSUP,
                                  "attribute %s:%s has type %s: Zarr has no user-defined types",
                                  path, a->name, a->type->path);
    }
    return ESDM_OK;
}

static esdm_status
check_dataset(const cp_dataset *d, esdm_error *err)
{
    esdm_status status = check_name(d->name, d->path, err);
    if (status == ESDM_OK && !zarr_has_type(d->type))
        return tool_error_set(err, ESDM_ENOTSUP,
                              "dataset %s has type %s: Zarr has no user-defined types", d->path,
                              d->type->path);
    return status == ESDM_OK ? check_attributes(d->attributes, d->path, err) : status;
}

static esdm_status
put_dataset(const writer *w, const char *folder, cp_dataset *d, esdm_error *err)
{
    g_autofree char *path = g_build_filename(folder, d->path, NULL);
    GString *json = g_string_new(NULL);
    uint64_t chunk[ESDM_MAX_RANK];
    zarr_array_json(d, &w->style, json);
    esdm_status status = make_folder(path, err);
    if (status == ESDM_OK)
        status = write_json(path, w->style.format == 2 ? ".zarray" : "zarr.json",
                            g_steal_pointer(&json), err);
    if (json != NULL)
        g_string_free(json, true);
    if (status == ESDM_OK && w->style.format == 2) {
        json = g_string_new(NULL);
        zarr_zattrs_json(d->attributes, d, json);
        status = write_json(path, ".zattrs", json, err);
    }
    /* Slabs are cut along chunks. */
    zarr_chunk(d, w->style.most, chunk);
    g_free(d->chunk);
    d->chunk = d->rank > 0 ? g_memdup2(chunk, d->rank * sizeof *chunk) : NULL;
    return status;
}

/* The metadata of the root comes last: what has none is no store. */
static esdm_status
put_group_metadata(const writer *w, const char *path, const cp_group *group, esdm_error *err)
{
    GString *json = g_string_new(NULL);
    if (w->style.format == 3) {
        zarr_group_json(group, NULL, json);
        return write_json(path, "zarr.json", json, err);
    }
    g_string_append(json, "{\"zarr_format\":2}");
    esdm_status status = write_json(path, ".zgroup", json, err);
    if (status != ESDM_OK)
        return status;
    json = g_string_new(NULL);
    zarr_zattrs_json(group->attributes, NULL, json);
    return write_json(path, ".zattrs", json, err);
}

static esdm_status
put_group(const writer *w, const char *folder, cp_group *group, esdm_error *err)
{
    g_autofree char *path = g_build_filename(folder, group->path, NULL);
    bool is_root = group->path[0] == '\0';
    esdm_status status = check_attributes(group->attributes, group->path, err);
    if (status == ESDM_OK && !is_root)
        status = check_name(group->name, group->path, err);
    if (status == ESDM_OK)
        status = make_folder(path, err);
    if (status == ESDM_OK && !is_root)
        status = put_group_metadata(w, path, group, err);
    for (guint i = 0; i < group->datasets->len && status == ESDM_OK; i++) {
        status = check_dataset(g_ptr_array_index(group->datasets, i), err);
        if (status == ESDM_OK)
            status = put_dataset(w, folder, g_ptr_array_index(group->datasets, i), err);
    }
    for (guint i = 0; i < group->groups->len && status == ESDM_OK; i++)
        status = put_group(w, folder, g_ptr_array_index(group->groups, i), err);
    return status;
}

/* ---- chunks ------------------------------------------------------------------------------- */

static void
swap_elements(unsigned char *at, size_t bytes, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++, at += bytes) {
        for (size_t k = 0; k < bytes / 2; k++) {
            unsigned char byte = at[k];
            at[k] = at[bytes - 1 - k];
            at[bytes - 1 - k] = byte;
        }
    }
}

/* The elements of a chunk out of the slab, behind the ends of dimensions the fill value. Texts are
 * borrowed. @param first of the chunk in the slab. */
static void
gather(const cp_dataset *d, const cp_slab *slab, const uint64_t *first, const unsigned char *from,
       unsigned char *to)
{
    size_t bytes = d->type->bytes;
    const void *fill = esdm_dataset_fill(d->from.dataset, NULL);
    uint64_t index[ESDM_MAX_RANK] = {0}, rows = 1, row = d->rank > 0 ? d->chunk[d->rank - 1] : 1;
    for (uint32_t i = 0; i + 1 < d->rank; i++)
        rows *= d->chunk[i];
    for (uint64_t r = 0; r < rows; r++, to += row * bytes) {
        uint64_t place = 0, inside = d->rank > 0 ? 0 : 1;
        bool here = true;
        for (uint32_t i = 0; i < d->rank; i++) {
            here &= first[i] + index[i] < slab->size[i];
            place = place * slab->size[i] + first[i] + index[i];
        }
        if (d->rank > 0 && here)
            inside = MIN(row, slab->size[d->rank - 1] - first[d->rank - 1]);
        if (inside > 0)
            memcpy(to, from + place * bytes, inside * bytes);
        for (uint64_t i = inside; i < row; i++)
            memcpy(to + i * bytes, fill, bytes);
        for (uint32_t i = d->rank > 0 ? d->rank - 1 : 0; i-- > 0;) { /* the next row */
            if (++index[i] < d->chunk[i])
                break;
            index[i] = 0;
        }
    }
}

static void
put_u32(GByteArray *to, size_t value)
{
    guint32 le = GUINT32_TO_LE((guint32) value);
    g_byte_array_append(to, (const guint8 *) &le, sizeof le);
}

/* "vlen-utf8". */
static esdm_status
pack_texts(writer *w, const cp_dataset *d, uint64_t count, esdm_error *err)
{
    char *const *texts = (char *const *) (void *) w->raw;
    g_byte_array_set_size(w->texts, 0);
    put_u32(w->texts, count);
    for (uint64_t i = 0; i < count; i++) {
        const char *text = texts[i] != NULL ? texts[i] : "";
        size_t bytes = strlen(text);
        if (!g_utf8_validate(text, (gssize) bytes, NULL))
            return tool_error_set(err, ESDM_ENOTSUP, "dataset %s has texts that are not UTF-8",
                                  d->path);
        if (bytes > MOST_ENCODED - w->texts->len - TEXTS_AT_LEAST)
            return tool_error_set(err, ESDM_ENOTSUP,
                                  "dataset %s: the texts of a chunk are too long", d->path);
        put_u32(w->texts, bytes);
        g_byte_array_append(w->texts, (const guint8 *) text, (guint) bytes);
    }
    return ESDM_OK;
}

static esdm_status
need_room(unsigned char **buffer, size_t *has, size_t bytes, esdm_error *err)
{
    if (*has >= bytes)
        return ESDM_OK;
    free(*buffer);
    *buffer = malloc(bytes);
    *has = *buffer != NULL ? bytes : 0;
    return *buffer != NULL ? ESDM_OK
                           : tool_error_set(err, ESDM_ENOMEM, "no memory for %zu bytes", bytes);
}

static esdm_status
store_chunk(writer *w, const char *path, const void *bytes, size_t count, esdm_error *err)
{
    if (w->level == 0)
        return write_file(path, bytes, count, err);
    size_t most = ZSTD_compressBound(count);
    esdm_status status = need_room(&w->encoded, &w->encoded_bytes, most, err);
    if (status != ESDM_OK)
        return status;
    size_t made = ZSTD_compress(w->encoded, most, bytes, count, w->level);
    if (ZSTD_isError(made))
        return tool_error_set(err, ESDM_EIO, "%s: zstd: %s", path, ZSTD_getErrorName(made));
    return write_file(path, w->encoded, made, err);
}

/* "…/c/1/0", or "…/1.0". */
static char *
chunk_path(const writer *w, const char *store, const cp_dataset *d, const uint64_t *number)
{
    GString *path = g_string_new(store);
    bool old = w->style.format == 2;
    g_string_append_printf(path, "%s/%s", d->path, old ? "" : "c");
    for (uint32_t i = 0; i < d->rank; i++)
        g_string_append_printf(path, "%s%" G_GUINT64_FORMAT,
                               !old    ? "/"
                               : i > 0 ? "."
                                       : "",
                               (guint64) number[i]);
    if (old && d->rank == 0)
        g_string_append_c(path, '0');
    return g_string_free(path, false);
}

static esdm_status
write_chunk(writer *w, const char *store, const cp_dataset *d, const cp_slab *slab,
            const uint64_t *first, const void *buffer, esdm_error *err)
{
    uint64_t number[ESDM_MAX_RANK], count = 1;
    for (uint32_t i = 0; i < d->rank; i++) {
        number[i] = (slab->offset[i] + first[i]) / d->chunk[i];
        count *= d->chunk[i];
    }
    size_t bytes = (size_t) (count * d->type->bytes);
    esdm_status status = need_room(&w->raw, &w->raw_bytes, bytes, err);
    if (status != ESDM_OK)
        return status;
    gather(d, slab, first, buffer, w->raw);
    const void *from = w->raw;
    if (d->type->atomic == ESDM_TYPE_STRING) {
        status = pack_texts(w, d, count, err);
        from = w->texts->data;
        bytes = w->texts->len;
    } else if (G_BYTE_ORDER != G_LITTLE_ENDIAN) {
        swap_elements(w->raw, d->type->bytes, count);
    }
    g_autofree char *path = chunk_path(w, store, d, number);
    g_autofree char *folder = g_path_get_dirname(path);
    if (status == ESDM_OK && g_strcmp0(folder, w->folder) != 0) {
        status = make_folder(folder, err);
        g_free(w->folder);
        w->folder = g_strdup(folder);
    }
    return status == ESDM_OK ? store_chunk(w, path, from, bytes, err) : status;
}

static esdm_status
write_slab(const cp_end *end, const cp_dataset *d, const cp_slab *slab, const void *buffer,
           esdm_error *err)
{
    uint64_t first[ESDM_MAX_RANK] = {0};
    for (;;) {
        esdm_status status = write_chunk(end->state, end->name, d, slab, first, buffer, err);
        if (status != ESDM_OK)
            return status;
        uint32_t i = d->rank;
        while (i-- > 0) {
            first[i] += d->chunk[i];
            if (first[i] < slab->size[i])
                break;
            first[i] = 0;
        }
        if (i == UINT32_MAX) /* all of them began anew */
            return ESDM_OK;
    }
}

/* ---- beginning and end -------------------------------------------------------------------- */

static esdm_status
complete(cp_end *end, esdm_error *err)
{
    const writer *w = end->state;
    GString *json = g_string_new(NULL);
    zarr_consolidated_json(w->model, &w->style, json);
    if (w->style.format == 2) {
        esdm_status status = write_json(end->name, ".zmetadata", json, err);
        return status == ESDM_OK ? put_group_metadata(w, end->name, w->model->root, err) : status;
    }
    GString *root = g_string_new(NULL);
    zarr_group_json(w->model->root, json->str, root);
    g_string_free(json, true);
    return write_json(end->name, "zarr.json", root, err);
}

static const cp_source_ops ops = {.write = write_slab, .complete = complete, .close = free_writer};

esdm_status
cp_zarr_create(cp_end *end, cp_model *model, int format, esdm_error *err)
{
    writer *w = g_new0(writer, 1);
    w->level = cp_wants.zstd == CP_LEVEL_NONE ? USUAL_LEVEL : cp_wants.zstd;
    if (w->level == 0)
        w->codecs = g_strdup(format == 2 ? "null" : "");
    else
        w->codecs =
            g_strdup_printf(format == 2 ? "{\"id\":\"zstd\",\"level\":%d}"
                                        : ",{\"name\":\"zstd\",\"configuration\":{\"level\":%d,"
                                          "\"checksum\":false}}",
                            w->level);
    w->style = (zarr_style){.format = format, .most = MOST_CHUNK, .codecs = w->codecs};
    w->model = model;
    w->texts = g_byte_array_new();
    end->state = w;
    end->ops = &ops;
    return put_group(w, end->name, model->root, err);
}
