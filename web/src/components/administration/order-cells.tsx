import type { AdminDispute } from "@stoa/sdk";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { StatusTag, type Tone } from "../status-tag.tsx";
import { PersonLink } from "./links.tsx";

interface OrderCellsProps {
  /** An order, or what belongs to one. */
  row: Pick<AdminDispute, "orderId" | "product" | "buyer" | "seller">;
  status: [Tone, string];
  /** Below the title. */
  second: ReactNode;
}

/** The first cells of a row about an order: its product, status, buyer and seller. */
export const OrderCells = ({
  row: { orderId, product, buyer, seller },
  status: [tone, label],
  second,
}: OrderCellsProps) => (
  <>
    <td className="main-cell">
      <Link to="/admin/orders/$orderId" params={{ orderId }} className="row-target m" data-row dir="auto">
        {product.title}
      </Link>
      {second}
    </td>
    <td>
      <StatusTag tone={tone}>{label}</StatusTag>
    </td>
    <td className="wraps">
      <PersonLink person={buyer} />
    </td>
    <td className="wide-cell wraps">
      <PersonLink person={seller} />
    </td>
  </>
);
