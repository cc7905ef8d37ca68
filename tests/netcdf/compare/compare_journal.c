/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What the calls of a scenario returned on one side, and how the two sides compare. */

#include "compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static journal *current;

void
journal_select(journal *log)
{
    current = log;
}

journal *
journal_selected(void)
{
    return current;
}

void
journal_clear(journal *log)
{
    for (size_t i = 0; i < log->count; i++)
        free(log->entries[i].text);
    free(log->entries);
    *log = (journal){0};
}

static void
add_entry(entry e)
{
    if (current == NULL) {
        free(e.text);
        return;
    }
    if (current->count == current->capacity) {
        current->capacity = current->capacity == 0 ? 256 : 2 * current->capacity;
        current->entries = realloc(current->entries, current->capacity * sizeof(entry));
        assert_non_null(current->entries);
    }
    current->entries[current->count++] = e;
}

int
note_call(const char *file, int line, const char *text, int rc)
{
    const char *slash = strrchr(file, '/');
    entry e = {.is_call = true, .rc = rc};
    int bytes =
        asprintf(&e.text, "%s:%d: %s -> %d", slash == NULL ? file : slash + 1, line, text, rc);
    assert_true(bytes >= 0);
    add_entry(e);
    return rc;
}

void
note(const char *format, ...)
{
    entry e = {.is_call = false};
    va_list args;
    va_start(args, format);
    int bytes = vasprintf(&e.text, format, args);
    va_end(args);
    assert_true(bytes >= 0);
    add_entry(e);
}

void
note_ints(const char *what, const int *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note("%s[%zu] = %d", what, i, values[i]);
}

void
note_sizes(const char *what, const size_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note("%s[%zu] = %zu", what, i, values[i]);
}

void
note_doubles(const char *what, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        note("%s[%zu] = %.17g", what, i, values[i]);
}

void
note_bytes(const char *what, const void *values, size_t bytes)
{
    const unsigned char *at = values;
    for (size_t i = 0; i < bytes; i += 16) {
        char text[40] = "";
        for (size_t k = i; k < bytes && k < i + 16; k++)
            snprintf(text + 2 * (k - i), 3, "%02x", at[k]);
        note("%s+%zu: %s", what, i, text);
    }
}

/* ---- comparison -------------------------------------------------------------------------------
 */

/* The text behind "file.c:12: ", which moves with every edit. */
static const char *
without_place(const entry *e)
{
    const char *colon = e->is_call ? strstr(e->text, ": ") : NULL;
    return colon == NULL ? e->text : colon + 2;
}

/* Whether two entries come from the same place of the scenario. */
static bool
same_place(const entry *a, const entry *b)
{
    size_t bytes = strcspn(a->text, ">=");
    return a->is_call == b->is_call && strncmp(a->text, b->text, bytes) == 0;
}

enum { SHOWN_MAX = 20 };

/* Gives the listed difference of the call at `*at` and the notes behind it, -1 when they are
 * equal, and moves `*at` to the next call. Counts what is not listed. */
static int
compare_call(const journal *stock, const journal *esdm, const char *area, int format_bit,
             size_t *at, size_t *unlisted)
{
    size_t i = *at;
    int listed = -1;
    do {
        const entry *s = &stock->entries[i];
        const entry *e = &esdm->entries[i];
        i++;
        if (strcmp(s->text, e->text) == 0)
            continue;
        int found = difference_find(area, format_bit, without_place(s), without_place(e));
        if (found >= 0) {
            listed = found;
            continue;
        }
        if ((*unlisted)++ < SHOWN_MAX)
            print_error("  stock: %s\n  esdm:  %s\n", s->text, e->text);
        if (!same_place(s, e)) {
            i = SIZE_MAX; /* from here on they walk apart */
            break;
        }
    } while (i < stock->count && i < esdm->count && !stock->entries[i].is_call);
    *at = i;
    return listed;
}

static void
journal_compare(const journal *stock, const journal *esdm, const char *area, int format_bit)
{
    size_t unlisted = 0;
    size_t at = 0;
    while (at < stock->count && at < esdm->count) {
        const entry *first = &stock->entries[at];
        int listed = compare_call(stock, esdm, area, format_bit, &at, &unlisted);
        if (first->is_call)
            record_call(without_place(first), format_bit, first->rc, listed);
    }
    if (stock->count != esdm->count)
        print_error("  stock noted %zu lines, esdm %zu\n", stock->count, esdm->count);
    assert_int_equal(unlisted, 0);
    assert_int_equal(stock->count, esdm->count);
    assert_true(stock->count > 0);
}

void
journals_judge(journal *stock, journal *esdm, const char *area, int format_bit, bool show)
{
    const char *dump = show ? getenv("NC_COMPARE_DUMP") : NULL;
    const journal *shown = dump != NULL && strcmp(dump, "esdm") == 0 ? esdm : stock;
    for (size_t i = 0; dump != NULL && i < shown->count; i++)
        print_message("  %s\n", shown->entries[i].text);
    journal_compare(stock, esdm, area, format_bit);
    journal_clear(stock);
    journal_clear(esdm);
}
