# SPDX-License-Identifier: MIT
#
# tern_command_test(<name> <script> [ARGUMENTS...]): a Python test that runs the built command,
# under the emulator when there is one.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
string(JOIN " " tern_runner ${CMAKE_CROSSCOMPILING_EMULATOR})
# Seconds for a script and for each command that it runs; emulators and sanitizers are slow.
set(tern_script_timeout 900)
set(tern_run_timeout 300)
if(tern_runner OR TERN_SANITIZE)
    set(tern_script_timeout 7200)
    set(tern_run_timeout 1800)
endif()

function(tern_command_test name script)
    add_test(NAME ${name}
        COMMAND ${Python3_EXECUTABLE} -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${ARGN})
    set(environment "TERN=$<TARGET_FILE:tern_cmd>" "TERN_RUNNER=${tern_runner}"
        "TERN_SHARED=${TERN_SHARED_DIR}" "TERN_TEST_TIMEOUT=${tern_run_timeout}"
        "TERN_SANITIZE=${TERN_SANITIZE}")
    set_tests_properties(${name} PROPERTIES
        LABELS command TIMEOUT ${tern_script_timeout} ENVIRONMENT "${environment}")
endfunction()
