/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Values of Zarr arrays, read chunk by chunk: texts, which cannot stay where they are, copies, and
 * what references are compared with. */

#include "esdm-cp/zarr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "refer/remote.h"

/* A chunk, and what of it is wanted. */
typedef struct cut {
    const zarr_array *array;
    const char *path;
    uint32_t rank; /* of the dataset */
    uint64_t chunk[ESDM_MAX_RANK];
    uint64_t stride[ESDM_MAX_RANK]; /* elements, in the chunk */
    uint64_t from[ESDM_MAX_RANK];   /* indices of the dataset */
    uint64_t count[ESDM_MAX_RANK];
    const cp_slab *slab;
    const esdm_file_part *part;
    esdm_error *err;
} cut;

static esdm_status
damaged(const cut *c, const char *what)
{
    return tool_error_set(c->err, ESDM_ECORRUPT, "%s: %s", c->path, what);
}

/* ---- chunks --------------------------------------------------------------------------------- */

typedef struct listing {
    cp_zarr *zarr;
    GArray *chunks;
} listing;

static esdm_status
note(const zarr_object *object, void *user, esdm_error *err)
{
    listing *l = user;
    (void) err;
    const char *location = g_string_chunk_insert(l->zarr->locations, object->location);
    for (size_t i = 0; i < object->nparts; i++) {
        cp_zarr_chunk chunk = {.location = location, .part = object->parts[i]};
        g_array_append_val(l->chunks, chunk);
    }
    return ESDM_OK;
}

static esdm_status
list_chunks(cp_zarr *zarr, cp_zarr_array *a, esdm_error *err)
{
    uint64_t chunks = 0;
    if (a->chunks != NULL)
        return ESDM_OK;
    listing l = {.zarr = zarr, .chunks = g_array_new(FALSE, FALSE, sizeof(cp_zarr_chunk))};
    esdm_status status = zarr_chunks(zarr->store, a->node, &a->array, note, &l, &chunks, err);
    if (status == ESDM_OK)
        a->chunks = l.chunks;
    else
        g_array_unref(l.chunks);
    return status;
}

