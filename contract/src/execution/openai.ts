import { z } from "zod";
import { endpoint, json } from "../core/endpoint.ts";
import { Execute, execute } from "./executions.ts";

const options = Execute.shape.options.unwrap().shape;

/** Accepts the field only with its effective value; any other is refused by name. */
const onlyValue = <T extends z.ZodType>(usual: T) => usual.nullish();
const unsupported = (reason: string) => ({ error: `cannot be honoured: ${reason}` });
const noTools = unsupported("prompts have no tools");
const noSampling = unsupported("only temperature is passed on");

const Part = z.looseObject({ type: z.string(), text: z.string().optional() });
const RequestMessage = z
  .looseObject({ role: z.string(), content: z.union([z.string(), z.array(Part)]).nullish() })
  .meta({ id: "OpenAiMessage" });

const supportedFields = {
  model: z.string().min(1).max(200).describe("The id of a product, or of one of its versions: prod_…@1.2.0"),
  messages: z
    .array(RequestMessage)
    .describe(
      "The last user message has the variables as a JSON object, or the text of the only one that is needed. Other messages are refused, because they would be ignored. Exception: a prompt with a variable named conversation gets them as JSON text, a list of {role, content}",
    ),
  metadata: z
    .looseObject({
      variables: z
        .union([z.string(), z.record(z.string(), z.unknown())])
        .optional()
        .describe(
          "In place of the last user message, whose content must then be empty: an object, or the same as JSON text",
        ),
      apiKeyId: Execute.shape.apiKeyId.optional(),
      model: options.model.describe("The provider's model for the run"),
    })
    .nullish(),
  temperature: options.temperature.nullable(),
  max_tokens: options.maxTokens.nullable(),
  max_completion_tokens: options.maxTokens.nullable().describe("In place of max_tokens"),
  stream: z.boolean().nullish().describe("true: respond with chunks, and `data: [DONE]` after the last"),
  stream_options: z
    .looseObject({ include_usage: z.boolean().nullish().describe("true: a chunk with the usage at the end") })
    .nullish(),
  store: z
    .boolean()
    .nullish()
    .describe("false: store neither variables nor output in the history; default: true"),
};

const unsupportedFields = {
  n: onlyValue(z.literal(1, unsupported("a run gives one answer"))),
  tools: onlyValue(z.array(z.unknown()).max(0, noTools)),
  tool_choice: onlyValue(z.enum(["none", "auto"], noTools)),
  functions: onlyValue(z.array(z.unknown()).max(0, noTools)),
  function_call: onlyValue(z.enum(["none", "auto"], noTools)),
  response_format: onlyValue(z.looseObject({ type: z.literal("text", unsupported("answers are text")) })),
  modalities: onlyValue(z.array(z.literal("text", unsupported("answers are text"))).max(1)),
  audio: onlyValue(z.never(unsupported("answers are text"))),
  prediction: onlyValue(z.never(unsupported("it is not passed on"))),
  web_search_options: onlyValue(z.never(unsupported("prompts do not search"))),
  reasoning_effort: onlyValue(z.never(unsupported("it is not passed on"))),
  verbosity: onlyValue(z.never(unsupported("it is not passed on"))),
  top_p: onlyValue(z.literal(1, noSampling)),
  presence_penalty: onlyValue(z.literal(0, noSampling)),
  frequency_penalty: onlyValue(z.literal(0, noSampling)),
  logit_bias: onlyValue(z.record(z.string(), z.never(noSampling))),
  logprobs: onlyValue(z.literal(false, unsupported("probabilities are not returned"))),
  top_logprobs: onlyValue(z.literal(0, unsupported("probabilities are not returned"))),
  stop: onlyValue(z.tuple([], unsupported("it is not passed on"))),
};

/** Unknown fields are ignored, since OpenAI adds new ones. */
export const CreateChatCompletion = z
  .looseObject({ ...supportedFields, ...unsupportedFields })
  .meta({ id: "CreateChatCompletion" });

