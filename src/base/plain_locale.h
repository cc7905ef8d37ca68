/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_PLAIN_LOCALE_H
#define ESDM_BASE_PLAIN_LOCALE_H

/**
 * @file
 * Numbers in stored texts have a decimal point, whatever the locale of the program says.
 */

#include <locale.h>

#include "esdm/status.h"

typedef struct esdm__plain_locale {
    locale_t plain;
    locale_t before;
} esdm__plain_locale;

/** The calling thread uses the locale "C" until esdm__plain_locale_leave(). */
esdm_status esdm__plain_locale_enter(esdm__plain_locale *ret_scope, esdm_error *err);
void esdm__plain_locale_leave(esdm__plain_locale *scope);

#endif
