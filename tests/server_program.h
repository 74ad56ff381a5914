/* SPDX-License-Identifier: MIT */
/*
 * Which program is the server of a kind, and of what version.
 */
#ifndef TEST_SERVER_PROGRAM_H
#define TEST_SERVER_PROGRAM_H

#include "server.h"

#include <limits.h>

/* Writes the program's path; false when there is none. */
bool test_server_program(enum test_server_kind kind, char path[PATH_MAX]);

/* major * 10000 + minor * 100 + patch, by what the program itself says; 0 when it says nothing. */
unsigned test_server_version(const char *program);

#endif
