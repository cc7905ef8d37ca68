/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_QUERY_QUERY_H
#define ESDM_QUERY_QUERY_H

/**
 * @file
 * Expressions of esdm_find().
 *
 *     expression = all { "or" all }                           (words in either case)
 *     all        = one { "and" one }
 *     one        = "not" one | "(" expression ")" | "exists" name | comparison
 *     comparison = name operator value
 *                | name [ "not" ] "in" "(" value { "," value } ")"
 *                | [ scope ] "time overlaps" date [ ".." date ]
 *                | [ scope ] "box overlaps" west "," south "," east "," north      (degrees)
 *                | [ scope ] "level overlaps" number [ ".." number ] [ unit ]
 *                | [ scope ] "grid" operator kind  (a bare word: regular curvilinear unstructured
 * point) | ( "min" | "max" ) "(" variable ")" operator number [ unit ] | "length" "(" dimension ")"
 * operator number | "text ~" words        (of titles, long names and comments; "word*": a
 * beginning) scope      = [ variable ] ":" name       = [ [ word ] ":" ] word (":x" is of
 * containers alone) operator   = "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "~" (glob) | "=~"
 * (PCRE2) value      = word | number word       = bytes other than blanks, quotes, = ! < > ~ (and
 * ':' in a name, ',' in a list); within brackets a ')' that closes none of the word's own ends it
 *                | text in single or double quotes with the escapes \\ \" \' \n \t \r \/ \uXXXX
 *     number     = a bare word that is a decimal, hexadecimal (0x1f) or floating-point literal
 *
 * A quoted word is never a number nor a keyword. The right sides of `~` and `=~` are always text. A
 * bare month or day (2019-04, 2019-04-05) after `<=` or `>` stands for all of it.
 *
 * An expression is brought into the form of *terms*, one of which must hold: comparisons that all
 * hold, and others of which none does.
 */

#include "esdm/sys/meta_store.h"

typedef struct esdm__query_node {
    enum {
        ESDM__QUERY_NEVER,      /* nothing meets it */
        ESDM__QUERY_OPEN,       /* `left` is the number of what is to be looked up */
        ESDM__QUERY_COMPARISON, /* `left` is its number */
        ESDM__QUERY_AND,
        ESDM__QUERY_OR,
        ESDM__QUERY_NOT /* of `left` */
    } kind;
    size_t left, right;
} esdm__query_node;

/** Compiled regular expression of a comparison. */
typedef struct esdm__regex esdm__regex;

/** A comparison with extents whose names the store has to tell: their units are in these. */
typedef struct esdm__query_open {
    const char *said;   /**< as the expression says it, "max(tas)" */
    const char *prefix; /**< of the names: "@max:tas\t" */
    const char *upper;  /**< of a range: the prefix of its upper ends, `prefix` that of the lower */
    const char *unit;   /**< NULL: none was said, the numbers are in that of the data */
    esdm_meta_operator op;
    double number;
    double to;     /**< end of a range */
    size_t column; /**< of the unit, from 1 */
    size_t name_column;
    const char *variable;
    bool found; /**< some container has such a name; set when it is looked up */
} esdm__query_open;

typedef struct esdm__query {
    esdm_meta_condition *conditions; /**< owned, and their texts with them, in order of the text */
    esdm__regex **regexes;           /**< of each condition; NULL: none. One that has some is a glob
                                        that finds what may match (esdm__regex_glob()) */
    size_t *columns;                 /**< of each condition: where its name begins, from 1; owned */
    size_t nconditions;              /**< ≥ 1 */
    esdm__query_node *nodes;         /**< owned */
    size_t nnodes;
    size_t root;
    char *texts;             /**< owned; what the conditions point into */
    esdm__query_open *opens; /**< owned */
    size_t nopens;
    char **names; /**< owned; names that were looked up */
    size_t nnames;
    bool resolved;
    uint32_t most_ms; /**< of the store, for each of its statements; 0: no limit */
} esdm__query;

/** What must hold together: numbers of conditions, first those that hold, then those that do not.
 */
