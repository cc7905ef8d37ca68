/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* A key and a certificate of the server's own: clients have the certificate from the folder, so
 * that nobody else who listens where the server was can take its place. */

#include "esdm-postgres/private.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>

#define LIFE_S                                                                                     \
    (INT64_C(100) * 366 * 86400) /* it is trusted by the folder's users, not by its date */

char *
private_secret(void)
{
    unsigned char bytes[32];
    GString *text = g_string_new(NULL);
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        g_error("no random numbers");
    for (gsize i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

static EVP_PKEY *
new_key(void)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    if (context != NULL && EVP_PKEY_keygen_init(context) > 0 &&
        EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) > 0 &&
        EVP_PKEY_CTX_set_ec_param_enc(context, OPENSSL_EC_NAMED_CURVE) > 0)
        (void) EVP_PKEY_keygen(context, &key);
    EVP_PKEY_CTX_free(context);
    return key;
}

static X509 *
new_certificate(EVP_PKEY *key)
{
    static const unsigned char name[] = "ESDM private PostgreSQL";
    X509 *certificate = X509_new();
    unsigned char serial[8];
    if (certificate == NULL || key == NULL || RAND_bytes(serial, sizeof serial) != 1)
        return certificate;
    guint64 number = 0;
    for (gsize i = 0; i < sizeof serial; i++)
        number = number << 8 | serial[i];
    (void) ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), number >> 1);
    (void) X509_set_version(certificate, 2);
    (void) X509_gmtime_adj(X509_getm_notBefore(certificate), -86400);
    (void) X509_gmtime_adj(X509_getm_notAfter(certificate), LIFE_S);
    (void) X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, name,
                                      -1, -1, 0);
    (void) X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    (void) X509_set_pubkey(certificate, key);
    if (X509_sign(certificate, key, EVP_sha256()) == 0) {
        X509_free(certificate);
        return NULL;
    }
    return certificate;
}

static esdm_status
write_pem(const private_server *server, const char *name, BIO *memory, mode_t mode, esdm_error *err)
{
    g_autofree char *path = private_path(server, name);
    char *data = NULL;
    long bytes = BIO_get_mem_data(memory, &data);
    g_autofree char *text = g_strndup(data, (gsize) bytes);
    return private_write(path, text, mode, err);
}

esdm_status
private_make_certificate(const private_server *server, esdm_error *err)
{
    EVP_PKEY *key = new_key();
    X509 *certificate = key != NULL ? new_certificate(key) : NULL;
    BIO *secret = BIO_new(BIO_s_mem());
    BIO *open = BIO_new(BIO_s_mem());
    esdm_status status = ESDM_OK;
    if (certificate == NULL || secret == NULL || open == NULL ||
        PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) != 1 ||
        PEM_write_bio_X509(open, certificate) != 1)
        status = tool_error_set(err, ESDM_EIO, "cannot make a certificate for the server");
    if (status == ESDM_OK)
        status = write_pem(server, "server.key", secret, 0600, err);
    if (status == ESDM_OK)
        status = write_pem(server, "server.crt", open, 0600, err);
    BIO_free(secret);
    BIO_free(open);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return status;
}
