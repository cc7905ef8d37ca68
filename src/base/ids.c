/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/ids.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/own_process.h"
#include "base/program.h"

void
esdm__uuid_new(char ret_uuid[ESDM__UUID_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t random[16];
    esdm__own_random(random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        ret_uuid[2 * i] = digits[random[i] >> 4];
        ret_uuid[2 * i + 1] = digits[random[i] & 15];
    }
    ret_uuid[2 * sizeof random] = '\0';
}

uint64_t
esdm__now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* One line, short, and without what stands between the other parts. */
static void
clean(char *program)
{
    if (program == NULL)
        return;
    program[strnlen(program, 64)] = '\0';
    for (char *at = program; *at != '\0'; at++) {
        if ((unsigned char) *at < ' ' || (unsigned char) *at >= 0x7f || *at == '@' || *at == ':')
            *at = '?';
    }
}

void
esdm__writer_name(char *ret_name, size_t bytes)
{
    char host[128] = "?";
    char memory[1024];
    char number[24];
    struct passwd entry;
    struct passwd *user = NULL;
    char *program = esdm__program_name(false);
    clean(program);
    (void) gethostname(host, sizeof host - 1);
    (void) getpwuid_r(getuid(), &entry, memory, sizeof memory, &user);
    (void) snprintf(number, sizeof number, "%ld", (long) getuid());
    (void) snprintf(ret_name, bytes, "%s@%s:%ld%s%s", user != NULL ? user->pw_name : number, host,
                    (long) getpid(), program != NULL ? " " : "", program != NULL ? program : "");
    free(program);
}
