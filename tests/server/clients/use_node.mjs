// SPDX-License-Identifier: MIT
// OpenAI's and Ollama's libraries for JavaScript, unmodified. Arguments: folder of node_modules,
// address, chat model, embedding model.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, url, chatModel, embeddingModel] = process.argv.slice(2);
const load = createRequire(folder + '/');
const OpenAI = load('openai').default;
const { Ollama } = load('ollama');

const client = new OpenAI({ baseURL: url + '/v1', apiKey: 'x', maxRetries: 0 });
const ask = { model: chatModel, max_tokens: 20, seed: 1,
              messages: [{ role: 'user', content: 'Tell me a story.' }] };

const models = [];
for await (const model of client.models.list()) models.push(model.id);
assert.deepEqual(models.sort(), [chatModel, embeddingModel].sort());

const whole = await client.chat.completions.create(ask);
const text = whole.choices[0].message.content;
assert.ok(text);
let streamed = '', last;
for await (const chunk of await client.chat.completions.create(
  { ...ask, stream: true, stream_options: { include_usage: true } })) {
  streamed += chunk.choices[0]?.delta?.content ?? '';
  last = chunk;
}
assert.equal(streamed, text);
assert.equal(last.usage.total_tokens, whole.usage.total_tokens);
const once = await client.completions.create({ model: chatModel, prompt: 'Once', max_tokens: 5 });
assert.ok(once.choices[0].text);

const coded = await client.embeddings.create({ model: embeddingModel, input: ['a cat', 'a dog'] });
const plain = await client.embeddings.create(
  { model: embeddingModel, input: ['a cat', 'a dog'], encoding_format: 'float' });
coded.data.forEach((entry, i) => {
  assert.equal(entry.embedding.length, plain.data[i].embedding.length);
  assert.ok(entry.embedding.every((x, j) => Math.abs(x - plain.data[i].embedding[j]) < 1e-7));
});
await assert.rejects(client.chat.completions.create({ ...ask, model: 'none' }), OpenAI.NotFoundError);
await assert.rejects(client.chat.completions.create(
  { ...ask, messages: [{ role: 'user', content: 'word '.repeat(3000) }] }),
  error => error.code === 'context_length_exceeded');

const ollama = new Ollama({ host: url });
assert.equal((await ollama.list()).models.length, 2);
assert.equal((await ollama.ps()).models.length, 2);
assert.ok((await ollama.show({ model: chatModel })).details.family);
const options = { num_predict: 20, seed: 1 };
const answer = await ollama.chat({ model: chatModel, messages: ask.messages, options });
assert.equal(answer.eval_count, 20);
let parts = '';
for await (const part of await ollama.chat(
  { model: chatModel, messages: ask.messages, options, stream: true })) parts += part.message.content;
assert.equal(parts, answer.message.content);
assert.ok((await ollama.generate({ model: chatModel, prompt: 'Hi', options })).response);
const embedded = await ollama.embed({ model: embeddingModel, input: ['a cat', 'a dog'] });
assert.equal(embedded.embeddings.length, 2);
await assert.rejects(ollama.chat({ model: 'none', messages: ask.messages }), /not found/);
