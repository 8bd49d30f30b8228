import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { ProductDetail } from "@stoa/sdk";
import type { Cli } from "../cli.ts";
import { CommandError, UsageError } from "../errors.ts";
import { withoutControls } from "../output.ts";
import { isAttachmentName } from "./attachments.ts";
import {
  type Change,
  type Comparable,
  type Comparison,
  compareProduct,
  listChanges,
  namesOf,
  rememberFields,
  unnamedImages,
} from "./compare.ts";
import { kindOf, replaceFile } from "./files.ts";
import { readAttachments, readLocalProject } from "./local-project.ts";
import {
  type Fields,
  IMAGES_FIELD,
  isEmpty,
  isWorthWriting,
  syncedFields,
  toFields,
} from "./product-fields.ts";
import {
  fileNameOf,
  formatProductFile,
  inFileOrder,
  type ProductFile,
  updateProductFile,
} from "./product-file.ts";
import { readRemoteProduct } from "./remote-product.ts";
import { newState, type ProjectState, readState, withLock, writeState } from "./state.ts";

export interface PullOptions {
  force?: boolean;
}

/** Without a file at the first pull. */
type Local = Omit<Comparable, "file"> & { file?: ProductFile };

interface Pull {
  cli: Cli;
  folder: string;
  state: ProjectState;
  local: Local;
  product: ProductDetail;
  /** Names that take the service's value. */
  taken: (changes: Map<string, Change>) => string[];
  comparison: Comparison;
}

/** Brings a product into a folder. What changed only in the folder stays. Returns what was taken. */
export async function pull(
  cli: Cli,
  folder: string,
  id: string | undefined,
  { force = false }: PullOptions,
): Promise<{ product: ProductDetail; taken: string[] }> {
  const { baseUrl } = await cli.settings();
  const stoa = await cli.stoa();
  const stored = await readState(folder, baseUrl);
  const productId = stored?.id ?? id;
  if (productId === undefined)
    throw new UsageError(`${folder} has no product yet`, "Name it: stoa products pull prod_… <folder>.");
  if (id !== undefined && productId !== id)
    throw new UsageError(`${folder} holds ${productId}`, "Pull another product into another folder.");
  // Before anything is written: a wrong id leaves no folder, and a wrong folder stays as it is.
  if (!stored?.id && !force) await mustBeFree(folder);
  const { product } = await readRemoteProduct(stoa, productId);
  return withLock(folder, async () => {
    const state = (await readState(folder, baseUrl)) ?? newState(baseUrl, productId);
    const local = await readOrReplace(folder, force);
    state.id = productId;
    const fields = local.file?.fields ?? {};
    const comparison = compareProduct({ ...local, file: { fields } }, product, state);
    const sides = force ? (["remote", "both", "local"] as const) : (["remote"] as const);
    const work = { cli, folder, state, local, product, comparison };
    mustNotConflict(work, force);
    return takeChanges({ ...work, taken: (changes) => namesOf(changes, sides) });
  });
}

async function mustBeFree(folder: string): Promise<void> {
  const project = await readLocalProject(folder);
  if (project)
    throw new UsageError(
      `${folder} already has ${project.file.name}`,
      "Pull into another folder, or pass --force.",
    );
}

/** With --force, a file that cannot be read is replaced. */
async function readOrReplace(folder: string, force: boolean): Promise<Local> {
  try {
    const project = await readLocalProject(folder);
    if (project) return project;
  } catch (error) {
    if (!force || !(error instanceof UsageError)) throw error;
  }
  return readAttachments(folder);
}

function mustNotConflict({ comparison, product }: Omit<Pull, "taken">, force: boolean): void {
  const conflicts = listChanges(comparison, "both");
  if (force || conflicts.length === 0) return;
  throw new CommandError(
    `Both the folder and ${product.id} on the service have changed: ${conflicts.join(", ")}`,
    "`stoa products diff` shows both. `stoa products pull --force` discards your changes, `stoa products push --force` those of the service.",
  );
}

async function takeChanges(work: Pull): Promise<{ product: ProductDetail; taken: string[] }> {
  const { folder, state, product, local, comparison } = work;
  const files = await takeFiles(work);
  const images = await takeImages(work);
  const fields = await takeFields(work, images.alts);
  state.creation = undefined;
  const localFields = (await readLocalProject(folder))?.file.fields ?? {};
  const kept = new Set(local.file ? namesOf(comparison.fields, ["local"]) : []);
  for (const field of fields) kept.delete(field);
  rememberFields(
    state,
    localFields,
    product,
    syncedFields.filter((field) => !kept.has(field)),
  );
  await writeState(folder, state);
  const named = [files.map((name) => `files/${name}`), images.names.map((name) => `images/${name}`)];
  return { product, taken: [...fields, ...named.flat()] };
}

