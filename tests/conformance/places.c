/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "places.h"

#include <ctype.h>
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const esdm_plugin *place_current;
const place_kind *place_current_kind;
_Thread_local esdm_error place_error;

static place_kind table[] = {
    {ESDM_PLUGIN_DATA, "posix", "{\"plugin\": \"posix\", \"name\": \"t\", \"directory\": \"%s\"}",
     .has_directory = true, .shared = true, .durable = true},
    {ESDM_PLUGIN_DATA, "faulty", "{\"plugin\": \"faulty\", \"name\": \"t\", \"directory\": \"%s\"}",
     .has_directory = true, .shared = true, .durable = true},
    {ESDM_PLUGIN_DATA, "s3",
     "{\"plugin\": \"s3\", \"name\": \"t\", \"part\": \"8 MiB\", \"endpoint\": \"%s\", \"bucket\": "
     "\"%s\", "
     "\"prefix\": \"%s\"%s%s%s}",
     .server = "ESDM_TEST_S3_ENDPOINT", .bucket = true, .shared = true},
    {ESDM_PLUGIN_DATA, "kv", "{\"plugin\": \"kv\", \"name\": \"t\", \"directory\": \"%s\"}",
     .has_directory = true, .shared = true, .durable = true},
    {ESDM_PLUGIN_DATA, "mem", "{\"plugin\": \"mem\", \"name\": \"t\"}", .has_directory = false},
    {ESDM_PLUGIN_META, "sqlite", "{\"plugin\": \"sqlite\", \"directory\": \"%s\"}",
     .has_directory = true, .shared = true, .durable = true},
    {ESDM_PLUGIN_META, "postgres",
     "{\"plugin\": \"postgres\", \"connection\": \"%s\", \"schema\": \"t_%s\"}",
     .server = "ESDM_TEST_POSTGRES", .shared = true, .durable = true},
};

static const char *
variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL ? value : "";
}

const place_kind *
place_kind_of(const esdm_plugin *plugin)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        place_kind *kind = &table[i];
        if (kind->kind != plugin->kind || strcmp(kind->plugin, plugin->name) != 0)
            continue;
        if (kind->bucket)
            kind->has_directory = variable("ESDM_TEST_S3_FOLDER")[0] != '\0';
        return kind;
    }
    return NULL;
}

/* The place has the prefix FOLDER/NAME, where FOLDER is the last part of the test's folder. */
static void
configure_bucket(place *p, const place_kind *kind)
{
    char prefix[128];
    const char *ca = variable("ESDM_TEST_S3_CA_FILE");
    (void) snprintf(prefix, sizeof prefix, "%s/%s", strrchr(p->folder, '/') + 1, p->name);
    if (kind->has_directory)
        (void) snprintf(p->dir, sizeof p->dir, "%s/%s", p->folder, p->name);
    int n = snprintf(p->json, sizeof p->json, kind->json, variable("ESDM_TEST_S3_ENDPOINT"),
                     variable("ESDM_TEST_S3_BUCKET"), prefix,
                     ca[0] != '\0' ? ", \"ca_file\": \"" : "", ca, ca[0] != '\0' ? "\"" : "");
    assert_true(n > 0 && (size_t) n < sizeof p->json);
}

static void
configure(place *p, const place_kind *kind, const char *name)
{
    (void) snprintf(p->name, sizeof p->name, "%s", name);
    if (kind->bucket) {
        configure_bucket(p, kind);
    } else if (kind->has_directory) {
        (void) snprintf(p->dir, sizeof p->dir, "%s/%s", p->folder, name);
        int n = snprintf(p->json, sizeof p->json, kind->json, p->dir);
        assert_true(n > 0 && (size_t) n < sizeof p->json);
    } else if (kind->server != NULL) {
        char schema[sizeof p->name];
        for (size_t i = 0; i < sizeof schema; i++)
            schema[i] = (char) tolower((unsigned char) p->name[i]);
        int n = snprintf(p->json, sizeof p->json, kind->json, getenv(kind->server), schema);
        assert_true(n > 0 && (size_t) n < sizeof p->json);
    } else {
        (void) snprintf(p->json, sizeof p->json, "%s", kind->json);
    }
    p->config = (esdm_plugin_config){
        .name = p->name, .json = p->json, .path = "test.json: targets[0]", .site_id = PLACE_SITE};
}

