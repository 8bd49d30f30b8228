import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { access, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { after, before, suite, test } from "node:test";
import { type S3Server, startS3Server } from "../../../test/s3-server.ts";
import { parseS3Url } from "../../core/config/s3-url.ts";
import { createDiskStorage } from "./disk.ts";
import { createS3Storage } from "./s3.ts";
import { type Storage, StorageUnavailable } from "./storage.ts";

let folder: string;
let s3: S3Server;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "stoa-storage-"));
  s3 = await startS3Server();
});
after(async () => {
  await s3.close();
  await rm(folder, { recursive: true });
});

const nameOf = (bytes: Buffer) => `${createHash("sha256").update(bytes).digest("hex")}-${randomUUID()}`;

const drivers: Record<string, () => Storage> = {
  "the disk": () => createDiskStorage(join(folder, "files")),
  "a bucket": () => createS3Storage(parseS3Url(s3.url)),
};

for (const [where, open] of Object.entries(drivers)) {
  suite(`storage: ${where}`, () => {
    let storage: Storage;
    before(() => {
      storage = open();
    });
    after(() => storage.close());

    /** A file as an upload leaves it. */
    async function createIncoming(bytes: Buffer): Promise<string> {
      const path = join(await storage.incoming(), randomUUID());
      await writeFile(path, bytes);
      return path;
    }

    for (const size of [0, 1, 100_000, 5_000_000]) {
      test(`${size} bytes: are returned unchanged, from memory and from a file`, async () => {
        const bytes = randomBytes(size);
        for (const source of [bytes, { path: await createIncoming(bytes) }]) {
          const name = nameOf(bytes);
          assert.equal(await storage.has(name), false);
          assert.equal(await storage.get(name), null);
          await storage.put(name, source);
          assert.equal(await storage.has(name), true);
          assert.ok((await buffer((await storage.get(name))!)).equals(bytes));
        }
      });
    }

    test("range: is inclusive at both ends", async () => {
      const bytes = Buffer.from("0123456789");
      const name = nameOf(bytes);
      await storage.put(name, bytes);
      assert.equal(await text((await storage.get(name, { start: 2, end: 4 }))!), "234");
      assert.equal(await text((await storage.get(name, { start: 9, end: 9 }))!), "9");
    });

    test("remove: deletes, and may be repeated", async () => {
      const bytes = randomBytes(10);
      const [name, other] = [nameOf(bytes), nameOf(bytes)];
      await storage.put(name, bytes);
      await storage.put(other, bytes);
      await storage.remove(name);
      await storage.remove(name);
      assert.deepEqual([await storage.has(name), await storage.has(other)], [false, true]);
    });

    test("ten concurrent puts of one name: all succeed", async () => {
      const bytes = randomBytes(200_000);
      const name = nameOf(bytes);
      const paths = await Promise.all(Array.from({ length: 10 }, () => createIncoming(bytes)));
      await Promise.all(paths.map((path) => storage.put(name, { path })));
      assert.ok((await buffer((await storage.get(name))!)).equals(bytes));
    });

    test("invalid name: reaches neither disk nor network", async () => {
      const requestCount = s3.requests.length;
      for (const name of [
        "../../../etc/passwd",
        "",
        "a",
        `${"a".repeat(64)}-../x`,
        `${"A".repeat(64)}-${randomUUID()}`,
      ]) {
        for (const work of [
          () => storage.has(name),
          () => storage.get(name),
          () => storage.put(name, Buffer.alloc(1)),
          () => storage.remove(name),
        ])
          await assert.rejects(async () => work(), TypeError, name);
      }
      assert.equal(s3.requests.length, requestCount);
    });

    test("check: describes where files are stored", async () =>
      assert.match(await storage.check(), /^files are stored in /));
  });
}

test("disk: contains only complete files, readable by their owner only", async () => {
  const storage = createDiskStorage(join(folder, "alone"));
  const bytes = randomBytes(1_000);
  const name = nameOf(bytes);
  await storage.put(name, bytes);
  assert.deepEqual((await readdir(join(folder, "alone"))).sort(), [name.slice(0, 2), "incoming"].sort());
  assert.deepEqual(await readdir(await storage.incoming()), []);
  assert.equal((await stat(join(folder, "alone"))).mode & 0o777, 0o700);
  assert.equal((await stat(join(folder, "alone", name.slice(0, 2), name))).mode & 0o777, 0o600);
});

const longAgo = new Date(Date.now() - 2 * 3_600_000);

test("disk: leftovers of killed processes are deleted, and current uploads stay", async () => {
  const location = join(folder, "left");
  const incoming = await createDiskStorage(location).incoming();
  for (const name of ["left", "coming"]) await writeFile(join(incoming, name), "half");
  await utimes(join(incoming, "left"), longAgo, longAgo);
  await createDiskStorage(location).incoming();
  assert.deepEqual(await readdir(incoming), ["coming"]);
});

test("folder that cannot be created: StorageUnavailable", async () => {
  await writeFile(join(folder, "in-the-way"), "");
  await assert.rejects(createDiskStorage(join(folder, "in-the-way")).check(), StorageUnavailable);
});

