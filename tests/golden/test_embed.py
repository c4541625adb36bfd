#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern embed: vectors of the reference models equal the reference, from folders and GGUF files,
with both kinds of pooling; --search finds similar texts; invalid requests are refused."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import floats, read_bytes, read_json, scratch, shared

FAMILIES = ("tiny-embed-qwen3", "tiny-embed-gemma3")
POOLING = ("mean", "last")


def folder_cases(family):
    """(ids, text or None, number of the golden)"""
    golden = shared("reference", "models", family, "golden")
    ids = read_json(os.path.join(golden, "ids.json"))
    for i, (prompt, text) in enumerate(zip(ids["prompt_ids"], ids["texts"])):
        yield prompt, text, os.path.join(golden, f"embed_{i}_")


def gguf_cases(family):
    golden = shared("reference", "gguf", family, "golden")
    for i, row in enumerate(read_json(os.path.join(golden, "texts.json"))):
        yield row["ids"], row["text"], os.path.join(golden, f"embed_{i}_")


def sources():
    """(path, facts in the file, cases)"""
    for family in FAMILIES:
        yield shared("reference", "models", family), "last", list(folder_cases(family))
        for pooling in POOLING:
            path = shared("reference", "gguf", family, f"i2_s-pool-{pooling}.gguf")
            yield path, pooling, list(gguf_cases(family))


def worst(a, b):
    assert len(a) == len(b)
    return max(abs(x - y) for x, y in zip(a, b))


def cosine(a, b):
    assert len(a) == len(b)
    return sum(x * y for x, y in zip(a, b))


class Goldens(command.TestCase):
    def check_ids(self, model, pooling, ids, expected):
        got = self.ok("embed", model, "--pooling", pooling, "--raw", "--ids",
                      " ".join(map(str, ids)))
        got = floats(got.out)
        self.assertLessEqual(worst(got, expected), 1e-5)
        self.assertGreaterEqual(cosine(got, expected), 0.99999)

    def test_ids(self):
        for path, _, cases in sources():
            model = command.model(path, "--head", "f32")
            for pooling in POOLING:
                for ids, _, golden in cases:
                    with self.subTest(source=path, pooling=pooling, golden=golden):
                        self.check_ids(model, pooling, ids,
                                       floats(read_bytes(f"{golden}{pooling}.f32")))

    def test_default_table(self):
        """The table keeps the source's type: rounding it to q8 would change the vectors."""
        for path, _, cases in sources():
            out = scratch("default.tern")
            note = self.ok("convert", path, "-o", out).err
            self.assertRegex(note, r"the table of \d+ tokens is kept in (bf16|f16|f32), as the "
                                   r"source has it in \w+: [0-9.]+ MB; --head q8 takes")
            tensors = json.loads(self.ok("info", out, "--json", "--tensors").text)["tensors"]
            layout = next(t["layout"] for t in tensors if t["name"] == "embed")
            self.assertIn(f"kept in {layout}, ", note)
            for ids, _, golden in cases:
                for pooling in POOLING:
                    got = floats(self.ok("embed", out, "--pooling", pooling, "--raw", "--ids",
                                         " ".join(map(str, ids))).out)
                    with self.subTest(source=path, pooling=pooling, golden=golden):
                        self.assertGreaterEqual(
                            cosine(got, floats(read_bytes(f"{golden}{pooling}.f32"))), 0.99999)

    def test_texts(self):
        """The tokenizer's special tokens are added to a text."""
        for path, _, cases in sources():
            cases = [case for case in cases if case[1] is not None]
            texts = json.dumps([text for _, text, _ in cases]).encode()
            for pooling in POOLING:
                out = self.ok("embed", command.model(path, "--head", "f32"), "--json", "--pooling",
                              pooling, stdin=texts).text.splitlines()
                self.assertEqual(len(out), len(cases))
                for i, (line, (ids, _, golden)) in enumerate(zip(out, cases)):
                    row = json.loads(line)
                    self.assertEqual((row["index"], row["tokens"]), (i, len(ids)), path)
                    self.assertGreaterEqual(
                        cosine(row["embedding"], floats(read_bytes(f"{golden}{pooling}.f32"))),
                        0.999)

    def test_pooling_of_the_file(self):
        for path, stated, cases in sources():
            model, ids = command.model(path, "--head", "f32"), " ".join(map(str, cases[1][0]))
            result = self.ok("embed", model, "--raw", "--ids", ids)
            self.assertIn(f"{stated} pooling (as the file states)", result.err)
            self.assertNotIn("note:", result.err)
            named = self.ok("embed", model, "--raw", "--ids", ids, "--pooling", stated)
            self.assertEqual(result.out, named.out)
            other = POOLING[stated == "mean"]
            result = self.ok("embed", model, "--raw", "--ids", ids, "--pooling", other)
            self.assertIn(f"states {stated} pooling", result.err)
            self.assertNotEqual(result.out, named.out)


