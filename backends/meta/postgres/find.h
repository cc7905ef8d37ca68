/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_POSTGRES_FIND_H
#define ESDM_BACKEND_POSTGRES_FIND_H

/** @file Texts of queries over attributes, with their parameters. One thread at a time. */

#include "postgres.h"

/* Numbers of the parameters of a condition; 0: not made yet. */
typedef struct postgres__find_bound {
    int attribute; /* its name */
    int named;     /* {"n": [name]} */
    int texts;     /* {"s": {name: [text]}} */
    int numbers;   /* {"d": {name: [number]}} */
    int forms;     /* {"f": {name: [text]}} */
    int number;
    int text; /* or the regular expression of a pattern */
    int variable;
    int span, lon;   /* boxes that objects which can meet it reach into (find_reach.c) */
    int begins;      /* of a glob that says how a text begins: path to such a text */
    int begins_form; /* and to such a number as it is written */
    bool listed;     /* all values that a container can meet it by are known: none but these */
    int values;      /* path to one of them; 0: there is none */
    int value_forms; /* and to such a number as it is written */
    int pair;        /* name and text, of which there may be marks and counts (find_marks.c) */
    size_t alike;    /* the first condition with the same boxes; its own number: none */
    bool proven;     /* all containers meet it that are looked at, while a text is written */
} postgres__find_bound;

/* What is asked for. */
typedef enum postgres__find_what {
    POSTGRES__FIND_NAMES,      /* name and path of all that is found */
    POSTGRES__FIND_DATASETS,   /* the same of datasets alone, in no order */
    POSTGRES__FIND_CONTAINERS, /* name and attributes of the containers that are found */
} postgres__find_what;

typedef struct postgres__find_query {
    esdm__buffer sql;
    postgres__params params;
    const esdm_meta_condition *conditions;
    size_t nconditions;
    esdm_meta_expression expression; /* of these; has nodes */
    esdm_meta_node *nodes;           /* owned; NULL: they are the caller's */
    bool *holds;                     /* of each condition: it must hold somewhere; owned */
    size_t *starts;                  /* conditions by which candidates are found; owned */
    size_t nstarts;
    /* Equalities that must hold, which no dataset meets by itself: the index is asked for all of
     * them at once, and they count as one. Owned. */
    size_t *together;
    size_t ntogether;
    bool covered;  /* they find all; else containers come from the list of all */
    size_t proven; /* the condition that all containers meet anyhow that are looked at; SIZE_MAX:
                      none */
    /* Of each condition how many containers meet it, and how many datasets;
     * POSTGRES__COUNT_UNKNOWN: many, or still to be counted. NULL: none is known. Owned. */
    uint64_t *counts;
    uint64_t *guesses; /* the same from what little a sample has seen of them; owned */
    uint64_t least;    /* the starts' */
    uint64_t per_seen; /* objects for each one that a sample sees */
    size_t near;    /* condition with a box into which the containers that a start finds must reach:
                       all that do are listed beforehand; SIZE_MAX: none */
    bool has_paths; /* the server knows jsonpath */
    bool has_places; /* and reads rows from one place of a table to another */
    bool has_marks;  /* rows of `reach` have marks, and some are asked for (find_marks.c) */
    bool has_ends;   /* e has the row of `reach` of each container, while a text is written */
    bool to_begin;   /* counts are for choosing where to begin: they may be the most there are */
    bool has_counts; /* of some values it is kept how many containers have them */
    postgres__find_what what;
    int among; /* parameter: numbers of the containers that are looked at; 0: all */
    postgres__find_bound *bound; /* of each condition; owned */
} postgres__find_query;

#define POSTGRES__COUNT_UNKNOWN UINT64_MAX
/** Objects that are counted at first for each condition. */
#define POSTGRES__COUNT_FIRST UINT64_C(256)
/** How much more is counted each time. */
#define POSTGRES__COUNT_GROWTH 8u

/** Whether it is about the container's own attributes and ends, whatever an object has (":name").
 */
static inline bool
postgres__find_is_for_container(const esdm_meta_condition *condition)
{
    return condition->variable != NULL && condition->variable[0] == '\0';
}

static inline bool
postgres__find_is_extent(const esdm_meta_condition *condition)
{
    return esdm_meta_is_extent(condition->attribute);
}

/** Up to what condition i is counted: ends are short entries of an index, of which many are read in
 *  the time that an object takes. */
static inline uint64_t
postgres__find_most_counted(const postgres__find_query *q, size_t i, uint64_t limit)
{
    return postgres__find_is_extent(&q->conditions[i]) ? limit * POSTGRES__COUNT_GROWTH : limit;
}

/** Binds the conditions, and chooses where to begin. @param ret_query owned, postgres__find_end(),
 *  also where this fails. */
esdm_status postgres__find_begin(postgres__store *store, const esdm_meta_expression *expression,
                                 postgres__find_query **ret_query, esdm_error *err);
