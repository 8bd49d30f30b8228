import type { ProductDetail } from "@stoa/sdk";
import { isAttachmentName } from "./attachments.ts";
import type { LocalProject } from "./local-project.ts";
import { type Fields, fingerprints, syncedFields, toFields } from "./product-fields.ts";
import type { ProjectState } from "./state.ts";

/** Which side changed since the last pull or push. "same": both have the same now. */
export type Change = "same" | "local" | "remote" | "both";

/** By name: of a field, a file or an image. Remote images without a name have their id. */
export interface Comparison {
  fields: Map<string, Change>;
  files: Map<string, Change>;
  images: Map<string, Change>;
}

/** The part of a folder that is compared. */
export type Comparable = Pick<LocalProject, "files" | "images"> & { file: { fields: Fields } };

export const compareProduct = (
  local: Comparable,
  remote: ProductDetail,
  state: ProjectState,
): Comparison => ({
  fields: compareFields(local, remote, state),
  files: compareFiles(local, remote, state),
  images: compareImages(local, remote, state),
});

function changeOf(
  [localNow, localThen]: [string | undefined, string | undefined],
  [remoteNow, remoteThen]: [string | undefined, string | undefined],
): Change {
  if (localNow === remoteNow) return "same";
  const [isLocal, isRemote] = [localNow !== localThen, remoteNow !== remoteThen];
  return isLocal && isRemote ? "both" : isLocal ? "local" : isRemote ? "remote" : "same";
}

function compareFields(
  { file }: Comparable,
  product: ProductDetail,
  { fields }: ProjectState,
): Map<string, Change> {
  const local = fingerprints(file.fields);
  const remote = fingerprints(toFields(product));
  return new Map(
    syncedFields.map((field) => {
      const then = fields[field];
      // A field that the file does not have stays as it is on the service.
      const isAbsent = local[field] === undefined;
      const now = isAbsent ? then?.local : local[field];
      const remoteThen = then ? then.remote : remote[field];
      if (isAbsent && !then) return [field, "same"];
      return [field, changeOf([now, then?.local], [remote[field], remoteThen])];
    }),
  );
}

function compareFiles(
  { files }: Comparable,
  product: ProductDetail,
  state: ProjectState,
): Map<string, Change> {
  const remote = new Map((product.files ?? []).map(({ name, sha256 }) => [name, sha256]));
  const names = new Set([...files.keys(), ...remote.keys(), ...Object.keys(state.files)]);
  return new Map(
    [...names].filter(isAttachmentName).map((name) => {
      const then = state.files[name];
      return [name, changeOf([files.get(name)?.sha256, then], [remote.get(name), then])];
    }),
  );
}

/** The service stores another encoding of each image, so the state stores which file each of its images is. */
function compareImages(
  { images }: Comparable,
  product: ProductDetail,
  state: ProjectState,
): Map<string, Change> {
  const gallery = new Map(product.gallery.map((image) => [image.id, image]));
  const changes = new Map<string, Change>();
  for (const name of new Set([...images.keys(), ...Object.keys(state.images)])) {
    const [here, then] = [images.get(name), state.images[name]];
    const there = then?.id ? gallery.get(then.id) : undefined;
    const stored = then?.id ? toFingerprint(then) : undefined;
    const alt = there?.alt === then?.remoteAlt ? then?.alt : there?.alt;
    const remoteNow = then && there && toFingerprint({ sha256: then.sha256, alt: alt ?? "" });
    changes.set(name, changeOf([here && toFingerprint(here), stored], [remoteNow, stored]));
  }
  for (const id of unnamedImages(product, state)) changes.set(id, "remote");
  return changes;
}

const toFingerprint = ({ sha256, alt }: { sha256: string; alt: string }) => `${sha256} ${alt}`;

/** Images that did not come from the folder. One whose upload was interrupted did. */
export function unnamedImages({ gallery }: ProductDetail, { images }: ProjectState): string[] {
  const ids = new Set(Object.values(images).map(({ id }) => id));
  const unnamed = gallery.map(({ id }) => id).filter((id) => !ids.has(id));
  return unnamed.length <= Object.values(images).filter(({ id }) => id === null).length ? [] : unnamed;
}

/** What changed on the sides given, as people read it. */
export const listChanges = ({ fields, files, images }: Comparison, ...sides: Change[]): string[] => [
  ...namesOf(fields, sides),
  ...namesOf(files, sides).map((name) => `files/${name}`),
  ...namesOf(images, sides).map((name) => `images/${name}`),
];

export const namesOf = (changes: Map<string, Change>, sides: readonly Change[]): string[] =>
  [...changes].filter(([, change]) => sides.includes(change)).map(([name]) => name);

/** The fields of both sides are the same now, or differ only in spelling. */
export function rememberFields(
  state: ProjectState,
  localFields: Fields,
  product: ProductDetail,
  names: readonly string[] = syncedFields,
): void {
  const [local, remote] = [fingerprints(localFields), fingerprints(toFields(product))];
  for (const name of names) state.fields[name] = { local: local[name], remote: remote[name] };
}
