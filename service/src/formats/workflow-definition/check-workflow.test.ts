import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import { checkWorkflow } from "./check-workflow.ts";

interface Step extends Record<string, unknown> {
  id: string;
  needs?: string[];
}
interface Definition extends Record<string, unknown> {
  steps: Step[];
}

/** The example of the guide. */
const example = (): Definition => ({
  format: "workflow/1",
  input: {
    type: "object",
    required: ["topic"],
    properties: { topic: { type: "string", maxLength: 500 }, tone: { type: "string", default: "kind" } },
  },
  steps: [
    {
      id: "outline",
      type: "prompt",
      provider: "openai",
      model: "gpt-5-mini",
      messages: [{ role: "user", content: "Outline {{topic}}" }],
      vars: { topic: "input.topic" },
      output: {
        type: "object",
        properties: { parts: { type: "array", items: { type: "string" } } },
      },
    },
    {
      id: "drafts",
      type: "map",
      needs: ["outline"],
      items: "steps.outline.output.parts",
      maxConcurrency: 4,
      do: {
        type: "prompt",
        provider: "anthropic",
        messages: [{ role: "user", content: "Write {{p}}" }],
        vars: { p: "item" },
      },
    },
    {
      id: "ok",
      type: "approval",
      needs: ["drafts"],
      when: "size(steps.drafts.output) > 3",
      timeoutSeconds: 86_400,
    },
    { id: "join", type: "transform", needs: ["drafts", "ok"], value: "steps.drafts.output" },
  ],
  result: "steps.join.output",
});

/** `field: reason` of each problem. */
async function problemsOf(content: string | object): Promise<string[]> {
  const checked = await checkWorkflow(typeof content === "string" ? content : JSON.stringify(content));
  return "workflow" in checked ? [] : checked.problems.map(({ field, reason }) => `${field}: ${reason}`);
}

/** The example with some fields replaced, by path. */
function changed(changes: Record<string, unknown>): Definition {
  const definition = example();
  for (const [path, value] of Object.entries(changes)) {
    const keys = path.split(".");
    const last = keys.pop()!;
    const parent = keys.reduce<Record<string, unknown>>(
      (at, key) => at[key] as Record<string, unknown>,
      definition,
    );
    if (value === undefined) delete parent[last];
    else parent[last] = value;
  }
  return definition;
}

const withValue = (value: string) => changed({ "steps.3.value": value });
const withInput = (input: Record<string, unknown>) =>
  changed({ input: { ...(example()["input"] as object), ...input } });

test("checkWorkflow, valid definition: returns it with defaults", async () => {
  const checked = await checkWorkflow(JSON.stringify(example()));
  assert.ok("workflow" in checked, JSON.stringify(checked));
  assert.partialDeepStrictEqual(checked.workflow, example());
  const [outline, drafts] = checked.workflow.steps;
  assert.deepEqual(outline!.needs, []);
  assert.equal(drafts!.onError, "fail");
});

test("checkWorkflow, every type of step with every field: valid", async () => {
  const common = {
    when: "input.topic != ''",
    retry: { max: 2, backoffSeconds: 0.5 },
    timeoutSeconds: 60,
    onError: "continue",
    output: { type: "string" },
  };
  const id = "prod_01kf5v8q3xe8hb1d6c1m2k3n4p";
  const product = { type: "product", productId: id, version: "1.2.0", variables: { topic: "input.topic" } };
  const messages = [
    { role: "system", content: "Be {{tone=kind}}." },
    { role: "user", content: "{{topic}}" },
  ];
  const prompt = {
    ...{ type: "prompt", provider: "sandbox", model: "sandbox-echo", messages },
    ...{ vars: { topic: "input.topic" }, options: { temperature: 0, maxTokens: 100 } },
  };
  const embedding = {
    ...{ type: "embedding", provider: "mistral", model: "mistral-embed" },
    ...{ text: "input.topic", compareTo: "[input.topic]" },
  };
  const steps = [
    { id: "a", ...prompt, ...common },
    { id: "b", needs: ["a"], ...product, ...common },
    { id: "c", type: "delay", seconds: 604_800, ...common },
    { id: "d", type: "approval", ...common, timeoutSeconds: 604_800, prompt: "Shall it be sent?" },
    { id: "e", type: "transform", value: "1", ...common },
    { id: "g", ...embedding, ...common },
    ...[prompt, embedding, product, { type: "transform", value: "item + string(index)" }].map(
      (task, index) => ({
        ...{ id: `f${index}`, type: "map", items: "[1, 2]", do: { ...task, ...common, when: "index > 0" } },
        ...{ maxConcurrency: 1, ...common },
      }),
    ),
  ];
  assert.deepEqual(await problemsOf(changed({ steps, result: "steps.e.output" })), []);
});

