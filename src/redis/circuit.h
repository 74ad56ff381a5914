/* SPDX-License-Identifier: MIT */
/*
 * A circuit breaker: once a server is known to be down, asking costs nothing.
 *
 * After a failure the circuit is open for a pause, and everybody is refused at once. After the
 * pause one caller is let through to try; the others are refused until that one knows. Success
 * closes the circuit, failure opens it for longer: 50 ms at first, doubled up to 1 s, each
 * shortened at random by up to a quarter, so that a fleet doesn't come back in step.
 *
 * Pure: time and randomness are arguments. Whoever has one guards it.
 */
#ifndef RBK_REDIS_CIRCUIT_H
#define RBK_REDIS_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

#define RBK_CIRCUIT_FIRST   0.05 /* seconds */
#define RBK_CIRCUIT_LONGEST 1.0

/* The ticket of whoever isn't let through to try. */
#define RBK_CIRCUIT_NO_PROBE 0u

/* All zeros: closed. */
struct rbk_circuit {
    bool open;
    unsigned probe;  /* the ticket of who is trying now, or NO_PROBE */
    unsigned probes; /* the last ticket given */
    double pause;    /* the last one, before it was shortened */
    double until;
};

/*
 * May somebody ask the server now? While the circuit is open, one alone may, who gets a ticket in
 * *probe and has to tell with it how it went; otherwise *probe is NO_PROBE. Written only on true.
 */
bool rbk_circuit_admit(struct rbk_circuit *circuit, double now, unsigned *probe);

void rbk_circuit_succeed(struct rbk_circuit *circuit);

/* `random` is any number, a new one each time. While the circuit is open, only the failure of the
 * one who tries counts. */
void rbk_circuit_fail(struct rbk_circuit *circuit, unsigned probe, double now, uint32_t random);

/* Whoever was let through to try learnt nothing (its own deadline was short): let another try. */
void rbk_circuit_leave(struct rbk_circuit *circuit, unsigned probe);

#endif
