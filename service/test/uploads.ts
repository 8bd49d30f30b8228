import assert from "node:assert/strict";
import sharp from "sharp";
import type { Client, Reply } from "./market.ts";

export interface UploadInput {
  name?: string;
  type?: string;
  bytes: string | Uint8Array<ArrayBuffer>;
  fields?: Record<string, string>;
  headers?: Record<string, string>;
}

/** Sends one file like a browser's form. */
export function send(
  client: Client,
  path: string,
  { name = "guide.md", type = "", bytes, fields = {}, headers = {} }: UploadInput,
): Promise<Reply> {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.set(field, value);
  form.set("file", new File([bytes], name, { type }));
  return client.request("POST", path, { body: form, headers });
}

export const sendFile = (client: Client, productId: string, sent: UploadInput) =>
  send(client, `/v1/products/${productId}/files`, sent);

export const sendImage = (client: Client, productId: string, sent: UploadInput) =>
  send(client, `/v1/products/${productId}/images`, { name: "picture.png", ...sent });

/** Uploads a valid file and returns `data`. */
export async function uploadFile(client: Client, productId: string, sent: Partial<UploadInput> = {}) {
  const reply = await sendFile(client, productId, { bytes: "# A guide\n", ...sent });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

/** A different picture for each color. */
export async function picture(options: { width?: number; height?: number; red?: number } = {}) {
  const { width = 8, height = 8, red = 200 } = options;
  const create = { width, height, channels: 3 as const, background: { r: red, g: 100, b: 50 } };
  return new Uint8Array(await sharp({ create }).png().toBuffer());
}
