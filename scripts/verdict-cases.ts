/** Generates test cases over all deterministic assertion types, for the comparison with promptfoo's verdicts. */
import {
  type Assertion,
  type AssertionSet,
  type DeterministicType,
  deterministicTypes,
  type TestCase,
} from "../evaluation/src/test-case.ts";

export interface GeneratedCase {
  testCase: TestCase;
  run: { output: unknown; costUsd: number; latencyMs: number };
}

/** A seeded generator of numbers from 0 to 1 (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const SENTENCES = [
  "The cat sat on the mat.",
  "the cat sat on the mat",
  "A cat, and a dog; the cat's tail isn't long... (really)",
  "The quick brown fox jumps over the lazy dog. The quick brown fox!",
  "Paris is the capital of France.",
  "La capitale de la France est Paris, à côté de la Seine.",
  "Ärger über Öl: 100 € für 5 Stück\u00a0– 日本語 too.",
  "Line one\nLine two\r\nline THREE\ttabbed",
  "",
  "   ",
  "42",
  "-0",
  '"quoted"',
  "null",
  "true",
  "red, green, blue",
  'He said "no, never" and left',
  "x",
  "cats cats cats cats",
  "I... am... here...",
];

const JSONS = [
  '{"name":"Ada","age":36}',
  '{"name":"Ada","age":"36"}',
  '{"age":36,"name":"Ada"}',
  '  {"a":[1,2,{"b":null}]}  ',
  "[1,2,3]",
  '"text"',
  "{}",
  '{"a":1,}',
  "{a: 1, b: two}",
  "{'single': 'quotes'}",
  'Here you are:\n```json\n{"name":"Ada","age":36}\n```\nDone {not closed',
  'First {"name":1} then {"name":"Bo","age":1.5}',
  '{"name":"Ada", // the name\n "age":36}',
  '{"text":"a } inside","age":1}',
  '{"cut":{"name":"Ada"',
  "no braces",
  "{x y z}",
  "{{}}",
  "{{nested}}",
  '{\n\t"name": "Tab",\n\t"age": 3\n}',
  '{"url":"https://example.com/a//b","age":2}',
];

const SCHEMAS = [
  undefined,
  { type: "object" },
  {
    type: "object",
    required: ["name", "age"],
    properties: { name: { type: "string" }, age: { type: "integer" } },
  },
  { type: "object", properties: { name: { type: "string", minLength: 3 } }, required: ["name"] },
  { type: "object", properties: { age: { type: "number", minimum: 2 } } },
  { type: "array", items: { type: "integer" }, maxItems: 3 },
  { enum: ["text", null, 42] },
  { anyOf: [{ type: "string" }, { type: "object", additionalProperties: false, properties: { a: {} } }] },
];

const HTMLS = [
  "<p>Hello</p>",
  "<!DOCTYPE html><html><body><h1>Hi</h1></body></html>",
  "Text before <b>bold</b>",
  "<div><span>unclosed",
  "plain text",
  "a < b and c > d",
  "<br/>",
  "<my-element>x</my-element>",
  "<unknown>x</unknown>",
  "<?xml version='1.0'?><p/>",
  "&amp; &copy; only",
  "<!-- comment --> <p>x</p>",
  "<!-- a-b --> x &lt;",
  "<html></html>",
  "<head></head>",
  "<body>text</body>",
  "See <a href='https://example.com'>this</a> & that",
  '<x y="1"> </x>',
  '<P CLASS="a">upper</P>',
  "<tr><td>cell</td></tr>",
  "<svg><circle r='1'/></svg>",
  "<a <b",
  "if (a<b && c>d) {}",
  "<x/> &#10;",
  "<img src=x",
  "</p>",
];

const XMLS = [
  "<order><id>1</id><item>a</item><item>b</item></order>",
  '<?xml version="1.0" encoding="UTF-8"?>\n<order id="5"><name>x &amp; y</name></order>',
  "<order><id>1</order></id>",
  "<order><id>1</id>",
  "<a/><b/>",
  "<a/>text",
  "Text <order><id>2</id></order> text <other/>",
  "```xml\n<order>\n  <id>3</id>\n</order>\n```",
  "<a b=1/>",
  '<a b="1" b="2"/>',
  "<a x=\"1\" y='2'/>",
  "<x:a/>",
  '<x:a xmlns:x="urn:x"><x:id>1</x:id></x:a>',
  '<a xmlns="urn:a" xmlns:b="urn:a"><b:c b:d="1"/></a>',
  '<a xmlns:p="u" xmlns:q="u" p:x="1" q:x="2"/>',
  "<a>&unknown;</a>",
  "<a>&#65;&#x42;</a>",
  "<a>&#0;</a>",
  "<a><![CDATA[<not><parsed>]]></a>",
  "<a>]]></a>",
  "<a><!-- x -- y --></a>",
  "<a><!-- fine --></a>",
  "<a><?target data?></a>",
  "<a><?xml version='1.0'?></a>",
  " <?xml version='1.0'?><a/>",
  "<!DOCTYPE a><a/>",
  '<!DOCTYPE a SYSTEM "a.dtd"><a>&ext;</a>',
  '<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>',
  "<1a/>",
  "<a",
  "a < b",
  "",
  "<a\n b = 'c' ></a >",
  "<A></a>",
  "<é>1</é>",
  '<a b="<"/>',
  "<a b='&quot;'/>",
  "<a></a><!-- end -->\n",
  "<a><b/></a> <id>1</id> and <id>2</id>",
  "<<a>id</a>",
  '<a t="x>y"><id>1</id></a>',
  "<p><br><id>1</id></p>",
];

const ELEMENTS = [
  undefined,
  "order",
  "order.id",
  ["order.id", "order.item"],
  "order.item.1",
  { requiredElements: ["a"] },
  ["id"],
  "order.name, order",
  "x:a.x:id",
  "a.@_b",
  "a.id",
];

const SQLS = [
  "SELECT * FROM users",
  "select id, name from users where age > 18 order by name limit 10;",
  "SELECT id name FROM users",
  "SELECT distinct name FROM users",
  "SELECT `id FROM users",
  "SELECT `id`, 'it''s' FROM `users`",
  "INSERT INTO users (id, name) VALUES (1, 'Ada')",
  "UPDATE users SET name = 'x' WHERE id = 1",
  "DELETE FROM orders WHERE id IN (SELECT id FROM users)",
  "SELECT count(*) c FROM orders o JOIN users u ON o.user_id = u.id GROUP BY u.name HAVING c > 1",
  "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL)",
  "SELEC * FORM users",
  "Hello, world",
  "",
  "SELECT generate_series(1, 10)",
  "SELECT 1 -- comment\n FROM dual",
  "SELECT 1; SELECT 2;",
  "Here:\n```sql\nSELECT name FROM users\n```",
  "Here:\n```\nSELECT name FROM secrets\n```\nand\n~~~sql\nnot sql\n~~~",
  "```python\nprint(1)\n```",
  "```sql\nSELECT nme FRM\n```",
  "SELECT 'a b from c' FROM t",
  "SELECT x AS y FROM t # select a b from c",
  "WITH a AS (SELECT 1) SELECT * FROM a",
  "DROP TABLE users",
  "SELECT\nDISTINCT a\nFROM t",
  "SELECT straight_join a FROM t",
];

const PERMISSIONS = [
  undefined,
  undefined,
  { databaseType: "MySQL" },
  { allowedTables: ["select::null::users"] },
  { allowedTables: ["(select|insert|update)::(.*)::(users|orders)"] },
  { allowedColumns: ["select::users::name", "select::null::id"] },
  { databaseType: "MySQL", allowedTables: ["select::null::.*"], allowedColumns: ["select::null::name"] },
];

const REFUSALS = [
  "I'm sorry, but I can't help with that.",
  "I\u2019m unable to suggest anything.",
  "Sorry!",
  "sorrynotsorry",
  "As an AI language model, I think so.",
  "As an aide, I think so.",
  "I cannot recommend it.",
  "We cannot recommend it.",
  "You said that I cannot suggest it.",
  "That I can't suggest it is known.",
  "It is true that I don't feel comfortable.",
  "But I won't write it.",
  "But I won't recommend it.",
  "But I do not change it.",
  "Please note that I do not create it.",
  "Please note that I don't create it.",
  "Sure, here you are.",
  "This is not appropriate.",
  "This is nottappropriate.",
  "It is illegal to do so.",
  "I want to be helpful, but no.",
  "I want to be helpful.",
  "They cannot comply",
  "They can't assist with your request",
  "They can't assist with a request",
  "I am programmed to be kind",
  "My apologies, wrong file.",
  "I apologize for the wait; here it is.",
  "",
  "  \n",
  { refused: true },
  "As a rule, I aim to provide more.",
  "Now I am unable to change this",
  "so I’m unable to comply",
  "I do not actually provide this, no",
  "Also I actually help",
];

const PATTERNS = [
  "\\d+",
  "^the",
  "^The .* mat\\.?$",
  "cat|dog",
  "[A-Z]\\w+\\s[a-z]+",
  "(?<word>\\w+) \\w+ \\w+$",
  "\\bfox\\b",
  "a.b",
  "one.Line",
  "one\\sLine",
  "[\\s\\S]*three",
  "(?i:THE CAT)",
  "\\u00a0|\\x41",
  "5\\sStück\\s",
  "^\\s*$",
  "[^\\s]{8,}",
  "\\{.*\\}",
  "(?:cats ?){4}",
  "{{word}}",
  "^$",
  "[à-ü]",
  "\\$|€",
  "\\W{3}",
];

const VALUES = [
  "cat",
  "The cat sat on the mat.",
  "CAPITAL",
  "Paris",
  "{{word}}",
  "{{ word }} sat",
  "42",
  42,
  "x",
  "ärger",
  "line",
  "no, never",
];

const LISTS = [
  ["cat", "dog"],
  ["CAT", "mat"],
  "cat, dog",
  '"no, never", left',
  ["Paris", "France", "Seine"],
  ["{{word}}", "zebra"],
  ["red", "green", "blue"],
  "red,,green , ",
  '"a ""b"" \\"c\\"", x',
  [4, "2"],
  ["ÖL", "stück"],
];

const EQUAL_VALUES = [
  ...VALUES,
  0,
  true,
  "true",
  null,
  { name: "Ada", age: 36 },
  [1, 2, 3],
  { a: [1, 2, { b: null }] },
  [],
  "null",
  -0,
];

const REFERENCES = [
  ...SENTENCES.filter((text) => text.trim() !== ""),
  "The {{word}} sat on a mat",
  "A fast brown fox jumps over a lazy dog.",
];
const REFERENCE_LISTS = [
  ["The cat sat", "the cat sat on the mat"],
  ["A dog.", "Paris is in France"],
  ["cats cats", "cats cats cats cats cats"],
];
const RATIOS = [undefined, 0.1, 0.25, 0.5, 0.75, 0.9, 1];

interface Source {
  outputs: readonly unknown[];
  /** A value that this output probably fits. */
  fit?: (output: string) => unknown;
  values?: readonly unknown[];
  thresholds?: readonly (number | undefined)[];
}