void
place_init(place *ret_place, const place_kind *kind)
{
    /* Hundreds of folders are made and removed: in memory, unless $TMPDIR says otherwise. */
    const char *base = getenv("TMPDIR");
    if (base == NULL || strlen(base) > 40)
        base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    if (kind->bucket && kind->has_directory)
        base = variable("ESDM_TEST_S3_FOLDER");
    memset(ret_place, 0, sizeof *ret_place);
    int n = snprintf(ret_place->folder, sizeof ret_place->folder, "%s/esdm-test-XXXXXX", base);
    assert_true(n > 0 && (size_t) n < sizeof ret_place->folder);
    assert_non_null(mkdtemp(ret_place->folder));
    assert_int_equal(chmod(ret_place->folder, 0755), 0); /* other users are to come in */
    /* A name of its own: places of plug-ins without a directory live as long as the process. */
    configure(ret_place, kind, strrchr(ret_place->folder, '-') + 1);
}

void
place_sibling(place *ret_place, const place *beside, const place_kind *kind, const char *name)
{
    memset(ret_place, 0, sizeof *ret_place);
    memcpy(ret_place->folder, beside->folder, sizeof ret_place->folder);
    configure(ret_place, kind, name);
}

static int
remove_entry(const char *path, const struct stat *found, int type, struct FTW *at)
{
    (void) found, (void) type, (void) at;
    return remove(path);
}

void
place_clear(place *p)
{
    (void) nftw(p->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void
place_count_lines(const char *line, void *user)
{
    assert_non_null(line);
    assert_int_not_equal(line[0], '\0');
    if (user != NULL)
        ++*(size_t *) user;
}

static size_t entries;

static int
count_entry(const char *path, const struct stat *found, int type, struct FTW *at)
{
    (void) path, (void) found, (void) type;
    entries += at->level > 0;
    return 0;
}

size_t
place_count_entries(const char *path)
{
    entries = 0;
    (void) nftw(path, count_entry, 16, FTW_PHYS);
    return entries;
}

void
place_write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    (void) snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

int
place_in_child(void (*body)(void *user), void *user)
{
    (void) fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(user);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Loadable plug-ins are registered when somebody asks for them: all that lie in the first folder of
 * $ESDM_PLUGIN_PATH, where esdm_loadable() puts them, are asked for. Returns how many do not load.
 */
static int
find_loadable(esdm_plugin_kind kind)
{
    const char *path = getenv("ESDM_PLUGIN_PATH");
    const char *name = kind == ESDM_PLUGIN_CODEC  ? "esdm-codec-"
                       : kind == ESDM_PLUGIN_DATA ? "esdm-data-"
                                                  : "esdm-meta-";
    char folder[4096];
    int failed = 0;
    (void) snprintf(folder, sizeof folder, "%.*s", path != NULL ? (int) strcspn(path, ":") : 0,
                    path != NULL ? path : "");
    DIR *listed = opendir(folder);
    for (struct dirent *e; listed != NULL && (e = readdir(listed)) != NULL;) {
        const esdm_plugin *plugin = NULL;
        size_t length = strlen(e->d_name);
        if (strncmp(e->d_name, name, strlen(name)) != 0 || length <= strlen(name) + 3 ||
            strcmp(e->d_name + length - 3, ".so") != 0)
            continue;
        e->d_name[length - 3] = '\0';
        if (esdm__plugin_find(kind, e->d_name + strlen(name), &plugin, &place_error) == ESDM_OK)
            continue;
        (void) fprintf(stderr, "%s: %s\n", e->d_name, place_error.message);
        failed++;
    }
    if (listed != NULL)
        (void) closedir(listed);
    return failed;
}

int
place_run_all(esdm_plugin_kind kind, const char *suite, const struct CMUnitTest *tests,
              size_t ntests)
{
    size_t tested = 0;
    const char *only = getenv("ESDM_TEST_ONLY");
    const esdm_plugin *plugin = NULL;
    int failed = only == NULL ? find_loadable(kind) : 0;
    if (only != NULL)
        (void) !esdm__plugin_find(kind, only, &plugin, NULL);
    for (size_t i = 0; (plugin = esdm__plugin_at(kind, i)) != NULL; i++) {
        char group[128];
        place_current = plugin;
        place_current_kind = place_kind_of(plugin);
        if (kind != ESDM_PLUGIN_CODEC && place_current_kind == NULL)
            continue;
        if (only != NULL && strcmp(only, plugin->name) != 0)
            continue;
        if (place_current_kind != NULL && place_current_kind->server != NULL &&
            getenv(place_current_kind->server) == NULL)
            continue;
        (void) snprintf(group, sizeof group, "conformance.%s[%s]", suite, plugin->name);
        failed += _cmocka_run_group_tests(group, tests, ntests, NULL, NULL);
        tested++;
    }
    if (tested == 0) {
        (void) fprintf(stderr, "no plug-in to test\n");
        return 1;
    }
    return failed;
}
