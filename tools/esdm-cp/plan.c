/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* From the command line to a list of copies. */

#include "esdm-cp/esdm-cp.h"
#include "esdm/virtual.h"

#include <string.h>
#include <sys/stat.h>

#include "refer/zarr.h"

typedef struct plan {
    GPtrArray *jobs;
    GPtrArray *trees;
    GHashTable *targets; /* names that are taken */
    char *target;        /* without scheme */
    bool to_container;
    bool into_folder;      /* sources keep their names below the target */
    bool several;          /* more than one source */
    guint left;            /* files in folders that are plain ones already, and are to be */
    esdm_session *session; /* opened when containers must be looked at */
} plan;

void
cp_job_free(gpointer data)
{
    cp_job *job = data;
    g_free(job->source);
    g_free(job->target);
    g_free(job);
}

/* "esdm://a/b" and "esdm:a/b" give "a/b", anything else NULL. */
static const char *
container_name(const char *argument)
{
    if (g_str_has_prefix(argument, "esdm://"))
        return argument + strlen("esdm://");
    if (g_str_has_prefix(argument, "esdm:"))
        return argument + strlen("esdm:");
    return NULL;
}

static bool
is_folder(const char *path)
{
    return g_file_test(path, G_FILE_TEST_IS_DIR);
}

/* A pipe, a socket or a device: to open one may wait for ever. What cannot be looked at is told
 * when it is opened. */
static bool
is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* A folder that is one thing, as a file is. */
static bool
is_store(const char *path)
{
    return is_folder(path) && zarr_is_store(path);
}

static char *
join(const char *folder, const char *name)
{
    size_t bytes = strlen(folder);
    while (bytes > 1 && folder[bytes - 1] == '/')
        bytes--;
    if (bytes == 0 || (bytes == 1 && folder[0] == '/'))
        return g_strdup_printf("%.*s%s", (int) bytes, folder, name);
    return g_strdup_printf("%.*s/%s", (int) bytes, folder, name);
}

static esdm_status
normalise(const char *name, char **ret_name, esdm_error *err)
{
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_status status = esdm_container_normalise(name, buffer, err);
    if (status == ESDM_OK)
        *ret_name = g_strdup(buffer);
    return status;
}

/* Takes the names, which may lack normalisation. */
static tool_exit
add_job(plan *p, bool from_container, const char *source, const char *target)
{
    cp_job *job = g_new0(cp_job, 1);
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    job->from_container = from_container;
    job->to_container = p->to_container;
    g_ptr_array_add(p->jobs, job);
    if (from_container)
        status = normalise(source, &job->source, &err);
    else
        job->source = g_strdup(source);
    if (status == ESDM_OK && p->to_container)
        status = normalise(target, &job->target, &err);
    else if (status == ESDM_OK)
        job->target = g_strdup(target);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (!from_container && !p->to_container)
        return tool_usage("neither '%s' nor '%s' is a container (esdm://NAME); use cp", source,
                          target);
    if (from_container && p->to_container && g_str_equal(job->source, job->target))
        return tool_usage("'%s' would be copied onto itself", source);
    if (!g_hash_table_add(p->targets, job->target))
        return tool_usage("two sources would be copied to '%s'", job->target);
    return TOOL_OK;
}

/* A file, or the container that it stands for. */
static tool_exit
add_file(plan *p, const char *path, const char *target)
{
    g_autofree char *container = tool_stub(path);
    esdm_error err = {0};
    if (container != NULL) { /* a copy may mean a former one */
        tool_exit result = p->session == NULL ? tool_session(true, &p->session) : TOOL_OK;
        if (result != TOOL_OK)
            return result;
        g_clear_pointer(&container, g_free);
        esdm_status status = tool_stub_container(p->session, path, &container, &err);
        if (status != ESDM_OK)
            return tool_fail(status, &err);
    }
    return add_job(p, container != NULL, container != NULL ? container : path, target);
}

/* One in a folder: beside files that stand for containers plain ones may lie. */
static tool_exit
add_below(plan *p, const char *path, const char *target)
{
    g_autofree char *container = p->to_container ? NULL : tool_stub(path);
    if (p->to_container || container != NULL)
        return add_file(p, path, target);
    p->left++;
    return TOOL_OK;
}

/* ---- folders of files --------------------------------------------------------------------- */

static bool
is_netcdf_name(const char *name)
{
    static const char *const endings[] = {".nc",    ".nc4",   ".nc3", ".cdf",  ".netcdf", ".grib",
                                          ".grib1", ".grib2", ".grb", ".grb1", ".grb2"};
    for (size_t i = 0; i < G_N_ELEMENTS(endings); i++) {
        if (g_str_has_suffix(name, endings[i]))
            return true;
    }
    return false;
}

