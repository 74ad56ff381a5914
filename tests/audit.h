/* SPDX-License-Identifier: MIT */
/*
 * Whether a table's bytes make sense as a whole: every bucket is where it would be looked for, and
 * there once; every link belongs to one chain, and every chain is as long as its text; nothing is
 * left in a journal.
 */
#ifndef TEST_AUDIT_H
#define TEST_AUDIT_H

#include "table/table.h"

struct test_audit {
    uint64_t free;
    uint64_t links;
    uint64_t buckets;
};

/* Counts all slots into *audit, and returns what is wrong, or NULL. Usable in a child: it asserts
 * nothing. The caller keeps others from changing the table. */
const char *test_audit(const struct rbk_table *table, struct test_audit *audit);

/* The table of an embedded store. */
struct redbucket_store;
struct rbk_table *test_table_of(struct redbucket_store *store);

#endif
