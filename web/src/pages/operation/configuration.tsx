import "./operation.css";
import type { Setting } from "@stoa/sdk";
import { useSuspenseQuery } from "@tanstack/react-query";
import { ShieldIcon } from "../../components/icons.tsx";
import { ShowAsCode } from "../../components/show-as-code.tsx";
import { curlOf } from "../../lib/curl.ts";
import { useTitle } from "../../lib/use-title.ts";
import { configurationQuery } from "../../queries/operation.ts";

const CODE = {
  curl: curlOf("GET", "/admin/configuration"),
  sdk: "const { settings } = await stoa.admin.configuration.get();",
};

const SOURCES: Record<Setting["source"], string> = {
  environment: "environment",
  file: "file in the data folder",
  default: "default",
};

export default function Configuration() {
  useTitle("Configuration");
  const { data: settings } = useSuspenseQuery(configurationQuery);
  return (
    <main className="work" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Configuration</h1>
        <ShowAsCode {...CODE} />
      </div>
      <p className="soft">
        The settings as the service understands them. A change needs the environment of the process and a
        restart. Secrets are masked, also inside addresses.
      </p>
      <table className="operation-table beam">
        <thead>
          <tr>
            <th>Setting</th>
            <th>Source</th>
            <th>Value</th>
          </tr>
        </thead>
        <tbody>
          {settings.map(({ name, value, source, isSecret }) => (
            <tr key={name}>
              <td className="mono name">{name}</td>
              <td className={source === "default" ? "soft sm fit" : "sm m"}>{SOURCES[source]}</td>
              <td className="mono wide">
                {value === null ? <span className="soft">not set</span> : value}{" "}
                {isSecret && value !== null && (
                  <span className="soft operation-masked" title="Masked">
                    <ShieldIcon />
                    <span className="hidden">masked</span>
                  </span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </main>
  );
}
