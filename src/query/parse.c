/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file From the text of a query to a tree. */

#include "query/query.h"

#include <ctype.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "query/words.h"

#define MAX_EXPRESSION_BYTES (1u << 20)
#define MAX_DEPTH            100

/* ---- comparisons -------------------------------------------------------------------------- */

static esdm_status
read_name(esdm__query_parser *p, esdm_meta_condition *condition)
{
    esdm__query_word first, second;
    static const char expected[] = "expected the name of an attribute";
    esdm__query_skip_blanks(p);
    if (*p->at == ':') {
        condition->variable = "";
    } else {
        esdm_status status = esdm__query_read_word(p, ESDM__QUERY_IN_NAME, expected, &first);
        if (status != ESDM_OK)
            return status;
        if (*p->at != ':') {
            if (first.text[0] == '\0')
                return esdm__query_wrong(p, first.start, expected);
            condition->attribute = first.text;
            return ESDM_OK;
        }
        if (first.text[0] == '\0')
            return esdm__query_wrong(p, first.start, "expected the name of a variable");
        condition->variable = first.text;
    }
    p->at++; /* the colon */
    if (esdm__query_is_blank(*p->at))
        return esdm__query_wrong(p, p->at, expected);
    esdm_status status = esdm__query_read_word(p, ESDM__QUERY_IN_NAME, expected, &second);
    if (status == ESDM_OK && second.text[0] == '\0')
        return esdm__query_wrong(p, second.start, expected);
    condition->attribute = second.text;
    return status;
}

esdm_status
esdm__query_read_operator(esdm__query_parser *p, esdm_meta_operator *ret_op, bool *ret_regex)
{
    static const struct {
        const char *text;
        esdm_meta_operator op;
    } operators[] = {{"==", ESDM_META_EQ}, {"!=", ESDM_META_NE}, {"<=", ESDM_META_LE},
                     {">=", ESDM_META_GE}, {"=", ESDM_META_EQ},  {"<", ESDM_META_LT},
                     {">", ESDM_META_GT},  {"~", ESDM_META_GLOB}};
    esdm__query_skip_blanks(p);
    *ret_regex = p->at[0] == '=' && p->at[1] == '~';
    if (*ret_regex) {
        p->at += 2;
        *ret_op = ESDM_META_GLOB;
        return ESDM_OK;
    }
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        size_t bytes = strlen(operators[i].text);
        if (strncmp(p->at, operators[i].text, bytes) == 0) {
            p->at += bytes;
            *ret_op = operators[i].op;
            return ESDM_OK;
        }
    }
    return esdm__query_wrong(p, p->at,
                             *p->at != '\0' ? "expected one of = != < <= > >= ~"
                                            : "expected one of = != < <= > >= ~ (words of titles "
                                              "and long names: text ~ \"sea ice\")");
}

/* Words such as "nan" and "infinity" are text: nothing compares usefully with them. */
bool
esdm__query_number(esdm__query_parser *p, const char *text, double *ret_number)
{
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    if (!isdigit((unsigned char) digits[0]) &&
        !(digits[0] == '.' && isdigit((unsigned char) digits[1])))
        return false;
    char *end = NULL;
    double number = strtod_l(text, &end, p->c_locale);
    if (*end != '\0' || !isfinite(number))
        return false;
    *ret_number = number;
    return true;
}

esdm_status
esdm__query_add_condition(esdm__query_parser *p, esdm_meta_condition **ret)
{
    return esdm__query_append_condition(&p->query, (size_t) (p->name_at - p->text) + 1, ret,
                                        p->err);
}

esdm_status
esdm__query_add_node(esdm__query_parser *p, esdm__query_node node, size_t *ret_node)
{
    return esdm__query_append_node(&p->query, node, ret_node, p->err);
}

/* A node for the condition that was added last. */
static esdm_status
add_comparison(esdm__query_parser *p, size_t *ret_node)
{
    esdm__query_node node = {.kind = ESDM__QUERY_COMPARISON, .left = p->query.nconditions - 1};
    return esdm__query_add_node(p, node, ret_node);
}

