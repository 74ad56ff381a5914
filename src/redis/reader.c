/* SPDX-License-Identifier: MIT */
/*
 * hiredis' reader, with replies of our own kind in an arena.
 *
 * hiredis by itself bounds nothing but the number of one array's elements. Here each object is
 * counted as it is made, and one too many is not made, which ends the reading; a string that
 * announces more bytes than a reply may have is refused before they come.
 */
#include "redis/reader.h"

#include "redis/connection.h"

#include <hiredis/read.h>
#include <stdlib.h>
#include <string.h>

/* The first block stays, so that a usual reply costs no allocation. */
#define BLOCK_SIZE ((size_t)8 << 10)

struct block {
    struct block *next;
    size_t used;
    size_t size;
    _Alignas(max_align_t) unsigned char bytes[];
};

struct rbk_reader {
    redisReader *hiredis;
    struct block *blocks; /* the newest first, the first one last */
    struct rbk_reply root;
    size_t pending;      /* bytes fed that belong to no complete reply */
    size_t elements;     /* of the reply being read */
    const char *refused; /* why an object was not made, other than for want of memory */
};

static struct block *add_block(struct rbk_reader *reader, size_t size)
{
    struct block *block = malloc(sizeof *block + size);

    if (block == NULL)
        return NULL;
    block->next = reader->blocks;
    block->used = 0;
    block->size = size;
    reader->blocks = block;
    return block;
}

static void *take_memory(struct rbk_reader *reader, size_t size)
{
    const size_t unit = _Alignof(max_align_t);
    size_t rounded = (size + unit - 1) / unit * unit;
    struct block *block = reader->blocks;

    if (block->size - block->used < rounded)
        block = add_block(reader, rounded > BLOCK_SIZE ? rounded : BLOCK_SIZE);
    if (block == NULL)
        return NULL;
    void *memory = block->bytes + block->used;

    block->used += rounded;
    return memory;
}

static void *refuse(struct rbk_reader *reader, const char *why)
{
    reader->refused = why;
    return NULL;
}

/* Where the object goes: its place in the array around it, or the root. */
static struct rbk_reply *place_of(const redisReadTask *task)
{
    struct rbk_reader *reader = task->privdata;

    if (task->parent == NULL)
        return &reader->root;
    const struct rbk_reply *array = task->parent->obj;

    return (struct rbk_reply *)&array->elements[task->idx];
}

static void *make_string(const redisReadTask *task, char *text, size_t len)
{
    struct rbk_reader *reader = task->privdata;
    struct rbk_reply *reply = place_of(task);
    char *copy;

    if (text[len] != '\r' || text[len + 1] != '\n')
        return refuse(reader, "a string without an end");
    if (task->type == REDIS_REPLY_VERB && len >= 4) {
        text += 4; /* says what kind of text it is */
        len -= 4;
    }
    copy = take_memory(reader, len + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *reply = (struct rbk_reply){.type = RBK_REPLY_STRING, .text = copy, .len = len};
    if (task->type == REDIS_REPLY_STATUS)
        reply->type = RBK_REPLY_STATUS;
    else if (task->type == REDIS_REPLY_ERROR)
        reply->type = RBK_REPLY_ERROR;
    return reply;
}

static size_t depth_of(const redisReadTask *task)
{
    size_t depth = 1;

    for (; task->parent != NULL; task = task->parent)
        depth++;
    return depth;
}

static void *make_array(const redisReadTask *task, size_t len)
{
    struct rbk_reader *reader = task->privdata;
    struct rbk_reply *reply = place_of(task);
    struct rbk_reply *elements;

    if (task->type != REDIS_REPLY_ARRAY && task->type != REDIS_REPLY_MAP &&
        task->type != REDIS_REPLY_SET)
        return refuse(reader, "something that nobody asked for");
    if (depth_of(task) > RBK_REPLY_DEPTH_MAX)
        return refuse(reader, "a reply too deep");
    if (len > RBK_REPLY_ELEMENTS_MAX - reader->elements)
        return refuse(reader, "a reply of too many elements");
    reader->elements += len;
    elements = take_memory(reader, len * sizeof *elements);
    if (elements == NULL)
        return NULL;
    memset(elements, 0, len * sizeof *elements);
    *reply = (struct rbk_reply){.type = RBK_REPLY_ARRAY, .len = len, .elements = elements};
    return reply;
}

static void *make_integer(const redisReadTask *task, long long integer)
{
    struct rbk_reply *reply = place_of(task);

    *reply = (struct rbk_reply){.type = RBK_REPLY_INTEGER, .integer = integer};
    return reply;
}

/* Doubles come as text in what we use, so this is one as well. hiredis gives no line's end here. */
static void *make_double(const redisReadTask *task, double number, char *text, size_t len)
{
    struct rbk_reply *reply = place_of(task);
    char *copy = take_memory(task->privdata, len + 1);

    (void)number;
    if (copy == NULL)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *reply = (struct rbk_reply){.type = RBK_REPLY_STRING, .text = copy, .len = len};
    return reply;
}

static void *make_nil(const redisReadTask *task)
{
    struct rbk_reply *reply = place_of(task);

    *reply = (struct rbk_reply){.type = RBK_REPLY_NIL};
    return reply;
}

static void *make_bool(const redisReadTask *task, int value)
{
    return make_integer(task, value);
}

/* hiredis takes a pointer that isn't const, and changes nothing. */
static redisReplyObjectFunctions functions = {
    .createString = make_string,
    .createArray = make_array,
    .createInteger = make_integer,
    .createDouble = make_double,
    .createNil = make_nil,
    .createBool = make_bool,
    .freeObject = NULL, /* the arena's */
};

struct rbk_reader *rbk_reader_create(void)
{
    struct rbk_reader *reader = calloc(1, sizeof *reader);

    if (reader == NULL)
        return NULL;
    reader->hiredis = redisReaderCreateWithFunctions(&functions);
    if (reader->hiredis == NULL || add_block(reader, BLOCK_SIZE) == NULL) {
        rbk_reader_destroy(reader);
        return NULL;
    }
    reader->hiredis->privdata = reader;
    return reader;
}

void rbk_reader_reset(struct rbk_reader *reader)
{
    struct block *block = reader->blocks;

    while (block->next != NULL) {
        struct block *next = block->next;

        free(block);
        block = next;
    }
    block->used = 0;
    reader->blocks = block;
}

void rbk_reader_destroy(struct rbk_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->blocks != NULL)
        rbk_reader_reset(reader);
    free(reader->blocks);
    if (reader->hiredis != NULL)
        redisReaderFree(reader->hiredis);
    free(reader);
}

