# SPDX-License-Identifier: MIT
# 64-bit Windows with MinGW-w64 (Win32 threads, msvcrt); binaries run under wine.
set(tern_target windows-x86_64)
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-win32)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-win32)  # for a single test
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
find_program(tern_wine NAMES wine64 wine PATHS /usr/lib/wine)
if(tern_wine)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${tern_wine}")
endif()
include("${CMAKE_CURRENT_LIST_DIR}/target-prefix.cmake")
