# SPDX-License-Identifier: MIT
# macOS 11 or newer on arm64, with the zig compiler; binaries cannot run on the build machine.
set(tern_target macos-arm64)
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
include("${CMAKE_CURRENT_LIST_DIR}/target-prefix.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
