/* SPDX-License-Identifier: MIT */
/*
 * Making tickets, and finding them again. A number is a slot and how often that had been used, so
 * that one of long ago finds nobody else's request.
 */
#include "async_ticket.h"

#include "limiter.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 64u
#define SLOT_BITS   16

_Static_assert(REDBUCKET_ASYNC_MAX <= 1 << SLOT_BITS, "a slot's number fits");

/* ---- A ticket ---------------------------------------------------------------------------------
 */

static size_t name_len(const struct redbucket_key *key)
{
    return rbk_given_len(key->limit, key->limit_len);
}

static size_t key_len(const struct redbucket_key *key)
{
    return rbk_given_len(key->key, key->key_len);
}

/* Each with a NUL behind, so that a length of 0 goes on meaning the same. */
static char *copy_bytes(char *to, const char *from, size_t len)
{
    memcpy(to, from, len);
    to[len] = '\0';
    return to + len + 1;
}

static void copy_keys(struct redbucket_key *keys, char *bytes,
                      const struct redbucket_request *request)
{
    for (size_t i = 0; i < request->keys_len; i++) {
        const struct redbucket_key *from = &request->keys[i];

        keys[i] = (struct redbucket_key){.limit_len = name_len(from), .key_len = key_len(from)};
        keys[i].limit = bytes;
        bytes = copy_bytes(bytes, from->limit, keys[i].limit_len);
        keys[i].key = bytes;
        bytes = copy_bytes(bytes, from->key, keys[i].key_len);
    }
}

struct rbk_ticket *rbk_ticket_create(const struct redbucket_request *request)
{
    size_t len = request->keys_len;
    size_t verdicts_len = request->verdicts != NULL ? len : 0;
    size_t bytes = 0;

    for (size_t i = 0; i < len; i++)
        bytes += name_len(&request->keys[i]) + key_len(&request->keys[i]) + 2;

    struct rbk_ticket *ticket = malloc(sizeof *ticket + len * sizeof *request->keys +
                                       verdicts_len * sizeof *request->verdicts + bytes);

    if (ticket == NULL)
        return NULL;
    struct redbucket_key *keys = (struct redbucket_key *)(ticket + 1);
    struct redbucket_verdict *verdicts = (struct redbucket_verdict *)(keys + len);

    *ticket = (struct rbk_ticket){.request = *request};
    copy_keys(keys, (char *)(verdicts + verdicts_len), request);
    ticket->request.keys = keys;
    ticket->request.verdicts = request->verdicts != NULL ? verdicts : NULL;
    ticket->request.failed = REDBUCKET_NONE;
    return ticket;
}

void rbk_ticket_drop(struct rbk_ticket *ticket)
{
    ticket->called = true;
    if (ticket->aboard == 0)
        free(ticket);
}

/* ---- Lists ------------------------------------------------------------------------------------
 */

void rbk_tickets_add(struct rbk_tickets *tickets, struct rbk_ticket *ticket)
{
    ticket->links[tickets->place] = (struct rbk_ticket_link){tickets, tickets->last, NULL};
    if (tickets->last != NULL)
        tickets->last->links[tickets->place].next = ticket;
    else
        tickets->first = ticket;
    tickets->last = ticket;
    tickets->len++;
}

void rbk_tickets_remove(struct rbk_ticket *ticket, enum rbk_ticket_place place)
{
    struct rbk_ticket_link *link = &ticket->links[place];
    struct rbk_tickets *tickets = link->list;

    if (tickets == NULL)
        return;
    if (link->previous != NULL)
        link->previous->links[place].next = link->next;
    else
        tickets->first = link->next;
    if (link->next != NULL)
        link->next->links[place].previous = link->previous;
    else
        tickets->last = link->previous;
    tickets->len--;
    link->list = NULL;
}

struct rbk_ticket *rbk_tickets_take(struct rbk_tickets *tickets)
{
    struct rbk_ticket *ticket = tickets->first;

    if (ticket != NULL)
        rbk_tickets_remove(ticket, tickets->place);
    return ticket;
}

/* ---- Numbers ----------------------------------------------------------------------------------
 */

static uint32_t slot_of(uint64_t id)
{
    return (uint32_t)(id & ((1u << SLOT_BITS) - 1));
}

static bool grow(struct rbk_ticket_book *book)
{
    uint32_t size = book->size != 0 ? book->size * 2 : SLOTS_FIRST;
    struct rbk_ticket_slot *slots = realloc(book->slots, size * sizeof slots[0]);

    if (slots == NULL)
        return false;
    for (uint32_t i = book->size; i < size; i++)
        slots[i] = (struct rbk_ticket_slot){.next = i + 1};
    book->slots = slots;
    book->size = size;
    return true;
}

enum redbucket_status rbk_ticket_enter(struct rbk_ticket_book *book, struct rbk_ticket *ticket)
{
    if (book->len == REDBUCKET_ASYNC_MAX)
        return REDBUCKET_ERROR_FULL;
    /* All slots are used, so that the first free one is the first of the new ones. */
    if (book->len == book->size && !grow(book))
        return REDBUCKET_ERROR_MEMORY;
    struct rbk_ticket_slot *slot = &book->slots[book->free];

    ticket->id = ++slot->uses << SLOT_BITS | book->free;
    slot->ticket = ticket;
    book->free = slot->next;
    book->len++;
    return REDBUCKET_OK;
}

void rbk_ticket_strike(struct rbk_ticket_book *book, const struct rbk_ticket *ticket)
{
    uint32_t at = slot_of(ticket->id);

    book->slots[at].ticket = NULL;
    book->slots[at].next = book->free;
    book->free = at;
    book->len--;
}

struct rbk_ticket *rbk_ticket_find(const struct rbk_ticket_book *book, uint64_t id)
{
    uint32_t at = slot_of(id);

    if (at >= book->size || book->slots[at].ticket == NULL || book->slots[at].ticket->id != id)
        return NULL;
    return book->slots[at].ticket;
}
