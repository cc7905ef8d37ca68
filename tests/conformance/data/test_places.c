/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Making, opening, checking and removing the places of data targets. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data.h"

static void
test_place__dry_run_makes_nothing(void **state)
{
    (void) state;
    place p;
    size_t lines = 0;
    void *target = NULL;
    place_init(&p, place_current_kind);
    assert_ok(data_plugin()->make(&p.config, true, place_count_lines, &lines, &place_error));
    assert_true(lines > 0);
    assert_int_equal(place_count_entries(p.folder), 0);
    assert_status(data_plugin()->open(&p.config, &target, &place_error), ESDM_ENOENT);
    assert_null(target);
    assert_true(strlen(place_error.message) > 0);
    assert_status(data_plugin()->check(&p.config, place_count_lines, &lines, &place_error),
                  ESDM_ENOENT);
    assert_status(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error), ESDM_ENOENT);
    place_clear(&p);
}

static void
test_place__making_twice_changes_nothing(void **state)
{
    (void) state;
    place p;
    size_t lines = 0;
    place_init(&p, place_current_kind);
    assert_ok(data_plugin()->make(&p.config, false, place_count_lines, &lines, &place_error));
    assert_true(lines > 0);
    size_t entries = place_count_entries(p.folder);
    lines = 0;
    assert_ok(data_plugin()->make(&p.config, false, place_count_lines, &lines, &place_error));
    assert_int_equal(lines, 0);
    assert_int_equal(place_count_entries(p.folder), entries);
    assert_ok(data_plugin()->check(&p.config, place_count_lines, &lines, &place_error));
    assert_ok(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error));
    place_clear(&p);
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
        void *target = NULL;
        p.config.json = wrong[i];
        assert_status(data_plugin()->open(&p.config, &target, &place_error), ESDM_EINVAL);
        assert_null(target);
        assert_non_null(strstr(place_error.message, "test.json: targets[0]"));
        assert_status(data_plugin()->make(&p.config, false, NULL, NULL, &place_error), ESDM_EINVAL);
        assert_status(data_plugin()->check(&p.config, NULL, NULL, NULL), ESDM_EINVAL);
    }
    place_clear(&p);
}

static void
test_place__foreign_directory_is_not_touched(void **state)
{
    (void) state;
    skip_if(!place_current_kind->has_directory);
    place p;
    void *target = NULL;
    place_init(&p, place_current_kind);
    assert_int_equal(mkdir(p.dir, 0755), 0);
    place_write_file(p.dir, "precious.nc", "do not touch");
    assert_status(data_plugin()->make(&p.config, true, NULL, NULL, &place_error), ESDM_EEXIST);
    assert_status(data_plugin()->make(&p.config, false, NULL, NULL, &place_error), ESDM_EEXIST);
    assert_non_null(strstr(place_error.message, "precious.nc"));
    assert_status(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error), ESDM_ENOENT);
    assert_status(data_plugin()->open(&p.config, &target, &place_error), ESDM_ENOENT);
    assert_int_equal(place_count_entries(p.dir), 1);
    place_clear(&p);
}

static void
test_place__file_in_the_way_is_an_error(void **state)
{
    (void) state;
    skip_if(!place_current_kind->has_directory || place_current_kind->bucket);
    place p;
    place_init(&p, place_current_kind);
    place_write_file(p.folder, p.name, "a file");
    assert_status(data_plugin()->make(&p.config, false, NULL, NULL, &place_error), ESDM_EEXIST);
    assert_non_null(strstr(place_error.message, p.dir));
    place_clear(&p);
}

