/* SPDX-License-Identifier: MIT */
/*
 * The states of a circuit breaker.
 */
#include "redis/circuit.h"

bool rbk_circuit_admit(struct rbk_circuit *circuit, double now)
{
    if (!circuit->open)
        return true;
    if (circuit->trying || now < circuit->until)
        return false;
    circuit->trying = true;
    return true;
}

void rbk_circuit_succeed(struct rbk_circuit *circuit)
{
    *circuit = (struct rbk_circuit){.open = false};
}

void rbk_circuit_fail(struct rbk_circuit *circuit, double now, uint32_t random)
{
    /* Failures of calls that were under way when it opened don't make the pause longer. */
    if (circuit->open && !circuit->trying)
        return;
    circuit->pause = circuit->open ? circuit->pause * 2 : RBK_CIRCUIT_FIRST;
    if (circuit->pause > RBK_CIRCUIT_LONGEST)
        circuit->pause = RBK_CIRCUIT_LONGEST;
    circuit->open = true;
    circuit->trying = false;
    circuit->until = now + circuit->pause * (1.0 - 0.25 * random / UINT32_MAX);
}

void rbk_circuit_leave(struct rbk_circuit *circuit)
{
    circuit->trying = false;
}
