# SPDX-License-Identifier: MIT
#
# The zig compiler as a C compiler for macOS, through the wrappers that dist/targets.sh writes. Its
# linker adds the ad-hoc signature that arm64 requires.  Stripping later would invalidate it, so the
# linker omits symbols (-s).
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../targets.sh" zig_version REGEX "^ziglang_version=")
string(REPLACE "ziglang_version=" "" zig_version "${zig_version}")
set(zig_tools "${tern_build_cache}/zig-${zig_version}/tools/${tern_target}")
set(CMAKE_C_COMPILER "${zig_tools}/cc")
set(CMAKE_AR "${zig_tools}/ar")
set(CMAKE_RANLIB "${zig_tools}/ranlib")
set(CMAKE_OSX_SYSROOT "")
set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "")
set(CMAKE_OSX_ARCHITECTURES "" CACHE STRING "")
