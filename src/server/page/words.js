// SPDX-License-Identifier: MIT
//
// Numbers as the page shows them.  Nothing here knows of elements.

const MIN_TIMED_MS = 300;   // a burst of tokens that arrives faster does not measure the speed

// ", 12.3 per second" for `n` tokens, `ms` milliseconds after the first of which the last arrived;
// "" where that is too little to measure.
export function speed(n, ms) {
    return n > 1 && ms >= MIN_TIMED_MS ? `, ${((n - 1) * 1000 / ms).toFixed(1)} per second` : "";
}

// "12 tokens, 3.4 per second".
export function figures(n, ms) {
    return `${n} ${n === 1 ? "token" : "tokens"}${speed(n, ms)}`;
}

// {used, share, text}: tokens of a context of `size`.  The last token of an answer is counted but
// never stored, so a full context reports one more than its size.
export function contextUse(nTokens, size) {
    const used = Math.min(nTokens, size);
    return {used, share: used / size, text: `${used} of ${size} tokens`};
}
