/** A request as code, inside a dialog: a popover would open below it. */
export const CodeDetails = ({ curl, sdk }: { curl: string; sdk: string }) => (
  <details className="code-details">
    <summary className="sm soft">Show as code</summary>
    <pre className="codeblock wrap">{`${curl}\n\n// SDK\n${sdk}`}</pre>
  </details>
);
