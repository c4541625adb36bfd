# SPDX-License-Identifier: MIT
"""Runs the program grammar_cases, under the emulator if there is one."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command


def run(cases):
    """The answers to cases; grammar_cases.c describes both."""
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(command.RUNNER + [os.environ["TERN_GRAMMAR_CASES"]],
                          input=lines.encode("ascii"), stdout=subprocess.PIPE, check=True,
                          timeout=command.TIMEOUT)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases), f"{len(answers)} answers to {len(cases)} cases"
    return answers
