/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Folders that are copies: which job makes one, how it gets its name and goes away, and whether it
 * is what was read. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* renameat2() */
#endif
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "esdm-cp/zarr.h"

#define MOST_OPEN 16 /* folders, while they are removed */

int
cp_zarr_format(const cp_job *job)
{
    if (job->to_container)
        return 0;
    if (cp_wants.format == NULL)
        return g_str_has_suffix(job->target, ".zarr") ? 3 : 0;
    return g_str_equal(cp_wants.format, "zarr") ? 3 : g_str_equal(cp_wants.format, "zarr2") ? 2 : 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void) st;
    (void) kind;
    (void) at;
    return remove(path);
}

void
cp_zarr_remove(const char *folder)
{
    if (nftw(folder, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        tool_error("cannot remove '%s': %s", folder, g_strerror(errno));
}

/* A store, or a file, as the options allow it. No other folder is replaced. */
static esdm_status
replace(const char *folder, const char *target, esdm_error *err)
{
    if (g_file_test(target, G_FILE_TEST_IS_DIR) && !zarr_is_store(target))
        return tool_error_set(err, ESDM_EEXIST, "the folder '%s' is no Zarr store: it stays",
                              target);
    if (renameat2(AT_FDCWD, folder, AT_FDCWD, target, RENAME_EXCHANGE) == 0) {
        cp_zarr_remove(folder); /* what was there before */
        return ESDM_OK;
    }
    if (errno == ENOENT && rename(folder, target) == 0)
        return ESDM_OK;
    return tool_error_set(err, ESDM_EIO, "cannot give the copy its name '%s': %s", target,
                          g_strerror(errno));
}

esdm_status
cp_zarr_publish(const char *folder, const char *target, esdm_error *err)
{
    if (cp_wants.force)
        return replace(folder, target, err);
    int failed = renameat2(AT_FDCWD, folder, AT_FDCWD, target, RENAME_NOREPLACE);
    if (failed != 0 && errno == EINVAL) /* a file system without it */
        failed = rename(folder, target);
    if (failed == 0)
        return ESDM_OK;
    return tool_error_set(err, errno == EEXIST || errno == ENOTEMPTY ? ESDM_EEXIST : ESDM_EIO,
                          "cannot give the copy its name '%s': %s", target, g_strerror(errno));
}

/* ---- comparing ---------------------------------------------------------------------------- */

static bool
is_same(const cp_dataset *a, const cp_dataset *b)
{
    if (b == NULL || a->type != b->type || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dimensions[i]->length != b->dimensions[i]->length ||
            !g_str_equal(a->dimensions[i]->name, b->dimensions[i]->name))
            return false;
    }
    return true;
}

esdm_status
cp_zarr_match(const cp_model *model, const cp_model *written, GPtrArray *ret_pairs, esdm_error *err)
{
    g_autoptr(GHashTable) by_path = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < written->datasets->len; i++) {
        cp_dataset *d = g_ptr_array_index(written->datasets, i);
        g_hash_table_insert(by_path, d->path, d);
    }
    for (guint i = 0; i < model->datasets->len; i++) {
        const cp_dataset *d = g_ptr_array_index(model->datasets, i);
        cp_dataset *other = g_hash_table_lookup(by_path, d->path);
        if (!is_same(d, other))
            return tool_error_set(err, ESDM_ECORRUPT, "the copy differs: dataset %s %s", d->path,
                                  other == NULL ? "is missing" : "has another type or shape");
        g_ptr_array_add(ret_pairs, other);
    }
    return ESDM_OK;
}

void
cp_zarr_texts(const cp_dataset *d, uint64_t count, void *values)
{
    char **texts = values;
    for (uint64_t i = 0; d->type->atomic == ESDM_TYPE_STRING && i < count; i++) {
        if (texts[i] == NULL)
            texts[i] = g_strdup("");
    }
}
