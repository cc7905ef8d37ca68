/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Chains of codecs by their names and ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/chain.h"
#include "esdm/types.h"
#include "plugin/registry.h"

static void
test_chain__none_is_empty(void **state)
{
    (void) state;
    esdm__chain chain = {.count = 3};
    assert_int_equal(esdm__chain_parse("none", &chain, NULL), ESDM_OK);
    assert_int_equal(chain.count, 0);
}

static void
test_chain__names_become_codecs_in_order(void **state)
{
    (void) state;
    esdm__chain chain;
    assert_int_equal(esdm__chain_parse("shuffle+zstd", &chain, NULL), ESDM_OK);
    assert_int_equal(chain.count, 2);
    assert_int_equal(esdm__chain_parse("lz4", &chain, NULL), ESDM_OK);
    assert_int_equal(chain.count, 1);
    assert_int_equal(chain.codecs[0]->id, 1);
    assert_int_equal(esdm__chain_parse("lz4+lz4+lz4+lz4", &chain, NULL), ESDM_OK);
    assert_int_equal(chain.count, 4);
}

static void
test_chain__wrong_texts_are_refused(void **state)
{
    (void) state;
    esdm__chain chain;
    memset(&chain, 0x5a, sizeof chain);
    const esdm__chain untouched = chain;
    esdm_error err;
    assert_int_equal(esdm__chain_parse("", &chain, &err), ESDM_EINVAL);
    assert_int_equal(esdm__chain_parse("+", &chain, &err), ESDM_EINVAL);
    assert_int_equal(esdm__chain_parse("lz4+", &chain, &err), ESDM_EINVAL);
    assert_int_equal(esdm__chain_parse("lz4++lz4", &chain, &err), ESDM_EINVAL);
    assert_int_equal(esdm__chain_parse("lz4+lz4+lz4+lz4+lz4", &chain, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "more than 4 codecs"));
    assert_int_equal(esdm__chain_parse("lz4+shuffle", &chain, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "shuffle+zstd"));
    assert_int_equal(esdm__chain_parse("lz4+none", &chain, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "'none' stands alone"));
    assert_int_equal(esdm__chain_parse("gzap", &chain, &err), ESDM_ENOENT);
    assert_non_null(strstr(err.message, "gzap"));
    assert_non_null(strstr(err.message, "lz4"));
    char longer[200];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(esdm__chain_parse(longer, &chain, &err), ESDM_EINVAL);
    assert_memory_equal(&chain, &untouched, sizeof chain);
}

static void
test_chain__codecs_that_need_numbers_get_them(void **state)
{
    static const struct {
        const char *chain;
        const char *message;
    } refused[] = {
        {"lz4+field", "'field' cannot stand behind 'lz4', which compresses"},
        {"zstd+field+lz4", "'field' cannot stand behind 'zstd', which compresses"},
        {"field+field", "'field' cannot stand behind 'field', which compresses"},
        {"lz4+shuffle+zstd", "'shuffle' cannot stand behind 'lz4', which compresses"},
        {"lz4+bitround+zstd", "'bitround' cannot stand behind 'lz4', which compresses"},
        {"bitround+zstd+shuffle+lz4", "'shuffle' cannot stand behind 'zstd', which compresses"},
        {"shuffle+field", "'field' cannot stand behind 'shuffle', which leaves no numbers"},
        {"shuffle+bitround+zstd", "'bitround' cannot stand behind 'shuffle', which leaves no"},
    };
    static const char *const taken[] = {"bitround+field", "bitround+shuffle+zstd", "field+zstd",
                                        "bitround+zstd",  "shuffle+lz4+zstd",      "zstd+lz4"};
    (void) state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        esdm__chain chain = {.count = 77};
        esdm_error err;
        assert_int_equal(esdm__chain_parse(refused[i].chain, &chain, &err), ESDM_EINVAL);
        assert_non_null(strstr(err.message, refused[i].chain));
        assert_non_null(strstr(err.message, refused[i].message));
        assert_int_equal(chain.count, 77);
        /* What earlier versions took stays readable. */
        assert_int_equal(esdm__chain_parse_stored(refused[i].chain, &chain, NULL), ESDM_OK);
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        esdm__chain chain;
        assert_int_equal(esdm__chain_parse(taken[i], &chain, NULL), ESDM_OK);
    }
}

static void
test_chain__ids_print_as_names(void **state)
{
    (void) state;
    char text[64];
    esdm__chain_print((const uint8_t[4]){0}, text, sizeof text);
    assert_string_equal(text, "none");
    esdm__chain_print((const uint8_t[4]){1}, text, sizeof text);
    assert_string_equal(text, "lz4");
    esdm__chain_print((const uint8_t[4]){1, 251, 1}, text, sizeof text);
    assert_string_equal(text, "lz4+codec-251+lz4");
    esdm__chain_print((const uint8_t[4]){1, 251, 1, 1}, text, 6);
    assert_string_equal(text, "lz4+c");
    esdm__chain_print((const uint8_t[4]){1}, text, 1);
    assert_string_equal(text, "");
}

static void
test_chain__lz4_blobs_come_back(void **state)
{
    (void) state;
    esdm__chain chain;
    assert_int_equal(esdm__chain_parse("lz4", &chain, NULL), ESDM_OK);
    enum { N = 100000 };
    float *raw = malloc(N * sizeof *raw);
    float *out = malloc(N * sizeof *out);
    for (int i = 0; i < N; i++)
        raw[i] = (float) (i / 50);
    esdm__blob blob;
    esdm__blob_view view;
    assert_int_equal(
        esdm__blob_encode(&chain, ESDM_TYPE_FLOAT32, 4, 1, raw, N * sizeof *raw, &blob, NULL),
        ESDM_OK);
    assert_true(blob.payload_bytes < N * sizeof *raw / 4);
    assert_int_equal(
        esdm__blob_parse(blob.head, blob.head_bytes, esdm__plugin_codec_by_id, &view, NULL),
        ESDM_OK);
    assert_int_equal(esdm__blob_decode(&view, 0, view.blocks, blob.payload, blob.payload_bytes, out,
                                       N * sizeof *out, NULL),
                     ESDM_OK);
    assert_memory_equal(out, raw, N * sizeof *raw);
    esdm__blob_clear(&blob);
    free(out);
    free(raw);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain__none_is_empty),
        cmocka_unit_test(test_chain__names_become_codecs_in_order),
        cmocka_unit_test(test_chain__wrong_texts_are_refused),
        cmocka_unit_test(test_chain__codecs_that_need_numbers_get_them),
        cmocka_unit_test(test_chain__ids_print_as_names),
        cmocka_unit_test(test_chain__lz4_blobs_come_back),
    };
    return cmocka_run_group_tests_name("codec.chain", tests, NULL, NULL);
}
