import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { promisify } from "node:util";
import fc from "fast-check";
import { anyCharacter } from "../../../test/any-character.ts";
import { runs, sampleOf } from "../../../test/full-size.ts";
import { until } from "../../../test/until.ts";
import { EvaluationError } from "./evaluation-error.ts";
import { type Bindings, Evaluator } from "./evaluator.ts";

const evaluator = new Evaluator();
after(() => evaluator.close());

const evaluate = (expression: string, bindings: Partial<Bindings> = {}, whose = "somebody") =>
  evaluator.evaluate(expression, { input: {}, steps: {}, ...bindings }, whose);

/** Fails if the expression has a value. */
async function reasonOf(expression: string, bindings: Partial<Bindings> = {}, whose?: string) {
  const value = evaluate(expression, bindings, whose);
  return value.then(
    () => assert.fail(`${expression} has a value`),
    (error) => {
      assert.ok(error instanceof EvaluationError, String(error?.stack));
      return error.reason;
    },
  );
}

const bindings: Bindings = {
  input: { topic: "autumn", parts: 5, price: 9.5, whole: 10, ready: true, nothing: null, list: [3, 1, 2] },
  steps: {
    outline: { output: { parts: ["a", "b", "c", "d"] } },
    drafts: { output: ["x", "y"] },
    skipped: { output: null },
  },
  item: { name: "one" },
  index: 0,
};

const values: [expression: string, value: unknown][] = [
  ["input.topic", "autumn"],
  ["steps.drafts.output", ["x", "y"]],
  ['steps["drafts"].output[1]', "y"],
  ["steps.skipped.output", null],
  ["steps.skipped.output == null", true],
  ["item.name", "one"],
  ["index + 1", 1],
  ["size(steps.outline.output.parts) > 3", true],
  ["input.parts + 1", 6],
  ["input.parts / 2", 2],
  ["input.parts % 2", 1],
  ["input.price * 2", 19],
  ["2 * input.price", 19],
  ["input.whole * 1.5", 15],
  ["input.whole / 4.0", 2.5],
  ["1.0 - input.whole", -9],
  ["input.price > 9 && input.whole > 9.5", true],
  ["input.list[input.parts - 4]", 1],
  ["string(input.parts) + ' parts'", "5 parts"],
  ["has(input.topic) && !has(input.missing)", true],
  ["input[item.name == 'one' ? 'topic' : 'parts']", "autumn"],
  ["size(input)", 7],
  ["[input].map(i, i.topic)", ["autumn"]],
  ["input .topic + input. topic", "autumnautumn"],
  ['input["to\\u0070ic"]', "autumn"],
  ['steps["dr\\x61fts"].output[0]', "x"],
  ["input.parts == 2 ? 'few' : 'many'", "many"],
  ["{'title': input.topic, 'n': input.parts}", { title: "autumn", n: 5 }],
  ["{1: 'a', true: 'b'}", { "1": "a", true: "b" }],
  ["steps.outline.output.parts.map(p, p + '!').filter(p, p != 'b!')", ["a!", "c!", "d!"]],
  ["input.list.all(x, x > 0) && input.list.exists(x, x == 3)", true],
  ["input.list + [9]", [3, 1, 2, 9]],
  ["steps.outline.output.parts.join(', ')", "a, b, c, d"],
  ["'a-b-a'.replace('a', '$&')", "$&-b-$&"],
  ["'a-b-a'.replace('a', 'c', 1)", "c-b-a"],
  ["'a b'.split(' ')", ["a", "b"]],
  ["size('a😀')", 2],
  ["'😀'.substring(0, 1)", "\ufffd"],
  ["timestamp('2026-11-21T10:00:00Z')", "2026-11-21T10:00:00Z"],
  ["timestamp('2026-11-21T10:00:00Z') + duration('90m')", "2026-11-21T11:30:00Z"],
  ["timestamp('2026-11-21T10:00:00Z').getHours()", 10],
  ["timestamp('2026-03-29T02:30:00Z').getHours('+05:30')", 8],
  ["timestamp('2026-03-29T02:30:00Z').getHours('-03:00')", 23],
  ["timestamp('2026-03-29T02:30:00Z').getHours('Europe/Berlin')", 4],
  ["timestamp('2026-12-31T23:30:00Z').getFullYear('Asia/Tokyo')", 2027],
  ["timestamp('2026-12-31T23:30:00.25Z').getDayOfYear()", 364],
  ["timestamp('2026-12-31T23:30:00.25Z').getMilliseconds()", 250],
  ["timestamp('2026-12-31T23:30:00Z').getDayOfMonth() - timestamp('2026-12-31T23:30:00Z').getDate()", -1],
  [
    "[timestamp('2026-12-31T23:30:09Z')].map(t, [t.getMonth(), t.getDayOfWeek(), t.getMinutes(), t.getSeconds()])",
    [[11, 4, 30, 9]],
  ],
  ["duration('90m').getHours()", 1],
  ["duration('90s')", "90s"],
  ["type(input.parts) == int && type(input.price) == double", true],
  ["uint(5)", 5],
  ["9007199254740991", Number.MAX_SAFE_INTEGER],
  ["string(9007199254740993)", "9007199254740993"],
  ["'abc'.matches('^a.c$')", true],
  ["'%s is %d'.format([input.topic, input.parts])", "autumn is 5"],
];

