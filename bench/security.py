#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the security goals of `tern serve`, S1 to S12.
usage: security.py TERN [S1 S3 S6...]      (default: all)

Prints rows of acceptance.sh.  TERN_LONG=1: S6 and S7 take the time that their goals name, twelve
minutes together instead of two, and S11 builds for MSan.  The server has the demo model."""
import http.client
import itertools
import json
import multiprocessing
import os
import re
import shutil
import socket
import subprocess
import sys
import time

TERN = os.path.abspath(sys.argv[1])
os.environ["TERN"] = TERN
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(os.path.dirname(TERN), "bin")
IS_LONG = os.environ.get("TERN_LONG") == "1"
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "server")]
import command
import test_http
from serving import Server, read_answer, status_of

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
KEY = "canary-key-5f2c9a"


def row(what, asked, got, is_met=None):
    verdict = "-" if is_met is None else "met" if is_met else "NOT MET"
    print(f"{what:<52} {asked:<16} {got:<20} {verdict}", flush=True)


def all_of(what, n_good, n):
    row(what, "all", f"{n_good} of {n}", n_good == n and n > 0)


# ---- S1: addresses ----

def listening(pid):
    """Addresses at which a process listens, from /proc."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        m = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        inodes |= {m.group(1)} if m else set()
    found = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as f:
            for line in f.readlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    words = fields[1].split(":")[0]
                    data = b"".join(bytes.fromhex(words[i:i + 8])[::-1]
                                    for i in range(0, len(words), 8))
                    found.add(socket.inet_ntop(
                        socket.AF_INET if table == "tcp" else socket.AF_INET6, data))
    return found


def s1():
    with Server() as s:
        found = listening(s.process.pid)
        row("S1 listens at", "127.0.0.1, ::1", ", ".join(sorted(found)),
            "127.0.0.1" in found and found <= {"127.0.0.1", "::1"})
    codes = [command.tern("serve", command.model(), "--port", "0", "--host", host).code
             for host in ("0.0.0.0", "::", "192.0.2.1")]
    row("S1 other addresses without a key: exit codes", "2", str(codes), set(codes) == {2})


# ---- S2 and S3: Host, Origin, Sec-Fetch-Site ----

GOOD_HOSTS = ["localhost", "LOCALHOST", "localhost:PORT", "localhost:1", "127.0.0.1",
              "127.0.0.1:PORT", "[::1]", "[::1]:PORT", "tern.example.com", "tern.example.com:443"]
BAD_HOSTS = ["localhost.", "localhost:", "localhost:x", "localhost:123456", "a.localhost",
             "localhost.evil.example", "evil.example", "evil.example:PORT", "127.0.0.2", "127.1",
             "127.0.0.1.", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.nip.io", "0.0.0.0",
             "0.0.0.0:PORT", "::1", "[::1", "[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "[::]",
             "localhost@evil.example", "evil.example@localhost", "localhost, evil.example",
             "localhost evil.example", "http://localhost", "localhost/", "*", "null",
             "x.tern.example.com", "tern.example.com.", "10.0.0.1", "printer.local", ""]
OPEN = ["--allow-origin", "https://app.example.com", "--allow-host", "tern.example.com"]


def s2():
    with Server(*OPEN) as s:
        def status(head):
            return status_of(s.raw(b"GET /health HTTP/1.1\r\nConnection: close\r\n" +
                                   head.replace("PORT", str(s.port)).encode() + b"\r\n"))
        cases = ([(f"Host: {h}\r\n", 200) for h in GOOD_HOSTS] +
                 [(f"Host: {h}\r\n", 403) for h in BAD_HOSTS] +
                 [("", 400), ("Host: localhost\r\nHost: localhost\r\n", 400),
                  ("Host: localhost\r\nHost: evil.example\r\n", 400)])
        all_of("S2 forms of Host: the right status",
               sum(status(head) == expected for head, expected in cases), len(cases))


