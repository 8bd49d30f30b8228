import { randomUUID } from "node:crypto";
import type { CreateProduct, ProductDetail, Stoa, UpdateProduct } from "@stoa/sdk";
import type { Cli } from "../cli.ts";
import { CommandError, Interrupted, UsageError } from "../errors.ts";
import { withoutControls } from "../output.ts";
import { openUpload } from "../progress.ts";
import { confirm, isInteractive } from "../prompts.ts";
import {
  type Comparison,
  compareProduct,
  listChanges,
  namesOf,
  rememberFields,
  unnamedImages,
} from "./compare.ts";
import { type LocalProject, requireLocalProject } from "./local-project.ts";
import { withMistakesAtLines } from "./mistakes.ts";
import { type Fields, syncedFields, versionFields } from "./product-fields.ts";
import { readRemoteProduct } from "./remote-product.ts";
import { isNewer, paintDiff, toDiff } from "./show-diff.ts";
import { newState, type ProjectState, readState, withLock, writeState } from "./state.ts";

export interface PushOptions {
  force?: boolean;
  yes?: boolean;
  publish?: boolean;
  changelog?: string;
}

interface Push {
  cli: Cli;
  stoa: Stoa;
  options: PushOptions;
  local: LocalProject;
  state: ProjectState;
}

/** Makes the product on the service what the folder has. Each step is remembered, so that a repeat goes on after an interruption. */
export async function push(cli: Cli, folder: string, options: PushOptions): Promise<ProductDetail> {
  const { baseUrl } = await cli.settings();
  const stoa = await cli.stoa();
  return withLock(folder, async () => {
    const local = await requireLocalProject(folder);
    const state = (await readState(folder, baseUrl)) ?? newState(baseUrl);
    const work: Push = { cli, stoa, options, local, state };
    const product = await withMistakesAtLines(local.file, () => sendChanges(work));
    return options.publish ? publish(work, product) : product;
  });
}

async function sendChanges(work: Push): Promise<ProductDetail> {
  const { state, stoa, options } = work;
  let hasAsked = false;
  if (state.id === undefined) {
    if (!state.creation) await showAndAsk(work, undefined, newComparison(work.local));
    hasAsked = true;
    state.id = await createOnce(work);
  }
  const { product, etag } = await readRemoteProduct(stoa, state.id);
  const comparison = compareProduct(work.local, product, state);
  const overwritten = listChanges(comparison, "remote", "both");
  if (overwritten.length > 0 && !options.force) throw conflictError(product.id, overwritten);
  if (!hasAsked) await showAndAsk(work, product, comparison);
  await sendFields(work, product, comparison, etag);
  await sendFiles(work, product, comparison);
  await sendImages(work, product, comparison);
  return (await readRemoteProduct(stoa, product.id)).product;
}

const newComparison = ({ files, images }: LocalProject): Comparison => ({
  fields: new Map(),
  files: new Map([...files.keys()].map((name) => [name, "local"])),
  images: new Map([...images.keys()].map((name) => [name, "local"])),
});

async function showAndAsk(
  { cli, options, local, state }: Push,
  product: ProductDetail | undefined,
  comparison: Comparison,
): Promise<void> {
  const lines = await toDiff({ name: local.file.name, local, product, comparison });
  if (lines.length === 0) return cli.output.say("Nothing has changed since the last push.");
  cli.output.say(paintDiff(lines, cli.output, process.stderr));
  if (options.yes || !isInteractive()) return;
  const { host } = new URL(state.baseUrl);
  const question = product ? `Push this to ${product.id} on ${host}?` : `Create this product on ${host}?`;
  if (!(await confirm(question, "Pass --yes."))) throw new Interrupted();
}

/** Under a key that is stored before the request: after a lost response, a repeat gets the same product. */
async function createOnce({ stoa, local, state }: Push): Promise<string> {
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
    const { id } = await stoa.products.create(fields as unknown as CreateProduct, { idempotencyKey });
    Object.assign(state, { id, creation: undefined });
    await writeState(local.folder, state);
    // What was edited since an interrupted request is a change.
    rememberFields(state, fields, (await readRemoteProduct(stoa, id)).product);
    await writeState(local.folder, state);
    return id;
  } catch (error) {
    if (state.id !== undefined || !isRefusal(error)) throw error;
    state.creation = undefined;
    await writeState(local.folder, state);
    if (!isRepeat) throw error;
  }
  return createOnce({ stoa, local, state } as Push);
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
      .map((field) => [field, file.fields[field]] as const)
      .filter(([, value]) => value !== undefined),
  );

/** Only what differs. `If-Match` guards the time since the product was read. */
async function sendFields(
  { stoa, local, state, options }: Push,
  product: ProductDetail,
  comparison: Comparison,
  etag: string | null,
): Promise<void> {
  const sides = options.force ? (["local", "both", "remote"] as const) : (["local"] as const);
  const { fields } = local.file;
  const names = namesOf(comparison.fields, sides).filter((field) => fields[field] !== undefined);
  const change: Fields = Object.fromEntries(names.map((field) => [field, fields[field]]));
  Object.assign(change, versionOf(local, product, names, options.changelog));
  if (Object.keys(change).length > 0) {
    const headers = etag === null ? {} : { "if-match": etag };
    try {
      const updated = await stoa.products.update(product.id, change as UpdateProduct, { headers });
      rememberFields(state, fields, updated);
    } catch (error) {
      throw (await toConflict(error, { stoa, local, state, product })) ?? error;
    }
  } else rememberFields(state, fields, product);
  await writeState(local.folder, state);
}

