#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The output of tern probe for users and programs, on recorded machines and on this one."""
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, scratch, tern

ROOTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "roots")
LINUX = NATIVE and sys.platform.startswith("linux")


def root(name):
    return os.path.join(ROOTS, name)


class Probe(command.TestCase):
    def probe(self, *flags, code=0):
        result = tern("probe", command.model(), "--json", *flags)
        self.assertEqual(result.code, code, result.err)
        return json.loads(result.text)

    def test_json_has_the_promised_fields(self):
        found = self.probe("--probe-root", root("nothing"))
        fields = {
            "cpu": ["name", "features", "kernel"],
            "cores": ["physical", "logical", "allowed", "quota", "performance", "efficiency"],
            "memory": ["total", "available", "limit", "limited_by"],
            "plan": ["threads_decode", "threads_prefill", "context", "kv", "default_new_tokens",
                     "cap_new_tokens", "reserve_bytes", "predicted_anonymous_bytes", "reasons"],
        }
        for part, names in fields.items():
            for name in names:
                self.assertIn(name, found[part])
        # Unknown is null, never 0.
        self.assertIsNone(found["cpu"]["name"])
        self.assertIsNone(found["cores"]["quota"])
        for name in fields["memory"]:
            self.assertIsNone(found["memory"][name])
        self.assertEqual(found["plan"]["threads_decode"], 1)
        for reason in found["plan"]["reasons"]:
            for name in ("what", "value", "bound_by"):
                self.assertIn(name, reason)

    def test_a_source_is_planned_without_converting_it(self):
        """From headers alone: the needs of the converted model."""
        for name in ("gguf/tiny-qwen3-moe/q4_k.gguf", "gguf/tiny-qwen35-moe/q8_0.gguf",
                     "gguf/tiny-qwen35-ternary/q2_0.gguf", "models/tiny-maple",
                     "models/tiny-qwen3next"):
            with self.subTest(source=name):
                source = command.shared("reference", "hybrids", *name.split("/"))
                model = command.model(source, "--no-tokenizer")
                found = [json.loads(self.ok("probe", path, "--json", "--kv", "q8").text)["plan"]
                         for path in (source, model)]
                before, after = (plan["memory"] for plan in found)
                self.assertEqual([plan["is_converted"] for plan in found], [False, True])
                self.assertEqual(*(plan["may_stay_on_disk_bytes"] for plan in found))
                for part in ("cache_bytes", "scratch_bytes", "table_bytes"):
                    self.assertEqual(before[part], after[part], part)
                # The file also has a head, for some tables.
                self.assertAlmostEqual(before["weights_bytes"], after["weights_bytes"],
                                       delta=16384)
                self.assertEqual(found[0]["bytes_per_token"], json.loads(
                    self.ok("info", model, "--json").text)["bytes_per_token"])
                self.assertRegex(self.ok("probe", source).text, "not converted yet: tern convert "
                                 "writes [0-9.]+ kB; a token reads")

    def test_a_source_that_does_not_convert(self):
        source = command.shared("reference", "gguf", "ik-quantized", "hf1bit-iq2_bn_r4.gguf")
        self.assertIn("IQ2_BN_R4", self.refused(6, "probe", source))

    def test_memory_is_broken_down(self):
        plan = self.probe("--probe-root", root("raspberry-pi"))["plan"]
        parts = dict(plan["memory"])
        total = parts.pop("total_bytes")
        self.assertEqual(total, sum(parts.values()))
        self.assertEqual(plan["predicted_anonymous_bytes"],
                         total - parts["weights_bytes"] - parts["table_bytes"])
        self.assertEqual(parts["weights_bytes"] + parts["table_bytes"],
                         os.path.getsize(command.model()))
        self.assertGreater(min(parts.values()), 0)
        text = tern("probe", command.model(), "--probe-root", root("raspberry-pi")).text
        for label in ("weights", "table", "cache", "scratch", "sampler", "total"):
            self.assertRegex(text, rf"\n    {label} +[0-9.]+ [KMG]i?B  ")

    def test_threads_and_reasons(self):
        for name, threads, bound_by in (("v2-quota-4-of-8", 4, "quota"),
                                        ("v2-quota-7.65-on-parent", 7, "quota"),
                                        ("v2-quota-half", 1, "quota"),
                                        ("sysfs-smt", 2, "cores"),
                                        ("affinity-2-of-8", 2, "affinity")):
            found = self.probe("--probe-root", root(name))
            self.assertEqual(found["plan"]["threads_decode"], threads, name)
            reason = [r for r in found["plan"]["reasons"] if r["what"] == "threads_decode"][0]
            self.assertEqual((reason["value"], reason["bound_by"]), (threads, bound_by))
            found = self.probe("--probe-root", root(name), "--threads", "3")
            self.assertEqual(found["plan"]["threads_decode"], 3, name)

    def test_quota_is_a_number_of_cpus(self):
        found = self.probe("--probe-root", root("v2-quota-7.65-on-parent"))
        self.assertEqual(found["cores"]["quota"], 7.65)
        self.assertEqual(found["cores"]["allowed"], 96)

    def test_memory_and_its_limits(self):
        found = self.probe("--probe-root", root("v2-memory-max"))["memory"]
        self.assertEqual(found["limit"], 2 << 30)
        self.assertEqual(found["available"], (2048 - 686) << 20)
        self.assertEqual(found["limited_by"], "cgroup")
        found = self.probe("--probe-root", root("v2-memory-max"), "--ram", "600M")["memory"]
        self.assertEqual((found["available"], found["limited_by"]), (600 << 20, "user"))
        found = self.probe("--probe-root", root("rlimit-as"))["memory"]
        self.assertEqual(found["limited_by"], "rlimit_as")

    def test_tier_edges_to_the_kib(self):
        tiers = [(256, 512), (512, 1024), (1024, 2048), (2048, 8192)]
        for i, gib in enumerate((4, 8, 12)):
            for name, tier in (("minus", tiers[i]), ("exact", tiers[i + 1]),
                               ("plus", tiers[i + 1])):
                plan = self.probe("--probe-root", root(f"tier-{gib}-gib-{name}"))["plan"]
                self.assertEqual((plan["default_new_tokens"], plan["cap_new_tokens"]), tier)

    def test_caps(self):
        where = ("--probe-root", root("tier-4-gib-minus"), "-n", "700")
        self.assertEqual(self.probe(*where)["plan"]["max_new_tokens"], 512)
        self.assertEqual(self.probe(*where, "--caps", "off")["plan"]["max_new_tokens"], 700)
        self.assertEqual(self.probe(*where, "--caps", "memory")["plan"]["max_new_tokens"], 700)
        notices = " ".join(self.probe(*where)["plan"]["notices"])
        self.assertIn("700", notices)
        self.assertIn("512", notices)

    def test_models_that_cannot_run_are_refused_with_numbers(self):
        found = self.probe("--probe-root", root("one-cpu"), "--ram", "1M", code=3)
        self.assertIsNone(found["plan"]["context"])
        self.assertIn("would work", found["plan"]["refusal"])
        result = tern("probe", command.model(), "--ram", "1M")
        self.assertEqual(result.code, 3)
        self.assertIn("processor", result.text)
        self.assertEqual(len(result.err.strip().splitlines()), 1)

    def test_contradictions(self):
        for flags, words in ((("--threads", "200", "--eco"), ("--threads 200", "--eco")),
                             (("--record", "a", "--probe-root", "b"), ("a", "b")),
                             (("--cpu", "sse9"), ("sse9",)),
                             (("--threads", "0"), ("0",))):
            result = self.refused(2, "probe", command.model(), *flags)
            for word in words:
                self.assertIn(word, result)
        self.refused(5, "probe", "--probe-root", scratch("no-such-machine"))
        self.refused(5, "probe", scratch("no-such-model.tern"))

    def test_table_for_people(self):
        text = self.ok("probe", command.model(), "--probe-root", root("v2-memory-max")).text
        for words in ("processor", "quota", "<- binds", "threads, decode", "context",
                      "with this much available memory", "600M", "1.5G", "2G"):
            self.assertIn(words, text)
        bound = [line for line in text.splitlines() if "<- binds" in line]
        self.assertEqual(len(bound), 1)
        self.assertIn("cgroup", bound[0])
        text = self.ok("probe", "--probe-root", root("nothing")).text
        self.assertRegex(text, "available:\\n  system +unknown\\n")

    def long_context(self):
        """The demo model with a context of half a million positions: its cache takes up to 2 GiB.
        """
        source = scratch("long")
        if not os.path.exists(source):
            shutil.copytree(command.DEMO, source)
            path = os.path.join(source, "config.json")
            config = command.read_json(path)
            config["max_position_embeddings"] = 524288
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
        return command.model(source)

    def test_the_closing_table_agrees_with_the_plan(self):
        """Whichever limit binds: if it leaves as much as a row says, the row equals the plan."""
        for i, (binds, process, flags) in enumerate((
                ("rlimit_as", {"rlimit_as": 900 << 20, "vm_size": 100 << 20}, ()),
                ("rlimit_data", {"rlimit_data": 900 << 20}, ()),
                ("cgroup", {}, ()),
                ("user", {}, ("--ram", "800M")))):
            with self.subTest(binds=binds):
                folder = scratch(f"bound{i}")
                shutil.copytree(root("v2-memory-max"), folder)
                with open(os.path.join(folder, "process.json"), "w", encoding="utf-8") as f:
                    json.dump(dict({"page_size": 4096}, **process), f)
                arguments = ("probe", self.long_context(), "--probe-root", folder, *flags)
                found = json.loads(self.ok(*arguments, "--json").text)
                self.assertEqual(found["memory"]["limited_by"], binds)
                plan = found["plan"]
                rows = self.ok(*arguments).text.split("the plan would be\n")[1].splitlines()
                rows = {row.split()[0]: " ".join(row.split()[1:]) for row in rows}
                if found["memory"]["available"] == 800 << 20:
                    self.assertTrue(rows["800M"].startswith(
                        f"context {plan['context']}, cache {plan['kv']}, "), (rows, plan))
                contexts = [int(r.split("context ")[1].split(",")[0]) for r in rows.values()]
                self.assertEqual(contexts, sorted(contexts))

    def test_the_closing_table_keeps_the_other_limits(self):
        folder = scratch("two-bounds")
        shutil.copytree(root("v2-memory-max"), folder)
        with open(os.path.join(folder, "process.json"), "w", encoding="utf-8") as f:
            json.dump({"rlimit_as": 1000 << 20, "vm_size": 100 << 20, "page_size": 4096}, f)
        text = self.ok("probe", self.long_context(), "--probe-root", folder, "--ram", "700M").text
        rows = text.split("the plan would be\n")[1].splitlines()
        self.assertNotIn("no more", rows[1])
        for row in rows[2:]:
            self.assertIn("no more than 900 MiB by rlimit_as: context", row)

    def test_damage_is_reported(self):
        text = self.ok("probe", "--probe-root", root("quota-garbage")).text
        self.assertIn("CPU quota", [line for line in text.splitlines() if "unreadable" in line][0])

    @unittest.skipUnless(LINUX, "recordings are made on Linux")
    def test_recording_replays(self):
        folder = scratch("machine")
        self.ok("probe", command.model(), "--record", folder)
        live, again = self.probe(), self.probe("--probe-root", folder)
        self.assertEqual(live["cpu"], again["cpu"])
        for name in ("physical", "logical", "allowed", "quota", "performance", "efficiency"):
            self.assertEqual(live["cores"][name], again["cores"][name])
        for name in ("total", "limit", "limited_by"):
            self.assertEqual(live["memory"][name], again["memory"][name])
        for name in ("threads_decode", "threads_prefill", "kv", "context"):
            self.assertEqual(live["plan"][name], again["plan"][name])
        self.refused(4, "probe", "--record", folder)

    @unittest.skipUnless(LINUX and shutil.which("unshare"), "needs Linux, and unshare")
    def test_without_sys(self):
        """In a container without /sys, or with an empty one, no warning appears."""
        hide = 'mount -t tmpfs none /sys && mkdir -p "$1" && shift && exec "$@"'
        for folder in ("/sys", "/sys/devices/system/cpu/cpu0"):
            done = subprocess.run(
                ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hide, "sh", folder,
                 *command.argv("probe", command.model(), "--json")],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
            if done.returncode > 0 and b"tern:" not in done.stderr:
                self.skipTest("no namespace can be made here: " + done.stderr.decode().strip())
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            found = json.loads(done.stdout)
            self.assertGreaterEqual(found["cores"]["physical"], 1)
            self.assertLessEqual(found["plan"]["threads_decode"], os.cpu_count())


if __name__ == "__main__":
    unittest.main()
