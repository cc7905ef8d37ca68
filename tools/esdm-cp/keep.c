/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* --keep-codecs: NetCDF files whose chunks are encoded as the container's fragments are, by the
 * filter of tools/h5filter. */

#include <hdf5.h>
#include <string.h>
#include <unistd.h>

#include "esdm-cp/esdm-cp.h"
#include "h5filter/h5filter.h"

#define MOST_LOOKED_AT 64u /* fragments */

/* Beside the program, as it is installed or built: the folder of the filter. NULL, or owned. */
static char *
find_folder(void)
{
    static const char *const beside[] = {ESDM_H5FILTER_INSTALLED, ESDM_H5FILTER_BUILT};
    char path[4096];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    if (bytes <= 0)
        return NULL;
    path[bytes] = '\0';
    g_autofree char *folder = g_path_get_dirname(path);
    for (size_t i = 0; i < G_N_ELEMENTS(beside); i++) {
        g_autofree char *there = g_build_filename(folder, "..", beside[i], NULL);
        char *real = g_canonicalize_filename(there, NULL);
        if (g_file_test(real, G_FILE_TEST_IS_DIR))
            return real;
        g_free(real);
    }
    return NULL;
}

void
cp_keep_tell(void)
{
    g_autofree char *found = find_folder();
    if (found != NULL)
        (void) printf("programs read ESDM's codecs with HDF5_PLUGIN_PATH=%s\n", found);
}

typedef struct looked {
    char *chain; /* owned; NULL: none was found */
    uint64_t size[ESDM_MAX_RANK];
    unsigned count;
} looked;

static bool
look_at(const esdm_fragment_info *info, void *user)
{
    looked *l = user;
    bool coded = info->codec != NULL && info->codec[0] != '\0' &&
                 !g_str_equal(info->codec, "none") && info->codec[0] != '(';
    if (info->stride == NULL && coded) {
        l->chain = g_strdup(info->codec);
        memcpy(l->size, info->size, info->rank * sizeof *l->size);
        return false;
    }
    return ++l->count < MOST_LOOKED_AT;
}

/* The number, 0, and the text, as h5filter.c says. */
static char *
filter_text(const char *chain)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%d,0", ESDM_H5FILTER);
    for (size_t i = 0; i < strlen(chain); i += 4) {
        uint32_t word = 0;
        for (size_t k = 0; k < 4 && chain[i + k] != '\0'; k++)
            word |= (uint32_t) (unsigned char) chain[i + k] << 8 * k;
        g_string_append_printf(text, ",%u", word);
    }
    return g_string_free(text, false);
}

static void
keep(cp_dataset *d, const looked *l)
{
    g_free(d->filters);
    d->filters = filter_text(l->chain);
    g_free(d->storage);
    d->storage = g_strdup("chunked");
    if (d->chunk != NULL)
        return;
    d->chunk = g_new0(uint64_t, d->rank);
    for (uint32_t i = 0; i < d->rank; i++) {
        uint64_t length = MAX(d->dimensions[i]->length, 1);
        d->chunk[i] =
            d->dimensions[i]->unlimited ? MAX(l->size[i], 1) : CLAMP(l->size[i], 1, length);
    }
}

static bool
is_plain_number(const cp_dataset *d)
{
    return d->rank > 0 && d->type->path == NULL && d->type->atomic != ESDM_TYPE_CHAR &&
           d->type->atomic != ESDM_TYPE_STRING &&
           (d->endian == NULL || !g_str_equal(d->endian, "big") || G_BYTE_ORDER == G_BIG_ENDIAN);
}

esdm_status
cp_keep_codecs(const cp_model *model, esdm_error *err)
{
    g_autofree char *found = find_folder();
    if (found != NULL)
        (void) H5PLprepend(found);
    if (H5Zfilter_avail(ESDM_H5FILTER) <= 0)
        return tool_error_set(
            err, ESDM_ENOTSUP,
            "HDF5 does not find ESDM's filter: set HDF5_PLUGIN_PATH to the folder "
            "of libh5esdm.so");
    for (guint i = 0; i < model->datasets->len; i++) {
        cp_dataset *d = g_ptr_array_index(model->datasets, i);
        looked l = {.chain = NULL};
        if (!is_plain_number(d))
            continue;
        esdm_status status = esdm_dataset_fragments(d->from.dataset, look_at, &l, err);
        if (status == ESDM_OK && l.chain != NULL)
            keep(d, &l);
        g_free(l.chain);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}
