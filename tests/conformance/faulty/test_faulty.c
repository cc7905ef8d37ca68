/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The faulty target itself: it fails when told, and only then. */

#include <stdlib.h>
#include <string.h>

#include "conformance/places.h"
#include "support/faulty_data.h"

#define PACK "aabbccddeeff00112233445566778899-1-1"

typedef struct fixture {
    place place;
    void *target;
    void *pack;
} fixture;

static const esdm_data_plugin *const faulty = &esdm_data_faulty_plugin;
static const place_kind kind = {ESDM_PLUGIN_DATA, "faulty",
                                "{\"plugin\": \"faulty\", \"directory\": \"%s\"}",
                                .has_directory = true};

static int
setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    esdm_faulty_disarm();
    place_init(&f->place, &kind);
    assert_ok(faulty->make(&f->place.config, false, NULL, NULL, &place_error));
    assert_ok(faulty->open(&f->place.config, &f->target, &place_error));
    assert_ok(faulty->pack_create(f->target, PACK, &f->pack, &place_error));
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    fixture *f = *state;
    esdm_faulty_disarm();
    assert_ok(faulty->pack_seal(f->pack, &place_error));
    faulty->close(f->target);
    place_clear(&f->place);
    free(f);
    return 0;
}

static esdm_status
append(const fixture *f, uint64_t *ret_position)
{
    esdm_iov pieces[2] = {{.data = "abcd", .bytes = 4}, {.data = "efgh", .bytes = 4}};
    return faulty->pack_append(f->pack, pieces, 2, ret_position, &place_error);
}

static esdm_status
read_back(const fixture *f, char text[9])
{
    esdm_range ranges[2] = {{.position = 0, .bytes = 4, .buffer = text},
                            {.position = 4, .bytes = 4, .buffer = text + 4}};
    memset(text, '.', 8);
    text[8] = '\0';
    return faulty->pack_read(f->target, PACK, ranges, 2, &place_error);
}

static void
test_faulty__nth_append_fails(void **state)
{
    fixture *f = *state;
    uint64_t position = 0;
    uint64_t before = esdm_faulty_calls(ESDM_FAULTY_APPEND);
    esdm_faulty_arm(ESDM_FAULTY_APPEND, 2, 2, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    assert_ok(append(f, &position));
    assert_status(append(f, &position), ESDM_ENOSPC);
    assert_status(append(f, &position), ESDM_ENOSPC);
    assert_ok(append(f, &position));
    assert_int_equal(position, 8);
    assert_int_equal(esdm_faulty_calls(ESDM_FAULTY_APPEND), before + 4);
}

static void
test_faulty__reads_are_shortened_and_flipped(void **state)
{
    fixture *f = *state;
    uint64_t position = 0;
    char text[9];
    assert_ok(append(f, &position));
    esdm_faulty_arm(ESDM_FAULTY_READ, 1, 1, ESDM_FAULTY_SHORT, ESDM_EIO);
    assert_status(read_back(f, text), ESDM_EIO);
    assert_string_equal(text, "abcd....");
    assert_ok(read_back(f, text));
    assert_string_equal(text, "abcdefgh");
    esdm_faulty_arm(ESDM_FAULTY_READ, 1, 0, ESDM_FAULTY_FLIP, ESDM_OK);
    assert_ok(read_back(f, text));
    assert_string_equal(text, "abcdefwh");
    assert_ok(read_back(f, text));
    assert_string_equal(text, "abcdefwh");
}

static void
test_faulty__appends_are_flipped_for_good(void **state)
{
    fixture *f = *state;
    uint64_t position = 0;
    char text[9];
    esdm_faulty_arm(ESDM_FAULTY_APPEND, 1, 1, ESDM_FAULTY_FLIP, ESDM_OK);
    assert_ok(append(f, &position));
    assert_ok(read_back(f, text));
    assert_string_equal(text, "abcdufgh");
}

static void
test_faulty__text_arms_several(void **state)
{
    static const char *const wrong[] = {"x",          "append",           "append:0:fail",
                                        "append:1",   "append:1:explode", "append:1:fail:EWHAT",
                                        "append:1+:", "append:1:fail,,"};
    fixture *f = *state;
    void *pack = NULL;
    uint64_t position = 0;
    assert_true(esdm_faulty_parse("append:2:fail:ENOSPC,create:1+0:fail:EACCES"));
    assert_ok(append(f, &position));
    assert_status(append(f, &position), ESDM_ENOSPC);
    for (int i = 0; i < 3; i++)
        assert_status(faulty->pack_create(f->target, PACK "2", &pack, &place_error), ESDM_EACCES);
    assert_null(pack);
    esdm_faulty_disarm();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(esdm_faulty_parse(wrong[i]));
    assert_ok(append(f, &position));
}

static void
test_faulty__loads_as_a_plugin(void **state)
{
    (void) state;
    const esdm_plugin *plugin = NULL;
    assert_ok(esdm__plugin_find(ESDM_PLUGIN_DATA, "faulty", &plugin, &place_error));
    assert_string_equal(plugin->name, "faulty");
}

#define WITH_PLACE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PLACE(test_faulty__nth_append_fails),
        WITH_PLACE(test_faulty__reads_are_shortened_and_flipped),
        WITH_PLACE(test_faulty__appends_are_flipped_for_good),
        WITH_PLACE(test_faulty__text_arms_several),
        cmocka_unit_test(test_faulty__loads_as_a_plugin),
    };
    return cmocka_run_group_tests_name("conformance.faulty", tests, NULL, NULL);
}
