// SPDX-License-Identifier: MIT
//
// Tests the page's scripts without a browser.
//
//   node page_logic.mjs FOLDER [saved FILE]
//
// FOLDER has the page's scripts and a package.json that declares them as modules.
//
//   saved FILE     writes a conversation without its last line to stdout, for the model of FILE
//                  (page.json)
//   load FILE PAGE.json  reads one and prints it as JSON
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";

const [folder, task, ...paths] = process.argv.slice(2);
const load = name => import(pathToFileURL(join(folder, name)));
const markdown = await load("markdown.js"), tree = await load("tree.js");
const saved = await load("saved.js"), {EventReader} = await load("stream.js");
const words = await load("words.js"), settings = await load("settings.js");
const {canContinue, followsAfterScroll} = await load("view.js");

const SYSTEM = "Answer \"briefly\".\nالعربية";
const TALK = [["user", "Tell me a story.\n\tüñí 😀 \u0000 \u2028 \ud800"],
              ["assistant", "Once.", "hm"],
              ["user", "Go on."], ["assistant", "Twice."]];

function talk(settings = {}) {
    const chat = tree.newChat("model0", settings, SYSTEM);
    for (const [role, content, reasoning] of TALK)
        tree.add(chat, chat.leaf, {role, content, reasoning});
    return chat;
}

if (task === "saved") {
    const [model] = JSON.parse(readFileSync(paths[0], "utf8")).models;
    const chat = talk({temperature: 0.5, top_k: 7, max_tokens: 8, stop: ["x"]});
    process.stdout.write(saved.write(chat, tree.path(chat), model));
    process.exit(0);
}
if (task === "load") {
    const bytes = new Uint8Array(readFileSync(paths[0]));
    const {models} = JSON.parse(readFileSync(paths[1], "utf8"));
    const {body, checksum} = saved.split(bytes);
    console.log(JSON.stringify({...saved.read(bytes, models), checksum, n: body.length}));
    process.exit(0);
}

let nFailed = 0;
async function test(name, run) {
    try {
        await run();
    } catch (error) {
        nFailed++;
        console.log(`${name}: ${error.stack}`);
    }
}

// ---- Markdown ----

// As HTML for readability; the page never does this.
function inline(nodes) {
    return nodes.map(node => typeof node === "string" ? node.replace(/</g, "&lt;")
        : node.type === "br" ? "|" : node.type === "code" ? `\`${node.text}\``
        : node.type === "link" ? `{${inline(node.inline)}>${node.href}}`
        : `<${node.type}>${inline(node.inline)}</${node.type}>`).join("");
}

function block(b) {
    switch (b.type) {
    case "p": return `p(${inline(b.inline)})`;
    case "h": return `h${b.level}(${inline(b.inline)})`;
    case "code": return `code[${b.lang}](${b.text})`;
    case "quote": return `quote(${b.blocks.map(block).join()})`;
    case "list": return `${b.ordered ? "ol" + b.start : "ul"}(${b.items.map(
        item => item.map(block).join("+")).join()})`;
    case "table": return `table(${[b.head, ...b.rows].map(
        row => row.map(inline).join(":")).join(";")})`;
    default: return b.type;
    }
}

const html = text => markdown.parse(text).map(block).join(" ");

