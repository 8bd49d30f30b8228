import { randomUUID } from "node:crypto";
import type { CreateProduct } from "@stoa/sdk";
import { CommandError } from "../errors.ts";
import { rememberFields } from "./compare.ts";
import type { LocalProject } from "./local-project.ts";
import { showWarnings } from "./mistakes.ts";
import { type Fields, syncedFields, versionFields } from "./product-fields.ts";
import type { Push } from "./push.ts";
import { readRemoteProduct } from "./remote-product.ts";
import { writeState } from "./state.ts";

/** Under a key that is stored before the request: after a lost response, a repeat gets the same product. */
export async function createOnce(work: Push): Promise<string> {
  const { stoa, local, state } = work;
  const isRepeat = state.creation !== undefined;
  const creation = state.creation ?? {
    idempotencyKey: randomUUID(),
    fields: toNewProduct(local),
    at: new Date().toISOString(),
  };
  mustBeRepeatable(creation.at, local.folder);
  state.creation = creation;
  await writeState(local.folder, state);
  const { fields, idempotencyKey } = creation;
  try {
    const { id, warnings } = await stoa.products.create(fields as unknown as CreateProduct, {
      idempotencyKey,
    });
    Object.assign(state, { id, creation: undefined });
    await writeState(local.folder, state);
    // What was edited since an interrupted request is a change.
    rememberFields(state, fields, (await readRemoteProduct(stoa, id)).product);
    await writeState(local.folder, state);
    showWarnings(work, warnings);
    return id;
  } catch (error) {
    if (state.id !== undefined || !isRefusal(error)) throw error;
    state.creation = undefined;
    await writeState(local.folder, state);
    if (!isRepeat) throw error;
  }
  return createOnce(work);
}

/** The service forgets idempotency keys after 24 hours; a margin is for clocks. */
const REPEATABLE_MS = 23 * 60 * 60_000;

function mustBeRepeatable(at: string, folder: string): void {
  if (Date.now() - Date.parse(at) < REPEATABLE_MS) return;
  throw new CommandError(
    `A push at ${at} was interrupted, and may have created the product`,
    `\`stoa products list --mine --sort createdAt\` shows it: \`stoa products pull <id> ${folder} --force\`. If it is not there, delete ${folder}/.stoa.`,
  );
}

/** Nothing was created. */
const isRefusal = (error: unknown): boolean => {
  const { status } = error as { status?: number };
  return status === 400 || status === 422;
};

const toNewProduct = ({ file }: LocalProject): Fields =>
  Object.fromEntries(
    [...syncedFields, ...versionFields]
      .map(
        (field) =>
          [field, field === "samples" ? withoutRuns(file.fields[field]) : file.fields[field]] as const,
      )
      .filter(([, value]) => value !== undefined),
  );

/** A sample of a run that another product had is one that its author typed: a new product has no runs. */
function withoutRuns(samples: unknown): unknown {
  if (!Array.isArray(samples)) return samples;
  return samples.map((sample) => {
    if (sample?.output === undefined || sample.input === undefined || sample.model === undefined)
      return sample;
    const { executionId: _, ...typed } = sample;
    return typed;
  });
}
