// SPDX-License-Identifier: MIT
//
// Requests to the server, and answers that arrive as events.

// An error response; `status` 0: the server is unreachable.
export class Refusal extends Error {
    constructor(status, message, code) {
        super(message);
        this.status = status;
        this.code = code;
    }
}

const GONE = "The server does not answer.";
const CUT = "The server went away in the middle of the answer.";

// Parses the "data: ..." lines of an event stream, from text in arbitrary pieces.
export class EventReader {
    constructor() {
        this.text = "";
    }

    feed(piece) {
        const blocks = (this.text + piece).split("\n\n");
        this.text = blocks.pop();
        return blocks.flatMap(block => block.split("\n"))
            .filter(line => line.startsWith("data: ")).map(line => line.slice(6));
    }
}

async function refusalOf(response) {
    let message = `The server answers with ${response.status}.`, code;
    try {
        const error = (await response.json()).error;
        message = typeof error === "string" ? error : error.message;
        code = error.code;
    } catch {
        // the body is not an error object
    }
    return new Refusal(response.status, message, code);
}

// Throws a Refusal or an AbortError.
export async function request(where, {key, method = "GET", body, signal} = {}) {
    const headers = key ? {"Authorization": `Bearer ${key}`} : {};
    let response;
    try {
        response = await fetch(where, {method, headers, body, signal, cache: "no-store"});
    } catch (error) {
        throw error.name === "AbortError" ? error : new Refusal(0, GONE);
    }
    if (!response.ok)
        throw await refusalOf(response);
    return response;
}

// Requests an answer and calls onEvent for each event.  Throws like request().
export async function ask(where, body, {key, signal, onEvent}) {
    const response = await request(where, {key, signal, method: "POST",
                                           body: JSON.stringify(body)});
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    for (;;) {
        let piece;
        try {
            piece = await reader.read();
        } catch (error) {
            throw error.name === "AbortError" ? error : new Refusal(0, CUT);
        }
        if (piece.done)
            throw new Refusal(0, CUT);
        for (const data of events.feed(piece.value)) {
            if (data === "[DONE]")
                return;
            const event = JSON.parse(data);
            if (event.error)
                throw new Refusal(500, event.error.message, event.error.code);
            onEvent(event);
        }
    }
}
