import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize from "rehype-sanitize";
import remarkGfm from "remark-gfm";

const components: Components = {
  // Wide ones scroll inside themselves, and the keyboard must reach them.
  pre: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
    <pre tabIndex={0}>{children}</pre>
  ),
  table: ({ children }) => (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
    <table tabIndex={0}>{children}</table>
  ),
  // Links of sellers and models: search engines must not count them, and the other page gets no handle of this one.
  a: ({ href, children }) => (
    <a href={href} rel="nofollow noopener ugc" target="_blank">
      {children}
    </a>
  ),
  // Loading it would tell another server who reads this.
  img: ({ alt, src }) => (
    <a href={typeof src === "string" ? src : undefined} rel="nofollow noopener ugc" target="_blank">
      {alt || "image"}
    </a>
  ),
};

interface TreeNode {
  type: string;
  value?: string;
  children?: TreeNode[];
}

/** HTML in the text is shown as it was written: the sanitizer would drop it, with the text beside it. */
const showHtmlAsText = () => (tree: TreeNode) => {
  const visit = (node: TreeNode) => {
    if (node.type === "raw") node.type = "text";
    for (const child of node.children ?? []) visit(child);
  };
  visit(tree);
};

export default function RenderedMarkdown({ text }: { text: string }) {
  return (
    <div className="markdown">
      <ReactMarkdown
        remarkPlugins={[remarkGfm]}
        rehypePlugins={[showHtmlAsText, rehypeSanitize]}
        components={components}
      >
        {text}
      </ReactMarkdown>
    </div>
  );
}