OWN_ORIGINS = [scheme + "://" + "HOST" for scheme in ("http", "https")]
ORIGINS = [None, *OWN_ORIGINS, "https://app.example.com", "null", "file://",
           "http://evil.example", "http://localhost:1", "https://app.example.com.evil.example",
           OWN_ORIGINS[0] + ".evil.example", ""]
SITES = [None, "same-origin", "none", "same-site", "cross-site", "Cross-Site"]
METHODS = ["GET", "POST", "OPTIONS", "HEAD", "PUT"]
ROUTES = ["/", "/health", "/v1/models", "/v1/chat/completions", "/api/tags", "/api/chat",
          "/tokenize", "/metrics", "/page/app.js", "/nothing", "/api/pull", "/%68ealth"]
PRODUCT_HOSTS = ["localhost:PORT", "127.0.0.1", "[::1]:PORT", "tern.example.com", "evil.example",
                 "127.0.0.1.nip.io", "localhost."]


def is_let_in(host, origin, site):
    if host not in GOOD_HOSTS:
        return False
    if origin == "https://app.example.com":
        return True
    if origin not in (None, *OWN_ORIGINS):
        return False
    return site is None or site.lower() not in ("same-site", "cross-site")


def read_pipelined(s, n, methods):
    """(status, head) of n answers; those to HEAD have no body."""
    data, found = b"", []
    for i in range(n):
        while b"\r\n\r\n" not in data:
            data += s.recv(1 << 20) or b"\r\n\r\n"
        head, _, data = data.partition(b"\r\n\r\n")
        m = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        length = int(m.group(1)) if m and methods[i] != "HEAD" else 0
        while len(data) < length:
            data += s.recv(1 << 20)
        data = data[length:]
        found.append((status_of(head + b" "), head))
    return found


def s3():
    n_good = n = 0
    with Server(*OPEN) as s:
        product = list(itertools.product(PRODUCT_HOSTS, ORIGINS, SITES, METHODS, ROUTES))
        for begin in range(0, len(product), 40):
            part, requests = product[begin:begin + 40], b""
            for host, origin, site, method, route in part:
                name = host.replace("PORT", str(s.port))
                head = f"{method} {route} HTTP/1.1\r\nHost: {name}\r\n"
                if origin is not None:
                    head += "Origin: " + origin.replace("HOST", name) + "\r\n"
                head += f"Sec-Fetch-Site: {site}\r\n" if site else ""
                requests += (head + "\r\n").encode()
            with s.connect() as c:
                c.sendall(requests)
                answers = read_pipelined(c, len(part), [p[3] for p in part])
            for (host, origin, site, _, _), (status, head) in zip(part, answers):
                lets_in = is_let_in(host, origin, site)
                may_read = b"access-control-allow-origin: https://app.example.com\r\n" in \
                    (head + b"\r\n").lower()
                names = b"access-control-allow-origin" in head.lower()
                is_known = lets_in and origin == "https://app.example.com"
                n += 1
                n_good += ((status != 403) == lets_in and status != 0 and
                           (may_read if is_known else not names))
    all_of("S3 Host x Origin x Sec-Fetch-Site x method x route", n_good, n)


# ---- S4: keys ----

def s4():
    bench = json.loads(subprocess.run([os.path.join(BIN, "bench_guard")], check=True, text=True,
                                      stdout=subprocess.PIPE).stdout)
    row("S4 key wrong in its last byte, not its first: time", "|t| < 4.5",
        f"t {bench['t']:.1f}, {bench['ns']:+.1f} ns", abs(bench["t"]) < 4.5)
    row("   the same where the first difference ends it", "|t| > 4.5",
        f"t {bench['t_early_exit']:.1f}, {bench['ns_early_exit']:+.1f} ns",
        abs(bench["t_early_exit"]) > 4.5)
    log = command.scratch("key-log")
    with Server("--log", log, "-v", env=command.environment(TERN_API_KEY=KEY)) as s:
        for n, path in ((200, "/v1/models"), (404, f"/{KEY[:5]}"), (200, f"/v1/models?key={KEY}")):
            s.key = KEY
            assert s.request("GET", path)[0] == n
        s.key = KEY[:-1]
        refused = [s.request(m, p)[0] for m in ("GET", "POST") for p in ROUTES
                   if p not in ("/", "/health", "/%68ealth", "/page/app.js")]
        with open(f"/proc/{s.process.pid}/cmdline", "rb") as f:
            shown = f.read()
        s.stop()
        shown += s.out + s.err.encode() + command.read_bytes(log)
    row("S4 the key in log, output and arguments", "0 times", f"{shown.count(KEY.encode())} times",
        KEY.encode() not in shown and len(command.read_bytes(log)) > 500)
    all_of("S4 routes that refuse a wrong key with 401", refused.count(401), len(refused))


