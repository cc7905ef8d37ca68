/* SPDX-License-Identifier: LGPL-3.0-or-later */
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

static void
collect(const char *line, void *user)
{
    lines *all = user;
    size_t used = strlen(all->text);
    (void) snprintf(all->text + used, sizeof all->text - used, "%s\n", line);
    all->count++;
}

static int
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

static int
remove_folder(void **state)
{
    char command[128];
    (void) snprintf(command, sizeof command, "chmod -R u+rwX '%s'; rm -rf '%s'",
                    (const char *) *state, (const char *) *state);
    int failed = chdir("/") != 0 || system(command) != 0;
    free(*state);
    return failed;
}

static void
write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void) fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static bool
is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void
succeeds(esdm_status status, const esdm_error *err)
{
    if (status != ESDM_OK)
        fail_msg("%s", err->message);
}

static void
create(void)
{
    const esdm_site_options options = {.config_json = config};
    esdm_error err;
    succeeds(esdm_site_create(&options, &err), &err);
}

/* Publishes an empty container through the store itself. */
static void
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

/* ---- create ------------------------------------------------------------------------------- */

static void
test_create__makes_every_part_and_repeats(void **state)
{
    (void) state;
    lines first = {0}, second = {0};
    esdm_site_options options = {.config_json = config, .report = collect, .user = &first};
    esdm_error err;
    succeeds(esdm_site_create(&options, &err), &err);
    assert_true(is_there("a") && is_there("b") && is_there("meta"));
    assert_true(first.count >= 3);
    options.user = &second;
    succeeds(esdm_site_create(&options, &err), &err);
    assert_true(second.count < first.count);
}

static void
test_create__dry_run_makes_nothing(void **state)
{
    (void) state;
    lines all = {0};
    const esdm_site_options options = {
        .config_json = config, .dry_run = true, .report = collect, .user = &all};
    esdm_error err;
    succeeds(esdm_site_create(&options, &err), &err);
    assert_true(all.count >= 3);
    assert_false(is_there("a") || is_there("b") || is_there("meta"));
}

static void
test_create__foreign_folder_stops_before_anything_is_made(void **state)
{
    (void) state;
    assert_int_equal(mkdir("b", 0700), 0);
    write_file("b/thesis.txt", "years of work");
    const esdm_site_options options = {.config_json = config};
    esdm_error err = {0};
    assert_int_equal(esdm_site_create(&options, &err), ESDM_EEXIST);
    assert_non_null(strstr(err.message, "/b"));
    assert_false(is_there("a") || is_there("meta"));
    assert_true(is_there("b/thesis.txt"));
}

static void
test_create__another_site_may_not_take_the_folders(void **state)
{
    (void) state;
    create();
    const esdm_site_options options = {
        .config_json = "{\"site\":{\"name\":\"other\"},\"targets\":[{\"name\":\"a\","
                       "\"plugin\":\"posix\",\"directory\":\"a\"}],"
                       "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"meta2\"}}"};
    esdm_error err = {0};
    assert_int_equal(esdm_site_create(&options, &err), ESDM_EEXIST);
    assert_false(is_there("meta2"));
}

static void
test_create__volatile_targets_do_not_last(void **state)
{
    (void) state;
    esdm_site_options options = {
        .config_json = "{\"targets\":[{\"name\":\"a\",\"plugin\":\"mem\"}],\"metadata\":"
                       "{\"plugin\":\"sqlite\",\"directory\":\"meta\"}}",
        .lasting = true};
    esdm_error err = {0};
    assert_int_equal(esdm_site_create(&options, &err), ESDM_ENOTSUP);
    assert_non_null(strstr(err.message, "exists only inside one process"));
    assert_false(is_there("meta"));
    options.lasting = false;
    succeeds(esdm_site_create(&options, &err), &err);
    succeeds(esdm_site_check(&options, &err), &err);
    succeeds(esdm_site_remove(&options, &err), &err);
}

/* ---- identity ----------------------------------------------------------------------------- */

#define A_TARGET "\"targets\":[{\"name\":\"a\",\"plugin\":\"posix\",\"directory\":\"a\"}]"
#define SITE(identity, metadata)                                                                   \
    "{\"site\":{\"name\":\"t\"" identity "}," A_TARGET                                             \
    ",\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"" metadata "\"}}"
#define ID       "0123456789abcdef0123456789abcdef"
#define OTHER_ID "fedcba9876543210fedcba9876543210"

