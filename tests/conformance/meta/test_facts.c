/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Facts: small texts beside the catalogue. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "meta.h"

static void
expect_fact(void *store, const char *name, const char *text)
{
    char *found = NULL;
    if (text == NULL) {
        assert_status(meta()->fact_get(store, name, &found, &place_error), ESDM_ENOENT);
        assert_null(found);
        return;
    }
    assert_ok(meta()->fact_get(store, name, &found, &place_error));
    assert_string_equal(found, text);
    free(found);
}

static void
test_facts__are_kept_replaced_and_removed(void **state)
{
    fixture *f = *state;
    expect_fact(f->store, "model", NULL);
    assert_ok(meta()->fact_put(f->store, "model", "{\"a\": \"\xc3\xa4\"}", &place_error));
    expect_fact(f->store, "model", "{\"a\": \"\xc3\xa4\"}");
    void *other = meta_open(f, true);
    expect_fact(other, "model", "{\"a\": \"\xc3\xa4\"}");
    assert_ok(meta()->fact_put(f->store, "model", "", &place_error));
    expect_fact(other, "model", "");
    assert_status(meta()->fact_put(other, "model", "x", &place_error), ESDM_EACCES);
    meta()->close(other);
    assert_ok(meta()->fact_put(f->store, "model", NULL, &place_error));
    assert_ok(meta()->fact_put(f->store, "model", NULL, &place_error));
    expect_fact(f->store, "model", NULL);
}

static void
test_facts__are_as_long_as_need_be(void **state)
{
    fixture *f = *state;
    size_t bytes = 3 << 20;
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, 'x', bytes);
    text[bytes] = '\0';
    assert_ok(meta()->fact_put(f->store, "long", text, &place_error));
    expect_fact(f->store, "long", text);
    free(text);
}

static void
test_facts__bad_names_are_refused(void **state)
{
    fixture *f = *state;
    char name[ESDM_META_FACT_NAME_MAX + 2];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_status(meta()->fact_put(f->store, name, "x", &place_error), ESDM_EINVAL);
    name[ESDM_META_FACT_NAME_MAX] = '\0';
    assert_ok(meta()->fact_put(f->store, name, "x", &place_error));
    assert_status(meta()->fact_put(f->store, "", "x", &place_error), ESDM_EINVAL);
    assert_status(meta()->fact_put(f->store, "a b", "x", &place_error), ESDM_EINVAL);
    assert_status(meta()->fact_put(f->store, "a\nb", "x", &place_error), ESDM_EINVAL);
}

static bool
join(const char *name, const char *text, void *user)
{
    char *all = user;
    (void) strcat(strcat(strcat(strcat(all, name), "="), text), " ");
    return strcmp(name, "stop") != 0;
}

static void
expect_list(void *store, const char *prefix, const char *expected)
{
    char all[500] = "";
    assert_ok(meta()->fact_list(store, prefix, join, all, &place_error));
    assert_string_equal(all, expected);
}

static void
test_facts__are_listed_by_prefix(void **state)
{
    static const char *const names[] = {"b/2", "a/1", "b/10", "c%", "b_", "zz", "stop"};
    fixture *f = *state;
    expect_list(f->store, "", "");
    for (size_t i = 0; i < 7; i++)
        assert_ok(meta()->fact_put(f->store, names[i], "t", &place_error));
    expect_list(f->store, "b/", "b/10=t b/2=t ");
    expect_list(f->store, "b", "b/10=t b/2=t b_=t ");
    expect_list(f->store, "c%", "c%=t ");
    expect_list(f->store, "", "a/1=t b/10=t b/2=t b_=t c%=t stop=t ");
    expect_list(f->store, "nothing", "");
}

static void
test_facts__of_a_container_go_with_it(void **state)
{
    fixture *f = *state;
    esdm_meta_committed committed = meta_create(f->store, "a");
    char uuid[ESDM_META_UUID_BYTES];
    char name[2][60];
    memcpy(uuid, meta_pin(f->store, "a", 0).record.uuid, sizeof uuid);
    (void) snprintf(name[0], sizeof name[0], "%s/x", uuid);
    (void) snprintf(name[1], sizeof name[1], "%s_/x", uuid);
    assert_ok(meta()->fact_put(f->store, name[0], "mine", &place_error));
    assert_ok(meta()->fact_put(f->store, name[1], "not mine", &place_error));
    uint64_t number = 0;
    assert_ok(meta()->container_remove(f->store, "a", &number, &place_error));
    expect_fact(f->store, name[0], "mine"); /* a reader has it open */
    assert_status(meta()->forget(f->store, number, &place_error), ESDM_ECONFLICT);
    meta()->unpin(f->store, committed.container, 1);
    assert_true(meta_becomes_garbage(f->store, number));
    assert_ok(meta()->forget(f->store, number, &place_error));
    expect_fact(f->store, name[0], NULL);
    expect_fact(f->store, name[1], "not mine");
}

static void
test_facts__of_a_leaving_store_do_not_change(void **state)
{
    fixture *f = *state;
    esdm_plugin_config config = f->place.config;
    void *migrating = NULL;
    config.migrating = true;
    assert_ok(meta()->open(&config, false, &migrating, &place_error));
    assert_ok(meta()->fact_put(f->store, "model", "x", &place_error));
    assert_ok(meta()->set_state(migrating, ESDM_META_LEAVING, "", &place_error));
    assert_status(meta()->fact_put(f->store, "model", "y", &place_error), ESDM_EACCES);
    assert_status(meta()->fact_put(f->store, "model", NULL, &place_error), ESDM_EACCES);
    expect_fact(f->store, "model", "x");
    assert_ok(meta()->fact_put(migrating, "model", "z", &place_error));
    assert_ok(meta()->set_state(migrating, ESDM_META_ACTIVE, "", &place_error));
    meta()->close(migrating);
    expect_fact(f->store, "model", "z");
}

const struct CMUnitTest meta_fact_tests[] = {
    WITH_STORE(test_facts__are_kept_replaced_and_removed),
    WITH_STORE(test_facts__are_as_long_as_need_be),
    WITH_STORE(test_facts__bad_names_are_refused),
    WITH_STORE(test_facts__are_listed_by_prefix),
    WITH_STORE(test_facts__of_a_container_go_with_it),
    WITH_STORE(test_facts__of_a_leaving_store_do_not_change),
};
const size_t meta_fact_count = sizeof meta_fact_tests / sizeof meta_fact_tests[0];
