// SPDX-License-Identifier: MIT
//
// Parses Markdown to plain objects; render.js turns them into elements.
//
// The text is untrusted: none of it becomes markup, HTML is shown verbatim, and the time is nearly
// linear in its length.
//
//   block   {type: "p" | "h" | "code" | "quote" | "list" | "table" | "hr", ...}
//   inline  text | {type: "em" | "strong" | "del" | "link", inline, href?} | {type: "code", text}
//           | {type: "br"}
//
// The blocks of parse() also have `source`, their lines: equal sources give equal blocks.

const MAX_BLOCK_DEPTH = 8;   // nesting of lists and quotes; deeper ones are text
const MAX_INLINE_DEPTH = 16;
const MAX_ADDRESS = 2000;    // maximum length of a link
const MAX_COLUMNS = 64;

export function parse(text) {
    return blocksOf(text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n"), 0);
}

// ---- blocks ----

const indentOf = line => line.length - line.trimStart().length;
const isBlank = line => line.trim() === "";

function fenceOf(line) {
    const found = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    if (!found || (found[1][0] === "`" && found[2].includes("`")))
        return null;
    return {mark: found[1][0], n: found[1].length, indent: indentOf(line),
            lang: found[2].trim().split(" ")[0].slice(0, 40)};
}

function isFenceEnd(line, fence) {
    const rest = line.trim();
    return indentOf(line) < 4 && rest.length >= fence.n &&
           rest === fence.mark.repeat(rest.length);
}

function headingOf(line) {
    const found = /^ {0,3}(#{1,6})(?: |$)/.exec(line);
    if (!found)
        return null;
    let text = line.slice(found[0].length).trim(), end = text.length;
    while (end > 0 && text[end - 1] === "#")
        end--;
    if (end === 0 || text[end - 1] === " ")
        text = text.slice(0, end).trimEnd();
    return {level: found[1].length, text};
}

const isRule = line =>
    indentOf(line) < 4 && /^(?:\*{3,}|-{3,}|_{3,})$/.test(line.replace(/ /g, ""));
const isQuote = line => /^ {0,3}>/.test(line);

function itemOf(line) {
    const found = /^( {0,3})(?:([-*+])|(\d{1,9})([.)]))( |$)/.exec(line);
    if (!found || isRule(line))
        return null;
    const marker = found[0].length - (found[5] ? 1 : 0);
    const text = line.slice(marker);
    const spaces = indentOf(text);
    const isEmpty = isBlank(text);
    return {mark: found[2] || found[4], ordered: !found[2], start: Number(found[3] || 0), isEmpty,
            base: found[1].length, indent: marker + (isEmpty || spaces > 4 ? 1 : spaces)};
}

function cellsOf(line) {
    const cells = [""];
    const row = line.trim();
    for (let i = row[0] === "|" ? 1 : 0; i < row.length; i++) {
        if (row[i] === "\\" && row[i + 1] === "|") {
            cells[cells.length - 1] += "|";
            i++;
        } else if (row[i] !== "|") {
            cells[cells.length - 1] += row[i];
        } else if (i < row.length - 1) {
            cells.push("");
        }
    }
    return cells.map(cell => cell.trim()).slice(0, MAX_COLUMNS);
}

function tableHeadAt(lines, i) {
    if (i + 1 >= lines.length || !lines[i].includes("|") || !/^[ |:-]+$/.test(lines[i + 1]) ||
        !lines[i + 1].includes("-"))
        return null;
    const head = cellsOf(lines[i]), rules = cellsOf(lines[i + 1]);
    if (head.length !== rules.length || !rules.every(rule => /^:?-+:?$/.test(rule)))
        return null;
    const align = rules.map(rule => rule.endsWith(":") ? (rule[0] === ":" ? "center" : "end")
                                                        : "start");
    return {head, align};
}

function startsBlock(line) {
    const item = itemOf(line);
    return fenceOf(line) || headingOf(line) || isRule(line) || isQuote(line) ||
           (item && !item.isEmpty && (!item.ordered || item.start === 1));
}

// Each function takes one block at lines[i] and returns [block, next index], or null.

function takeFence(lines, i) {
    const fence = fenceOf(lines[i]);
    if (!fence)
        return null;
    let end = i + 1;
    while (end < lines.length && !isFenceEnd(lines[end], fence))
        end++;
    const text = lines.slice(i + 1, end)
        .map(line => line.slice(Math.min(indentOf(line), fence.indent))).join("\n");
    return [{type: "code", lang: fence.lang, text}, Math.min(end + 1, lines.length)];
}

function takeHeading(lines, i) {
    const heading = headingOf(lines[i]);
    return heading && [{type: "h", level: heading.level, inline: inlineOf(heading.text)}, i + 1];
}

function takeQuote(lines, i, depth) {
    let end = i;
    while (end < lines.length && isQuote(lines[end]))
        end++;
    if (end === i)
        return null;
    const inner = lines.slice(i, end).map(line => line.trimStart().replace(/^> ?/, ""));
    return [{type: "quote", blocks: blocksOf(inner, depth + 1)}, end];
}

// Takes one item: its lines, and the next index.  An item includes lines indented like its text
// (two columns are enough), and lines that follow without an empty line.
function takeItem(lines, i, item, depth) {
    const inner = [lines[i].slice(Math.min(item.indent, lines[i].length))];
    const least = item.base + 2;
    let fence = fenceOf(inner[0]), end = i + 1, hasGap = false;
    for (; end < lines.length; end++) {
        const line = lines[end];
        const isInside = indentOf(line) >= least;
        if (isBlank(line)) {
            if (end + 1 < lines.length && !isBlank(lines[end + 1]) &&
                indentOf(lines[end + 1]) < least)
                break;
            hasGap = true;
            inner.push("");
            continue;
        }
        if (!isInside && (startsBlock(line) || itemOf(line) || isBlank(lines[end - 1]) || fence))
            break;
        const text = line.slice(Math.min(indentOf(line), item.indent));
        fence = fence ? (isFenceEnd(text, fence) ? null : fence) : fenceOf(text);
        inner.push(text);
    }
    while (inner.length > 0 && isBlank(inner[inner.length - 1]))
        inner.pop();
    return [{blocks: blocksOf(inner, depth + 1), hasGap}, end];
}

function takeList(lines, i, depth) {
    const first = itemOf(lines[i]);
    if (!first)
        return null;
    const items = [];
    for (let item = first; item && item.mark === first.mark && item.ordered === first.ordered;) {
        const [taken, end] = takeItem(lines, i, item, depth);
        items.push(taken.blocks);
        i = end;
        while (i < lines.length && isBlank(lines[i]))
            i++;
        item = i < lines.length ? itemOf(lines[i]) : null;
    }
    return [{type: "list", ordered: first.ordered, start: first.start, items}, i];
}

function takeTable(lines, i) {
    const table = tableHeadAt(lines, i);
    if (!table)
        return null;
    const rows = [];
    let end = i + 2;
    for (; end < lines.length && lines[end].includes("|"); end++) {
        const cells = cellsOf(lines[end]).slice(0, table.head.length);
        while (cells.length < table.head.length)
            cells.push("");
        rows.push(cells.map(cell => inlineOf(cell)));
    }
    return [{type: "table", align: table.align, head: table.head.map(cell => inlineOf(cell)), rows},
            end];
}

function takeParagraph(lines, i) {
    let end = i + 1;
    while (end < lines.length && !isBlank(lines[end]) && !startsBlock(lines[end]) &&
           !tableHeadAt(lines, end))
        end++;
    const text = lines.slice(i, end).map(line => line.trimStart()).join("\n").trimEnd();
    return [{type: "p", inline: inlineOf(text)}, end];
}

function blocksOf(lines, depth) {
    const blocks = [];
    for (let i = 0; i < lines.length;) {
        if (isBlank(lines[i])) {
            i++;
            continue;
        }
        const isDeep = depth >= MAX_BLOCK_DEPTH;
        const [block, end] =
            takeFence(lines, i) || takeHeading(lines, i) ||
            (isRule(lines[i]) ? [{type: "hr"}, i + 1] : null) ||
            (isDeep ? null : takeQuote(lines, i, depth) || takeList(lines, i, depth)) ||
            takeTable(lines, i) || takeParagraph(lines, i);
        if (depth === 0)
            block.source = lines.slice(i, end).join("\n");
        blocks.push(block);
        i = end;
    }
    return blocks;
}

// ---- inline ----

const PUNCTUATION = /[\p{P}\p{S}]/u;
const isSpace = c => c === undefined || /\s/.test(c);
const ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "\"", "&#39;": "'",
                  "&nbsp;": "\u00A0"};