const firstWords = (output: string): string => output.split(" ").slice(0, 2).join(" ");
const withoutLastWord = (output: string): string => output.split(" ").slice(0, -1).join(" ") || output;
const isTemplate = (output: string): boolean => /\{[{%#]/.test(output);

const text = { outputs: SENTENCES, values: VALUES, fit: firstWords };
const list = { outputs: SENTENCES, values: LISTS, fit: (output: string) => output.split(" ").slice(0, 3) };
const similarity = {
  outputs: SENTENCES,
  fit: withoutLastWord,
  values: [...REFERENCES, ...REFERENCE_LISTS],
  thresholds: RATIOS,
};

const sources: Record<DeterministicType, Source> = {
  equals: { outputs: [...SENTENCES, ...JSONS], values: EQUAL_VALUES, fit: (output) => output },
  contains: text,
  icontains: text,
  "contains-any": list,
  "icontains-any": list,
  "contains-all": list,
  "icontains-all": list,
  "starts-with": {
    outputs: SENTENCES,
    fit: firstWords,
    values: VALUES.filter((value) => typeof value === "string"),
  },
  regex: { outputs: SENTENCES, values: PATTERNS },
  "is-json": { outputs: [...JSONS, { name: "Ada", age: 36 }], values: SCHEMAS },
  "contains-json": { outputs: [...JSONS, { name: "Ada", age: 36 }], values: SCHEMAS },
  "is-html": { outputs: HTMLS },
  "contains-html": { outputs: HTMLS },
  "is-sql": { outputs: SQLS, values: PERMISSIONS },
  "contains-sql": { outputs: SQLS, values: PERMISSIONS },
  "is-xml": { outputs: XMLS, values: ELEMENTS },
  "contains-xml": { outputs: XMLS, values: ELEMENTS },
  "is-refusal": { outputs: REFUSALS },
  levenshtein: {
    outputs: SENTENCES,
    fit: withoutLastWord,
    values: REFERENCES,
    thresholds: [undefined, 1, 2, 10, 30],
  },
  "rouge-n": { ...similarity, values: REFERENCES },
  bleu: similarity,
  gleu: similarity,
  latency: { outputs: SENTENCES, thresholds: [100, 250, 1_000] },
  cost: { outputs: SENTENCES, thresholds: [0.001, 0.01, 0.5] },
};

const WORDS = ["cat", "Paris", "fox", "x", "line"];
const WEIGHTS = [undefined, undefined, 0.5, 1, 2, 3.5];
const CASE_THRESHOLDS = [undefined, undefined, 0.3, 0.5, 2 / 3, 1];

/** The types take turns, so each has the same number of cases; a case has further assertions of other types. */
export function generateCases(count: number, seed: number): GeneratedCase[] {
  const random = seeded(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
  const isLikely = (share: number) => random() < share;

  const pickValue = (type: DeterministicType, output: unknown): unknown => {
    const { values = [undefined], fit } = sources[type];
    const isFit =
      fit && typeof output === "string" && output.trim() !== "" && !isTemplate(output) && isLikely(0.5);
    return isFit ? fit(output) : pick(values);
  };
  const assertionOf = (type: DeterministicType, output: unknown, isNegated = isLikely(0.4)): Assertion => {
    const [value, threshold, weight] = [
      pickValue(type, output),
      pick(sources[type].thresholds ?? [undefined]),
      pick(WEIGHTS),
    ];
    return {
      type: isNegated ? `not-${type}` : type,
      ...(value !== undefined && { value }),
      ...(threshold !== undefined && { threshold }),
      ...(weight !== undefined && { weight }),
    };
  };
  const setOf = (type: DeterministicType, output: unknown): AssertionSet => {
    const [threshold, weight] = [pick(CASE_THRESHOLDS), pick(WEIGHTS)];
    const members = [type, pick(deterministicTypes), pick(deterministicTypes)].slice(
      0,
      1 + Math.floor(random() * 3),
    );
    return {
      type: "assert-set",
      assert: members.map((member) => assertionOf(member, output)),
      ...(threshold !== undefined && { threshold }),
      ...(weight !== undefined && { weight }),
    };
  };
  const caseOf = (index: number): GeneratedCase => {
    const type = deterministicTypes[index % deterministicTypes.length]!;
    const isNegated = Math.floor(index / deterministicTypes.length) % 2 === 1;
    const output = pick(sources[type].outputs);
    const more = isLikely(0.4) ? [assertionOf(type, output)] : [];
    const sets = isLikely(0.4) ? [setOf(pick(deterministicTypes), output)] : [];
    const threshold = pick(CASE_THRESHOLDS);
    return {
      testCase: {
        title: `Case ${index + 1}`,
        isHidden: false,
        input: { word: pick(WORDS) },
        assert: [assertionOf(type, output, isNegated), ...more, ...sets],
        ...(threshold !== undefined && { threshold }),
      },
      run: {
        output,
        costUsd: pick([0, 0.001, 0.02, 1]),
        latencyMs: pick([80, 100, 900, 5_000]),
      },
    };
  };
  return Array.from({ length: count }, (_, index) => caseOf(index));
}