typedef struct esdm__query_term {
    size_t *conditions; /**< owned by the list */
    size_t holds, fails;
} esdm__query_term;

typedef struct esdm__query_terms {
    esdm__query_term *items; /**< owned, with what they own */
    size_t count;
} esdm__query_terms;

/** More terms than this are refused. */
#define ESDM__QUERY_TERMS_MAX 4096

/**
 * @param ret_query owned; esdm__query_clear().
 * @return ESDM_EINVAL naming the column (from 1, in bytes) of the first wrong token.
 */
esdm_status esdm__query_parse(const char *text, esdm__query *ret_query, esdm_error *err);
/** Asks the store what open comparisons are about; needed before all that follows. @return
 *  ESDM_EINVAL: a unit that fits none of the data's, with its column. */
esdm_status esdm__query_resolve(const esdm_meta_plugin *meta, void *store, esdm__query *query,
                                esdm_error *err);
/** Appends a node, or a zeroed comparison whose name begins at `column`. */
esdm_status esdm__query_append_node(esdm__query *query, esdm__query_node node, size_t *ret_node,
                                    esdm_error *err);
esdm_status esdm__query_append_condition(esdm__query *query, size_t column,
                                         esdm_meta_condition **ret, esdm_error *err);
/** A zeroed query is accepted. */
void esdm__query_clear(esdm__query *query);

/** @param ret_terms owned; esdm__query_terms_clear(). @return ESDM_EINVAL: too many. */
esdm_status esdm__query_terms_make(const esdm__query *query, esdm__query_terms *ret_terms,
                                   esdm_error *err);
void esdm__query_terms_clear(esdm__query_terms *terms);

/**
 * The query as a store is asked it at once: nodes of one kind joined, "not" moved to comparisons.
 * *ret_nodes: owned, free(), the expression's; NULL: it has regular expressions, which no store
 * knows, or is too long or too deep.
 */
esdm_status esdm__query_expression(const esdm__query *query, esdm_meta_expression *ret_expression,
                                   esdm_meta_node **ret_nodes, esdm_error *err);

/** Asks the store several things. */
typedef esdm_status (*esdm__query_asking)(void *user, esdm_error *err);
/** All that `ask` asks sees one state of the store, where it can hold one: what is renamed
 *  meanwhile would else be in none of the answers. A state that is lost is given up, and the
 *  questions are asked anew. Visitors of the caller do not run meanwhile, and it is not nested.
 *  @param forget forgets what `ask` found out so far. */
esdm_status esdm__query_of_one_state(const esdm_meta_plugin *meta, void *store,
                                     esdm__query_asking ask, void (*forget)(void *user), void *user,
                                     esdm_error *err);

/** What the store has that meets the query, by byte order of containers and datasets, each once;
 *  of one state of the store. */
esdm_status esdm__query_find(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                             esdm_meta_match_visitor visit, void *user, esdm_error *err);
/** The same of the states at hand; for those who hold one. */
esdm_status esdm__query_find_here(const esdm_meta_plugin *meta, void *store,
                                  const esdm__query *query, esdm_meta_match_visitor visit,
                                  void *user, esdm_error *err);

/** An attribute of a match: its own or, lacking it, its container's. */
typedef struct esdm__query_value {
    const char *text; /**< elements joined by ", "; NULL: there is none */
    double number;
    bool has_number; /**< it is one number */
} esdm__query_value;
typedef bool (*esdm__query_row_visitor)(const char *container, const char *dataset,
                                        const esdm__query_value *values, void *user);

/** esdm__query_find_here() with the values of some attributes, as the index has them. */
esdm_status esdm__query_rows(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                             const char *const *columns, size_t ncolumns,
                             esdm__query_row_visitor visit, void *user, esdm_error *err);

/** The same of what is found among some containers, by the store's numbers; and without values.
 *  @return ESDM_ENOTSUP: the store cannot, or not with this query. */