/* Whether a keyword stands here, with something else behind it. */
bool
esdm__query_at_keyword(const esdm__query_parser *p, const char *keyword)
{
    size_t bytes = strlen(keyword);
    char next = p->at[0] != '\0' && strncasecmp(p->at, keyword, bytes) == 0 ? p->at[bytes] : 'x';
    return next == '\0' || esdm__query_is_blank(next) || next == '(';
}

/* "not" and "exists" are names of attributes, too, when a comparison follows. */
static bool
at_prefix(const esdm__query_parser *p, const char *keyword)
{
    if (!esdm__query_at_keyword(p, keyword))
        return false;
    const char *next = p->at + strlen(keyword);
    while (esdm__query_is_blank(*next))
        next++;
    return *next != '\0' && strchr("=!<>~", *next) == NULL;
}

/* "<= 2019-04" means the whole of April: "< 2019-05". The texts of such dates sort by their bytes,
 * and 13 and 32 sort behind all months and days. */
static void
whole_period(esdm_meta_condition *condition, char *text)
{
    size_t bytes = strlen(text);
    if ((condition->op != ESDM_META_LE && condition->op != ESDM_META_GT) ||
        (bytes != 7 && bytes != 10))
        return;
    for (size_t i = 0; i < bytes; i++) {
        bool dash = i == 4 || i == 7;
        if (dash ? text[i] != '-' : !isdigit((unsigned char) text[i]))
            return;
    }
    if (text[bytes - 1]++ == '9') {
        text[bytes - 1] = '0';
        text[bytes - 2]++;
    }
    condition->op = condition->op == ESDM_META_LE ? ESDM_META_LT : ESDM_META_GE;
}

static esdm_status
read_value(esdm__query_parser *p, esdm__query_place where, esdm_meta_condition *condition,
           bool regex)
{
    esdm__query_word value;
    static const char expected[] = "expected a value (put texts with blanks or signs in quotes)";
    char *text = p->out;
    esdm_status status = esdm__query_read_word(p, where, expected, &value);
    if (status != ESDM_OK)
        return status;
    if (!value.quoted && (strcasecmp(value.text, "and") == 0 || strcasecmp(value.text, "or") == 0))
        return esdm__query_wrong(p, value.start, expected);
    condition->text = value.text;
    condition->is_number = !value.quoted && condition->op != ESDM_META_GLOB &&
                           esdm__query_number(p, value.text, &condition->number);
    if (!value.quoted && !regex && esdm__query_is_grid(condition, value.text))
        condition->attribute = "@grid";
    if (!value.quoted && !condition->is_number)
        whole_period(condition, text);
    if (!regex)
        return ESDM_OK;
    /* What may match; its values are looked at later. */
    condition->text = p->out;
    esdm__regex_glob(value.text, p->out);
    p->out += strlen(p->out) + 1;
    status = esdm__regex_new(value.text, &p->query.regexes[p->query.nconditions - 1], p->err);
    if (status != ESDM_OK)
        status = esdm__error_prefix(p->err, status, "query, column %zu",
                                    (size_t) (value.start - p->text) + 1);
    return status;
}

/* A node for the comparison with a value that was added last. */
static esdm_status
add_value(esdm__query_parser *p, size_t *ret_node)
{
    const esdm_meta_condition *condition = &p->query.conditions[p->query.nconditions - 1];
    const char *variable = condition->variable;
    bool grid = strcmp(condition->attribute, "@grid") == 0;
    esdm_status status = add_comparison(p, ret_node);
    if (status == ESDM_OK && grid)
        status = esdm__query_need_variable(p, variable, ret_node);
    return status;
}

