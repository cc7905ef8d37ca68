/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Sites are made, checked and removed, and nothing of somebody else's with them. */
#include "site_support.h"

#include "base/site_packs.h"

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
    assert_null(strstr(all.text, "belong to no container"));
    add_pack("a", ID, "four");
    add_pack("b", OTHER_ID, "twelve bytes");
    all = (lines){0};
    succeeds(esdm_site_check(&options, &err), &err);
    assert_non_null(strstr(all.text, "note: 2 packs (16 B) belong to no container"));
}

static void
test_check__a_site_without_journal_and_backup_is_noted(void **state)
{
    (void) state;
    create();
    lines all = {0};
    const esdm_site_options options = {.config_json = config, .report = collect, .user = &all};
    esdm_error err;
    succeeds(esdm_site_check(&options, &err), &err);
    assert_null(strstr(all.text, "note:")); /* nothing can be lost */
    add_container("one");
    all = (lines){0};
    succeeds(esdm_site_check(&options, &err), &err);
    assert_non_null(strstr(all.text, "note: neither a journal nor a backup"));
    add_pack("b", ESDM__JOURNAL_PACKS, "a journal");
    all = (lines){0};
    succeeds(esdm_site_check(&options, &err), &err);
    assert_null(strstr(all.text, "note:"));
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
        status = esdm__site_make(site, false, false, NULL, NULL, &err);
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
    assert_int_equal(esdm__site_make(site, false, false, NULL, NULL, &err), ESDM_EACCES);
    assert_non_null(strstr(err.message, "the default site cannot be made"));
    esdm__site_free(site);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_create__makes_every_part_and_repeats),
        IN_FOLDER(test_create__dry_run_makes_nothing),
        IN_FOLDER(test_create__foreign_folder_stops_before_anything_is_made),
        IN_FOLDER(test_create__another_site_may_not_take_the_folders),
        IN_FOLDER(test_create__volatile_targets_do_not_last),
        IN_FOLDER(test_check__reports_each_healthy_part),
        IN_FOLDER(test_check__reports_all_problems_and_returns_the_first),
        IN_FOLDER(test_check__packs_without_a_container_are_noted),
        IN_FOLDER(test_check__a_site_without_journal_and_backup_is_noted),
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
