/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Comparisons about times, boxes, levels, grids, values, lengths and words. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cf/calendar.h"
#include "meta/search_words.h"
#include "query/words.h"

typedef esdm__query_parser parser;

/* ---- nodes ---------------------------------------------------------------------------------- */

static esdm_status
join(parser *p, bool either, size_t left, size_t *right_and_both)
{
    return esdm__query_add_node(
        p, (esdm__query_node){either ? ESDM__QUERY_OR : ESDM__QUERY_AND, left, *right_and_both},
        right_and_both);
}

/* A comparison with a number, and its node. */
static esdm_status
compare(parser *p, const char *variable, const char *name, esdm_meta_operator op, double number,
        size_t *ret_node)
{
    esdm_meta_condition *condition = NULL;
    esdm_status status = esdm__query_add_condition(p, &condition);
    if (status != ESDM_OK)
        return status;
    *condition = (esdm_meta_condition){
        .variable = variable, .attribute = name, .op = op, .is_number = true, .number = number};
    return esdm__query_add_node(
        p, (esdm__query_node){ESDM__QUERY_COMPARISON, p->query.nconditions - 1, 0}, ret_node);
}

esdm_status
esdm__query_need_variable(parser *p, const char *variable, size_t *node)
{
    esdm_meta_condition *condition = NULL;
    size_t left = *node;
    if (variable == NULL || variable[0] == '\0')
        return ESDM_OK;
    esdm_status status = esdm__query_add_condition(p, &condition);
    if (status != ESDM_OK)
        return status;
    *condition = (esdm_meta_condition){
        .variable = variable, .attribute = "@type", .op = ESDM_META_GLOB, .text = "*"};
    status = esdm__query_add_node(
        p, (esdm__query_node){ESDM__QUERY_COMPARISON, p->query.nconditions - 1, 0}, node);
    return status == ESDM_OK ? join(p, false, left, node) : status;
}

static esdm_status
add_open(parser *p, esdm__query_open open, size_t *ret_node)
{
    esdm__query *query = &p->query;
    if (!esdm__array_grow(&query->opens, query->nopens, sizeof *query->opens))
        return esdm__error_nomem(p->err, sizeof *query->opens, "a query");
    open.name_column = (size_t) (p->name_at - p->text) + 1;
    query->opens[query->nopens] = open;
    return esdm__query_add_node(p, (esdm__query_node){ESDM__QUERY_OPEN, query->nopens++, 0},
                                ret_node);
}

/* ---- texts ---------------------------------------------------------------------------------- */

/* A text of the query: what stands before, some bytes, and what stands behind. */
static const char *
keep(parser *p, const char *before, const char *text, size_t bytes, const char *behind)
{
    char *kept = p->out;
    size_t first = strlen(before), last = strlen(behind);
    memcpy(kept, before, first);
    memcpy(kept + first, text, bytes);
    memcpy(kept + first + bytes, behind, last + 1);
    p->out += first + bytes + last + 1;
    return kept;
}

static esdm_status
read_bare(parser *p, const char *expected, esdm__query_word *ret)
{
    esdm_status status = esdm__query_read_word(p, ESDM__QUERY_IN_VALUE, expected, ret);
    if (status == ESDM_OK && ret->quoted)
        return esdm__query_wrong(p, ret->start, expected);
    return status;
}

/* The unit behind a number, if there is one: a word that is no keyword, or quoted. */
static esdm_status
read_unit(parser *p, const char **ret_unit, size_t *ret_column)
{
    esdm__query_word word;
    esdm__query_skip_blanks(p);
    *ret_unit = NULL;
    if (*p->at == '\0' || *p->at == ')' || esdm__query_at_keyword(p, "and") ||
        esdm__query_at_keyword(p, "or"))
        return ESDM_OK;
    esdm_status status = esdm__query_read_word(p, ESDM__QUERY_IN_VALUE, "expected a unit", &word);
    if (status != ESDM_OK)
        return status;
    *ret_unit = word.text;
    *ret_column = (size_t) (word.start - p->text) + 1;
    return ESDM_OK;
}

/* Bytes of the number that a text begins with; 0: it begins with none. "310K" has a unit. */
static size_t
number_bytes(const char *text)
{
    size_t bytes = text[0] == '-' || text[0] == '+';
    size_t digits = strspn(text + bytes, "0123456789.");
    bytes += digits;
    if (digits > 0 && (text[bytes] == 'e' || text[bytes] == 'E')) {
        size_t sign = text[bytes + 1] == '-' || text[bytes + 1] == '+';
        size_t more = strspn(text + bytes + 1 + sign, "0123456789");
        bytes += more > 0 ? 1 + sign + more : 0;
    }
    return digits > 0 ? bytes : 0;
}

