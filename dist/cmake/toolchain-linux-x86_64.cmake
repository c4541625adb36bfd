# SPDX-License-Identifier: MIT
# The native compiler, but libraries of the release prefix and a fully static binary.
set(tern_target linux-x86_64)
set(CMAKE_C_COMPILER gcc)
include("${CMAKE_CURRENT_LIST_DIR}/target-prefix.cmake")
