/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm_find_limit(): a question that takes too long ends, and the next one is asked as if nothing
 * had been. */

#include <time.h>

#include "testing.h"

#define LIMIT_MS 1

static void
create(esdm_session *session, unsigned number)
{
    esdm_container *container;
    char name[40], value[40];
    snprintf(name, sizeof name, "many/%u", number);
    ok(esdm_container_create(session, name, ESDM_CREATE_NEW, &container, ERR));
    for (unsigned i = 0; i < 10; i++) {
        const char *text = value;
        char attribute[8];
        snprintf(attribute, sizeof attribute, "a%u", i);
        snprintf(value, sizeof value, "value %u of %u, which is long", number, i);
        ok(esdm_attribute_set(esdm_group_attributes(esdm_container_root(container)), attribute,
                              ESDM_TYPE_STRING, 1, &text, ERR));
    }
    ok(esdm_container_close(container, ERR));
}

static bool
count_match(const esdm_match *match, void *user)
{
    (void) match;
    ++*(unsigned *) user;
    return true;
}

static bool
count_value(size_t name, const char *value, uint64_t containers, void *user)
{
    (void) name, (void) value, (void) containers;
    ++*(unsigned *) user;
    return true;
}

/* Text is looked at for each alternative, in each container. */
static void
make_question(char *text, size_t bytes)
{
    size_t at = 0;
    for (unsigned i = 0; i < 200; i++)
        at += (size_t) snprintf(text + at, bytes - at, "%sa%u ~ \"*%u*?*x*y*z*\"",
                                i > 0 ? " or " : "", i % 10, i);
    snprintf(text + at, bytes - at, " or a0 ~ \"value 7 of*\"");
}

static double
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static void
test_limit__ends_what_takes_too_long(void)
{
    static char question[8192];
    static const char *const names[] = {"a0"};
    esdm_session *session = open_session();
    unsigned found = 0, made = 0;
    double takes_ms = 0;
    make_question(question, sizeof question);
    /* Until a question takes much longer than the limit, on any machine. */
    for (unsigned more = 100; takes_ms < 20 * LIMIT_MS; more = made) {
        check(made < 20000);
        for (unsigned end = made + more; made < end; made++)
            create(session, made);
        double begun = now_ms();
        found = 0;
        ok(esdm_find(session, question, count_match, &found, ERR));
        check(found == 1);
        takes_ms = now_ms() - begun;
    }
    ok(esdm_find_limit(session, LIMIT_MS, ERR));
    fails(esdm_find(session, question, count_match, &found, ERR), ESDM_ETIMEDOUT, "metadata store");
    fails(esdm_find_facets(session, question, names, 1, count_value, &found, ERR), ESDM_ETIMEDOUT,
          "metadata store");
    ok(esdm_find_limit(session, 60000, ERR));
    found = 0;
    ok(esdm_find(session, question, count_match, &found, ERR));
    check(found == 1);
    ok(esdm_find_limit(session, 0, ERR));
    found = 0;
    ok(esdm_find(session, question, count_match, &found, ERR));
    check(found == 1);
    create(session, made); /* commits have no limit */
    esdm_session_close(session);
}

int
main(void)
{
    make_site();
    test_limit__ends_what_takes_too_long();
    return 0;
}
