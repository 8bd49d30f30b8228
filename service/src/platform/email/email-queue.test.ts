import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, suite, test } from "node:test";
import type pg from "pg";
import { freePort } from "../../../test/free-port.ts";
import { type MailServer, startMailServer } from "../../../test/mail-server.ts";
import { type Market, openMarket } from "../../../test/market.ts";
import { runChecks } from "../../backoffice/operator/doctor.ts";
import { EmailUnavailable } from "../../integrations/email/email-sender.ts";
import { deleteOldEmails, queueEmail, sendQueuedEmail } from "./email-queue.ts";
import { type Email, renderEmail } from "./render-email.ts";

const LINK = "https://stoa.example/auth/verify#token=hush-hush";
const message = renderEmail({
  subject: "Sign in to Stoa",
  paragraphs: ["Hello Zoë, here is your link.", "It works once."],
  action: { label: "Sign in", url: LINK },
});
const never = new AbortController().signal;

let market: Market;
let server: MailServer;
before(async () => {
  market = await openMarket({
    config: {
      mail: "smtp",
      smtpUrl: `smtp://127.0.0.1:${await freePort()}`,
      mailFrom: "Stoa <shop@stoa.example>",
    },
  });
});
after(() => market.close());
beforeEach(async () => {
  server = await startMailServer({ port: Number(new URL(market.service.ctx.config.smtpUrl!).port) });
});
afterEach(() => server.close());

/** Queues an email in its own transaction. Returns the id of its row. */
async function send(recipient = "ada@example.com", what: Email = message, { service }: Market = market) {
  const { ctx } = service;
  await ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, recipient, what));
  const { rows } = await ctx.pool.query("select id from emails order by id desc limit 1");
  return rows[0].id as string;
}

const carry = (id: string, { service }: Market = market) => sendQueuedEmail(service.ctx, id, never);
const rowOf = async (id: string, { query }: Market = market) =>
  (await query("select sealed_email, sent_at, refused_at from emails where id = $1", [id])).rows[0];
const jobsWaiting = async () =>
  (await market.query("select count(*) from pgboss.job where state = 'created'")).rows[0].count;
const jobsOf = async (id: string) =>
  (await market.query("select state from pgboss.job where data->>'mailId' = $1", [id])).rows;

suite("a sent email", () => {
  test("text and HTML, the configured sender, marked as automatic", async () => {
    const id = await send();
    await carry(id);
    const [got] = await server.received(1);
    assert.equal(got!.text.trim(), message.text.trim());
    assert.equal(got!.html.trim(), message.html.trim());
    assert.deepEqual([got!.from, got!.recipients], ["shop@stoa.example", ["ada@example.com"]]);
    assert.equal(got!.header("From"), "Stoa <shop@stoa.example>");
    assert.equal(got!.header("To"), "ada@example.com");
    assert.equal(got!.header("Subject"), "Sign in to Stoa");
    assert.equal(got!.header("Auto-Submitted"), "auto-generated");
    assert.equal(got!.header("Message-ID"), `<${id}@stoa.example>`);
  });

  test("email and job: committed or rolled back with their transaction", async () => {
    const { ctx } = market.service;
    const before = (await market.query("select count(*) from pgboss.job")).rows[0].count;
    const failing = ctx.db.transaction().execute(async (tx) => {
      await queueEmail(ctx, tx, "ada@example.com", message);
      throw new Error("rolled back");
    });
    await assert.rejects(failing, /rolled back/);
    assert.equal((await market.query("select count(*) from pgboss.job")).rows[0].count, before);
    const id = await send();
    assert.deepEqual(await jobsOf(id), [{ state: "created" }]);
  });

  test("accepted by the server: its content is deleted, and it is not sent again", async () => {
    const id = await send();
    await carry(id);
    assert.deepEqual(await rowOf(id), { sealed_email: null, sent_at: market.clock.now, refused_at: null });
    await carry(id);
    assert.equal(server.emails.length, 1);
  });

  test("sealed in the database: a dump has neither text nor link", async () => {
    await send();
    const { rows } = await market.query(
      "select (select json_agg(emails) from emails)::text || (select json_agg(job) from pgboss.job)::text as dump",
    );
    assert.match(rows[0].dump, /mailId/);
    assert.ok(!/hush|Sign in|Zoë|Stoa/.test(rows[0].dump), "no word of it");
  });

  test("its sealed text: does not open with another email's id", async () => {
    const [mine, other] = [await send(), await send()];
    await market.query(
      "update emails set sealed_email = (select sealed_email from emails where id = $1) where id = $2",
      [mine, other],
    );
    await assert.rejects(carry(other));
    assert.equal(server.emails.length, 0);
  });

  test("deleted after a week, sent or not", async () => {
    const id = await send();
    market.clock.forward(7 * 86_400_000);
    await deleteOldEmails(market.service.ctx);
    assert.ok(await rowOf(id));
    market.clock.forward(1);
    await deleteOldEmails(market.service.ctx);
    assert.equal(await rowOf(id), undefined);
    await carry(id);
    assert.equal(server.emails.length, 0);
  });
});