const valid: [says: string, definition: Definition][] = [
  ["another step's output by brackets", withValue('steps["drafts"]["output"][0]')],
  ["an indirect ancestor", withValue("steps.outline.output.parts")],
  ["names bound by macros", withValue("steps.drafts.output.filter(d, d != '').map(item, item + 'x')")],
  ["a macro inside a macro", withValue("steps.drafts.output.map(d, [d].all(e, e == input.topic))")],
  ["a macro variable that shadows input", withValue("[1].map(input, input + 1)")],
  ["text functions", withValue("steps.drafts.output.join('\\n').trim().split(' ')")],
  ["types", withValue("type(input.topic) == string && type([]) == list")],
  ["maps and has()", withValue("has(input.tone) ? {'a': input.tone} : {'b': null}")],
  ["any step in the result", changed({ result: "steps.outline.output" })],
  ["any input without named properties", changed({ input: { type: "object" }, result: "input.anything" })],
  [
    "other inputs that are allowed",
    changed({ ...withInput({ additionalProperties: true }), result: "input.x" }),
  ],
  ["unused variables", changed({ "steps.0.vars.more": "1" })],
  ["a default instead of a variable", changed({ "steps.0.messages.0.content": "{{topic}} {{x=1}}" })],
  [
    "local references",
    withInput({ properties: { topic: { $ref: "#/$defs/t" }, tone: true }, $defs: { t: { type: "string" } } }),
  ],
];
for (const [says, definition] of valid) {
  test(`valid: ${says}`, async () => assert.deepEqual(await problemsOf(definition), []));
}

