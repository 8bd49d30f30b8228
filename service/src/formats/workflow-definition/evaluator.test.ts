import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, test } from "node:test";
import { promisify } from "node:util";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import { until } from "../../../test/until.ts";
import { EvaluationError } from "./evaluation-error.ts";
import { type Bindings, Evaluator } from "./evaluator.ts";

const evaluator = new Evaluator();
after(() => evaluator.close());

const evaluate = (expression: string, bindings: Partial<Bindings> = {}, whose = "somebody") =>
  evaluator.evaluate(expression, { input: {}, steps: {}, ...bindings }, whose);

/** The reason why there is no value; fails where there is one. */
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

test("an expression gives values of JSON", async () => {
  for (const [expression, value] of values) {
    assert.deepEqual(await evaluate(expression, bindings), value, expression);
  }
});

const issues: [expression: string, reason: string][] = [
  ["input.missing", "reads a name that is not there: ask has() first"],
  ["steps.skipped.output.parts", "reads a name that is not there: ask has() first"],
  ["steps.other.output", "reads a name that is not there: ask has() first"],
  ["constructor", "reads a name that is not there: ask has() first"],
  ["__proto__", "reads a name that is not there: ask has() first"],
  ["input.constructor", "reads a name that is not there: ask has() first"],
  ["input.__proto__.x", "reads a name that is not there: ask has() first"],
  ["input['hasOwnProperty']", "reads a name that is not there: ask has() first"],
  ["input.list[7]", "reads past the end of a list or a text"],
  ["'abc'.substring(9)", "reads past the end of a list or a text"],
  ["input.topic + 1", "cannot do _+_ with (string, int)"],
  ["input.topic.contains(1)", "cannot do contains with string.(int)"],
  ["-input.topic", "cannot do -_ with (string)"],
  ["1 / 0", "divides by zero"],
  ["1 % 0", "divides by zero"],
  ["9223372036854775807 + 1", "makes a number or a time that is too large"],
  ["input.topic && true", "needs true or false where it has something else"],
  ["input.parts.map(x, x)", "goes through what is no list and no map"],
  ["{'a': 1, 'a': 2}", "makes a map with the same key twice"],
  ["{1.5: 2}", "makes a map with a key that is no text, whole number or bool"],
  ["int(input.topic)", "turns a text or number into what it is not"],
  ["bool(input.topic)", "turns a text or number into what it is not"],
  ["timestamp(input.topic)", "turns a text or number into what it is not"],
  ["duration(input.topic)", "turns a text or number into what it is not"],
  ["'a'.matches('(')", "has a regular expression that cannot be read"],
  ["'a'.matches('(?=a)')", "has a regular expression that cannot be read"],
  ["bytes(input.topic)", "uses bytes(), whose values have no JSON"],
  ["type(input)", "gives what is no value of JSON, such as a type"],
  ["b'abc'", "gives what is no value of JSON, such as a type"],
  ["9007199254740993", "gives a whole number past 2^53, which JSON does not hold: use string()"],
  ["1.0 / 0.0", "gives a number that JSON does not have, as after a division by 0.0"],
  ["'a\\x00'", "gives a text with a NUL character"],
  ["{'__proto__': 1}", "gives an object with a name that cannot be used"],
  ["{1: 'a', '1': 'b'}", "gives an object with the same name twice"],
  ["1 +", "is no CEL expression"],
  ["'a' ".repeat(600), "is longer than 2048 characters"],
];

test("what keeps an expression from having a value is told in words", async () => {
  for (const [expression, reason] of issues) {
    assert.equal(await reasonOf(expression, bindings), reason, expression);
  }
});