/* A number, and what follows it in its word: a unit. */
static esdm_status
read_number(parser *p, double *ret_number, const char **ret_unit, size_t *ret_column)
{
    static const char expected[] = "expected a number";
    esdm__query_word word;
    esdm_status status = read_bare(p, expected, &word);
    if (status != ESDM_OK)
        return status;
    size_t bytes = number_bytes(word.text);
    const char *number = keep(p, "", word.text, bytes, "");
    if (!esdm__query_number(p, number, ret_number))
        return esdm__query_wrong(p, word.start, expected);
    *ret_unit = word.text[bytes] != '\0' ? word.text + bytes : NULL;
    *ret_column = (size_t) (word.start - p->text) + bytes + 1;
    return ESDM_OK;
}

/* Cuts "A..B" into two; else looks for ".." and the next word. *ret_second: NULL when there is
 * none. */
static esdm_status
read_both(parser *p, const char *expected, esdm__query_word *ret_first, const char **ret_second,
          const char **ret_start)
{
    esdm__query_word second;
    esdm_status status = read_bare(p, expected, ret_first);
    *ret_second = NULL;
    if (status != ESDM_OK)
        return status;
    char *dots = strstr(ret_first->text, "..");
    bool inside = dots != NULL && dots > ret_first->text;
    if (inside && dots[2] != '\0') {
        *dots = '\0';
        *ret_second = dots + 2;
        *ret_start = ret_first->start + (dots + 2 - ret_first->text);
        return ESDM_OK;
    }
    if (inside)
        *dots = '\0';
    esdm__query_skip_blanks(p);
    if (!inside && strncmp(p->at, "..", 2) != 0)
        return ESDM_OK;
    p->at += inside ? 0 : 2;
    status = read_bare(p, expected, &second);
    *ret_second = second.text;
    *ret_start = second.start;
    return status;
}

/* ---- ranges --------------------------------------------------------------------------------- */

static esdm_status
read_time(parser *p, const char *variable, size_t *ret_node)
{
    static const char expected[] = "expected a date: 1990, 1990-01, 1990-01-31, 1990-01-31T12:00; "
                                   "from one to another: 1990 .. 1999";
    esdm__query_word first;
    const char *second, *second_start = NULL;
    esdm__date date;
    double from, next, to;
    size_t left = 0;
    esdm_status status = read_both(p, expected, &first, &second, &second_start);
    if (status != ESDM_OK)
        return status;
    if (!esdm__date_parse(first.text, &date, &from, &next))
        return esdm__query_wrong(p, first.start, expected);
    if (second != NULL && !esdm__date_parse(second, &date, &to, &next))
        return esdm__query_wrong(p, second_start, expected);
    if (from >= next)
        return esdm__query_wrong(p, first.start, "expected the earlier date first");
    status = compare(p, variable, "@time_min", ESDM_META_LT, next, &left);
    if (status == ESDM_OK)
        status = compare(p, variable, "@time_max", ESDM_META_GE, from, ret_node);
    return status == ESDM_OK ? join(p, false, left, ret_node) : status;
}

/* Stored longitudes are [west, east] with west in [-180, 180): the question is asked once, and
 * where it may meet the range a turn further east or west. */
static esdm_status
put_longitudes(parser *p, const char *variable, double west, double east, size_t *ret_node)
{
    double width = east - west;
    size_t left = 0, more = 0;
    west -= 360 * floor((west + 180) / 360);
    east = west + width;
    esdm_status status = compare(p, variable, "@lon_min", ESDM_META_LE, east, &left);
    if (status == ESDM_OK)
        status = compare(p, variable, "@lon_max", ESDM_META_GE, west, ret_node);
    if (status == ESDM_OK)
        status = join(p, false, left, ret_node);
    if (status == ESDM_OK) {
        left = *ret_node;
        status = compare(p, variable, "@lon_max", ESDM_META_GE, west + 360, ret_node);
    }
    if (status == ESDM_OK)
        status = join(p, true, left, ret_node);
    if (status == ESDM_OK && east >= 180) {
        left = *ret_node;
        status = compare(p, variable, "@lon_min", ESDM_META_LE, east - 360, &more);
        if (status == ESDM_OK)
            status = join(p, true, left, &more);
        *ret_node = more;
    }
    return status;
}

