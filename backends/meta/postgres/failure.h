/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BACKEND_POSTGRES_FAILURE_H
#define ESDM_BACKEND_POSTGRES_FAILURE_H

/** @file From libpq's and the server's failures to ours. */

#include "link.h"

/** Whether a server has said why it refuses the connection. */
bool postgres__has_code(const PGconn *conn);
/** Why a connection could not be made. @param in_time false: nobody answered. */
esdm_status postgres__connect_error(const postgres__config *config, PGconn *conn, bool in_time,
                                    postgres__failure *ret_failure, esdm_error *err);
/** What the server says about a statement. */
esdm_status postgres__result_error(const postgres__config *config, const PGresult *result,
                                   postgres__failure *ret_failure, esdm_error *err);
/** The connection broke during a statement. */
esdm_status postgres__lost_error(const postgres__config *config, const PGconn *conn,
                                 postgres__failure *ret_failure, esdm_error *err);
/** A notice processor: a library does not print. */
void postgres__ignore_notice(void *user, const char *message);

#endif