test("valid expressions: return JSON values", async () => {
  for (const [expression, value] of values) {
    assert.deepEqual(await evaluate(expression, bindings), value, expression);
  }
});

const issues: [expression: string, reason: string][] = [
  ["input.missing", "reads a name that does not exist: check it with has() first"],
  ["steps.skipped.output.parts", "reads a name that does not exist: check it with has() first"],
  ["steps.other.output", "reads a name that does not exist: check it with has() first"],
  ["constructor", "reads a name that does not exist: check it with has() first"],
  ["__proto__", "reads a name that does not exist: check it with has() first"],
  ["input.constructor", "reads a name that does not exist: check it with has() first"],
  ["input.__proto__.x", "reads a name that does not exist: check it with has() first"],
  ["input['hasOwnProperty']", "reads a name that does not exist: check it with has() first"],
  ["input.list[7]", "reads past the end of a list or a text"],
  ["'abc'.substring(9)", "reads past the end of a list or a text"],
  ["input.topic + 1", "cannot do _+_ with (string, int)"],
  ["input.topic.contains(1)", "cannot do contains with string.(int)"],
  ["-input.topic", "cannot do -_ with (string)"],
  ["1 / 0", "divides by zero"],
  ["1 % 0", "divides by zero"],
  ["9223372036854775807 + 1", "computes a number or a time that is too large"],
  ["input.topic && true", "uses a value that is not true or false as a condition"],
  ["input.parts.map(x, x)", "iterates over a value that is not a list or map"],
  ["{'a': 1, 'a': 2}", "creates a map with the same key twice"],
  ["{1.5: 2}", "creates a map with a key that is not a text, whole number or bool"],
  ["int(input.topic)", "converts a value that does not match the target type"],
  ["bool(input.topic)", "converts a value that does not match the target type"],
  ["timestamp(input.topic)", "converts a value that does not match the target type"],
  ["duration(input.topic)", "converts a value that does not match the target type"],
  ["'a'.matches('(')", "has an invalid regular expression"],
  ["'a'.matches('(?=a)')", "has an invalid regular expression"],
  ["bytes(input.topic)", "uses bytes(), whose values have no JSON"],
  ["type(input)", "returns a value that JSON cannot represent, such as a type"],
  ["b'abc'", "returns a value that JSON cannot represent, such as a type"],
  ["9007199254740993", "returns a whole number past 2^53, which JSON cannot represent: use string()"],
  ["1.0 / 0.0", "returns a number that JSON cannot represent, such as after a division by 0.0"],
  ["'a\\x00'", "returns a text with a NUL character"],
  ["{'__proto__': 1}", "returns an object with a name that cannot be used"],
  ["{1: 'a', '1': 'b'}", "returns an object with the same name twice"],
  ["1 +", "is not a valid CEL expression"],
  ["'a' ".repeat(600), "is longer than 2048 characters"],
];

test("failing expressions: report the reason", async () => {
  for (const [expression, reason] of issues) {
    assert.equal(await reasonOf(expression, bindings), reason, expression);
  }
});

test("reasons: never quote a value", async () => {
  const secret = "5ecret";
  const expressions = [
    "input[input.secret]",
    "input.list[input.secret]",
    "int(input.secret)",
    "bool(input.secret)",
    "double(input.secret) + input.secret",
    "timestamp(input.secret)",
    "duration(input.secret)",
    "'a'.matches('(' + input.secret)",
    "{input.secret: 1, input.secret: 2}",
    "input.secret.format([1])",
    "('%' + input.secret).format([1])",
    "timestamp('2026-11-21T10:00:00Z').getHours(input.secret)",
    "input.secret()",
    "input.secret.x.y",
    "[input.secret].map(x, x / 2)",
  ];
  for (const expression of expressions) {
    const reason = await reasonOf(expression, { input: { secret, list: [1] } });
    assert.ok(!reason.includes(secret), `${expression}: ${reason}`);
  }
});

