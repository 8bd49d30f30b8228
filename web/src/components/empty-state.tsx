import type { ReactNode } from "react";

interface EmptyStateProps {
  /** What will be here: "No orders yet". */
  title: string;
  /** One sentence about how it gets here. */
  children: ReactNode;
  /** The next step: a link or a button. */
  action?: ReactNode;
  /** In areas for developers: the same by the API. */
  curl?: string;
}

/** In the place of a list that has nothing. */
export const EmptyState = ({ title, children, action, curl }: EmptyStateProps) => (
  <div className="empty stack">
    <h2 className="small-heading">{title}</h2>
    <p className="soft">{children}</p>
    {action && <div className="row wrap">{action}</div>}
    {curl && <pre className="codeblock wrap">{curl}</pre>}
  </div>
);
