import { useTitle } from "../../lib/use-title.ts";

export default function Overview() {
  useTitle("Studio");
  return (
    <main className="work" id="content">
      <h1 className="page-title">Studio</h1>
    </main>
  );
}
