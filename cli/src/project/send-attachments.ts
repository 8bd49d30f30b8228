import type { ProductDetail } from "@stoa/sdk";
import { UsageError } from "../errors.ts";
import { withoutControls } from "../output.ts";
import { openUpload, UPLOAD } from "../progress.ts";
import { type Comparison, unnamedImages } from "./compare.ts";
import type { Push } from "./push.ts";
import { writeState } from "./state.ts";

/** Uploads new and changed files, and removes the others. */
export async function sendFiles(work: Push, product: ProductDetail, { files }: Comparison): Promise<void> {
  const { stoa, local, state, options, cli } = work;
  const changelog = options.changelog ?? (local.file.fields["changelog"] as string | undefined);
  for (const [name, change] of files) {
    const here = local.files.get(name);
    const there = product.files?.find((file) => file.name === name);
    if (change !== "same" && here) {
      cli.output.report(`Uploading files/${name}`);
      const { file, progress } = await openUpload(here.path, name);
      const form = { file, ...(changelog !== undefined && { changelog }) };
      const added = await stoa.files.create(product.id, form, UPLOAD).finally(() => progress.end());
      if (added.name !== name) throw renamedError(name, added.name);
    } else if (change !== "same" && there) {
      cli.output.report(`Removing files/${name}`);
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

export async function sendImages(work: Push, product: ProductDetail, { images }: Comparison): Promise<void> {
  const { stoa, local, state, cli } = work;
  // First the removals: a product has at most ten images.
  for (const id of obsoleteImages(work, product)) {
    cli.output.report(`Removing the image ${id}`);
    await stoa.images.delete(product.id, id);
  }
  for (const name of Object.keys(state.images)) if (!local.images.has(name)) delete state.images[name];
  for (const [name, { path, sha256, alt }] of local.images) {
    if (images.get(name) === "same") continue;
    cli.output.report(`Uploading images/${name}`);
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
