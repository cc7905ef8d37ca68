/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_NETCDF_H
#define ESDM_NETCDF_H

/**
 * @file
 * NetCDF paths `esdm://…` in a process that was not started by esdm-run: of libesdm-netcdf.so,
 * which is loaded by name (dlopen, ctypes, R's dyn.load, Julia's dlopen) and needs nothing of
 * libesdm.
 */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes this process understand `esdm://` paths, whether a NetCDF library is loaded already or
 * comes later: the library becomes visible to what is loaded later, and calls of objects that are
 * loaded are directed to it, as the dynamic linker does for a library that is preloaded. x86-64 and
 * aarch64. Calls again are allowed, and direct what was loaded meanwhile. Threads: locked inside;
 * other threads may call NetCDF meanwhile, and find the one way or the other.
 *
 * @param report a text for people of what was done, cut off at `bytes`; may be NULL.
 * @return how many calls were redirected (0: none were there, or all were redirected before), or -1
 * with the reason in `report`.
 */
int esdm_netcdf_activate(char *report, size_t bytes);

/**
 * The same for languages that pass pointers alone, as R's `.C`. A failure is told on standard
 * error.
 * @param ret_calls as esdm_netcdf_activate() returns; never NULL.
 */
void esdm_netcdf_activate_r(int *ret_calls);

/**
 * For languages that make exceptions of errors: what NetCDF calls of this thread would print on
 * standard error ("esdm: …") comes into `text` from now on, without "esdm: ", one behind the other
 * with an end of line between them; what does not fit is cut off. Until it is called with NULL.
 * @param text borrowed; at least one byte, and empty afterwards.
 */
void esdm_netcdf_listen(char *text, size_t bytes);

/**
 * What this process did with `esdm://` names so far, once esdm_netcdf_activate() was called: writes
 * records which `esdm-explain PATH` explains, and `esdm-explain --page PAGE.html PATH`. Counters
 * are of all calls, what took long is told of the last 8192. Calls of plain files are not in it: of
 * a program that is started anew `esdm-run --report PROGRAM` tells these, too. Threads: any.
 *
 * @param path of a file that is made, or emptied; it ends in ".jsonl".
 * @param report the reason of a failure, cut off at `bytes`; may be NULL.
 * @return 0, or -1: `path` has another ending or cannot be written, or nothing was done with
 * `esdm://` names yet.
 */
int esdm_netcdf_records(const char *path, char *report, size_t bytes);

/**
 * The same for languages that pass pointers alone, as R's `.C`. A failure is told on standard
 * error.
 * @param path one text. @param ret_status as esdm_netcdf_records() returns. Both never NULL.
 */
void esdm_netcdf_records_r(char **path, int *ret_status);

/** Directs those calls back, for tests; open containers stay usable. @return how many. */
int esdm_netcdf_deactivate(void);

#ifdef __cplusplus
}
#endif
#endif