/* After "in": the list, each value as a comparison with the first one's name. */
static esdm_status
read_list(esdm__query_parser *p, size_t *ret_node)
{
    const esdm_meta_condition name = p->query.conditions[p->query.nconditions - 1];
    esdm_meta_condition *condition = &p->query.conditions[p->query.nconditions - 1];
    size_t node = 0;
    esdm__query_skip_blanks(p);
    if (*p->at++ != '(')
        return esdm__query_wrong(p, p->at - 1, "expected \"(\" and a list of values after \"in\"");
    for (bool first = true;; first = false) {
        esdm_status status = first ? ESDM_OK : esdm__query_add_condition(p, &condition);
        if (status != ESDM_OK)
            return status;
        *condition = name;
        condition->op = ESDM_META_EQ;
        status = read_value(p, ESDM__QUERY_IN_LIST, condition, false);
        if (status == ESDM_OK)
            status = add_value(p, &node);
        if (status == ESDM_OK && !first)
            status =
                esdm__query_add_node(p, (esdm__query_node){ESDM__QUERY_OR, *ret_node, node}, &node);
        if (status != ESDM_OK)
            return status;
        *ret_node = node;
        esdm__query_skip_blanks(p);
        if (*p->at == ')') {
            p->at++;
            return ESDM_OK;
        }
        if (*p->at != ',')
            return esdm__query_wrong(p, p->at, "expected \",\" or \")\" in the list");
        p->at++;
    }
}

static esdm_status
read_comparison(esdm__query_parser *p, size_t *ret_node)
{
    esdm_meta_condition *condition = NULL;
    bool regex = false, negated = false, special = false;
    esdm__query_skip_blanks(p);
    const char *start = p->at;
    p->name_at = start;
    esdm_status status = esdm__query_add_condition(p, &condition);
    if (status == ESDM_OK)
        status = read_name(p, condition);
    if (status == ESDM_OK)
        status = esdm__query_read_special(p, start, &special, ret_node);
    if (status != ESDM_OK || special)
        return status;
    esdm__query_skip_blanks(p);
    start = p->at;
    if (esdm__query_at_keyword(p, "not")) {
        negated = true;
        p->at += 3;
        esdm__query_skip_blanks(p);
    }
    if (esdm__query_at_keyword(p, "in")) {
        p->at += 2;
        status = read_list(p, ret_node);
        if (status == ESDM_OK && negated)
            status = esdm__query_add_node(p, (esdm__query_node){ESDM__QUERY_NOT, *ret_node, 0},
                                          ret_node);
        return status;
    }
    p->at = start;
    status = esdm__query_read_operator(p, &condition->op, &regex);
    if (status == ESDM_OK)
        status = read_value(p, ESDM__QUERY_IN_VALUE, condition, regex);
    return status == ESDM_OK ? add_value(p, ret_node) : status;
}

static esdm_status read_either(esdm__query_parser *p, size_t *ret_node);

/* After "(". */
static esdm_status
read_brackets(esdm__query_parser *p, const char *start, size_t *ret_node)
{
    esdm_status status = read_either(p, ret_node);
    esdm__query_skip_blanks(p);
    if (status == ESDM_OK && *p->at != ')')
        return *p->at == '\0' ? esdm__query_wrong(p, start, "this bracket is not closed")
                              : esdm__query_wrong(p, p->at, "expected \"and\", \"or\" or \")\"");
    p->at += status == ESDM_OK;
    return status;
}

static esdm_status
read_exists(esdm__query_parser *p, size_t *ret_node)
{
    esdm_meta_condition *condition = NULL;
    p->at += strlen("exists");
    esdm__query_skip_blanks(p);
    const char *start = p->at;
    p->name_at = start;
    esdm_status status = esdm__query_add_condition(p, &condition);
    bool bracket = *p->at == '(';
    p->at += bracket;
    if (status == ESDM_OK)
        status = read_name(p, condition);
    esdm__query_skip_blanks(p);
    if (status == ESDM_OK && bracket && *p->at++ != ')')
        return esdm__query_wrong(p, start, "this bracket is not closed");
    if (status != ESDM_OK)
        return status;
    condition->op = ESDM_META_GLOB;
    condition->text = "*";
    return add_comparison(p, ret_node);
}