const invalid: [says: string, definition: unknown, ...problems: string[]][] = [
  ["not an object", [], "content: must be an object"],
  ["another format", changed({ format: "workflow/2" }), "content.format: must be workflow/1"],
  ["no result", changed({ result: undefined }), "content.result: is required"],
  ["no steps", changed({ steps: [], result: "1" }), "content.steps: must have at least 1 item"],
  ["an unknown field", changed({ "steps.1.need": [] }), "content.steps[1].need: is not known here"],
  [
    "a field of another type of step",
    changed({ "steps.3.items": "[1]" }),
    "content.steps[3].items: is not known here",
  ],
  [
    "an unknown type",
    changed({ "steps.3.type": "http" }),
    "content.steps[3].type: must be one of prompt, embedding, transform, map, approval, delay, product",
  ],
  [
    "a map in a map",
    changed({ "steps.1.do": { type: "map", items: "[1]", do: { type: "transform", value: "1" } } }),
    "content.steps[1].do.type: must be one of prompt, embedding, transform, product",
  ],
  [
    "an embedding of a provider without embeddings, and of a step that it does not need",
    changed({
      "steps.3": {
        ...{ id: "join", type: "embedding", provider: "anthropic" },
        ...{ text: "steps.ok.output", compareTo: "input.no" },
      },
    }),
    "content.steps[3].provider: must be one of openai, mistral, openrouter, ollama, openai-compatible, sandbox",
    "content.steps[3].text: ",
    "content.steps[3].compareTo: ",
  ],
  ["a provider that is not known", changed({ "steps.0.provider": "skynet" }), "content.steps[0].provider: "],
  [
    "an approval without a timeout",
    changed({ "steps.2.timeoutSeconds": undefined }),
    "content.steps[2].timeoutSeconds: is required",
  ],
  [
    "a delay that is too long",
    changed({ "steps.2.timeoutSeconds": 604_801 }),
    "content.steps[2].timeoutSeconds: must be at most 604800",
  ],
  [
    "too many retries",
    changed({ "steps.0.retry": { max: 11 } }),
    "content.steps[0].retry.max: must be at most 10",
  ],
  ["a great number", changed({ "steps.1.maxConcurrency": 1_000 }), "content.steps[1].maxConcurrency: "],
  [
    "an invalid product id",
    changed({ "steps.3": { id: "join", type: "product", productId: "x" } }),
    "content.steps[3].productId: must be the id of a product",
  ],
  [
    "an invalid version",
    changed({
      "steps.3": {
        id: "join",
        type: "product",
        productId: "prod_01kf5v8q3xe8hb1d6c1m2k3n4p",
        version: "1.x",
      },
    }),
    "content.steps[3].version: must be a semantic version such as 1.0.0",
  ],
  [
    "an id with a hyphen",
    changed({ "steps.3.id": "a-b", result: "1" }),
    "content.steps[3].id: must begin with a letter",
  ],
  [
    "an id with a look-alike letter",
    changed({ "steps.3.id": "оutline", result: "1" }),
    "content.steps[3].id: must begin with a letter",
  ],
  [
    "an id that is a CEL word",
    changed({ "steps.3.id": "in", result: "1" }),
    "content.steps[3].id: is a word of CEL: choose another",
  ],
  [
    "a duplicate id",
    changed({ "steps.3": { id: "drafts", type: "delay", seconds: 1 }, result: "1" }),
    "content.steps[3].id: is the id of steps[1] too: choose another",
  ],
  [
    "an unknown step in needs",
    changed({ "steps.3.needs": ["drafts", "fine"] }),
    "content.steps[3].needs: names fine, but no step has this id",
  ],
  [
    "a duplicate in needs",
    changed({ "steps.3.needs": ["drafts", "drafts"] }),
    "content.steps[3].needs: names drafts twice",
  ],
  [
    "a step that needs itself",
    changed({ "steps.3.needs": ["drafts", "join"] }),
    "content.steps[3].needs: names join, which is this step itself",
  ],
  [
    "a cycle",
    changed({ "steps.0.needs": ["ok"] }),
    "content.steps[0].needs: is circular: outline → ok → drafts → outline",
  ],
  [
    "messages without a user message",
    changed({ "steps.0.messages": [{ role: "assistant", content: "{{topic}}" }] }),
    "content.steps[0].messages: must hold at least one user message",
  ],
  [
    "a system message after others",
    changed({ "steps.0.messages.1": { role: "system", content: "x" } }),
    "content.steps[0].messages[1].role: a system message must come before all others",
  ],
  ["an unknown role", changed({ "steps.0.messages.0.role": "robot" }), "content.steps[0].messages[0].role: "],
  [
    "a variable without a value",
    changed({ "steps.1.do.vars": { q: "item" } }),
    "content.steps[1].do.vars: lacks p, which the messages use",
  ],
  [
    "a variable without a value, named like a member of Object.prototype",
    changed({ "steps.1.do.messages.0.content": "{{constructor}}" }),
    "content.steps[1].do.vars: lacks constructor, which the messages use",
  ],
  [
    "an invalid variable name",
    changed({ "steps.0.vars.a b": "1" }),
    "content.steps[0].vars.a b: must be a name such as topic",
  ],
  [
    "an option of runs",
    changed({ "steps.0.options": { store: false } }),
    "content.steps[0].options.store: is not known here",
  ],
  [
    "an unclosed expression",
    withValue("steps.drafts.output ="),
    "content.steps[3].value: is not a valid CEL expression: line 1, column 21: found =",
  ],
  [
    "a syntax error on the second line",
    withValue("1 +\n 2 2"),
    "content.steps[3].value: is not a valid CEL expression: line 2, column 4: found 2",
  ],
  [
    "an expression that is too long",
    withValue(`'${"x".repeat(2_047)}'`),
    "content.steps[3].value: must have at most 2048 characters",
  ],
  [
    "an expression nested too deep",
    withValue(`${"(".repeat(1_000)}1${")".repeat(1_000)}`),
    "content.steps[3].value: is nested deeper than 100 levels",
  ],
  ["an unknown name", withValue("inputs.topic"), "content.steps[3].value: uses inputs, which is unknown: "],
  [
    "a name of Object.prototype",
    withValue("constructor.name"),
    "content.steps[3].value: uses constructor, which is unknown: ",
  ],
  [
    "an unknown input",
    withValue("input.topik"),
    "content.steps[3].value: uses input.topik, but input.properties has no topik",
  ],
  [
    "an unknown step",
    withValue('steps["draft"].output'),
    "content.steps[3].value: uses steps.draft, but no step has this id",
  ],
  [
    "a step without its output",
    withValue("steps.drafts.status"),
    "content.steps[3].value: uses steps.drafts without its output: write steps.drafts.output",
  ],
  [
    "steps as a whole",
    withValue("size(steps)"),
    "content.steps[3].value: uses steps as a whole: name one, as in steps.draft.output",
  ],
  [
    "a computed step id",
    withValue("steps[input.topic].output"),
    "content.steps[3].value: uses steps as a whole: name one, as in steps.draft.output",
  ],
  [
    "a step that is not an ancestor",
    changed({ "steps.3.needs": [] }),
    "content.steps[3].value: uses steps.drafts, which is not an ancestor: add drafts to needs",
  ],
  [
    "the step itself",
    withValue("steps.join.output"),
    "content.steps[3].value: uses steps.join, which is not an ancestor: ",
  ],
  [
    "item outside of a map",
    changed({ "steps.1.items": "item" }),
    "content.steps[1].items: uses item, which exists only in the do of a map",
  ],
  [
    "a macro variable outside of its macro",
    withValue("[1].all(v, v > 0) && v"),
    "content.steps[3].value: uses v, which is unknown: ",
  ],
  [
    "an unknown function",
    withValue("fetch('http://x')"),
    "content.steps[3].value: uses the function fetch, which is unknown",
  ],
  [
    "a function with too many arguments",
    withValue("size(1, 2)"),
    "content.steps[3].value: calls size() with wrong arguments",
  ],
  [
    "a macro called as a function",
    withValue("has(1)"),
    "content.steps[3].value: uses the macro has incorrectly",
  ],
  [
    "macros nested three levels deep",
    withValue("[1].map(a, [1].map(b, [1].map(c, 1)))"),
    "content.steps[3].value: has a map, filter, all or exists three levels deep: ",
  ],
  [
    "a protobuf message",
    withValue("google.protobuf.Struct{}"),
    "content.steps[3].value: creates a google.protobuf.Struct, which is unknown: ",
  ],
  ["an input that is not an object", withInput({ type: "array" }), 'content.input.type: must be "object"'],
  ["an input that is not a schema", changed({ input: 5 }), "content.input: must be a JSON Schema: an object"],
  [
    "an unknown schema type",
    withInput({ properties: { topic: { type: "text" }, tone: true } }),
    "content.input.properties.topic.type: must be one or several of ",
  ],
  [
    "an unknown keyword",
    withInput({ properties: { topic: { maxlength: 5 }, tone: true } }),
    "content.input.properties.topic.maxlength: is not a supported JSON Schema keyword",
  ],
  [
    "a regular expression",
    withInput({ properties: { topic: { pattern: "(a+)+$" }, tone: true } }),
    "content.input.properties.topic.pattern: is not supported",
  ],
  [
    "an external reference",
    withInput({ properties: { topic: { $ref: "https://x.example/s" }, tone: true } }),
    "content.input.properties.topic.$ref: must be of the form #/$defs/name",
  ],
  [
    "an unknown reference",
    withInput({ properties: { topic: { $ref: "#/$defs/t" }, tone: true } }),
    "content.input.properties.topic.$ref: names t, which $defs lacks",
  ],
  [
    "a circular schema",
    withInput({ $defs: { a: { items: { $ref: "#/$defs/b" } }, b: { $ref: "#/$defs/a" } } }),
    "content.input.$defs.b.$ref: is circular",
  ],
  [
    "a default that its schema refuses",
    withInput({ properties: { topic: { type: "string", default: 5 }, tone: true } }),
    "content.input.properties.topic.default: must be a string",
  ],
  [
    "an unknown required input",
    withInput({ required: ["topik"] }),
    "content.input.required[0]: names topik, which properties lacks",
  ],
  [
    "an invalid input name",
    withInput({ properties: { topic: true, tone: true, "a-b": true } }),
    "content.input.properties.a-b: must have a name such as topic",
  ],
  [
    "an output that is not a schema",
    changed({ "steps.0.output": { type: "text" } }),
    "content.steps[0].output.type: must be one or several of ",
  ],
  [
    "an output of a map's step that is not a schema",
    changed({ "steps.1.do.output": { minLength: -1 } }),
    "content.steps[1].do.output.minLength: must be 0 or a greater integer",
  ],
];
for (const [says, definition, ...expected] of invalid) {
  test(`invalid: ${says}`, async () => {
    const problems = await problemsOf(definition as object);
    assert.equal(problems.length, expected.length, problems.join("\n"));
    for (const [index, problem] of problems.entries()) {
      assert.ok(problem.startsWith(expected[index]!), `${problem}\nis not\n${expected[index]}`);
    }
  });
}

