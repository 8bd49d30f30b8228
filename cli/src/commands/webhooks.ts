import type {
  DeliveryAttempt,
  NewWebhookEndpoint,
  RotatedWebhookSecret,
  UpdateWebhookEndpoint,
  WebhookDelivery,
  WebhookDeliveryDetail,
  WebhookEndpoint,
  WebhookRecovery,
  WebhookStats,
} from "@stoa/sdk";
import type { Command } from "commander";
import { decimal } from "../command.ts";
import { type BodyOptions, bodyOptions, readBody } from "../fields.ts";
import { percent, time } from "../format.ts";
import type { Column } from "../output.ts";
import { listCommand, objectCommand } from "../resource.ts";

const columns: Column<WebhookEndpoint>[] = [
  { field: "id", title: "Endpoint" },
  { field: "url", title: "URL" },
  { field: "eventTypes", title: "Events", format: ({ eventTypes }) => eventTypes?.join(", ") ?? "all" },
  { field: "enabled", title: "Enabled" },
  { field: "createdAt", title: "Created", format: ({ createdAt }) => time(createdAt) },
];

const deliveryColumns: Column<WebhookDelivery>[] = [
  { field: "id", title: "Delivery" },
  { field: "eventType", title: "Event" },
  { field: "eventId", title: "Event id" },
  { field: "status", title: "Status" },
  { field: "attempt", title: "Attempt" },
  { field: "lastAttempt", title: "Response", format: ({ lastAttempt }) => responseOf(lastAttempt) },
  { field: "nextAttemptAt", title: "Next attempt", format: ({ nextAttemptAt }) => time(nextAttemptAt) },
];

/** The status of a response, or why there is none. */
const responseOf = (last: WebhookDelivery["lastAttempt"]) =>
  last === null ? null : (last.responseStatus ?? last.errorCode);

const statsColumns: Column<WebhookStats>[] = [
  { field: "successRate", title: "success", format: ({ successRate }) => percent(successRate) },
  { field: "deliveries.succeeded", title: "succeeded" },
  { field: "deliveries.failed", title: "failed" },
  { field: "deliveries.retrying", title: "retrying" },
  { field: "durationMs.p50", title: "median (ms)" },
  { field: "durationMs.p95", title: "95 % within (ms)" },
  { field: "failingSince", title: "failing since", format: ({ failingSince }) => time(failingSince) },
];

const recoveryColumns: Column<WebhookRecovery>[] = [
  { field: "id" },
  { field: "status" },
  { field: "recovered" },
  { field: "total" },
];

interface DeliveryFilters {
  status?: string;
  event?: string;
  type?: string;
  response?: string;
}

interface EndpointOptions extends BodyOptions {
  url?: string;
  events?: string;
  description?: string;
  enabled?: boolean;
}

const endpointOptions = (command: Command) =>
  bodyOptions(
    command
      .option("--url <url>", "where deliveries go")
      .option("--events <types>", "event types with commas, or all")
      .option("--description <text>", "what the endpoint is for"),
  );

const endpointBody = ({ url, events, description, enabled, ...body }: EndpointOptions) =>
  readBody<UpdateWebhookEndpoint>(body, {
    ...(url !== undefined && { url }),
    ...(description !== undefined && { description }),
    ...(enabled !== undefined && { enabled }),
    ...(events !== undefined && { eventTypes: events === "all" ? null : events.split(",") }),
  });

export default function define(command: Command): void {
  defineEndpoints(command);
  defineDeliveries(command);
}

function defineEndpoints(command: Command): void {
  listCommand<WebhookEndpoint>(command, {
    name: "list",
    description: "List your webhook endpoints",
    examples: ["stoa webhooks list"],
    columns,
    open: (stoa, page) => stoa.webhooks.list(page),
  });
  objectCommand<WebhookEndpoint>(command, {
    name: "get <endpoint>",
    description: "Show an endpoint",
    examples: ["stoa webhooks get whk_…"],
    columns,
    call: (stoa, _options, [endpoint = ""]) => stoa.webhooks.get(endpoint),
  });
  objectCommand<NewWebhookEndpoint, EndpointOptions>(command, {
    name: "create",
    description: "Create an endpoint; its secret is shown once",
    options: endpointOptions,
    examples: ["stoa webhooks create --url https://example.com/hook --events purchase.completed"],
    columns: [...columns, { field: "secret" }] as Column<NewWebhookEndpoint>[],
    call: async (stoa, options) => stoa.webhooks.create((await endpointBody(options)) as { url: string }),
    message: () => "Store the secret: it is not shown again.",
  });
  objectCommand<WebhookEndpoint, EndpointOptions>(command, {
    name: "update <endpoint>",
    description: "Change an endpoint, or disable and enable it",
    options: (update) =>
      endpointOptions(update).option("--enable", "deliver").option("--disable", "do not deliver"),
    examples: ["stoa webhooks update whk_… --events all", "stoa webhooks update whk_… --disable"],
    columns,
    call: async (stoa, options, [endpoint = ""]) => {
      const { enable, disable, ...rest } = options as EndpointOptions & {
        enable?: boolean;
        disable?: boolean;
      };
      const enabled = enable ? true : disable ? false : undefined;
      return stoa.webhooks.update(
        endpoint,
        await endpointBody({ ...rest, ...(enabled !== undefined && { enabled }) }),
      );
    },
  });
  objectCommand(command, {
    name: "delete <endpoint>",
    description: "Delete an endpoint",
    examples: ["stoa webhooks delete whk_…"],
    columns: [],
    call: (stoa, _options, [endpoint = ""]) => stoa.webhooks.delete(endpoint),
    message: () => "Deleted.",
  });
  objectCommand<RotatedWebhookSecret, { overlap?: number }>(command, {
    name: "rotate-secret <endpoint>",
    description: "Give an endpoint a new secret; the old one is valid for a time",
    options: (rotate) => rotate.option("--overlap <hours>", "how long the old secret is valid", decimal),
    examples: ["stoa webhooks rotate-secret whk_… --overlap 48"],
    columns: [{ field: "secret" }, { field: "oldSecretUntil", title: "old one until" }],
    call: (stoa, { overlap }, [endpoint = ""]) =>
      stoa.webhooks.rotateSecret(endpoint, overlap === undefined ? {} : { overlapHours: overlap }),
  });
}

