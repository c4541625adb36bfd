// SPDX-License-Identifier: MIT
//
// Turns the blocks of markdown.js into elements.
//
// Text of models becomes only text nodes, and link attributes that markdown.js has checked.
import {parse} from "./markdown.js";

// make("p", {class: "x", dir: "auto"}, child, "text", ...)
export function make(tag, attributes = {}, ...inside) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on"))
            element.addEventListener(name.slice(2), value);
        else if (value !== false && value !== undefined)
            element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...inside.filter(child => child !== null && child !== undefined));
    return element;
}

// Clones an icon of index.html.
export function icon(name) {
    return document.getElementById("icons").content.getElementById("icon-" + name).cloneNode(true);
}

export function iconButton(name, label, onclick, attributes = {}) {
    return make("button", {type: "button", class: "icon", title: label, "aria-label": label,
                           onclick, ...attributes}, icon(name));
}

// The Clipboard API exists only in secure contexts (https or localhost).
export async function copyText(text) {
    if (navigator.clipboard) {
        try {
            await navigator.clipboard.writeText(text);
            return true;
        } catch {
            // denied: fall back to the code below
        }
    }
    const area = make("textarea", {class: "hidden-text", "aria-hidden": "true"});
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    return isCopied;
}

export function copyButton(label, text) {
    const button = iconButton("copy", label, async () => {
        const isCopied = await copyText(text());
        button.replaceChildren(icon(isCopied ? "check" : "copy"));
        button.title = isCopied ? "Copied" : "Copying is not allowed here";
        setTimeout(() => {
            button.replaceChildren(icon("copy"));
            button.title = label;
        }, 1500);
    });
    return button;
}

// ---- inline ----

const plainText = nodes => nodes.map(node => typeof node === "string" ? node
    : node.text || plainText(node.inline || [])).join("");

// If a link's text looks like the name of another site, the real host is shown after it.
function link(node) {
    const host = new URL(node.href).host, text = plainText(node.inline);
    const misleads = /[\w-]\.[a-z]/i.test(text) && !text.toLowerCase().includes(host);
    const anchor = make("a", {href: node.href, title: node.href, target: "_blank",
                              rel: "noopener noreferrer nofollow", referrerpolicy: "no-referrer"},
                        ...node.inline.map(inlineElement));
    if (!misleads)
        return anchor;
    return make("span", {}, anchor, make("span", {class: "host"}, ` (${host})`));
}

function inlineElement(node) {
    if (typeof node === "string")
        return document.createTextNode(node);
    if (node.type === "br")
        return make("br");
    if (node.type === "code")
        return make("code", {dir: "ltr"}, node.text);
    if (node.type === "link")
        return link(node);
    return make(node.type, {}, ...node.inline.map(inlineElement));
}

// ---- blocks ----

function code(block) {
    const name = block.lang || "text";
    return make("figure", {class: "code", dir: "ltr"},
                make("figcaption", {}, make("span", {}, name),
                     copyButton("Copy this code", () => block.text)),
                make("pre", {tabindex: "0", "aria-label": `Code, ${name}`},
                     make("code", {}, block.text)));
}

function listItem(blocks) {
    const first = blocks[0];
    const isTight = first && first.type === "p" &&
                    blocks.slice(1).every(block => block.type === "list");
    const inside = isTight ? [...first.inline.map(inlineElement), ...blocks.slice(1).map(element)]
                           : blocks.map(element);
    const task = isTight && typeof first.inline[0] === "string" &&
                 /^\[([ xX])\] /.exec(first.inline[0]);
    if (task) {
        inside[0] = document.createTextNode((task[1] === " " ? "☐ " : "☑ ") +
                                            first.inline[0].slice(4));
        return make("li", {dir: "auto", class: "task"}, ...inside);
    }
    return make("li", {dir: "auto"}, ...inside);
}

function list(block) {
    const start = block.ordered && block.start !== 1 ? {start: block.start} : {};
    return make(block.ordered ? "ol" : "ul", {dir: "auto", ...start}, ...block.items.map(listItem));
}

function table(block) {
    const row = (cells, tag) => make("tr", {}, ...cells.map((cell, i) =>
        make(tag, {dir: "auto", class: block.align[i], scope: tag === "th" ? "col" : undefined},
             ...cell.map(inlineElement))));
    return make("div", {class: "table", tabindex: "0", role: "group", "aria-label": "Table"},
                make("table", {}, make("thead", {}, row(block.head, "th")),
                     make("tbody", {}, ...block.rows.map(cells => row(cells, "td")))));
}

function element(block) {
    switch (block.type) {
    case "h":   // the page has its own top-level heading
        return make("h" + Math.min(block.level + 2, 6), {dir: "auto"},
                    ...block.inline.map(inlineElement));
    case "code":
        return code(block);
    case "quote":
        return make("blockquote", {dir: "auto"}, ...block.blocks.map(element));
    case "list":
        return list(block);
    case "table":
        return table(block);
    case "hr":
        return make("hr");
    default:
        return make("p", {dir: "auto"}, ...block.inline.map(inlineElement));
    }
}

const sources = new WeakMap();   // element -> the text it was rendered from

// Renders the text into `container`.  Blocks that have not changed keep their elements, so a
// selection survives while an answer grows.
export function renderInto(container, text) {
    const blocks = parse(text);
    blocks.forEach((block, i) => {
        const old = container.children[i], source = block.type + block.source;
        if (old && sources.get(old) === source)
            return;
        const fresh = element(block);
        sources.set(fresh, source);
        if (old)
            old.replaceWith(fresh);
        else
            container.append(fresh);
    });
    while (container.children.length > blocks.length)
        container.lastElementChild.remove();
}
