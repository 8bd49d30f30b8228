import "./editor.css";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { PromptIcon, WorkflowIcon } from "../../components/icons.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { literalOf } from "../../lib/object-literal.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";

const FIRST_PROMPT = "Write a short text about {{topic}}.";
const FIRST_WORKFLOW = {
  format: "workflow/1",
  input: { type: "object", required: ["topic"], properties: { topic: { type: "string", title: "Topic" } } },
  steps: [
    {
      id: "write",
      type: "prompt",
      provider: "openai",
      messages: [{ role: "user", content: FIRST_PROMPT }],
      vars: { topic: "input.topic" },
    },
  ],
  result: "steps.write.output",
};

type ProductType = "PROMPT" | "WORKFLOW";

const TYPES: { type: ProductType; label: string; text: string; icon: React.ReactNode }[] = [
  {
    type: "PROMPT",
    label: "Prompt",
    text: "One call of a model, with variables that the buyer fills in.",
    icon: <PromptIcon size={20} />,
  },
  {
    type: "WORKFLOW",
    label: "Workflow",
    text: "Several steps: prompts, lists of items, approvals, and other products.",
    icon: <WorkflowIcon size={20} />,
  },
];

/** The fewest facts that a draft needs; the rest is in its editor. */
export default function NewProduct() {
  useTitle("New product");
  const navigate = useNavigate();
  const client = useQueryClient();
  const [type, setType] = useState<ProductType>("PROMPT");
  const [title, setTitle] = useState("");
  const [price, setPrice] = useState("");
  const content = type === "PROMPT" ? FIRST_PROMPT : JSON.stringify(FIRST_WORKFLOW, null, 2);
  const input = { type, title: title.trim(), price: Number(price), content };
  const create = useAction({
    run: async (body: typeof input, idempotencyKey) =>
      (await stoa.products.create(body, { idempotencyKey })).id,
    onSuccess: async (productId) => {
      void client.invalidateQueries({ queryKey: ["products"] });
      const to = type === "PROMPT" ? "/studio/products/$productId" : "/studio/workflows/$productId";
      await navigate({ to, params: { productId } });
    },
  });
  const errors = fieldErrors(create.error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.start(input);
  };
  return (
    <main className="page narrow" id="content">
      <h1 className="title">New product</h1>
      <p className="soft lead">It starts as a draft that only you see. You can change everything later.</p>
      <form className="stack form" onSubmit={submit} noValidate>
        <FormError error={create.error} title="The draft was not created" />
        <fieldset className="plain editor-types">
          <legend className="hidden">Type</legend>
          {TYPES.map((one) => (
            <label key={one.type} className={one.type === type ? "editor-type is-chosen" : "editor-type"}>
              <input
                type="radio"
                className="radio"
                name="type"
                checked={one.type === type}
                onChange={() => setType(one.type)}
              />
              <span className="stack">
                <span className="row m">
                  {one.icon} {one.label}
                </span>
                <span className="sm soft">{one.text}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <Field label="Title" error={errors["title"]}>
          {(control) => (
            <input
              {...control}
              className="input"
              maxLength={120}
              autoComplete="off"
              dir="auto"
              value={title}
              onChange={({ target }) => setTitle(target.value)}
            />
          )}
        </Field>
        <Field label="Price" hint="In the currency of the marketplace" error={errors["price"]}>
          {(control) => (
            <input
              {...control}
              className="input"
              inputMode="decimal"
              autoComplete="off"
              value={price}
              onChange={({ target }) => setPrice(target.value)}
            />
          )}
        </Field>
        <div className="row wrap">
          <button type="submit" className="btn primary" disabled={create.isPending}>
            Create the draft
          </button>
          <ShowAsCode
            curl={curlOf("POST", "/products", input)}
            sdk={`const { id } = await stoa.products.create(${literalOf(input)});`}
          />
        </div>
      </form>
    </main>
  );
}
