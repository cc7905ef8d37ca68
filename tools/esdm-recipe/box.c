/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* How a program is started in an image: with bubblewrap on an unpacked root file system, else with
 * Apptainer or Singularity. It sees the image, what is bound, and nothing else; it writes to the
 * site's directories, the folder of the run, and where it is recorded to its working directory. */
#include "esdm-recipe/esdm-recipe.h"

#include <link.h>
#include <string.h>

/* Where the image has ESDM, unless it brings its own. */
#define OWN_FOLDER "/run/esdm"

/* A file or folder that is visible inside. */
typedef struct bound {
    char *from; /* owned, so the next */
    char *to;
    bool writable;
} bound;

typedef struct box {
    const recipe_box *what;
    const char *image;
    bool is_folder;
    GPtrArray *bounds; /* bound; an outer folder comes before what lies in it */
    GPtrArray *arguments;
} box;

static void
bound_free(void *data)
{
    bound *b = data;
    g_free(b->from);
    g_free(b->to);
    g_free(b);
}

static void
add(const box *b, const char *word)
{
    g_ptr_array_add(b->arguments, g_strdup(word));
}

static void
bind_as(const box *b, const char *from, const char *to, bool writable)
{
    bound *one = g_new0(bound, 1);
    one->from = g_strdup(from);
    one->to = g_canonicalize_filename(to, "/");
    one->writable = writable;
    g_ptr_array_add(b->bounds, one);
}

static void
bind_same(const box *b, const char *path, bool writable)
{
    if (path != NULL && path[0] == '/' && g_file_test(path, G_FILE_TEST_EXISTS))
        bind_as(b, path, path, writable);
}

/* ---- ESDM inside ---------------------------------------------------------------------------- */

/* The path of a program of the image, seen from inside; owned; NULL: it has none. */
static char *
program_of_image(const box *b, const char *name)
{
    static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/opt/esdm/bin"};
    for (gsize i = 0; i < G_N_ELEMENTS(folders) && b->is_folder; i++) {
        g_autofree char *path = g_build_filename(b->image, folders[i], name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_EXECUTABLE))
            return g_build_filename(folders[i], name, NULL);
    }
    return NULL;
}

static bool
image_has_library(const box *b, const char *name)
{
    static const char *const folders[] = {"lib/x86_64-linux-gnu",
                                          "usr/lib/x86_64-linux-gnu",
                                          "lib/aarch64-linux-gnu",
                                          "usr/lib/aarch64-linux-gnu",
                                          "lib64",
                                          "usr/lib64",
                                          "lib",
                                          "usr/lib",
                                          "usr/local/lib"};
    for (gsize i = 0; i < G_N_ELEMENTS(folders) && b->is_folder; i++) {
        g_autofree char *path = g_build_filename(b->image, folders[i], name, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS))
            return true;
    }
    return false;
}

/* The C library is the image's: programs start with its loader. */
static bool
is_of_the_system(const char *name)
{
    static const char *const libraries[] = {"libc.so",  "libm.so",   "libpthread.so",
                                            "libdl.so", "librt.so",  "libresolv.so",
                                            "ld-linux", "linux-vdso"};
    for (gsize i = 0; i < G_N_ELEMENTS(libraries); i++) {
        if (g_str_has_prefix(name, libraries[i]))
            return true;
    }
    return false;
}

/* What this program has loaded is what libesdm needs, and more. */
static int
bind_loaded(struct dl_phdr_info *info, size_t bytes, void *user)
{
    const box *b = user;
    (void) bytes;
    if (info->dlpi_name == NULL || info->dlpi_name[0] != '/')
        return 0;
    g_autofree char *name = g_path_get_basename(info->dlpi_name);
    if (!is_of_the_system(name) && !image_has_library(b, name)) {
        g_autofree char *to = g_build_filename(OWN_FOLDER, name, NULL);
        bind_as(b, info->dlpi_name, to, false);
    }
    return 0;
}

/* Files of ESDM that the plug-in looks for beside itself. */
static void
bind_beside(const box *b, const char *folder)
{
    static const char *const names[] = {"libesdm-netcdf.so", "libesdm-netcdf-core.so",
                                        "libesdm-watch.so"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *from = g_build_filename(folder, names[i], NULL);
        g_autofree char *to = g_build_filename(OWN_FOLDER, names[i], NULL);
        if (g_file_test(from, G_FILE_TEST_EXISTS))
            bind_as(b, from, to, false);
    }
}

/* esdm-run, as it is called inside; owned. */
static char *
bind_esdm(const box *b)
{
    char *own = program_of_image(b, "esdm-run");
    if (own != NULL)
        return own;
    g_autofree char *run = tool_beside("esdm-run");
    g_autofree char *found = strchr(run, '/') == NULL ? g_find_program_in_path(run) : NULL;
    g_autofree char *folder = g_path_get_dirname(found != NULL ? found : run);
    static const char *const places[] = {".", "../netcdf-plugin", "../" ESDM_LIBDIR,
                                         "../" ESDM_LIBDIR "/esdm"};
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *place = g_build_filename(folder, places[i], NULL);
        bind_beside(b, place);
    }
    bind_as(b, found != NULL ? found : run, OWN_FOLDER "/esdm-run", false);
    (void) dl_iterate_phdr(bind_loaded, (void *) b);
    return g_strdup(OWN_FOLDER "/esdm-run");
}

/* ---- what is visible ------------------------------------------------------------------------ */

static int
by_place(gconstpointer a, gconstpointer b)
{
    const bound *x = *(bound *const *) a;
    const bound *y = *(bound *const *) b;
    return strcmp(x->to, y->to);
}

