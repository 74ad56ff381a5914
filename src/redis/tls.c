/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL on sockets that never block.
 *
 * The host program may use OpenSSL as well: nothing that is the process's is set, but for the exit
 * handler, which is left out when we are the first to need the library, so that a thread of ours at
 * the program's end finds everything in place.
 */
#include "redis/tls.h"

#include "error.h"
#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct rbk_tls {
    SSL_CTX *context;
    BIO_METHOD *socket; /* how OpenSSL gets at ours */
};

static int socket_write(BIO *bio, const char *bytes, int len)
{
    struct rbk_stream *stream = BIO_get_data(bio);
    ssize_t moved;

    BIO_clear_retry_flags(bio);
    do
        moved = send(stream->fd, bytes, (size_t)len, MSG_NOSIGNAL);
    while (moved < 0 && errno == EINTR);
    if (moved > 0)
        stream->sent = true;
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
        BIO_set_retry_write(bio);
    return (int)moved;
}

static int socket_read(BIO *bio, char *bytes, int size)
{
    struct rbk_stream *stream = BIO_get_data(bio);
    ssize_t moved;

    BIO_clear_retry_flags(bio);
    do
        moved = recv(stream->fd, bytes, (size_t)size, 0);
    while (moved < 0 && errno == EINTR);
    if (moved == 0)
        stream->ended = true;
    else if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_read(bio);
    return (int)moved;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *make_socket_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "redbucket socket");

    if (method == NULL)
        return NULL;
    if (BIO_meth_set_write(method, socket_write) != 1 ||
        BIO_meth_set_read(method, socket_read) != 1 ||
        BIO_meth_set_ctrl(method, socket_control) != 1) {
        BIO_meth_free(method);
        return NULL;
    }
    return method;
}

/* Before each call of OpenSSL's whose failure is asked about. */
static void forget_errors(void)
{
    ERR_clear_error();
    rbk_wait_errno_clear();
}

/* Whether memory ran out, which may be anywhere in the thread's queue of errors, and not even
 * there: an entry takes memory as well. Empties the queue. */
static bool take_shortage(void)
{
    bool is_short = rbk_wait_errno() == ENOMEM;
    unsigned long code;

    while ((code = ERR_get_error()) != 0)
        is_short = is_short || ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
    return is_short;
}

/* What the queue begins with, in a few words. */
static const char *first_reason(char *out, size_t size)
{
    unsigned long code = ERR_peek_error();
    const char *text = ERR_reason_error_string(code);

    if (code != 0 && ERR_GET_LIB(code) == ERR_LIB_SYS)
        return rbk_errno_text(ERR_GET_REASON(code), out, size);
    (void)snprintf(out, size, "%s", text == NULL ? "unknown error" : text);
    return out;
}

static enum redbucket_status no_memory(struct redbucket_error *error)
{
    return rbk_fail(error, REDBUCKET_ERROR_MEMORY, -1, "TLS: out of memory");
}

static enum redbucket_status refuse_file(const char *name, struct redbucket_error *error)
{
    char text[96];
    const char *reason = first_reason(text, sizeof text);
    int number = rbk_wait_errno();
    /* Nothing against the file: this process has no descriptor for it. */
    bool is_ours = number == EMFILE || number == ENFILE;

    if (take_shortage())
        return no_memory(error);
    return rbk_fail(error, is_ours ? REDBUCKET_ERROR_SYSTEM : REDBUCKET_ERROR_TLS, -1,
                    "TLS: the file of %s= can't be used: %s", name, reason);
}

/* A key with a passphrase is of no use: there is nobody to ask. */
static int no_passphrase(char *out, int size, int for_writing, void *data)
{
    (void)out;
    (void)size;
    (void)for_writing;
    (void)data;
    return -1;
}

/* OpenSSL looks at what is in a certificate when it first needs to, and one for which memory ran
 * out at that is never good again. So it is done here, where it can be told. */
static void look_at_certificates(SSL_CTX *context)
{
    STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));

    for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
        X509 *certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));

        if (certificate != NULL)
            (void)X509_check_purpose(certificate, -1, 0);
    }
}