# ---- S5: limits ----

def s5():
    with Server() as s:
        good = sum(status_of(s.raw(data)) == status
                   for status, data in test_http.HOSTILE.values())
        all_of("S5 hostile requests: the right status", good, len(test_http.HOSTILE))
        deep = [s.request("POST", "/v1/completions", b'{"a":' + b"[" * n + b"]" * n + b"}")
                for n in (63, 64)]
        row("S5 JSON of 64 levels is read, of 65 not", "400, by depth",
            str(deep[1][0]), b"deeper" in deep[1][2] and b"deeper" not in deep[0][2])
        before = s.metric("resident_memory_bytes")
        head = (b"GET /" + b"a" * 8100 + b" HTTP/1.1\r\nHost: localhost\r\nA: " + b"b" * 16000)
        held = [s.connect() for _ in range(63)]
        for c in held:
            c.sendall(head)
        time.sleep(0.5)
        grown = (s.metric("resident_memory_bytes") - before) / 63
        row("S5 memory of a connection with the largest head", "<= 1024 KiB",
            f"{grown / 1024:.0f} KiB", grown <= 1 << 20)
        for c in held:
            c.close()


# ---- S6: slow clients ----

class Slow:
    """As in slowhttptest: 1,000 connections that are reopened when they are closed."""
    HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"

    def __init__(self, server, mode):
        self.server, self.mode = server, mode
        self.sockets, self.n_opened = {}, 0

    def begin(self):
        if self.mode == "headers":
            return self.HEAD
        if self.mode == "body":
            return self.HEAD + b"Content-Length: 100000\r\n\r\n{"
        if self.mode == "range":
            ranges = ",".join(f"5-{i}" for i in range(1300))
            return (f"HEAD /page/app.js HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-,{ranges}"
                    "\r\nConnection: close\r\n\r\n").encode()
        return b"GET /page/app.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * 60

    def open(self):
        s = socket.socket()
        if self.mode == "read":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        s.connect(("127.0.0.1", self.server.port))
        s.setblocking(False)
        self.sockets[s] = time.monotonic()
        self.n_opened += 1
        try:
            s.send(self.begin())
        except OSError:
            pass

    def turn(self):
        for s in list(self.sockets):
            try:
                if self.mode in ("headers", "body"):
                    s.send(b"X-A: b\r\n" if self.mode == "headers" else b" ")
                if not s.recv(32):
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                s.close()
                del self.sockets[s]
        while len(self.sockets) < 1000:
            self.open()


class Attack:
    """A separate process, so that good clients do not wait for it."""

    def __init__(self, server, mode):
        self.pipe, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=self.run, args=(Slow(server, mode), other))
        self.process.start()

    @staticmethod
    def run(slow, pipe):
        while not pipe.poll(0.1):
            slow.turn()
        pipe.send(slow.n_opened)

    def stop(self):
        self.pipe.send("stop")
        n = self.pipe.recv()
        self.process.join()
        return n


