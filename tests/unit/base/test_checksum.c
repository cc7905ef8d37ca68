/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Checksums of all instruction sets are those of libxxhash. */
#include "base/checksum.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <xxhash.h>

#include "base/checksum_kernels.h"

static void
test_checksum__every_kernel_gives_what_the_library_gives(void **state)
{
    (void) state;
    enum { BYTES = 20000 };
    uint8_t *data = malloc(BYTES);
    assert_non_null(data);
    for (size_t i = 0; i < BYTES; i++)
        data[i] = (uint8_t) (i * 2654435761u >> 13);
    for (size_t bytes = 0; bytes < BYTES - 3; bytes += 1 + bytes / 7) {
        for (size_t shift = 0; shift < 3; shift++) {
            uint64_t expected = XXH3_64bits(data + shift, bytes);
            assert_int_equal(expected, esdm__checksum(data + shift, bytes));
#ifdef ESDM__CHECKSUM_X86
            if (__builtin_cpu_supports("avx2"))
                assert_int_equal(expected, esdm__checksum_avx2(data + shift, bytes));
            if (__builtin_cpu_supports("avx512f"))
                assert_int_equal(expected, esdm__checksum_avx512(data + shift, bytes));
#endif
        }
    }
    free(data);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checksum__every_kernel_gives_what_the_library_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
