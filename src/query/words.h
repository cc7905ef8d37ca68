/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_QUERY_WORDS_H
#define ESDM_QUERY_WORDS_H

/** @file Words of a query, and where its parser stands. One thread. */

#include <locale.h>
#include <stdbool.h>

#include "query/query.h"

typedef struct esdm__query_parser {
    const char *text;
    const char *at;
    const char *name_at; /* where the name of the comparison begins */
    char *out;           /* next free byte of the query's texts */
    locale_t c_locale;
    esdm__query query;
    int brackets; /* that are open */
    int depth;    /* of brackets and "not" */
    esdm_error *err;
} esdm__query_parser;

/* Where a word stands decides what ends it. */
typedef enum esdm__query_place {
    ESDM__QUERY_IN_NAME,
    ESDM__QUERY_IN_VALUE,
    ESDM__QUERY_IN_LIST
} esdm__query_place;

typedef struct esdm__query_word {
    const char *text; /* NUL-terminated, in the query's texts */
    const char *start;
    bool quoted;
} esdm__query_word;

/** Blanks of the C locale. */
bool esdm__query_is_blank(char c);
void esdm__query_skip_blanks(esdm__query_parser *p);
/** ESDM_EINVAL: the column of `at`, what is wrong, and what stands there. */
esdm_status esdm__query_wrong(esdm__query_parser *p, const char *at, const char *what);
/** Makes room for one more condition; zeroed, at the end. */
esdm_status esdm__query_add_condition(esdm__query_parser *p, esdm_meta_condition **ret);
esdm_status esdm__query_add_node(esdm__query_parser *p, esdm__query_node node, size_t *ret_node);
/** Whether a word in lower case is a number. */
bool esdm__query_number(esdm__query_parser *p, const char *text, double *ret_number);
bool esdm__query_at_keyword(const esdm__query_parser *p, const char *keyword);
esdm_status esdm__query_read_operator(esdm__query_parser *p, esdm_meta_operator *ret_op,
                                      bool *ret_regex);

/* special.c */

/** After the name, the last condition that was added: whether it is a comparison of its own kind,
 *  which is read then. @param start of the name. */
esdm_status esdm__query_read_special(esdm__query_parser *p, const char *start, bool *ret_special,
                                     size_t *ret_node);
/** Whether `grid = VALUE` is about the kind of the grid, not about an attribute of that name. */
bool esdm__query_is_grid(const esdm_meta_condition *condition, const char *value);
/** What a comparison of a named variable's grid or ranges needs besides: that there is such a
 *  variable. *node becomes both. */
esdm_status esdm__query_need_variable(esdm__query_parser *p, const char *variable, size_t *node);

/** Each word takes at most its bytes in the expression plus a NUL. */
esdm_status esdm__query_read_word(esdm__query_parser *p, esdm__query_place where,
                                  const char *expected, esdm__query_word *ret_word);

#endif
