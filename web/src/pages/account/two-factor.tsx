import { useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { StatusTag } from "../../components/status-tag.tsx";
import { Time } from "../../components/time.tsx";
import { curlOf } from "../../lib/curl.ts";
import { twoFactorQuery } from "../../queries/account.ts";
import { DisableTwoFactor, RenewBackupCodes } from "./two-factor-changes.tsx";
import { SetUpTwoFactor } from "./two-factor-set-up.tsx";

const route = getRouteApi("/account/security");

/** Of ten. */
const FEW_CODES = 3;

export function TwoFactor() {
  const { page, setUp = false } = route.useSearch();
  const navigate = route.useNavigate();
  const { data } = useSuspenseQuery(twoFactorQuery);
  const [action, setAction] = useState<"renew" | "disable" | null>(null);
  const { enabled, confirmedAt, backupCodesLeft } = data;
  const close = () => setAction(null);
  return (
    <section className="beam thin stack">
      <h2 className="h3 row">
        Two-factor authentication{" "}
        {enabled ? <StatusTag tone="good">On</StatusTag> : <StatusTag tone="neutral">Off</StatusTag>}
      </h2>
      {enabled ? (
        <>
          <p className="soft">
            Each sign-in needs a code of your authenticator app, or a backup code.{" "}
            {confirmedAt && (
              <>
                On since <Time iso={confirmedAt} isDay />.
              </>
            )}
          </p>
          <p className={backupCodesLeft < FEW_CODES ? "warning m" : "soft"}>
            {backupCodesLeft} of 10 backup codes left.
          </p>
          <div className="row wrap">
            <button type="button" className="btn" onClick={() => setAction("renew")}>
              New backup codes
            </button>
            <button type="button" className="btn danger" onClick={() => setAction("disable")}>
              Turn off
            </button>
          </div>
        </>
      ) : (
        <>
          <p className="soft">A sign-in then needs your email or password, and a code from your phone.</p>
          <div className="row wrap">
            <Link to="." search={{ page, setUp: true }} className="btn primary">
              Turn on
            </Link>
            <ShowAsCode
              curl={curlOf("GET", "/account/two-factor")}
              sdk="const { enabled, backupCodesLeft } = await stoa.twoFactor.get();"
            />
          </div>
        </>
      )}
      {setUp && !enabled && (
        <SetUpTwoFactor onClose={() => void navigate({ search: { page }, replace: true })} />
      )}
      {action === "renew" && <RenewBackupCodes onClose={close} />}
      {action === "disable" && <DisableTwoFactor onClose={close} />}
    </section>
  );
}