// Accepts http and https only; null for anything else, including relative addresses.
export function safeAddress(text) {
    if (text.length > MAX_ADDRESS || !/^https?:\/\//i.test(text))
        return null;
    try {
        const url = new URL(text);
        return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
    } catch {
        return null;
    }
}

// The address at this position in running text, without the punctuation of the sentence.
function bareAddress(text, at) {
    const match = /https?:\/\/[^\s<>"`*|]+/iy;
    match.lastIndex = at;
    const end = at + MAX_ADDRESS;
    const found = match.exec(text.length > end ? text.slice(0, end) : text);
    if (!found || /\w/.test(text[at - 1] || " "))
        return null;
    let address = found[0];
    const n = c => address.split(c).length - 1;
    while (/[.,;:!?'\])}]$/.test(address) && !(address.endsWith(")") && n("(") >= n(")")))
        address = address.slice(0, -1);
    return safeAddress(address) ? address : null;
}

// Parses (address "title") after a link's text; returns [address, next index] or null.
function linkTarget(text, at) {
    let depth = 0, end = at + 1;
    const limit = Math.min(text.length, at + MAX_ADDRESS);
    for (; end < limit && !/\s/.test(text[end]); end++) {
        if (text[end] === "(")
            depth++;
        else if (text[end] === ")" && depth-- === 0)
            return [text.slice(at + 1, end), end + 1];
    }
    const title = /\s+(?:"[^"]{0,500}"|'[^']{0,500}')\s{0,9}\)/y;
    title.lastIndex = end;
    return end < limit && title.test(text) ? [text.slice(at + 1, end), title.lastIndex] : null;
}

// Collects inline nodes.  Open marks are a stack of frames; marks that are never closed become text
// again.
class Inline {
    constructor() {
        this.frames = [{mark: "", text: "", size: 0, nodes: []}];
        this.n_open = {"*": 0, "_": 0, "~": 0, "[": 0};
    }

    get top() {
        return this.frames[this.frames.length - 1];
    }

    add(node) {
        const nodes = this.top.nodes;
        if (typeof node === "string" && typeof nodes[nodes.length - 1] === "string")
            nodes[nodes.length - 1] += node;
        else if (node !== "")
            nodes.push(node);
    }

    open(mark, text, size) {
        if (this.frames.length > MAX_INLINE_DEPTH) {
            this.add(text);
            return;
        }
        this.frames.push({mark, text, size, nodes: []});
        this.n_open[mark]++;
    }

    // Pops the last frame of this kind; frames above it become text in it.
    pop(mark) {
        let i = this.frames.length - 1;
        while (this.frames[i].mark !== mark)
            i--;
        const frame = this.frames[i];
        const above = this.frames.splice(i).slice(1);
        this.n_open[mark]--;
        for (const other of above) {
            this.n_open[other.mark]--;
            frame.nodes.push(other.text, ...other.nodes);
        }
        return frame;
    }

    unwrap(frame) {
        this.add(frame.text);
        frame.nodes.forEach(node => this.add(node));
    }

    // Closes frames with a run of n marks; returns the number of unused marks.
    close(mark, n) {
        while (n > 0 && this.n_open[mark] > 0) {
            const below = this.frames[this.frames.length - 2];
            if (n === 2 && this.top.mark === mark && this.top.size === 1 && this.top.isTwin) {
                this.top.size = 2;   // for ***a** b*
                below.size = 1;
                this.top.text = mark + mark;
                below.text = mark;
            }
            const frame = this.pop(mark);
            const size = Math.min(frame.size, n);
            if (frame.nodes.length === 0) {
                this.add(frame.text + mark.repeat(size));
            } else {
                this.add(mark.repeat(frame.size - size));
                const type = mark === "~" ? "del" : size === 2 ? "strong" : "em";
                this.top.nodes.push({type, inline: frame.nodes});
            }
            n -= size;
        }
        return n;
    }

    // Handles a run of * _ or ~ in text[from, to).
    run(text, from, to) {
        const mark = text[from], before = text[from - 1], after = text[to];
        const spaceBefore = isSpace(before), spaceAfter = isSpace(after);
        const wordBefore = !spaceBefore && !PUNCTUATION.test(before);
        const wordAfter = !spaceAfter && !PUNCTUATION.test(after);
        const left = !spaceAfter && (wordAfter || !wordBefore);
        const right = !spaceBefore && (wordBefore || !wordAfter);
        const opens = mark === "_" ? left && !(right && wordBefore) : left;
        const closes = mark === "_" ? right && !(left && wordAfter) : right;
        let n = to - from;
        if (n > 3 || (mark === "~" && n !== 2)) {
            this.add(text.slice(from, to));
            return;
        }
        if (closes)
            n = this.close(mark, n);
        if (!opens || n === 0) {
            this.add(mark.repeat(n));
            return;
        }
        if (n >= 2)
            this.open(mark, mark + mark, 2);
        if (n !== 2) {
            this.open(mark, mark, 1);
            this.top.isTwin = n === 3 && this.top.mark === mark;
        }
    }

    // Handles "]" at `at`; returns the index after what it ends.
    bracket(text, at) {
        if (this.n_open["["] === 0) {
            this.add("]");
            return at + 1;
        }
        const target = text[at + 1] === "(" ? linkTarget(text, at + 1) : null;
        const frame = this.pop("[");
        const href = target && safeAddress(target[0]);
        if (href) {
            this.top.nodes.push({type: "link", href, inline: withoutLinks(frame.nodes)});
            return target[1];
        }
        this.unwrap(frame);
        this.add("]");
        return at + 1;
    }

    finish() {
        const [bottom, ...open] = this.frames;
        const nodes = bottom.nodes;
        for (const frame of open)
            nodes.push(frame.text, ...frame.nodes);
        return joined(nodes);
    }
}

function joined(nodes) {
    const out = [];
    for (const node of nodes) {
        if (typeof node === "string" && typeof out[out.length - 1] === "string")
            out[out.length - 1] += node;
        else
            out.push(node);
    }
    return out;
}

// Replaces links inside a link by their text.
function withoutLinks(nodes) {
    return joined(nodes.flatMap(node => {
        if (typeof node === "string" || !node.inline)
            return [node];
        const inline = withoutLinks(node.inline);
        return node.type === "link" ? inline : [{...node, inline}];
    }));
}

function runEnd(text, at) {
    let end = at + 1;
    while (text[end] === text[at])
        end++;
    return end;
}

// Parses `code` whose run of backticks is text[at, end); null if nothing closes it.
function codeSpan(text, at, end, unclosed) {
    const n = end - at;
    if (unclosed.has(n))
        return null;
    for (let i = text.indexOf("`", end); i >= 0; i = text.indexOf("`", i)) {
        const to = runEnd(text, i);
        if (to - i === n) {
            let inner = text.slice(end, i).replace(/\n/g, " ");
            if (inner.length > 2 && inner[0] === " " && inner.endsWith(" ") && inner.trim())
                inner = inner.slice(1, -1);
            return [{type: "code", text: inner}, to];
        }
        i = to;
    }
    unclosed.add(n);
    return null;
}

// Parses an address in angle brackets, or "<br>"; anything else in angle brackets is text.
function angle(text, at) {
    const found = /<(?:(https?:\/\/[^\s<>]{1,2000})|br ?\/?)>/iy;
    found.lastIndex = at;
    const match = found.exec(text);
    if (!match)
        return null;
    if (!match[1])
        return [{type: "br"}, found.lastIndex];
    const href = safeAddress(match[1]);
    return href && [{type: "link", href, inline: [match[1]]}, found.lastIndex];
}

function address(text, at) {
    const found = bareAddress(text, at);
    return found && [{type: "link", href: safeAddress(found), inline: [found]}, at + found.length];
}

function entity(text, at) {
    const end = text.slice(at, at + 6).indexOf(";");
    const c = end > 0 && ENTITIES[text.slice(at, at + end + 1)];
    return c ? [c, at + end + 1] : null;
}

// TeX in \(...\) or \[...\], shown verbatim; null if nothing closes it.
function math(text, at, unclosed) {
    const close = {"(": "\\)", "[": "\\]"}[text[at + 1]];
    if (!close || unclosed.has(close))
        return null;
    const end = text.indexOf(close, at + 2);
    if (end < 0) {
        unclosed.add(close);
        return null;
    }
    return [text.slice(at, end + 2), end + 2];
}

function escaped(text, at) {
    if (text[at + 1] === "\n")
        return [{type: "br"}, at + 2];
    return /[!-/:-@[-`{-~]/.test(text[at + 1] || "") ? [text[at + 1], at + 2] : null;
}

export function inlineOf(text) {
    const out = new Inline(), unclosed = new Set();
    const plain = /[^\\`*_~[\]!<&h\n]+|h(?!ttps?:)/iy;
    for (let i = 0; i < text.length;) {
        plain.lastIndex = i;
        const run = plain.exec(text);
        if (run) {
            out.add(run[0]);
            i += run[0].length;
            continue;
        }
        const c = text[i];
        let taken = null;
        if (c === "\\")
            taken = math(text, i, unclosed) || escaped(text, i);
        else if (c === "`")
            taken = codeSpan(text, i, runEnd(text, i), unclosed);
        else if (c === "<")
            taken = angle(text, i);
        else if (c === "&")
            taken = entity(text, i);
        else if (c === "h" || c === "H")
            taken = address(text, i);
        else if (c === "\n")
            taken = [{type: "br"}, i + 1];
        if (taken) {
            out.add(taken[0]);
            i = taken[1];
        } else if (c === "*" || c === "_" || c === "~") {
            const end = runEnd(text, i);
            out.run(text, i, end);
            i = end;
        } else if (c === "[" || (c === "!" && text[i + 1] === "[")) {
            out.open("[", c === "[" ? "[" : "![", 1); // an image becomes a link: nothing is loaded
            i += c === "[" ? 1 : 2;
        } else if (c === "]") {
            i = out.bracket(text, i);
        } else {
            const end = c === "`" ? runEnd(text, i) : i + 1;
            out.add(text.slice(i, end));
            i = end;
        }
    }
    return out.finish();
}
