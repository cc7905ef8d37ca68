/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_SQLITE_FIND_H
#define ESDM_BACKEND_SQLITE_FIND_H

/** @file Queries over attributes as SQL. One thread at a time. */

#include "base/buffer.h"
#include "esdm/sys/meta_store.h"
#include "sql.h"
#include "store.h"

/** Parameters of condition i: ?6i+1 attribute, +2 number, +3 text, +4 "/variable", +5 and +6 the
 *  range of values in which a text can be found. */
enum {
    SQLITE__FIND_ATTRIBUTE = 1,
    SQLITE__FIND_NUMBER,
    SQLITE__FIND_TEXT,
    SQLITE__FIND_VARIABLE,
    SQLITE__FIND_FROM,
    SQLITE__FIND_TO,
    SQLITE__FIND_PARAMETERS = 6
};

/** The range of values in which a condition on a text looks beside the text itself. */
typedef struct sqlite__find_range {
    enum {
        SQLITE__FIND_NO_RANGE,
        SQLITE__FIND_NUMBERS, /* equality: numbers that may be written as the text */
        SQLITE__FIND_TEXTS    /* a pattern: texts that begin as it does */
    } kind;
    double from, to;
    char *texts[2];   /* owned */
    bool no_datasets; /* none of the index has such an attribute */
} sqlite__find_range;

/** Containers that a tree finds. */
typedef struct sqlite__tree_list {
    uint64_t *numbers; /* in order, UINT64_MAX behind them; owned; NULL: it helps nothing */
    size_t count;
} sqlite__tree_list;

typedef struct sqlite__query {
    esdm__buffer sql;
    bool numbers;      /* of containers and datasets are asked for, not names and paths */
    const char *table; /* that the part being written reads */
    const esdm_meta_condition *conditions;
    size_t nconditions;
    esdm_meta_expression expression; /* of these; has nodes */
    esdm_meta_node *nodes;           /* owned; NULL: they are the caller's */
    sqlite__find_range *ranges;      /* of each condition; owned */
    bool *holds;                     /* of each: it must hold somewhere; owned */
    size_t *starts;                  /* conditions by which candidates are found; owned */
    size_t nstarts;
    bool covered;               /* they find all; else containers come from the list of all */
    size_t parts;               /* of the list that is being written */
    size_t proven;              /* the condition that candidates meet anyhow; SIZE_MAX: none */
    bool narrowed;              /* candidates in the index are the containers of `met` */
    esdm__buffer met;           /* a JSON array of their numbers, in order */
    bool *is_met;               /* of each condition: these containers meet it; owned */
    bool among;                 /* they are those that were asked for, and meet nothing yet */
    sqlite__tree_list trees[2]; /* times, boxes */
    bool trees_searched;
} sqlite__query;

/** The expression is the caller's. */
esdm_status sqlite__query_init(sqlite__query *q, const esdm_meta_expression *expression,
                               esdm_error *err);
void sqlite__query_clear(sqlite__query *q);
/** Chooses the starts by how many entries each condition has. @param ret_sum of those. */
void sqlite__query_begin(sqlite__query *q, const uint64_t *counts, uint64_t *ret_sum);
/**
 * Finds the containers that meet the equalities, and can meet the ranges of time and boxes, that
 * must hold together, where there are several (find_meet.c), and remembers whether it did.
 * @param counts of each condition: those with few entries come first. @param steps it may take.
 */
esdm_status sqlite__find_meet(sqlite__link *link, sqlite__query *q, const uint64_t *counts,
                              uint64_t steps, esdm_error *err);
/** Whether it takes sets of containers: before 3.38 SQLite can be without functions for JSON. */
bool sqlite__takes_sets(sqlite__link *link);
/** Searches the trees, once, for containers that can meet what must hold of times, and of boxes:
 *  lists that the query keeps. None where nothing is asked, or too much is found. */
esdm_status sqlite__find_in_trees(sqlite__link *link, sqlite__query *q, esdm_error *err);
/** Text that counts entries of the index at which condition i has to look, up to the limit
 *  ?1 + parameters of all conditions. */
void sqlite__query_put_count(sqlite__query *q, size_t i);
/** Text of the query itself. @param with_pending there are containers with larger numbers than
 *  ?1 + parameters of all conditions, whose attributes are in temp.pending. The parameter behind
 *  that one is the set of containers, where there is one. */
void sqlite__query_put(sqlite__query *q, bool with_pending);

