import { crc32, deflateRawSync } from "node:zlib";

export interface Entry {
  name: string;
  data?: string | Buffer;
  /** The uncompressed size in the headers. */
  size?: number;
  method?: 0 | 8 | 9;
  encrypted?: boolean;
  mode?: number;
  /** The name in the local header, when it differs. */
  localName?: string;
  localMethod?: 0 | 8;
  /** The extra field in both headers. */
  extra?: Buffer;
}

/** A plain archive, with false header values on request. */
export function zipOf(
  entries: Entry[],
  header: { comment?: string; count?: number } = {},
): Buffer<ArrayBuffer> {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const {
    name,
    data = "",
    size,
    method = 8,
    encrypted = false,
    mode = 0o100644,
    localName,
    localMethod = method,
    extra = Buffer.alloc(0),
  } of entries) {
    const bytes = Buffer.from(data);
    const packed = method === 8 ? deflateRawSync(bytes) : bytes;
    const shared = Buffer.alloc(26);
    shared.writeUInt16LE(20, 0);
    shared.writeUInt16LE(0x800 | (encrypted ? 1 : 0), 2);
    shared.writeUInt16LE(method, 4);
    shared.writeUInt32LE(crc32(bytes), 10);
    shared.writeUInt32LE(packed.length, 14);
    shared.writeUInt32LE(size ?? bytes.length, 18);
    shared.writeUInt16LE(extra.length, 24);
    const local = Buffer.from(shared);
    local.writeUInt16LE(localMethod, 4);
    local.writeUInt16LE(Buffer.byteLength(localName ?? name), 22);
    const one = [Buffer.from("PK\x03\x04"), local, Buffer.from(localName ?? name), extra, packed];
    shared.writeUInt16LE(Buffer.byteLength(name), 22);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE((mode << 16) >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.from("PK\x01\x02"), Buffer.from([20, 3]), shared, rest, Buffer.from(name), extra);
    locals.push(...one);
    offset += Buffer.concat(one).length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(header.count ?? entries.length, 4);
  end.writeUInt16LE(header.count ?? entries.length, 6);
  end.writeUInt32LE(list.length, 8);
  end.writeUInt32LE(offset, 12);
  end.writeUInt16LE(Buffer.byteLength(header.comment ?? ""), 16);
  return Buffer.concat([...locals, list, Buffer.from("PK\x05\x06"), end, Buffer.from(header.comment ?? "")]);
}
