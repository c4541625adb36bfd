# SPDX-License-Identifier: MIT
#
# Defines "release": the flags of every optimised build, for the preset, for a build without one,
# and for the archives.  Included before project().
#
#   RelWithDebInfo   the default: optimised code with line numbers for debuggers; with variables
#                    (-g) a build takes half as long again
#   Release          the same code without it; for release archives
if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)  # not as a subproject
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Release, RelWithDebInfo or Debug")
    set(CMAKE_C_FLAGS_RELEASE "-O2" CACHE STRING "flags of Release")
    set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1" CACHE STRING "flags of RelWithDebInfo")
endif()