def s6():
    seconds = 30 if IS_LONG else 12
    for mode in ("headers", "body", "read", "range"):
        with Server() as server:
            times, most, failed, looked = [], 0, 0, time.monotonic()
            attack = Attack(server, mode)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                began = time.monotonic()
                failed += status_of(server.raw(HEALTH)) != 200
                times.append(1000 * (time.monotonic() - began))
                if time.monotonic() > looked + 0.5:
                    most, looked = max(most, server.metric("connections")), time.monotonic()
                time.sleep(0.01)
            n_opened = attack.stop()
            p99 = sorted(times)[int(len(times) * 0.99)]
            row(f"S6 slow {mode}, {n_opened} connections: /health", "p99 <= 100 ms",
                f"{p99:.1f} ms, {failed} lost", p99 <= 100 and failed == 0)
            row("   connections at once, of 1000", "<= 192", f"{most:.0f}", 0 < most <= 192)
    with Server() as server, server.connect() as s:
        began = time.monotonic()
        s.sendall(b"GET /health HTTP/1.1\r\n")
        status = status_of(read_answer(s))
        took = time.monotonic() - began
        row("S6 a head that does not end", "408 within 10 s", f"{status} in {took:.1f} s",
            status == 408 and took <= 10)


# ---- S7 and S11: many clients ----

def soak():
    seconds = 600 if IS_LONG else 40
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "tests", "server", "soak.py"), "--clients", "32",
         "--seconds", str(seconds), "--max-drift", "1000"], text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    m = re.search(r"(\d+) answers right, (\d+) left, (\d+) [a-z ]+; memory ([+-]\d+) KiB",
                  done.stdout)
    if not m:
        row(f"S7 32 clients for {seconds} s", "no crash", "crash or wrong", False)
        print(done.stderr[-500:], file=sys.stderr)
        return
    right, left, busy, drift = (int(x) for x in m.groups())
    row(f"S7 32 clients for {seconds} s, {left} left", "no wrong answer", f"{right} right",
        done.returncode == 0 and right > 0)
    row("S7 growth of memory after the first quarter", "<= 1024 KiB", f"{drift} KiB",
        drift <= 1024 if IS_LONG else None)
    row("S11 answers with anything of another's", "0", f"0 of {right}", done.returncode == 0)


def s7():
    with Server("--parallel", "1") as s:
        body = {"prompt": "Once", "max_tokens": 900, "ignore_eos": True, "stream": True}
        clients = [http.client.HTTPConnection("127.0.0.1", s.port) for _ in range(2)]
        answers = []
        for c in clients:
            c.request("POST", "/v1/completions", json.dumps(body))
        answers = [clients[0].getresponse()]
        answers[0].read(400)
        before = s.metric("new_tokens_total")
        answers[0].close()
        clients[0].close()
        began = time.monotonic()
        clients[1].getresponse().read(200)
        took = time.monotonic() - began
        row("S7 a client goes: the next one's first token", "<= 100 ms", f"{1000 * took:.0f} ms",
            took <= 0.1 and before >= 0)
        clients[1].close()
        s.wait_for_rest()
        data = json.dumps(dict(body, stream=False)).encode()
        request = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
                   % len(data)) + data
        many, n_refused = [], 0
        for _ in range(200):
            many.append(s.connect())
            many[-1].sendall(request)
        time.sleep(1.5)
        for c in many:
            c.setblocking(False)
            try:
                got = c.recv(4096)
                n_refused += status_of(got) == 503 and b"Retry-After: " in got
            except OSError:
                pass
            c.close()
        with open(f"/proc/{s.process.pid}/status", encoding="ascii") as f:
            threads = int(re.search(r"Threads:\s+(\d+)", f.read()).group(1))
        row("S7 200 requests at once: refused with 503", ">= 136", str(n_refused), n_refused >= 136)
        row("   threads meanwhile", "fixed", str(threads), threads <= 8)
    soak()


# ---- S8: paths ----

CALLS = ("trace=open,openat,openat2,creat,execve,execveat,unlink,unlinkat,rename,renameat,"
         "renameat2,mkdir,mkdirat,link,linkat,symlink,symlinkat,connect,socket,accept,accept4")