test("no reason quotes a value", async () => {
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

test("any value of JSON goes in and comes out as it was", async () => {
  const json = fc.jsonValue({ maxDepth: 4 }).filter((value) => !JSON.stringify(value).includes("__proto__"));
  await fc.assert(
    fc.asyncProperty(json, async (value) => {
      // JSON has no -0, and a half of a surrogate pair is mended.
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

const long = "a".repeat(1_500_000);
const numbers = Array.from({ length: 200 }, (_, index) => index);
const inner = "a".repeat(50_000);

const SLOW = "[1, 2, 3, 4, 5, 6].exists(x, input.text.matches('(a+)+$'))";
const slow = { text: `${long}b` };
/** Of each kind of trouble one; what the static rules refuse stands here too, in case it slips through. */
const hostile: [what: string, expression: string, input?: unknown][] = [
  ["a catastrophic regular expression", SLOW, slow],
  [
    "one that is given",
    "[1, 2, 3, 4, 5, 6].exists(x, input.text.matches(input.re))",
    { text: `${long}b`, re: "(a+)+$" },
  ],
  ["a great regular expression", "input.text.matches('((a{100}){100}){100}')", { text: long }],
  ["nested maps", "input.list.map(a, input.list.map(b, input.list.map(c, c)))", { list: numbers }],
  ["nested alls", "input.list.all(a, input.list.all(b, input.list.all(c, true)))", { list: numbers }],
  [
    "errors that || forgives",
    "input.list.all(a, input.list.all(b, input.list.all(c, c / 0 > 1 || true)))",
    { list: numbers },
  ],
  ["a list of lists", `input.list.map(a, input.list.map(b, [${"[a, b], ".repeat(60)}a]))`, { list: numbers }],
  ["10 MB of text", "size(input.text)", { text: "a".repeat(10_000_000) }],
  ["a text that grows", "input.text.replace('a', input.text)", { text: long }],
  ["a text that is joined", `[${"input.text, ".repeat(100)}''].join('').contains('b')`, { text: long }],
  ["a text that is added up", `(${"input.text + ".repeat(100)}'').contains('b')`, { text: long }],
  ["a slow search", "input.text.contains(input.found)", { text: long, found: `${inner}b${inner}` }],
  [
    "a slow search from behind",
    "input.text.lastIndexOf(input.found)",
    { text: long, found: `${inner}b${inner}` },
  ],
  ["a slow split", "input.text.split(input.found)", { text: long, found: `${inner}b${inner}` }],
  ["a long number", "int(input.digits)", { digits: "9".repeat(1_500_000) }],
  [
    "the same text again and again",
    "input.list.map(a, input.list.map(b, input.text))",
    { list: numbers, text: long },
  ],
  ["a list that is added up", `size(${"input.list + ".repeat(130)}[])`, { list: Array(100_000).fill(0) }],
  ["a list of letters", `[${"input.text.split(''), ".repeat(20)}[]]`, { text: long }],
  ["depth of a value", "input", JSON.parse(`${"[".repeat(5_000)}1${"]".repeat(5_000)}`)],
  ["many small things", "input.map(x, x)", Array(600_000).fill({})],
];

test("hostile expressions are stopped, and who is beside them does not wait", {
  timeout: 120_000,
}, async () => {
  let areStopped = false;
  let honest = 0;
  const beside = async () => {
    while (!areStopped) {
      assert.equal(await evaluate("input.list.filter(x, x > 1).size()", bindings, "honest"), 2);
      honest++;
    }
  };
  const stopped = async () => {
    try {
      for (const [what, expression, input = {}] of hostile)
        assert.ok(await reasonOf(expression, { input }, "hostile"), what);
    } finally {
      areStopped = true;
    }
  };
  await Promise.all([beside(), stopped()]);
  assert.ok(honest > hostile.length, `${honest} answers`);
});

test("who has many expressions that must be stopped waits for them alone", { timeout: 120_000 }, async () => {
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

test("turns go round: who asked for much is not in the way of who asks for little", async () => {
  const order: string[] = [];
  const ask = async (whose: string) => {
    await evaluate("1", {}, whose);
    order.push(whose);
  };
  await Promise.all([...Array.from({ length: 100 }, () => ask("much")), ...["a", "b", "c"].map(ask)]);
  assert.ok(order.lastIndexOf("c") < 50, order.slice(0, 60).join());
});

test("threads that have nothing to do keep no process alive", async () => {
  const program = `
    const { Evaluator } = await import(${JSON.stringify(new URL("./evaluator.ts", import.meta.url).href)});
    console.log(await new Evaluator().evaluate("6 * 7", { input: {}, steps: {} }, "somebody"));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
  assert.equal(stdout.trim(), "42");
});

test("an evaluator that is closed gives no more values", async () => {
  const closed = new Evaluator();
  const asked = Array.from({ length: 5 }, () => closed.evaluate("1", { input: {}, steps: {} }, "somebody"));
  await Promise.all([closed.close(), ...asked.map((value) => assert.rejects(value, EvaluationError))]);
  await assert.rejects(closed.evaluate("1", { input: {}, steps: {} }, "somebody"), {
    reason: "was given up, because the service shuts down",
  });
});

test("an expression ends in the same way however often it is asked", async () => {
  const input = { list: numbers };
  const [passes, fails] = [
    "input.list.map(a, input.list.map(b, a + b)).size()",
    "input.list.map(a, input.list.map(b, a * b + a - b > a / 2 + b))",
  ];
  for (let round = 0; round < 2; round++) {
    assert.equal(await evaluate(passes, { input }), 200);
    assert.match(await reasonOf(fails, { input }), /has more to do/);
  }
});

test("long lists take time by their length, and not by its square", async () => {
  const list = Array.from({ length: 20_000 }, (_, index) => index);
  assert.equal(await evaluate("input.map(x, x + 1).filter(x, x % 2 == 0).size()", { input: list }), 10_000);
});

test("times are read in UTC, also where the process is in a zone that has no such hour", async () => {
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

test("a thread that has nothing to do is ended, and another one started when it is needed", async () => {
  const short = new Evaluator({ idleMs: 0 });
  for (let round = 0; round < 2; round++) {
    assert.equal(await short.evaluate("6 * 7", { input: {}, steps: {} }, "somebody"), 42);
    await until("the thread is ended", () => short.threads === 0);
  }
  await short.close();
});

test("what a function gives is paid for, however little it was given", async () => {
  const input = { list: numbers, text: "a".repeat(30), piece: "b".repeat(100_000) };
  const replacing = (letter: string) =>
    `input.list.all(x, type(input.text.replace('${letter}', input.piece)) == string)`;
  assert.match(await reasonOf(replacing("a"), { input }), /has more to do/);
  assert.equal(await evaluate(replacing("c"), { input }), true);
});
