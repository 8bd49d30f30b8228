import "../../components/studio/studio.css";
import "./overview.css";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { FirstStepList } from "../../components/first-step-list.tsx";
import { PlusIcon } from "../../components/icons.tsx";
import { NO_SELLER_STEPS, STEPS, sellerProgressQuery } from "../../lib/first-steps.ts";
import { NEW_PRODUCT } from "../../lib/studio-links.ts";
import { useTitle } from "../../lib/use-title.ts";
import { canSell, useAccount } from "../../session.ts";
import { LastDays } from "./last-days.tsx";
import { Money } from "./overview-money.tsx";
import { Tasks } from "./tasks.tsx";

export default function Overview() {
  useTitle("Studio");
  const isSeller = canSell(useAccount());
  return (
    <main className="work studio" id="content">
      <div className="row between wrap">
        <h1 className="page-title">Studio</h1>
        <Link to={NEW_PRODUCT} className="btn primary">
          <PlusIcon /> New product
        </Link>
      </div>
      {isSeller ? (
        <>
          <Money />
          <Tasks />
          <div className="overview-columns">
            <LastDays />
            <FirstSteps />
          </div>
        </>
      ) : (
        <>
          <p className="soft studio-intro">
            Here you write products, publish them and see what they earn. Your first product makes you a
            seller.
          </p>
          <FirstSteps />
        </>
      )}
    </main>
  );
}

function FirstSteps() {
  const { data: progress = NO_SELLER_STEPS, isPending } = useQuery(sellerProgressQuery);
  const steps = STEPS.seller(progress);
  const done = steps.filter(({ isDone }) => isDone).length;
  if (isPending || done === steps.length) return null;
  return (
    <section className="beam thin studio-block overview-steps" aria-label="First steps">
      <div className="row between">
        <h2 className="h3">First steps</h2>
        <span className="sm soft num">
          {done} of {steps.length}
        </span>
      </div>
      <ol>
        <FirstStepList steps={steps} />
      </ol>
    </section>
  );
}