test("several issues: all reported in document order, missing fields last", async () => {
  const definition = changed({
    "steps.3.value": "steps.nowhere.output +",
    "steps.0.id": "1st",
    "steps.2.when": "x",
    "steps.1.needs": ["nobody"],
    "input.properties.topic.maxLength": -1,
    "steps.3.needs": [5],
    result: undefined,
    more: true,
  });
  const fields = (await problemsOf(definition)).map((problem) => problem.split(": ")[0]);
  assert.deepEqual(fields, [
    "content.input.properties.topic.maxLength",
    "content.steps[0].id",
    "content.steps[1].needs",
    "content.steps[1].items",
    "content.steps[2].when",
    "content.steps[3].needs[0]",
    "content.steps[3].value",
    "content.more",
    "content.result",
  ]);
});

test("content that is not JSON: reported as an issue of the content", async () => {
  assert.deepEqual(await problemsOf('{\n "format": workflow/1'), [
    "content: is not valid JSON: see line 2, column 12",
  ]);
  assert.deepEqual(await problemsOf('{"steps":[{"id":"a","id":"b"}]}'), [
    "content.steps[0].id: appears twice in its object",
  ]);
});

test("expressions over 20,000 characters together: refused", async () => {
  const steps = Array.from({ length: 11 }, (_, index) => ({
    ...{ id: `s${index}`, type: "transform" },
    value: `'${"x".repeat(index === 10 ? 97 : 1_988)}'`,
  }));
  const most = { ...example(), steps, result: "1" };
  assert.deepEqual(await problemsOf(most), []);
  assert.deepEqual(await problemsOf({ ...most, result: "12" }), [
    "content: holds expressions of more than 20000 characters together",
  ]);
});

