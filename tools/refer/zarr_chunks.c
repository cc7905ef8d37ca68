/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Where the chunks of a Zarr array lie: files that are there, and the index of each shard.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/common.h"
#include "refer/zarr.h"

#define ABSENT UINT64_MAX

typedef struct walk {
    const zarr_array *array;
    const char *name; /* of the array, for messages */
    zarr_visit visit;
    void *user;
    uint64_t grid[ESDM_MAX_RANK]; /* objects along each axis */
    uint64_t at[ESDM_MAX_RANK];
    GArray *parts; /* esdm_file_part */
    uint64_t chunks;
    esdm_error *err;
} walk;

static int64_t
nanoseconds(struct timespec t)
{
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- one object ----------------------------------------------------------------------------- */

static uint64_t
little(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* What ties a chunk's bytes to their content. */
static void
look_at_checksum(const zarr_array *a, int fd, esdm_file_part *part)
{
    const char *last = a->nfilters > 0 ? a->filters[a->nfilters - 1].codec : "";
    uint64_t back = strcmp(last, "gzip") == 0 ? 8 : 4;
    uint8_t bytes[4];
    uint32_t kind = strcmp(last, "zlib") == 0         ? ESDM_FILE_CHECKSUM_ADLER32
                    : strcmp(last, "gzip") == 0       ? ESDM_FILE_CHECKSUM_GZIP
                    : strcmp(last, "crc32c") == 0     ? ESDM_FILE_CHECKSUM_TAIL
                    : strcmp(last, "fletcher32") == 0 ? ESDM_FILE_CHECKSUM_TAIL
                                                      : ESDM_FILE_CHECKSUM_NONE;
    if (kind == ESDM_FILE_CHECKSUM_NONE || part->bytes < back ||
        pread(fd, bytes, 4, (off_t) (part->position + part->bytes - back)) != 4)
        return;
    memcpy(&part->checksum, bytes, sizeof bytes);
    part->checksum_kind = kind;
}

/* Enters a chunk. @param first of its indices; false: it lies behind the edge of the array. */
static bool
enter(walk *w, const uint64_t *first, uint64_t position, uint64_t bytes)
{
    const zarr_array *a = w->array;
    esdm_file_part part = {.position = position, .bytes = bytes};
    for (uint32_t d = 0; d < a->rank; d++) {
        if (first[d] >= a->shape[d])
            return false;
        uint64_t left = a->shape[d] - first[d];
        part.offset[d] = first[d];
        part.size[d] = left < a->chunk[d] ? left : a->chunk[d];
    }
    if (a->kind == ZARR_BYTES)
        part.size[a->rank] = a->length;
    g_array_append_val(w->parts, part);
    return true;
}

static esdm_status
damaged(const walk *w, const char *path, const char *what)
{
    return tool_error_set(w->err, ESDM_ECORRUPT, "array '%s': %s: %s", w->name, path, what);
}

uint64_t
zarr_index_bytes(const zarr_array *a)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < a->rank; d++)
        count *= a->file[d] / a->chunk[d];
    return count * 16 + (a->index_has_sum ? 4 : 0);
}

/* The index: offset and length of each chunk, slowest axis first. */
static esdm_status
enter_index(walk *w, const char *path, const uint8_t *index, uint64_t count, uint64_t file_bytes)
{
    const zarr_array *a = w->array;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t position = little(index + 16 * i, 8), bytes = little(index + 16 * i + 8, 8);
        uint64_t first[ESDM_MAX_RANK] = {0}, rest = i;
        for (uint32_t d = a->rank; d-- > 0;) {
            uint64_t along = a->file[d] / a->chunk[d];
            first[d] = w->at[d] * a->file[d] + rest % along * a->chunk[d];
            rest /= along;
        }
        if (position == ABSENT && bytes == ABSENT)
            continue;
        if (position > file_bytes || bytes > file_bytes - position || bytes == 0)
            return damaged(w, path, "a chunk lies behind the end of the shard");
        (void) enter(w, first, position, bytes);
    }
    return ESDM_OK;
}