class Vectors(command.TestCase):
    """With the demo, which is not an embedding model."""

    def embed(self, *flags, **keywords):
        return self.ok("embed", command.model(), *flags, **keywords)

    def vectors(self, *flags, **keywords):
        return [json.loads(line) for line in self.embed(*flags, **keywords).text.splitlines()]

    def test_model_that_writes_text(self):
        result = self.embed(stdin=b"A king.\n")
        self.assertIn("not for embeddings", result.err)
        self.assertIn("mean pooling, 256 of 256 dimensions", result.err)
        quiet = self.embed("-q", stdin=b"A king.\n")
        self.assertEqual((quiet.err, quiet.out), ("", result.out))

    def test_lines(self):
        text = "\ufeffA king.\r\nThe sea\nna\u00efve".encode()
        rows = self.vectors(stdin=text)
        self.assertEqual([row["index"] for row in rows], [0, 1, 2])
        for row in rows:
            self.assertAlmostEqual(cosine(row["embedding"], row["embedding"]), 1, places=6)
        with open(scratch("lines.txt"), "wb") as f:
            f.write(text)
        self.assertEqual(self.vectors(scratch("lines.txt")), rows)
        self.assertEqual(self.vectors("--json", stdin='["A king.","The sea","naïve"]'.encode()),
                         rows)
        raw = floats(self.embed("--raw", stdin=text).out)
        self.assertEqual(len(raw), 3 * 256)
        self.assertLessEqual(worst(raw[256:512], rows[1]["embedding"]), 1e-9)
        twice = self.vectors(scratch("lines.txt"), scratch("lines.txt"))
        self.assertEqual([row["index"] for row in twice], list(range(6)))
        self.assertEqual(twice[4]["embedding"], rows[1]["embedding"])

    def test_a_line_does_not_depend_on_others(self):
        long = b"the king " * 150 + b"\nThe sea\n"
        self.assertEqual(self.vectors(stdin=long)[1]["embedding"],
                         self.vectors(stdin=b"The sea\n")[0]["embedding"])

    def test_many_lines(self):
        """Short lines are computed together, long ones alone: the same bytes as one at a time."""
        lines = ["sea", "A king.", "the king " * 150, "x", "y z", "the king and the sea " * 20]
        lines += [f"The fox said {i} words to the hen." for i in range(40)] + ["word " * 120, "end"]
        rows = self.vectors("--json", stdin=json.dumps(lines).encode())
        self.assertEqual([row["index"] for row in rows], list(range(len(lines))))
        for i in (2, 5, 13, 46):
            alone = self.vectors(stdin=lines[i].encode())[0]
            self.assertEqual((rows[i]["embedding"], rows[i]["tokens"]),
                             (alone["embedding"], alone["tokens"]), lines[i])
        self.assertEqual(self.vectors("--threads", "2", "--cpu", "ref",
                                      stdin="\n".join(lines).encode()), rows)

    def test_a_line_is_answered_at_once(self):
        """A program may wait for a line's vector before it writes the next."""
        with subprocess.Popen(command.argv("embed", command.model(), "-q"), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=command.environment()) as process:
            for i in range(3):
                process.stdin.write(b"The sea\n")
                process.stdin.flush()
                self.assertEqual(json.loads(process.stdout.readline())["index"], i)
            process.stdin.close()
            self.assertEqual(process.stdout.read(), b"")
        self.assertEqual(process.returncode, 0)

    def test_vectors_before_a_bad_text(self):
        for stdin, code, words in ((b"a\nb\nc\xff\nd\n", 5, "line 3"),
                                   (b"a\nb\n" + b"the king " * 2000 + b"\nd\n", 3, "line 3"),
                                   (b"a\nb\n" + b"x" * (17 << 20) + b"\nd\n", 5,
                                    "line 3: more than 16777216 bytes")):
            result = command.tern("embed", command.model(), "-q", stdin=stdin)
            self.assertEqual(result.code, code)
            self.assertIn(words, result.err)
            self.assertEqual([json.loads(line)["index"] for line in result.text.splitlines()],
                             [0, 1])

    def test_long_text(self):
        """Pooled in several batches; the same for every number of threads."""
        text = b"the king and the sea " * 60
        one = self.embed("--threads", "1", stdin=text)
        self.assertGreater(json.loads(one.text)["tokens"], 256)
        self.assertEqual(one.out, self.embed("--threads", "2", "--cpu", "ref", stdin=text).out)

    def test_pooling_by_hand(self):
        """The mean of one id is its state; the last of several is that of a longer text."""
        one = self.vectors("--ids", "5")[0]["embedding"]
        for pooling in ("mean", "cls", "last"):
            self.assertEqual(self.vectors("--ids", "5", "--pooling", pooling)[0]["embedding"], one)
        self.assertEqual(self.vectors("--ids", "5 9 4", "--pooling", "cls")[0]["embedding"], one)
        self.assertNotEqual(self.vectors("--ids", "5 9", "--pooling", "last")[0]["embedding"], one)

    def test_dim(self):
        whole = self.vectors(stdin=b"A king.")[0]["embedding"]
        cut = self.vectors("--dim", "16", stdin=b"A king.")[0]["embedding"]
        length = sum(x * x for x in whole[:16]) ** 0.5
        self.assertEqual(len(cut), 16)
        self.assertLessEqual(worst(cut, [x / length for x in whole[:16]]), 1e-6)

    def test_task(self):
        plain = self.vectors("--json", stdin=b'["Instruct: find\\nQuery: sea"]')
        self.assertEqual(self.vectors("--task", "find", stdin=b"sea"), plain)
        self.assertEqual(self.vectors("--task", "", stdin=b"sea"), self.vectors(stdin=b"sea"))

    def test_nothing(self):
        self.assertEqual(self.embed().out, b"")
        self.assertEqual(self.embed("--json", stdin=b"[]").out, b"")

    def test_model_by_flag(self):
        with open(scratch("sea.txt"), "wb") as f:
            f.write(b"sea\n")
        self.assertEqual(self.ok("embed", "-m", command.model(), scratch("sea.txt")).out,
                         self.embed(scratch("sea.txt")).out)
        env = command.environment(TERN_MODEL=command.model())
        self.assertEqual(self.ok("embed", scratch("sea.txt"), env=env).out,
                         self.embed(scratch("sea.txt")).out)

    def refused_here(self, code, *args, **keywords):
        keywords.setdefault("stdin", b"")
        return self.refused(code, "embed", command.model(), *args, "-q", **keywords)

    def test_refused(self):
        self.assertIn("model has 256", self.refused_here(2, "--dim", "257"))
        self.assertIn("--dim", self.refused_here(2, "--dim", "0"))
        self.assertIn("auto, mean", self.refused_here(2, "--pooling", "max"))
        self.assertIn("beyond the vocabulary", self.refused_here(2, "--ids", "4096"))
        self.assertIn("at least one id", self.refused_here(2, "--ids", ""))
        self.assertIn("cannot be combined", self.refused_here(2, "--ids", "1", "--json"))
        self.assertIn("an array of texts", self.refused_here(2, "--json", stdin=b"{}"))
        self.assertIn("element 1", self.refused_here(2, "--json", stdin=b'["a", 1]'))
        self.assertIn("is not JSON", self.refused_here(2, "--json", stdin=b'["a"'))
        self.assertIn("byte 2", self.refused_here(5, stdin=b"ab\xff\n"))
        self.assertIn("none.txt", self.refused_here(5, scratch("none.txt")))
        self.assertIn("needs --search QUERY", self.refused_here(2, "--top", "3"))
        self.assertIn("needs --search QUERY", self.refused_here(2, "--lines"))
        self.assertIn("query is empty", self.refused_here(2, "--search", ""))
        self.assertIn("cannot be combined with --raw", self.refused_here(2, "--search", "x", "--raw"))

    def test_too_long(self):
        error = self.refused_here(3, stdin=b"x\n" + b"the king " * 2000)
        self.assertIn("line 2", error)
        self.assertIn("context is 1024", error)

    def refused(self, code, *args, **keywords):
        """As in the base class, but vectors of earlier texts are printed."""
        result = command.tern(*args, **keywords)
        self.assertEqual(result.code, code, result.err)
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 1, result.err)
        self.assertTrue(lines[0].startswith("tern: error: "), result.err)
        return result.err

    def test_model_without_tokenizer(self):
        bare = command.model(command.DEMO, "--no-tokenizer")
        self.assertIn("no tokenizer", self.refused(5, "embed", bare, stdin=b"x"))
        self.assertEqual(self.ok("embed", bare, "--ids", "1 2").out, self.embed("--ids", "1 2").out)