static esdm_status
create_from(const char *text, esdm_error *err)
{
    const esdm_site_options options = {.config_json = text};
    return esdm_site_create(&options, err);
}

/* The id in a mark. */
static void
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

static void
add_pack(const char *folder, const char *container, const char *text)
{
    char path[128];
    (void) snprintf(path, sizeof path, "%s/%.2s/%s-01-0", folder, container, container);
    write_file(path, text);
}

static void
test_identity__is_the_stores_and_random(void **state)
{
    (void) state;
    char store[ESDM__UUID_BYTES], target[ESDM__UUID_BYTES], again[ESDM__UUID_BYTES];
    create();
    marked_id("meta", store);
    marked_id("a", target);
    assert_string_equal(store, target);
    marked_id("b", target);
    assert_string_equal(store, target);
    assert_int_equal(system("rm -rf a b meta"), 0);
    create();
    marked_id("meta", again);
    assert_string_not_equal(store, again);
}

static void
test_identity__same_name_does_not_take_over_the_targets(void **state)
{
    (void) state;
    esdm_error err = {0};
    succeeds(create_from(SITE("", "meta"), &err), &err);
    add_pack("a", ID, "data");
    assert_int_equal(create_from(SITE("", "meta2"), &err), ESDM_EEXIST);
    assert_non_null(strstr(err.message, "targets[0]: directory '"));
    assert_non_null(strstr(err.message, "belongs to another site"));
    assert_non_null(strstr(err.message, "choose another place"));
    assert_false(is_there("meta2"));
    esdm_site_options options = {.config_json = SITE("", "meta2"), .remove_data = true};
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "belongs to another site"));
    options.dry_run = true;
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_EINVAL);
    uint64_t containers = 7, bytes = 7;
    assert_int_equal(esdm_site_contents(&options, &containers, &bytes, &err), ESDM_EINVAL);
    assert_int_equal(containers, 7);
    assert_true(is_there("a/01/" ID "-01-0"));
    /* Nor with a store of its own. */
    succeeds(create_from("{\"site\":{\"name\":\"t\"},\"targets\":[{\"name\":\"a\",\"plugin\":"
                         "\"posix\",\"directory\":\"b\"}],\"metadata\":{\"plugin\":\"sqlite\","
                         "\"directory\":\"meta2\"}}",
                         &err),
             &err);
    assert_int_equal(create_from(SITE("", "meta2"), &err), ESDM_EEXIST);
    options.dry_run = false;
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "the metadata store of this one has id"));
    assert_true(is_there("a/01/" ID "-01-0") && is_there("meta2/catalogue.sqlite"));
}

static void
test_identity__stated_id_is_used_and_must_agree(void **state)
{
    (void) state;
    char id[ESDM__UUID_BYTES];
    esdm_error err = {0};
    succeeds(create_from(SITE(",\"id\":\"" ID "\"", "meta"), &err), &err);
    marked_id("a", id);
    assert_string_equal(id, ID);
    succeeds(create_from(SITE("", "meta"), &err), &err); /* the store tells it */
    assert_int_equal(create_from(SITE(",\"id\":\"" OTHER_ID "\"", "meta"), &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "site.id"));
    assert_non_null(strstr(err.message, ID));
    assert_non_null(strstr(err.message, OTHER_ID));
    lines all = {0};
    const esdm_site_options options = {.config_json = SITE(",\"id\":\"" OTHER_ID "\"", "meta"),
                                       .remove_data = true,
                                       .report = collect,
                                       .user = &all};
    assert_int_equal(esdm_site_check(&options, &err), ESDM_EINVAL);
    assert_non_null(strstr(all.text, "site.id"));
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_EINVAL);
    assert_true(is_there("a") && is_there("meta"));
    /* A copied id is no claim to the targets either. */
    assert_int_equal(create_from(SITE(",\"id\":\"" ID "\"", "meta2"), &err), ESDM_EEXIST);
    assert_false(is_there("meta2"));
}

static void
test_identity__lost_store_is_told_and_nothing_is_taken_over(void **state)
{
    (void) state;
    create();
    add_pack("a", ID, "data");
    assert_int_equal(system("rm -rf meta"), 0);
    esdm_error err = {0};
    assert_int_equal(create_from(config, &err), ESDM_EEXIST);
    assert_non_null(strstr(err.message, "the metadata store of this one is not there"));
    assert_false(is_there("meta"));
    lines all = {0};
    const esdm_site_options options = {
        .config_json = config, .remove_data = true, .report = collect, .user = &all};
    assert_int_equal(esdm_site_check(&options, &err), ESDM_EINVAL);
    assert_non_null(strstr(all.text, "targets[0]: directory '"));
    assert_non_null(strstr(all.text, "targets[1]: directory '"));
    assert_non_null(strstr(all.text, "/meta' does not exist"));
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_EINVAL);
    assert_true(is_there("a/01/" ID "-01-0"));
}

