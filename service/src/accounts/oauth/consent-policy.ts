import { interactionPolicy, type interactionPolicy as Policies } from "oidc-provider";

const { base, Check } = interactionPolicy;

/** The provider's own policy, and: a client that registered itself asks every time, since anybody may take any name. */
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