static void
expect_refused(const esdm_plugin_config *config, size_t entries, const place *p)
{
    void *target = NULL;
    assert_status(data_plugin()->make(config, false, NULL, NULL, &place_error), ESDM_EEXIST);
    assert_int_equal(place_error.status, ESDM_EEXIST);
    assert_status(data_plugin()->open(config, &target, &place_error), ESDM_EINVAL);
    assert_status(data_plugin()->check(config, NULL, NULL, &place_error), ESDM_EINVAL);
    assert_status(data_plugin()->remove(config, false, NULL, NULL, &place_error), ESDM_EINVAL);
    assert_int_equal(place_count_entries(p->folder), entries);
}

static void
test_place__another_sites_mark_is_respected(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->has_directory);
    size_t entries = place_count_entries(f->place.folder);
    esdm_plugin_config other = f->place.config;
    other.site_id = PLACE_OTHER_SITE;
    expect_refused(&other, entries, &f->place);
    other = f->place.config;
    other.name = "renamed";
    expect_refused(&other, entries, &f->place);
}

static void
rewrite_mark(const place *p, const char *text)
{
    place_write_file(p->dir, "esdm-mark.json", text);
}

static void
test_place__newer_and_damaged_marks_are_told_apart(void **state)
{
    (void) state;
    skip_if(!place_current_kind->has_directory);
    place p;
    void *target = NULL;
    place_init(&p, place_current_kind);
    assert_ok(data_plugin()->make(&p.config, false, NULL, NULL, &place_error));
    rewrite_mark(&p, "{\"format\": 999, \"plugin\": \"x\", \"target\": \"t\", \"site\": \"s\"}");
    assert_status(data_plugin()->open(&p.config, &target, &place_error), ESDM_ENOTSUP);
    assert_non_null(strstr(place_error.message, "newer"));
    assert_status(data_plugin()->make(&p.config, false, NULL, NULL, &place_error), ESDM_ENOTSUP);
    static const char *const damaged[] = {"", "{", "{}", "\"x\"", "{\"format\": \"1\"}"};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        rewrite_mark(&p, damaged[i]);
        assert_status(data_plugin()->open(&p.config, &target, &place_error), ESDM_ECORRUPT);
        assert_status(data_plugin()->make(&p.config, false, NULL, NULL, &place_error),
                      ESDM_ECORRUPT);
        assert_status(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error),
                      ESDM_ECORRUPT);
    }
    assert_null(target);
    place_clear(&p);
}

typedef struct told {
    void *target;
    bool opened;
} told;

static void
note_begun(void *target, void *user)
{
    told *t = user;
    assert_null(t->target);
    assert_false(t->opened);
    t->target = target;
}

static void
note_opened(void *user)
{
    told *t = user;
    assert_non_null(t->target);
    assert_false(t->opened);
    t->opened = true;
}

static esdm_status
open_and_read(const place *p, const char *name, esdm_range *range, told *t, esdm_status *ret_read)
{
    const esdm_target_opening opening = {note_begun, note_opened, t};
    *t = (told){0};
    *ret_read = ESDM_EIO;
    esdm_status status =
        data_plugin()->open_and_read(&p->config, name, range, 1, &opening, ret_read, &place_error);
    assert_int_equal(t->opened, status == ESDM_OK);
    return status;
}

/* Both at once, where the plug-in can: the target is open whatever became of the read, and nothing
 * is read from a place that is not the site's. */
static void
test_place__opened_by_a_read(void **state)
{
    (void) state;
    const esdm_data_plugin *plugin = data_plugin();
    skip_if(plugin->open_and_read == NULL);
    place p;
    told t;
    esdm_status read;
    uint8_t data[8] = {0};
    esdm_range range = {.position = 5, .bytes = sizeof data, .buffer = data};
    place_init(&p, place_current_kind);
    assert_status(open_and_read(&p, PACK "0", &range, &t, &read), ESDM_ENOENT);
    assert_int_equal(read, ESDM_EIO);
    plugin->close(t.target);

    assert_ok(plugin->make(&p.config, false, NULL, NULL, &place_error));
    assert_ok(open_and_read(&p, PACK "0", &range, &t, &read));
    assert_int_equal(read, ESDM_ENOENT);
    assert_int_equal(place_error.status, ESDM_ENOENT);
    data_make_pack(t.target, PACK "0", 0, 1000);
    plugin->close(t.target);

    assert_ok(open_and_read(&p, PACK "0", &range, &t, &read));
    assert_ok(read);
    for (size_t i = 0; i < sizeof data; i++)
        assert_int_equal(data[i], data_byte(0, 5 + i));
    data_check_pack(t.target, PACK "0", 0, 0, 1000);
    plugin->close(t.target);

    assert_ok(open_and_read(&p, "no pack", &range, &t, &read));
    assert_int_equal(read, ESDM_EINVAL);
    plugin->close(t.target);
    assert_ok(plugin->remove(&p.config, false, NULL, NULL, &place_error));
    place_clear(&p);
}