suite("S3 bucket", () => {
  test("put: sends the digest of the body, and the server refuses another body", async () => {
    const storage = createS3Storage(parseS3Url(s3.url));
    const name = nameOf(Buffer.from("expected contents"));
    await assert.rejects(
      storage.put(name, Buffer.from("what came")),
      /^StorageUnavailable: .*SignatureDoesNotMatch 403$/,
    );
    assert.equal(await storage.has(name), false);
    await storage.close();
  });

  test("wrong secret: StorageUnavailable", async () => {
    const location = parseS3Url(s3.url);
    const storage = createS3Storage({
      ...location,
      credentials: { accessKeyId: "test", secretAccessKey: "wrong" },
    });
    await assert.rejects(storage.check(), StorageUnavailable);
    await storage.close();
  });

  test("busy server: is retried", async () => {
    const storage = createS3Storage(parseS3Url(s3.url));
    const bytes = randomBytes(100);
    s3.fails.times = 1;
    await storage.put(nameOf(bytes), bytes);
    assert.equal(s3.fails.times, 0);
    await storage.close();
  });

  test("unreachable server: StorageUnavailable without the access key", async () => {
    const storage = createS3Storage({ ...parseS3Url(s3.url), endpoint: "http://127.0.0.1:9" });
    const error = await storage.check().catch((failure: Error) => failure);
    assert.ok(error instanceof StorageUnavailable);
    assert.doesNotMatch(error.message, /secret|test\/key/);
    await storage.close();
  });

  test("leftover folders of killed processes: are deleted; a running process creates its folder again", async () => {
    const [left, coming] = [createS3Storage(parseS3Url(s3.url)), createS3Storage(parseS3Url(s3.url))];
    const folders = [await left.incoming(), await coming.incoming()] as const;
    for (const one of folders) await writeFile(join(one, "half"), "");
    await utimes(folders[0], longAgo, longAgo);
    const storage = createS3Storage(parseS3Url(s3.url));
    await storage.incoming();
    await assert.rejects(access(folders[0]));
    await access(join(folders[1], "half"));
    await access(await left.incoming());
    await Promise.all([left, coming, storage].map((one) => one.close()));
  });

  test("refused upload: its file is closed", async () => {
    const storage = createS3Storage({ ...parseS3Url(s3.url), endpoint: "http://127.0.0.1:9" });
    const path = join(folder, "refused");
    await writeFile(path, randomBytes(1_000_000));
    const openFiles = async () => (await readdir("/dev/fd")).length;
    const before = await openFiles();
    const put = () => assert.rejects(storage.put(nameOf(randomBytes(1)), { path }), StorageUnavailable);
    await Promise.all(Array.from({ length: 20 }, put));
    // The file is closed a moment after the refusal.
    for (let turn = 0; turn < 1_000 && (await openFiles()) > before + 5; turn++);
    assert.ok((await openFiles()) <= before + 5);
    await storage.close();
  });

  test("close: deletes the folder of uploads", async () => {
    const storage = createS3Storage(parseS3Url(s3.url));
    const incoming = await storage.incoming();
    await writeFile(join(incoming, "half"), "");
    await storage.close();
    await assert.rejects(access(incoming));
  });
});

suite("S3_URL", () => {
  test("contains key, secret, host, bucket, prefix and region", () => {
    assert.deepEqual(parseS3Url("s3://a%2Fb:c%2Bd@s3.eu-central-1.amazonaws.com/shop?region=eu-central-1"), {
      endpoint: "https://s3.eu-central-1.amazonaws.com",
      region: "eu-central-1",
      bucket: "shop",
      prefix: "",
      credentials: { accessKeyId: "a/b", secretAccessKey: "c+d" },
    });
  });

  test("uses TLS, except on this machine or if the URL allows http", () => {
    const endpointOf = (url: string) => parseS3Url(url).endpoint;
    assert.equal(endpointOf("s3://minio:9000/b"), "https://minio:9000");
    assert.equal(endpointOf("s3://minio:9000/b?tls=false"), "http://minio:9000");
    assert.equal(endpointOf("s3://127.0.0.1:9000/b"), "http://127.0.0.1:9000");
    assert.equal(endpointOf("s3://127.0.0.1:9000/b?tls=true"), "https://127.0.0.1:9000");
  });

  test("may have no credentials, and may have a prefix", () => {
    const { credentials, prefix } = parseS3Url("s3://host/bucket/a/b/");
    assert.deepEqual([credentials, prefix], [null, "a/b/"]);
  });

  for (const [wrong, why] of [
    ["https://host/bucket", /is not s3:/],
    ["s3:bucket", /is not s3:/],
    ["s3://host", /names no bucket/],
    ["s3://host/", /names no bucket/],
    ["s3://key@host/bucket", /half of a credential/],
    ["s3://host/bucket?region=a&acl=public", /not acl/],
    ["s3://host/bucket?tls=maybe", /true or false/],
    ["s3://key:100%@host/bucket", /%25/],
  ] as const)
    test(`refuses ${wrong}`, () => assert.throws(() => parseS3Url(wrong), why));
});
