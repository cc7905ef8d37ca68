/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* SHA-256 against the standard's examples, in parts, by all instruction sets. */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
assert_hash(const char *text, const char *expected)
{
    uint8_t hash[ESDM__SHA256_BYTES];
    char hex[2 * sizeof hash + 1];
    esdm__sha256_of(text, strlen(text), hash);
    for (size_t i = 0; i < sizeof hash; i++)
        (void) snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    assert_string_equal(expected, hex);
}

static void
test_sha256__gives_what_the_standard_says(void **state)
{
    (void) state;
    assert_hash("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hash("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void
test_sha256__parts_give_what_the_whole_gives(void **state)
{
    (void) state;
    uint8_t data[1000], expected[ESDM__SHA256_BYTES], hash[ESDM__SHA256_BYTES];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t) (i * 2654435761u >> 13);
    for (size_t bytes = 0; bytes < 300; bytes++) {
        esdm__sha256_of(data, bytes, expected);
        for (size_t step = 1; step < 140; step += 13) {
            esdm__sha256 sum;
            esdm__sha256_init(&sum);
            for (size_t at = 0; at < bytes; at += step)
                esdm__sha256_add(&sum, data + at, step < bytes - at ? step : bytes - at);
            esdm__sha256_end(&sum, hash);
            assert_memory_equal(expected, hash, sizeof hash);
        }
    }
}

static void
test_sha256__every_kernel_gives_the_same(void **state)
{
    (void) state;
#ifdef ESDM__SHA256_X86
    uint8_t data[64 * 9 + 1];
    esdm__sha256 probe;
    esdm__sha256_init(&probe);
    esdm__sha256_add(&probe, "", 0);
    if (!__builtin_cpu_supports("sse4.1"))
        skip();
    FILE *cpu = fopen("/proc/cpuinfo", "r"); /* GCC 12 does not know "sha" */
    char *line = NULL;
    size_t room = 0;
    bool has = false;
    while (cpu != NULL && getline(&line, &room, cpu) > 0)
        has = has || strstr(line, " sha_ni ") != NULL;
    free(line);
    if (cpu != NULL)
        (void) fclose(cpu);
    if (!has)
        skip();
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t) (i * 2654435761u >> 11);
    for (size_t blocks = 0; blocks <= 9; blocks++) {
        esdm__sha256 a = probe, b = probe;
        esdm__sha256_plain(a.state, data + 1, blocks);
        esdm__sha256_ni(b.state, data + 1, blocks);
        assert_memory_equal(a.state, b.state, sizeof a.state);
    }
#else
    skip();
#endif
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256__gives_what_the_standard_says),
        cmocka_unit_test(test_sha256__parts_give_what_the_whole_gives),
        cmocka_unit_test(test_sha256__every_kernel_gives_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
