/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Making, opening, checking and removing stores. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meta.h"

static void
test_place__dry_run_makes_nothing(void **state)
{
    (void) state;
    place p;
    size_t lines = 0;
    void *store = NULL;
    place_init(&p, place_current_kind);
    assert_ok(meta()->make(&p.config, true, place_count_lines, &lines, &place_error));
    assert_true(lines > 0);
    assert_int_equal(place_count_entries(p.folder), 0);
    assert_status(meta()->open(&p.config, false, &store, &place_error), ESDM_ENOENT);
    assert_status(meta()->open(&p.config, true, &store, &place_error), ESDM_ENOENT);
    assert_null(store);
    assert_status(meta()->check(&p.config, NULL, NULL, &place_error), ESDM_ENOENT);
    assert_status(meta()->remove(&p.config, false, NULL, NULL, &place_error), ESDM_ENOENT);
    place_clear(&p);
}

static void
test_place__making_twice_keeps_contents(void **state)
{
    fixture *f = *state;
    size_t lines = 0;
    meta_create(f->store, "kept");
    assert_ok(meta()->make(&f->place.config, false, place_count_lines, &lines, &place_error));
    assert_int_equal(lines, 0);
    esdm_meta_container record;
    assert_ok(meta()->container_find(f->store, "kept", &record, &place_error));
    assert_ok(meta()->check(&f->place.config, place_count_lines, NULL, &place_error));
    assert_ok(meta()->remove(&f->place.config, true, place_count_lines, &lines, &place_error));
    assert_true(lines > 0);
    assert_ok(meta()->container_find(f->store, "kept", &record, &place_error));
}

static void
test_place__wrong_configuration_is_named(void **state)
{
    static const char *const wrong[] = {
        "", "{", "[]", "{\"directory\": 5}", "{\"directory\": \"relative/path\"}", "{}"};
    (void) state;
    skip_if(!place_current_kind->has_directory);
    place p;
    place_init(&p, place_current_kind);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        void *store = NULL;
        p.config.json = wrong[i];
        assert_status(meta()->open(&p.config, false, &store, &place_error), ESDM_EINVAL);
        assert_null(store);
        assert_non_null(strstr(place_error.message, "test.json: targets[0]"));
        assert_status(meta()->make(&p.config, false, NULL, NULL, &place_error), ESDM_EINVAL);
    }
    place_clear(&p);
}

static void
test_place__foreign_directory_is_not_touched(void **state)
{
    (void) state;
    skip_if(!place_current_kind->has_directory);
    place p;
    void *store = NULL;
    place_init(&p, place_current_kind);
    assert_int_equal(mkdir(p.dir, 0755), 0);
    place_write_file(p.dir, "precious.nc", "do not touch");
    assert_status(meta()->make(&p.config, false, NULL, NULL, &place_error), ESDM_EEXIST);
    assert_non_null(strstr(place_error.message, "precious.nc"));
    assert_status(meta()->remove(&p.config, false, NULL, NULL, &place_error), ESDM_ENOENT);
    assert_status(meta()->open(&p.config, false, &store, &place_error), ESDM_ENOENT);
    assert_int_equal(place_count_entries(p.dir), 1);
    place_clear(&p);
}

static void
expect_refused(const esdm_plugin_config *config, const fixture *f)
{
    void *store = NULL;
    size_t entries = place_count_entries(f->place.folder);
    assert_status(meta()->make(config, false, NULL, NULL, &place_error), ESDM_EEXIST);
    assert_status(meta()->open(config, false, &store, &place_error), ESDM_EINVAL);
    assert_status(meta()->check(config, NULL, NULL, &place_error), ESDM_EINVAL);
    assert_status(meta()->remove(config, false, NULL, NULL, &place_error), ESDM_EINVAL);
    assert_null(store);
    assert_int_equal(place_count_entries(f->place.folder), entries);
}

static void
test_place__another_mark_is_respected(void **state)
{
    fixture *f = *state;
    esdm_plugin_config other = f->place.config;
    other.site_id = PLACE_OTHER_SITE;
    expect_refused(&other, f);
    other = f->place.config;
    other.name = "renamed";
    expect_refused(&other, f);
}