/** A version above the present one, and the changelog of new content. */
function versionOf(
  { file }: LocalProject,
  product: ProductDetail,
  changed: readonly string[],
  given: string | undefined,
): Fields {
  const { version, changelog } = file.fields;
  const isNew = version !== undefined && isNewer(String(version), product.version);
  const text = given ?? (changelog === product.changelog ? undefined : changelog);
  const hasVersion =
    isNew || ["content", "contentFormat", "variables"].some((field) => changed.includes(field));
  return {
    ...(isNew && { version: String(version) }),
    ...(hasVersion && text !== undefined && { changelog: text }),
  };
}

const conflictError = (id: string, changed: readonly string[]) =>
  new CommandError(
    `${id} has changed on the service since your last pull or push: ${changed.join(", ")}`,
    "`stoa products pull` brings these changes into the folder and keeps yours. `stoa products push --force` overwrites them.",
  );

/** 412: another change came between reading and writing. */
async function toConflict(
  error: unknown,
  { stoa, local, state, product }: Pick<Push, "stoa" | "local" | "state"> & { product: ProductDetail },
): Promise<CommandError | undefined> {
  if ((error as { status?: number }).status !== 412) return undefined;
  const now = await readRemoteProduct(stoa, product.id);
  const changed = listChanges(compareProduct(local, now.product, state), "remote", "both");
  return conflictError(product.id, changed.length > 0 ? changed : ["its status"]);
}

async function sendFiles(work: Push, product: ProductDetail, { files }: Comparison): Promise<void> {
  const { stoa, local, state, options, cli } = work;
  const changelog = options.changelog ?? (local.file.fields["changelog"] as string | undefined);
  for (const [name, change] of files) {
    const here = local.files.get(name);
    const there = product.files?.find((file) => file.name === name);
    if (change !== "same" && here) {
      cli.output.say(`Uploading files/${name}`);
      const { file, progress } = await openUpload(here.path, name);
      const form = { file, ...(changelog !== undefined && { changelog }) };
      const added = await stoa.files.create(product.id, form, UPLOAD).finally(() => progress.end());
      if (added.name !== name) throw renamedError(name, added.name);
    } else if (change !== "same" && there) {
      cli.output.say(`Removing files/${name}`);
      await stoa.files.delete(product.id, there.id);
    }
    if (here) state.files[name] = here.sha256;
    else delete state.files[name];
    await writeState(local.folder, state);
  }
}

const renamedError = (name: string, storedName: string) =>
  new UsageError(
    withoutControls(`The service stores files/${name} as ${storedName}`),
    "Rename the file in the folder, then repeat the push.",
  );

/** The largest file at 1 Mbit/s. */
const UPLOAD = { timeoutMs: 600_000 };

async function sendImages(work: Push, product: ProductDetail, { images }: Comparison): Promise<void> {
  const { stoa, local, state, cli } = work;
  const gallery = new Set(product.gallery.map(({ id }) => id));
  // First the removals: a product has at most ten images.
  for (const id of obsoleteImages(work, product)) {
    cli.output.say(`Removing the image ${id}`);
    await stoa.images.delete(product.id, id);
    gallery.delete(id);
  }
  for (const name of Object.keys(state.images)) if (!local.images.has(name)) delete state.images[name];
  for (const [name, { path, sha256, alt }] of local.images) {
    if (images.get(name) === "same") continue;
    cli.output.say(`Uploading images/${name}`);
    state.images[name] = { id: null, sha256, alt, remoteAlt: alt };
    await writeState(local.folder, state);
    const { file, progress } = await openUpload(path, name);
    const added = await stoa.images.create(product.id, { file, alt }, UPLOAD).finally(() => progress.end());
    state.images[name] = { id: added.id, sha256, alt, remoteAlt: added.alt };
    await writeState(local.folder, state);
  }
  await writeState(local.folder, state);
}

/** Images on the service that the folder has no longer, or has with other bytes. */
function obsoleteImages({ local, state }: Push, product: ProductDetail): string[] {
  const wanted = new Set(
    Object.entries(state.images)
      .filter(([name, { sha256 }]) => local.images.get(name)?.sha256 === sha256)
      .map(([, { id }]) => id),
  );
  const named = Object.values(state.images).map(({ id }) => id);
  const foreign = unnamedImages(product, state);
  return product.gallery
    .map(({ id }) => id)
    .filter((id) => !wanted.has(id) && (named.includes(id) || foreign.includes(id)));
}

/** Nothing to do for a product on sale, or one that waits for moderators. */
async function publish({ cli, stoa, local }: Push, product: ProductDetail): Promise<ProductDetail> {
  if (product.status === "published" || product.status === "pending_review") return product;
  const published = await withMistakesAtLines(local.file, () => stoa.products.publish(product.id));
  cli.output.say(published.status === "published" ? "Published." : "Sent to the moderators.");
  return published;
}
