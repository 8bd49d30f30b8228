import type { EvaluationProofFile } from "../src/verify-evaluation.ts";

export interface ProofChange {
  /** What changed, for the message of a test. */
  name: string;
  proof: EvaluationProofFile;
}

type Container = Record<string, unknown> | unknown[];

/**
 * The proof with one change: each value that it has changed or removed, each list and object with something added. Of a list the first
 * and the last entry stand for all, which are alike.
 */
export function* changesOf(proof: EvaluationProofFile): Generator<ProofChange> {
  for (const path of placesOf(proof)) {
    const at = path.join(".");
    for (const value of otherValues(valueAt(proof, path)))
      yield changed(proof, `${at} = ${JSON.stringify(value)?.slice(-40)}`, (copy) => {
        const [parent, name] = parentOf(copy, path);
        (parent as Record<string, unknown>)[name] = value;
      });
    yield changed(proof, `${at} removed`, (copy) => {
      const [parent, name] = parentOf(copy, path);
      if (Array.isArray(parent)) parent.splice(Number(name), 1);
      else delete parent[name];
    });
  }
  for (const path of [[], ...placesOf(proof)]) {
    const container = valueAt(proof, path);
    if (typeof container !== "object" || container === null) continue;
    for (const value of Array.isArray(container) ? [null, {}, "x", container[0], container.at(-1)] : ["x"])
      yield changed(
        proof,
        `${path.join(".")} with another ${JSON.stringify(value)?.slice(0, 40)}`,
        (copy) => {
          const target = valueAt(copy, path) as Container;
          if (Array.isArray(target)) target.push(value);
          else target["added"] = value;
        },
      );
  }
}

function changed(
  proof: EvaluationProofFile,
  name: string,
  change: (copy: EvaluationProofFile) => void,
): ProofChange {
  const copy = structuredClone(proof);
  change(copy);
  return { name, proof: copy };
}

/** Values that differ from this one, though some of them only a little. */
function otherValues(value: unknown): unknown[] {
  if (typeof value === "number") return [value + 1, value - 1, -value - 1, String(value), null];
  if (typeof value === "boolean") return [!value, Number(value), null];
  if (typeof value === "string")
    return [...[0, value.length - 1].map((at) => withOther(value, at)), `${value}A`, `${value}=`, "", null];
  return value === null ? ["x", "", 0, {}] : [null, "x", {}, []].filter((one) => !isSame(one, value));
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** The next character: the last one of base64url has bits that no byte uses. */
const withOther = (text: string, at: number): string =>
  text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) + 1) + text.slice(at + 1);

function placesOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [];
  const entries = Object.entries(value);
  const shown = Array.isArray(value) && entries.length > 2 ? [entries[0]!, entries.at(-1)!] : entries;
  return shown.flatMap(([name, inner]) => {
    const place = [...path, name];
    return [place, ...placesOf(inner, place)];
  });
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce((inner, name) => (inner as Record<string, unknown>)[name], value);

const parentOf = (proof: EvaluationProofFile, path: readonly string[]): [Container, string] => [
  valueAt(proof, path.slice(0, -1)) as Container,
  path.at(-1)!,
];
