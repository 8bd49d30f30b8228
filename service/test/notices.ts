import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { until } from "./until.ts";

/** A notice as a provider posted it. */
export interface PostedNotice {
  body: Buffer;
  headers: Record<string, string>;
}

export interface NoticeReceiver {
  url: string;
  notices: PostedNotice[];
  /** The first `count` notices that name an id, or any of a prefix such as `ord_`, once they are there. */
  naming(id: string, count?: number): Promise<PostedNotice[]>;
  close(): Promise<void>;
}

/** Takes what a payment provider posts; `answer` says by which status, of the first notice, the second and so on. */
export async function startNoticeReceiver(
  answer: (nth: number) => number = () => 200,
): Promise<NoticeReceiver> {
  const notices: PostedNotice[] = [];
  const server = createServer(async (request, response) => {
    const headers = request.headers as Record<string, string>;
    notices.push({ body: await buffer(request), headers });
    response.writeHead(answer(notices.length)).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/notices`,
    notices,
    naming: async (id, count = 1) => {
      const found = () => notices.filter((notice) => names(notice, id));
      await until(`${count} notices that name ${id}`, () => found().length >= count);
      return found().slice(0, count);
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

const names = (notice: PostedNotice, id: string): boolean =>
  Object.values(noticeIn(notice)).some((value) => value === id || (id.endsWith("_") && value.startsWith(id)));

export const noticeIn = ({ body }: PostedNotice): Record<string, string> => JSON.parse(body.toString("utf8"));
