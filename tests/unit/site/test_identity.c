/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Whose a site is: the random id in the mark of its metadata store. */

#include "site_support.h"

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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_identity__is_the_stores_and_random),
        IN_FOLDER(test_identity__same_name_does_not_take_over_the_targets),
        IN_FOLDER(test_identity__stated_id_is_used_and_must_agree),
        IN_FOLDER(test_identity__lost_store_is_told_and_nothing_is_taken_over),
        IN_FOLDER(test_identity__interrupted_making_can_be_repeated),
        IN_FOLDER(test_identity__name_may_change),
        IN_FOLDER(test_identity__many_processes_agree_on_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
