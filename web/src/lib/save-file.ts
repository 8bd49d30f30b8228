/** Offers a text or bytes as a file to save. */
export function saveFile(name: string, type: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Saves a file that the service sent, under the name that it gives. */
export async function saveResponse(response: Response): Promise<void> {
  const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition") ?? "")?.[1];
  saveFile(name ?? "download", response.headers.get("content-type") ?? "", await response.blob());
}
