/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The container document: any bytes either load, and then survive writing and reading again, or
 * give an error with a message. */

#include <stdlib.h>
#include <string.h>

#include "model/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* What was read must be writable, and what was written must read to the same text. */
static void
check_round_trip(const esdm_container *container)
{
    char *text = NULL, *again = NULL;
    size_t bytes = 0, again_bytes = 0;
    if (esdm__document_write(container, &text, &bytes, NULL) != ESDM_OK)
        return;
    esdm_container *copy = esdm__container_new("fuzz");
    if (copy != NULL) {
        if (esdm__document_read(text, bytes, copy, NULL) != ESDM_OK)
            abort();
        if (esdm__document_write(copy, &again, &again_bytes, NULL) != ESDM_OK)
            abort();
        if (bytes != again_bytes || memcmp(text, again, bytes) != 0)
            abort();
    }
    esdm__container_free(copy);
    free(again);
    free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    esdm_container *container = esdm__container_new("fuzz");
    if (container == NULL)
        return 0;
    esdm_error err = {0};
    esdm_status status = esdm__document_read((const char *) data, bytes, container, &err);
    if (status == ESDM_OK)
        check_round_trip(container);
    else if (err.status != status || err.message[0] == '\0')
        abort();
    esdm__container_free(container);
    return 0;
}
