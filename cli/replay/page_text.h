/* SPDX-License-Identifier: MIT */
/*
 * The page of a report, made by page/embed.py: what stands before the findings and what stands
 * behind them.
 */
#ifndef RBK_REPLAY_PAGE_TEXT_H
#define RBK_REPLAY_PAGE_TEXT_H

#include <stddef.h>

extern const char rbk_page_before[];
extern const size_t rbk_page_before_len;
extern const char rbk_page_behind[];
extern const size_t rbk_page_behind_len;

#endif
