import type { NewApiKey } from "@stoa/sdk";
import type { ReactNode } from "react";
import { SecretOnce } from "../../components/secret-once.tsx";

interface NewKeyProps {
  title: string;
  apiKey: NewApiKey;
  children?: ReactNode;
  onDone: () => void;
}

/** Shows a key that was just made, with a request to try it. */
export const NewKey = ({ title, apiKey: { key }, children, onDone }: NewKeyProps) => (
  <SecretOnce
    title={title}
    secret={key}
    confirmation="I saved the key in a safe place"
    onDone={onDone}
    example={
      <div className="field">
        <span className="m">First request</span>
        <pre className="codeblock wrap">
          {`curl "${location.origin}/v1/account" \\\n  -H "Authorization: Bearer ${key.slice(0, 14)}…"`}
        </pre>
      </div>
    }
  >
    <p>Stoa stores only a digest of it. If you lose it, create another.</p>
    {children}
  </SecretOnce>
);
