/* SPDX-License-Identifier: MIT
 *
 * The Gregorian calendar, extended to the years before its introduction.  Pure arithmetic: callers
 * read the clock.
 */
#ifndef TN_DATE_H
#define TN_DATE_H

#include <stdint.h>

/* Months are 1 ... 12. */
uint8_t tn_date_days_in_month(int32_t year, uint8_t month);
/* The result is 1 ... 366. */
uint16_t tn_date_day_of_year(int32_t year, uint8_t month, uint8_t day);
/* 0 is Sunday; years begin with 1. */
uint8_t tn_date_day_of_week(int32_t year, uint8_t month, uint8_t day);

#endif
