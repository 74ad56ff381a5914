/* SPDX-License-Identifier: MIT */
/*
 * The states of a circuit breaker.
 */
#include "redis/circuit.h"

bool rbk_circuit_admit(struct rbk_circuit *circuit, double now, unsigned *probe)
{
    if (!circuit->open) {
        *probe = RBK_CIRCUIT_NO_PROBE;
        return true;
    }
    if (circuit->probe != RBK_CIRCUIT_NO_PROBE || now < circuit->until)
        return false;
    if (++circuit->probes == RBK_CIRCUIT_NO_PROBE)
        circuit->probes++;
    circuit->probe = circuit->probes;
    *probe = circuit->probe;
    return true;
}

void rbk_circuit_succeed(struct rbk_circuit *circuit)
{
    circuit->open = false;
    circuit->probe = RBK_CIRCUIT_NO_PROBE;
}

void rbk_circuit_fail(struct rbk_circuit *circuit, unsigned probe, double now, uint32_t random)
{
    bool was_open = circuit->open;

    /* Calls that were under way when it opened fail as well: they say nothing new. */
    if (was_open && (probe == RBK_CIRCUIT_NO_PROBE || probe != circuit->probe))
        return;
    circuit->pause = was_open ? circuit->pause * 2 : RBK_CIRCUIT_FIRST;
    if (circuit->pause > RBK_CIRCUIT_LONGEST)
        circuit->pause = RBK_CIRCUIT_LONGEST;
    circuit->open = true;
    circuit->probe = RBK_CIRCUIT_NO_PROBE;
    circuit->until = now + circuit->pause * (1.0 - 0.25 * random / UINT32_MAX);
}

void rbk_circuit_leave(struct rbk_circuit *circuit, unsigned probe)
{
    if (circuit->probe == probe)
        circuit->probe = RBK_CIRCUIT_NO_PROBE;
}
