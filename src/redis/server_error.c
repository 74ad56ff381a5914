/* SPDX-License-Identifier: MIT */
/*
 * What the errors of servers mean.
 *
 * An error begins with a word in capitals, or with ERR and a sentence. What a command inside a
 * script or a transaction ran into is the same text with something around it, which is taken off
 * first; so a text is only ever looked at from its beginning, and a key that is quoted further on
 * means nothing.
 */
#include "redis/server.h"

#include <string.h>

struct meaning {
    const char *text; /* what the error begins with, in any case */
    enum redbucket_status status;
    bool usable;
};

/* By the whole first word. */
static const struct meaning codes[] = {
    /* Not on this connection. A replica whose master is away is a replica. */
    {"READONLY", REDBUCKET_ERROR_READONLY, false},
    {"MASTERDOWN", REDBUCKET_ERROR_UNAVAILABLE, false},
    {"DENIED", REDBUCKET_ERROR_AUTH, false},
    {"NOAUTH", REDBUCKET_ERROR_AUTH, false},
    {"WRONGPASS", REDBUCKET_ERROR_AUTH, false},
    /* Not now. */
    {"LOADING", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"BUSY", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"OOM", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"MISCONF", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"NOREPLICAS", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"CLUSTERDOWN", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"TRYAGAIN", REDBUCKET_ERROR_UNAVAILABLE, true},
    /* Not for this user, not with this key. */
    {"NOPERM", REDBUCKET_ERROR_AUTH, true},
    {"WRONGTYPE", REDBUCKET_ERROR_STATE, true},
    /* Not at this node, whenever it is asked. */
    {"MOVED", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"ASK", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"CROSSSLOT", REDBUCKET_ERROR_UNSUPPORTED, true},
};

/* Behind ERR, or behind nothing. */
static const struct meaning sentences[] = {
    {"max number of clients", REDBUCKET_ERROR_UNAVAILABLE, false},
    {"Protocol error", REDBUCKET_ERROR_PROTOCOL, false},
    {"no upstream host", REDBUCKET_ERROR_UNAVAILABLE, true},
    {"You can't write against a read only", REDBUCKET_ERROR_READONLY, false},
    {"invalid password", REDBUCKET_ERROR_AUTH, false},
    {"operation not permitted", REDBUCKET_ERROR_AUTH, false},
    {"Client sent AUTH", REDBUCKET_ERROR_AUTH, false},
    {"AUTH <password> called without any password", REDBUCKET_ERROR_AUTH, false},
    {"wrong number of arguments for 'auth'", REDBUCKET_ERROR_AUTH, false},
    {"unknown command", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"unknown subcommand", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"unsupported command", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"Unknown Redis command called from", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"Unknown command called from", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"This instance has cluster support disabled", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"This Redis command is not allowed from", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"This command is not allowed from", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"Write commands not allowed after non deterministic", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"The user executing the script can't run this command", REDBUCKET_ERROR_UNSUPPORTED, true},
    {"The user executing the script can't access", REDBUCKET_ERROR_AUTH, true},
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* In any case, and whatever the locale takes for the small letter of an I. */
static bool begins(const char *text, const char *beginning)
{
    for (; *beginning != '\0'; text++, beginning++) {
        if (lower(*text) != lower(*beginning))
            return false;
    }
    return true;
}

/* True when the text's first word is this one. */
static bool first_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    return strncmp(text, word, len) == 0 && (text[len] == ' ' || text[len] == '\0');
}

/*
 * Takes off what a script puts around an error before Redis 7, where S is a number and H a hash:
 *   ERR Error running script (call to f_H): @user_script:S: @user_script: S: -WHAT
 * with the last minus only sometimes.
 */
static const char *inside_script(const char *text)
{
    const char *at = begins(text, "ERR Error ") ? strstr(text, "): ") : NULL;

    if (at == NULL)
        return text;
    at += 3;
    while (*at == '@') {
        at += strcspn(at, ":");
        at += strspn(at, ": 0123456789");
    }
    return at;
}

static const char *inside(const char *text)
{
    static const char *const around[] = {"EXECABORT Transaction discarded because of: ", "-",
                                         "ERR "};

    text = inside_script(text);
    for (size_t i = 0; i < sizeof around / sizeof around[0]; i++) {
        if (begins(text, around[i]))
            text += strlen(around[i]);
    }
    return text;
}

/* A user may have what a command needs and yet not the commands of a script; and where TIME is
 * refused to all scripts, it is refused like this as well. */
static bool is_refused_to_script(const char *text)
{
    return begins(text, "NOPERM ACL failure in script") && strstr(text, "'time' command") != NULL;
}

enum redbucket_status rbk_server_error(const char *text, bool *usable)
{
    text = inside(text);
    *usable = true;
    if (is_refused_to_script(text))
        return REDBUCKET_ERROR_UNSUPPORTED;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (first_word(text, codes[i].text)) {
            *usable = codes[i].usable;
            return codes[i].status;
        }
    }
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        if (begins(text, sentences[i].text)) {
            *usable = sentences[i].usable;
            return sentences[i].status;
        }
    }
    return REDBUCKET_ERROR_SERVER;
}

bool rbk_server_is_node(const char *text)
{
    text = inside(text);
    return first_word(text, "MOVED") || first_word(text, "ASK") || first_word(text, "CROSSSLOT");
}

bool rbk_server_is_torn(const char *text)
{
    return first_word(text, "TRYAGAIN");
}

bool rbk_server_lacks_slot(const char *text)
{
    return begins(text, "CLUSTERDOWN Hash slot");
}

bool rbk_server_forgot_script(const char *text)
{
    return first_word(text, "NOSCRIPT");
}

void rbk_server_words(const char *text, char words[RBK_SERVER_WORDS_SIZE])
{
    const char *arguments = strstr(text, ", with args");
    size_t len = arguments == NULL ? strlen(text) : (size_t)(arguments - text);

    if (len >= RBK_SERVER_WORDS_SIZE)
        len = RBK_SERVER_WORDS_SIZE - 1;
    for (size_t i = 0; i < len; i++)
        words[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
    words[len] = '\0';
}

/* Words that have been cut before may end in the middle of the secret. */
static bool ends_within(const char *text, const char *secret)
{
    size_t text_len = strlen(text);
    size_t len = strlen(secret);

    if (text_len < RBK_SERVER_WORDS_SIZE - 1)
        return false;
    for (size_t part = 1; part < len && part <= text_len; part++) {
        if (memcmp(text + text_len - part, secret, part) == 0)
            return true;
    }
    return false;
}

static bool holds(const char *text, const char *secret)
{
    if (secret == NULL || secret[0] == '\0')
        return false;
    return strstr(text, secret) != NULL || ends_within(text, secret);
}

void rbk_server_words_without(const char *text, const char *secret,
                              char words[RBK_SERVER_WORDS_SIZE])
{
    static const char instead[] = "refused, in words that hold the password";

    rbk_server_words(text, words);
    if (holds(text, secret))
        memcpy(words, instead, sizeof instead);
}
