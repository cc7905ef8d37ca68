/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* --private-postgres: a PostgreSQL server of the site's own is entered into its configuration. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esdm-mkfs/esdm-mkfs.h"

static esdm_status
write_text(const char *path, const char *text, mode_t mode, esdm_error *err)
{
    g_autofree char *begun = g_strdup_printf("%s.%d.new", path, (int) getpid());
    int fd = open(begun, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    gsize bytes = strlen(text);
    bool good = fd >= 0 && fchmod(fd, mode) == 0 && write(fd, text, bytes) == (ssize_t) bytes &&
                fsync(fd) == 0;
    int why = errno;
    if (fd >= 0)
        (void) close(fd);
    if (good && rename(begun, path) == 0)
        return ESDM_OK;
    why = good ? errno : why;
    if (fd >= 0)
        (void) unlink(begun);
    return tool_error_set(err, why == EACCES ? ESDM_EACCES : ESDM_EIO, "cannot write '%s': %s",
                          path, g_strerror(why));
}

/* Whether the store that the configuration names has a catalogue, which would be left behind. */
static esdm_status
refuse_made(const esdm_site_options *options, const json_t *metadata, const char *directory,
            esdm_error *err)
{
    uint64_t containers = 0, bytes = 0;
    const char *plugin = json_string_value(json_object_get(metadata, "plugin"));
    const char *own = json_string_value(json_object_get(metadata, "directory"));
    if (metadata == NULL || (plugin != NULL && own != NULL && g_str_equal(plugin, "postgres") &&
                             g_str_equal(own, directory)))
        return ESDM_OK;
    esdm_status status = esdm_site_contents(options, &containers, &bytes, err);
    if (status == ESDM_ENOENT)
        return ESDM_OK; /* it was never made */
    if (status != ESDM_OK)
        return status;
    return tool_error_set(err, ESDM_EEXIST,
                          "the site of %s is made, with another metadata store: copy the file, "
                          "give the copy \"metadata\": {\"plugin\": \"postgres\", \"directory\": "
                          "\"%s\"}, and move the catalogue with esdm-mkfs --migrate %s COPY",
                          options->config_path, directory, options->config_path);
}

static char *
with_metadata(json_t *root, const char *directory)
{
    json_t *metadata = json_object_get(root, "metadata");
    const char *plugin = json_string_value(json_object_get(metadata, "plugin"));
    if (plugin == NULL || !g_str_equal(plugin, "postgres") ||
        json_object_get(metadata, "directory") == NULL) {
        metadata = json_object();
        tool_json_set(metadata, "plugin", json_string("postgres"));
        tool_json_set(root, "metadata", json_incref(metadata));
        json_decref(metadata);
    }
    tool_json_set(metadata, "directory", tool_json_text(directory));
    char *text = json_dumps(root, JSON_INDENT(4));
    char *line = g_strconcat(text != NULL ? text : "", "\n", NULL);
    free(text);
    return line;
}

static esdm_status
try_out(const esdm_site_options *options, const char *text, esdm_error *err)
{
    g_autofree char *path = g_strdup_printf("%s.%d.trial", options->config_path, (int) getpid());
    esdm_site_options trial = *options;
    trial.config_path = path;
    esdm_status status = write_text(path, text, 0600, err);
    if (status != ESDM_OK)
        return status;
    status = esdm_site_create(&trial, err);
    (void) unlink(path);
    return status;
}

/* The configuration is as before when the site cannot be made. */
static esdm_status
enter(const esdm_site_options *options, const char *before, const char *text, esdm_error *err)
{
    struct stat info;
    mode_t mode = stat(options->config_path, &info) == 0 ? info.st_mode & 0777 : 0600;
    esdm_status status =
        strcmp(before, text) != 0 ? write_text(options->config_path, text, mode, err) : ESDM_OK;
    if (status != ESDM_OK)
        return status;
    status = esdm_site_create(options, err);
    if (status != ESDM_OK && strcmp(before, text) != 0)
        (void) write_text(options->config_path, before, mode, NULL);
    return status;
}

esdm_status
mkfs_private_postgres(const esdm_site_options *given, const char *folder, esdm_error *err)
{
    g_autofree char *directory = g_canonicalize_filename(folder, NULL);
    g_autofree char *before = NULL;
    g_autoptr(GError) why = NULL;
    json_error_t where;
    char *found = NULL;
    esdm_status status = given->config_path == NULL ? esdm_site_find(&found, err) : ESDM_OK;
    g_autofree char *path = g_strdup(given->config_path != NULL ? given->config_path : found);
    free(found);
    if (status != ESDM_OK)
        return status;
    if (path == NULL)
        return tool_error_set(err, ESDM_ENOENT,
                              "there is no site configuration: write one with the site's "
                              "\"targets\", and name it");
    if (!g_file_get_contents(path, &before, NULL, &why))
        return tool_error_set(err, ESDM_ENOENT, "%s", why->message);
    json_t *root = tool_json_read(before, -1, 0, &where);
    if (!json_is_object(root)) {
        json_decref(root);
        return tool_error_set(err, ESDM_EINVAL, "%s: line %d: %s", path, where.line,
                              root == NULL ? where.text : "no object");
    }
    esdm_site_options options = *given;
    options.config_path = path;
    status = refuse_made(&options, json_object_get(root, "metadata"), directory, err);
    g_autofree char *text = with_metadata(root, directory);
    json_decref(root);
    if (status != ESDM_OK)
        return status;
    return options.dry_run ? try_out(&options, text, err) : enter(&options, before, text, err);
}