function defineDeliveries(command: Command): void {
  objectCommand<WebhookDelivery>(command, {
    name: "test <endpoint>",
    description: "Deliver a test event",
    examples: ["stoa webhooks test whk_…"],
    columns: deliveryColumns,
    call: (stoa, _options, [endpoint = ""]) => stoa.webhooks.test(endpoint),
  });
  listCommand<WebhookDelivery, DeliveryFilters>(command, {
    name: "deliveries <endpoint>",
    description: "List the deliveries of an endpoint, newest first",
    options: (list) =>
      list
        .option("--status <status>", "succeeded, failed, retrying, …")
        .option("--event <id>", "of one event")
        .option("--type <type>", "of one event type")
        .option("--response <status>", "what the last attempt got: 503, 5xx or none"),
    examples: ["stoa webhooks deliveries whk_… --status failed --response 5xx"],
    columns: deliveryColumns,
    open: (stoa, page, { status, event, type, response }, [endpoint = ""]) =>
      stoa.webhooks.deliveries(endpoint, {
        ...page,
        ...{ status, eventId: event, eventType: type, responseStatus: response },
      }),
  });
  listCommand<DeliveryAttempt>(command, {
    name: "attempts <delivery>",
    description: "List the attempts of a delivery with request and response (--json shows all of it)",
    examples: ["stoa webhooks attempts dlv_…", "stoa webhooks attempts dlv_… --json --fields n,response"],
    columns: [
      { field: "n", title: "Attempt" },
      { field: "at", title: "Time", format: ({ at }) => time(at) },
      { field: "durationMs", title: "ms" },
      { field: "response", title: "Status", format: ({ response }) => response?.status ?? "" },
      { field: "error", title: "Error", format: ({ error }) => error?.message ?? "" },
    ],
    open: (stoa, _page, _options, [delivery = ""]) => attemptsOf(stoa.deliveries.get(delivery)),
  });
  objectCommand<WebhookDelivery>(command, {
    name: "resend <delivery>",
    description: "Deliver once more",
    examples: ["stoa webhooks resend dlv_…"],
    columns: deliveryColumns,
    call: (stoa, _options, [delivery = ""]) => stoa.deliveries.retry(delivery),
  });
  objectCommand<WebhookRecovery, { since: string; until?: string }>(command, {
    name: "recover <endpoint>",
    description: "Deliver again what failed since a time",
    options: (recover) =>
      recover
        .requiredOption("--since <time>", "such as 2026-11-20T00:00:00Z")
        .option("--until <time>", "default: now"),
    examples: ["stoa webhooks recover whk_… --since 2026-11-20T00:00:00Z"],
    columns: recoveryColumns,
    call: (stoa, { since, until }, [endpoint = ""]) =>
      stoa.webhooks.recover(endpoint, { since, ...(until && { until }) }),
  });
  objectCommand<WebhookStats>(command, {
    name: "stats <endpoint>",
    description: "Show how an endpoint does",
    examples: ["stoa webhooks stats whk_…"],
    columns: statsColumns,
    call: (stoa, _options, [endpoint = ""]) => stoa.webhooks.stats(endpoint),
  });
}

/** The attempts as a list of one page. */
function attemptsOf(delivery: PromiseLike<WebhookDeliveryDetail>) {
  const toArray = async () => (await delivery).attempts;
  return {
    toArray,
    page: async () => {
      const data = await toArray();
      return { data, meta: { total: data.length } };
    },
    async *[Symbol.asyncIterator]() {
      yield* await toArray();
    },
  };
}
