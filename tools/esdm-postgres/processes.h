/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_POSTGRES_PROCESSES_H
#define ESDM_TOOLS_POSTGRES_PROCESSES_H

/**
 * @file
 * The processes of a server. This process is the one that adopts those whose parents have ended
 * (PR_SET_CHILD_SUBREAPER). One thread at a time.
 */

#include "esdm-postgres/private.h"

#include <sys/stat.h>

/** Locks the folder; waits until the processes of a server that was killed have ended.
 *  @param ret_fd -1: the file system cannot. */
esdm_status processes_lock(const private_server *server, int *ret_fd, esdm_error *err);
/** Starts `postgres`, which ends when this process does. @param lock inherited by it. */
esdm_status processes_start(const private_server *server, const char *binaries, int lock,
                            const char *addresses, gint64 *ret_port, pid_t *ret_pid,
                            esdm_error *err);
/** Whether the server has ended. */
bool processes_have_ended(pid_t postmaster);
/** Kills all of its processes, and waits for them. */
void processes_kill(pid_t postmaster);
/** Why it has ended, as far as it said; owned. */
char *processes_last_words(const private_server *server);

#endif
