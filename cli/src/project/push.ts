import type { ProductDetail, Stoa, UpdateProduct } from "@stoa/sdk";
import type { Cli } from "../cli.ts";
import { CommandError, Interrupted } from "../errors.ts";
import { confirm, isInteractive } from "../prompts.ts";
import { type Comparison, compareProduct, listChanges, namesOf, rememberFields } from "./compare.ts";
import { createOnce } from "./create-product.ts";
import { type LocalProject, requireLocalProject } from "./local-project.ts";
import { showWarnings, withMistakesAtLines } from "./mistakes.ts";
import type { Fields } from "./product-fields.ts";
import { type RemoteProduct, readRemoteProduct } from "./remote-product.ts";
import { sendFiles, sendImages } from "./send-attachments.ts";
import { isNewer, paintDiff, toDiff } from "./show-diff.ts";
import { newState, type ProjectState, readState, withLock, writeState } from "./state.ts";

export interface PushOptions {
  force?: boolean;
  yes?: boolean;
  publish?: boolean;
  changelog?: string;
  acknowledgesRegression?: boolean;
}

export interface Push {
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
  // Before the lock: a wrong folder stays as it is.
  const local = await requireLocalProject(folder);
  return withLock(folder, async () => {
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
  const remote = await readRemoteProduct(stoa, state.id);
  const { product } = remote;
  const comparison = compareProduct(work.local, product, state);
  const overwritten = listChanges(comparison, "remote", "both");
  if (overwritten.length > 0 && !options.force) throw conflictError(product.id, overwritten);
  if (!hasAsked) await showAndAsk(work, product, comparison);
  await sendFields(work, remote, comparison);
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
  if (lines.length === 0) return cli.output.report("Nothing has changed since the last push.");
  cli.output.report(paintDiff(lines, cli.output, process.stderr));
  if (options.yes || !isInteractive()) return;
  const { host } = new URL(state.baseUrl);
  const question = product ? `Push this to ${product.id} on ${host}?` : `Create this product on ${host}?`;
  if (!(await confirm(question, "Pass --yes."))) throw new Interrupted();
}

/** Only what differs. `If-Match` guards the time since the product was read. */
async function sendFields(
  work: Push,
  { product, etag }: RemoteProduct,
  comparison: Comparison,
  isRepeat = false,
): Promise<void> {
  const { stoa, local, state, options } = work;
  const sides = options.force ? (["local", "both", "remote"] as const) : (["local"] as const);
  const { fields } = local.file;
  const names = namesOf(comparison.fields, sides).filter((field) => fields[field] !== undefined);
  const change: Fields = Object.fromEntries(names.map((field) => [field, fields[field]]));
  Object.assign(change, versionOf(local, product, names, options));
  if (Object.keys(change).length === 0) rememberFields(state, fields, product);
  else {
    const headers = etag === null ? {} : { "if-match": etag };
    try {
      const updated = await stoa.products.update(product.id, change as UpdateProduct, { headers });
      rememberFields(state, fields, updated);
      showWarnings(work, updated.warnings);
    } catch (error) {
      if (isRepeat || (error as { status?: number }).status !== 412) throw error;
      return sendAgain(work, product.id);
    }
  }
  await writeState(local.folder, state);
}

/** Another change came between reading and writing. A push overwrites nothing of a change of the status alone. */
async function sendAgain(work: Push, id: string): Promise<void> {
  const now = await readRemoteProduct(work.stoa, id);
  const comparison = compareProduct(work.local, now.product, work.state);
  const changed = listChanges(comparison, "remote", "both");
  if (changed.length > 0) throw conflictError(id, changed);
  await sendFields(work, now, comparison, true);
}

/** A version above the present one, and the changelog of new content. */
function versionOf(
  { file }: LocalProject,
  product: ProductDetail,
  changed: readonly string[],
  { changelog: given, acknowledgesRegression }: PushOptions,
): Fields {
  const { version, changelog } = file.fields;
  const isNew = version !== undefined && isNewer(String(version), product.version);
  const text = given ?? (changelog === product.changelog ? undefined : changelog);
  const hasVersion =
    isNew || ["content", "contentFormat", "variables"].some((field) => changed.includes(field));
  return {
    ...(isNew && { version: String(version) }),
    ...(hasVersion && text !== undefined && { changelog: text }),
    ...(hasVersion && acknowledgesRegression && { acknowledgesRegression }),
  };
}

const conflictError = (id: string, changed: readonly string[]) =>
  new CommandError(
    `${id} has changed on the service since your last pull or push: ${changed.join(", ")}`,
    "`stoa products pull` brings these changes into the folder and keeps yours. `stoa products push --force` overwrites them.",
  );

/** Nothing to do for a product on sale, or one that waits for moderators. */
async function publish({ cli, stoa, local }: Push, product: ProductDetail): Promise<ProductDetail> {
  if (product.status === "published" || product.status === "pending_review") return product;
  const published = await withMistakesAtLines(local.file, () => stoa.products.publish(product.id));
  cli.output.report(published.status === "published" ? "Published." : "Sent to the moderators.");
  return published;
}