/* A file of which some was left out for want of memory is one that can't be used, though OpenSSL
 * may say that all went well. */
static enum redbucket_status read_ca(SSL_CTX *context, const char *path,
                                     struct redbucket_error *error)
{
    bool good = path != NULL ? SSL_CTX_load_verify_locations(context, path, NULL) == 1
                             : SSL_CTX_set_default_verify_paths(context) == 1;

    if (!good && path != NULL)
        return refuse_file("ca", error);
    bool is_short = take_shortage();

    if (good && !is_short) {
        forget_errors();
        look_at_certificates(context);
        is_short = take_shortage();
    }
    if (is_short)
        return no_memory(error);
    return good ? REDBUCKET_OK
                : rbk_fail(error, REDBUCKET_ERROR_TLS, -1, "TLS: the system has no certificates");
}

static enum redbucket_status read_files(SSL_CTX *context, const struct rbk_redis_options *options,
                                        struct redbucket_error *error)
{
    enum redbucket_status status = read_ca(context, options->tls_ca, error);

    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    if (status != REDBUCKET_OK || options->tls_cert == NULL)
        return status;
    forget_errors();
    if (SSL_CTX_use_certificate_chain_file(context, options->tls_cert) != 1)
        return refuse_file("cert", error);
    if (SSL_CTX_use_PrivateKey_file(context, options->tls_key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1)
        return refuse_file("key", error);
    return take_shortage() ? no_memory(error) : REDBUCKET_OK;
}

static bool set_up(SSL_CTX *context, bool verify)
{
    SSL_CTX_set_verify(context, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
    (void)SSL_CTX_set_mode(context,
                           SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    (void)SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

enum redbucket_status rbk_tls_create(const struct rbk_redis_options *options, struct rbk_tls **tls,
                                     struct redbucket_error *error)
{
    enum redbucket_status status = REDBUCKET_ERROR_MEMORY;
    struct rbk_tls *made;

    *tls = NULL;
    if (!options->tls)
        return REDBUCKET_OK;
    made = calloc(1, sizeof *made);
    (void)OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    forget_errors();
    if (made != NULL) {
        made->context = SSL_CTX_new(TLS_client_method());
        made->socket = make_socket_method();
    }
    if (made == NULL || made->context == NULL || made->socket == NULL ||
        !set_up(made->context, options->tls_verify))
        status = no_memory(error);
    else
        status = read_files(made->context, options, error);
    ERR_clear_error();
    if (status != REDBUCKET_OK) {
        rbk_tls_destroy(made);
        return status;
    }
    *tls = made;
    return REDBUCKET_OK;
}

void rbk_tls_destroy(struct rbk_tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->socket);
    free(tls);
}

/* What was no fault of the socket's. */
static enum rbk_moved blame_tls(struct rbk_stream *stream)
{
    long verified = SSL_get_verify_result(stream->tls);
    char text[96];
    const char *reason = first_reason(text, sizeof text);

    if (take_shortage()) {
        (void)snprintf(stream->failure, sizeof stream->failure, "TLS: out of memory");
        return RBK_MOVED_SHORT;
    }
    (void)snprintf(stream->failure, sizeof stream->failure, "TLS: %s", reason);
    if (SSL_get_verify_mode(stream->tls) != SSL_VERIFY_NONE && verified != X509_V_OK)
        (void)snprintf(stream->failure, sizeof stream->failure, "TLS: certificate refused: %s",
                       X509_verify_cert_error_string(verified));
    return RBK_MOVED_TLS;
}

/* Says what went wrong in the last operation, and leaves the queue of errors empty. */
static enum rbk_moved settle(struct rbk_stream *stream, int result)
{
    int number = rbk_wait_errno();
    int kind = SSL_get_error(stream->tls, result);
    if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
        stream->events = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return RBK_MOVED_LATER;
    }
    if (kind == SSL_ERROR_ZERO_RETURN || stream->ended) {
        ERR_clear_error();
        return RBK_MOVED_END;
    }
    if (kind == SSL_ERROR_SYSCALL && number != ENOMEM) {
        ERR_clear_error();
        rbk_stream_blame(stream, number);
        return RBK_MOVED_NEVER;
    }
    return blame_tls(stream);
}

enum rbk_moved rbk_tls_write(struct rbk_stream *stream, const void *bytes, size_t len, size_t *done)
{
    forget_errors();
    int result = SSL_write_ex(stream->tls, bytes, len, done);

    return result == 1 ? RBK_MOVED : settle(stream, result);
}

enum rbk_moved rbk_tls_read(struct rbk_stream *stream, void *bytes, size_t size, size_t *done)
{
    forget_errors();
    int result = SSL_read_ex(stream->tls, bytes, size, done);

    return result == 1 ? RBK_MOVED : settle(stream, result);
}

bool rbk_tls_holds(const struct rbk_stream *stream)
{
    return SSL_pending(stream->tls) > 0;
}

void rbk_tls_free(struct rbk_stream *stream)
{
    SSL_free(stream->tls);
    stream->tls = NULL;
}

/* True for a numeric address. */
static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* Has OpenSSL verify that the certificate is the host's, and tell a server of many names which one
 * is meant. A name's last dot and an address's scope are for the resolver alone. */
static bool expect_host(SSL *tls, const char *host)
{
    char name[RBK_URL_HOST_MAX + 1];
    size_t len = strcspn(host, "%");

    if (len == 0 || len >= sizeof name)
        return false;
    memcpy(name, host, len);
    name[len] = '\0';
    if (is_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls), name) == 1;
    (void)snprintf(name, sizeof name, "%s", host);
    len = strlen(name);
    if (name[len - 1] == '.')
        name[len - 1] = '\0';
    SSL_set_hostflags(tls, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(tls, name) == 1 && SSL_set1_host(tls, name) == 1;
}

static bool attach(struct rbk_tls *tls, const char *host, struct rbk_stream *stream)
{
    BIO *bio = BIO_new(tls->socket);

    stream->tls = SSL_new(tls->context);
    if (bio == NULL || stream->tls == NULL || !expect_host(stream->tls, host)) {
        (void)BIO_free(bio);
        return false;
    }
    BIO_set_data(bio, stream);
    BIO_set_init(bio, 1);
    SSL_set_bio(stream->tls, bio, bio);
    return true;
}

static enum redbucket_status fail(struct rbk_stream *stream, enum redbucket_status status,
                                  const char *failure)
{
    if (failure != NULL)
        (void)snprintf(stream->failure, sizeof stream->failure, "%s", failure);
    return status;
}

static enum redbucket_status status_of(struct rbk_stream *stream, enum rbk_moved moved)
{
    if (moved == RBK_MOVED_TLS)
        return REDBUCKET_ERROR_TLS;
    if (moved == RBK_MOVED_SHORT)
        return REDBUCKET_ERROR_MEMORY;
    return fail(stream, REDBUCKET_ERROR_UNAVAILABLE,
                moved == RBK_MOVED_END ? "closed during the TLS handshake" : NULL);
}

enum redbucket_status rbk_tls_start(struct rbk_tls *tls, const char *host,
                                    struct rbk_stream *stream, const struct rbk_deadline *deadline)
{
    ERR_clear_error();
    if (!attach(tls, host, stream)) {
        ERR_clear_error();
        return fail(stream, REDBUCKET_ERROR_MEMORY, "TLS: out of memory");
    }
    for (;;) {
        forget_errors();
        int result = SSL_connect(stream->tls);
        enum rbk_moved moved = result == 1 ? RBK_MOVED : settle(stream, result);

        if (moved == RBK_MOVED)
            return REDBUCKET_OK;
        if (moved != RBK_MOVED_LATER)
            return status_of(stream, moved);
        int number = rbk_stream_wait(stream, stream->events, deadline);

        if (number == ETIMEDOUT)
            return fail(stream, REDBUCKET_ERROR_TIMEOUT, "no end of the TLS handshake in time");
        if (number != 0) {
            rbk_stream_blame(stream, number);
            return REDBUCKET_ERROR_SYSTEM;
        }
    }
}
