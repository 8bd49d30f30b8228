/** Decodes a response. `allocate` gets the bytes of each chunk before the text grows by it, and throws if the text must not grow. */
export async function readText(
  body: AsyncIterable<Uint8Array> | null,
  allocate: (bytes: number) => void,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of body ?? []) {
    allocate(bytes.length);
    text += decoder.decode(bytes, { stream: true });
  }
  return text + decoder.decode();
}
