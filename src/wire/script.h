/* SPDX-License-Identifier: MIT */
/*
 * The Lua script that decides on a server, made from script.lua when the library is built.
 */
#ifndef RBK_WIRE_SCRIPT_H
#define RBK_WIRE_SCRIPT_H

#include <stddef.h>

/* Its text, with a NUL behind its rbk_script_len bytes, and the SHA-1 of it that EVALSHA wants. */
extern const char rbk_script_text[];
extern const size_t rbk_script_len;
extern const char rbk_script_sha[];

#endif
