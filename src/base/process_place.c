/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Where numbers of processes mean something. */

#include "base/process_place.h"

#include <stdio.h>
#include <unistd.h>

/* FNV-1a. */
static uint32_t
add(uint32_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char) *text) * 16777619u;
    return (hash ^ ' ') * 16777619u;
}

uint32_t
esdm__process_place(void)
{
    char text[256] = "";
    uint32_t hash = 2166136261u;
    if (gethostname(text, sizeof text - 1) == 0)
        hash = add(hash, text);
    FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (boot != NULL && fgets(text, sizeof text, boot) != NULL)
        hash = add(hash, text);
    if (boot != NULL)
        (void) fclose(boot);
    ssize_t bytes = readlink("/proc/self/ns/pid", text, sizeof text - 1);
    if (bytes > 0) {
        text[bytes] = '\0';
        hash = add(hash, text);
    }
    return hash;
}