suite("an undelivered email", () => {
  const waits = async (id: string) => {
    await assert.rejects(carry(id), EmailUnavailable);
    const { sealed_email, sent_at, refused_at } = await rowOf(id);
    assert.ok(sealed_email && !sent_at && !refused_at);
  };

  test("the server is down: sent when it is back", async () => {
    const id = await send();
    await server.close();
    await waits(id);
    server = await startMailServer({ port: server.port });
    await carry(id);
    assert.equal(server.emails.length, 1);
  });

  for (const [who, reply] of [
    ["recipient", "450 4.2.0 come again"],
    ["email", "451 4.3.0 not now"],
    ["sender", "550 5.7.1 not yours to send from"],
  ] as const) {
    test(`the server answers "${reply}" to the ${who}: retried`, async () => {
      const id = await send();
      server.refuse[who] = reply;
      await waits(id);
      delete server.refuse[who];
      await carry(id);
      assert.equal(server.emails.length, 1);
    });
  }

  for (const [who, reply] of [
    ["recipient", "550 5.1.1 nobody here is ada@example.com"],
    ["email", "554 5.7.1 we do not like it"],
  ] as const) {
    test(`the server answers "${reply}" to the ${who}: fails for good`, async () => {
      const id = await send();
      server.refuse[who] = reply;
      await carry(id);
      assert.deepEqual(await rowOf(id), { sealed_email: null, sent_at: null, refused_at: market.clock.now });
      const logged = market.logs.filter((line) => line.includes(id));
      assert.match(logged.join(), new RegExp(`${reply.slice(0, 3)} ${reply.slice(4, 9)}`));
      assert.doesNotMatch(market.logs.join(), /ada@example\.com|hush/);
    });
  }

  test("the reason in the log: without the recipient", async () => {
    const id = await send();
    server.refuse.recipient = "450 4.2.0 ada@example.com is full";
    await assert.rejects(carry(id), (error: Error) => {
      assert.equal(error.message, "EENVELOPE RCPT TO 450 4.2.0");
      assert.equal(error.cause, undefined);
      return true;
    });
  });

  test("the process must end: the attempt is aborted at once", async () => {
    const silent = (await import("node:net")).createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as { port: number };
    const other = await openMarket({ config: { mail: "smtp", smtpUrl: `smtp://127.0.0.1:${port}` } });
    const ending = new AbortController();
    silent.once("connection", () => ending.abort(new Error("shutdown")));
    const id = await send("ada@example.com", message, other);
    await assert.rejects(sendQueuedEmail(other.service.ctx, id, ending.signal), /EABORT/);
    await other.close();
    silent.close();
  });
});

suite("header injection", () => {
  for (const recipient of [
    "ada@example.com,eve@example.net",
    "ada@example.com>, <eve@example.net",
    "ada@example.com\r\nBcc: eve@example.net",
    "ada@example.com\r\nRCPT TO:<eve@example.net>",
    "Ada <ada@example.com>",
    '"eve@example.net,"@example.com',
    "ada\uff20example.com",
  ]) {
    test(`recipient ${JSON.stringify(recipient)}: not sent`, async () => {
      const id = await send(recipient);
      await carry(id);
      assert.equal(server.emails.length, 0);
      assert.ok((await rowOf(id)).refused_at);
    });
  }

  test("a subject with line breaks: one subject line", async () => {
    const subject = "Hello\r\nBcc: eve@example.net\r\n\r\nBody";
    await carry(await send("ada@example.com", { ...message, subject }));
    await carry(await send("ada@example.com", renderEmail({ subject, paragraphs: ["x"] })));
    for (const got of await server.received(2)) {
      assert.equal(got.header("Bcc"), undefined);
      assert.deepEqual(got.recipients, ["ada@example.com"]);
      assert.match(got.header("Subject")!, /^Hello\s+Bcc: eve@example\.net\s+Body$/);
    }
  });
});

