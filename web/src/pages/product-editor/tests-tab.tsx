import { Tests } from "../../components/tests/tests.tsx";
import { useEditor } from "./editor-context.tsx";

/** The tests of a prompt beside its other parts. */
export default function TestsTab() {
  const { product } = useEditor();
  return <Tests product={product} />;
}