/* The index as it is stored. */
static esdm_status
take_index_bytes(walk *w, const char *path, const uint8_t *index, uint64_t file_bytes)
{
    static const esdm_file_filter sum = {.codec = "crc32c"};
    const zarr_array *a = w->array;
    size_t bytes = (size_t) zarr_index_bytes(a), raw_bytes = 0;
    uint64_t count = bytes / 16;
    if (!a->index_has_sum)
        return enter_index(w, path, index, count, file_bytes);
    void *raw = NULL;
    esdm_error why = {0};
    if (esdm_file_decode(&sum, 1, 1, index, bytes, (size_t) count * 16, &raw, &raw_bytes, &why) !=
        ESDM_OK)
        return damaged(w, path, "the index of the shard is damaged");
    esdm_status status = enter_index(w, path, raw, count, file_bytes);
    free(raw);
    return status;
}

static esdm_status
look_at_shard(walk *w, const char *path, int fd, uint64_t file_bytes)
{
    const zarr_array *a = w->array;
    size_t bytes = (size_t) zarr_index_bytes(a);
    if (bytes > file_bytes)
        return damaged(w, path, "it is shorter than the index of a shard");
    g_autofree uint8_t *index = g_malloc(bytes);
    off_t at = a->index_at_start ? 0 : (off_t) (file_bytes - bytes);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, index + done, bytes - done, at + (off_t) done);
        if (n <= 0)
            return damaged(w, path, "its index cannot be read");
        done += (size_t) n;
    }
    return take_index_bytes(w, path, index, file_bytes);
}

static esdm_status
look_at_chunk(walk *w, const char *path, uint64_t file_bytes)
{
    const zarr_array *a = w->array;
    uint64_t first[ESDM_MAX_RANK], plain = a->kind == ZARR_BYTES ? a->length : a->element_bytes;
    for (uint32_t d = 0; d < a->rank; d++) {
        first[d] = w->at[d] * a->file[d];
        plain *= a->chunk[d];
    }
    if (file_bytes == 0 || (a->nfilters == 0 && a->kind != ZARR_TEXT && file_bytes != plain))
        return damaged(w, path, "it has not as many bytes as a chunk");
    (void) enter(w, first, 0, file_bytes);
    return ESDM_OK;
}

static esdm_status
look_at_object(walk *w, const char *path)
{
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &is) != 0 || !S_ISREG(is.st_mode)) {
        int why = fd < 0 ? errno : EINVAL;
        if (fd >= 0)
            (void) close(fd);
        return damaged(w, path, g_strerror(why));
    }
    g_array_set_size(w->parts, 0);
    esdm_status status = w->array->sharded ? look_at_shard(w, path, fd, (uint64_t) is.st_size)
                                           : look_at_chunk(w, path, (uint64_t) is.st_size);
    for (guint i = 0; i < w->parts->len && status == ESDM_OK; i++)
        look_at_checksum(w->array, fd, &g_array_index(w->parts, esdm_file_part, i));
    (void) close(fd);
    zarr_object object = {.location = path,
                          .bytes = (uint64_t) is.st_size,
                          .modified_ns = nanoseconds(is.st_mtim),
                          .changed_ns = nanoseconds(is.st_ctim),
                          .inode = (uint64_t) is.st_ino,
                          .parts = (const esdm_file_part *) (const void *) w->parts->data,
                          .nparts = w->parts->len};
    w->chunks += w->parts->len;
    if (status == ESDM_OK && object.nparts > 0)
        status = w->visit(&object, w->user, w->err);
    return status;
}