/* Links to folders are not followed: trees of data are full of links to the "latest" version. */
static tool_exit
walk(plan *p, const char *folder, const char *target)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = tool_folder_names(folder, &error);
    if (names == NULL) {
        tool_error("%s", error->message);
        return TOOL_FAILED;
    }
    tool_exit result = TOOL_OK;
    for (guint i = 0; i < names->len && result == TOOL_OK; i++) {
        const char *name = g_ptr_array_index(names, i);
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_autofree char *below = join(target, name);
        if (is_store(path)) {
            result = add_below(p, path, below);
        } else if (is_folder(path)) {
            if (!g_file_test(path, G_FILE_TEST_IS_SYMLINK))
                result = walk(p, path, below);
        } else if (is_netcdf_name(name) && is_special(path)) {
            tool_error("warning: passed over '%s', which is no regular file", path);
        } else if (is_netcdf_name(name)) {
            result = add_below(p, path, below);
        }
    }
    return result;
}

/* ---- sources ------------------------------------------------------------------------------ */

static char *
last_component(const char *name)
{
    g_autofree char *trimmed = g_strdup(name);
    for (size_t n = strlen(trimmed); n > 1 && trimmed[n - 1] == '/'; n--)
        trimmed[n - 1] = '\0';
    const char *slash = strrchr(trimmed, '/');
    return g_strdup(slash != NULL ? slash + 1 : trimmed);
}

static void
free_tree(gpointer data)
{
    cp_tree *tree = data;
    g_free(tree->folder);
    g_free(tree->prefix);
    g_free(tree);
}

