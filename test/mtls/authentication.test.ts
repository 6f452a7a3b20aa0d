// Clients that authenticate with a certificate which an edge forwards (docs/do/mtls.md), and the headers that others
// must not send.
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import { type Answer, createAgent } from '../support/agent.ts';
import {
  CLIENT_AUTH,
  clientCertificate,
  SERVER_AUTH,
  type TestCertificate,
} from '../support/client-certificate.ts';
import { API, tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const KEY = 'the-api-key-of-the-edge-of-login';
const NEXT_KEY = 'the-api-key-that-follows-on-it-soon';
const OTHER_KEY = 'the-api-key-of-the-edge-of-another';
const PENDING_KEY = 'the-api-key-of-one-that-is-not-verified';
const DAY = 86_400_000;
/** Names in a certificate begin with the widest; RFC 4514 writes it last. */
const IN_ORDER = 'C=DE,O=Bank AG,OU=pay+CN=two,CN=Bank \\+ Söhne';
/** The same in the form that the log shows. */
const AS_LOGGED = 'CN=Bank \\+ Söhne,OU=pay+CN=two,O=Bank AG,C=DE';
const SUBJECT = 'CN=bank \\2B  S\\C3\\B6hne, cn=Two+OU=pay , O=Bank AG,2.5.4.6=#13024445';

describe('client certificates from an edge', () => {
  let server: TestServer;
  let own: TestCertificate;
  let other: TestCertificate;
  let signed: TestCertificate;
  let backslash: TestCertificate;
  let letters: TestCertificate;
  let expired: TestCertificate;
  let early: TestCertificate;
  let forServers: TestCertificate;
  let forClients: TestCertificate;

  before(async () => {
    const ca = await clientCertificate({ subject: 'CN=Test CA', isAuthority: true });
    const issuer = ca.authority;
    own = await clientCertificate();
    other = await clientCertificate();
    signed = await clientCertificate({ subject: IN_ORDER, issuer });
    backslash = await clientCertificate({ subject: 'CN=a\\\\41,O=Bank\\ ', issuer });
    letters = await clientCertificate({ subject: 'CN=aA,O=Bank', issuer });
    expired = await clientCertificate({ from: -2 * DAY, to: -DAY });
    early = await clientCertificate({ from: DAY });
    forServers = await clientCertificate({ usages: [SERVER_AUTH] });
    forClients = await clientCertificate({ usages: [SERVER_AUTH, CLIENT_AUTH] });
    const client = (client_id: string, methods: object) => ({
      client_id,
      name: client_id,
      app_type: 'non_interactive',
      grant_types: ['client_credentials'],
      client_authentication_methods: methods,
    });
    const registered = (...credentials: object[]) => ({ self_signed_tls_client_auth: { credentials } });
    const clients = [
      client('pem', registered({ pem: own.cert })),
      client('thumbprint', registered({ thumbprint_sha256: own.certificate.fingerprint256 })),
      client('expiring', registered({ pem: own.cert, expires_at: new Date(Date.now() + DAY).toISOString() })),
      client('unfit', registered({ pem: expired.cert }, { pem: early.cert })),
      client('usages', registered({ pem: forServers.cert }, { pem: forClients.cert })),
      client('signed', { tls_client_auth: { credentials: [{ subject_dn: SUBJECT }] } }),
      client('signed-as', { tls_client_auth: { credentials: [{ pem: signed.cert }] } }),
      client('escaped', { tls_client_auth: { credentials: [{ subject_dn: 'O=Bank\\  , CN=a\\5C41' }] } }),
      client('escaped-as', { tls_client_auth: { credentials: [{ pem: backslash.cert }] } }),
      client('as-logged', { tls_client_auth: { credentials: [{ subject_dn: AS_LOGGED }] } }),
      client('another-order', {
        tls_client_auth: { credentials: [{ subject_dn: IN_ORDER }] },
      }),
    ];
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, ...clients],
        clientGrants: [
          ...tenant.clientGrants,
          ...clients.map(({ client_id }) => ({ client_id, audience: API, scope: ['read:things'] })),
        ],
        customDomains: [
          { domain: 'login.example.test', type: 'self_managed_certs', api_keys: [KEY, NEXT_KEY] },
          { domain: 'other.example.test', type: 'self_managed_certs', api_key: OTHER_KEY },
          { domain: 'new.example.test', status: 'pending_verification', api_key: PENDING_KEY },
        ],
      },
    });
  });
  after(() => server?.stop());

  const escaped = ({ cert }: TestCertificate) => encodeURIComponent(cert);
  const headers = (certificate: string, over: Record<string, string> = {}) => ({
    'cname-api-key': KEY,
    'client-certificate': certificate,
    'client-certificate-ca-verified': 'FAILED:self-signed certificate',
    ...over,
  });
  const ask = (client_id: string, sent: Record<string, string>): Promise<Answer> =>
    createAgent(server).request('/oauth/token', {
      headers: sent,
      form: { grant_type: 'client_credentials', client_id, audience: API },
    });
  const statusOf = async (client: string, sent: Record<string, string>) => (await ask(client, sent)).status;
  const refusalOf = async (client: string, sent: Record<string, string>) => {
    const { status, text } = await ask(client, sent);
    return { status, ...(JSON.parse(text) as object) };
  };
  const UNAUTHORIZED = { status: 401, error: 'invalid_client', error_description: 'Unauthorized' };

  describe('in various forms', () => {
    const base64 = () => own.certificate.raw.toString('base64');
    for (const [form, value] of [
      ['URL-encoded PEM', () => escaped(own)],
      ['PEM with tabs for line ends', () => own.cert.trim().replaceAll('\n', '\t')],
      ['PEM with spaces for line ends', () => own.cert.trim().replaceAll('\n', ' ')],
      ['an RFC 9440 byte sequence', () => `:${base64()}:`],
      [
        'a header of Envoy',
        () =>
          `Hash=${'a'.repeat(64)};Cert="${escaped(own)}";Subject="CN=a\\"b,C=DE";URI=,;DNS=x`.replace(
            ',;',
            ';',
          ),
      ],
    ] as const) {
      it(`are read as ${form}`, async () => {
        expect(await statusOf('pem', headers(value()))).to.equal(200);
        expect(await statusOf('thumbprint', headers(value()))).to.equal(200);
      });
    }

    for (const [what, value, description] of [
      ['no certificate', () => 'nothing', 'cannot be read'],
      ['half of a certificate', () => encodeURIComponent(own.cert.slice(0, 200)), 'cannot be read'],
      ['a broken escape', () => `${escaped(own)}%E0%A4`, 'cannot be read'],
      ['text around it', () => `${escaped(own)}x`, 'cannot be read'],
      ['a malformed byte sequence', () => `:${base64()}`, 'cannot be read'],
      [
        'bytes after the certificate',
        () => `:${Buffer.concat([own.certificate.raw, Buffer.from('x')]).toString('base64')}:`,
        'cannot be read',
      ],
      ['a header of Envoy without a certificate', () => 'Hash=aa;Subject="CN=client"', 'cannot be read'],
      ['a chain in PEM', () => escaped(own) + escaped(other), 'without its chain'],
      ['a list of byte sequences', () => `:${base64()}:, :${base64()}:`, 'without its chain'],
      ['two elements of Envoy', () => `Cert="${escaped(own)}",Cert="${escaped(own)}"`, 'without its chain'],
      [
        'two certificates in one element of Envoy',
        () => `Cert="${escaped(own)}";cert="${escaped(own)}"`,
        'without its chain',
      ],
    ] as const) {
      it(`are refused: ${what}`, async () => {
        const refusal = await refusalOf('pem', headers(value()));
        expect(refusal).to.include({ status: 401, error: 'invalid_client' });
        expect((refusal as { error_description?: string }).error_description).to.contain(description);
      });
    }
  });

  describe('that are registered', () => {
    it('let no other client in', async () => {
      expect(await refusalOf('pem', headers(escaped(other)))).to.deep.equal(UNAUTHORIZED);
      expect(await refusalOf('thumbprint', headers(escaped(signed)))).to.deep.equal(UNAUTHORIZED);
    });

    it('are required, and a secret does not replace them', async () => {
      const { 'client-certificate': _, ...without } = headers('');
      expect(await refusalOf('pem', without)).to.deep.equal(UNAUTHORIZED);
      const { status } = await createAgent(server).request('/oauth/token', {
        headers: headers(escaped(own)),
        form: {
          grant_type: 'client_credentials',
          client_id: 'pem',
          client_secret: 'x'.repeat(40),
          audience: API,
        },
      });
      expect(status).to.equal(401);
    });

    for (const [what, client, certificate, description] of [
      ['expired', 'unfit', () => expired, 'The client certificate has expired'],
      ['not valid yet', 'unfit', () => early, 'The client certificate is not valid yet'],
      ['for servers', 'usages', () => forServers, 'The client certificate is not for client authentication'],
    ] as const) {
      it(`are refused with a reason when they are ${what}`, async () => {
        expect(await refusalOf(client, headers(escaped(certificate())))).to.deep.equal({
          status: 401,
          error: 'invalid_client',
          error_description: description,
        });
      });
    }

    it('may have further key usages', async () => {
      expect(await statusOf('usages', headers(escaped(forClients)))).to.equal(200);
    });

    it('need no authority, but the client must have shown them in the handshake', async () => {
      for (const status of ['SUCCESS', 'FAILED', 'FAILED:unable to verify the first certificate', '']) {
        expect(
          await statusOf('pem', headers(escaped(own), { 'client-certificate-ca-verified': status })),
          status,
        ).to.equal(200);
      }
      expect(
        await refusalOf('pem', headers(escaped(own), { 'client-certificate-ca-verified': 'NONE' })),
      ).to.include({ status: 401, error_description: 'No client certificate was shown to the edge' });
    });
  });

  describe('signed by an authority', () => {
    const verified = (certificate: TestCertificate, status = 'SUCCESS') =>
      headers(escaped(certificate), { 'client-certificate-ca-verified': status });

    it('are recognised by their subject, however it is spelled', async () => {
      expect(await statusOf('signed', verified(signed))).to.equal(200);
      expect(await statusOf('signed-as', verified(signed))).to.equal(200);
    });

    for (const status of ['FAILED', 'FAILED:expired', 'success', 'SUCCESS;', '', 'GENEROUS', 'NONE']) {
      it(`count when the edge has verified them, not with ${status || 'nothing'}`, async () => {
        expect(await statusOf('signed', verified(signed, status))).to.equal(401);
      });
    }

    it('are compared with each escape in a subject read once', async () => {
      for (const client of ['escaped', 'escaped-as']) {
        expect(await statusOf(client, verified(backslash)), client).to.equal(200);
        expect(await statusOf(client, verified(letters)), client).to.equal(401);
      }
    });

    it('are named in the log when they are refused, as the setting takes their subject', async () => {
      expect(await refusalOf('another-order', verified(signed))).to.deep.equal(UNAUTHORIZED);
      await server.tenant.close();
      const { records } = await server.store.collection('logs').list({ limit: 1000 });
      const event = records.findLast(
        ({ type, client_id }) => type === 'feccft' && client_id === 'another-order',
      );
      expect(event?.details).to.deep.equal({
        reason: 'certificate subject value does not match the registered one',
        client_certificate: {
          subject_dn: AS_LOGGED,
          thumbprint_sha256: createHash('sha256').update(signed.certificate.raw).digest('base64url'),
        },
      });
      expect(await statusOf('as-logged', verified(signed))).to.equal(200);
    });

    it('are refused with another subject, or its names in another order', async () => {
      expect(await refusalOf('signed', verified(own))).to.deep.equal(UNAUTHORIZED);
      expect(await refusalOf('another-order', verified(signed))).to.deep.equal(UNAUTHORIZED);
    });
  });

  describe('are accepted only from the edge:', () => {
    it('with any key of a verified domain, so that keys can rotate', async () => {
      for (const key of [KEY, NEXT_KEY, OTHER_KEY])
        expect(await statusOf('pem', headers(escaped(own), { 'cname-api-key': key }))).to.equal(200);
    });

    it("with its own domain's key, where a request names a custom domain", async () => {
      const at = (host: string, key: string) =>
        statusOf('pem', headers(escaped(own), { host, 'cname-api-key': key }));
      expect(await at('login.example.test', KEY)).to.equal(200);
      expect(await at('LOGIN.example.test.:443', NEXT_KEY)).to.equal(200);
      expect(await at('login.example.test', OTHER_KEY)).to.equal(401);
      expect(await at('other.example.test', KEY)).to.equal(401);
    });

    for (const [what, over] of [
      ['no key', { 'cname-api-key': '' }],
      ['a wrong key', { 'cname-api-key': 'a-key-that-is-of-nobody-at-all-here' }],
      ['half a key', { 'cname-api-key': KEY.slice(0, -1) }],
      ['the hash of a key', { 'cname-api-key': 'qqq' }],
      ['the key of a domain that is not verified', { 'cname-api-key': PENDING_KEY }],
      ['two keys in one', { 'cname-api-key': `${KEY}, ${KEY}` }],
    ] as const) {
      it(`not with ${what}`, async () => {
        expect(await refusalOf('pem', headers(escaped(own), over))).to.deep.equal(UNAUTHORIZED);
      });
    }

    for (const name of [
      'client_certificate',
      'Client_Certificate',
      'client.certificate',
      'cname_api_key',
      'client_certificate_ca_verified',
    ]) {
      it(`not when it lets ${name} through beside them`, async () => {
        const answer = await ask('pem', { ...headers(escaped(own)), [name]: escaped(other) });
        expect(answer.json()).to.include({ error: 'invalid_request' });
      });
    }

    it('not when it lets a header through that occurs twice', async () => {
      for (const name of ['client-certificate', 'cname-api-key', 'client-certificate-ca-verified']) {
        const answer = await ask('pem', {
          ...headers(escaped(own)),
          [name]: [headers(escaped(own))[name as 'cname-api-key'], 'x'] as never,
        });
        expect(answer.status, name).to.equal(400);
      }
    });

    it('and only with the exact names', async () => {
      const certificate = escaped(own);
      for (const sent of [
        { cname_api_key: KEY, 'client-certificate': certificate },
        { 'cname-api-key': KEY, client_certificate: certificate },
      ])
        expect(await statusOf('pem', sent)).to.be.oneOf([400, 401]);
    });
  });

  describe('at their end', () => {
    it('are valid until their credential expires', async () => {
      expect(await statusOf('expiring', headers(escaped(own)))).to.equal(200);
      server.tick(DAY + 1000);
      expect(await refusalOf('expiring', headers(escaped(own)))).to.deep.equal(UNAUTHORIZED);
      expect(await statusOf('pem', headers(escaped(own)))).to.equal(200);
    });

    it('are valid until they expire themselves, even when they are cached', async () => {
      expect(await statusOf('pem', headers(escaped(own)))).to.equal(200);
      server.tick(31 * DAY);
      expect(await refusalOf('pem', headers(escaped(own)))).to.deep.equal({
        ...UNAUTHORIZED,
        error_description: 'The client certificate has expired',
      });
    });
  });
});
