/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Documents in XML, whole, cut and wrong. */
#include "xml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct trace {
    char text[4096];
    size_t used;
    int stop_after;
} trace;

static esdm_status
note(const char *path, char *text, void *user, esdm_error *err)
{
    trace *t = user;
    if (t->stop_after > 0 && --t->stop_after == 0) {
        err->status = ESDM_ECANCELED;
        return ESDM_ECANCELED;
    }
    int n = snprintf(t->text + t->used, sizeof t->text - t->used, "%s=%s;", path, text);
    assert_true(n > 0 && (size_t) n < sizeof t->text - t->used);
    t->used += (size_t) n;
    text[0] = '\0'; /* may be changed */
    return ESDM_OK;
}

static void
expect(const char *xml, const char *events)
{
    trace t = {.used = 0};
    esdm_error err = {0};
    if (s3__xml_parse(xml, strlen(xml), note, &t, &err) != ESDM_OK)
        fail_msg("%s: %s", xml, err.message);
    assert_string_equal(t.text, events);
}

static void
expect_broken(const char *xml, size_t bytes)
{
    trace t = {.used = 0};
    esdm_error err = {0};
    if (s3__xml_parse(xml, bytes, note, &t, &err) != ESDM_EIO)
        fail_msg("accepted: %s", xml);
    assert_non_null(strstr(err.message, "broken"));
}

static void
test_xml__elements_end_with_their_texts(void **state)
{
    (void) state;
    expect("<a>x</a>", "a=x;");
    expect("<?xml version=\"1.0\"?>\n<a xmlns=\"http://x/\"><b>1</b> <c/><b k='>'>2</b></a>\n",
           "a/b=1;a/c=;a/b=2;a=;");
    expect("<n:a><n:b>1</n:b></n:a>", "a/b=1;a=;");
    expect("<a><!-- <b> --><![CDATA[<&>]]></a>", "a=<&>;");
    expect("\xef\xbb\xbf<a  >x</a >", "a=x;");
    expect("<a><b>x</b>ignored</a>", "a/b=x;a=ignored;");
    expect("<a/>", "a=;");
}

static void
test_xml__references(void **state)
{
    (void) state;
    expect("<a>&lt;&gt;&amp;&quot;&apos;</a>", "a=<>&\"';");
    expect("<a>&#65;&#x41;&#xe4;&#x20AC;&#x1F600;</a>",
           "a=AA\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80;");
    expect("<a>&#34;abc&#34;</a>", "a=\"abc\";");
}

static void
test_xml__broken_documents(void **state)
{
    (void) state;
    static const char *const broken[] = {"",
                                         " ",
                                         "x",
                                         "<",
                                         "<a",
                                         "<a>",
                                         "<a></b>",
                                         "</a>",
                                         "<a></a",
                                         "<a></a><b>",
                                         "<a>&</a>",
                                         "<a>&x;</a>",
                                         "<a>&#;</a>",
                                         "<a>&#x;</a>",
                                         "<a>&#0;</a>",
                                         "<a>&#xD800;</a>",
                                         "<a>&#x110000;</a>",
                                         "<a>&#99999999999;</a>",
                                         "<a>&amp</a>",
                                         "<a><![CDATA[x</a>",
                                         "<a><!-- x</a>",
                                         "<?xml",
                                         "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
                                         "<a b=\"c>d</a>",
                                         "< a></a>",
                                         "<></>",
                                         "<a>x</a>y",
                                         "<a></ a>",
                                         "<a></a b>",
                                         "<n:></n:>",
                                         "<a><b></a></b>"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++)
        expect_broken(broken[i], strlen(broken[i]));
    expect_broken("<a>x\0y</a>", 10);
}

/* Every prefix of a valid document is broken, and does no harm. */
static void
test_xml__truncated_documents(void **state)
{
    (void) state;
    static const char xml[] = "<?xml version=\"1.0\"?><List><Key a='b'>x&amp;&#x41;</Key>"
                              "<!-- c --><E/><![CDATA[d]]></List>";
    for (size_t bytes = 0; bytes < sizeof xml - 1; bytes++) {
        char *exact = malloc(bytes > 0 ? bytes : 1); /* for the sanitizer */
        assert_non_null(exact);
        memcpy(exact, xml, bytes);
        expect_broken(exact, bytes);
        free(exact);
    }
}

static void
test_xml__depth_is_limited(void **state)
{
    (void) state;
    char xml[4096];
    size_t used = 0;
    for (int i = 0; i < 100; i++)
        used += (size_t) snprintf(xml + used, sizeof xml - used, "<a>");
    expect_broken(xml, used);
    memset(xml, 'a', sizeof xml - 1);
    xml[0] = '<';
    xml[sizeof xml - 2] = '>';
    xml[sizeof xml - 1] = '\0';
    expect_broken(xml, strlen(xml));
}

static void
test_xml__a_visitor_ends_it(void **state)
{
    (void) state;
    trace t = {.stop_after = 2};
    esdm_error err = {0};
    static const char xml[] = "<a><b>1</b><c>2</c></a>";
    assert_int_equal(s3__xml_parse(xml, strlen(xml), note, &t, &err), ESDM_ECANCELED);
    assert_string_equal(t.text, "a/b=1;");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xml__elements_end_with_their_texts),
        cmocka_unit_test(test_xml__references),
        cmocka_unit_test(test_xml__broken_documents),
        cmocka_unit_test(test_xml__truncated_documents),
        cmocka_unit_test(test_xml__depth_is_limited),
        cmocka_unit_test(test_xml__a_visitor_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
