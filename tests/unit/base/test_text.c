/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What is printed of texts that somebody else made; texts put together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "esdm/text.h"

static void
becomes(const char *text, const char *expected)
{
    char shown[300];
    memset(shown, 'z', sizeof shown);
    assert_int_equal(esdm_text_printable(text, shown, sizeof shown), strlen(expected));
    assert_string_equal(shown, expected);
    assert_int_equal(esdm_text_printable(text, NULL, 0), strlen(expected));
}

static void
test_printable__what_terminals_obey_is_spelled_out(void **state)
{
    (void) state;
    becomes("", "");
    becomes(NULL, "");
    becomes("a\033[2Jb\a\r", "a\\x1b[2Jb\\x07\\x0d");
    becomes("two\nlines\tand a tab", "two\nlines\tand a tab");
    becomes("\x7f", "\\x7f");
    becomes("\xc2\x9b"
            "2J",
            "\\u009b2J");           /* C1: what ESC [ stands for */
    becomes("\xc2\x85", "\\u0085"); /* next line */
    becomes("a\xe2\x80\xae"
            "cba",
            "a\\u202ecba");                            /* right to left */
    becomes("\xe2\x81\xa6\xd8\x9c", "\\u2066\\u061c"); /* isolates, the Arabic mark */
    becomes("\xe2\x80\xa8\xef\xbb\xbf", "\\u2028\\ufeff");
    becomes("\xf3\xa0\x80\x81", "\\U000e0001");
}

static void
test_printable__names_of_people_stay(void **state)
{
    (void) state;
    becomes("sea surface temperature / K", "sea surface temperature / K");
    becomes("Größe Ærø 海面水温 температура ตั", "Größe Ærø 海面水温 температура ตั");
    becomes("می\xe2\x80\x8cخواهم עברית 🌊", "می\xe2\x80\x8cخواهم עברית 🌊");
    becomes("\xc2\xb0"
            "C \xe2\x82\xac",
            "\xc2\xb0"
            "C \xe2\x82\xac");
}

static void
test_printable__what_is_no_utf8_is_spelled_out(void **state)
{
    (void) state;
    becomes("\xff\x9b", "\\xff\\x9b"); /* C1 of one byte, as 8-bit terminals obey it */
    becomes("a\xc3", "a\\xc3");
    becomes("a\xe2\x80", "a\\xe2\\x80");
    becomes("\xc0\x9b", "\\xc0\\x9b"); /* overlong */
    becomes("\xe0\x80\x9b", "\\xe0\\x80\\x9b");
    becomes("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half a surrogate pair */
    becomes("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    becomes("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
}

static void
test_printable__cut_texts_have_whole_characters(void **state)
{
    (void) state;
    char shown[8];
    assert_int_equal(esdm_text_printable("abc\xe2\x82\xac\xe2\x82\xac", shown, sizeof shown), 9);
    assert_string_equal(shown, "abc\xe2\x82\xac");
    assert_int_equal(esdm_text_printable("abcde\033z", shown, sizeof shown), 10);
    assert_string_equal(shown, "abcde"); /* nothing follows what has no room */
    assert_int_equal(esdm_text_printable("abc", shown, 1), 3);
    assert_string_equal(shown, "");
}

static void
test_put__texts_are_cut_where_the_room_ends(void **state)
{
    (void) state;
    char room[8];
    const char *end = room + sizeof room;
    char *at = esdm__text_put(room, end, "abc");
    assert_ptr_equal(at, room + 3);
    at = esdm__text_part(at, end, "defgh", 2);
    assert_string_equal(room, "abcde");
    at = esdm__text_part(at, end, "f\0gh", 4); /* as "%.*s" does */
    assert_string_equal(room, "abcdef");
    at = esdm__text_put(at, end, "ghi");
    assert_string_equal(room, "abcdefg");
    assert_ptr_equal(esdm__text_put(at, end, "x"), room + 7);
    assert_string_equal(room, "abcdefg");
    esdm__text_copy(room, 3, "xyz");
    assert_string_equal(room, "xy");
}

static void
test_number__is_as_printf_writes_it(void **state)
{
    (void) state;
    char room[32];
    const char *end = room + sizeof room;
    (void) esdm__text_number(room, end, 0, 10, 1);
    assert_string_equal(room, "0");
    (void) esdm__text_number(room, end, UINT64_MAX, 10, 20);
    assert_string_equal(room, "18446744073709551615");
    (void) esdm__text_number(room, end, 42, 10, 20);
    assert_string_equal(room, "00000000000000000042");
    (void) esdm__text_number(room, end, 0xabc0123, 16, 16);
    assert_string_equal(room, "000000000abc0123");
    (void) esdm__text_number(room, end, UINT64_MAX, 16, 1);
    assert_string_equal(room, "ffffffffffffffff");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printable__what_terminals_obey_is_spelled_out),
        cmocka_unit_test(test_printable__names_of_people_stay),
        cmocka_unit_test(test_printable__what_is_no_utf8_is_spelled_out),
        cmocka_unit_test(test_printable__cut_texts_have_whole_characters),
        cmocka_unit_test(test_put__texts_are_cut_where_the_room_ends),
        cmocka_unit_test(test_number__is_as_printf_writes_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
