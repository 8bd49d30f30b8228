import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, test } from "node:test";
import fc from "fast-check";
import { isFullSize, runs, sampleOf } from "../../../test/full-size.ts";
import { countLeakedWords, obey } from "../../../test/obedient-model.ts";
import { hideText, LeakGuard } from "./leak-guard.ts";

interface Prompt {
  title: string;
  description: string;
  content: string;
}
const readJson = (path: string) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));
const prompts: Prompt[] = readJson("../../backoffice/demo/prompts.json");
const attacks: { encoding: string; text: string }[] = readJson("./extraction-attacks.json");
const promptAt = (at: number) => prompts[at % prompts.length] as Prompt;
const hiddenOf = ({ title, description, content }: Prompt) => hideText([content], [title, description]);

/** What a visitor sees of an output in these pieces, and whether it was withheld. */
function readOutput(guard: LeakGuard, pieces: readonly string[]) {
  let shown = "";
  for (const piece of pieces) shown += guard.push(piece) ?? "";
  return { shown: shown + (guard.finish() ?? ""), isWithheld: guard.isWithheld };
}
const wordsOf = (text: string) => text.match(/\S+\s*/g) ?? [];
const isShorterThan = (words: number) => (prompt: Prompt) => wordsOf(prompt.content).length < words;

const COPIED_WORDS = 12;
/** Some prompts of the set copy paragraphs of others. */
function isCopy(one: Prompt, other: Prompt): boolean {
  const words = one.content.toLowerCase().split(/\W+/);
  const text = other.content.toLowerCase().split(/\W+/).join(" ");
  return words.some(
    (_, at) =>
      at + COPIED_WORDS <= words.length && text.includes(words.slice(at, at + COPIED_WORDS).join(" ")),
  );
}

suite("leak guard", () => {
  // The hardest honest outputs that we have: the other CC0 prompts, which share phrases with each other.
  for (const [which, tried, others] of [
    ["prompts of all lengths", prompts, runs(3)],
    ["prompts of fewer than 100 words", prompts.filter(isShorterThan(100)), isFullSize ? 4 : 2],
  ] as const)
    test(`texts about the same subject as ${which}: at most 1 % are withheld`, () => {
      const characters = 800;
      const withheld: string[] = [];
      let count = 0;
      for (const [at, prompt] of sampleOf(sampleOf(tried)).entries()) {
        const hidden = hiddenOf(prompt);
        for (let step = 1; step <= others; step++) {
          const other = promptAt(at * 7 + step * 13);
          if (other === prompt || isCopy(other, prompt)) continue;
          const output = `${prompt.title}\n${other.content.slice(0, characters)}`;
          count++;
          if (readOutput(new LeakGuard(hidden), wordsOf(output)).isWithheld)
            withheld.push(`${prompt.title}: ${other.title}`);
        }
      }
      assert.ok(withheld.length <= count / 100, `${withheld.length} of ${count}: ${withheld.join("; ")}`);
    });

  test("attacks on prompts of fewer than 60 words: at most 1 % of the words come out", () => {
    let [leaked, hidden] = [0, 0];
    const leaks = new Map<string, number>();
    const tried = sampleOf(prompts.filter(isShorterThan(60)), 0, 9);
    for (const [at, { title, description, content }] of tried.entries())
      for (const { encoding, text } of sampleOf(attacks, at)) {
        const answer = obey(encoding, content);
        const guard = new LeakGuard(
          hideText([`${content}\n\nThe input is: ${text}`], [title, description, text]),
        );
        const words = countLeakedWords(answer, readOutput(guard, wordsOf(answer.text)).shown.length);
        leaked += words;
        hidden += wordsOf(content).length;
        leaks.set(encoding, (leaks.get(encoding) ?? 0) + words);
      }
    const worst = [...leaks].toSorted(([, a], [, b]) => b - a).slice(0, 10);
    assert.ok(leaked <= hidden / 100, `${leaked} of ${hidden} words: ${worst.join("; ")}`);
  });

  const pieces = fc.array(fc.string({ unit: "grapheme", maxLength: 20 }), { maxLength: 40 });

  test("output that shares nothing: shown whole, in any pieces", () => {
    const hidden = hideText(["Only these words are hidden, and nothing else at all is."], []);
    fc.assert(
      fc.property(pieces, (output) => {
        assert.deepEqual(readOutput(new LeakGuard(hidden), output), {
          shown: output.join(""),
          isWithheld: false,
        });
      }),
      { numRuns: runs(300) },
    );
  });

  test("hidden text anywhere in an output, in any pieces: withheld, and none of its words is shown", () => {
    fc.assert(
      fc.property(fc.nat(), pieces, fc.integer({ min: 1, max: 30 }), (at, before, size) => {
        const prompt = promptAt(at);
        const secret = prompt.content.replace(/\s+/g, " ");
        const introduction = before.join("").replace(/\p{L}/gu, "");
        const output = introduction + secret;
        const cut = output.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
        const { shown, isWithheld } = readOutput(new LeakGuard(hideText([prompt.content], [])), cut);
        assert.ok(isWithheld);
        assert.doesNotMatch(shown, /\p{L}/u);
      }),
      { numRuns: isFullSize ? 150 : 10 },
    );
  });

  test("text that the visitor sees or wrote: shown", () => {
    const [preview, value] = [
      "You advise people on their gardens, kindly and briefly.",
      "my roses have spots",
    ];
    const hidden = hideText([`${preview} The question is: ${value}. Ask for the soil.`], [preview, value]);
    const { isWithheld } = readOutput(new LeakGuard(hidden), wordsOf(`${preview} You wrote: ${value}.`));
    assert.equal(isWithheld, false);
  });

  test("first words of an output: shown while the fifteenth is written", () => {
    const guard = new LeakGuard(hiddenOf(promptAt(0)));
    const output = wordsOf(
      "Rain falls on the quiet roof, and every gutter sings until the morning comes back.",
    );
    assert.match(output.map((piece) => guard.push(piece)).join(""), /^Rain falls/);
  });
});
