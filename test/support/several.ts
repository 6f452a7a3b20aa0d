// Several servers over one store at one address, in this process: none sees what another keeps in memory.
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { startServer, type TestServer } from './server.ts';
import { fillDataDir } from './template.ts';

/** Distributes connections over some ports in turn. */
export async function startBalancer(): Promise<{
  port: number;
  to(ports: readonly number[]): void;
  stop(): void;
}> {
  let targets: readonly number[] = [];
  let turn = 0;
  const sockets = new Set<net.Socket>();
  const keep = (socket: net.Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  };
  const server = net.createServer((socket) => {
    const target = targets[turn++ % targets.length];
    const other = net.connect(target ?? 0, '127.0.0.1');
    for (const one of [socket, other]) keep(one);
    socket.pipe(other).pipe(socket);
    socket.once('close', () => other.destroy());
    other.once('close', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    to: (ports) => {
      targets = ports;
    },
    stop: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Returns a function that opens one embedded store for several servers; the store says that it is shared. */
async function sharedStore(): Promise<{
  store: Store;
  open: typeof openStore;
  close(): Promise<void>;
}> {
  const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-shared-'));
  await fillDataDir(dataDir, false);
  const { exclusive: _alone, ...store } = await openStore({ dataDir, clock: Date.now });
  return {
    store,
    open: async () => ({ ...store, close: async () => undefined }),
    close: async () => {
      await store.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export interface Several {
  /** The address of all of them. */
  url: string;
  ca: string;
  servers: readonly TestServer[];
  /** Returns one of them, with its own address. */
  at(index: number): { url: string; ca: string };
  store: Store;
  stop(): Promise<void>;
}

/** Starts some servers over one store. */
export async function startSeveral(
  count: number,
  options: Omit<Parameters<typeof startServer>[0], 'open' | 'dataDir'>,
): Promise<Several> {
  const shared = await sharedStore();
  const balancer = await startBalancer();
  const url = `https://localhost:${balancer.port}`;
  const servers: TestServer[] = [];
  for (let i = 0; i < count; i++) {
    const env = { ...options.env, BASE_URL: url };
    servers.push(await startServer({ ...options, env, open: shared.open }));
  }
  balancer.to(servers.map(({ settings }) => settings.port));
  // Each has a certificate of its own CA.
  const ca = servers.map((one) => one.ca).join('\n');
  return {
    url,
    ca,
    servers,
    at: (index) => ({ url: `https://localhost:${servers[index]?.settings.port}`, ca }),
    store: shared.store,
    stop: async () => {
      for (const one of servers) await one.stop();
      balancer.stop();
      await shared.close();
    },
  };
}
