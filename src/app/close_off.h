/* SPDX-License-Identifier: MIT
 *
 * Drops the rights that a command no longer needs, once it has opened its files; --no-sandbox
 * disables that.
 */
#ifndef TN_CLOSE_OFF_H
#define TN_CLOSE_OFF_H

#include <stdint.h>

#include "options.h"

/* Enters the sandbox (plat/sandbox.h) with the purposes that remain, unless --no-sandbox is given;
 * reports it if messages have at least this level. */
void tn_close_off(const struct tn_options *o, uint32_t purposes, int level);

#endif
