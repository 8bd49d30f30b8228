import { Link } from "@tanstack/react-router";

interface PersonLinkProps {
  person: { id: string; name: string };
  className?: string;
}

/** To the page of an account. */
export const PersonLink = ({ person, className = "link" }: PersonLinkProps) => (
  <Link to="/admin/users/$userId" params={{ userId: person.id }} className={className} dir="auto">
    {person.name}
  </Link>
);

/** To the page of a product in moderation. */
export const ProductLink = ({ product }: { product: { id: string; title: string } }) => (
  <Link to="/admin/moderation/$productId" params={{ productId: product.id }} className="link" dir="auto">
    {product.title}
  </Link>
);

const TARGETS = {
  usr: (id: string) => (
    <Link to="/admin/users/$userId" params={{ userId: id }} className="link mono">
      {short(id)}
    </Link>
  ),
  prod: (id: string) => (
    <Link to="/admin/moderation/$productId" params={{ productId: id }} className="link mono">
      {short(id)}
    </Link>
  ),
  ord: (id: string) => (
    <Link to="/admin/orders/$orderId" params={{ orderId: id }} className="link mono">
      {short(id)}
    </Link>
  ),
};

const short = (id: string): string => `${id.slice(0, 9)}…${id.slice(-4)}`;

/** The id of anything, as a link if it has a page here. */
export function TargetLink({ id }: { id: string }) {
  const [prefix = ""] = id.split("_", 1);
  const link = prefix in TARGETS ? TARGETS[prefix as keyof typeof TARGETS] : null;
  return link ? link(id) : <code className="soft">{id}</code>;
}
