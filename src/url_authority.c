/* SPDX-License-Identifier: MIT */
/*
 * The part of a URL that says where a server is and who asks: //[USER[:PASSWORD]@]HOSTS[/PATH]
 *
 * Splitting comes before decoding, so that an encoded @, : or / in a password is a character of it.
 * The last @ ends the password, so that one with an @ in it is no host. Messages quote nothing.
 */
#include "url.h"

#include "error.h"

#include <arpa/inet.h>
#include <string.h>

/* USER[:PASSWORD], both decoded. */
static enum redbucket_status split_user(char *text, struct rbk_url_authority *authority,
                                        struct redbucket_error *error)
{
    char *password = text + strcspn(text, ":");

    if (*password != '\0')
        *password++ = '\0';
    enum redbucket_status status = rbk_url_decode(text, error);

    if (status == REDBUCKET_OK)
        status = rbk_url_decode(password, error);
    if (status != REDBUCKET_OK || (text[0] == '\0' && password[0] == '\0'))
        return status;
    authority->user = text[0] == '\0' ? NULL : text;
    authority->password = password;
    return REDBUCKET_OK;
}

enum redbucket_status rbk_url_split(struct rbk_url *url, struct rbk_url_authority *authority,
                                    struct redbucket_error *error)
{
    char *body = url->text + (url->body - url->text);

    *authority = (struct rbk_url_authority){0};
    if (!url->slashes)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: expected // behind %s:", url->scheme);

    char *text =
        body + 1; /* moved to the left by one, which makes room for a NUL before the path */
    size_t len = strcspn(body + 2, "/");

    memmove(text, body + 2, len);
    text[len] = '\0';
    authority->path = text + len + 1;

    char *at = strrchr(text, '@');
    enum redbucket_status status = rbk_url_decode(text + len + 1, error);

    authority->hosts = at == NULL ? text : at + 1;
    if (status != REDBUCKET_OK || at == NULL)
        return status;
    *at = '\0';
    return split_user(text, authority, error);
}

bool rbk_url_number(const char *text, unsigned min, unsigned max, unsigned *number)
{
    unsigned long long value = 0;
    size_t len = strspn(text, "0123456789");

    if (len == 0 || text[len] != '\0')
        return false;
    for (; *text != '\0'; text++) {
        value = value * 10 + (unsigned long long)(*text - '0');
        if (value > max)
            return false;
    }
    if (value < min)
        return false;
    *number = (unsigned)value;
    return true;
}

/* True for an IPv6 address, with or without a scope behind %. */
static bool is_ipv6(const char *text)
{
    struct in6_addr address;
    char plain[INET6_ADDRSTRLEN];
    size_t len = strcspn(text, "%");

    if (len >= sizeof plain)
        return false;
    memcpy(plain, text, len);
    plain[len] = '\0';
    return inet_pton(AF_INET6, plain, &address) == 1;
}

/* Ends the host's name in place. Returns what stands behind it, "" or ":PORT", or NULL when it is
 * anything else. */
static char *end_name(char *text, struct rbk_url_host *host)
{
    size_t len;

    host->ipv6 = text[0] == '[';
    if (!host->ipv6) {
        host->name = text;
        return text + strcspn(text, ":");
    }
    len = strcspn(text, "]");
    if (text[len] == '\0')
        return NULL;
    text[len] = '\0';
    host->name = text + 1;
    return text + len + 1;
}

enum redbucket_status rbk_url_host(char *text, struct rbk_url_host *host,
                                   struct redbucket_error *error)
{
    struct rbk_url_host found = {.port = host->port};
    char *rest = end_name(text, &found);

    if (rest == NULL || (*rest != '\0' && *rest != ':') ||
        strchr(rest + (*rest == ':'), ':') != NULL)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: expected HOST[:PORT], an IPv6 address in brackets");
    if (*rest == ':' && !rbk_url_number(rest + 1, 1, 65535, &found.port))
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1, "store URL: expected a port, 1 to 65535");
    *rest = '\0'; /* over the colon, or the end */
    enum redbucket_status status = rbk_url_decode(text + found.ipv6, error);

    if (status != REDBUCKET_OK)
        return status;
    if (found.ipv6 && !is_ipv6(found.name))
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: expected an IPv6 address in the brackets");
    if (found.name[0] == '\0' || strlen(found.name) > RBK_URL_HOST_MAX)
        return rbk_fail(error, REDBUCKET_ERROR_URL, -1,
                        "store URL: expected a host of 1 to %d bytes", RBK_URL_HOST_MAX);
    *host = found;
    return REDBUCKET_OK;
}
