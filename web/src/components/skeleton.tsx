/** Stands for a page while it loads. The router shows it after 150 ms. */
export const PageSkeleton = () => (
  <main className="page narrow" id="content" aria-busy="true">
    <h1 className="hidden">Loading</h1>
    <div className="skeleton title" />
    <SkeletonRows />
  </main>
);

/** Rows of a list while it loads. */
export const SkeletonRows = ({ count = 6 }: { count?: number }) => (
  <div className="beam stack" aria-hidden="true">
    {Array.from({ length: count }, (_, row) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the rows are alike
      <div className="skeleton row" key={row} />
    ))}
  </div>
);