static void
test_place__tells_the_id_of_its_site(void **state)
{
    (void) state;
    skip_if(!place_current_kind->durable);
    place p;
    char id[ESDM_META_UUID_BYTES] = "untouched";
    place_init(&p, place_current_kind);
    assert_status(meta()->site_id(&p.config, id, &place_error), ESDM_ENOENT);
    assert_ok(meta()->make(&p.config, true, NULL, NULL, &place_error));
    assert_status(meta()->site_id(&p.config, id, &place_error), ESDM_ENOENT);
    assert_string_equal(id, "untouched");
    assert_ok(meta()->make(&p.config, false, NULL, NULL, &place_error));
    static const char *const known[] = {PLACE_SITE, PLACE_OTHER_SITE, "", NULL};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        memset(id, 0, sizeof id);
        p.config.site_id = known[i];
        assert_ok(meta()->site_id(&p.config, id, &place_error));
        assert_string_equal(id, PLACE_SITE);
    }
    p.config.site_id = PLACE_SITE;
    assert_ok(meta()->remove(&p.config, false, NULL, NULL, &place_error));
    assert_status(meta()->site_id(&p.config, id, &place_error), ESDM_ENOENT);
    place_clear(&p);
}

/* As long as nobody knows the id, no place is one's own. */
static void
test_place__without_an_id_nothing_is_touched(void **state)
{
    fixture *f = *state;
    esdm_plugin_config other = f->place.config;
    other.site_id = "";
    expect_refused(&other, f);
    other.site_id = NULL;
    expect_refused(&other, f);
}

static void
test_place__data_target_cannot_share_the_directory(void **state)
{
    fixture *f = *state;
    const esdm_plugin *plugin = NULL;
    char json[600];
    skip_if(!place_current_kind->has_directory ||
            esdm__plugin_find(ESDM_PLUGIN_DATA, "posix", &plugin, NULL) != ESDM_OK);
    const esdm_data_plugin *data = (const esdm_data_plugin *) plugin;
    (void) snprintf(json, sizeof json, "{\"plugin\": \"posix\", \"directory\": \"%s\"}",
                    f->place.dir);
    esdm_plugin_config config = f->place.config;
    config.json = json;
    assert_status(data->make(&config, false, NULL, NULL, &place_error), ESDM_EEXIST);
    assert_status(data->remove(&config, false, NULL, NULL, &place_error), ESDM_EINVAL);
}

static void
test_place__newer_and_damaged_marks_are_told_apart(void **state)
{
    (void) state;
    skip_if(!place_current_kind->has_directory);
    place p;
    void *store = NULL;
    place_init(&p, place_current_kind);
    assert_ok(meta()->make(&p.config, false, NULL, NULL, &place_error));
    place_write_file(p.dir, "esdm-mark.json",
                     "{\"format\": 999, \"plugin\": \"x\", \"target\": \"t\", \"site\": \"s\"}");
    char id[ESDM_META_UUID_BYTES];
    assert_status(meta()->open(&p.config, false, &store, &place_error), ESDM_ENOTSUP);
    assert_status(meta()->site_id(&p.config, id, &place_error), ESDM_ENOTSUP);
    place_write_file(p.dir, "esdm-mark.json", "{\"format\": 1}");
    assert_status(meta()->open(&p.config, false, &store, &place_error), ESDM_ECORRUPT);
    assert_status(meta()->site_id(&p.config, id, &place_error), ESDM_ECORRUPT);
    place_write_file(p.dir, "esdm-mark.json",
                     "{\"format\": 1, \"plugin\": \"sqlite\", \"target\": \"x\", \"site\": \"s\"}");
    assert_status(meta()->site_id(&p.config, id, &place_error), ESDM_EINVAL);
    assert_null(store);
    place_clear(&p);
}

