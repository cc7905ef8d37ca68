/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TOOL_ESDM_FIND_H
#define TOOL_ESDM_FIND_H

/** @file Answers of esdm-find as tables and counts. */

#include "common/common.h"

typedef struct find_options {
    gboolean zero, containers_only;
    char *columns;  /* NAME,NAME…; NULL: names alone */
    char *sort;     /* [-]NAME,[-]NAME… */
    char *facets;   /* NAME,NAME… */
    gint64 limit;   /* 0: none */
    char **without; /* containers, or patterns, that are left out; NULL: none */
} find_options;

/** A table: --columns, --sort and --limit. */
tool_exit find_table(esdm_session *session, const char *expression, const find_options *options);
/** A name, or pattern, without "esdm://"; borrowed. */
const char *find_name_of(const char *argument);
/** Whether a container is one of --without. */
bool find_is_left_out(const find_options *options, const char *container);
typedef bool (*find_value_visitor)(size_t name, const char *value, uint64_t containers, void *user);
/** esdm_find_facets() of the containers that are not left out. */
esdm_status find_count_values(esdm_session *session, const char *expression,
                              const find_options *options, const char *const *names, size_t nnames,
                              find_value_visitor visit, void *user, esdm_error *err);
/** How many containers have each value of some attributes: --facets. */
tool_exit find_facets(esdm_session *session, const char *expression, const find_options *options);
/** Whether the arguments are words alone, no expression. */
bool find_are_words(char **arguments);
/** Tells which expressions find something by them; questions of the session end early from then on.
 *  @return TOOL_USAGE. */
tool_exit find_tell_words(esdm_session *session, const char *words);
/** Keeps, or forgets (expression NULL), a query. */
tool_exit find_save(const char *name, const char *expression);
/** Prints the queries that are kept. */
tool_exit find_list_saved(void);
/** The expression of the arguments, joined by "and"; "NAME:" is the query that was saved as NAME,
 *  "VIEW:/PLACE" what lies at a place of a view.
 *  @param ret_expression owned, g_free(). */
tool_exit find_expression(esdm_session *session, char **arguments, char **ret_expression);
/** Tells why an expression found nothing: names, or comparisons, that nothing has; what can be
 * found out in a moment. From then on questions of the session end after 0.3 s. */
void find_tell_why(esdm_session *session, const char *expression);
/** Where an expression has max() or min(): tells how many containers have no range of that
 * variable, and so cannot be found, whatever else was. @param nothing nothing was found. */
void find_tell_ranges(esdm_session *session, const char *expression, bool nothing);
/** Tells which attributes of --columns, --sort and --facets nothing in the site has, and names like
 * them, each once; what can be found out in a moment. Questions of the session end early then. */
void find_tell_names(esdm_session *session, const find_options *options);

#endif
