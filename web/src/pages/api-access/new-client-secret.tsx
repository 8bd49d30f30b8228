import type { NewOAuthClient } from "@stoa/sdk";
import { CopyButton } from "../../components/copy-button.tsx";
import { SecretOnce } from "../../components/secret-once.tsx";

interface NewClientSecretProps {
  title: string;
  app: NewOAuthClient;
  onDone: () => void;
}

export const NewClientSecret = ({ title, app: { clientId, clientSecret }, onDone }: NewClientSecretProps) => (
  <SecretOnce
    title={title}
    secret={clientSecret}
    confirmation="I saved the secret in a safe place"
    onDone={onDone}
  >
    <p>Stoa stores only a digest of it. If you lose it, create a new one.</p>
    <div className="field">
      <span className="m">Client id</span>
      <div className="row">
        <code className="grow id-text">{clientId}</code>
        <CopyButton text={clientId} label="Copy client id" />
      </div>
    </div>
    <span className="m">Client secret</span>
  </SecretOnce>
);
