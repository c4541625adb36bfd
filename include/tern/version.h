/* SPDX-License-Identifier: MIT
 *
 * The version of the program, the library and the packages: this header is the
 * only place that states it (CMakeLists.txt reads it from here).
 */
#ifndef TERN_VERSION_H
#define TERN_VERSION_H

#define TERN_VERSION_MAJOR 0
#define TERN_VERSION_MINOR 1
#define TERN_VERSION_PATCH 0
#define TERN_VERSION_STRING "0.1.0"

#endif
