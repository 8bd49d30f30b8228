import type { Context, Member, RequestSource } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { requireUuid, toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";
import { type StoredFile, toProductFile } from "../products/attachments.ts";
import { authorizeChange } from "../products/ownership.ts";
import { changeAttachments } from "../products/products.ts";
import { fileKey, storeBlob } from "./blobs.ts";
import { isSameName, toFileName } from "./file-name.ts";
import { checkFileType } from "./file-type-check.ts";

const MAX_FILES = 20;
const MIB = 1024 * 1024;
const MAX_TOTAL_BYTES = 200 * MIB;

/** Adds a file, or replaces the one of the same name. Equal bytes under the same name change nothing. */
export async function addFile(
  ctx: Context,
  caller: Member,
  productId: string,
  upload: UploadedFile,
  { changelog, source }: { changelog: string | undefined; source: RequestSource },
) {
  // Checked again: the caller may have lost the right during the upload.
  const { id } = await authorizeChange(ctx, caller, productId);
  const name = toFileName(upload.name);
  const { type } = await checkFileType(upload, name);
  const { size, sha256 } = upload;
  await storeBlob(ctx, { key: fileKey(sha256), sha256, size, source: upload });
  const file = { id: ctx.newId(), name, size, type, sha256 };
  const product = await changeAttachments(ctx, { caller, source }, id, ({ files }) => ({
    files: addOrReplaceFile(files, file),
    ...(changelog !== undefined && { changelog }),
  }));
  const stored = required(
    product.files.find((one) => one.name === name),
    "the file that was stored",
  );
  return { ...toProductFile(ctx, id, stored, caller), version: product.version };
}

function addOrReplaceFile(files: StoredFile[], file: StoredFile): StoredFile[] {
  if (files.some(({ name, sha256 }) => name === file.name && sha256 === file.sha256)) return files;
  const others = files.filter(({ name }) => !isSameName(name, file.name));
  if (others.length >= MAX_FILES)
    throw ruleViolation(
      "file",
      `is one too many: a version has at most ${MAX_FILES} files, take one away first`,
    );
  const total = others.reduce((sum, { size }) => sum + size, file.size);
  if (total > MAX_TOTAL_BYTES)
    throw ruleViolation(
      "file",
      `makes it too much: the files of a version have at most ${MAX_TOTAL_BYTES / MIB} MiB`,
    );
  return [...others, file];
}

export async function removeFile(
  ctx: Context,
  caller: Member,
  ids: { productId: string; fileId: string },
  source: RequestSource,
) {
  const { id } = await authorizeChange(ctx, caller, ids.productId);
  const fileId = toUuid("file", ids.fileId);
  const { version } = await changeAttachments(ctx, { caller, source }, id, ({ files }) => {
    if (!files.some((file) => file.id === fileId)) throw new ApiError("FILE_NOT_FOUND");
    return { files: files.filter((file) => file.id !== fileId) };
  });
  return { id: toId("file", requireUuid("file", ids.fileId)), version };
}
