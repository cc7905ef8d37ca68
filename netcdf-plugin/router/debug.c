/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "router/router.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void
esdmnc_debug(const char *format, ...)
{
    const char *wanted = getenv("ESDM_DEBUG");
    if (!wanted || !wanted[0] || (wanted[0] == '0' && !wanted[1])) {
        return;
    }
    int saved = errno;
    char line[1024];
    va_list args;
    va_start(args, format);
    int n = snprintf(line, sizeof(line), "esdm[%ld]: ", (long) getpid());
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): a false alarm of clang-tidy 14 */
    int m = vsnprintf(line + n, sizeof(line) - (size_t) n - 1, format, args);
    va_end(args);
    if (m >= 0) {
        size_t length = (size_t) n + (size_t) m;
        length = length < sizeof(line) - 2 ? length : sizeof(line) - 2;
        line[length++] = '\n';
        ssize_t written = write(STDERR_FILENO, line, length); /* one call: lines stay whole */
        (void) written;
    }
    errno = saved;
}
