/* SPDX-License-Identifier: MIT */
/*
 * Requests of an event loop's, each with copies of all that it points to: one piece of memory each.
 *
 * A ticket stands in one line, or is on a trip (async_trip.h), whose seat it leaves when its time
 * has come or it is cancelled; its bytes are then still the trip's to read.
 */
#ifndef RBK_ASYNC_TICKET_H
#define RBK_ASYNC_TICKET_H

#include "deadline.h"
#include "redbucket/async.h"

struct rbk_tickets;
struct rbk_trip;

/* The two lists that a ticket can be in at a time. */
enum rbk_ticket_place {
    RBK_IN_LINE, /* of those that wait for the same */
    RBK_BY_AGE,  /* of all that have no answer, nor the time to get another than a late one */
    RBK_TICKET_PLACES,
};

struct rbk_ticket_link {
    struct rbk_tickets *list; /* that it is in, or NULL */
    struct rbk_ticket *previous;
    struct rbk_ticket *next;
};

struct rbk_ticket {
    struct redbucket_request request;
    redbucket_answered *callback;
    void *data;
    uint64_t id;
    struct rbk_deadline deadline; /* not set: its store never waits */
    struct rbk_ticket_link links[RBK_TICKET_PLACES];
    struct rbk_trip *trip; /* that its answer is to come from, or NULL */
    size_t seat;
    unsigned aboard; /* so many trips read its bytes */
    bool called;     /* its callback was */
};

/* NULL without memory. What the request says was checked before. */
struct rbk_ticket *rbk_ticket_create(const struct redbucket_request *request);

/* When nobody reads its bytes any more; otherwise it is marked, and left to who does. */
void rbk_ticket_drop(struct rbk_ticket *ticket);

/* ---- In a list, the oldest first --------------------------------------------------------------
 */

struct rbk_tickets {
    enum rbk_ticket_place place;
    struct rbk_ticket *first;
    struct rbk_ticket *last;
    size_t len;
};

void rbk_tickets_add(struct rbk_tickets *tickets, struct rbk_ticket *ticket);

/* Takes it from the list that it is in at that place, when it is. */
void rbk_tickets_remove(struct rbk_ticket *ticket, enum rbk_ticket_place place);

/* Takes the first, or NULL. */
struct rbk_ticket *rbk_tickets_take(struct rbk_tickets *tickets);

/* ---- By number --------------------------------------------------------------------------------
 */

struct rbk_ticket_slot {
    struct rbk_ticket *ticket;
    uint64_t uses;
    uint32_t next; /* of those that are free */
};

/* The tickets whose callback is to come. A number is never given twice. */
struct rbk_ticket_book {
    struct rbk_ticket_slot *slots;
    uint32_t size;
    uint32_t free; /* the first free slot, or `size` */
    size_t len;
};

/* Gives it a number. ERROR_FULL, ERROR_MEMORY. */
enum redbucket_status rbk_ticket_enter(struct rbk_ticket_book *book, struct rbk_ticket *ticket);
void rbk_ticket_strike(struct rbk_ticket_book *book, const struct rbk_ticket *ticket);

/* NULL when there is none of that number any more. */
struct rbk_ticket *rbk_ticket_find(const struct rbk_ticket_book *book, uint64_t id);

#endif
