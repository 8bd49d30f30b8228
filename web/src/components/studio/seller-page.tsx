import "./studio.css";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useTitle } from "../../lib/use-title.ts";
import { canSell, useAccount } from "../../session.ts";
import { EmptyState } from "../empty-state.tsx";

interface SellerPageProps {
  title: string;
  intro?: string;
  /** At the right of the title. */
  actions?: ReactNode;
  children: ReactNode;
}

/** A dense page of the studio. An account without a product is no seller yet, and may not ask for sales and payouts. */
export function SellerPage({ title, intro, actions, children }: SellerPageProps) {
  useTitle(title);
  const isSeller = canSell(useAccount());
  return (
    <main className="work studio" id="content">
      <div className="row between wrap">
        <h1 className="page-title">{title}</h1>
        {isSeller && actions && <div className="row wrap">{actions}</div>}
      </div>
      {intro && <p className="soft sm studio-intro">{intro}</p>}
      {isSeller ? children : <NoSeller />}
    </main>
  );
}

const NoSeller = () => (
  <div className="beam studio-block">
    <EmptyState
      title="You do not sell anything yet"
      action={
        <Link to="/studio/products" className="btn primary">
          Write a product
        </Link>
      }
    >
      Your first product, also a draft, makes you a seller. This page fills from then on.
    </EmptyState>
  </div>
);
