/* SPDX-License-Identifier: MIT
 *
 * The grids of the IQ2 and IQ3 types: a point is the magnitudes of 8 (IQ2) or 4 (IQ3) adjacent
 * weights, 2 or 3 bits each, the first weight lowest.  They number the magnitudes
 *
 *   IQ2       8, 25, 43
 *   IQ3_XXS   4, 12, 20, 28, 36, 44, 52, 62
 *   IQ3_S     1, 3, 5, 7, 9, 11, 13, 15
 */
#ifndef TN_GRIDS_H
#define TN_GRIDS_H

#include <stdint.h>

extern const uint16_t tn_grid_iq2_xxs[256], tn_grid_iq2_xs[512], tn_grid_iq2_s[1024];
extern const uint16_t tn_grid_iq3_xxs[256], tn_grid_iq3_s[512];

#endif
