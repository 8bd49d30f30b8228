import { useQuery, useQueryClient } from "@tanstack/react-query";
import { accountQuery, sessionStateQuery, signInUrl } from "../../session.ts";

/** Stands above the page when the session ended while it was open, so that nothing that was typed is lost. */
export function SessionEnded() {
  const client = useQueryClient();
  const { data: state } = useQuery(sessionStateQuery);
  if (state !== "ended") return null;
  const check = async () => {
    await client.invalidateQueries({ queryKey: accountQuery.queryKey });
    if (client.getQueryData(accountQuery.queryKey)) client.setQueryData(sessionStateQuery.queryKey, "open");
  };
  return (
    <div className="strip warning" role="alert">
      <span className="grow">
        <strong>Your session ended.</strong> Sign in again in another tab, then continue here. What you typed
        stays.
      </span>
      <a className="btn s" href={signInUrl()} target="_blank" rel="noopener">
        Sign in
      </a>
      <button type="button" className="btn s" onClick={() => void check()}>
        Go on
      </button>
    </div>
  );
}
