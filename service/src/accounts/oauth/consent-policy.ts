import { interactionPolicy, type interactionPolicy as Policies } from "oidc-provider";

const { base, Check } = interactionPolicy;

/** A self-registered client asks each time, since it may claim any name. */
export function createConsentPolicy(): Policies.DefaultPolicy {
  const policy = base();
  policy
    .get("consent")!
    .checks.add(
      new Check(
        "registered_itself",
        "a client that registered itself needs consent",
        "consent_required",
        ({ oidc }) =>
          oidc.client!.clientAuthMethod === "none" && !oidc.result?.consent
            ? Check.REQUEST_PROMPT
            : Check.NO_NEED_TO_PROMPT,
      ),
    );
  return policy;
}
