/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Ed25519 signatures of seals, with OpenSSL. */
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "esdm-seal/seal.h"

#define KEY_BYTES       32u
#define SIGNATURE_BYTES 64u

/* What is signed. No field may hold a line's end but the note, which is last. */
static char *
message_of(const seal_text *seal)
{
    return g_strdup_printf("esdm seal 1\n%s\n%s\n%s\n%" G_GUINT64_FORMAT "\n%s\n%s\n%s\n",
                           seal->digest, seal->name, seal->uuid, seal->snapshot, seal->time,
                           seal->by, seal->note);
}

static char *
hex(const guchar *bytes, gsize count)
{
    GString *text = g_string_sized_new(2 * count);
    for (gsize i = 0; i < count; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

static gboolean
unhex(const char *text, guchar *bytes, gsize count)
{
    if (strlen(text) != 2 * count)
        return FALSE;
    for (gsize i = 0; i < count; i++) {
        int high = g_ascii_xdigit_value(text[2 * i]);
        int low = g_ascii_xdigit_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return FALSE;
        bytes[i] = (guchar) (16 * high + low);
    }
    return TRUE;
}

static char *
openssl_failed(const char *what)
{
    char reason[200];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    return g_strdup_printf("%s: %s", what, reason);
}

static char *
load_key(const char *file, gboolean is_private, EVP_PKEY **ret_key)
{
    FILE *stream = fopen(file, "re");
    if (stream == NULL)
        return g_strdup_printf("'%s': %s", file, g_strerror(errno));
    EVP_PKEY *key = is_private ? PEM_read_PrivateKey(stream, NULL, NULL, NULL)
                               : PEM_read_PUBKEY(stream, NULL, NULL, NULL);
    (void) fclose(stream);
    if (key == NULL || EVP_PKEY_id(key) != EVP_PKEY_ED25519) {
        EVP_PKEY_free(key);
        return g_strdup_printf("'%s' holds no %s Ed25519 key in PEM form (openssl genpkey "
                               "-algorithm ed25519)",
                               file, is_private ? "private" : "public");
    }
    *ret_key = key;
    return NULL;
}

static char *
public_of(const EVP_PKEY *key)
{
    guchar bytes[KEY_BYTES];
    size_t count = sizeof bytes;
    return EVP_PKEY_get_raw_public_key(key, bytes, &count) == 1 ? hex(bytes, count) : g_strdup("");
}

char *
seal_public_key(const char *file, char **ret_key)
{
    EVP_PKEY *key = NULL;
    char *why = load_key(file, FALSE, &key);
    if (why == NULL)
        *ret_key = public_of(key);
    EVP_PKEY_free(key);
    return why;
}

char *
seal_sign(const char *key_file, seal_text *seal)
{
    EVP_PKEY *key = NULL;
    guchar signature[SIGNATURE_BYTES];
    size_t bytes = sizeof signature;
    char *why = load_key(key_file, TRUE, &key);
    if (why != NULL)
        return why;
    seal->key = public_of(key);
    g_autofree char *message = message_of(seal);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context == NULL || EVP_DigestSignInit(context, NULL, NULL, NULL, key) != 1 ||
        EVP_DigestSign(context, signature, &bytes, (const guchar *) message, strlen(message)) != 1)
        why = openssl_failed("it cannot be signed");
    else
        seal->signature = hex(signature, bytes);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    return why;
}

char *
seal_check_signature(const seal_text *seal)
{
    guchar key_bytes[KEY_BYTES], signature[SIGNATURE_BYTES];
    g_autofree char *message = message_of(seal);
    if (!unhex(seal->key, key_bytes, sizeof key_bytes) ||
        !unhex(seal->signature, signature, sizeof signature))
        return g_strdup("its signature is damaged");
    EVP_PKEY *key =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key_bytes, sizeof key_bytes);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    gboolean good = key != NULL && context != NULL &&
                    EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
                    EVP_DigestVerify(context, signature, sizeof signature, (const guchar *) message,
                                     strlen(message)) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    return good ? NULL : g_strdup("the signature does not fit: the seal was changed");
}

/* Whole or not at all, whatever happens; a key that is there stays. */
static char *
write_key(const char *file, int mode, const EVP_PKEY *key)
{
    g_autofree char *begun = g_strconcat(file, ".XXXXXX", NULL);
    int fd = g_mkstemp_full(begun, O_WRONLY | O_CLOEXEC, mode);
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (stream == NULL) {
        char *why = g_strdup_printf("'%s': %s", file, g_strerror(errno));
        if (fd >= 0)
            (void) close(fd);
        return why;
    }
    int done = mode == 0600
                   ? PEM_write_PrivateKey(stream, (EVP_PKEY *) key, NULL, NULL, 0, NULL, NULL)
                   : PEM_write_PUBKEY(stream, (EVP_PKEY *) key);
    bool written = done == 1 && fflush(stream) == 0 && fsync(fd) == 0;
    char *why = NULL;
    if (fclose(stream) != 0 || !written)
        why = g_strdup_printf("'%s' cannot be written", file);
    else if (link(begun, file) != 0)
        why = g_strdup_printf("'%s': %s", file, g_strerror(errno));
    (void) unlink(begun);
    return why;
}

char *
seal_make_key(const char *key_file)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, NULL);
    char *why = NULL;
    if (context == NULL || EVP_PKEY_keygen_init(context) != 1 ||
        EVP_PKEY_keygen(context, &key) != 1)
        why = openssl_failed("no key can be made");
    EVP_PKEY_CTX_free(context);
    g_autofree char *public_file = g_strconcat(key_file, ".pub", NULL);
    if (why == NULL)
        why = write_key(key_file, 0600, key);
    if (why == NULL)
        why = write_key(public_file, 0644, key);
    EVP_PKEY_free(key);
    return why;
}
