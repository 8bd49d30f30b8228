import { Button, CopyButton, Popover, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { CodeIcon } from "./icons.tsx";

interface ShowAsCodePopoverProps {
  curl: string;
  sdk: string;
  container: HTMLElement;
}

/** The request behind what the page shows or does, for people who automate it. The key is a placeholder. */
export default function ShowAsCodePopover({ curl, sdk, container }: ShowAsCodePopoverProps) {
  const [language, setLanguage] = useState<"curl" | "sdk">("curl");
  const code = language === "curl" ? curl : sdk;
  return (
    <Popover
      portalProps={{ target: container }}
      defaultOpened
      position="bottom-start"
      width={420}
      shadow="md"
      trapFocus
    >
      <Popover.Target>
        <button type="button" className="btn quiet s">
          <CodeIcon /> Show as code
        </button>
      </Popover.Target>
      <Popover.Dropdown className="stack">
        <SegmentedControl
          data={[
            { value: "curl", label: "curl" },
            { value: "sdk", label: "SDK" },
          ]}
          value={language}
          onChange={(value) => setLanguage(value as "curl" | "sdk")}
        />
        <pre className="codeblock wrap">{code}</pre>
        <CopyButton value={code}>
          {({ copied, copy }) => <Button onClick={copy}>{copied ? "Copied" : "Copy"}</Button>}
        </CopyButton>
      </Popover.Dropdown>
    </Popover>
  );
}