static esdm_status
read_box(parser *p, const char *variable, size_t *ret_node)
{
    static const char expected[] = "expected four numbers in degrees: west,south,east,north";
    double box[4];
    size_t left = 0;
    const char *start = p->at;
    for (int i = 0; i < 4; i++) {
        esdm__query_skip_blanks(p);
        if (i == 0)
            start = p->at;
        size_t bytes = number_bytes(p->at);
        const char *text = keep(p, "", p->at, bytes, "");
        if (!esdm__query_number(p, text, &box[i]))
            return esdm__query_wrong(p, p->at, expected);
        p->at += bytes;
        esdm__query_skip_blanks(p);
        if (i < 3 && *p->at++ != ',')
            return esdm__query_wrong(p, p->at - 1, expected);
    }
    if (fabs(box[0]) > 720 || fabs(box[2]) > 720 || fabs(box[1]) > 90 || fabs(box[3]) > 90)
        return esdm__query_wrong(p, start,
                                 "degrees of latitude are -90 to 90, in a box "
                                 "west,south,east,north");
    if (box[1] > box[3])
        return esdm__query_wrong(p, start,
                                 "expected the southern latitude before the northern one");
    if (box[2] < box[0]) /* across the line where longitudes jump */
        box[2] += 360 * ceil((box[0] - box[2]) / 360);
    if (box[2] - box[0] > 360)
        box[2] = box[0] + 360;
    esdm_status status = compare(p, variable, "@lat_min", ESDM_META_LE, box[3], &left);
    if (status == ESDM_OK)
        status = compare(p, variable, "@lat_max", ESDM_META_GE, box[1], ret_node);
    if (status == ESDM_OK)
        status = join(p, false, left, ret_node);
    left = *ret_node;
    if (status == ESDM_OK)
        status = put_longitudes(p, variable, box[0], box[2], ret_node);
    return status == ESDM_OK ? join(p, false, left, ret_node) : status;
}

static esdm_status
read_level(parser *p, const char *variable, size_t *ret_node)
{
    static const char expected[] = "expected a number, or two with .. between: 500 .. 850 hPa";
    esdm__query_word first;
    const char *second, *second_start = NULL;
    esdm__query_open open = {
        .said = "level", .prefix = "@level_min\t", .upper = "@level_max\t", .variable = variable};
    esdm_status status = read_both(p, expected, &first, &second, &second_start);
    if (status != ESDM_OK)
        return status;
    const char *last = second != NULL ? second : first.text;
    size_t bytes = number_bytes(last);
    const char *unit = last[bytes] != '\0' ? last + bytes : NULL;
    const char *number = keep(p, "", last, bytes, "");
    if (!esdm__query_number(p, number, &open.to))
        return esdm__query_wrong(p, second != NULL ? second_start : first.start, expected);
    open.number = open.to;
    if (second != NULL && !esdm__query_number(p, first.text, &open.number))
        return esdm__query_wrong(p, first.start, expected);
    if (open.number > open.to) {
        double swapped = open.number;
        open.number = open.to;
        open.to = swapped;
    }
    open.unit = unit;
    open.column = (size_t) ((second != NULL ? second_start : first.start) - p->text) + bytes + 1;
    if (unit == NULL)
        status = read_unit(p, &open.unit, &open.column);
    return status == ESDM_OK ? add_open(p, open, ret_node) : status;
}

/* ---- values --------------------------------------------------------------------------------- */

static esdm_status
read_value_of(parser *p, const char *name, const char *said, size_t *ret_node)
{
    bool length = name[0] == 'l', regex = false;
    size_t skip = length ? 7 : 4;
    esdm__query_open open = {.said = said};
    esdm_meta_operator op;
    double number;
    esdm_status status = esdm__query_read_operator(p, &op, &regex);
    if (status == ESDM_OK && (regex || op == ESDM_META_GLOB))
        return esdm__query_wrong(p, p->at - 1, "expected one of = != < <= > >= before a number");
    if (status == ESDM_OK)
        status = read_number(p, &number, &open.unit, &open.column);
    if (status == ESDM_OK && open.unit == NULL && !length)
        status = read_unit(p, &open.unit, &open.column);
    if (status != ESDM_OK)
        return status;
    size_t bytes = strlen(name) - skip - 1;
    open.op = op;
    open.number = number;
    if (length)
        return compare(p, NULL, keep(p, "@length:", name + skip, bytes, ""), op, number, ret_node);
    open.prefix = keep(p, name[1] == 'i' ? "@min:" : "@max:", name + skip, bytes, "\t");
    return add_open(p, open, ret_node);
}