static void
test_place__read_only_handle_reads_and_refuses_writes(void **state)
{
    fixture *f = *state;
    esdm_meta_committed first = meta_create(f->store, "a");
    void *reader = meta_open(f, true);
    esdm_meta_committed committed = {.container = 77};
    uint64_t number = 77;
    assert_int_equal(meta_pin(reader, "a", 0).snapshot, 1);
    assert_status(meta_try_create(reader, "b", &committed), ESDM_EACCES);
    assert_status(meta_append(reader, first.container, 1, &committed), ESDM_EACCES);
    assert_status(meta()->container_remove(reader, "a", &number, &place_error), ESDM_EACCES);
    assert_status(meta()->container_move(reader, "a", "b", true, NULL, &number, &place_error),
                  ESDM_EACCES);
    assert_status(meta()->forget(reader, first.container, &place_error), ESDM_EACCES);
    assert_int_equal(committed.container, 77);
    assert_int_equal(number, 77);
    assert_ok(meta_append(f->store, first.container, 1, &committed));
    assert_int_equal(meta_pin(reader, "a", 0).snapshot, 2); /* sees later commits */
    meta()->close(reader);
}

static void
make_and_write(void *user)
{
    const place *p = user;
    char name[32];
    void *store = NULL;
    esdm_meta_committed committed;
    for (int i = 0; i < 3; i++) {
        if (fork() < 0)
            _exit(2);
    }
    (void) snprintf(name, sizeof name, "c%ld", (long) getpid());
    if (meta()->make(&p->config, false, NULL, NULL, &place_error) != ESDM_OK)
        _exit(3);
    if (meta()->open(&p->config, false, &store, &place_error) != ESDM_OK)
        _exit(4);
    if (meta_try_create(store, name, &committed) != ESDM_OK)
        _exit(5);
    meta()->close(store);
    int status = 0;
    while (wait(&status) > 0) {
        if (status != 0)
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 6);
    }
}

static bool
count_container(const char *name, const esdm_meta_container *record, void *user)
{
    (void) name, (void) record;
    ++*(size_t *) user;
    return true;
}

static void
test_place__many_processes_make_it_at_once(void **state)
{
    (void) state;
    skip_if(!place_current_kind->shared);
    for (int round = 0; round < 4; round++) {
        fixture f = {0};
        size_t containers = 0;
        place_init(&f.place, place_current_kind);
        int status = place_in_child(make_and_write, &f.place);
        assert_int_equal(status, 0);
        f.store = meta_open(&f, true);
        assert_ok(
            meta()->container_list(f.store, NULL, count_container, &containers, &place_error));
        assert_int_equal(containers, 8);
        meta()->close(f.store);
        assert_ok(meta()->remove(&f.place.config, false, NULL, NULL, &place_error));
        place_clear(&f.place);
    }
}

static void
test_place__removal_keeps_what_is_not_ours(void **state)
{
    (void) state;
    skip_if(!place_current_kind->has_directory);
    place p;
    place_init(&p, place_current_kind);
    assert_ok(meta()->make(&p.config, false, NULL, NULL, &place_error));
    place_write_file(p.dir, "notes.txt", "mine");
    assert_ok(meta()->remove(&p.config, false, place_count_lines, NULL, &place_error));
    assert_int_equal(place_count_entries(p.dir), 1);
    place_clear(&p);
}

static void
test_place__null_handle_is_accepted(void **state)
{
    (void) state;
    meta()->close(NULL);
}

const struct CMUnitTest meta_place_tests[] = {
    cmocka_unit_test(test_place__dry_run_makes_nothing),
    WITH_STORE(test_place__making_twice_keeps_contents),
    cmocka_unit_test(test_place__wrong_configuration_is_named),
    cmocka_unit_test(test_place__foreign_directory_is_not_touched),
    WITH_STORE(test_place__another_mark_is_respected),
    cmocka_unit_test(test_place__tells_the_id_of_its_site),
    WITH_STORE(test_place__without_an_id_nothing_is_touched),
    WITH_STORE(test_place__data_target_cannot_share_the_directory),
    cmocka_unit_test(test_place__newer_and_damaged_marks_are_told_apart),
    WITH_STORE(test_place__read_only_handle_reads_and_refuses_writes),
    cmocka_unit_test(test_place__many_processes_make_it_at_once),
    cmocka_unit_test(test_place__removal_keeps_what_is_not_ours),
    cmocka_unit_test(test_place__null_handle_is_accepted),
};
const size_t meta_place_count = sizeof meta_place_tests / sizeof meta_place_tests[0];