/* Of a store on a web server. */
static esdm_status
take_remote(const char *url, const esdm_remote_state *state, const uint64_t *at,
            const uint8_t *index, void *user)
{
    walk *w = user;
    memcpy(w->at, at, sizeof w->at);
    g_array_set_size(w->parts, 0);
    esdm_status status = index != NULL ? take_index_bytes(w, url, index, state->bytes)
                                       : look_at_chunk(w, url, state->bytes);
    zarr_object object = {.location = url,
                          .bytes = state->bytes,
                          .modified_ns = state->modified_ns,
                          .identity = state->identity,
                          .parts = (const esdm_file_part *) (const void *) w->parts->data,
                          .nparts = w->parts->len};
    w->chunks += w->parts->len;
    return status == ESDM_OK && object.nparts > 0 ? w->visit(&object, w->user, w->err) : status;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* An index as it is written, without leading zeros. @return behind it; NULL: none. */
static const char *
take_index(const char *text, uint64_t below, uint64_t *ret)
{
    char *end = NULL;
    if (!g_ascii_isdigit(text[0]) || (text[0] == '0' && g_ascii_isdigit(text[1])))
        return NULL;
    errno = 0;
    *ret = g_ascii_strtoull(text, &end, 10);
    return errno == 0 && *ret < below ? end : NULL;
}

/* "0.12.3" */
static bool
take_all(walk *w, const char *name)
{
    for (uint32_t d = 0; d < w->array->rank; d++) {
        if (d > 0 && *name++ != w->array->separator)
            return false;
        name = take_index(name, w->grid[d], &w->at[d]);
        if (name == NULL)
            return false;
    }
    return *name == '\0';
}

static esdm_status
list(walk *w, const char *folder, uint32_t axis)
{
    const zarr_array *a = w->array;
    DIR *dir = opendir(folder);
    esdm_status status = ESDM_OK;
    if (dir == NULL)
        return errno == ENOENT ? ESDM_OK : damaged(w, folder, g_strerror(errno));
    for (struct dirent *entry = readdir(dir); entry != NULL && status == ESDM_OK;
         entry = readdir(dir)) {
        const char *name = entry->d_name;
        g_autofree char *path = g_build_filename(folder, name, NULL);
        if (a->separator == '.') {
            bool prefix = a->flat || g_str_has_prefix(name, "c.");
            if (prefix && take_all(w, a->flat ? name : name + 2))
                status = look_at_object(w, path);
            continue;
        }
        const char *end = take_index(name, w->grid[axis], &w->at[axis]);
        if (end == NULL || *end != '\0')
            continue;
        status = axis + 1 == a->rank ? look_at_object(w, path) : list(w, path, axis + 1);
    }
    (void) closedir(dir);
    return status;
}

esdm_status
zarr_chunks(const zarr_store *store, const zarr_node *node, const zarr_array *array,
            zarr_visit visit, void *user, uint64_t *ret_chunks, esdm_error *err)
{
    walk w = {.array = array, .name = node->path, .visit = visit, .user = user, .err = err};
    g_autofree char *folder = g_build_filename(store->location, node->path, NULL);
    g_autofree char *below = g_build_filename(folder, array->flat ? "." : "c", NULL);
    esdm_status status = ESDM_OK;
    w.parts = g_array_new(FALSE, FALSE, sizeof(esdm_file_part));
    for (uint32_t d = 0; d < array->rank; d++)
        w.grid[d] = array->shape[d] / array->file[d] + (array->shape[d] % array->file[d] != 0);
    if (esdm_location_is_remote(store->location)) {
        status = zarr_remote_chunks(store, node, array, w.grid, take_remote, &w, err);
    } else if (array->rank == 0) {
        g_autofree char *only = g_build_filename(folder, array->flat ? "0" : "c", NULL);
        if (g_file_test(only, G_FILE_TEST_EXISTS))
            status = look_at_object(&w, only);
    } else {
        status = list(&w, array->separator == '/' && !array->flat ? below : folder, 0);
    }
    g_array_unref(w.parts);
    *ret_chunks = w.chunks;
    return status;
}
