/* SPDX-License-Identifier: MIT */
/*
 * Memory that a child process finds cleared.
 *
 * A lock that another thread held at the moment of a fork stays held for ever in the child's copy.
 * In memory that the kernel hands to the child as zeros (MADV_WIPEONFORK), a mutex and a condition
 * are new ones instead, and a flag that was set tells by being clear that this is a child. No
 * handler is registered and nobody asks for the process's id.
 */
#ifndef RBK_FORK_PAGE_H
#define RBK_FORK_PAGE_H

#include "redbucket/redbucket.h"

/* Maps so many zero bytes. ERROR_UNSUPPORTED where zeros aren't an unlocked mutex, or before Linux
 * 4.14. */
enum redbucket_status rbk_fork_page_map(size_t size, void **bytes, struct redbucket_error *error);

/* NULL does nothing. */
void rbk_fork_page_unmap(void *bytes, size_t size);

#endif
