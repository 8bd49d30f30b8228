import "./account.css";
import { useTitle } from "../../lib/use-title.ts";
import { PasswordForm } from "./password-form.tsx";
import { Sessions } from "./sessions.tsx";
import { SignInProviders } from "./sign-in-providers.tsx";
import { TwoFactor } from "./two-factor.tsx";

export default function Security() {
  useTitle("Security");
  return (
    <main className="work" id="content">
      <h1 className="page-title">Security</h1>
      <p className="soft">How you sign in, and where you are signed in now.</p>
      <TwoFactor />
      <PasswordForm />
      <SignInProviders />
      <Sessions />
    </main>
  );
}
