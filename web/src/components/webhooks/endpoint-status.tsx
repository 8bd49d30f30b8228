import type { WebhookEndpoint } from "@stoa/sdk";
import { StatusTag } from "../status-tag.tsx";

interface EndpointStatusProps {
  endpoint: Pick<WebhookEndpoint, "enabled">;
  /** The first failed attempt since the last success; null: none. */
  failingSince: string | null;
}

export function EndpointStatus({ endpoint, failingSince }: EndpointStatusProps) {
  if (!endpoint.enabled) return <StatusTag tone="neutral">Disabled</StatusTag>;
  if (failingSince !== null) return <StatusTag tone="bad">Failing</StatusTag>;
  return <StatusTag tone="good">Enabled</StatusTag>;
}
