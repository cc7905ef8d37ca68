/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Calls of layers above, as spans that cause what the engine does. */
#include "esdm/monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "io/container/dataset_io.h"
#include "io/session/session.h"

void
esdm_call_begin(const esdm_dataset *dataset, esdm_call *call)
{
    esdm__span span = {0};
    if (call == NULL)
        return;
    *call = (esdm_call){0};
    if (dataset == NULL)
        return;
    esdm__span_begin(&span, dataset->group->container->session->monitor);
    *call = (esdm_call){dataset, span.monitor, {span.id, span.cause, span.start_ns}};
}

void
esdm_call_end(const esdm_call *call, bool writes, uint64_t bytes, bool failed)
{
    if (call == NULL || call->monitor == NULL)
        return;
    const esdm__span span = {call->monitor, call->numbers[0], call->numbers[1], call->numbers[2]};
    esdm__dataset_observed(
        call->dataset, &span,
        (esdm__span_facts){.kind = writes ? ESDM__SPAN_CALL_WRITE : ESDM__SPAN_CALL_READ,
                           .bytes = bytes,
                           .status = failed ? ESDM_EIO : ESDM_OK});
}

void
esdm_records_keep(void)
{
    esdm__session_keep_records();
}

esdm_status
esdm_records_write(int file, esdm_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    esdm_status status = esdm__sofar_text(&text, &bytes, err);
    for (size_t at = 0; status == ESDM_OK && at < bytes;) {
        ssize_t n = write(file, text + at, bytes - at);
        if (n > 0)
            at += (size_t) n;
        else if (n == 0 || errno != EINTR)
            status = esdm__error_set_errno(err, n == 0 ? EIO : errno, "records of this process");
    }
    free(text);
    return status;
}
