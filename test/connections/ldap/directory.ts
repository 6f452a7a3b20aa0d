// A directory server in the test's process, with entries and passwords. It records the requests that it gets.
import { once } from 'node:events';
import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import net, { type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tls from 'node:tls';
import ldap from 'ldapjs';
import { localCertificate } from '../../../src/capabilities/tls/authority.ts';

export const BASE = 'dc=example,dc=test';
export const SERVICE = `cn=service,${BASE}`;
export const SERVICE_PASSWORD = 'the password of the service account';

export interface DirectoryEntry {
  dn: string;
  password?: string;
  attributes: Record<string, string | string[] | Buffer>;
}

export interface TestDirectory {
  ldapUrl: string;
  ldapsUrl: string;
  /** The CA's certificate, PEM. */
  ca: string;
  /** All attempted binds: DN and password. */
  binds: { dn: string; password: string }[];
  /** All search filters. */
  filters: string[];
  entries: DirectoryEntry[];
  /** The number of open connections. */
  open(): number;
  /** Closes the open connections, as a directory does with idle ones. */
  hangUp(): void;
  stop(): Promise<void>;
}

/** Starts a directory: `ldapUrl` supports StartTLS, `ldapsUrl` is TLS from the start. @param plain whether StartTLS is refused. */
export async function startDirectory(entries: DirectoryEntry[], plain = false): Promise<TestDirectory> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-ldap-'));
  const { cert, key, caFile } = await localCertificate(folder, ['localhost', '127.0.0.1'], Date.now);
  const binds: TestDirectory['binds'] = [];
  const filters: string[] = [];
  const server = serve(entries, binds, filters);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const inner = (server as unknown as { port: number }).port;
  const open = new Set<Socket>();
  const track = (socket: Socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => socket.destroy());
  };
  const pipe = (socket: Socket) => {
    const on = net.connect(inner, '127.0.0.1').on('error', () => socket.destroy());
    socket.on('close', () => on.destroy());
    on.on('close', () => socket.destroy());
    socket.pipe(on).pipe(socket);
  };
  const secure = tls.createServer({ cert, key }, (socket) => {
    track(socket);
    pipe(socket);
  });
  const first = net.createServer((socket) => {
    track(socket);
    if (plain) return pipe(socket);
    socket.once('data', (request) => {
      // The response has the message id of the request: an ExtendedResponse with success (RFC 4511 §4.12).
      socket.write(Buffer.from([0x30, 0x0c, 0x02, 0x01, request[4] ?? 1, 0x78, 7, 0x0a, 1, 0, 4, 0, 4, 0]));
      const encrypted = new tls.TLSSocket(socket, { isServer: true, cert, key });
      encrypted.on('error', () => socket.destroy());
      pipe(encrypted);
    });
  });
  for (const one of [secure, first]) await once(one.listen(0, '127.0.0.1'), 'listening');
  const portOf = (one: net.Server) => (one.address() as AddressInfo).port;
  return {
    ldapUrl: `ldap://localhost:${portOf(first)}`,
    ldapsUrl: `ldaps://localhost:${portOf(secure)}`,
    ca: readFileSync(caFile, 'utf8'),
    binds,
    filters,
    entries,
    open: () => open.size,
    hangUp: () => {
      for (const socket of open) socket.destroy();
    },
    stop: async () => {
      for (const socket of open) socket.destroy();
      for (const one of [secure, first]) one.close();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The members of ldapjs requests that are used here; its types do not declare all of them. */
interface BindRequest {
  dn: { toString(): string };
  credentials: unknown;
}
interface SearchRequest {
  dn: { toString(): string };
  filter: { matches(attributes: object, strict: boolean): boolean; toString(): string };
}
interface Result {
  /** The requested attributes, in lower case. */
  attributes: string[];
  send(entry: object): void;
  end(): void;
}

function serve(entries: DirectoryEntry[], binds: TestDirectory['binds'], filters: string[]): ldap.Server {
  const server = ldap.createServer();
  const named = (dn: string) => entries.find((one) => same(one.dn, dn));
  server.bind('', (req: BindRequest, res: Result, next: (error?: unknown) => void) => {
    const dn = req.dn.toString();
    const password = String(req.credentials);
    binds.push({ dn, password });
    // Real directories treat a bind without a password as anonymous, which succeeds.
    const isRight = password === '' || passwordOf(dn, named(dn)) === password;
    if (!isRight) return next(new ldap.InvalidCredentialsError());
    res.end();
    next();
  });
  server.search('', (req: SearchRequest, res: Result, next: () => void) => {
    filters.push(req.filter.toString());
    res.attributes = res.attributes.map((name) => name.toLowerCase());
    for (const { dn, attributes } of entries) {
      const isBelow = dn.toLowerCase().endsWith(
        req.dn
          .toString()
          .replaceAll(/\s*,\s*/g, ',')
          .toLowerCase(),
      );
      if (isBelow && req.filter.matches(attributes, false)) res.send({ dn, attributes });
    }
    res.end();
    next();
  });
  return server;
}

function passwordOf(dn: string, entry: DirectoryEntry | undefined): string | undefined {
  return same(dn, SERVICE) ? SERVICE_PASSWORD : entry?.password;
}

const plainDn = (dn: string) => dn.replaceAll(/\s*,\s*/g, ',').toLowerCase();
const same = (a: string, b: string) => plainDn(a) === plainDn(b);
