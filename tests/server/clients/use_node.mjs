// SPDX-License-Identifier: MIT
// OpenAI's and Ollama's libraries for JavaScript, unmodified. Arguments: folder of node_modules,
// address, chat model, embedding model, addresses of a server with a template for tools and of one
// with a reasoning model.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [folder, url, chatModel, embeddingModel, toolsUrl, thinkingUrl] = process.argv.slice(2);
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

const schema = { type: 'object', additionalProperties: false, required: ['color', 'isGood'],
                 properties: { color: { enum: ['red', 'blue'] }, isGood: { type: 'boolean' } } };
const form = { ...ask, max_tokens: 100, response_format:
  { type: 'json_schema', json_schema: { name: 'plan', strict: true, schema } } };
const plan = await client.chat.completions.parse(form);
assert.equal(typeof plan.choices[0].message.parsed.isGood, 'boolean');

// Schemas by zod: as the library generates them, and as zod writes them.
const z = load('zod');
const { zodResponseFormat } = load('openai/helpers/zod');
const Pet = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('cat'), lives: z.literal([7, 9]) }),
  z.object({ kind: z.literal('dog'), good: z.boolean() })]);
const Home = z.object({ pet: Pet, both: z.intersection(z.object({ a: z.literal(1) }),
                                                       z.object({ b: z.literal(2) })) });
const home = await client.chat.completions.parse(
  { ...ask, max_tokens: 100, response_format: zodResponseFormat(Home, 'home') });
assert.ok(['cat', 'dog'].includes(home.choices[0].message.parsed.pet.kind));
assert.deepEqual(home.choices[0].message.parsed.both, { a: 1, b: 2 });
const House = Home.extend({ lights: z.record(z.enum(['hall', 'roof']), z.boolean()),
                            rooms: z.record(z.string().regex(/^[a-c]$/), z.literal([1, 2])) });
const houseSchema = z.toJSONSchema(House);
assert.ok(JSON.stringify(houseSchema).includes('"oneOf"'));
let house;
for (let seed = 0; seed < 3 && !house; seed++) { // a record may have any number of members
  const { finish_reason: finish, message } = (await client.chat.completions.create({
    ...ask, seed, temperature: 1, max_tokens: 600, response_format:
      { type: 'json_schema', json_schema: { name: 'house', schema: houseSchema } } })).choices[0];
  if (finish === 'stop') house = House.parse(JSON.parse(message.content));
}
assert.deepEqual(Object.keys(house.lights), ['hall', 'roof']);

const caller = new OpenAI({ baseURL: toolsUrl + '/v1', apiKey: 'x', maxRetries: 0 });
const weather = { type: 'function', function: { name: 'weather', strict: true, parameters:
  { type: 'object', additionalProperties: false, required: ['city'],
    properties: { city: { enum: ['Rome', 'Oslo'] } } } } };
const call = { ...ask, max_tokens: 100, tools: [weather], tool_choice: 'required' };
const [called] = (await caller.chat.completions.create(call)).choices[0].message.tool_calls;
assert.match(JSON.parse(called.function.arguments).city, /^(Rome|Oslo)$/);
const runner = caller.chat.completions.stream(call);
let pieces = '';
runner.on('tool_calls.function.arguments.delta', event => { pieces += event.arguments_delta; });
assert.deepEqual((await runner.finalChatCompletion()).choices[0].message.tool_calls[0].function,
                 { ...called.function, parsed_arguments: JSON.parse(called.function.arguments) });
assert.equal(pieces, called.function.arguments);
const cities = [];
await caller.chat.completions.runTools({ ...call,
  tool_choice: { type: 'function', function: { name: 'weather' } },
  tools: [{ type: 'function', function: { ...weather.function, parse: JSON.parse,
                                          function: ({ city }) => { cities.push(city); } } }] })
  .done();
assert.equal(cities.length, 1);
assert.ok(['Rome', 'Oslo'].includes(cities[0]));

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
const formed = await ollama.chat(
  { model: chatModel, messages: ask.messages, format: schema, options: { seed: 1 } });
assert.equal(typeof JSON.parse(formed.message.content).isGood, 'boolean');
const history = await new Ollama({ host: toolsUrl }).chat(
  { model: chatModel, options, tools: [weather], messages: [...ask.messages,
    { role: 'assistant', content: '', tool_calls: [
      { function: { name: 'weather', arguments: { city: 'Rome' } } }] },
    { role: 'tool', tool_name: 'weather', content: 'sunny' }] });
assert.ok(history.message.content);
await assert.rejects(ollama.chat({ model: chatModel, messages: ask.messages, tools: [weather] }),
                     /does not support tools/);
await assert.rejects(ollama.chat({ model: chatModel, messages: ask.messages, think: true }),
                     /does not support thinking/);
const thinker = new Ollama({ host: thinkingUrl });
const [{ model: thinking }] = (await thinker.list()).models;
const greedy = { num_predict: 20, temperature: 0 };
const thought = await thinker.chat(
  { model: thinking, messages: ask.messages, options: greedy, think: true });
assert.ok(thought.message.thinking && thought.message.content);
let seen = '';
for await (const part of await thinker.chat(
  { model: thinking, messages: ask.messages, options: greedy, think: true, stream: true }))
  seen += part.message.thinking ?? '';
assert.equal(seen, thought.message.thinking);
const quiet = await thinker.chat(
  { model: thinking, messages: ask.messages, options: greedy, think: false });
assert.equal(quiet.message.thinking, undefined);
const reasoner = new OpenAI({ baseURL: thinkingUrl + '/v1', apiKey: 'x' });
const [{ message: reasoned }] = (await reasoner.chat.completions.create(
  { model: '', max_tokens: 20, temperature: 0, messages: ask.messages })).choices;
assert.equal(reasoned.reasoning_content, thought.message.thinking);
assert.equal(reasoned.content, thought.message.content);
await assert.rejects(ollama.generate({ model: chatModel, prompt: 'Hi', images: ['iVBORw0KGgo='] }),
                     /does not support images/);
const embedded = await ollama.embed({ model: embeddingModel, input: ['a cat', 'a dog'] });
assert.equal(embedded.embeddings.length, 2);
await assert.rejects(ollama.chat({ model: 'none', messages: ask.messages }), /not found/);