/** The same of some containers: there is nothing to choose. */
esdm_status postgres__find_begin_among(postgres__store *store,
                                       const esdm_meta_expression *expression,
                                       const uint64_t *containers, size_t ncontainers,
                                       postgres__find_query **ret_query, esdm_error *err);
void postgres__find_end(postgres__find_query *q);
/** Runs the text. @param ret_result owned, PQclear(). */
esdm_status postgres__find_ask(postgres__store *store, postgres__find_query *q,
                               PGresult **ret_result, esdm_error *err);
/** Makes the parameters of condition i. */
void postgres__find_bind(postgres__find_query *q, size_t i);
/** Makes the boxes of all conditions that have some. @return ESDM_ENOMEM. */
esdm_status postgres__find_bind_reach(postgres__find_query *q, esdm_error *err);
/** Makes the pairs of which marks are asked, where there are boxes, and counts. */
void postgres__find_bind_pairs(postgres__find_query *q);
/** ", n": how many containers have what condition i equals, as far as that is kept; 0: it is not.
 */
void postgres__find_put_kept_count(postgres__find_query *q, size_t i);
/** Appends to the text. */
void postgres__find_put(postgres__find_query *q, const char *text);
/** The same; @ stands for the alias and # for the number of a parameter. */
void postgres__find_put_pattern(postgres__find_query *q, const char *pattern, const char *alias,
                                int parameter);
/** The query, with the starts that were chosen. */
void postgres__find_put_query(postgres__find_query *q);
/** How many containers and datasets can meet each condition whose counts are not known, up to a
 *  limit: what the index says; 0 for the others. The first of those that count together has their
 *  count of containers. */
void postgres__find_put_counts(postgres__find_query *q, uint64_t limit);
/** Whether count k is not counted up to that limit, as a sample says that there are more. */
bool postgres__find_is_guessed(const postgres__find_query *q, size_t k, uint64_t limit);
/** Patterns of which it is known what values of containers match: they become lists of these
 *  (find_list.c). */
esdm_status postgres__find_list_values(postgres__store *store, postgres__find_query *q,
                                       esdm_error *err);
/** They are patterns again where a dataset may meet them by itself. After samples, if there are
 *  counts. */
esdm_status postgres__find_confirm_lists(postgres__store *store, postgres__find_query *q,
                                         esdm_error *err);
/** Writes the text of a query with what is listed now, up to its end. */
typedef void (*postgres__find_writer)(postgres__find_query *q, const void *user);
/** Asks what `write` writes, and again where values that match were committed after they had been
 *  listed. @param ret_result NULL before; owned, also after an error. */
esdm_status postgres__find_answer(postgres__store *store, postgres__find_query *q,
                                  postgres__find_writer write, const void *user,
                                  PGresult **ret_result, esdm_error *err);
/** Whether a dataset has the attribute of condition i, as a sample, unless it was `sampled`, and
 *  then the index say. */
void postgres__find_put_dataset_has(postgres__find_query *q, size_t i, bool sampled);
/** Where conditions are looked for. */
typedef enum postgres__find_table {
    POSTGRES__FIND_OBJECT,
    POSTGRES__FIND_EXTENT,
    POSTGRES__FIND_REACH,
    POSTGRES__FIND_TABLES /* as many as there are */
} postgres__find_table;
postgres__find_table postgres__find_table_of(const postgres__find_query *q, size_t i);
/** A sample of a table: how many pages there are for each one of it, then how many containers and
 *  datasets in it meet each condition that is looked for there. Of objects then the counts that are
 *  kept. */
void postgres__find_put_sample(postgres__find_query *q, postgres__find_table table);
/** The object `alias` has a value that equals; by the index. */
void postgres__find_put_equal(postgres__find_query *q, const postgres__find_bound *b,
                              const char *alias);
/** The same of a pattern whose values are listed. */
void postgres__find_put_listed(postgres__find_query *q, const postgres__find_bound *b,
                               const char *alias);
/** The same of all that are asked for together. */
void postgres__find_put_together(postgres__find_query *q, const char *alias);
bool postgres__find_is_together(const postgres__find_query *q, size_t i);
/** The row x of `extent` meets condition i. */
void postgres__find_put_extent(postgres__find_query *q, size_t i);
/** The row x of `reach` can meet condition i, which has boxes. */
void postgres__find_put_reach(postgres__find_query *q, size_t i);
/** What the row e of `reach`, of a container, tells of condition i without doubt: both ends meet
 * it.
 *  @return false: nothing is written. */
bool postgres__find_put_sure(postgres__find_query *q, size_t i);
/** "AND …": the row x of `reach`, of a container, can have the attributes that it must have beside
 *  a box. */
void postgres__find_put_marks(postgres__find_query *q);
/** "WHERE …": the container u, of which some extent is known, can have the attributes that it must
 *  have, as far as there is a row of `reach` that has marks. */
void postgres__find_put_marks_of_start(postgres__find_query *q);
/** "table x WHERE …": rows of the table in which condition i is looked for that can meet it. */
void postgres__find_put_ranges(postgres__find_query *q, size_t i);
/** Ends the text. */
void postgres__find_end_text(postgres__find_query *q);

#endif
