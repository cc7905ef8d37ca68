/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Images of containers that recipes run in: what they are, and whether they are what they were. */
#include "esdm-recipe/esdm-recipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- folders -------------------------------------------------------------------------------- */

typedef struct tree {
    GChecksum *sum;
    guint64 bytes; /* of files */
    bool failed;   /* which was told */
    recipe_hashing *hashing;
} tree;

static int
by_bytes(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Names in a folder, in an order that no locale changes; owned; NULL: it cannot be read. */
static GPtrArray *
names_in(const char *folder)
{
    g_autoptr(GError) error = NULL;
    GDir *dir = g_dir_open(folder, 0, &error);
    const char *name;
    if (dir == NULL) {
        tool_error("%s", error->message);
        return NULL;
    }
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    while ((name = g_dir_read_name(dir)) != NULL)
        g_ptr_array_add(names, g_strdup(name));
    g_dir_close(dir);
    g_ptr_array_sort(names, by_bytes);
    return names;
}

/* What stands for one entry: kind, rights and contents; neither owner nor times, which unpacking
 * changes. Fields end with a byte 0, which no name has. */
static void
put(tree *t, const char *kind, mode_t mode, const char *name, const char *contents)
{
    g_autofree char *rights = g_strdup_printf("%o", (unsigned) (mode & 07777));
    const char *const fields[] = {kind, rights, name, contents};
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++)
        g_checksum_update(t->sum, (const guchar *) fields[i], (gssize) strlen(fields[i]) + 1);
}

static void add_folder(tree *t, const char *root, const char *below);

static void
add_entry(tree *t, const char *root, const char *name)
{
    struct stat st;
    g_autofree char *path = g_build_filename(root, name, NULL);
    if (lstat(path, &st) != 0) {
        tool_error("%s: %s", path, g_strerror(errno));
        t->failed = true;
    } else if (S_ISDIR(st.st_mode)) {
        put(t, "d", st.st_mode, name, "");
        add_folder(t, root, name);
    } else if (S_ISLNK(st.st_mode)) {
        g_autofree char *target = g_file_read_link(path, NULL);
        put(t, "l", 0, name, target != NULL ? target : "");
    } else if (S_ISREG(st.st_mode)) {
        json_t *file = recipe_file(path, t->hashing);
        t->failed = t->failed || file == NULL;
        if (file != NULL)
            put(t, "f", st.st_mode, name, json_string_value(json_object_get(file, "sha256")));
        t->bytes += (guint64) st.st_size;
        json_decref(file);
    } /* devices and sockets: a run has those of its own */
}

static void
add_folder(tree *t, const char *root, const char *below)
{
    g_autofree char *folder = g_build_filename(root, below, NULL);
    g_autoptr(GPtrArray) names = names_in(folder);
    t->failed = t->failed || names == NULL;
    for (guint i = 0; names != NULL && i < names->len && !t->failed; i++) {
        g_autofree char *name = below[0] == '\0' ? g_strdup(names->pdata[i])
                                                 : g_build_filename(below, names->pdata[i], NULL);
        if (below[0] != '\0' || !recipe_image_is_own(name))
            add_entry(t, root, name);
    }
}

/* NULL: it cannot be read, which is told. */
static json_t *
folder_json(const char *path, recipe_hashing *hashing)
{
    tree t = {.sum = g_checksum_new(G_CHECKSUM_SHA256), .hashing = hashing};
    json_t *object = NULL;
    add_folder(&t, path, "");
    if (!t.failed) {
        object = json_object();
        tool_json_set(object, "folder", tool_json_text(path));
        tool_json_set(object, "bytes", tool_json_u64(t.bytes));
        tool_json_set(object, "sha256", tool_json_text(g_checksum_get_string(t.sum)));
    }
    g_checksum_free(t.sum);
    return object;
}

bool
recipe_image_is_own(const char *name)
{
    static const char *const own[] = {"proc", "sys", "dev", "run", "tmp"};
    for (gsize i = 0; i < G_N_ELEMENTS(own); i++) {
        if (g_str_equal(name, own[i]))
            return true;
    }
    return false;
}

/* ---- images --------------------------------------------------------------------------------- */

/* Why a folder is no root file system; NULL: it looks like one. */
static const char *
not_a_root(const char *path)
{
    g_autofree char *layout = g_build_filename(path, "oci-layout", NULL);
    g_autofree char *bin = g_build_filename(path, "bin", NULL);
    g_autofree char *usr = g_build_filename(path, "usr", NULL);
    if (g_file_test(layout, G_FILE_TEST_EXISTS))
        return "it is a packed OCI image: unpack it first (umoci unpack --image FOLDER:TAG "
               "BUNDLE), "
               "and name BUNDLE/rootfs, or build a .sif file of it (apptainer build NAME.sif "
               "oci:FOLDER)";
    if (!g_file_test(bin, G_FILE_TEST_IS_DIR) && !g_file_test(usr, G_FILE_TEST_IS_DIR))
        return "it is no root file system: it has neither bin nor usr";
    return NULL;
}

bool
recipe_image_is_machine(const char *path)
{
    struct stat root, st;
    return stat("/", &root) == 0 && stat(path, &st) == 0 && st.st_dev == root.st_dev &&
           st.st_ino == root.st_ino;
}

json_t *
recipe_image(const char *path, tool_exit *ret_exit)
{
    json_t *object = NULL;
    recipe_hashing hashing;
    recipe_hashing_begin(&hashing, path);
    char *real = realpath(path, NULL); /* errno stays until it is told */
    *ret_exit = TOOL_FAILED;
    if (real == NULL) {
        tool_error("image '%s': %s", path, g_strerror(errno));
        *ret_exit = TOOL_NOT_FOUND;
    } else if (!g_file_test(real, G_FILE_TEST_IS_DIR)) {
        object = recipe_file(real, &hashing);
    } else if (not_a_root(real) != NULL) {
        tool_error("image '%s': %s", path, not_a_root(real));
    } else {
        object = folder_json(real, &hashing);
    }
    tool_progress_end(&hashing.progress);
    if (object != NULL)
        *ret_exit = TOOL_OK;
    free(real);
    return object;
}

const char *
recipe_image_path(const json_t *image)
{
    const char *folder = json_string_value(json_object_get(image, "folder"));
    return folder != NULL ? folder : json_string_value(json_object_get(image, "file"));
}

tool_exit
recipe_image_check(const json_t *image)
{
    tool_exit result = TOOL_OK;
    const char *path = recipe_image_path(image);
    const char *wanted = json_string_value(json_object_get(image, "sha256"));
    if (path == NULL || wanted == NULL) {
        tool_error("the recipe has an image without a place, or without a digest");
        return TOOL_DAMAGED;
    }
    json_t *now = recipe_image(path, &result);
    if (now == NULL) {
        tool_error("the image '%s' that the program ran in is not there any more", path);
        return TOOL_REFUSED;
    }
    if (g_strcmp0(json_string_value(json_object_get(now, "sha256")), wanted) != 0) {
        tool_error("the image '%s' is not what it was: it has another SHA-256 (%.12s…, not "
                   "%.12s…)",
                   path, json_string_value(json_object_get(now, "sha256")), wanted);
        result = TOOL_REFUSED;
    }
    json_decref(now);
    return result;
}