test("any JSON value: returned unchanged", async () => {
  const json = fc.jsonValue({ maxDepth: 4 }).filter((value) => !JSON.stringify(value).includes("__proto__"));
  await fc.assert(
    fc.asyncProperty(json, async (value) => {
      // JSON has no -0, and lone surrogates are replaced.
      const expected = JSON.parse(JSON.stringify(value), (_, item) =>
        typeof item === "string" ? item.toWellFormed() : Object.is(item, -0) ? 0 : item,
      );
      assert.deepEqual(await evaluate("[input, item]", { input: expected, item: expected }), [
        expected,
        expected,
      ]);
    }),
    { numRuns: runs(200) },
  );
});

test("expression that only reads a text: needs no thread, and has the value that a thread returns", async () => {
  const idle = new Evaluator();
  const texts = fc.string({ unit: anyCharacter }).filter((text) => !text.includes("\0"));
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      const read = { input: { text }, steps: { one: { output: text } } };
      const [evaluated] = (await evaluate("[input.text]", read)) as [string];
      assert.equal(await idle.evaluate("input.text", read, "somebody"), evaluated);
      assert.equal(await idle.evaluate("steps.one.output", read, "somebody"), evaluated);
    }),
    { numRuns: runs(50) },
  );
  assert.equal(idle.threads, 0);
  assert.equal(await reasonOf("input.in", { input: { in: "x" } }), "is not a valid CEL expression");
  assert.equal(
    await reasonOf("input.text", { input: { text: "\0" } }),
    "returns a text with a NUL character",
  );
});

const long = "a".repeat(1_500_000);
const numbers = Array.from({ length: 200 }, (_, index) => index);
const inner = "a".repeat(50_000);

const SLOW = "[1, 2, 3, 4, 5, 6].exists(x, input.text.matches('(a+)+$'))";
const slow = { text: `${long}b` };
/** One of each kind, including those that the static check refuses. */
const hostile: [what: string, expression: string, input?: unknown][] = [
  ["a catastrophic regular expression", SLOW, slow],
  [
    "a regular expression from the input",
    "[1, 2, 3, 4, 5, 6].exists(x, input.text.matches(input.re))",
    { text: `${long}b`, re: "(a+)+$" },
  ],
  ["a large regular expression", "input.text.matches('((a{100}){100}){100}')", { text: long }],
  ["nested maps", "input.list.map(a, input.list.map(b, input.list.map(c, c)))", { list: numbers }],
  ["nested alls", "input.list.all(a, input.list.all(b, input.list.all(c, true)))", { list: numbers }],
  [
    "errors ignored by ||",
    "input.list.all(a, input.list.all(b, input.list.all(c, c / 0 > 1 || true)))",
    { list: numbers },
  ],
  ["a list of lists", `input.list.map(a, input.list.map(b, [${"[a, b], ".repeat(60)}a]))`, { list: numbers }],
  ["10 MB of text", "size(input.text)", { text: "a".repeat(10_000_000) }],
  ["a growing text", "input.text.replace('a', input.text)", { text: long }],
  ["a joined text", `[${"input.text, ".repeat(100)}''].join('').contains('b')`, { text: long }],
  ["a concatenated text", `(${"input.text + ".repeat(100)}'').contains('b')`, { text: long }],
  ["a slow search", "input.text.contains(input.found)", { text: long, found: `${inner}b${inner}` }],
  [
    "a slow search from the end",
    "input.text.lastIndexOf(input.found)",
    { text: long, found: `${inner}b${inner}` },
  ],
  ["a slow split", "input.text.split(input.found)", { text: long, found: `${inner}b${inner}` }],
  ["a long number", "int(input.digits)", { digits: "9".repeat(1_500_000) }],
  ["a repeated text", "input.list.map(a, input.list.map(b, input.text))", { list: numbers, text: long }],
  ["a concatenated list", `size(${"input.list + ".repeat(130)}[])`, { list: Array(100_000).fill(0) }],
  ["a list of letters", `[${"input.text.split(''), ".repeat(20)}[]]`, { text: long }],
  ["depth of a value", "input", JSON.parse(`${"[".repeat(5_000)}1${"]".repeat(5_000)}`)],
  ["many small values", "input.map(x, x)", Array(600_000).fill({})],
];

test("hostile expressions: stopped; other accounts do not wait", {
  timeout: 120_000,
}, async () => {
  let isDone = false;
  let completed = 0;
  const evaluateOther = async () => {
    while (!isDone) {
      assert.equal(await evaluate("input.list.filter(x, x > 1).size()", bindings, "honest"), 2);
      completed++;
    }
  };
  const stopped = async () => {
    try {
      for (const [what, expression, input = {}] of sampleOf(hostile))
        assert.ok(await reasonOf(expression, { input }, "hostile"), what);
    } finally {
      isDone = true;
    }
  };
  await Promise.all([evaluateOther(), stopped()]);
  assert.ok(completed > sampleOf(hostile).length, `${completed} answers`);
});

