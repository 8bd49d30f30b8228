import type { Account } from "@stoa/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../../api.ts";
import { Field } from "../../../components/field.tsx";
import { countries } from "../../../lib/countries.ts";
import { describeError } from "../../../lib/errors.ts";
import { accountQuery } from "../../../session.ts";

/** The total is not final while this runs. */
export const SAVE_COUNTRY = ["account", "country"];

/** The country decides about tax. It is stored in the account, so that the next purchase has it. */
export function CountrySection({ account }: { account: Account }) {
  const client = useQueryClient();
  const [options] = useState(countries);
  const save = useMutation({
    mutationKey: SAVE_COUNTRY,
    mutationFn: async (country: string | null) => await stoa.account.update({ country }),
    onSuccess: (changed) => client.setQueryData(accountQuery.queryKey, changed),
  });
  const shown = save.isPending ? save.variables : account.country;
  return (
    <section className="beam">
      <h2>Tax</h2>
      <Field
        label="Country that you buy from"
        hint="Decides about tax; saved in your account. The receipt names it."
        error={save.error ? `Not saved. ${describeError(save.error).text}` : undefined}
      >
        {(control) => (
          <select
            {...control}
            className="input"
            value={shown ?? ""}
            onChange={({ target }) => save.mutate(target.value === "" ? null : target.value)}
          >
            <option value="">Not set</option>
            {options.map(({ code, name }) => (
              <option key={code} value={code}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
    </section>
  );
}