test("issues of the whole: before issues of its parts", async () => {
  const names = Array.from({ length: 101 }, (_, index) => [`v${index}`, index === 100 ? "nowhere" : "1"]);
  const variables = Object.fromEntries(names);
  const step = { id: "a", type: "product", productId: `prod_0${"a".repeat(25)}`, variables };
  const [whole, part] = await problemsOf({ ...example(), steps: [step], result: "steps.a.output" });
  assert.match(whole!, /^content\.steps\[0\]\.variables: must have at most 100 names$/);
  assert.match(part!, /^content\.steps\[0\]\.variables\.v100: uses nowhere/);
});

test("hostile definitions: refused quickly", async () => {
  const long = (length: number, item: (index: number) => unknown) =>
    Array.from({ length }, (_, index) => item(index));
  const defs = Object.fromEntries(
    long(100, (index) => [
      `d${index}`,
      {
        anyOf: [
          { $ref: `#/$defs/d${index}1` },
          { $ref: `#/$defs/d${(index as number) + 1}` },
          { $ref: `#/$defs/d${(index as number) + 1}` },
        ],
      },
    ]) as [string, unknown][],
  );
  const hostile = [
    changed({ "steps.3.needs": long(15_000, (index) => `s${index}`) }),
    changed({ steps: long(60_000, () => 1) }),
    changed({ "steps.0.messages": long(60_000, () => 1) }),
    changed({ "steps.0.messages.0.content": "{{a}}".repeat(30_000) }),
    changed(Object.fromEntries(long(15_000, (index) => [`k${index}`, 1]) as [string, unknown][])),
    withInput({ $defs: defs }),
    withInput({ anyOf: long(50_000, () => 1) }),
    "[".repeat(200_000),
    `{"a":${"[".repeat(90_000)}${"]".repeat(90_000)}}`,
  ];
  for (const content of hostile) {
    const start = process.cpuUsage();
    const problems = await problemsOf(content);
    const { user, system } = process.cpuUsage(start);
    assert.ok(problems.length > 0 && problems.length <= 50, `${problems.length} problems`);
    assert.ok(user + system < 1_000_000, `${(user + system) / 1_000} ms for ${problems[0]}`);
  }
});