static tool_exit
add_tree(plan *p, const char *folder, const char *target)
{
    esdm_error err = {0};
    if (!p->to_container)
        return TOOL_OK;
    cp_tree *tree = g_new0(cp_tree, 1);
    g_ptr_array_add(p->trees, tree);
    tree->folder = g_canonicalize_filename(folder, NULL);
    if (target[strspn(target, "/")] == '\0') {
        tree->prefix = g_strdup("");
        return TOOL_OK;
    }
    esdm_status status = normalise(target, &tree->prefix, &err);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

static tool_exit
add_path(plan *p, const char *path)
{
    g_autofree char *base = last_component(path);
    if (is_folder(path) && !is_store(path)) {
        if (!cp_wants.recursive)
            return tool_usage("'%s' is a folder; --recursive copies what lies in it", path);
        g_autofree char *below = p->several ? join(p->target, base) : g_strdup(p->target);
        tool_exit result = add_tree(p, path, below);
        return result == TOOL_OK ? walk(p, path, below) : result;
    }
    if (is_special(path)) {
        tool_error("'%s' is no regular file", path);
        return TOOL_FAILED;
    }
    if (cp_wants.update && !p->several && !g_file_test(path, G_FILE_TEST_EXISTS)) {
        tool_exit result = add_tree(p, path, p->target);
        for (guint i = 0; i < p->trees->len; i++)
            ((cp_tree *) g_ptr_array_index(p->trees, i))->absent = true;
        return result;
    }
    g_autofree char *below = p->into_folder ? join(p->target, base) : g_strdup(p->target);
    return add_file(p, path, below);
}

typedef struct listing {
    plan *p;
    const char *prefix; /* normalised, "" for all */
    tool_exit result;
    uint64_t count;
} listing;

static bool
add_listed(const esdm_container_info *info, void *user)
{
    listing *all = user;
    plan *p = all->p;
    size_t bytes = strlen(all->prefix);
    const char *mark = strstr(info->name, "@branch:");
    if (mark != NULL && mark >= info->name + bytes)
        return true; /* a branch is copied when it is named */
    g_autofree char *base = last_component(info->name);
    /* The container of the prefix's own name, or one below it. */
    const char *rest = bytes == 0                       ? info->name
                       : strlen(info->name) > bytes + 1 ? info->name + bytes + 1
                                                        : base;
    g_autofree char *prefix_base = last_component(all->prefix);
    g_autofree char *folder =
        p->several && bytes > 0 ? join(p->target, prefix_base) : g_strdup(p->target);
    g_autofree char *below = join(folder, rest);
    all->count++;
    all->result = add_job(p, true, info->name, below);
    return all->result == TOOL_OK;
}

static tool_exit
add_containers(plan *p, const char *argument)
{
    g_autofree char *prefix = NULL;
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    if (argument[strspn(argument, "/")] == '\0')
        prefix = g_strdup("");
    else
        status = normalise(argument, &prefix, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_exit result = p->session == NULL ? tool_session(true, &p->session) : TOOL_OK;
    if (result != TOOL_OK)
        return result;
    listing all = {.p = p, .prefix = prefix};
    status =
        esdm_container_list(p->session, prefix[0] != '\0' ? prefix : NULL, add_listed, &all, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (all.result == TOOL_OK && all.count == 0) {
        tool_error("there is no container '%s' and none below it", argument);
        return TOOL_NOT_FOUND;
    }
    return all.result;
}

static bool
add_found(const char *name, void *user)
{
    listing *all = user;
    g_autofree char *below = join(all->p->target, name);
    all->count++;
    all->result = add_job(all->p, true, name, below);
    return all->result == TOOL_OK;
}

/* Each container that a query finds is cloned, below the folder under its whole name. */
static tool_exit
add_members(plan *p, const char *query)
{
    esdm_error err = {0};
    listing all = {.p = p, .prefix = ""};
    tool_exit result = p->session == NULL ? tool_session(true, &p->session) : TOOL_OK;
    if (result != TOOL_OK)
        return result;
    esdm_status status = esdm_virtual_found(p->session, query, add_found, &all, &err);
    return status == ESDM_OK ? all.result : tool_fail(status, &err);
}

/* One object or store: nothing can be listed there. */
static tool_exit
add_url(plan *p, const char *argument)
{
    g_autofree char *url = g_strdup(argument);
    for (size_t n = strlen(url); n > 1 && url[n - 1] == '/'; n--)
        url[n - 1] = '\0';
    g_autofree char *base = last_component(url);
    g_autofree char *below = p->into_folder ? join(p->target, base) : g_strdup(p->target);
    return add_job(p, false, url, below);
}

static tool_exit
add_source(plan *p, const char *argument)
{
    const char *name = container_name(argument);
    if (esdm_location_is_remote(argument))
        return add_url(p, argument);
    if (name == NULL)
        return add_path(p, argument);
    if (name[0] == '?' && p->to_container && p->into_folder &&
        cp_wants.reflink == CP_REFLINK_ALWAYS)
        return add_members(p, name);
    if (cp_wants.recursive)
        return add_containers(p, name);
    g_autofree char *base = last_component(name);
    g_autofree char *below = p->into_folder ? join(p->target, base) : g_strdup(p->target);
    return add_job(p, true, name, below);
}

/* Under the target as they lie below the folder that all share. */
static tool_exit
add_list(plan *p, const char *name)
{
    g_autoptr(GPtrArray) sources = g_ptr_array_new_with_free_func(g_free);
    size_t shared = 0;
    tool_exit result = cp_list_read(name, sources, &shared);
    for (guint i = 0; i < sources->len && result == TOOL_OK; i++) {
        const char *source = g_ptr_array_index(sources, i);
        g_autofree char *below = join(p->target, source + shared);
        if (container_name(source) != NULL || source[shared] == '\0')
            result = tool_usage("%s: '%s' is no file, store or URL", name, source);
        else if (!esdm_location_is_remote(source) && is_folder(source) && !is_store(source))
            result = walk(p, source, below);
        else if (is_special(source))
            result = tool_usage("%s: '%s' is no regular file", name, source);
        else
            result = add_file(p, source, below);
    }
    return result;
}

/* The folders that copies of containers go to. */
static tool_exit
make_folders(const GPtrArray *jobs)
{
    for (guint i = 0; i < jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        g_autofree char *folder = g_path_get_dirname(job->target);
        if (!job->to_container && g_mkdir_with_parents(folder, 0777) != 0) {
            tool_error("cannot make the folder '%s'", folder);
            return TOOL_FAILED;
        }
    }
    return TOOL_OK;
}

tool_exit
cp_plan(char **arguments, int count, GPtrArray **ret_jobs, GPtrArray **ret_trees)
{
    const char *target = arguments[count - 1], *name = container_name(target);
    plan p = {.jobs = g_ptr_array_new_with_free_func(cp_job_free),
              .trees = g_ptr_array_new_with_free_func(free_tree),
              .targets = g_hash_table_new(g_str_hash, g_str_equal),
              .target = g_strdup(name != NULL ? name : target),
              .to_container = name != NULL,
              .several = count > 2};
    /* esdm-ref is recursive by itself: one file gets the name that is said. */
    bool one_reference =
        cp_wants.reference && count == 2 && (!is_folder(arguments[0]) || is_store(arguments[0]));
    p.into_folder = p.several || (cp_wants.recursive && !one_reference) || p.target[0] == '\0' ||
                    g_str_has_suffix(p.target, "/") ||
                    (name == NULL && is_folder(p.target) && !is_store(p.target));
    tool_exit result = TOOL_OK;
    for (int i = 0; i < count - 1 && result == TOOL_OK; i++)
        result = add_source(&p, arguments[i]);
    if (result == TOOL_OK && cp_wants.list != NULL)
        result = add_list(&p, cp_wants.list);
    if (result == TOOL_OK && p.jobs->len == 0 && !cp_wants.update) {
        tool_error("there is no NetCDF file%s in '%s'",
                   p.left > 0 ? " that stands for a container" : "",
                   cp_wants.list != NULL ? cp_wants.list : arguments[0]);
        result = TOOL_NOT_FOUND;
    } else if (result == TOOL_OK && p.left > 0) {
        tool_error("note: %u file%s that lie%s there %s plain already, and %s left: cp copies %s",
                   p.left, p.left == 1 ? "" : "s", p.left == 1 ? "s" : "",
                   p.left == 1 ? "is" : "are", p.left == 1 ? "is" : "are",
                   p.left == 1 ? "it" : "them");
    }
    if (result == TOOL_OK && cp_wants.recursive && !cp_wants.dry_run)
        result = make_folders(p.jobs);
    esdm_session_close(p.session);
    g_hash_table_unref(p.targets);
    g_free(p.target);
    *ret_jobs = p.jobs;
    *ret_trees = p.trees;
    return result;
}
