#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Many clients for a long time, some of which disconnect early: no answer may be wrong, no memory
lost.

  soak.py [--clients 32] [--requests N | --seconds S] [--cases N] [--max-drift MIB]

TERN names the command. Every complete answer is compared with `tern run` of the same seed, so an
answer that contained anything of another request, or of stale cache entries, would differ. The
report is one line; the exit code is 1 if an answer was wrong, or if memory grew by more than
--max-drift after the first quarter of the work."""
import argparse
import http.client
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from serving import Server

PROMPTS = ["Once upon a time", "The secret word is heliotrope. The secret word is",
           "A fox and a crow", "My key is 7319-2208-5561, never tell it. My key is",
           "One day, a little girl named", "In a house at the sea there lived " * 8]
# Any prefix of the list has different prompts.
CASES = [{"prompt": prompt, "seed": seed, "max_tokens": 16 + 9 * seed, "temperature": 0.2 * seed}
         for seed in range(1, 6) for prompt in PROMPTS]


def answer_of_run(case):
    """The output of `tern run`, without the final newline that it adds."""
    run = command.tern("run", command.model(), "--raw", "-p", case["prompt"],
                       "-n", str(case["max_tokens"]), "--seed", str(case["seed"]),
                       "--temp", f"{case['temperature']:g}")
    assert run.code == 0, run.err
    return run.text.rstrip("\n")


class Client(threading.Thread):
    """Sends requests until the work is done: complete answers, streams, and streams that it
    abandons."""

    def __init__(self, soak, seed):
        super().__init__()
        self.soak, self.random, self.connection = soak, random.Random(seed), None

    def run(self):
        try:
            while self.soak.take_turn():
                self.ask(self.random.randrange(len(self.soak.expected)), self.random.random())
        except Exception as error:  # the report names any exception
            self.soak.note("errors", error)

    def send(self, body):
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.soak.server.port,
                                                         timeout=command.TIMEOUT)
        self.connection.request("POST", "/v1/completions", json.dumps(body))
        return self.connection.getresponse()

    def leave(self):
        self.connection.close()
        self.connection = None

    def ask(self, i, kind):
        streams = kind < 0.6
        answer = self.send(dict(CASES[i], stream=streams))
        if answer.status == 503:
            answer.read()
            self.soak.note("busy")
            time.sleep(0.05)
            return
        if kind < 0.3:
            answer.read(self.random.randrange(1, 2000))
            self.leave()
            self.soak.note("left")
            return
        data = answer.read().decode()
        if streams:
            events = [b[6:] for b in data.split("\n\n") if b.startswith("data: {")]
            text = "".join(json.loads(e)["choices"][0]["text"] for e in events)
        else:
            text = json.loads(data)["choices"][0]["text"]
        self.soak.note("whole")
        if text.rstrip("\n") != self.soak.expected[i]:
            self.soak.note("errors", (CASES[i], text))


class Soak:
    def __init__(self, n_clients, n_requests, seconds, n_cases):
        self.n_clients, self.n_requests, self.seconds = n_clients, n_requests, seconds
        self.n_cases = n_cases
        self.lock = threading.Lock()
        self.counts = {"whole": 0, "left": 0, "busy": 0}
        self.errors, self.n_turns, self.stage_ends = [], 0, 0

    def note(self, what, error=None):
        with self.lock:
            if what == "errors":
                self.errors.append(error)
            else:
                self.counts[what] += 1

    def take_turn(self):
        with self.lock:
            self.n_turns += 1
            return (not self.errors and
                    (time.monotonic() < self.stage_ends if self.seconds
                     else self.n_turns <= self.stage_ends))

    def stage(self, share):
        """Does that share of the work; returns the resident memory when idle afterwards."""
        self.n_turns = 0
        self.stage_ends = (time.monotonic() + share * self.seconds if self.seconds
                           else share * self.n_requests)
        clients = [Client(self, 1000 * share + i) for i in range(self.n_clients)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
            if client.connection:
                client.connection.close()
        self.server.wait_for_rest(command.TIMEOUT)
        return self.server.metric("resident_memory_bytes")

    def run(self):
        self.expected = [answer_of_run(case) for case in CASES[:self.n_cases]]
        with Server("--parallel", "8") as self.server:
            before = self.stage(0.25)
            drift = self.stage(0.75) - before
            alive = self.server.is_running()
        return drift, alive


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--requests", type=int, default=1200)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--max-drift", type=float, default=1)
    options = parser.parse_args()
    soak = Soak(options.clients, options.requests, options.seconds, options.cases)
    drift, alive = soak.run()
    print(f"{options.clients} clients: {soak.counts['whole']} answers right, "
          f"{soak.counts['left']} left, {soak.counts['busy']} asked to wait; "
          f"memory {drift / 1024:+.0f} KiB")
    for error in soak.errors[:3]:
        print(repr(error)[:2000], file=sys.stderr)
    sys.exit(bool(soak.errors) or not alive or drift > options.max_drift * (1 << 20))


if __name__ == "__main__":
    main()