test("many defaults: checked in bounded time", async () => {
  const list = (length: number, item: (index: number) => unknown) =>
    Array.from({ length }, (_, index) => item(index));
  const doubled = list(9, (index) => [
    `d${index}`,
    { allOf: [{ $ref: `#/$defs/d${Number(index) + 1}` }, { $ref: `#/$defs/d${Number(index) + 1}` }] },
  ]) as [string, unknown][];
  const $defs = { ...Object.fromEntries(doubled), d9: { minLength: 1 } };
  const long = { $defs, properties: { a: { items: { $ref: "#/$defs/d1" }, default: Array(250).fill("x") } } };
  const maps = list(6, (index) => {
    const step = { type: "transform", value: "1", output: long };
    return { id: `s${index}`, type: "map", items: "[1]", do: step, output: long };
  });
  const properties = Object.fromEntries(
    list(90, (index) => [`p${index}`, { $ref: "#/$defs/choice", default: 1 }]) as [string, unknown][],
  );
  const choice = { enum: list(4_000, (index) => index) };
  for (const definition of [
    { ...example(), steps: maps, result: "1" },
    withInput({ properties: { topic: true, tone: true, ...properties }, $defs: { choice } }),
  ]) {
    const start = process.cpuUsage();
    assert.deepEqual(await problemsOf(definition), []);
    const { user, system } = process.cpuUsage(start);
    assert.ok(user + system < 300_000, `${(user + system) / 1_000} ms`);
  }
});

interface Graph {
  edges: [from: number, to: number][];
  size: number;
  order: number[];
}

/** A random DAG in random text order. Steps read their needs and some further ancestors. */
const graphs: fc.Arbitrary<Graph> = fc.integer({ min: 3, max: 12 }).chain((size) =>
  fc.record({
    size: fc.constant(size),
    order: fc.shuffledSubarray(
      Array.from({ length: size }, (_, index) => index),
      { minLength: size },
    ),
    edges: fc.uniqueArray(
      fc.tuple(fc.nat(size - 1), fc.nat(size - 1)).filter(([from, to]) => from > to),
      { selector: ([from, to]) => `${from} ${to}` },
    ),
  }),
);

