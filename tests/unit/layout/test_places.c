/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The text that says where a pack lies. */
#include "layout/places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
test_places__are_taken_one_by_one(void **state)
{
    (void) state;
    const char *text = "one,two@node-1.example,three";
    esdm__pack_place place;
    assert_int_equal(esdm__places_count(text), 3);
    assert_true(esdm__places_are_special(text));
    assert_true(esdm__places_next(&text, &place));
    assert_string_equal(place.target, "one");
    assert_string_equal(place.node, "");
    assert_true(esdm__places_next(&text, &place));
    assert_string_equal(place.target, "two");
    assert_string_equal(place.node, "node-1.example");
    assert_true(esdm__places_next(&text, &place));
    assert_string_equal(place.target, "three");
    assert_false(esdm__places_next(&text, &place));
}

static void
test_places__one_target_is_its_name(void **state)
{
    (void) state;
    const char *text = "disk";
    esdm__pack_place place;
    assert_false(esdm__places_are_special(text));
    assert_true(esdm__places_are_special("disk@here"));
    assert_int_equal(esdm__places_count(text), 1);
    assert_int_equal(esdm__places_count(""), 0);
    assert_true(esdm__places_next(&text, &place));
    assert_string_equal(place.target, "disk");
    assert_false(esdm__places_next(&text, &place));
}

static void
test_places__hostile_texts_end(void **state)
{
    (void) state;
    char text[1024];
    esdm__pack_place place;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    const char *at = text;
    assert_true(esdm__places_next(&at, &place));
    assert_int_equal(strlen(place.target), ESDM__PLACE_TARGET_BYTES - 1);
    assert_false(esdm__places_next(&at, &place));
    memset(text, '@', 500);
    memset(text + 500, ',', 500);
    at = text;
    size_t count = 0;
    while (esdm__places_next(&at, &place))
        count++;
    assert_true(count > 0 && count < sizeof text);
    assert_string_equal(place.node, "");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places__are_taken_one_by_one),
        cmocka_unit_test(test_places__one_target_is_its_name),
        cmocka_unit_test(test_places__hostile_texts_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
