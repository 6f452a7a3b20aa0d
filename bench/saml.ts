// What a stranger's SAML messages cost everybody: the processor time of the thread that answers, for the worst message of
// each kind, and how many others get an answer while four senders post such messages. The baseline, in the same run, is
// the discovery document.
//
//   node bench/saml.ts [seconds]
import { deflateRawSync } from 'node:zlib';
import { makeCertificate, samlClient, startSamlServer } from '../test/saml/support.ts';
import { createAgent } from '../test/support/agent.ts';
import { costlyXml, PART_NAMES } from '../test/support/costly-xml.ts';
import { seeded } from '../test/support/seeded.ts';
import { UNLIMITED } from '../test/support/unlimited.ts';

const MS = Number(process.argv[2] ?? 5) * 1000;
const SENDERS = 4;
const TRIES = 5;

const key = await makeCertificate();
const acme = {
  name: 'acme',
  strategy: 'samlp',
  enabled_clients: ['web'],
  options: {
    signInEndpoint: 'https://idp.example.test/sso',
    signingCert: key.certificate,
    idpinitiated: { enabled: true, client_id: 'web', client_protocol: 'oauth2' },
  },
};
const clients = [samlClient('strict', { signingCert: key.certificate })];
const server = await startSamlServer(clients, { ...UNLIMITED, connections: [acme] });
const agent = createAgent(server);
const usual = () => agent.get('/.well-known/openid-configuration');

const ENDPOINTS = [
  { path: '/logout', field: 'SAMLRequest', root: 'LogoutRequest', length: 65_536, most: 450 },
  { path: '/samlp/strict', field: 'SAMLRequest', root: 'AuthnRequest', length: 65_536, most: 450 },
  {
    path: '/login/callback?connection=acme',
    field: 'SAMLResponse',
    root: 'Response',
    length: 262_144,
    most: 4_900,
  },
];

/** Returns the least processor time of this thread for a request, milliseconds. */
async function cost(send: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let left = TRIES; left > 0; left--) {
    const before = process.threadCpuUsage();
    await send();
    const { user, system } = process.threadCpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

/** Returns how many others get an answer in the given time, and the longest wait. */
async function others(send: () => Promise<unknown>): Promise<{ answered: number; longest: number }> {
  const end = performance.now() + MS;
  const sending = async () => {
    while (performance.now() < end) await send();
  };
  const senders = Array.from({ length: SENDERS }, sending);
  let [answered, longest] = [0, 0];
  while (performance.now() < end) {
    const started = performance.now();
    await usual();
    answered++;
    longest = Math.max(longest, performance.now() - started);
  }
  await Promise.all(senders);
  return { answered, longest };
}

const attributes = ` Version="2.0" IssueInstant="${new Date().toISOString()}" Destination="${server.url}/logout"`;
const baseline = await cost(usual);
console.log(`discovery document: ${baseline.toFixed(1)} ms`);
for (const { path, field, root, length, most } of ENDPOINTS) {
  const sends = PART_NAMES.flatMap((name) =>
    [most, Number.POSITIVE_INFINITY].map((parts) => {
      const xml = costlyXml(seeded(33), { root, attributes, names: [name], most: parts, length });
      const form = { [field]: deflateRawSync(xml).toString('base64') };
      return { name, send: () => agent.request(path, { form }) };
    }),
  );
  let worst = { name: '', ms: 0, send: usual as () => Promise<unknown> };
  for (const { name, send } of sends) {
    const ms = await cost(send);
    if (ms > worst.ms) worst = { name, ms, send };
  }
  const { answered, longest } = await others(worst.send);
  console.log(
    `${path}: worst "${worst.name}" ${worst.ms.toFixed(1)} ms, ${(worst.ms / baseline).toFixed(1)} times the baseline; others: ${answered} answers in ${MS / 1000} s, the longest ${longest.toFixed(0)} ms`,
  );
}
await server.stop();