const needsOf = ({ edges }: Graph, index: number) =>
  edges.filter(([from]) => from === index).map(([, to]) => to);

function ancestors(graph: Graph, index: number): Set<number> {
  const direct = needsOf(graph, index);
  return new Set(direct.flatMap((need) => [need, ...ancestors(graph, need)]));
}

function definitionOf(graph: Graph): Definition {
  const steps = graph.order.map((index) => {
    const reads = [...ancestors(graph, index)].map((other) => `steps.s${other}.output`);
    return {
      ...{ id: `s${index}`, type: "transform", needs: needsOf(graph, index).map((need) => `s${need}`) },
      value: `[${reads.join(", ")}]`,
    };
  });
  return { format: "workflow/1", input: { type: "object" }, steps, result: "steps.s0.output" };
}

type Injection = (definition: Definition, graph: Graph, at: number) => string[];

/** Adds one issue to a valid definition. Returns the expected fields. */
const injections: Record<string, Injection> = {
  "an unknown step in needs"({ steps }, _graph, at) {
    steps[at]!.needs!.push("nowhere");
    return [`content.steps[${at}].needs`];
  },
  "a duplicate id"({ steps }, _graph, at) {
    steps.push({ id: steps[at]!.id, type: "delay", seconds: 1 });
    return [`content.steps[${steps.length - 1}].id`];
  },
  "an unknown field"({ steps }, _graph, at) {
    steps[at]!["colour"] = "red";
    return [`content.steps[${at}].colour`];
  },
  "an invalid expression"({ steps }, _graph, at) {
    steps[at]!["when"] = "input. == 1";
    return [`content.steps[${at}].when`];
  },
  "a step that is not an ancestor"({ steps }, graph, at) {
    const known = ancestors(graph, graph.order[at]!);
    const other = graph.order.find((index) => !known.has(index))!;
    steps[at]!["when"] = `steps.s${other}.output == 1`;
    return [`content.steps[${at}].when`];
  },
  "a cycle"(definition, graph, at) {
    const known = [...ancestors(graph, graph.order[at]!)];
    const [end] = known;
    if (end === undefined) return [];
    // There may be several paths back; the shortest is reported once, at its first step.
    const foot = graph.order.indexOf(end);
    definition.steps[foot]!.needs!.push(definition.steps[at]!.id);
    return ["cycle"];
  },
};

for (const [says, inject] of Object.entries(injections)) {
  test(`any graph with ${says}: only this issue, at its path`, async () => {
    await fc.assert(
      fc.asyncProperty(graphs, fc.nat(), async (graph, seed) => {
        const definition = definitionOf(graph);
        assert.deepEqual(await problemsOf(definition), []);
        const expected = inject(definition, graph, seed % graph.size);
        const problems = await problemsOf(definition);
        if (expected[0] !== "cycle") {
          assert.deepEqual(
            problems.map((problem) => problem.split(": ")[0]),
            expected,
          );
        } else assertCycles(definition, problems);
      }),
      { numRuns: runs(60) },
    );
  });
}

/** Each reported cycle follows needs and starts at its first step in the text. */
function assertCycles({ steps }: Definition, problems: string[]): void {
  assert.ok(problems.length > 0);
  for (const problem of problems) {
    const [, index, way] =
      /^content\.steps\[(\d+)\]\.needs: is circular: (.*)$/.exec(problem) ?? assert.fail(problem);
    const ids = way!.split(" → ");
    assert.equal(ids[0], steps[Number(index)]!.id);
    assert.equal(ids.at(-1), ids[0]);
    ids.slice(1).forEach((id, at) => {
      const step = steps.find((one) => one.id === ids[at])!;
      assert.ok(step.needs!.includes(id), `${step.id} does not need ${id}`);
    });
  }
}
