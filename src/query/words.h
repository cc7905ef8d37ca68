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
    char *out; /* next free byte of the query's texts */
    locale_t c_locale;
    esdm__query query;
    size_t capacity, node_capacity;
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
/** Each word takes at most its bytes in the expression plus a NUL. */
esdm_status esdm__query_read_word(esdm__query_parser *p, esdm__query_place where,
                                  const char *expected, esdm__query_word *ret_word);

#endif