PATHS = ["/../etc/passwd", "/..", "/%2e%2e/%2e%2e/etc/passwd", "/..%2fetc%2fpasswd",
         "/%2e%2e%5cwin.ini", "/..\\..\\win.ini", "//etc/passwd", "/page/../../etc/passwd",
         "/page/%2e%2e/app.js", "/page/..%2fpage/app.js", "/page/app.js%00", "/page//app.js",
         "/page/./app.js", "/page/app.js/", "/page/C:%5cwin.ini", "/v1/models/../../etc/passwd",
         "/v1/models/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/v1/models//etc/passwd",
         "/api/blobs/sha256:../../etc/passwd", "/etc/passwd", "/proc/self/environ", "/file:///etc"]


def s8():
    trace = command.scratch("strace")
    with Server() as s:
        tracer = None
        if shutil.which("strace"):
            tracer = subprocess.Popen(
                ["strace", "-f", "-qq", "-o", trace, "-e", CALLS, "-p",
                 str(s.process.pid)], stderr=subprocess.DEVNULL)
            time.sleep(1)
        statuses = [s.request(m, p)[0] for p in PATHS for m in ("GET", "POST")]
        for name in ("../../etc/passwd", "/etc/passwd", "file:///etc/passwd"):
            for route in ("/v1/completions", "/api/show", "/api/chat", "/tokenize"):
                statuses.append(s.post(route, {"model": name, "prompt": "a"})[0])
        good = sum(status in (400, 404, 405, 501) for status in statuses)
        all_of("S8 paths in targets and names: 400, 404, 405, 501", good, len(statuses))
        s.post("/v1/completions", {"prompt": "Once", "max_tokens": 4})
        calls = None
        if tracer and tracer.poll() is None:
            tracer.terminate()
            tracer.wait()
            with open(trace, encoding="utf-8", errors="replace") as f:
                lines = [line for line in f if "(" in line]
            n_accepted = sum(" accept" in line for line in lines)
            if n_accepted > 0:  # strace saw the server at work
                calls = len(lines) - n_accepted
        row("S8 files opened, connections made meanwhile", "0",
            "no strace" if calls is None else str(calls), None if calls is None else calls == 0)


# ---- S9: numbers ----

VALUES = ["-1", "0", "NaN", "1e308", "2147483648", "9223372036854775808", '"5"', "null", "[]",
          "{}", "true", "-1e308", "1e-400", "1e999", "0.5", "18446744073709551616", "-Infinity"]
CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
BODIES = {  # route: (body, short answer, fields)
    "/v1/chat/completions": (CHAT, "max_tokens", "max_tokens max_completion_tokens temperature "
                             "top_p n seed top_logprobs logprobs frequency_penalty "
                             "presence_penalty top_k min_p repeat_penalty stop logit_bias"),
    "/v1/completions": ({"prompt": "Once"}, "max_tokens", "max_tokens temperature top_p n seed "
                        "logprobs best_of frequency_penalty presence_penalty top_k min_p "
                        "repeat_penalty repeat_last_n prompt stop logit_bias echo stream"),
    "/completion": ({"prompt": "Once"}, "n_predict", "n_predict temperature top_k top_p min_p seed "
                    "n_probs repeat_penalty repeat_last_n presence_penalty frequency_penalty"),
    "/v1/messages": (CHAT, "max_tokens", "max_tokens temperature top_p top_k"),
    "/v1/responses": ({"input": "Hi"}, "max_output_tokens",
                      "max_output_tokens temperature top_p top_logprobs seed top_k min_p"),
    "/api/chat": (dict(CHAT, stream=False), "", "keep_alive top_logprobs"),
    "/api/generate": ({"prompt": "Hi", "stream": False}, "", "keep_alive context top_logprobs"),
    "/detokenize": ({}, "", "tokens"), "/tokenize": ({}, "", "content add_special with_pieces"),
}
OPTIONS = ("num_ctx num_predict num_keep seed temperature top_k top_p min_p repeat_penalty "
           "repeat_last_n presence_penalty frequency_penalty num_thread stop")


