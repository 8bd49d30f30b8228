import { Stoa } from "@stoa/sdk";

/** `fetch` tells nothing about the progress of what it sends. */
const fetchWithProgress =
  (onProgress: (share: number) => void): typeof fetch =>
  (input, init = {}) =>
    new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open(init.method ?? "GET", String(input));
      for (const [name, value] of new Headers(init.headers)) request.setRequestHeader(name, value);
      request.responseType = "arraybuffer";
      request.upload.onprogress = ({ loaded, total }) => total > 0 && onProgress(loaded / total);
      request.onload = () =>
        resolve(
          new Response(request.response as ArrayBuffer, {
            status: request.status,
            headers: headersOf(request),
          }),
        );
      request.onerror = () => reject(new TypeError("The upload did not reach the service"));
      request.onabort = () => reject(new DOMException("Aborted", "AbortError"));
      init.signal?.addEventListener("abort", () => request.abort(), { once: true });
      request.send(init.body as XMLHttpRequestBodyInit);
    });

function headersOf(request: XMLHttpRequest): Headers {
  const headers = new Headers();
  for (const line of request.getAllResponseHeaders().trim().split(/\r?\n/)) {
    const at = line.indexOf(":");
    if (at > 0) headers.append(line.slice(0, at), line.slice(at + 1).trim());
  }
  return headers;
}

/** The service for one upload, which reports its progress between 0 and 1. */
export const stoaForUpload = (onProgress: (share: number) => void): Stoa =>
  new Stoa({ baseUrl: `${location.origin}/v1`, fetch: fetchWithProgress(onProgress), timeoutMs: 600_000 });