suite("the connection to the mail server", () => {
  const withServer = async (
    input: Parameters<typeof startMailServer>[0],
    urlOf: (url: string) => string,
    look: (market: Market, other: MailServer) => Promise<void>,
  ) => {
    const other = await startMailServer(input);
    const shop = await openMarket({ config: { mail: "smtp", smtpUrl: urlOf(other.url) } });
    await look(shop, other);
    await shop.close();
    await other.close();
  };
  const account = { user: "stoa", password: "p@ss:word" };

  test("sends user and password of the URL", () =>
    withServer(
      { account },
      (url) => url,
      async (shop, other) => {
        await carry(await send("ada@example.com", message, shop), shop);
        assert.equal(other.emails.length, 1);
        assert.match(await shop.service.ctx.integrations.emailSender.check(), /takes emails$/);
      },
    ));

  test("a wrong password: emails wait; the operator gets an error without the password", () =>
    withServer(
      { account },
      (url) => url.replace("p%40ss", "wrong"),
      async (shop, other) => {
        const id = await send("ada@example.com", message, shop);
        await assert.rejects(carry(id, shop), EmailUnavailable);
        assert.equal(other.emails.length, 0);
        await assert.rejects(shop.service.ctx.integrations.emailSender.check(), (error: Error) => {
          assert.match(error.message, /takes no emails: EAUTH .*535/);
          return !error.message.includes("wrong");
        });
      },
    ));

  test("required STARTTLS is missing: neither email nor password is sent", () =>
    withServer(
      { account },
      (url) => `${url}?requireTLS=true`,
      async (shop, other) => {
        const id = await send("ada@example.com", message, shop);
        await assert.rejects(carry(id, shop), EmailUnavailable);
        assert.equal(other.emails.length, 0);
      },
    ));

  test("an untrusted certificate: refused unless the operator allows it", async () => {
    const tls = "implicit";
    await withServer(
      { tls },
      (url) => url,
      async (shop, other) => {
        const id = await send("ada@example.com", message, shop);
        await assert.rejects(carry(id, shop), EmailUnavailable);
        assert.equal(other.emails.length, 0);
      },
    );
    await withServer(
      { tls },
      (url) => `${url}?tls.rejectUnauthorized=false`,
      async (shop, other) => {
        await carry(await send("ada@example.com", message, shop), shop);
        assert.equal(other.emails.length, 1);
      },
    );
  });
});

suite("the doctor's check of email", () => {
  const findingOf = async ({ service: { ctx } }: Market) => {
    const target = (ctx.pool.options as pg.PoolConfig).connectionString!;
    const findings = await runChecks({ config: ctx.config, target });
    return findings.find(({ check }) => check === "mail")!;
  };

  test("a reachable mail server: ok, with the number of waiting emails", async () => {
    const [sent, waiting] = [await send(), await jobsWaiting()];
    assert.ok(sent && waiting > 0);
    const { ok, note } = await findingOf(market);
    assert.ok(ok);
    assert.equal(
      note,
      `127.0.0.1:${server.port} takes emails; ${waiting} waiting, 0 given up in the last week`,
    );
  });

  test("an unreachable mail server: a warning", async () => {
    await server.close();
    const { ok, note } = await findingOf(market);
    assert.ok(!ok);
    assert.match(note, /takes no emails: ESOCKET ECONNREFUSED/);
    server = await startMailServer({ port: server.port });
  });
});

suite("MAIL_URL is off", () => {
  test("stores no email and requests no job", async () => {
    const quiet = await openMarket({ config: { mail: "off" } });
    const { ctx } = quiet.service;
    await ctx.db.transaction().execute((tx) => queueEmail(ctx, tx, "ada@example.com", message));
    assert.equal((await quiet.query("select count(*) from emails")).rows[0].count, 0);
    assert.equal((await quiet.query("select count(*) from pgboss.job")).rows[0].count, 0);
    await quiet.close();
  });
});
