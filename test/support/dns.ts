// A DNS server on loopback that answers the given TXT records (RFC 1035 §4).
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export interface TestDns {
  /** For the setting DNS_SERVERS. */
  address: string;
  /** The texts by name, in lower case. */
  records: Map<string, string[]>;
  stop(): void;
}

const TXT = 16;

/** Starts one without records. */
export async function startDns(): Promise<TestDns> {
  const records = new Map<string, string[]>();
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => socket.send(answer(query, records), from.port, from.address));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, records, stop: () => void socket.close() };
}

function answer(query: Buffer, records: ReadonlyMap<string, string[]>): Buffer {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const question = query.subarray(12, at + 5);
  const isText = query.readUInt16BE(at + 1) === TXT;
  const found = (isText && records.get(labels.join('.').toLowerCase())) || [];
  const header = Buffer.from(query.subarray(0, 12));
  // Returns an answer of a recursive server; NXDOMAIN if there is no record.
  header.writeUInt16BE(found.length > 0 ? 0x8180 : 0x8183, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(found.length, 6);
  header.writeUInt32BE(0, 8);
  return Buffer.concat([header, question, ...found.map(textRecord)]);
}

function textRecord(text: string): Buffer {
  const data = Buffer.concat([Buffer.from([text.length]), Buffer.from(text, 'latin1')]);
  const head = Buffer.alloc(12);
  // A compression pointer to the name in the question.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(TXT, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
