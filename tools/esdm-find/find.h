/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TOOL_ESDM_FIND_H
#define TOOL_ESDM_FIND_H

/** @file Answers of esdm-find as tables and counts. */

#include "common/common.h"

typedef struct find_options {
    gboolean zero, containers_only;
    char *columns; /* NAME,NAME…; NULL: names alone */
    char *sort;    /* [-]NAME,[-]NAME… */
    char *facets;  /* NAME,NAME… */
    gint64 limit;  /* 0: none */
} find_options;

/** A table: --columns, --sort and --limit. */
tool_exit find_table(esdm_session *session, const char *expression, const find_options *options);
/** How many containers have each value of some attributes: --facets. */
tool_exit find_facets(esdm_session *session, const char *expression, const find_options *options);
/** Keeps, or forgets (expression NULL), a query. */
tool_exit find_save(const char *name, const char *expression);
/** Prints the queries that are kept. */
tool_exit find_list_saved(void);
/** The expression of the arguments, joined by "and"; "NAME:" is the query that was saved as NAME,
 *  "VIEW:/PLACE" what lies at a place of a view.
 *  @param ret_expression owned, g_free(). */
tool_exit find_expression(esdm_session *session, char **arguments, char **ret_expression);
/** Tells why an expression found nothing: names, or comparisons, that nothing has. */
void find_tell_why(esdm_session *session, const char *expression);
/** Where an expression has max() or min(): tells how many containers have no range of that
 * variable, and so cannot be found, whatever else was. */
void find_tell_ranges(esdm_session *session, const char *expression);

#endif