const CASES = [
    ["a\nb", "p(a|b)"],
    ["# T #\n## `x` y", "h1(T) h2(`x` y)"],
    ["#no\n####### no", "p(#no|####### no)"],
    ["**b** *i* ***bi*** ~~d~~ _u_ __s__", "p(<strong>b</strong> <em>i</em> <strong><em>bi</em>" +
        "</strong> <del>d</del> <em>u</em> <strong>s</strong>)"],
    ["***a** b* **c *d***", "p(<em><strong>a</strong> b</em> <strong>c <em>d</em></strong>)"],
    ["snake_case_name 2*3*4 2 * 3", "p(snake_case_name 2<em>3</em>4 2 * 3)"],
    ["**open *text", "p(**open *text)"],
    ["`a*b*` ``c`d`` `e", "p(`a*b*` `c`d` `e)"],
    ["\\*a\\* &lt;b&gt; c\\\nd", "p(*a* &lt;b> c|d)"],
    ["\\(a_{1} \\, *b* \\{c\\}\\) \\[x\\] \\(open \\*",
     "p(\\(a_{1} \\, *b* \\{c\\}\\) \\[x\\] (open *)"],
    ["```js\nlet a;\n\n  b\n```\nx", "code[js](let a;\n\n  b) p(x)"],
    ["~~~~\n```\n~~~\n~~~~", "code[](```\n~~~)"],
    ["```\nnever closed", "code[](never closed)"],
    ["- a\n- b\n  - c\n    more\n\n- d", "ul(p(a),p(b)+ul(p(c|more)),p(d))"],
    ["3. a\n4. b\n   - c", "ol3(p(a),p(b)+ul(p(c)))"],
    ["1. a\n   ```\n   x\n   - y\n   ```\n2. b", "ol1(p(a)+code[](x\n- y),p(b))"],
    ["text\n- a\n* b", "p(text) ul(p(a)) ul(p(b))"],
    ["2024. A year\nwas 1986. so", "ol2024(p(A year|was 1986. so))"],
    ["> a\n> > b\n> - c", "quote(p(a),quote(p(b)),ul(p(c)))"],
    ["| a | b\\|c |\n|---|:-:|\n| 1 | `x` | 3 |\n| 2 |", "table(a:b|c;1:`x`;2:)"],
    ["a | b\nno rule", "p(a | b|no rule)"],
    ["---\n* * *\n- - -", "hr hr hr"],
    ["[x](https://example.com/a_b_c) [y](http://example.com \"t\")",
     "p({x>https://example.com/a_b_c} {y>http://example.com/})"],
    ["see https://example.com/a(b). or (https://example.com)!",
     "p(see {https://example.com/a(b)>https://example.com/a(b)}. or " +
     "({https://example.com>https://example.com/})!)"],
    ["![cat](https://example.com/c.png)", "p({cat>https://example.com/c.png})"],
    ["[[a](http://example.com/1)](http://example.com/2)", "p({a>http://example.com/2})"],
    ["a<br>b<br/>", "p(a|b|)"],
    ["", ""], ["\n \n", ""],
];

await test("Markdown", () => {
    for (const [text, expected] of CASES)
        assert.equal(html(text), expected, JSON.stringify(text));
});

const HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>",
    "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](data:text/html,<b>)",
    "[x](\tjavascript:alert(1))", "[x](vbscript:x)", "[x](//example.com)", "[x](/page.json)",
    "[x](file:///etc/passwd)", "[x](https://)", "<javascript:alert(1)>",
    "[x](blob:https://example.com/b)",
    "![x](x \"onerror=alert(1)\")", "<a href=\"javascript:alert(1)\">x</a>", "</article></main>",
    "[x](&#106;avascript:alert(1))", "<iframe src=https://example.com></iframe>",
];

function links(nodes) {
    return nodes.flatMap(node => typeof node === "string" ? []
        : [...(node.href ? [node.href] : []), ...links(node.inline || [])]);
}