const unixSeconds = z.int().describe("Unix seconds");
const CompletionUsage = z
  .object({ prompt_tokens: z.int(), completion_tokens: z.int(), total_tokens: z.int() })
  .meta({ id: "OpenAiUsage" });

export const ChatCompletion = z
  .object({
    id: z
      .string()
      .describe("The execution's id: `GET /ai/executions/{id}` returns its cost and its provider"),
    object: z.literal("chat.completion"),
    created: unixSeconds,
    model: z.string().describe("The product with the version that ran"),
    choices: z.array(
      z.object({
        index: z.literal(0),
        message: z.object({ role: z.literal("assistant"), content: z.string(), refusal: z.null() }),
        logprobs: z.null(),
        finish_reason: z.enum(["stop", "length", "content_filter"]),
      }),
    ),
    usage: CompletionUsage,
  })
  .meta({ id: "ChatCompletion" });

const Model = z
  .object({
    id: z.string(),
    object: z.literal("model"),
    created: unixSeconds,
    owned_by: z.string().describe("The seller's name"),
    name: z.string().describe("The product's title"),
  })
  .meta({ id: "OpenAiModel" });

export const OpenAiError = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum([
        "authentication_error",
        "permission_error",
        "invalid_request_error",
        "rate_limit_error",
        "api_error",
      ]),
      param: z.string().nullable().describe("The wrong field"),
      code: z.string().describe("As in the rest of this API"),
      details: z.looseObject({}).optional().describe("As in the rest of this API"),
    }),
  })
  .meta({ id: "OpenAiError", description: "Every error below /openai has this shape." });

export type CreateChatCompletion = z.output<typeof CreateChatCompletion>;
export type ChatCompletion = z.input<typeof ChatCompletion>;
export type OpenAiModel = z.input<typeof Model>;
export type OpenAiError = z.input<typeof OpenAiError>;

const { access } = execute;

export const complete = endpoint({
  name: "openai.completions.create",
  method: "POST",
  path: "/openai/chat/completions",
  summary: "Run a prompt with any OpenAI client",
  description:
    'The same run as `POST /ai/execute`, in the words of OpenAI\'s chat completions. Without `metadata.apiKeyId` it takes your newest valid key of a provider that fits, else in the test environment the sandbox.\n\nFields that only one value can be honoured of are refused with another; `user`, `seed`, `service_tier` and what is not known here are passed over.\n\nA stream that breaks ends with `data: {"error": …}`, and without `[DONE]`. `X-Should-Retry` says whether a retry is safe.',
  access,
  request: json(CreateChatCompletion, {
    model: "prod_01kf5v8q3xe8hb1d6c1m2k3n4p",
    messages: [{ role: "user", content: '{"topic": "autumn"}' }],
    temperature: 0.7,
  }),
  response: { kind: "foreign", api: "openai", data: ChatCompletion, canStream: true },
  errors: execute.errors,
});

export const models = endpoint({
  name: "openai.models.list",
  method: "GET",
  path: "/openai/models",
  summary: "List the prompts that you may run, as OpenAI models",
  description:
    "Your own prompts and those that you bought, newest first, at most 1,000. OpenAI's list has no pages; query parameters are ignored.",
  access,
  query: z.looseObject({}),
  response: {
    kind: "foreign",
    api: "openai",
    data: z.object({ object: z.literal("list"), data: z.array(Model) }),
    canStream: false,
  },
});

export const model = endpoint({
  name: "openai.models.get",
  method: "GET",
  path: "/openai/models/:productId",
  summary: "Read one prompt that you may run, as an OpenAI model",
  access,
  params: z.object({ productId: z.string().describe("A product's id, or with a version: prod_…@1.2.0") }),
  query: z.looseObject({}),
  response: { kind: "foreign", api: "openai", data: Model, canStream: false },
  errors: ["PRODUCT_NOT_FOUND", "PRODUCT_UNAVAILABLE", "VERSION_NOT_FOUND"],
});
