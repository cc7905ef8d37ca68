/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_REFER_GRIB_GUARD_H
#define ESDM_TOOLS_REFER_GRIB_GUARD_H

/** @file Messages that are ill may end a process in which ecCodes reads them: by an assertion, a
 * wild address, or by no end. The tool then ends as for any damage, and names the message. Not for
 *  several threads. */

#include <stdint.h>

/** Takes the signals. */
void gribs_guard_begin(void);
/** From now on ecCodes looks at this message. @param path borrowed; NULL: at none. */
void gribs_guard(const char *path, uint64_t position);
/** Gives the signals back. */
void gribs_guard_end(void);

#endif
