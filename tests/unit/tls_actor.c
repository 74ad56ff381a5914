/* SPDX-License-Identifier: MIT */
#include "tls_actor.h"

#include "test.h"

#include <limits.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

char test_tls_folder[] = "/tmp/redbucket-tls-XXXXXX";

static const char *path_of(const char *name, const char *suffix)
{
    static char paths[4][PATH_MAX];
    static size_t next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, PATH_MAX, "%s/%s.%s", test_tls_folder, name, suffix);
    return path;
}

static SSL_CTX *make_context(const struct test_tls_server *server)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    SSL_CTX_use_certificate_chain_file(context, path_of(server->cert, "pem"));
    SSL_CTX_use_PrivateKey_file(context, path_of(server->cert, "key"), SSL_FILETYPE_PEM);
    if (server->version != 0) {
        SSL_CTX_set_max_proto_version(context, server->version);
        SSL_CTX_set_security_level(context, 0);
    }
    if (server->wants_ours) {
        SSL_CTX_load_verify_locations(context, path_of("ca", "pem"), NULL);
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    return context;
}

static void answer(SSL *tls, const struct test_tls_server *server)
{
    size_t len = strlen(server->answer);
    size_t piece = server->piece == 0 ? len : server->piece;
    char heard[64];

    while (SSL_read(tls, heard, sizeof heard) > 0) {
        for (size_t at = 0; at < len; at += piece)
            (void)SSL_write(tls, server->answer + at, (int)(len - at < piece ? len - at : piece));
        if (server->resets != NULL) {
            (void)sem_wait(server->resets); /* it would overtake the answer */
            test_actor_reset(SSL_get_fd(tls));
            return;
        }
    }
}

void test_tls_serve(int fd, void *data)
{
    struct test_tls_server *server = data;
    SSL_CTX *context = make_context(server);
    SSL *tls = SSL_new(context);
    const char *name;

    SSL_set_fd(tls, fd);
    if (SSL_accept(tls) == 1) {
        name = SSL_get_servername(tls, TLSEXT_NAMETYPE_host_name);
        (void)snprintf(server->name, sizeof server->name, "%s", name == NULL ? "" : name);
        if (server->shaken != NULL)
            (void)sem_post(server->shaken);
        answer(tls, server);
    }
    SSL_free(tls);
    SSL_CTX_free(context);
}

/* The server's certificate of yesterday, signed by the same authority. */
static void make_expired(void)
{
    FILE *cert_file = fopen(path_of("server", "pem"), "re");
    FILE *key_file = fopen(path_of("ca", "key"), "re");
    FILE *out = fopen(path_of("expired", "pem"), "we");
    FILE *key_out = fopen(path_of("expired", "key"), "we");

    assert_true(cert_file != NULL && key_file != NULL && out != NULL && key_out != NULL);
    X509 *cert = PEM_read_X509(cert_file, NULL, NULL, NULL);
    EVP_PKEY *ca = PEM_read_PrivateKey(key_file, NULL, NULL, NULL);

    assert_true(cert != NULL && ca != NULL);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert), -172800));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), -86400));
    assert_true(X509_sign(cert, ca, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_X509(out, cert), 1);
    X509_free(cert);
    EVP_PKEY_free(ca);
    (void)fclose(cert_file);
    (void)fclose(key_file);
    (void)fclose(out);
    key_file = fopen(path_of("server", "key"), "re");
    ca = PEM_read_PrivateKey(key_file, NULL, NULL, NULL);
    assert_int_equal(PEM_write_PrivateKey(key_out, ca, NULL, NULL, 0, NULL, NULL), 1);
    EVP_PKEY_free(ca);
    (void)fclose(key_file);
    (void)fclose(key_out);
}

/* A key that wants a passphrase. */
static void make_locked(void)
{
    FILE *in = fopen(path_of("client", "key"), "re");
    FILE *out = fopen(path_of("locked", "key"), "we");
    unsigned char phrase[] = "phrase";

    assert_true(in != NULL && out != NULL);
    EVP_PKEY *key = PEM_read_PrivateKey(in, NULL, NULL, NULL);

    assert_int_equal(
        PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(), phrase, sizeof phrase - 1, NULL, NULL),
        1);
    EVP_PKEY_free(key);
    (void)fclose(in);
    (void)fclose(out);
}

int test_tls_make(void **state)
{
    char command[PATH_MAX + 128];

    (void)state;
    if (mkdtemp(test_tls_folder) == NULL)
        return -1;
    (void)snprintf(command, sizeof command, "%s %s", TEST_CERTIFICATES, test_tls_folder);
    if (system(command) != 0)
        return -1;
    make_expired();
    make_locked();
    return 0;
}

int test_tls_remove(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof command, "rm -rf %s", test_tls_folder);
    return system(command);
}