/* ---- words ---------------------------------------------------------------------------------- */

typedef struct searched {
    parser *p;
    size_t node;
    bool any;
    bool begins; /* with the last word */
    esdm_status status;
} searched;

static bool
add_word(const char *word, size_t bytes, bool last, void *user)
{
    searched *s = user;
    size_t node = 0;
    esdm_meta_operator op = ESDM_META_GE;
    const char *name = keep(s->p, "@word:", word, bytes, "");
    if (last && s->begins)
        s->status =
            add_open(s->p, (esdm__query_open){.said = "text", .prefix = name, .op = op}, &node);
    else
        s->status = compare(s->p, NULL, name, op, 0, &node);
    if (s->status == ESDM_OK && s->any)
        s->status = join(s->p, false, s->node, &node);
    s->node = node;
    s->any = true;
    return s->status == ESDM_OK;
}

static esdm_status
read_text(parser *p, size_t *ret_node)
{
    static const char expected[] = "expected words of a title, long name or comment";
    esdm__query_word word;
    esdm_status status = esdm__query_read_word(p, ESDM__QUERY_IN_VALUE, expected, &word);
    if (status != ESDM_OK)
        return status;
    size_t bytes = strlen(word.text);
    searched s = {.p = p, .begins = bytes > 0 && word.text[bytes - 1] == '*'};
    esdm__search_words(word.text, bytes, add_word, &s);
    if (s.status == ESDM_OK && !s.any)
        return esdm__query_wrong(p, word.start, expected);
    *ret_node = s.node;
    return s.status;
}

/* ---- which one ------------------------------------------------------------------------------ */

bool
esdm__query_is_grid(const esdm_meta_condition *condition, const char *value)
{
    static const char *const kinds[] = {"regular", "curvilinear", "unstructured", "point"};
    bool fits = strcmp(condition->attribute, "grid") == 0 &&
                (condition->op == ESDM_META_EQ || condition->op == ESDM_META_NE);
    for (size_t i = 0; fits && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(value, kinds[i]) == 0)
            return true;
    }
    return false;
}

static bool
is_value(const char *name)
{
    size_t bytes = strlen(name);
    bool length = strncmp(name, "length(", 7) == 0;
    bool value = strncmp(name, "min(", 4) == 0 || strncmp(name, "max(", 4) == 0;
    return (length || value) && bytes > (length ? 8u : 5u) && name[bytes - 1] == ')';
}

static esdm_status
read_overlap(parser *p, const char *variable, const char *name, size_t *ret_node)
{
    esdm_status status = name[0] == 't'   ? read_time(p, variable, ret_node)
                         : name[0] == 'b' ? read_box(p, variable, ret_node)
                                          : read_level(p, variable, ret_node);
    return status == ESDM_OK ? esdm__query_need_variable(p, variable, ret_node) : status;
}

esdm_status
esdm__query_read_special(parser *p, const char *start, bool *ret_special, size_t *ret_node)
{
    const esdm_meta_condition name = p->query.conditions[p->query.nconditions - 1];
    const char *attribute = name.attribute;
    bool bare = *start != '"' && *start != '\'';
    *ret_special = false;
    if (!bare)
        return ESDM_OK;
    bool ranges = strcmp(attribute, "time") == 0 || strcmp(attribute, "box") == 0 ||
                  strcmp(attribute, "level") == 0;
    esdm__query_skip_blanks(p);
    bool overlaps = ranges && esdm__query_at_keyword(p, "overlaps");
    bool value = name.variable == NULL && is_value(attribute);
    bool text = name.variable == NULL && strcmp(attribute, "text") == 0 && *p->at == '~';
    *ret_special = overlaps || value || text;
    if (ranges && !overlaps && strncasecmp(p->at, "over", 4) == 0)
        return esdm__query_wrong(p, p->at, "did you mean \"overlaps\"?");
    if (!*ret_special)
        return ESDM_OK;
    p->query.nconditions--; /* the name is no attribute's */
    if (value)
        return read_value_of(p, attribute, attribute, ret_node);
    p->at += text ? 1 : strlen("overlaps");
    return text ? read_text(p, ret_node) : read_overlap(p, name.variable, attribute, ret_node);
}