await test("hostile text stays text", () => {
    for (const text of HOSTILE)
        for (const href of links(markdown.inlineOf(text)))
            assert.match(href, /^https?:\/\/[^/"<> ]+\//, text);
    const all = markdown.parse(HOSTILE.join("\n\n"));
    assert.deepEqual([...new Set(all.map(b => b.type))], ["p"]);
    assert.equal(inline(all[0].inline), "&lt;script>alert(1)&lt;/script>");
    assert.deepEqual(links(markdown.inlineOf("<iframe src=https://example.com/x></iframe>")),
                     ["https://example.com/x"]);
});

// Twice the text must take about twice the time: bounded by nesting and by the size of the output,
// not by a clock.
await test("long and deep text", () => {
    const pieces = ["*a ", "**a _b ", "[", "[a](", "![", "`", "<", "> ", "- ", "*", "_a*", "~~a",
                    "(", "[a](http://", "|a", "  ", "a\n", "&", "\\", "***a** ", "1. a\n", "- a\n\n",
                    "https://example.com/)", "` `` ", "# ", "\\(", "\\[a\\)"];
    const depth = (node, n = 0) => Math.max(n, ...["inline", "blocks", "items", "head", "rows"]
        .flatMap(key => node[key] || []).flat(2).filter(x => typeof x === "object")
        .map(x => depth(x, n + 1)));
    for (const piece of pieces) {
        const blocks = markdown.parse(piece.repeat(50000 / piece.length));
        assert.ok(Math.max(0, ...blocks.map(b => depth(b))) < 40, piece);
    }
    assert.ok(depth(markdown.parse("> ".repeat(500) + "a")[0]) < 12);
});

// ---- conversations ----

await test("branches", () => {
    const chat = talk(), [question, , second] = tree.path(chat);
    const other = tree.add(chat, second.id, {role: "assistant", content: "Thrice."});
    assert.deepEqual(tree.path(chat).map(n => n.content).slice(1), ["Once.", "Go on.", "Thrice."]);
    assert.equal(tree.children(chat, second.id).length, 2);
    for (const [parent, siblings] of tree.families(chat))
        assert.deepEqual(siblings, tree.children(chat, parent));
    const edited = tree.add(chat, "", {role: "user", content: "A poem."});
    assert.deepEqual(tree.path(chat), [edited]);
    tree.show(chat, question);
    assert.equal(chat.leaf, other.id);
    tree.show(chat, edited);
    assert.equal(chat.leaf, edited.id);
    assert.equal(tree.titleOf(chat), "Tell me a story. üñí 😀 \u0000 \ud800");
    chat.nodes[question.id].parent = chat.leaf = question.id;   // damaged: a cycle
    assert.equal(tree.path(chat).length, 1);
});

await test("two tabs lose nothing", () => {
    const one = talk(), two = structuredClone(one);
    one.changed = 1;
    const mine = tree.add(one, one.leaf, {role: "user", content: "mine"});
    const yours = tree.add(two, two.leaf, {role: "user", content: "yours"});
    two.changed = one.changed + 5;
    for (const both of [tree.merge(one, two), tree.merge(two, one)]) {
        assert.ok(both.nodes[mine.id] && both.nodes[yours.id]);
        assert.equal(both.leaf, yours.id);
        assert.equal(Object.keys(both.nodes).length, 6);
    }
    const grown = structuredClone(one);
    grown.nodes[mine.id].content = "mine, and more";
    tree.touch(grown, grown.nodes[mine.id]);
    grown.changed = 0;
    assert.equal(tree.merge(grown, two).nodes[mine.id].content, "mine, and more");
    assert.equal(tree.merge(one, grown).nodes[mine.id].content, "mine, and more");
});

await test("what the model is sent", () => {
    const chat = talk(), nodes = tree.path(chat);
    const sent = tree.messagesFor(chat, nodes[2]);
    assert.deepEqual(sent.map(m => m.role), ["system", "user", "assistant", "user"]);
    assert.deepEqual([sent[0].content, sent[2].reasoning_content], [SYSTEM, "hm"]);
    chat.forgotten = 2;
    assert.deepEqual(tree.messagesFor(chat, nodes[2]).map(m => m.content), [SYSTEM, "Go on."]);
    chat.forgotten = 9;   // from another branch
    assert.deepEqual(tree.messagesFor(chat, nodes[2]).map(m => m.content), [SYSTEM, "Go on."]);
    // A continued answer keeps its question, and its reasoning if it has no text yet.
    assert.deepEqual(tree.messagesFor(chat, nodes[3]).map(m => m.content),
                     [SYSTEM, "Go on.", nodes[3].content]);
    const begun = tree.add(chat, nodes[2].id, {role: "assistant", reasoning: "hm"});
    assert.deepEqual(tree.messagesFor(chat, begun).at(-1),
                     {role: "assistant", content: "", reasoning_content: "hm"});
});

await test("answers that can be continued", () => {
    const can = fields => canContinue({role: "assistant", content: "Once", ...fields});
    for (const stop of ["length", "context", "stopped", "left"])
        assert.ok(can({stop}), stop);
    assert.ok(can({stop: "error", error: "gone", action: "again"}));
    assert.ok(can({stop: "length", content: "", reasoning: "hm"}));
    for (const fields of [{stop: "stop"}, {}, {stop: "edited"}, {stop: "length", content: ""},
                          {stop: "error", error: "too long", action: "edit"},
                          {stop: "length", role: "user"}])
        assert.ok(!can(fields), JSON.stringify(fields));
});

await test("a full context", () => {
    const chat = tree.newChat("m");
    for (let i = 0; i < 20; i++)
        tree.add(chat, chat.leaf, {role: i % 2 ? "assistant" : "user", content: "x".repeat(100)});
    const question = tree.add(chat, chat.leaf, {role: "user", content: "x".repeat(100)});
    const n = tree.forgetMore(chat, question, 1000, 500);
    assert.ok(n >= 12 && n <= 16 && n % 2 === 0, String(n));
    chat.forgotten = n;
    const more = tree.forgetMore(chat, question, 501, 500);
    assert.ok(more >= n + 2 && more <= 20, String(more));
    chat.forgotten = 20;
    assert.equal(tree.forgetMore(chat, question, 600, 500), null);
});

await test("interrupted answers", () => {
    const chat = talk();
    const [, first, , last] = tree.path(chat);
    first.stop = "stop";
    tree.markInterrupted(chat);
    assert.deepEqual([first.stop, last.stop, last.rev], ["stop", "left", 1]);
    assert.ok(!Object.values(chat.nodes).some(node => node.role === "user" && node.stop));
    const writing = structuredClone(chat);   // another tab continues the answer
    delete writing.nodes[last.id].stop;
    tree.touch(writing, writing.nodes[last.id]);
    assert.equal(tree.merge(chat, writing).nodes[last.id].stop, undefined);
});

await test("greetings", () => {
    const say = (model, isConnected = true) => words.greeting(model, isConnected);
    assert.match(say(undefined, false).text, /Waiting/);
    const demo = say({id: "demo", has_chat: true});
    assert.deepEqual([say().command, demo.command], ["tern pull", "tern pull"]);
    assert.equal(say({id: "b", has_chat: true}).command, undefined);
    assert.match(demo.text, /fairy tales/);
    assert.match(say({id: "b", has_chat: false}).text, /continues/);
});

await test("errors and what helps", () => {
    const long = {status: 400, code: "context_length_exceeded",
                  message: "This model's maximum context length is 1024 tokens. However, your " +
                           "messages resulted in at least 1300 tokens. Please reduce the length"};
    assert.deepEqual(words.overlong(long), [1024, 1300]);
    assert.equal(words.overlong({status: 400, message: long.message}), null);
    const why = words.explain(long, false, false);
    assert.equal(why.action, "edit");
    assert.match(why.text, /^Your message is too long: 1300 tokens, .* at most 1024\. Shorten it/);
    assert.match(words.explain(long, true, false).text, /system text/);
    for (const [status, action] of [[0, "again"], [400, "settings"], [401, "key"], [404, "again"],
                                    [413, "edit"], [500, "again"], [503, "again"]])
        assert.equal(words.explain({status, message: "m"}, false, false).action, action);
    assert.match(words.explain({status: 0, message: "Gone."}, false, true).text, /so far is kept/);
});

await test("numbers of settings", () => {
    const {readNumber} = settings, temperature = {min: 0, max: 2, step: 0.05};
    const count = {min: 1, max: 1000000, step: 1};
    assert.deepEqual(readNumber(temperature, " "), {});
    assert.deepEqual(readNumber(temperature, "0.7"), {value: 0.7});
    assert.deepEqual(readNumber(temperature, "9"), {problem: "must be from 0 to 2"});
    assert.match(readNumber(temperature, "warm").problem, /number/);
    assert.match(readNumber(count, "1.5").problem, /whole/);
    assert.deepEqual(readNumber(count, "0"), {problem: "must be from 1 to 1000000"});
});

// ---- numbers and scrolling ----

await test("numbers in words", () => {
    assert.equal(words.figures(1, 0), "1 token");
    assert.equal(words.figures(20, undefined), "20 tokens");
    assert.equal(words.figures(20, 1), "20 tokens");   // a burst: not 19000.0 per second
    assert.equal(words.figures(21, 4000), "21 tokens, 5.0 per second");
    assert.deepEqual(words.contextUse(1025, 1024),
                     {used: 1024, share: 1, text: "1024 of 1024 tokens"});
    assert.equal(words.contextUse(256, 1024).share, 0.25);
});

await test("progress of a prompt", () => {
    const say = (total, cache, processed) => words.readingProgress({total, cache, processed});
    assert.equal(say(3000, 0, 768), "Reading your message: 25 %");
    // Cached tokens take no time.
    assert.equal(say(3000, 1000, 1000), "Reading your message: 0 %");
    assert.equal(say(3000, 1000, 2999), "Reading your message: 99 %");
    assert.deepEqual([say(40, 0, 20), say(3000, 2990, 2995)], ["", ""]);
});

await test("the view follows the end", () => {
    const at = (scrollTop, scrollHeight) => ({scrollTop, scrollHeight, clientHeight: 500});
    assert.ok(followsAfterScroll(true, at(500, 1600), 500), "the answer grows");
    assert.ok(followsAfterScroll(true, at(500, 9000), 500), "an estimate was much too small");
    assert.ok(!followsAfterScroll(true, at(470, 1000), 500), "the reader scrolls up a little");
    assert.ok(!followsAfterScroll(false, at(600, 1600), 500), "down, far from the end");
    assert.ok(followsAfterScroll(false, at(1050, 1600), 1000), "down to the end");
    assert.ok(followsAfterScroll(true, at(300, 800), 500), "the content has become shorter");
});

// ---- streams and files ----

await test("events in any pieces", () => {
    const text = ": waiting\n\ndata: {\"a\":\"ü\\n\"}\n\ndata: [DONE]\n\n";
    for (let n = 1; n < text.length; n++) {
        const reader = new EventReader(), events = [];
        for (let i = 0; i < text.length; i += n)
            events.push(...reader.feed(text.slice(i, i + n)));
        assert.deepEqual(events, ["{\"a\":\"ü\\n\"}", "[DONE]"], String(n));
    }
});

await test("saved conversations", () => {
    const models = [{id: "model0", name: "m \"1\"", hash: "00112233445566aa"}];
    const chat = talk({seed: 3, temperature: 0});
    chat.kept = {stats: "off"};
    const text = saved.write(chat, tree.path(chat), models[0]) + saved.lastLine("0".repeat(16));
    const bytes = new TextEncoder().encode(text);
    const {body, checksum} = saved.split(bytes);
    assert.equal(body.length, bytes.length - 32);
    assert.equal(checksum, "0".repeat(16));
    const back = saved.read(bytes, models);
    assert.deepEqual([back.model, back.system, back.settings, back.kept, back.forgotten],
                     ["model0", SYSTEM, {seed: 3, temperature: 0}, {stats: "off"}, 0]);
    assert.equal(back.messages[0].content, TALK[0][1].replace("\ud800", "\ufffd"));
    assert.deepEqual(back.messages.map(m => m.role), TALK.map(m => m[0]));
    const odd = new TextEncoder().encode(text.replace("\"role\":\"user\"",
        "\"id\":\"__proto__\",\"parent\":\"x\",\"rev\":9,\"error\":\"e\",\"role\":\"user\""));
    assert.deepEqual(Object.keys(saved.read(odd, models).messages[0]), ["role", "content"]);
    const refused = (change, words, known = models) => assert.throws(
        () => saved.read(new TextEncoder().encode(change(text)), known), new RegExp(words));
    refused(t => t, "m \"1\" \\(00112233445566aa\\); here is n",
            [{id: "n", name: "n", hash: "f".repeat(16)}]);
    refused(t => t.replace("\"version\": 1", "\"version\": 2"), "another version");
    refused(t => t.replace("\"role\":\"user\"", "\"role\":5"), "role");
    refused(t => t.replace("\"forgotten\": 0", "\"forgotten\": 5"), "not a saved");
    refused(t => t.slice(0, 200), "not a saved");
    for (const damaged of ["", "{}", text.slice(0, -1), text + " ", text.slice(0, 40),
                           text.replace(/"checksum.*/, "")])
        assert.throws(() => saved.split(new TextEncoder().encode(damaged)), /file is/);
    assert.equal(saved.fileName("../../Ä b?\u202e"), "Ä-b.json");
    assert.equal(saved.fileName("///"), "conversation.json");
});

process.exit(nFailed ? 1 : 0);
