/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Chunks of another shape than what a program reads or writes of them. */
#include "esdm-explain/esdm-explain.h"

char *
shape_text(const guint64 *shape, guint rank)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < rank && i < WATCH_DIMS; i++)
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i > 0 ? " x " : "", shape[i]);
    return g_string_free(text, FALSE);
}

char *
chunks_taken_text(const object *v)
{
    g_autofree char *chunk = shape_text(v->entry.chunk, v->entry.rank);
    if (v->entry.chunked != 1)
        return g_strdup("");
    return g_strdup_printf(" Its chunks of %s hold far more than the program takes of them: chunks "
                           "of the shape that is read (nccopy -c) leave less to decompress.",
                           chunk);
}

/* Bytes of the chunks that the variable needs at least, and that what was written needs: records
 * are added while it is written. 0: not known. */
static double
chunk_bytes(const object *v)
{
    double all = v->entry.element_bytes;
    double one = v->entry.element_bytes;
    if (v->entry.chunked != 1 || v->entry.rank == 0 || v->entry.rank > WATCH_DIMS)
        return 0;
    for (guint i = 0; i < v->entry.rank; i++) {
        guint64 chunk = v->entry.chunk[i];
        guint64 size = MAX(v->entry.size[i], 1);
        if (chunk == 0)
            return 0;
        guint64 chunks = (size + chunk - 1) / chunk;
        all *= (double) chunks * (double) chunk;
        one *= (double) chunk;
    }
    return MAX(all, one);
}

/* Calls are in order of time. */
bool
is_new_file(const run *r, const char *name)
{
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->object->kind == WATCH_DATASET && g_str_equal(c->object->name, name))
            return g_str_has_prefix(call_name(c), "nc_create") ||
                   g_str_has_prefix(call_name(c), "nc__create");
    }
    return false;
}

double
chunks_filled_share(const run *r, const object *v)
{
    double all = is_new_file(r, v->name) ? chunk_bytes(v) : 0;
    return all > 0 ? MIN((double) v->entry.write.bytes / all, 1) : 1;
}

char *
chunks_filled_text(const object *v)
{
    g_autofree char *chunk = shape_text(v->entry.chunk, v->entry.rank);
    g_autofree char *all = bytes_text(chunk_bytes(v));
    g_autofree char *written = bytes_text((double) v->entry.write.bytes);
    return g_strdup_printf(
        "The program wrote %s of values there, and its chunks of %s hold %s: the "
        "rest is fill values, which are compressed, too. Chunks of the shape "
        "that is written (nc_def_var_chunking; ncks and ncra --cnk_dmn "
        "DIMENSION,1) leave less to compress.",
        written, chunk, all);
}