test("an account with many slow expressions: only it waits", { timeout: 120_000 }, async () => {
  let stopped = 0;
  const flood = Array.from({ length: 3 }, async () => {
    assert.equal(await reasonOf(SLOW, { input: slow }, "hostile"), "takes more than 200 ms");
    stopped++;
  });
  const others = Array.from({ length: 100 }, (_, index) =>
    evaluate("input + 1", { input: index }, `other ${index}`),
  );
  assert.deepEqual(
    await Promise.all(others),
    others.map((_, index) => index + 1),
  );
  assert.ok(stopped < flood.length, `${stopped} were stopped before`);
  await Promise.all(flood);
});

test("a pause of the process during an evaluation: does not end it", async (t) => {
  const paused = new Evaluator();
  await paused.evaluate("6 * 7", { input: {}, steps: {} }, "somebody");
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { now } = performance;
  let pauseMs = 0;
  t.mock.method(performance, "now", () => now.call(performance) + pauseMs);
  const expression = "input.map(a, input.map(b, a + b)).size()";
  const size = paused.evaluate(expression, { input: numbers, steps: {} }, "somebody");
  await nextTurn();
  pauseMs = 60_000;
  t.mock.timers.tick(1_000);
  assert.equal(await size, 200);
  await paused.close();
});

test("accounts take turns: few expressions do not wait for many", async () => {
  const order: string[] = [];
  const ask = async (whose: string) => {
    await evaluate("1", {}, whose);
    order.push(whose);
  };
  await Promise.all([...Array.from({ length: 100 }, () => ask("much")), ...["a", "b", "c"].map(ask)]);
  assert.ok(order.lastIndexOf("c") < 50, order.slice(0, 60).join());
});

test("idle threads: do not keep the process alive", async () => {
  const program = `
    const { Evaluator } = await import(${JSON.stringify(new URL("./evaluator.ts", import.meta.url).href)});
    console.log(await new Evaluator().evaluate("6 * 7", { input: {}, steps: {} }, "somebody"));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  assert.equal(stdout.trim(), "42");
});

test("a closed evaluator: rejects", async () => {
  const closed = new Evaluator();
  const results = Array.from({ length: 5 }, () => closed.evaluate("1", { input: {}, steps: {} }, "somebody"));
  await Promise.all([closed.close(), ...results.map((value) => assert.rejects(value, EvaluationError))]);
  await assert.rejects(closed.evaluate("1", { input: {}, steps: {} }, "somebody"), {
    reason: "was canceled because the service is shutting down",
  });
});

test("the same expression: the same result every time", async () => {
  const input = { list: numbers };
  const [passes, fails] = [
    "input.list.map(a, input.list.map(b, a + b)).size()",
    "input.list.map(a, input.list.map(b, a * b + a - b > a / 2 + b))",
  ];
  for (let round = 0; round < 2; round++) {
    assert.equal(await evaluate(passes, { input }), 200);
    assert.match(await reasonOf(fails, { input }), /exceeds the cost limit/);
  }
});

test("long lists: linear time", async () => {
  const list = Array.from({ length: 20_000 }, (_, index) => index);
  assert.equal(await evaluate("input.map(x, x + 1).filter(x, x % 2 == 0).size()", { input: list }), 10_000);
});

test("times: in UTC, also if the process's time zone skips the hour", async () => {
  const program = new URL("./expression-runner.ts", import.meta.url).href;
  const code = `
    const { createExpressionRunner } = await import("${program}");
    const run = await createExpressionRunner();
    const at = "timestamp('2026-03-29T02:30:00Z')";
    console.log(JSON.stringify(run(\`[\${at}.getHours(), \${at}.getHours('Asia/Tokyo'), \${at}.getHours('-00:30')]\`, {})));`;
  const env = { ...process.env, TZ: "Europe/Berlin" };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], {
    env,
  });
  assert.deepEqual(JSON.parse(stdout), [2, 11, 2]);
});

test("an idle thread: ends, and another one starts when needed", async () => {
  const short = new Evaluator({ idleMs: 0 });
  for (let round = 0; round < 2; round++) {
    assert.equal(await short.evaluate("6 * 7", { input: {}, steps: {} }, "somebody"), 42);
    await until("the thread is ended", () => short.threads === 0);
  }
  await short.close();
});

test("the result of a function: counts towards the cost limit", async () => {
  const input = { list: numbers, text: "a".repeat(30), piece: "b".repeat(100_000) };
  const replacing = (letter: string) =>
    `input.list.all(x, type(input.text.replace('${letter}', input.piece)) == string)`;
  assert.match(await reasonOf(replacing("a"), { input }), /exceeds the cost limit/);
  assert.equal(await evaluate(replacing("c"), { input }), true);
});
