import { Link } from "@tanstack/react-router";
import { useTitle } from "../../lib/use-title.ts";
import { signInUrl, useAccount } from "../../session.ts";

/** In place of a page of administrators. */
export default function NeedsTwoFactor() {
  useTitle("Two factors needed");
  const isSetUp = useAccount()?.twoFactor.enabled ?? false;
  return (
    <main className="page narrow" id="content">
      <h1 className="page-title">Administration needs two factors</h1>
      {isSetUp ? (
        <>
          <p className="soft lead">
            This session began without a code of your authenticator app. Sign in again, with a code.
          </p>
          <a className="btn primary" href={signInUrl()}>
            Sign in with a code
          </a>
        </>
      ) : (
        <>
          <p className="soft lead">
            Administrators can see and change everything, so a password or an email is not enough. Set up an
            authenticator app; this session can then act as an administrator.
          </p>
          <Link to="/account/security" search={{ setUp: true }} className="btn primary">
            Set up two factors
          </Link>
        </>
      )}
    </main>
  );
}
