# SPDX-License-Identifier: MIT
#
# One meaning of "release": the flags of every optimised build stand here and nowhere else, for the
# preset, for a build without one, and for what is shipped.  Included before project().
#
#   RelWithDebInfo   the default: optimised code, with what debuggers need
#   Release          the same code without it; release archives
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)  # not inside another project
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Release, RelWithDebInfo or Debug")
    set(CMAKE_C_FLAGS_RELEASE "-O2" CACHE STRING "flags of Release")
    set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g" CACHE STRING "flags of RelWithDebInfo")
endif()
