import type { CreateProviderKey, ProviderKey } from "@stoa/sdk";
import type { Command } from "commander";
import { decimal } from "../command.ts";
import { UsageError } from "../errors.ts";
import { readInput } from "../fields.ts";
import { time } from "../format.ts";
import type { Column } from "../output.ts";
import { askSecret, isInteractive } from "../prompts.ts";
import { listCommand, objectCommand } from "../resource.ts";

const columns: Column<ProviderKey>[] = [
  { field: "id", title: "Key" },
  { field: "provider", title: "Provider" },
  { field: "name", title: "Name" },
  { field: "last4", title: "Ends with" },
  { field: "status", title: "Status" },
  { field: "monthlyBudget", title: "Budget a month" },
  { field: "lastUsedAt", title: "Last used", format: ({ lastUsedAt }) => time(lastUsedAt) },
];

interface AddOptions {
  name: string;
  providerUrl?: string;
  budget?: number;
}

export default function define(command: Command): void {
  listCommand<ProviderKey>(command, {
    name: "list",
    description: "List your provider keys, which runs use",
    examples: ["stoa keys list"],
    columns,
    open: (stoa, page) => stoa.ai.keys.list(page),
  });
  objectCommand<ProviderKey, AddOptions>(command, {
    name: "add <provider>",
    description: "Store a provider key; it is asked for, or read from standard input",
    options: (add) =>
      add
        .requiredOption("--name <text>", "how you recognize it")
        .option("--provider-url <url>", "the provider's address, for ollama and openai-compatible")
        .option("--budget <amount>", "what runs with it may cost a month", decimal),
    examples: ["stoa keys add openai --name mine < key.txt", "stoa keys add anthropic --name work"],
    columns,
    call: async (stoa, { name, providerUrl, budget }, [provider = ""]) =>
      stoa.ai.keys.create({
        provider: provider as CreateProviderKey["provider"],
        name,
        key: await readKey(),
        ...(providerUrl && { baseUrl: providerUrl }),
        ...(budget !== undefined && { monthlyBudget: budget }),
      }),
  });
  objectCommand<ProviderKey>(command, {
    name: "verify <key>",
    description: "Ask the provider whether a key works",
    examples: ["stoa keys verify pkey_…"],
    columns,
    call: (stoa, _options, [key = ""]) => stoa.ai.keys.verify(key),
  });
  objectCommand(command, {
    name: "delete <key>",
    description: "Delete a provider key",
    examples: ["stoa keys delete pkey_…"],
    columns: [],
    call: (stoa, _options, [key = ""]) => stoa.ai.keys.delete(key),
    message: () => "Deleted.",
  });
}

async function readKey(): Promise<string> {
  const text = isInteractive()
    ? await askSecret("Provider key", "Pass the key on standard input.")
    : await readInput();
  if (text.trim() === "")
    throw new UsageError("No key was given", "Pass it on standard input, such as `< key.txt`.");
  return text.trim();
}
