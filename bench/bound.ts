// Sender-constrained tokens per second, by DPoP and by client certificate, compared with a bare oidc-provider with the
// same features, alternately in one run: `npm run bench -- bound`. Also the processor time of a request, which other
// load on the machine hardly changes. PROFILE=directory writes a .cpuprofile of the server.
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { clientCertificate } from '../test/support/client-certificate.ts';
import { API, client, TENANT } from './fixture.ts';
import {
  local,
  median,
  PROXIED,
  processorTime,
  proxiedEnvironment,
  type Started,
  start,
  stop,
} from './server.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 4_000);
const CONNECTIONS = 8;
const EDGE_KEY = 'the-api-key-of-the-edge-that-is-measured';
const BOUND_API = 'https://bound.example.test/';
const here = (file: string) => fileURLToPath(new URL(file, import.meta.url));

const certificate = await clientCertificate();
const tenant = TENANT.replace(
  'databases:',
  `  - client_id: mtls
    name: mTLS
    app_type: non_interactive
    grant_types: [client_credentials]
    client_authentication_methods:
      self_signed_tls_client_auth: { credentials: [{ thumbprint_sha256: '${certificate.thumbprint}' }] }
customDomains: [{ domain: login.example.test, type: self_managed_certs, api_key: ${EDGE_KEY} }]
databases:`,
)
  .replace(
    'resourceServers: [',
    `resourceServers: [{ name: Bound, identifier: '${BOUND_API}', scopes: [{ value: 'read:things' }], proof_of_possession: { mechanism: mtls, required: true } }, `,
  )
  .replace(
    'clientGrants: [',
    `clientGrants: [{ client_id: mtls, audience: '${BOUND_API}', scope: ['read:things'] }, `,
  );

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const HEADER = encoded({ alg: 'ES256', typ: 'dpop+jwt', jwk: publicKey.export({ format: 'jwk' }) });

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** Returns proofs for a token endpoint (RFC 9449 §4.2), each for one use. */
function proofs(htu: string, howMany: number): string[] {
  const iat = Math.floor(Date.now() / 1000);
  return Array.from({ length: howMany }, () => {
    const signed = `${HEADER}.${encoded({ jti: randomUUID(), htm: 'POST', htu, iat })}`;
    const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
    return `${signed}.${signature.toString('base64url')}`;
  });
}

interface Load {
  server: Started;
  url: string;
  fields: Record<string, string>;
  headers?: Record<string, string>;
  /** The URL that the proofs of the requests are for. */
  htu?: string;
}

interface Cost {
  perSecond: number;
  /** Processor time of a request in microseconds, of the main thread and of all threads. */
  main: number;
  all: number;
}

/** Sends the requests. @throws Error when one was not answered with 200. */
async function load({ server, url, fields, headers = {}, htu }: Load): Promise<Cost> {
  const waiting = htu === undefined ? [] : proofs(htu, REQUESTS + CONNECTIONS);
  const pid = server.child.pid ?? 0;
  const before = processorTime(pid);
  const result = await autocannon({
    url,
    connections: CONNECTIONS,
    amount: REQUESTS,
    requests: [
      {
        method: 'POST',
        headers: { ...PROXIED, ...headers, 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams(fields).toString(),
        ...(htu !== undefined && {
          setupRequest: (request: autocannon.Request) => ({
            ...request,
            headers: { ...request.headers, dpop: waiting.pop() ?? '' },
          }),
        }),
      },
    ],
  });
  const after = processorTime(pid);
  const count = result['2xx'];
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${url}: ${result.non2xx} failures`);
  const each = (nanoseconds: number) => nanoseconds / count / 1_000;
  return {
    perSecond: count / result.duration,
    main: each(after.main - before.main),
    all: each(after.all - before.all),
  };
}

async function compare(name: string, ours: Load, bare: Load) {
  const pairs: [Cost, Cost][] = [];
  for (let round = 0; round < ROUNDS; round++) pairs.push([await load(ours), await load(bare)]);
  const of = (value: (pair: [Cost, Cost]) => number) => median(pairs.map(value));
  return {
    name,
    'gatehouse/s': Math.round(of(([a]) => a.perSecond)),
    'baseline/s': Math.round(of(([, b]) => b.perSecond)),
    ratio: Number(of(([a, b]) => a.perSecond / b.perSecond).toFixed(3)),
    'gatehouse µs': Math.round(of(([a]) => a.all)),
    'baseline µs': Math.round(of(([, b]) => b.all)),
    'by processor': Number(of(([a, b]) => b.all / a.all).toFixed(3)),
    goal: 0.85,
  };
}

const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
writeFileSync(join(directory, 'tenant.yaml'), tenant);
const env = proxiedEnvironment(directory);
const { PROFILE } = process.env;
const gatehouse = await start(here('../src/main.js'), {
  ...env,
  ...(PROFILE !== undefined && {
    NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${PROFILE}`,
  }),
});
const bare = await start(here('bare.ts'), {});
const ours = `${local(gatehouse)}/oauth/token`;
const theirs = `${bare.url}/token`;
const own = { grant_type: 'client_credentials', resource: API, scope: 'read:things' };
const shown = { 'client-certificate': encodeURIComponent(certificate.cert) };
const edge = { ...shown, 'cname-api-key': EDGE_KEY, 'client-certificate-ca-verified': 'NONE, self-signed' };

const rows = [
  await compare(
    'client_credentials, bound by DPoP (ES256)',
    {
      server: gatehouse,
      url: ours,
      fields: { ...client, grant_type: 'client_credentials', audience: API },
      htu: `${env.BASE_URL}/oauth/token`,
    },
    {
      server: bare,
      url: theirs,
      fields: { ...own, client_id: 'bench', client_secret: 'bench-secret' },
      htu: theirs,
    },
  ),
  await compare(
    'client_credentials, by and bound to a certificate',
    {
      server: gatehouse,
      url: ours,
      fields: { client_id: 'mtls', grant_type: 'client_credentials', audience: BOUND_API },
      headers: edge,
    },
    { server: bare, url: theirs, fields: { ...own, client_id: 'mtls' }, headers: shown },
  ),
];
console.table(rows);
await stop(bare);
await stop(gatehouse);
rmSync(directory, { recursive: true });
