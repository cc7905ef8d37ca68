/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_SITE_SUPPORT_H
#define ESDM_TESTS_SITE_SUPPORT_H

/** @file What the tests of making sites share: a folder of their own, and parts to put into it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/registry.h"
#include "site/site.h"

static const char config[] = "{\"site\":{\"name\":\"t\"},\"targets\":["
                             "{\"name\":\"a\",\"plugin\":\"posix\",\"directory\":\"a\"},"
                             "{\"name\":\"b\",\"plugin\":\"posix\",\"directory\":\"b\"}],"
                             "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"meta\"}}";

typedef struct lines {
    size_t count;
    char text[16384];
} lines;

static inline void
collect(const char *line, void *user)
{
    lines *all = user;
    size_t used = strlen(all->text);
    (void) snprintf(all->text + used, sizeof all->text - used, "%s\n", line);
    all->count++;
}

static inline int
make_folder(void **state)
{
    /* Making a site syncs, which takes long on a disk. */
    char *path = strdup(access("/dev/shm", W_OK) == 0 ? "/dev/shm/esdm-test-make-XXXXXX"
                                                      : "/tmp/esdm-test-make-XXXXXX");
    if (path == NULL || mkdtemp(path) == NULL || chdir(path) != 0)
        return -1;
    *state = path;
    static const char *const unset[] = {"ESDM_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME"};
    for (size_t i = 0; i < 3; i++)
        (void) unsetenv(unset[i]);
    return setenv("HOME", path, 1);
}

static inline int
remove_folder(void **state)
{
    char command[128];
    (void) snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'",
                    (const char *) *state, (const char *) *state);
    int failed = chdir("/") != 0 || system(command) != 0;
    free(*state);
    return failed;
}

static inline void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void) fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static inline bool
is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static inline void
succeeds(esdm_status status, const esdm_error *err)
{
    if (status != ESDM_OK)
        fail_msg("%s", err->message);
}

static inline void
create(void)
{
    const esdm_site_options options = {.config_json = config};
    esdm_error err;
    succeeds(esdm_site_create(&options, &err), &err);
}

/* Publishes an empty container through the store itself. */
static inline void
add_container(const char *name)
{
    esdm__site *site = NULL;
    const esdm_plugin *plugin = NULL;
    esdm_plugin_config store_config;
    void *store = NULL;
    esdm_error err;
    succeeds(esdm__site_load(config, NULL, &site, &err), &err);
    succeeds(esdm__site_resolve(site, &err), &err);
    succeeds(esdm__plugin_find(ESDM_PLUGIN_META, "sqlite", &plugin, &err), &err);
    const esdm_meta_plugin *meta = (const esdm_meta_plugin *) plugin;
    esdm__site_plugin_config(site, &site->metadata, &store_config);
    succeeds(meta->open(&store_config, false, &store, &err), &err);
    char uuid[ESDM__UUID_BYTES];
    esdm__uuid_new(uuid);
    const esdm_meta_commit commit = {.kind = ESDM_META_CREATE,
                                     .name = name,
                                     .uuid = uuid,
                                     .document = "{}",
                                     .document_bytes = 2,
                                     .writer = "test",
                                     .message = "",
                                     .history = 1};
    esdm_meta_committed committed;
    succeeds(meta->commit(store, &commit, &committed, &err), &err);
    meta->close(store);
    esdm__site_free(site);
}

#define A_TARGET "\"targets\":[{\"name\":\"a\",\"plugin\":\"posix\",\"directory\":\"a\"}]"
#define SITE(identity, metadata)                                                                   \
    "{\"site\":{\"name\":\"t\"" identity "}," A_TARGET                                             \
    ",\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"" metadata "\"}}"
#define ID       "0123456789abcdef0123456789abcdef"
#define OTHER_ID "fedcba9876543210fedcba9876543210"

static inline esdm_status
create_from(const char *text, esdm_error *err)
{
    const esdm_site_options options = {.config_json = text};
    return esdm_site_create(&options, err);
}

/* The id in a mark. */
static inline void
marked_id(const char *folder, char ret_id[ESDM__UUID_BYTES])
{
    char path[64], text[512];
    (void) snprintf(path, sizeof path, "%s/esdm-mark.json", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    const char *at = strstr(text, "\"site\": \"");
    assert_non_null(at);
    (void) snprintf(ret_id, ESDM__UUID_BYTES, "%s", at + strlen("\"site\": \""));
}

static inline void
add_pack(const char *folder, const char *container, const char *text)
{
    char path[128];
    (void) snprintf(path, sizeof path, "%s/%.2s/%s-01-0", folder, container, container);
    write_file(path, text);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

#endif