async function takeFiles({ cli, folder, state, product, comparison, taken }: Pull): Promise<string[]> {
  const names = taken(comparison.files);
  for (const name of names) {
    const path = join(await subfolder(folder, "files"), name);
    const there = product.files?.find((file) => file.name === name);
    if (!there) {
      // With --force too, a file that the service never had stays.
      if (state.files[name] !== undefined) await rm(path, { force: true });
      delete state.files[name];
      continue;
    }
    cli.output.report(`Downloading files/${name}`);
    const bytes = await download(cli, there.url, `files/${name}`);
    if (createHash("sha256").update(bytes).digest("hex") !== there.sha256)
      throw new CommandError(`files/${name} arrived damaged`, "Repeat the command.");
    await replaceFile(path, bytes);
    state.files[name] = there.sha256;
    // An interrupted pull goes on from here.
    await writeState(folder, state);
  }
  for (const { name, sha256 } of product.files ?? [])
    if (comparison.files.get(name) === "same") state.files[name] = sha256;
    else if (!isAttachmentName(name))
      cli.output.report(
        withoutControls(`Left out the service's file ${JSON.stringify(name)}: no usual name.`),
      );
  return names;
}

/** A link could lead out of the project. */
async function subfolder(folder: string, name: string): Promise<string> {
  const path = join(folder, name);
  if ((await kindOf(path)) === "file")
    throw new UsageError(`${path} is a file, and must be a folder`, "Move the file away.");
  return path;
}

/** The addresses carry their own permission: no key is sent to them. */
async function download(cli: Cli, url: string, what: string): Promise<Uint8Array> {
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new CommandError(`The service gave no usable address for ${what}`);
  try {
    const response = await fetch(url, { signal: cli.signal });
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
    throw new Error(`status ${response.status}`);
  } catch (error) {
    if (cli.signal.aborted) throw error;
    throw new CommandError(`Cannot download ${what}: ${(error as Error).message}`, "Repeat the command.");
  }
}

/** The service has no names of images, so new ones get numbers. Returns the names and the alternative texts of all. */
async function takeImages(
  work: Pull,
): Promise<{ names: string[]; alts: Record<string, string> | undefined }> {
  const { cli, folder, state, product, local, comparison, taken } = work;
  const unnamed = new Set(unnamedImages(product, state));
  const names: string[] = [];
  const nameOfId = new Map(Object.entries(state.images).map(([name, { id }]) => [id, name]));
  const alts = new Map([...local.images].map(([name, { alt }]) => [name, alt]));
  for (const key of taken(comparison.images)) {
    const image = product.gallery.find(({ id }) => id === (unnamed.has(key) ? key : state.images[key]?.id));
    const known = image && nameOfId.get(image.id);
    const name = known ?? (image ? freeName(new Set([...alts.keys(), ...Object.keys(state.images)])) : key);
    const path = join(await subfolder(folder, "images"), name);
    if (image) {
      const sha256 = await takeImage(work, { name, path, url: image.url });
      state.images[name] = { id: image.id, sha256, alt: image.alt, remoteAlt: image.alt };
      await writeState(folder, state);
      alts.set(name, image.alt);
    } else if (state.images[key] !== undefined) {
      await rm(path, { force: true });
      delete state.images[key];
      alts.delete(key);
    } else continue;
    names.push(name);
  }
  if (names.length > 0)
    cli.output.report(`Updated ${names.length} ${names.length === 1 ? "image" : "images"}.`);
  const described = [...alts].filter(([, alt]) => alt !== "");
  return { names, alts: names.length > 0 ? Object.fromEntries(described) : undefined };
}

/** Bytes that are here stay: the service has only its own encoding. Returns their SHA-256. */
async function takeImage(
  { cli, state, local }: Pull,
  { name, path, url }: { name: string; path: string; url: string },
): Promise<string> {
  const here = local.images.get(name)?.sha256;
  if (here !== undefined && here === state.images[name]?.sha256) return here;
  const bytes = await download(cli, url, `images/${name}`);
  await replaceFile(path, bytes);
  return createHash("sha256").update(bytes).digest("hex");
}

function freeName(names: ReadonlySet<string>): string {
  for (let number = 1; ; number++) {
    const name = `${String(number).padStart(2, "0")}.webp`;
    if (!names.has(name)) return name;
  }
}

async function takeFields(work: Pull, alts: Record<string, string> | undefined): Promise<string[]> {
  const { folder, local, product, comparison, taken } = work;
  const remote = toFields(product);
  const name = fileNameOf(product.type);
  const images = alts && { [IMAGES_FIELD]: isEmpty(alts) ? undefined : alts };
  if (local.file?.name !== name) {
    const fields = syncedFields.filter(
      (field) => field === "content" || isWorthWriting(field, remote[field], remote),
    );
    const written = Object.fromEntries(fields.map((field) => [field, remote[field]]));
    await replaceFile(
      join(folder, name),
      await formatProductFile(name, inFileOrder({ ...written, ...images })),
    );
    if (local.file) await rm(join(folder, local.file.name));
    return fields;
  }
  const { fields } = local.file;
  const isWritten = (field: string) =>
    fields[field] !== undefined || isWorthWriting(field, remote[field], remote);
  const names = taken(comparison.fields).filter(isWritten);
  const changes: Fields = {
    ...Object.fromEntries(names.map((field) => [field, remote[field] ?? undefined])),
    ...images,
  };
  if (Object.keys(changes).length > 0)
    await replaceFile(join(folder, name), await updateProductFile(local.file, changes));
  return names;
}