static esdm_status
read_one(esdm__query_parser *p, size_t *ret_node)
{
    esdm__query_skip_blanks(p);
    const char *start = p->at;
    bool is_not = at_prefix(p, "not");
    esdm_status status;
    if (p->depth >= MAX_DEPTH)
        return esdm__query_wrong(p, p->at, "brackets and \"not\" are too deep");
    p->depth++;
    if (is_not) {
        p->at += strlen("not");
        status = read_one(p, ret_node);
        if (status == ESDM_OK)
            status = esdm__query_add_node(p, (esdm__query_node){ESDM__QUERY_NOT, *ret_node, 0},
                                          ret_node);
    } else if (*p->at == '(') {
        p->at++;
        p->brackets++;
        status = read_brackets(p, start, ret_node);
        p->brackets--;
    } else if (at_prefix(p, "exists")) {
        status = read_exists(p, ret_node);
    } else {
        status = read_comparison(p, ret_node);
    }
    p->depth--;
    return status;
}

/* One or more parts with the same word between them. */
static esdm_status
read_joined(esdm__query_parser *p, const char *joint,
            esdm_status (*read_part)(esdm__query_parser *, size_t *), size_t *ret_node)
{
    esdm_status status = read_part(p, ret_node);
    while (status == ESDM_OK) {
        size_t right = 0;
        const char *end = p->at;
        esdm__query_skip_blanks(p);
        if ((!esdm__query_is_blank(p->at[-1]) && p->at[-1] != ')') ||
            !esdm__query_at_keyword(p, joint)) {
            p->at = end;
            return ESDM_OK;
        }
        p->at += strlen(joint);
        esdm__query_skip_blanks(p);
        if (*p->at == '\0')
            return joint[0] == 'a'
                       ? esdm__query_wrong(p, p->at, "expected a comparison after \"and\"")
                       : esdm__query_wrong(p, p->at, "expected a comparison after \"or\"");
        status = read_part(p, &right);
        if (status == ESDM_OK)
            status = esdm__query_add_node(
                p,
                (esdm__query_node){joint[0] == 'a' ? ESDM__QUERY_AND : ESDM__QUERY_OR, *ret_node,
                                   right},
                ret_node);
    }
    return status;
}

static esdm_status
read_all(esdm__query_parser *p, size_t *ret_node)
{
    return read_joined(p, "and", read_one, ret_node);
}

static esdm_status
read_either(esdm__query_parser *p, size_t *ret_node)
{
    return read_joined(p, "or", read_all, ret_node);
}

static esdm_status
read_expression(esdm__query_parser *p)
{
    esdm_status status = read_either(p, &p->query.root);
    if (status != ESDM_OK)
        return status;
    esdm__query_skip_blanks(p);
    if (*p->at != '\0')
        return esdm__query_wrong(
            p, p->at, "expected \"and\" or \"or\" (a value with blanks must be in quotes)");
    return ESDM_OK;
}

esdm_status
esdm__query_parse(const char *text, esdm__query *ret_query, esdm_error *err)
{
    size_t bytes = strlen(text);
    if (bytes > MAX_EXPRESSION_BYTES)
        return esdm__error_set(err, ESDM_EINVAL, "the query has %zu bytes, more than %u", bytes,
                               MAX_EXPRESSION_BYTES);
    /* A word has at least one byte in the expression and never grows, but gets a NUL, and the
     * beginning of a name of an extent, which is shorter than 16 bytes. */
    esdm__query_parser p = {.text = text, .at = text, .name_at = text, .err = err};
    p.query.texts = malloc(18 * bytes + 64);
    p.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
    p.out = p.query.texts;
    esdm_status status = ESDM_OK;
    if (p.query.texts == NULL || p.c_locale == (locale_t) 0)
        status = esdm__error_nomem(err, 18 * bytes + 64, "a query");
    if (status == ESDM_OK)
        status = read_expression(&p);
    if (p.c_locale != (locale_t) 0)
        freelocale(p.c_locale);
    if (status == ESDM_OK)
        *ret_query = p.query;
    else
        esdm__query_clear(&p.query);
    return status;
}

void
esdm__query_clear(esdm__query *query)
{
    for (size_t i = 0; i < query->nconditions; i++)
        esdm__regex_free(query->regexes[i]);
    free(query->regexes);
    free(query->columns);
    free(query->conditions);
    for (size_t i = 0; i < query->nnames; i++)
        free(query->names[i]);
    free(query->names);
    free(query->opens);
    free(query->nodes);
    free(query->texts);
    *query = (esdm__query){0};
}