static void
test_place__removal_keeps_what_is_not_ours(void **state)
{
    (void) state;
    place p;
    void *target = NULL;
    size_t lines = 0;
    place_init(&p, place_current_kind);
    assert_ok(data_plugin()->make(&p.config, false, NULL, NULL, &place_error));
    assert_ok(data_plugin()->open(&p.config, &target, &place_error));
    data_make_pack(target, PACK "0", 0, 1000);
    data_plugin()->close(target);
    if (p.dir[0] != '\0')
        place_write_file(p.dir, "notes.txt", "mine");
    size_t entries = place_count_entries(p.folder);
    assert_ok(data_plugin()->remove(&p.config, true, place_count_lines, &lines, &place_error));
    assert_true(lines > 0);
    assert_int_equal(place_count_entries(p.folder), entries);
    assert_ok(data_plugin()->remove(&p.config, false, place_count_lines, &lines, &place_error));
    if (p.dir[0] != '\0')
        assert_int_equal(place_count_entries(p.dir), 1); /* notes.txt */
    assert_status(data_plugin()->open(&p.config, &target, &place_error), ESDM_ENOENT);
    place_clear(&p);
}

static void
test_place__removal_leaves_nothing_behind(void **state)
{
    (void) state;
    place p;
    void *target = NULL;
    place_init(&p, place_current_kind);
    assert_ok(data_plugin()->make(&p.config, false, NULL, NULL, &place_error));
    assert_ok(data_plugin()->open(&p.config, &target, &place_error));
    for (int i = 0; i < 300; i++) {
        char name[80];
        (void) snprintf(name, sizeof name, "%02xbbccddeeff00112233445566778899-2-%x", i % 256, i);
        data_make_pack(target, name, (uint64_t) i, 10);
    }
    data_plugin()->close(target);
    assert_ok(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error));
    assert_int_equal(place_count_entries(p.folder), 0);
    place_clear(&p);
}

static void
test_place__missing_part_is_found_and_made_again(void **state)
{
    fixture *f = *state;
    skip_if(strcmp(place_current->name, "posix") != 0);
    char path[300];
    size_t lines = 0;
    (void) snprintf(path, sizeof path, "%s/aa", f->place.dir);
    assert_int_equal(rmdir(path), 0);
    assert_status(data_plugin()->check(&f->place.config, place_count_lines, &lines, &place_error),
                  ESDM_ENOENT);
    assert_int_equal(lines, 1);
    data_make_pack(f->target, PACK "5", 5, 100);
    data_check_pack(f->target, PACK "5", 5, 0, 100);
    assert_int_equal(rmdir(path), -1);
    (void) snprintf(path, sizeof path, "%s/bb", f->place.dir);
    assert_int_equal(rmdir(path), 0);
    assert_ok(data_plugin()->make(&f->place.config, false, NULL, NULL, &place_error));
    assert_ok(data_plugin()->check(&f->place.config, NULL, NULL, &place_error));
}

/* ---- another user --------------------------------------------------------------------------- */

