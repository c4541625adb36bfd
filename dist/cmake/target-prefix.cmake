# SPDX-License-Identifier: MIT
#
# Included by every toolchain file: libraries come only from the prefix that dist/build-deps.sh
# built for this target.
if(DEFINED ENV{TERN_BUILD_CACHE})
    set(tern_build_cache "$ENV{TERN_BUILD_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(tern_build_cache "$ENV{XDG_CACHE_HOME}/tern-build")
else()
    set(tern_build_cache "$ENV{HOME}/.cache/tern-build")
endif()
set(tern_target_prefix "${tern_build_cache}/prefix/${tern_target}")
set(ENV{PKG_CONFIG_LIBDIR} "${tern_target_prefix}/lib/pkgconfig")
set(ENV{PKG_CONFIG_PATH} "")
set(CMAKE_FIND_ROOT_PATH "${tern_target_prefix}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE BOTH)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(TERN_STATIC_BINARY ON CACHE BOOL "link the command without shared libraries")
