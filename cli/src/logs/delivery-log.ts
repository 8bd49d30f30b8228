import type { Stoa, WebhookDelivery } from "@stoa/sdk";
import type { Column } from "../output.ts";
import type { Log } from "./follow.ts";

/** One attempt of a delivery. */
interface DeliveryLine {
  time: string;
  type: string;
  endpoint: string;
  attempt: number;
  /** null: no response. */
  status: number | null;
  error: string | null;
  durationMs: number;
  eventId: string;
  deliveryId: string;
}

export const deliveryColumns: readonly Column<DeliveryLine>[] = [
  { field: "time" },
  { field: "type" },
  { field: "endpoint" },
  { field: "attempt", format: ({ attempt }) => `#${attempt}` },
  { field: "status", format: ({ status, error }) => status ?? error },
  { field: "durationMs", title: "duration", format: ({ durationMs }) => `${durationMs} ms` },
  { field: "deliveryId", title: "delivery" },
];

const MAX_PAGE = 100;
/** At once. An account's quota counts each request. */
const PARALLEL = 4;

/** The attempts of all deliveries, each once. */
export class DeliveryLog implements Log<DeliveryLine> {
  /** Those of the last read, without the attempts of the past. */
  cost = 1;
  readonly #stoa: Stoa;
  readonly #endpointId: string | undefined;
  /** Attempts that were read, by delivery. */
  readonly #read = new Map<string, number>();
  #isFirst = true;

  constructor(stoa: Stoa, endpointId: string | undefined) {
    this.#stoa = stoa;
    this.#endpointId = endpointId;
  }

  /** What is new in the newest deliveries of each endpoint and in those that are retried, oldest first. */
  async read(limit: number): Promise<DeliveryLine[]> {
    const isFirst = this.#isFirst;
    const changed = (await this.#listDeliveries()).filter(
      ({ id, attempt }) => attempt > this.#attemptsOf(id),
    );
    const order = isFirst ? -1 : 1;
    changed.sort((a, b) => order * a.createdAt.localeCompare(b.createdAt));
    const shown = changed.slice(0, limit);
    if (!isFirst) this.cost += shown.length;
    const lines: DeliveryLine[] = [];
    for (let at = 0; at < shown.length; at += PARALLEL)
      lines.push(
        ...(await Promise.all(shown.slice(at, at + PARALLEL).map((each) => this.#readAttempts(each)))).flat(),
      );
    // Later, the next read continues with the rest.
    if (isFirst) for (const { id, attempt } of changed.slice(limit)) this.#read.set(id, attempt);
    this.#isFirst = false;
    lines.sort((a, b) => a.time.localeCompare(b.time));
    return isFirst ? lines.slice(Math.max(0, lines.length - limit)) : lines;
  }

  async #listDeliveries(): Promise<WebhookDelivery[]> {
    const ids = this.#endpointId
      ? [this.#endpointId]
      : (await this.#stoa.webhooks.list({ limit: MAX_PAGE }).page()).data.map(({ id }) => id);
    this.cost = 1 + 2 * ids.length;
    const pages = await Promise.all(
      ids.flatMap((id) => [
        this.#stoa.webhooks.deliveries(id, { limit: MAX_PAGE }).page(),
        this.#stoa.webhooks.deliveries(id, { limit: MAX_PAGE, status: "retrying" }).page(),
      ]),
    );
    return [...new Map(pages.flatMap(({ data }) => data).map((each) => [each.id, each])).values()];
  }

  async #readAttempts({ id, endpointId, eventId, eventType }: WebhookDelivery): Promise<DeliveryLine[]> {
    const { attempts } = await this.#stoa.deliveries.get(id);
    const seen = this.#attemptsOf(id);
    const ended = attempts.filter(({ n }) => n > seen);
    this.#read.set(id, Math.max(seen, ...attempts.map(({ n }) => n)));
    return ended.map(({ n, at, durationMs, response, error }) => ({
      ...{ time: at, type: eventType, endpoint: endpointId, attempt: n, durationMs, eventId, deliveryId: id },
      ...{ status: response?.status ?? null, error: error?.code ?? null },
    }));
  }

  #attemptsOf = (id: string): number => this.#read.get(id) ?? 0;
}
