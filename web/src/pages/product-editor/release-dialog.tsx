import type { ProductDetail } from "@stoa/sdk";
import { type FormEvent, useState } from "react";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { Field, fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { RegressionChoice } from "../../components/regression-choice.tsx";

export interface Release {
  version: string;
  changelog: string;
  acknowledgesRegression?: true;
}

interface ReleaseDialogProps {
  product: ProductDetail;
  error: unknown;
  isPending: boolean;
  onPublish: (release: Release) => void;
  onClose: () => void;
}

/** Which version the changes make, and what buyers read about it. */
export function ReleaseDialog({ product, error, isPending, onPublish, onClose }: ReleaseDialogProps) {
  const [major = 1, minor = 0] = product.version.split(".").map(Number);
  const versions = [`${major}.${minor + 1}.0`, `${major + 1}.0.0`] as const;
  const [version, setVersion] = useState<string>(versions[0]);
  const [changelog, setChangelog] = useState("");
  const [isWorse, setWorse] = useState(false);
  const errors = fieldErrors(error);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onPublish({ version, changelog, ...(isWorse && { acknowledgesRegression: true }) });
  };
  return (
    <Dialog title="Publish a new version" onClose={onClose}>
      <form className="stack form" onSubmit={submit}>
        <FormError error={error} title="The version was not published" />
        <fieldset className="plain field picks">
          <legend className="m">Version</legend>
          <VersionChoice
            version={versions[0]}
            chosen={version}
            text={`Buyers of ${major}.x get it. It accepts the inputs of ${product.version}.`}
            onChoose={setVersion}
          />
          <VersionChoice
            version={versions[1]}
            chosen={version}
            text={`A new line: buyers of ${major}.x keep ${product.version}, and buy this one anew.`}
            onChoose={setVersion}
          />
        </fieldset>
        <Field label="What is new" hint="Buyers read it beside the version." error={errors["changelog"]}>
          {(control) => (
            <textarea
              {...control}
              className="input"
              rows={3}
              maxLength={5_000}
              dir="auto"
              data-own-undo
              value={changelog}
              onChange={({ target }) => setChangelog(target.value)}
            />
          )}
        </Field>
        <RegressionChoice error={errors["acknowledgesRegression"]} isChecked={isWorse} onChange={setWorse} />
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={isPending}>
            Publish {version}
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}

interface VersionChoiceProps {
  version: string;
  chosen: string;
  text: string;
  onChoose: (version: string) => void;
}

const VersionChoice = ({ version, chosen, text, onChoose }: VersionChoiceProps) => (
  <label className="choice">
    <input
      type="radio"
      className="radio"
      name="version"
      checked={version === chosen}
      onChange={() => onChoose(version)}
    />
    <span>
      <b className="num">{version}</b>
      <br />
      <span className="sm soft">{text}</span>
    </span>
  </label>
);