static esdm_status
load(const cut *c, uint8_t **ret_stored)
{
    g_autofree uint8_t *stored = g_malloc(c->part->bytes + 1);
    if (esdm_location_is_remote(c->path)) {
        esdm_remote_state state;
        esdm_status status = esdm_remote_stat(remote_session(), c->path, &state, c->err);
        if (status == ESDM_OK)
            status = esdm_remote_read(remote_session(), c->path, &state, c->part->position, stored,
                                      c->part->bytes, c->err);
        if (status == ESDM_OK)
            *ret_stored = g_steal_pointer(&stored);
        return status;
    }
    int fd = open(c->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return damaged(c, g_strerror(errno));
    for (uint64_t done = 0; done < c->part->bytes;) {
        ssize_t n =
            pread(fd, stored + done, c->part->bytes - done, (off_t) (c->part->position + done));
        if (n <= 0) {
            (void) close(fd);
            return damaged(c, n < 0 ? g_strerror(errno) : "it is cut off");
        }
        done += (uint64_t) n;
    }
    (void) close(fd);
    *ret_stored = g_steal_pointer(&stored);
    return ESDM_OK;
}

/* ---- elements ------------------------------------------------------------------------------- */

/* One element. @param index in the chunk as it is stored. */
typedef void (*take)(const cut *c, const uint8_t *raw, uint64_t index, uint8_t *to);

static void
take_number(const cut *c, const uint8_t *raw, uint64_t index, uint8_t *to)
{
    size_t bytes = c->array->element_bytes;
    const uint8_t *from = raw + index * bytes;
    for (size_t i = 0; i < bytes; i++)
        to[i] = from[c->array->big_endian ? bytes - 1 - i : i];
}

static void
put_text(uint8_t *to, char *text)
{
    memcpy(to, &text, sizeof text);
}

static void
take_utf32(const cut *c, const uint8_t *raw, uint64_t index, uint8_t *to)
{
    g_autofree gunichar *characters = g_new0(gunichar, c->array->length + 1);
    const uint8_t *from = raw + index * c->array->element_bytes;
    for (uint32_t i = 0; i < c->array->length; i++, from += 4)
        characters[i] = c->array->big_endian ? (gunichar) from[0] << 24 | (gunichar) from[1] << 16 |
                                                   (gunichar) from[2] << 8 | from[3]
                                             : (gunichar) from[3] << 24 | (gunichar) from[2] << 16 |
                                                   (gunichar) from[1] << 8 | from[0];
    char *text = g_ucs4_to_utf8(characters, -1, NULL, NULL, NULL);
    put_text(to, text != NULL ? text : g_strdup(""));
}

/* Texts of any length were parted before: raw has where each begins, and its bytes. */
typedef struct piece {
    const char *text;
    uint32_t bytes;
} piece;

static void
take_piece(const cut *c, const uint8_t *raw, uint64_t index, uint8_t *to)
{
    piece p;
    (void) c;
    memcpy(&p, raw + index * sizeof p, sizeof p);
    put_text(to, g_strndup(p.text, p.bytes));
}

/* Calls for all wanted elements of the chunk. */
static void
take_all(const cut *c, take one, const uint8_t *raw, size_t bytes, uint8_t *buffer)
{
    uint64_t at[ESDM_MAX_RANK] = {0};
    for (;;) {
        uint64_t index = 0, place = 0;
        for (uint32_t d = 0; d < c->rank; d++) {
            uint64_t i = c->from[d] + at[d];
            index += (i - c->part->offset[d]) * c->stride[d];
            place = place * c->slab->size[d] + (i - c->slab->offset[d]);
        }
        one(c, raw, index, buffer + place * bytes);
        uint32_t d = c->rank;
        while (d > 0 && ++at[d - 1] == c->count[d - 1])
            at[--d] = 0;
        if (d == 0)
            return;
    }
}

/* vlen-utf8: their number, then each with its length. */
static esdm_status
part_texts(const cut *c, const uint8_t *raw, size_t bytes, uint64_t elements, piece **ret)
{
    uint64_t at = 4;
    uint32_t n;
    if (bytes < 4 || (memcpy(&n, raw, 4), n != elements) || n > bytes / 4)
        return damaged(c, "it has not as many texts as a chunk");
    g_autofree piece *pieces = g_new0(piece, n + 1);
    for (uint32_t i = 0; i < n; i++) {
        if (bytes - at < 4)
            return damaged(c, "its texts are cut off");
        memcpy(&pieces[i].bytes, raw + at, 4);
        at += 4;
        if (pieces[i].bytes > bytes - at)
            return damaged(c, "its texts are cut off");
        pieces[i].text = (const char *) raw + at;
        at += pieces[i].bytes;
    }
    *ret = g_steal_pointer(&pieces);
    return ESDM_OK;
}

static esdm_status
take_chunk(const cut *c, size_t bytes, uint8_t *buffer)
{
    const zarr_array *a = c->array;
    g_autofree uint8_t *stored = NULL;
    g_autofree piece *pieces = NULL;
    void *raw = NULL;
    size_t raw_bytes = a->element_bytes, elements = 1;
    for (uint32_t d = 0; d < c->rank; d++)
        elements *= c->chunk[d];
    esdm_status status = load(c, &stored);
    if (status == ESDM_OK)
        status = esdm_file_decode(a->filters, a->nfilters, a->element_bytes, stored, c->part->bytes,
                                  a->kind == ZARR_TEXT ? 0 : elements * raw_bytes, &raw, &raw_bytes,
                                  c->err);
    if (status == ESDM_OK && a->kind == ZARR_TEXT)
        status = part_texts(c, raw, raw_bytes, elements, &pieces);
    if (status == ESDM_OK)
        take_all(c,
                 a->kind == ZARR_TEXT    ? take_piece
                 : a->kind == ZARR_UTF32 ? take_utf32
                                         : take_number,
                 a->kind == ZARR_TEXT ? (const uint8_t *) pieces : raw, bytes, buffer);
    free(raw);
    return status;
}

/* ---- slabs ---------------------------------------------------------------------------------- */

static void
fill_slab(const cp_dataset *dataset, const zarr_array *a, uint64_t elements, uint8_t *buffer)
{
    const cp_type *type = dataset->type;
    for (uint64_t i = 0; i < elements; i++) {
        if (type->atomic == ESDM_TYPE_STRING)
            put_text(buffer + i * type->bytes, g_strdup(a->fill_text != NULL ? a->fill_text : ""));
        else if (dataset->fill != NULL)
            memcpy(buffer + i * type->bytes, dataset->fill, type->bytes);
        else
            memset(buffer + i * type->bytes, 0, type->bytes);
    }
}

static void
describe(cut *c, const cp_dataset *dataset)
{
    const zarr_array *a = c->array;
    uint64_t step = 1;
    c->rank = dataset->rank;
    for (uint32_t k = c->rank; k-- > 0;) {
        uint32_t axis = a->ordered && k < a->rank ? a->order[k] : k;
        c->chunk[axis] = dataset->chunk[axis];
        c->stride[axis] = step;
        step *= c->chunk[axis];
    }
}

/* false: nothing of it is in the slab. */
static bool
meet(cut *c)
{
    for (uint32_t d = 0; d < c->rank; d++) {
        uint64_t end =
            MIN(c->part->offset[d] + c->part->size[d], c->slab->offset[d] + c->slab->size[d]);
        c->from[d] = MAX(c->part->offset[d], c->slab->offset[d]);
        if (c->from[d] >= end)
            return false;
        c->count[d] = end - c->from[d];
    }
    return true;
}

esdm_status
cp_zarr_read(const cp_end *end, const cp_dataset *dataset, const cp_slab *slab, void *buffer,
             esdm_error *err)
{
    cp_zarr *zarr = end->state;
    cp_zarr_array *a = g_ptr_array_index(zarr->arrays, (guint) dataset->from.varid);
    cut c = {.array = &a->array, .slab = slab, .err = err};
    esdm_status status = list_chunks(zarr, a, err);
    if (status != ESDM_OK)
        return status;
    describe(&c, dataset);
    fill_slab(dataset, &a->array, slab->elements, buffer);
    for (guint i = 0; i < a->chunks->len && status == ESDM_OK; i++) {
        const cp_zarr_chunk *chunk = &g_array_index(a->chunks, cp_zarr_chunk, i);
        c.path = chunk->location;
        c.part = &chunk->part;
        if (!meet(&c))
            continue;
        if (dataset->type->varies) { /* texts in place of the fill value */
            cp_slab part = *slab;
            g_autofree char **texts = g_new0(char *, slab->elements);
            char **all = buffer;
            c.slab = &part;
            status = take_chunk(&c, sizeof *texts, (uint8_t *) texts);
            for (uint64_t k = 0; k < slab->elements; k++) {
                if (texts[k] == NULL)
                    continue;
                g_free(all[k]);
                all[k] = texts[k];
            }
            c.slab = slab;
        } else {
            status = take_chunk(&c, dataset->type->bytes, buffer);
        }
    }
    return status;
}
