import "./webhooks.css";
import type { UpdateWebhookEndpoint } from "@stoa/sdk";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ChevronIcon } from "../../components/icons.tsx";
import { WebhookForm, type WebhookInput } from "../../components/webhooks/webhook-form.tsx";
import { curlOf } from "../../lib/curl.ts";
import { statusOf } from "../../lib/errors.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { useTitle } from "../../lib/use-title.ts";
import { nameOf } from "../../lib/webhooks.ts";
import { webhookQuery, webhooksQuery } from "../../queries/webhooks.ts";

const route = getRouteApi("/webhooks-shell/settings/webhooks/$webhookId/edit");

export default function WebhookEdit() {
  const { webhookId } = route.useParams();
  const { data: endpoint } = useSuspenseQuery(webhookQuery(webhookId));
  useTitle(`Edit ${nameOf(endpoint)}`);
  const client = useQueryClient();
  const navigate = useNavigate();
  // The version that the form began with, so that a change in another tab is noticed.
  const [loaded, setLoaded] = useState(endpoint);
  const save = useAction({
    run: async ({ input, isForced }: { input: WebhookInput; isForced: boolean }) =>
      await stoa.webhooks.update(webhookId, changesOf(loaded, input), {
        headers: isForced || loaded.etag === null ? {} : { "if-match": loaded.etag },
      }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: webhookQuery(webhookId).queryKey });
      await client.invalidateQueries({ queryKey: webhooksQuery.queryKey });
      showToast("Webhook saved");
      await navigate({ to: "/settings/webhooks/$webhookId", params: { webhookId } });
    },
    onError: (error) => {
      if (statusOf(error) === 412)
        void client.invalidateQueries({ queryKey: webhookQuery(webhookId).queryKey });
    },
  });
  const isConflict = statusOf(save.error) === 412;
  const takeTheirs = () => {
    setLoaded(endpoint);
    save.reset();
  };
  return (
    <main className="work" id="content">
      <nav className="crumb" aria-label="Breadcrumb">
        <Link to="/settings/webhooks">Webhooks</Link>
        <ChevronIcon size={13} />
        <Link to="/settings/webhooks/$webhookId" params={{ webhookId }} dir="auto">
          {nameOf(endpoint)}
        </Link>
      </nav>
      <h1 className="page-title under-crumb">Edit webhook</h1>
      {isConflict && (
        <div className="strip warning" role="alert">
          <span className="grow">
            <strong>Changed in another tab.</strong> There it goes to <code>{endpoint.url}</code> and gets{" "}
            {endpoint.eventTypes === null ? "all events" : `${endpoint.eventTypes.length} event types`}.
          </span>
          <button
            type="button"
            className="btn s"
            disabled={save.isPending}
            onClick={() => save.variables && save.start({ ...save.variables, isForced: true })}
          >
            Keep mine
          </button>
          <button type="button" className="btn s" onClick={takeTheirs}>
            Take theirs
          </button>
        </div>
      )}
      <WebhookForm
        key={loaded.etag}
        initial={loaded}
        draft={`webhook-${webhookId}`}
        submitLabel="Save"
        isPending={save.isPending}
        error={isConflict ? null : save.error}
        onSubmit={(input) => save.start({ input, isForced: false })}
        codeOf={(input) => updateCode(webhookId, changesOf(loaded, input))}
      >
        <Link to="/settings/webhooks/$webhookId" params={{ webhookId }} className="btn">
          Discard
        </Link>
      </WebhookForm>
    </main>
  );
}

const FIELDS = ["url", "description", "eventTypes", "signatureContent", "signaturePrefix"] as const;

/** Only what differs, since a new URL needs a fresh sign-in. */
function changesOf(before: WebhookInput, after: WebhookInput): UpdateWebhookEndpoint {
  const changed = FIELDS.filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  return Object.fromEntries(changed.map((name) => [name, after[name]]));
}

function updateCode(id: string, changes: UpdateWebhookEndpoint) {
  const json = JSON.stringify(changes, null, 2);
  return {
    curl: curlOf("PATCH", `/webhooks/${id}`, changes),
    sdk: `await stoa.webhooks.update("${id}", ${json});`,
  };
}
