/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_QUERY_QUERY_H
#define ESDM_QUERY_QUERY_H

/**
 * @file
 * Parser of the expressions of esdm_find().
 *
 *     expression = comparison { "and" comparison }          ("and" in either case)
 *     comparison = name operator value
 *     name       = [ [ word ] ":" ] word                    (":x" is of containers alone)
 *     operator   = "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "~"
 *     value      = word | number
 *     word       = bytes other than blanks, quotes, = ! < > ~ (and ':' in a name)
 *                | text in single or double quotes with the escapes \\ \" \' \n \t \r \/ \uXXXX
 *     number     = a bare word that is a decimal, hexadecimal (0x1f) or floating-point literal
 *
 * A quoted word is never a number nor "and". The right side of `~` is always text.
 */

#include "esdm/sys/meta_store.h"

typedef struct esdm__query {
    esdm_meta_condition *conditions; /**< owned, and their texts with them */
    size_t nconditions;              /**< ≥ 1 */
    char *texts;                     /**< owned; what the conditions point into */
} esdm__query;

/**
 * @param ret_query owned; esdm__query_clear().
 * @return ESDM_EINVAL naming the column (from 1, in bytes) of the first wrong token.
 */
esdm_status esdm__query_parse(const char *text, esdm__query *ret_query, esdm_error *err);
/** A zeroed query is accepted. */
void esdm__query_clear(esdm__query *query);

#endif