esdm_status esdm__query_rows_among(const esdm_meta_plugin *meta, void *store,
                                   const esdm__query *query, const uint64_t *containers,
                                   size_t ncontainers, const char *const *columns, size_t ncolumns,
                                   esdm__query_row_visitor visit, void *user, esdm_error *err);
esdm_status esdm__query_find_among(const esdm_meta_plugin *meta, void *store,
                                   const esdm__query *query, const uint64_t *containers,
                                   size_t ncontainers, esdm_meta_match_visitor visit, void *user,
                                   esdm_error *err);
/** About how many containers are looked at. @return ESDM_ENOTSUP as above. */
esdm_status esdm__query_estimate(const esdm_meta_plugin *meta, void *store,
                                 const esdm__query *query, uint64_t *ret_containers,
                                 esdm_error *err);

/** How rows are sorted (query/sorted.c). */
typedef struct esdm__query_order {
    const char *const *keys;
    const bool *descending; /**< of each key */
    size_t nkeys;
    uint64_t limit;  /**< rows; 0: all */
    bool containers; /**< of each container the first match by its name alone */
} esdm__query_order;
/**
 * The first rows of esdm__query_rows() by some attributes: numbers before texts, what lacks the
 * attribute last in either direction, rows that are alike by names. Where the store has an index in
 * the order of the first key, and many rows are found, no more is read of that than it takes.
 */
esdm_status esdm__query_sorted(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                               const char *const *columns, size_t ncolumns,
                               const esdm__query_order *order, esdm__query_row_visitor visit,
                               void *user, esdm_error *err);

/** As `values` of the store, which may lack it: then each container is asked for. */
esdm_status esdm__query_values(const esdm_meta_plugin *meta, void *store,
                               const char *const *containers, size_t ncontainers,
                               const char *const *names, size_t nnames, bool datasets,
                               esdm_meta_value_visitor visit, void *user, esdm_error *err);

/** How many of the containers that are found, or in which something is, have each value of some
 *  attributes; of each name the most frequent value first. */
esdm_status esdm__query_facets(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                               const char *const *names, size_t nnames,
                               esdm_meta_facet_visitor visit, void *user, esdm_error *err);
/** The conditions whose attributes nothing has. */
esdm_status esdm__query_unknown(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                                bool (*visit)(const esdm_meta_condition *condition, size_t column,
                                              void *user),
                                void *user, esdm_error *err);
/** The same in words, with what was perhaps meant: why the query finds nothing. */
esdm_status esdm__query_explain(const esdm_meta_plugin *meta, void *store, const esdm__query *query,
                                bool (*visit)(const char *text, void *user), void *user,
                                esdm_error *err);

/** What a store found, and whether its value matches. */
typedef struct esdm__query_object {
    const char *container, *dataset; /**< borrowed; NULL: the container itself */
    bool matches;
} esdm__query_object;
/**
 * Looks at the values that some objects have of the attribute of a condition:
 * their own or, lacking it, their container's; those of a condition on
 * containers alone are theirs. The store is asked for many containers at once.
 * @param objects sorted by container; sets `matches`.
 */
esdm_status esdm__query_match(const esdm_meta_plugin *meta, void *store,
                              const esdm_meta_condition *condition, const esdm__regex *regex,
                              esdm__query_object *objects, size_t count, esdm_error *err);

/** @return ESDM_EINVAL with the place in the pattern. @param ret_regex owned; esdm__regex_free().
 */
esdm_status esdm__regex_new(const char *pattern, esdm__regex **ret_regex, esdm_error *err);
void esdm__regex_free(esdm__regex *regex); /**< NULL is accepted */
/** A glob that all texts meet which the pattern matches: "^CNRM-[0-9]" gives
 * "CNRM-*", what says nothing for certain "*". @param ret_glob room for twice
 * the pattern and 4 bytes. */
void esdm__regex_glob(const char *pattern, char *ret_glob);
/** Whether some part of the text matches. @return ESDM_EINVAL when that takes too long to tell. */
esdm_status esdm__regex_matches(const esdm__regex *regex, const char *text, bool *ret_matches,
                                esdm_error *err);

#endif
