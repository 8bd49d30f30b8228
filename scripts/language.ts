/**
 * Checks the language that docs/glossary.md sets: no retired word in a file name or an identifier, and no sentence over 30 words in
 * a guide or in a text of the OpenAPI document. `npm run check` runs it.
 */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

const ROOT = join(import.meta.dirname, "..");
const MAX_WORDS = 30;

/** Words that no file name and no identifier may contain, with the word to write instead. */
const retired = new Map([
  ["afresh", "again"],
  ["aftermath", "timeline"],
  ["bell", "wake-up"],
  ["courier", "delivery worker"],
  ["couriers", "delivery workers"],
  ["doer", "actor"],
  ["door", "endpoint, handler or server"],
  ["farewell", "account-closed email"],
  ["farewells", "account-closed handlers"],
  ["forgetting", "delete or erase"],
  ["goods", "products"],
  ["sayings", "messages"],
  ["hear", "sync, read or on…"],
  ["heard", "read or received"],
  ["knock", "request"],
  ["settling", "settle"],
  ["surroundings", "run context"],
  ["tally", "total"],
  ["told", "reported, returned or sent"],
  ["whoever", "the role: caller, owner, worker"],
  ["wish", "input, request or options"],
]);

const CODE = [
  "contract/src",
  "evaluation",
  "service/src",
  "service/test",
  "fake-payments",
  "e2e",
  "bench",
  "scripts",
].map((folder) => `${folder}/**/*.ts`);
const NOT_CODE = /\/\*[\s\S]*?\*\/|\/\/.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;
const IDENTIFIER = /[A-Za-z_$][\w$]*/g;

/** "hearOfOrder", "hear-of-order" and "HEAR_OF_ORDER" are hear, of, order. */
const wordsOf = (name: string): string[] =>
  name
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/);

function retiredNames(path: string): string[] {
  const code = readFileSync(join(ROOT, path), "utf8").replace(NOT_CODE, "");
  const names = new Set([basename(path), ...(code.match(IDENTIFIER) ?? [])]);
  return [...names].flatMap((name) =>
    wordsOf(name)
      .filter((word) => retired.has(word))
      .map((word) => `${path}: ${name}: "${word}" is retired, write ${retired.get(word)}`),
  );
}

/** The blocks of a Markdown text that hold sentences: paragraphs, list items and table cells, without code. */
function proseOf(markdown: string): string[] {
  return markdown
    .replace(/^```[\s\S]*?^```/gm, "")
    .split(/\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) ?)|\|/)
    .map((block) => block.replace(/`[^`]*`/g, "code").replace(/\]\([^)]*\)/g, ""));
}

const sentencesOf = (prose: string): string[] => prose.split(/(?<=[.!?])["”)*]*\s+/);

const isWord = (text: string) => /[\p{L}\p{N}]/u.test(text);

/** Each sentence over the limit, with its length and its first words. */
function longSentences(prose: string): string[] {
  return sentencesOf(prose).flatMap((sentence) => {
    const words = sentence.split(/\s+/).filter(isWord);
    return words.length > MAX_WORDS
      ? [`a sentence of ${words.length} words: ${words.slice(0, 8).join(" ")} …`]
      : [];
  });
}

function* textsOf(value: unknown, path: string): Generator<[path: string, text: string]> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if ((key === "summary" || key === "description") && typeof inner === "string")
      yield [`${path}/${key}`, inner];
    else yield* textsOf(inner, `${path}/${key}`);
  }
}

const files = globSync(CODE, { cwd: ROOT }).filter((path) => !path.includes("node_modules"));
const guides = globSync("docs/guides/*.md", { cwd: ROOT });
const openApi: unknown = JSON.parse(readFileSync(join(ROOT, "docs/openapi.gen.json"), "utf8"));

const problems = [
  ...files.flatMap(retiredNames),
  ...guides.flatMap((path) =>
    proseOf(readFileSync(join(ROOT, path), "utf8")).flatMap((prose) =>
      longSentences(prose).map((problem) => `${path}: ${problem}`),
    ),
  ),
  ...[...textsOf(openApi, "openapi")].flatMap(([path, text]) =>
    proseOf(text).flatMap((prose) => longSentences(prose).map((problem) => `${path}: ${problem}`)),
  ),
];

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exitCode = 1;
