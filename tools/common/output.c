/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Standard output of the tools. Names, attributes and texts of containers come from strangers, and
 * a terminal obeys what is hidden in them; so all that is printed for people goes through
 * esdm_text_printable(), wherever it is printed. JSON and names that end with NUL stay exact.
 */
#include "common/common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool exact;        /* likewise with --json */
static int output_failed; /* errno of what went past stdout */
static GString *begun;    /* a character of which only the first bytes were written */

void
tool_output_exact(void)
{
    exact = true;
}

static bool
write_all(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, count);
        if (n < 0 && errno != EINTR)
            return false;
        bytes += n > 0 ? n : 0;
        count -= n > 0 ? (size_t) n : 0;
    }
    return true;
}

/* How many bytes at the end begin a character of UTF-8 that goes on. */
static size_t
unfinished(const char *text, size_t bytes)
{
    for (size_t n = 1; n <= 3 && n <= bytes; n++) {
        unsigned char byte = (unsigned char) text[bytes - n];
        if (byte >= 0xc0)
            return n < (byte >= 0xf0 ? 4u : byte >= 0xe0 ? 3u : 2u) ? n : 0;
        if (byte < 0x80)
            return 0;
    }
    return 0;
}

/* Nothing that a terminal would obey, as in lists of millions of numbers. */
static bool
is_plain(const char *bytes, size_t count)
{
    bool plain = true;
    for (size_t i = 0; i < count; i++) {
        unsigned char byte = (unsigned char) bytes[i];
        plain &= (byte >= 0x20 && byte < 0x7f) || byte == '\n' || byte == '\t';
    }
    return plain;
}

static ssize_t
write_printable(void *cookie, const char *bytes, size_t count)
{
    (void) cookie;
    if (exact || tool.json || (begun->len == 0 && is_plain(bytes, count)))
        return write_all(bytes, count) ? (ssize_t) count : 0;
    g_string_append_len(begun, bytes, (gssize) count);
    size_t rest = unfinished(begun->str, begun->len);
    g_autofree char *whole = g_strndup(begun->str, begun->len - rest); /* as far as a NUL */
    g_autofree char *printable = tool_printable(whole);
    g_string_erase(begun, 0, (gssize) (begun->len - rest));
    return write_all(printable, strlen(printable)) ? (ssize_t) count : 0;
}

bool
tool_output_plain(const char *text, size_t bytes)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return false;
    if (write_all(text, bytes))
        return true;
    output_failed = errno;
    return false;
}

int
tool_output_failed(void)
{
    return output_failed;
}

void
tool_output_start(void)
{
    const cookie_io_functions_t functions = {.write = write_printable};
    FILE *printable = fopencookie(NULL, "w", functions);
    if (printable == NULL)
        return; /* out of memory: the next allocation says so */
    begun = g_string_new(NULL);
    if (isatty(STDOUT_FILENO))
        (void) setvbuf(printable, NULL, _IOLBF, BUFSIZ);
    stdout = printable;
}

char *
tool_html(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    return g_markup_escape_text(valid, -1);
}
