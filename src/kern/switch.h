/* SPDX-License-Identifier: MIT
 *
 * Turns a run-time count into a constant: call(n) for n = 1 to 2, 3, 4, 6 or 8, each expanded with
 * a literal n, so that the compiler unrolls loops over tokens.
 */
#ifndef TN_SWITCH_H
#define TN_SWITCH_H

#define SWITCH_CASE(n, call)                                                                       \
    case n:                                                                                        \
        call(n);                                                                                   \
        break;
#define SWITCH_CASES_3(call)                                                                       \
    SWITCH_CASE(1, call)                                                                           \
    SWITCH_CASE(2, call)                                                                           \
    SWITCH_CASE(3, call)
#define SWITCH_CASES_4(call)                                                                       \
    SWITCH_CASES_3(call)                                                                           \
    SWITCH_CASE(4, call)
#define SWITCH_CASES_5(call)                                                                       \
    SWITCH_CASES_4(call)                                                                           \
    SWITCH_CASE(5, call)
#define SWITCH_CASES_6(call)                                                                       \
    SWITCH_CASES_5(call)                                                                           \
    SWITCH_CASE(6, call)

#define SWITCH_2(n, call)                                                                          \
    switch (n) {                                                                                   \
        SWITCH_CASE(1, call)                                                                       \
        SWITCH_CASE(2, call)                                                                       \
    }
#define SWITCH_3(n, call)                                                                          \
    switch (n) {                                                                                   \
        SWITCH_CASES_3(call)                                                                       \
    }
#define SWITCH_4(n, call)                                                                          \
    switch (n) {                                                                                   \
        SWITCH_CASES_4(call)                                                                       \
    }
#define SWITCH_5(n, call)                                                                          \
    switch (n) {                                                                                   \
        SWITCH_CASES_5(call)                                                                       \
    }
#define SWITCH_6(n, call)                                                                          \
    switch (n) {                                                                                   \
        SWITCH_CASES_6(call)                                                                       \
    }
#define SWITCH_8(n, call)                                                                          \
    switch (n) {                                                                                   \
        SWITCH_CASES_6(call)                                                                       \
        SWITCH_CASE(7, call)                                                                       \
        SWITCH_CASE(8, call)                                                                       \
    }

#endif
