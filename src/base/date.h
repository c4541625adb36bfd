/* SPDX-License-Identifier: MIT
 *
 * The Gregorian calendar, also for the years before it was in use.  Pure
 * arithmetic: the clock is read elsewhere.
 */
#ifndef TN_DATE_H
#define TN_DATE_H

#include <stdint.h>

/* Of months 1 ... 12. */
uint8_t tn_date_days_in_month(int32_t year, uint8_t month);
/* 1 ... 366. */
uint16_t tn_date_day_of_year(int32_t year, uint8_t month, uint8_t day);
/* 0 is Sunday; years from 1 on. */
uint8_t tn_date_day_of_week(int32_t year, uint8_t month, uint8_t day);

#endif
