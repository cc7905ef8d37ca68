/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Lines of ESDM_DEBUG and messages to people, on stderr. */

#include "esdm/text.h"
#include "router/router.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** One line on stderr, whole even when several threads write. Keeps errno. */
__attribute__((format(printf, 2, 0))) static void
put_line(const char *head, const char *format, va_list args)
{
    int saved = errno;
    char line[1024];
    int n = snprintf(line, sizeof(line), "%s", head);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): a false alarm of clang-tidy 14 */
    int m = vsnprintf(line + n, sizeof(line) - (size_t) n - 1, format, args);
    if (m >= 0) {
        char printable[sizeof(line)];
        (void) esdm_text_printable(line, printable, sizeof(printable) - 1);
        size_t length = strlen(printable);
        printable[length++] = '\n';
        ssize_t written = write(STDERR_FILENO, printable, length);
        (void) written;
    }
    errno = saved;
}

void
esdmnc_debug(const char *format, ...)
{
    const char *wanted = secure_getenv("ESDM_DEBUG");
    if (!wanted || !wanted[0] || (wanted[0] == '0' && !wanted[1])) {
        return;
    }
    char head[32];
    (void) snprintf(head, sizeof(head), "esdm[%ld]: ", (long) getpid());
    va_list args;
    va_start(args, format);
    put_line(head, format, args);
    va_end(args);
}

void
esdmnc__tell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line("esdm: ", format, args);
    va_end(args);
}