static void
test_identity__interrupted_making_can_be_repeated(void **state)
{
    (void) state;
    char before[ESDM__UUID_BYTES], after[ESDM__UUID_BYTES];
    create();
    marked_id("meta", before);
    assert_int_equal(system("rm -rf a b meta/catalogue.sqlite*"), 0); /* the store comes first */
    create();
    marked_id("a", after);
    assert_string_equal(before, after);
    const esdm_site_options options = {.config_json = config};
    esdm_error err = {0};
    succeeds(esdm_site_check(&options, &err), &err);
}

static void
test_identity__name_may_change(void **state)
{
    (void) state;
    esdm_error err = {0};
    succeeds(create_from(SITE("", "meta"), &err), &err);
    const esdm_site_options options = {
        .config_json =
            "{" A_TARGET ",\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"meta\"}}"};
    succeeds(esdm_site_check(&options, &err), &err);
}

static void
test_identity__many_processes_agree_on_one(void **state)
{
    (void) state;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++) {
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) {
                esdm_error err = {0};
                esdm_status status = create_from(config, &err);
                if (status != ESDM_OK)
                    (void) fprintf(stderr, "%s\n", err.message);
                _exit(status == ESDM_OK ? 0 : 1);
            }
        }
        for (int i = 0; i < 8; i++) {
            int how = -1;
            assert_true(wait(&how) > 0);
            assert_int_equal(how, 0);
        }
        const esdm_site_options options = {.config_json = config};
        esdm_error err = {0};
        succeeds(esdm_site_check(&options, &err), &err);
        assert_int_equal(system("rm -rf a b meta"), 0);
    }
}

/* ---- check -------------------------------------------------------------------------------- */

static void
test_check__reports_each_healthy_part(void **state)
{
    (void) state;
    create();
    add_container("one");
    lines all = {0};
    const esdm_site_options options = {.config_json = config, .report = collect, .user = &all};
    esdm_error err;
    succeeds(esdm_site_check(&options, &err), &err);
    assert_non_null(strstr(all.text, "target \"a\" (posix): good, 0 B in 0 packs"));
    assert_non_null(strstr(all.text, "target \"b\" (posix): good"));
    assert_non_null(strstr(all.text, "metadata (sqlite): good, 1 container\n"));
}

static void
test_check__reports_all_problems_and_returns_the_first(void **state)
{
    (void) state;
    create();
    assert_int_equal(rename("a", "gone"), 0);
    assert_int_equal(system("rm meta/catalogue.sqlite*"), 0);
    lines all = {0};
    const esdm_site_options options = {.config_json = config, .report = collect, .user = &all};
    esdm_error err = {0};
    assert_int_equal(esdm_site_check(&options, &err), ESDM_ENOENT);
    assert_non_null(strstr(err.message, "/a"));
    assert_non_null(strstr(all.text, "/a"));
    assert_non_null(strstr(all.text, "catalogue.sqlite"));
    assert_non_null(strstr(all.text, "target \"b\" (posix): good"));
}

static void
test_check__packs_without_a_container_are_noted(void **state)
{
    (void) state;
    create();
    add_container("one");
    lines all = {0};
    const esdm_site_options options = {.config_json = config, .report = collect, .user = &all};
    esdm_error err;
    succeeds(esdm_site_check(&options, &err), &err);
    assert_null(strstr(all.text, "note:"));
    add_pack("a", ID, "four");
    add_pack("b", OTHER_ID, "twelve bytes");
    all = (lines){0};
    succeeds(esdm_site_check(&options, &err), &err);
    assert_non_null(strstr(all.text, "note: 2 packs (16 B) belong to no container"));
}

/* ---- contents ----------------------------------------------------------------------------- */

