/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Stored values of user-defined types: any bytes either are values, and then survive storing and
 * reading again, or give an error with a message. The first byte chooses the type, the second one
 * their number. */

#include <stdlib.h>
#include <string.h>

#include "model/values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Every class within every other one. */
static const char types[] =
    "{\"format\":2,\"next_dataset\":1,\"groups\":[{\"name\":\"\"}],\"dimensions\":[],\"datasets\":["
    "],"
    "\"types\":["
    "{\"name\":\"flag\",\"class\":\"enum\",\"base\":\"int16\",\"members\":[[\"a\",1]]},"
    "{\"name\":\"raw\",\"class\":\"opaque\",\"bytes\":3},"
    "{\"name\":\"texts\",\"class\":\"vlen\",\"base\":\"string\"},"
    "{\"name\":\"gap\",\"class\":\"compound\",\"members\":[[\"a\",\"int8\"],[\"b\",\"float64\",2]]}"
    ","
    "{\"name\":\"gaps\",\"class\":\"vlen\",\"base\":67},"
    "{\"name\":\"all\",\"class\":\"compound\",\"members\":[[\"a\",64,2],[\"b\",65],[\"c\",66],"
    "[\"d\",67,3],[\"e\",68,2],[\"f\",\"string\"]]},"
    "{\"name\":\"many\",\"class\":\"vlen\",\"base\":69},"
    "{\"name\":\"more\",\"class\":\"vlen\",\"base\":70}]}";

static esdm_container *
container_with_types(void)
{
    static esdm_container *container;
    if (container == NULL) {
        container = esdm__container_new("fuzz");
        if (container == NULL ||
            esdm__document_read(types, sizeof types - 1, container, NULL) != ESDM_OK)
            abort();
    }
    return container;
}

/* What was read gives the same bytes again, but for varints that were longer than needed. */
static void
check_round_trip(esdm__typeref of, uint64_t count, const void *values, size_t stored_bytes)
{
    esdm__buffer out;
    esdm__cursor cursor;
    esdm__buffer_init(&out);
    if (esdm__values_encode(of, count, values, &out, NULL) != ESDM_OK)
        abort();
    if (out.bytes > stored_bytes || out.bytes != esdm__values_stored_bytes(of, count, values))
        abort();
    void *again = malloc((size_t) count * esdm__typeref_bytes(of) + 1);
    esdm__cursor_init(&cursor, out.data, out.bytes);
    if (again != NULL) {
        if (esdm__values_decode(of, count, &cursor, again, NULL) != ESDM_OK ||
            !esdm__values_equal(of, count, values, again))
            abort();
        esdm__values_clear(of, count, again);
    }
    free(again);
    esdm__buffer_clear(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    esdm_container *container = container_with_types();
    esdm__typeref of;
    esdm__cursor cursor;
    esdm_error err = {0};
    if (bytes < 2)
        return 0;
    esdm_type type = ESDM_TYPE_FIRST_USER + data[0] % (esdm_type) container->types.count;
    uint64_t count = data[1];
    if (esdm__type_resolve(container, type, &of, NULL) != ESDM_OK)
        abort();
    void *values = malloc((size_t) count * esdm__typeref_bytes(of) + 1);
    if (values == NULL)
        return 0;
    esdm__cursor_init(&cursor, data + 2, bytes - 2);
    esdm_status status = esdm__values_decode(of, count, &cursor, values, &err);
    if (status == ESDM_OK) {
        check_round_trip(of, count, values, bytes - 2);
        esdm__values_clear(of, count, values);
    } else if (err.status != status || err.message[0] == '\0') {
        abort();
    }
    free(values);
    return 0;
}
