/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/plain_locale.h"

#include "base/error.h"

esdm_status
esdm__plain_locale_enter(esdm__plain_locale *ret_scope, esdm_error *err)
{
    ret_scope->plain = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
    if (ret_scope->plain == (locale_t) 0)
        return esdm__error_nomem(err, 0, "the C locale");
    ret_scope->before = uselocale(ret_scope->plain);
    return ESDM_OK;
}

void
esdm__plain_locale_leave(esdm__plain_locale *scope)
{
    (void) uselocale(scope->before);
    freelocale(scope->plain);
}
