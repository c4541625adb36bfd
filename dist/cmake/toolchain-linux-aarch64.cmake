# SPDX-License-Identifier: MIT
# 64-bit Arm Linux; binaries run under qemu's user mode.
set(tern_target linux-aarch64)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)  # for a single test
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static)
include("${CMAKE_CURRENT_LIST_DIR}/target-prefix.cmake")
