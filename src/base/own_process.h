/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_OWN_PROCESS_H
#define ESDM_BASE_OWN_PROCESS_H

/** @file What a process asks the kernel for once, and a child of fork() anew. */

#include <stddef.h>
#include <sys/types.h>

/** getpid(). In a child of vfork(), whose memory is its parent's, that of the parent. Any thread.
 */
pid_t esdm__own_pid(void);
/** Numbers that nobody can guess, and that no other process has, also after fork(). Any thread. */
void esdm__own_random(void *ret_data, size_t bytes);

#endif