static void
test_contents__counts_containers(void **state)
{
    (void) state;
    const esdm_site_options options = {.config_json = config};
    uint64_t containers = 99, bytes = 99;
    esdm_error err = {0};
    assert_int_equal(esdm_site_contents(&options, &containers, &bytes, &err), ESDM_ENOENT);
    assert_non_null(strstr(err.message, "esdm-mkfs"));
    assert_int_equal(containers, 99);
    create();
    succeeds(esdm_site_contents(&options, &containers, &bytes, &err), &err);
    assert_int_equal(containers, 0);
    assert_int_equal(bytes, 0);
    add_container("one");
    add_container("two");
    succeeds(esdm_site_contents(&options, &containers, &bytes, &err), &err);
    assert_int_equal(containers, 2);
}

/* ---- remove ------------------------------------------------------------------------------- */

static void
test_remove__empty_site_goes_without_asking(void **state)
{
    (void) state;
    create();
    write_file("neighbour", "stays");
    const esdm_site_options options = {.config_json = config};
    esdm_error err;
    succeeds(esdm_site_remove(&options, &err), &err);
    assert_false(is_there("a") || is_there("b") || is_there("meta"));
    assert_true(is_there("neighbour"));
}

static void
test_remove__containers_need_consent(void **state)
{
    (void) state;
    create();
    add_container("one");
    esdm_site_options options = {.config_json = config};
    esdm_error err = {0};
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_EEXIST);
    assert_non_null(strstr(err.message, "holds 1 container and 0 B in 0 packs;"));
    assert_true(is_there("a") && is_there("b") && is_there("meta"));
    uint64_t containers = 0, bytes = 0;
    succeeds(esdm_site_contents(&options, &containers, &bytes, &err), &err);
    assert_int_equal(containers, 1);
    options.remove_data = true;
    succeeds(esdm_site_remove(&options, &err), &err);
    assert_false(is_there("a") || is_there("b") || is_there("meta"));
}

static void
test_remove__packs_without_containers_need_consent(void **state)
{
    (void) state;
    create();
    add_pack("b", ID, "data");
    esdm_site_options options = {.config_json = config};
    esdm_error err = {0};
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_EEXIST);
    assert_non_null(strstr(err.message, "holds 0 containers and 4 B in 1 pack;"));
    assert_true(is_there("a") && is_there("b/01/" ID "-01-0") && is_there("meta"));
    options.remove_data = true;
    succeeds(esdm_site_remove(&options, &err), &err);
    assert_false(is_there("a") || is_there("b") || is_there("meta"));
}

static void
test_remove__dry_run_lists_and_removes_nothing(void **state)
{
    (void) state;
    create();
    add_container("one");
    lines all = {0};
    const esdm_site_options options = {
        .config_json = config, .dry_run = true, .report = collect, .user = &all};
    esdm_error err;
    succeeds(esdm_site_remove(&options, &err), &err);
    assert_non_null(strstr(all.text, "/a"));
    assert_non_null(strstr(all.text, "/b"));
    assert_non_null(strstr(all.text, "/meta"));
    uint64_t containers = 0, bytes = 0;
    succeeds(esdm_site_contents(&options, &containers, &bytes, &err), &err);
    assert_int_equal(containers, 1);
}

static void
test_remove__folder_of_another_site_stops_before_anything_goes(void **state)
{
    (void) state;
    create();
    const esdm_site_options other = {
        .config_json = "{\"site\":{\"name\":\"other\"},\"targets\":[{\"name\":\"b\","
                       "\"plugin\":\"posix\",\"directory\":\"b\"}],"
                       "\"metadata\":{\"plugin\":\"sqlite\",\"directory\":\"meta2\"}}"};
    esdm_error err = {0};
    assert_int_equal(system("rm -rf b"), 0);
    succeeds(esdm_site_create(&other, &err), &err);
    const esdm_site_options options = {.config_json = config, .remove_data = true};
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "/b"));
    assert_true(is_there("a") && is_there("meta") && is_there("b") && is_there("meta2"));
}

static void
test_remove__unmarked_folder_is_left_alone(void **state)
{
    (void) state;
    create();
    assert_int_equal(system("rm -rf b && mkdir b && echo text > b/thesis.txt"), 0);
    const esdm_site_options options = {.config_json = config, .remove_data = true};
    esdm_error err;
    succeeds(esdm_site_remove(&options, &err), &err);
    assert_false(is_there("a") || is_there("meta"));
    assert_true(is_there("b/thesis.txt"));
}

static void
test_remove__site_that_was_never_made_is_not_found(void **state)
{
    (void) state;
    const esdm_site_options options = {.config_json = config, .remove_data = true};
    esdm_error err = {0};
    assert_int_equal(esdm_site_remove(&options, &err), ESDM_ENOENT);
    assert_non_null(strstr(err.message, "nothing of the site \"t\""));
}