/* ---- parts of the text (find_text.c) ---- */

/** A part of the index (name, value) and what is to be asked there; NULL: nothing. */
typedef struct sqlite__find_arm {
    const char *range;
    const char *rest;
} sqlite__find_arm;

enum { SQLITE__FIND_ARMS = 2 };

/** Attributes `a` of the dataset o, and of its container. */
#define SQLITE__FIND_OWN    "a.container = o.container AND a.dataset = o.dataset"
#define SQLITE__FIND_GLOBAL "a.container = o.container AND a.dataset = 0"

void sqlite__find_put(sqlite__query *q, const char *text);
/** Writes a text in which @ stands for the alias and $a $n $t $v $f $u for parameters. */
void sqlite__find_put_pattern(sqlite__query *q, size_t condition, const char *alias,
                              const char *pattern);
bool sqlite__find_is_extent(const sqlite__query *q, size_t i);
/** The values of an attribute that meet the condition are those of all arms together. */
size_t sqlite__find_arms_of(const sqlite__query *q, size_t i,
                            sqlite__find_arm arms[SQLITE__FIND_ARMS]);
/** " AND range AND rest" */
void sqlite__find_put_arm(sqlite__query *q, size_t i, const char *alias,
                          const sqlite__find_arm *one, bool with_rest);
/** " AND (value meets condition i)". The unary + keeps SQLite from searching all objects by
 *  value. */
void sqlite__find_put_value(sqlite__query *q, size_t i, const char *alias);
/** Whether a dataset that meets the condition by itself may be found by that. */
bool sqlite__find_finds_datasets(const sqlite__query *q, size_t i);
/** The table that has the rows of condition i. */
const char *sqlite__find_table_of(const sqlite__query *q, size_t i);
/** The temporary table has few rows, and no index over values. */
void sqlite__find_put_by_value(sqlite__query *q, size_t i);
/** EXISTS over one object's attributes: `of` restricts to the object. */
void sqlite__find_put_exists(sqlite__query *q, size_t i, const char *of, bool with_value);
void sqlite__find_put_variable(sqlite__query *q, size_t i, const char *alias);
/** Whether condition i holds for the dataset o. */
void sqlite__find_put_holds(sqlite__query *q, size_t i);
/** Entries of the index that meet the start. */
void sqlite__find_put_start(sqlite__query *q, const char *before, size_t start,
                            const sqlite__find_arm *one, const char *which);

/** A row of what was found: name and path, NULL for containers, or the numbers of both. */
typedef bool (*sqlite__row_visitor)(sqlite3_stmt *row, void *user);
/** What asks within a transaction, see sqlite__ask(). */
typedef esdm_status (*sqlite__question)(sqlite__link *link, const esdm_meta_expression *expression,
                                        void *user, esdm_error *err);
/** Asks the reader in a transaction of its own, as long as the expression allows it. */
esdm_status sqlite__ask(sqlite__store *store, const esdm_meta_expression *expression,
                        sqlite__question question, void *user, esdm_error *err);
typedef struct sqlite__matching {
    esdm_meta_match_visitor visit;
    void *user;
} sqlite__matching;
/** Hands out names and paths. @param user a sqlite__matching. */
bool sqlite__visit_match(sqlite3_stmt *row, void *user);

/** Visits what meets the expression, in order. Within a question of sqlite__ask():
 *  containers that wait to be entered are in temp.pending, which nothing else may change. */
esdm_status sqlite__find_rows(sqlite__link *link, const esdm_meta_expression *expression,
                              bool numbers, sqlite__row_visitor visit, void *user, esdm_error *err);

/** The same among some containers. */
esdm_status sqlite__find_rows_among(sqlite__link *link, const esdm_meta_expression *expression,
                                    const uint64_t *containers, size_t ncontainers,
                                    sqlite__row_visitor visit, void *user, esdm_error *err);
/** How many containers it would look at, more or less. Within a question, too. */
esdm_status sqlite__find_count(sqlite__link *link, const esdm_meta_expression *expression,
                               uint64_t *ret_containers, esdm_error *err);

/** Fills temp.pending, as sqlite__find_rows() does. */
esdm_status sqlite__find_keep_pending(sqlite__link *link, esdm_error *err);

static inline bool
sqlite__names_variable(const esdm_meta_condition *condition)
{
    return condition->variable != NULL && condition->variable[0] != '\0';
}

#endif
