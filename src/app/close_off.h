/* SPDX-License-Identifier: MIT
 *
 * --no-sandbox: commands that compute answers drop the rights that they no longer need.
 */
#ifndef TN_CLOSE_OFF_H
#define TN_CLOSE_OFF_H

#include <stdint.h>

#include "options.h"

/* Enters the sandbox (plat/sandbox.h) with the purposes that remain, unless --no-sandbox is given;
 * says so where messages have at least this level. */
void tn_close_off(const struct tn_options *o, uint32_t purposes, int level);

#endif
