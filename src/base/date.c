/* SPDX-License-Identifier: MIT
 *
 * The Gregorian calendar of date.h: lengths of months, day of the year, day of the week.  Templates
 * that print the date need them.
 */
#include "base/date.h"

#include <stdbool.h>

static bool is_leap(int32_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

uint8_t tn_date_days_in_month(int32_t year, uint8_t month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return (uint8_t)(days[month - 1] + (month == 2 && is_leap(year)));
}

uint16_t tn_date_day_of_year(int32_t year, uint8_t month, uint8_t day)
{
    uint16_t n = day;
    for (uint8_t m = 1; m < month; m++)
        n = (uint16_t)(n + tn_date_days_in_month(year, m));
    return n;
}

/* Day 1 of year 1 was a Monday. */
uint8_t tn_date_day_of_week(int32_t year, uint8_t month, uint8_t day)
{
    int32_t y = year - 1;
    return (uint8_t)((y * 365 + y / 4 - y / 100 + y / 400 + tn_date_day_of_year(year, month, day)) %
                     7);
}
