import { startService } from "../src/app.ts";
import { createLog } from "../src/core/log.ts";
import { createFakePayments } from "../src/integrations/payments/fake-payments.ts";
import { listScheduledJobs } from "../src/jobs.ts";
import type { CrashOptions } from "./crashing-service.ts";

process.once("message", async ({ config, target, provider, now, crashesAt }: CrashOptions) => {
  const { ctx, origin } = await startService(
    config,
    { target, maxConnections: 4 },
    {
      payments: createFakePayments({ origin: provider }),
      now: () => now,
      log: createLog("error"),
      failPoints: (name) => {
        if (name === crashesAt) process.kill(process.pid, "SIGKILL");
      },
    },
  );
  process.on("message", async (name) => {
    await listScheduledJobs(ctx)
      .find((job) => job.name === name)!
      .run();
    process.send!("done");
  });
  process.send!(origin);
});

// The parent has ended.
process.once("disconnect", () => process.exit());