enum redbucket_status rbk_reader_feed(struct rbk_reader *reader, const void *bytes, size_t len)
{
    reader->pending += len;
    return redisReaderFeed(reader->hiredis, bytes, len) == 0 ? REDBUCKET_OK
                                                             : REDBUCKET_ERROR_MEMORY;
}

static size_t left_over(const struct rbk_reader *reader)
{
    return reader->hiredis->len - reader->hiredis->pos;
}

/* True when what has come of a string's length is too much already. */
static bool announces_too_much(const redisReader *hiredis)
{
    size_t len = 0;

    if (hiredis->ridx < 0 || (hiredis->task[hiredis->ridx]->type != REDIS_REPLY_STRING &&
                              hiredis->task[hiredis->ridx]->type != REDIS_REPLY_VERB))
        return false;
    for (size_t at = hiredis->pos; at < hiredis->len; at++) {
        char digit = hiredis->buf[at];

        if (digit < '0' || digit > '9')
            break;
        len = len * 10 + (size_t)(digit - '0');
        if (len > RBK_REPLY_BYTES_MAX)
            return true;
    }
    return false;
}

static enum redbucket_status too_long(struct rbk_reader *reader)
{
    reader->refused = "a reply of too many bytes";
    return REDBUCKET_ERROR_PROTOCOL;
}

enum redbucket_status rbk_reader_next(struct rbk_reader *reader, struct rbk_reply *reply,
                                      bool *complete)
{
    redisReader *hiredis = reader->hiredis;
    void *root = NULL;

    *complete = false;
    if (redisReaderGetReply(hiredis, &root) != 0)
        return reader->refused == NULL && hiredis->err != REDIS_ERR_PROTOCOL
                   ? REDBUCKET_ERROR_MEMORY
                   : REDBUCKET_ERROR_PROTOCOL;
    if (root == NULL)
        return reader->pending > RBK_REPLY_BYTES_MAX || announces_too_much(hiredis)
                   ? too_long(reader)
                   : REDBUCKET_OK;
    if (reader->pending - left_over(reader) > RBK_REPLY_BYTES_MAX)
        return too_long(reader);
    reader->pending = left_over(reader);
    reader->elements = 0;
    *reply = reader->root;
    *complete = true;
    return REDBUCKET_OK;
}

bool rbk_reader_empty(const struct rbk_reader *reader)
{
    return reader->pending == 0;
}

const char *rbk_reader_failure(const struct rbk_reader *reader)
{
    return reader->refused != NULL ? reader->refused : reader->hiredis->errstr;
}
