/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Lines of ESDM_DEBUG and messages to people, on stderr. */

#include "esdm/netcdf.h"
#include "esdm/text.h"
#include "router/router.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of who listens to this thread. */
static _Thread_local struct {
    char *text; /* borrowed; NULL: nobody */
    size_t bytes;
} ear;

__attribute__((visibility("default"))) void
esdm_netcdf_listen(char *text, size_t bytes)
{
    ear.text = bytes > 0 ? text : NULL;
    ear.bytes = bytes;
    if (ear.text != NULL)
        ear.text[0] = '\0';
}

bool
esdmnc_is_heard(const char *line)
{
    if (ear.text == NULL)
        return false;
    size_t used = strlen(ear.text);
    (void) snprintf(ear.text + used, ear.bytes - used, "%s%s", used > 0 ? "\n" : "", line);
    return true;
}

/** One line on stderr, whole even when several threads write. Keeps errno.
 *  @param heard whether a listener gets it, without its head. */
__attribute__((format(printf, 3, 0))) static void
put_line(const char *head, bool heard, const char *format, va_list args)
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
        if (!heard || !esdmnc_is_heard(printable + n)) {
            printable[length++] = '\n';
            ssize_t written = write(STDERR_FILENO, printable, length);
            (void) written;
        }
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
    put_line(head, false, format, args);
    va_end(args);
}

void
esdmnc__tell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put_line("esdm: ", true, format, args);
    va_end(args);
}