static void
bind_all(const box *b)
{
    const recipe_box *what = b->what;
    size_t i;
    const json_t *one;
    bind_same(b, what->directory, what->writes_there);
    bind_same(b, what->config, false);
    bind_same(b, "/etc/resolv.conf", false); /* sites may have servers */
    bind_same(b, "/etc/hosts", false);
    for (guint k = 0; what->visible != NULL && k < what->visible->len; k++)
        bind_same(b, what->visible->pdata[k], false);
    json_array_foreach(what->inputs, i, one)
        bind_same(b, json_string_value(json_object_get(one, "file")), false);
    for (guint k = 0; what->folders != NULL && k < what->folders->len; k++) {
        if (!g_str_has_prefix(what->folders->pdata[k], "/dev/"))
            bind_same(b, what->folders->pdata[k], true);
    }
    g_ptr_array_sort(b->bounds, by_place);
}

/* ---- bubblewrap ----------------------------------------------------------------------------- */

static bool
is_within(const char *path, const char *folder)
{
    gsize n = strlen(folder);
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Whether something is bound below a folder of the image: then that is put together, as mount
 * points cannot be made in the image. */
static bool
has_bound_below(const box *b, const char *inside)
{
    for (guint i = 0; i < b->bounds->len; i++) {
        if (is_within(((const bound *) b->bounds->pdata[i])->to, inside))
            return true;
    }
    return false;
}

static bool
is_bound(const box *b, const char *inside)
{
    for (guint i = 0; i < b->bounds->len; i++) {
        if (g_str_equal(((const bound *) b->bounds->pdata[i])->to, inside))
            return true;
    }
    return false;
}

static void
show_image(const box *b, const char *below)
{
    g_autofree char *folder = g_build_filename(b->image, below, NULL);
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *from = g_build_filename(folder, name, NULL);
        g_autofree char *inside = g_build_filename("/", below, name, NULL);
        g_autofree char *target =
            g_file_test(from, G_FILE_TEST_IS_SYMLINK) ? g_file_read_link(from, NULL) : NULL;
        if ((below[0] == '\0' && recipe_image_is_own(name)) || is_bound(b, inside))
            continue;
        if (target != NULL) {
            add(b, "--symlink");
            add(b, target);
        } else if (has_bound_below(b, inside) && g_file_test(from, G_FILE_TEST_IS_DIR)) {
            show_image(b, inside + 1);
            continue;
        } else {
            add(b, "--ro-bind");
            add(b, from);
        }
        add(b, inside);
    }
    if (dir != NULL)
        g_dir_close(dir);
}

static void
begin_bubblewrap(const box *b)
{
    static const char *const words[] = {
        "--die-with-parent", "--unshare-ipc", "--unshare-uts", "--proc", "/proc", "--dev", "/dev",
        "--tmpfs",           "/tmp",          "--tmpfs",       "/run"};
    show_image(b, "");
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        add(b, words[i]);
    for (guint i = 0; i < b->bounds->len; i++) {
        const bound *one = b->bounds->pdata[i];
        add(b, one->writable ? "--bind" : "--ro-bind");
        add(b, one->from);
        add(b, one->to);
    }
    add(b, "--remount-ro"); /* folders of the image that were put together lie in this one */
    add(b, "/");
    add(b, "--chdir");
    add(b, b->what->directory);
    add(b, "--setenv");
    add(b, "LD_LIBRARY_PATH");
    add(b, OWN_FOLDER);
}

/* ---- Apptainer, Singularity ----------------------------------------------------------------- */

static void
begin_apptainer(const box *b)
{
    add(b, "exec");
    add(b, "--contain");
    add(b, "--no-home");
    for (guint i = 0; i < b->bounds->len; i++) {
        const bound *one = b->bounds->pdata[i];
        g_autofree char *text =
            g_strdup_printf("%s:%s:%s", one->from, one->to, one->writable ? "rw" : "ro");
        add(b, "--bind");
        add(b, text);
    }
    add(b, "--pwd");
    add(b, b->what->directory);
    add(b, "--env");
    add(b, "LD_LIBRARY_PATH=" OWN_FOLDER);
    add(b, b->image);
}

/* ---- the call ------------------------------------------------------------------------------- */

/* Owned; NULL: there is none, which is told. */
static char *
find_runner(const box *b)
{
    static const char *const runners[] = {"bwrap", "apptainer", "singularity"};
    for (gsize i = b->is_folder ? 0 : 1; i < G_N_ELEMENTS(runners); i++) {
        char *found = g_find_program_in_path(runners[i]);
        if (found != NULL)
            return found;
    }
    tool_error("image '%s': nothing is installed that could run it: install %s", b->image,
               b->is_folder ? "bubblewrap (its program is bwrap), or apptainer"
                            : "apptainer, or singularity; or unpack it into a folder (unsquashfs), "
                              "name that, and install bubblewrap");
    return NULL;
}

tool_exit
recipe_box_arguments(const recipe_box *what, GPtrArray **ret_arguments, char **ret_esdm_run)
{
    box b = {.what = what,
             .image = recipe_image_path(what->image),
             .is_folder = json_object_get(what->image, "folder") != NULL};
    char *runner = find_runner(&b);
    if (runner == NULL)
        return TOOL_FAILED;
    b.bounds = g_ptr_array_new_with_free_func(bound_free);
    b.arguments = g_ptr_array_new_with_free_func(g_free);
    *ret_esdm_run = bind_esdm(&b);
    bind_all(&b);
    g_ptr_array_add(b.arguments, runner);
    if (g_str_has_suffix(runner, "/bwrap"))
        begin_bubblewrap(&b);
    else
        begin_apptainer(&b);
    g_ptr_array_unref(b.bounds);
    *ret_arguments = b.arguments;
    return TOOL_OK;
}
