import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { UsageError } from "../errors.ts";
import { type LocalAttachment, listAttachments } from "./attachments.ts";
import { kindOf } from "./files.ts";
import { IMAGES_FIELD } from "./product-fields.ts";
import { type FileName, fileNames, type ProductFile, parseProductFile } from "./product-file.ts";

export interface LocalImage extends LocalAttachment {
  alt: string;
}

/** A product as files. */
export interface LocalProject {
  folder: string;
  file: ProductFile;
  files: Map<string, LocalAttachment>;
  images: Map<string, LocalImage>;
}

/** undefined: the folder has no product. */
export async function readLocalProject(folder: string): Promise<LocalProject | undefined> {
  const names: FileName[] = [];
  for (const name of Object.values(fileNames))
    if ((await kindOf(join(folder, name))) === "file") names.push(name);
  const [name, another] = names;
  if (another)
    throw new UsageError(
      `${folder} has both ${name} and ${another}`,
      "A folder holds one product: move one away.",
    );
  if (!name) return undefined;
  const file = await parseProductFile(name, await readFile(join(folder, name)));
  return { folder, file, ...(await readAttachments(folder, file)) };
}

export async function requireLocalProject(folder: string): Promise<LocalProject> {
  const project = await readLocalProject(folder);
  if (project) return project;
  throw new UsageError(
    `${folder} has neither ${fileNames.PROMPT} nor ${fileNames.WORKFLOW}`,
    "`stoa init <folder>` writes a sample, and `stoa products pull <id> <folder>` a product of yours.",
  );
}

export async function readAttachments(
  folder: string,
  file?: ProductFile,
): Promise<Pick<LocalProject, "files" | "images">> {
  const files = await listAttachments(join(folder, "files"));
  return { files, images: await listImages(join(folder, "images"), file) };
}

async function listImages(folder: string, file?: ProductFile): Promise<Map<string, LocalImage>> {
  const images = await listAttachments(folder);
  const alts = file ? readAlts(file) : new Map<string, string>();
  const unknown = [...alts.keys()].find((name) => !images.has(name));
  if (file && unknown !== undefined)
    throw new UsageError(
      `${file.name}:${file.lineOf(`${IMAGES_FIELD}`)}: images names ${JSON.stringify(unknown)}, which is not in ${folder}`,
      "Add the image, or remove the line.",
    );
  return new Map([...images].map(([name, image]) => [name, { ...image, alt: alts.get(name) ?? "" }]));
}

function readAlts({ name, fields, lineOf }: ProductFile): Map<string, string> {
  const given = fields[IMAGES_FIELD] ?? {};
  const isMapping = typeof given === "object" && given !== null && !Array.isArray(given);
  const entries = isMapping ? Object.entries(given) : [];
  if (isMapping && entries.every(([, alt]) => typeof alt === "string"))
    return new Map(entries.map(([image, alt]) => [image.normalize("NFC"), String(alt).trim()]));
  throw new UsageError(
    `${name}:${lineOf(IMAGES_FIELD)}: images must be lines such as cover.png: A drop of rain`,
    "Write what people see who cannot see the image.",
  );
}