static void
test_remove__interrupted_removal_can_be_repeated(void **state)
{
    (void) state;
    create();
    assert_int_equal(system("rm -rf a"), 0);
    lines all = {0};
    const esdm_site_options options = {.config_json = config, .report = collect, .user = &all};
    esdm_error err;
    succeeds(esdm_site_remove(&options, &err), &err);
    assert_non_null(strstr(all.text, "targets[0]: nothing to remove"));
    assert_false(is_there("b") || is_there("meta"));
}

/* ---- the embedded default ----------------------------------------------------------------- */

static int
make_default_site(void)
{
    esdm__site *site = NULL;
    esdm_error err = {0};
    esdm_status status = esdm__site_load(NULL, NULL, &site, &err);
    if (status == ESDM_OK)
        status = esdm__site_make(site, false, NULL, NULL, &err);
    if (status != ESDM_OK)
        (void) fprintf(stderr, "%s\n", err.message);
    esdm__site_free(site);
    return status == ESDM_OK ? 0 : 1;
}

static void
test_embedded__many_processes_may_make_it_at_once(void **state)
{
    (void) state;
    if (is_there("/etc/esdm/site.json"))
        skip();
    for (int i = 0; i < 8; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(make_default_site());
    }
    for (int i = 0; i < 8; i++) {
        int how = -1;
        assert_true(wait(&how) > 0);
        assert_int_equal(how, 0);
    }
    struct stat info;
    assert_int_equal(stat(".local/share/esdm/data", &info), 0);
    assert_int_equal(stat(".local/share/esdm", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    esdm_error err;
    succeeds(esdm_site_check(NULL, &err), &err);
    succeeds(esdm_site_remove(NULL, &err), &err);
    assert_false(is_there(".local/share/esdm"));
    assert_true(is_there(".local/share"));
}

static void
test_embedded__unwritable_home_is_an_error(void **state)
{
    (void) state;
    if (is_there("/etc/esdm/site.json") || geteuid() == 0)
        skip(); /* nothing is unwritable for root */
    assert_int_equal(mkdir(".local", 0500), 0);
    esdm__site *site = NULL;
    esdm_error err;
    succeeds(esdm__site_load(NULL, NULL, &site, &err), &err);
    assert_int_equal(esdm__site_make(site, false, NULL, NULL, &err), ESDM_EACCES);
    assert_non_null(strstr(err.message, "the default site cannot be made"));
    esdm__site_free(site);
}

int
main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_create__makes_every_part_and_repeats),
        IN_FOLDER(test_create__dry_run_makes_nothing),
        IN_FOLDER(test_create__foreign_folder_stops_before_anything_is_made),
        IN_FOLDER(test_create__another_site_may_not_take_the_folders),
        IN_FOLDER(test_create__volatile_targets_do_not_last),
        IN_FOLDER(test_identity__is_the_stores_and_random),
        IN_FOLDER(test_identity__same_name_does_not_take_over_the_targets),
        IN_FOLDER(test_identity__stated_id_is_used_and_must_agree),
        IN_FOLDER(test_identity__lost_store_is_told_and_nothing_is_taken_over),
        IN_FOLDER(test_identity__interrupted_making_can_be_repeated),
        IN_FOLDER(test_identity__name_may_change),
        IN_FOLDER(test_identity__many_processes_agree_on_one),
        IN_FOLDER(test_check__reports_each_healthy_part),
        IN_FOLDER(test_check__reports_all_problems_and_returns_the_first),
        IN_FOLDER(test_check__packs_without_a_container_are_noted),
        IN_FOLDER(test_contents__counts_containers),
        IN_FOLDER(test_remove__empty_site_goes_without_asking),
        IN_FOLDER(test_remove__containers_need_consent),
        IN_FOLDER(test_remove__packs_without_containers_need_consent),
        IN_FOLDER(test_remove__dry_run_lists_and_removes_nothing),
        IN_FOLDER(test_remove__folder_of_another_site_stops_before_anything_goes),
        IN_FOLDER(test_remove__unmarked_folder_is_left_alone),
        IN_FOLDER(test_remove__site_that_was_never_made_is_not_found),
        IN_FOLDER(test_remove__interrupted_removal_can_be_repeated),
        IN_FOLDER(test_embedded__many_processes_may_make_it_at_once),
        IN_FOLDER(test_embedded__unwritable_home_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
