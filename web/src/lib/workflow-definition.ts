/** What the pages read of a definition in the format `workflow/1`. The service has checked it. */
export interface WorkflowDefinition {
  input: InputSchema;
  steps: DefinedStep[];
}

export interface DefinedStep extends Work {
  id: string;
  needs: string[];
}

interface Work {
  type: string;
  when?: string;
  onError?: "fail" | "continue";
  provider?: string;
  model?: string;
  messages?: { content?: string }[];
  options?: { maxTokens?: number };
  items?: string;
  do?: Work;
  maxConcurrency?: number;
  productId?: string;
  seconds?: number;
}

/** JSON Schema, as far as a form shows it. */
export interface InputSchema {
  type?: string | string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  items?: InputSchema | boolean;
  properties?: Record<string, InputSchema | boolean>;
  required?: string[];
}

/** null: there is none, or it is not readable. */
export function parseDefinition(content: string | null | undefined): WorkflowDefinition | null {
  if (!content) return null;
  try {
    const { input, steps } = JSON.parse(content) as { input?: InputSchema; steps: Partial<DefinedStep>[] };
    return {
      input: input ?? {},
      steps: steps.map((step) => ({ ...(step as DefinedStep), needs: step.needs ?? [] })),
    };
  } catch {
    return null;
  }
}

/** The providers that need a key each. */
export const providersOf = ({ steps }: WorkflowDefinition): string[] => [
  ...new Set(steps.flatMap((step) => step.provider ?? step.do?.provider ?? [])),
];

export const runsProducts = ({ steps }: WorkflowDefinition): boolean =>
  steps.some(({ type, do: work }) => type === "product" || work?.type === "product");