class Search(command.TestCase):
    TEXT = ("The king had three daughters,\nand one of them was clever.\n\n\n"
            "Bread is made of flour.\n  \nA fox went out\nto catch a hen.\n")

    @classmethod
    def setUpClass(cls):
        cls.path, cls.model = scratch("tales.txt"), command.model()
        with open(cls.path, "w", encoding="utf-8") as f:
            f.write(cls.TEXT)

    def search(self, query, *args, **keywords):
        result = self.ok("embed", self.model, "--search", query, *args, **keywords)
        return result.text.splitlines()

    def found(self, query, *args, **keywords):
        return [json.loads(line) for line in self.search(query, "--json", *args, **keywords)]

    def test_paragraphs(self):
        """The same text ranks first; results are ordered by score; lines are where passages begin.
        """
        rows = self.found("Bread is made of flour.", self.path)
        self.assertEqual(sorted(row["line"] for row in rows), [1, 5, 7])
        self.assertEqual((rows[0]["line"], rows[0]["text"]), (5, "Bread is made of flour."))
        self.assertAlmostEqual(rows[0]["score"], 1, places=5)
        scores = [row["score"] for row in rows]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertIn("A fox went out\nto catch a hen.", [row["text"] for row in rows])

    def test_text(self):
        lines = self.search("A fox went out\nto catch a hen.", self.path, "--top", "1")
        self.assertEqual(lines, [f"1.000  {self.path}:7: A fox went out to catch a hen."])

    def test_lines(self):
        rows = self.found("A fox went out", self.path, "--lines", "--top", "2")
        self.assertEqual(len(rows), 2)
        self.assertEqual((rows[0]["line"], rows[0]["text"]), (7, "A fox went out"))

    def test_several_files_and_stdin(self):
        other = scratch("other.txt")
        with open(other, "w", encoding="utf-8") as f:
            f.write("\r\nBread is made of flour.\r\n")
        rows = self.found("Bread is made of flour.", self.path, other)
        self.assertEqual([row["file"] for row in rows[:2]], [self.path, other])  # a tie: in order
        self.assertEqual(rows[1]["line"], 2)
        rows = self.found("x", stdin=b"one\n\ntwo")
        self.assertEqual(sorted((row["file"], row["line"]) for row in rows), [("-", 1), ("-", 3)])

    def test_long_paragraph(self):
        """Split between sentences; a match is reported at its line."""
        text = "\n".join(f"The king said {i} words to the sea. He was tired." for i in range(60))
        rows = self.found("The king said 1 words", "--top", "500", stdin=text.encode())
        self.assertGreater(len(rows), 2)
        rows.sort(key=lambda row: row["line"])
        self.assertEqual("\n".join(row["text"] for row in rows), text)
        for row in rows:
            self.assertTrue(row["text"].startswith(f"The king said {row['line'] - 1} words"))

    def test_nothing_to_search(self):
        result = self.ok("embed", self.model, "--search", "x", stdin=b" \n\n")
        self.assertEqual(result.out, b"")
        self.assertIn("no text to search in", result.err)

    def test_task(self):
        """Embedding models get a task description, unless --task changes it."""
        model = command.model(shared("reference", "models", "tiny-embed-qwen3"), "--head", "f32")
        def best(*flags):
            result = self.ok("embed", model, "--search", "sea", "--json", *flags, stdin=b"sea")
            return json.loads(result.text)["score"]
        task = "Given a web search query, retrieve relevant passages that answer the query"
        self.assertAlmostEqual(best("--task", ""), 1, places=5)
        self.assertEqual(best(), best("--task", task))
        self.assertLess(best(), 0.9999)


if __name__ == "__main__":
    command.main()
