/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_SERVE_PAGE_H
#define ESDM_TOOLS_SERVE_PAGE_H

#include <stddef.h>

/** @file The files of page/, which are compiled in (Page.cmake). */

typedef struct serve_page_part {
    const char *path; /* "/page.js" */
    const char *type;
    const unsigned char *text;
    size_t bytes;
} serve_page_part;

extern const serve_page_part serve_pages[];
extern const size_t serve_page_parts;

#endif
