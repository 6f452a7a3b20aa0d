// Starts Gatehouse in a container, for tests.
import { createServer } from 'node:net';
import { GenericContainer, Wait } from 'testcontainers';

export interface Gatehouse {
  /** Its address. The issuer of its tokens has a slash after it. */
  url: string;
  /** Its certificate authority, PEM. */
  ca: string;
  stop(): Promise<unknown>;
}

/** @param tenantFile what it serves; a tenant file of this machine. */
export async function startGatehouse(tenantFile: string): Promise<Gatehouse> {
  // The address is in every token, so it must be known before the start: the port cannot be one that the engine chooses.
  const port = await freePort();
  const url = `https://localhost:${port}`;
  const container = await new GenericContainer(process.env.GATEHOUSE_IMAGE ?? 'gatehouse:local')
    .withExposedPorts({ container: 3000, host: port })
    // Not production: it makes a certificate of its own, and the tenant file may have users and short secrets.
    .withEnvironment({ NODE_ENV: 'development', TLS: 'auto', BASE_URL: url })
    .withCopyFilesToContainer([{ source: tenantFile, target: '/config/tenant.yaml', mode: 0o444 }])
    .withDroppedCapabilities('ALL')
    .withWaitStrategy(Wait.forLogMessage(/"msg":"listening"/))
    .start();
  // The image has no shell and no `cat`, so Node.js prints the file.
  const { output: ca } = await container.exec(['node', '-p', "fs.readFileSync('/data/tls/ca.pem', 'utf8')"]);
  return { url, ca, stop: () => container.stop() };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('there is no free port');
  return address.port;
}