static void
read_as_nobody(void *user)
{
    const fixture *f = user;
    void *target = NULL;
    void *pack = NULL;
    if (setgid(65534) != 0 || setuid(65534) != 0)
        _exit(10);
    if (data_plugin()->open(&f->place.config, &target, &place_error) != ESDM_OK)
        _exit(11);
    uint8_t byte = 0;
    esdm_range range = {.position = 7, .bytes = 1, .buffer = &byte};
    if (data_plugin()->pack_read(target, PACK "0", &range, 1, &place_error) != ESDM_OK ||
        byte != data_byte(0, 7))
        _exit(12);
    if (data_plugin()->pack_create(target, PACK "1", &pack, &place_error) != ESDM_EACCES ||
        pack != NULL)
        _exit(13);
    if (data_plugin()->pack_remove(target, PACK "0", &place_error) != ESDM_EACCES)
        _exit(14);
    if (data_plugin()->check(&f->place.config, NULL, NULL, &place_error) != ESDM_EACCES)
        _exit(15);
    data_plugin()->close(target);
}

static void
test_place__another_user_can_read(void **state)
{
    fixture *f = *state;
    skip_if(!place_current_kind->shared || place_current_kind->bucket || geteuid() != 0);
    data_make_pack(f->target, PACK "0", 0, 100);
    assert_int_equal(place_in_child(read_as_nobody, f), 0);
    data_check_pack(f->target, PACK "0", 0, 0, 100);
}

static void
make_repeatedly(void *user)
{
    const place *p = user;
    for (int i = 0; i < 3; i++) {
        if (data_plugin()->make(&p->config, false, NULL, NULL, &place_error) != ESDM_OK)
            _exit(1);
    }
}

static void
spawn_makers(void *user)
{
    for (int i = 0; i < 3; i++) {
        if (fork() < 0)
            _exit(2);
    }
    make_repeatedly(user); /* 8 processes; each reports by its parent's wait */
    int status = 0;
    while (wait(&status) > 0) {
        if (status != 0)
            _exit(3);
    }
}

static void
test_place__many_processes_make_it_at_once(void **state)
{
    (void) state;
    skip_if(!place_current_kind->shared);
    for (int round = 0; round < 3; round++) {
        place p;
        place_init(&p, place_current_kind);
        assert_int_equal(place_in_child(spawn_makers, &p), 0);
        assert_ok(data_plugin()->check(&p.config, NULL, NULL, &place_error));
        assert_ok(data_plugin()->remove(&p.config, false, NULL, NULL, &place_error));
        assert_int_equal(place_count_entries(p.folder), 0);
        place_clear(&p);
    }
}

static void
test_place__null_handles_are_accepted(void **state)
{
    (void) state;
    data_plugin()->close(NULL);
    assert_ok(data_plugin()->pack_seal(NULL, &place_error));
}

const struct CMUnitTest data_place_tests[] = {
    cmocka_unit_test(test_place__dry_run_makes_nothing),
    cmocka_unit_test(test_place__making_twice_changes_nothing),
    cmocka_unit_test(test_place__wrong_configuration_is_named),
    cmocka_unit_test(test_place__foreign_directory_is_not_touched),
    cmocka_unit_test(test_place__file_in_the_way_is_an_error),
    WITH_PLACE(test_place__another_sites_mark_is_respected),
    cmocka_unit_test(test_place__newer_and_damaged_marks_are_told_apart),
    cmocka_unit_test(test_place__opened_by_a_read),
    cmocka_unit_test(test_place__removal_keeps_what_is_not_ours),
    cmocka_unit_test(test_place__removal_leaves_nothing_behind),
    WITH_PLACE(test_place__missing_part_is_found_and_made_again),
    WITH_PLACE(test_place__another_user_can_read),
    cmocka_unit_test(test_place__many_processes_make_it_at_once),
    cmocka_unit_test(test_place__null_handles_are_accepted),
};
const size_t data_place_count = sizeof data_place_tests / sizeof data_place_tests[0];
