import "./webhooks.css";
import { Link, useNavigate } from "@tanstack/react-router";
import { ChevronIcon } from "../../components/icons.tsx";
import { WebhookForm, type WebhookInput } from "../../components/webhooks/webhook-form.tsx";
import { WebhookSecret } from "../../components/webhooks/webhook-secret.tsx";
import { curlOf } from "../../lib/curl.ts";
import { useCreateWebhook } from "../../lib/use-create-webhook.ts";
import { useTitle } from "../../lib/use-title.ts";

const EMPTY: WebhookInput = {
  url: "",
  description: "",
  eventTypes: null,
  signatureContent: "timestamp_body",
  signaturePrefix: false,
};

export default function WebhookNew() {
  useTitle("New webhook");
  const navigate = useNavigate();
  const { start, isPending, error, data: created } = useCreateWebhook();
  const open = (webhookId: string) =>
    navigate({ to: "/settings/webhooks/$webhookId", params: { webhookId } });
  return (
    <main className="work" id="content">
      <nav className="crumb" aria-label="Breadcrumb">
        <Link to="/settings/webhooks">Webhooks</Link>
        <ChevronIcon size={13} />
        <span>New</span>
      </nav>
      <h1 className="page-title under-crumb">New webhook</h1>
      <WebhookForm
        initial={EMPTY}
        draft="webhook"
        submitLabel="Create webhook"
        isPending={isPending}
        error={error}
        onSubmit={start}
        codeOf={createCode}
      >
        <Link to="/settings/webhooks" className="btn">
          Back
        </Link>
      </WebhookForm>
      {created && <WebhookSecret secret={created.secret} onDone={() => void open(created.id)} />}
    </main>
  );
}

/** Only what differs from the defaults. */
function createCode(input: WebhookInput) {
  const body = {
    url: input.url || "https://example.com/hooks",
    ...(input.description !== "" && { description: input.description }),
    ...(input.eventTypes !== null && { eventTypes: input.eventTypes }),
    ...(input.signatureContent !== "timestamp_body" && { signatureContent: input.signatureContent }),
    ...(input.signaturePrefix && { signaturePrefix: true }),
  };
  const json = JSON.stringify(body, null, 2);
  return {
    curl: curlOf("POST", "/webhooks", body),
    sdk: `const { id, secret } = await stoa.webhooks.create(${json});`,
  };
}