def numbers():
    """(route, body, field, value)"""
    for route, (body, short, fields) in BODIES.items():
        for field, value in itertools.product(fields.split(), VALUES):
            rest = {k: v for k, v in dict(body, **({short: 1} if short else {})).items()
                    if k != field}
            if route.startswith("/api/"):
                rest["options"] = {"num_predict": 1}
            text = json.dumps(rest)
            yield (route, text[:-1] + (", " if rest else "") + f'"{field}": {value}}}', field,
                   value)
    for route in ("/api/chat", "/api/generate"):
        for field, value in itertools.product(OPTIONS.split(), VALUES):
            short = "" if field == "num_predict" else '"num_predict": 1, '
            text = json.dumps(BODIES[route][0])
            yield route, f'{text[:-1]}, "options": {{{short}"{field}": {value}}}}}', field, value


def s9():
    with Server() as s:
        n_good = n = n_refused = 0
        for route, body, field, value in numbers():
            status, _, data = s.request("POST", route, body)
            is_json = value not in ("NaN", "-Infinity", "1e999")
            n += 1
            n_refused += status == 400
            is_good = status == (200 if status == 200 and is_json else 400) and (
                status == 200 or not is_json or field.encode() in data)
            n_good += is_good
            if not is_good:
                print(f"{route} {field} {value}: {status} {data[:200]}", file=sys.stderr)
        alive = s.is_running() and s.request("GET", "/health")[0] == 200
    row(f"S9 numeric fields x {len(VALUES)} values, {n_refused} refused by name",
        "all, no crash", f"{n_good} of {n}", n_good == n and alive)


# ---- S10: the sandbox ----

def s10():
    with Server() as s:
        row("S10 the server reports its sandbox", "1", f"{s.metric('sandboxed'):.0f}",
            s.metric("sandboxed") == 1)
    done = subprocess.run([os.path.join(BIN, "test_sandbox")], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    row("S10 open, connect, exec... from inside (test_sandbox)", "all refused",
        f"{done.stdout.count('[       OK ]')} tests", done.returncode == 0)


def s11():
    """The canaries are those of S7's clients."""
    script = os.path.join(ROOT, "dist", "run-msan.sh")
    if not IS_LONG:
        row("S11 reads of memory that nobody wrote (MSan)", "0", "dist/run-msan.sh")
        return
    done = subprocess.run([script], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    last = done.stdout.strip().splitlines()[-1:] or [""]
    row("S11 reads of memory that nobody wrote (MSan)", "0", last[0][:40], done.returncode == 0)


# ---- S12: the binary ----

def s12():
    def run(*argv):
        return subprocess.run(argv, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL).stdout
    segments, dynamic = run("readelf", "-lW", TERN), run("readelf", "-dW", TERN)
    symbols, code = run("readelf", "-sW", TERN), run("objdump", "-d", TERN)
    checks = {
        "PIE": "DYN (" in run("readelf", "-hW", TERN),
        "RELRO": "GNU_RELRO" in segments, "NOW": re.search("BIND_NOW|Flags:.*NOW", dynamic),
        "stack not executable": re.search("GNU_STACK.* RW ", segments),
        "nothing writable and executable": "RWE" not in segments,
        "stack protector": "__stack_chk_fail" in symbols, "FORTIFY": "_chk@" in symbols,
        "landing pads": len(re.findall("endbr64|bti|paciasp", code)) >= 200}
    missing = [name for name, good in checks.items() if not good]
    all_of("S12 hardening of this binary" + ("; missing: " + ", ".join(missing) if missing else ""),
           len(checks) - len(missing), len(checks))
    row("   of every file of a release", "all", "dist/check-release.sh")


def main():
    steps = {"S1": s1, "S2": s2, "S3": s3, "S4": s4, "S5": s5, "S6": s6, "S7": s7, "S8": s8,
             "S9": s9, "S10": s10, "S11": s11, "S12": s12}
    for name in sys.argv[2:] or steps:
        steps[name]()


if __name__ == "__main__":
    main()
