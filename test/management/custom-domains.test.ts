// Custom domains: verification by DNS records, and the API keys of their reverse proxies.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import { parse } from 'yaml';
import { customDomainWarning } from '../../src/tenant/custom-domain-warnings.ts';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';
import { exportTenant } from '../../src/tenant/tenant-export.ts';
import { startDns, type TestDns } from '../support/dns.ts';
import type { TestServer } from '../support/server.ts';
import { EXAMPLE } from './example.ts';
import { callApi, managementClient, startManaged } from './support.ts';

interface Shown {
  custom_domain_id: string;
  status: string;
  cname_api_key?: string;
  origin_domain_name?: string;
  verification: { methods: { name: string; domain: string; record: string }[] };
}

const FILE_KEY = 'the-api-key-of-a-domain-of-the-file';

describe('/custom-domains', () => {
  let server: TestServer;
  let dns: TestDns;
  let management: ManagementClient;
  let names = 0;

  before(async () => {
    dns = await startDns();
    const tenant = {
      ...(parse(EXAMPLE) as object),
      customDomains: [{ domain: 'file.example.test', type: 'self_managed_certs', api_key: FILE_KEY }],
    };
    server = await startManaged(tenant, undefined, { DNS_SERVERS: dns.address });
    management = managementClient(server);
  });
  after(async () => {
    await server?.stop();
    dns?.stop();
  });

  const newDomain = async (type: 'self_managed_certs' | 'auth0_managed_certs' = 'self_managed_certs') =>
    (await management.customDomains.create({
      domain: `d${++names}.example.test`,
      type,
    })) as unknown as Shown;
  const verify = async ({ custom_domain_id: id }: Shown) =>
    (await management.customDomains.verify(id)) as unknown as Shown;
  const prove = ({ verification }: Shown) => {
    const [{ domain, record } = { domain: '', record: '' }] = verification.methods;
    dns.records.set(domain, ['v=spf1 -all', record]);
  };
  const rotate = async ({ custom_domain_id: id }: Shown) => {
    const answer = await callApi(server, 'POST', `/custom-domains/${id}/rotate-api-key`);
    return { status: answer.status, body: (await answer.json()) as Shown };
  };
  const hashes = async () =>
    JSON.stringify((await server.store.collection('documents').findBy('kind', 'custom-domain')) ?? []);

  it('says at start and in the answers of writing calls that issuers do not follow a domain', async () => {
    const logged = (domain: string) =>
      server.logged().includes(`a login that begins at ${domain} loses its cookie on the way`);
    expect(logged('file.example.test')).to.equal(true);
    const created = (await newDomain()) as Shown & { domain: string; warning?: string };
    expect(created.warning).to.contain(`discovery, iss and redirects name ${server.url}`);
    expect(logged(created.domain)).to.equal(true);
    prove(created);
    expect(await verify(created)).to.include({ warning: created.warning });
    expect(await management.customDomains.get(created.custom_domain_id)).not.to.have.property('warning');
    const { host, hostname } = new URL(server.url);
    for (const domain of [host, hostname])
      expect(customDomainWarning(domain, server.url)).to.equal(undefined);
  });

  it('returns the host of the server as default domain until a verified one is set', async () => {
    const canonical = { domain: new URL(server.url).host };
    const get = await callApi(server, 'GET', '/custom-domains/default');
    expect(await get.json()).to.deep.equal(canonical);
    const made = await newDomain();
    expect(made).to.include({ is_default: false });
    const same = await callApi(server, 'PATCH', '/custom-domains/default', canonical);
    expect(await same.json()).to.deep.equal(canonical);
    const other = { domain: `d${names}.example.test` };
    const refused = await callApi(server, 'PATCH', '/custom-domains/default', other);
    expect(refused.status).to.equal(400);
    expect(await refused.json()).to.include({
      message: 'The domain must be verified before it can be set as default.',
    });
    const { custom_domain_id: id } = made;
    await server.store.collection('documents').update(String(id), (current) => ({
      ...current,
      body: { ...current.body, status: 'ready' },
    }));
    const set = await callApi(server, 'PATCH', '/custom-domains/default', other);
    expect(await set.json()).to.include({ custom_domain_id: id, ...other, is_default: true });
    expect(server.logged()).to.include(`not to the default domain ${other.domain}`);
    const read = await callApi(server, 'GET', '/custom-domains/default');
    expect(await read.json()).to.include({ custom_domain_id: id, is_default: true });
    await callApi(server, 'PATCH', '/custom-domains/default', canonical);
    expect(await (await callApi(server, 'GET', `/custom-domains/${id}`)).json()).to.include({
      is_default: false,
    });
    expect(await (await callApi(server, 'GET', '/custom-domains/default')).json()).to.deep.equal(canonical);
  });

  it('finds domains by a query, as Terraform does, and sorts them as asked', async () => {
    const { custom_domain_id: id } = await newDomain();
    const domain = `d${names}.example.test`;
    const read = async (query: string) => {
      const answer = await callApi(server, 'GET', `/custom-domains?${query}`);
      return { status: answer.status, body: await answer.json() };
    };
    const found = async (q: string) =>
      ((await read(`q=${encodeURIComponent(q)}&take=100`)).body as { custom_domains: { domain: string }[] })
        .custom_domains;
    for (const q of [
      `domain:d${names}.*`,
      `domain:"${domain.toUpperCase()}"`,
      `custom_domain_id:${id}`,
      domain,
    ])
      expect(
        (await found(q)).map((one) => one.domain),
        q,
      ).to.deep.equal([domain]);
    expect(await found('domain:nowhere*')).to.deep.equal([]);
    expect(await found('tls_policy:recommended')).to.deep.equal([]);
    expect(await found(`_exists_:domain AND NOT domain:*example.test`)).to.deep.equal([]);
    const sorted = (await read('sort=domain:-1')).body as { domain: string }[];
    const all = sorted.map((one) => one.domain);
    expect(all).to.deep.equal([...all].sort().reverse());
    for (const query of ['q=domain:[a%20TO%20b]', 'q=(', 'sort=verification:1'])
      expect((await read(query)).status, query).to.equal(400);
  });

  it('verifies and deletes for clients that send null as body', async () => {
    const { custom_domain_id: id } = await newDomain();
    expect((await callApi(server, 'POST', `/custom-domains/${id}/verify`, null)).status).to.equal(200);
    expect((await callApi(server, 'DELETE', `/custom-domains/${id}`, null)).status).to.equal(204);
  });

  it('leaves a domain pending until its DNS record exists, below the domain', async () => {
    const made = await newDomain();
    expect(made.status).to.equal('pending_verification');
    const [method] = made.verification.methods;
    expect(method).to.include({ name: 'txt', domain: `_gatehouse-challenge.d${names}.example.test` });
    expect(method?.record).to.match(/^gatehouse-domain-verification=[\w-]{32}$/);
    expect(await verify(made))
      .to.include({ status: 'pending_verification' })
      .and.not.have.property('cname_api_key');
  });

  it("does not verify a domain by another domain's record, or by part of its own", async () => {
    const [mine, other] = [await newDomain(), await newDomain()];
    const [theirs] = other.verification.methods;
    const [own] = mine.verification.methods;
    dns.records.set(own?.domain ?? '', [theirs?.record ?? '', (own?.record ?? '').slice(0, -1)]);
    expect(await verify(mine)).to.include({ status: 'pending_verification' });
  });

  it('verifies a domain with its record; shows its API key once, and stores its hash', async () => {
    const made = await newDomain();
    prove(made);
    const ready = await verify(made);
    expect(ready).to.include({ status: 'ready', origin_domain_name: 'localhost' });
    expect(ready.cname_api_key).to.match(/^[\w-]{43}$/);
    expect(ready).not.to.have.property('api_key_hashes');
    for (const shown of [await verify(made), await management.customDomains.get(made.custom_domain_id)]) {
      expect(shown).to.include({ status: 'ready' });
      expect(shown).not.to.have.any.keys('cname_api_key', 'api_key_hashes');
    }
    await server.tenant.close();
    const { records: logs } = await server.store.collection('logs').list();
    for (const kept of [await hashes(), JSON.stringify(logs), server.logged()])
      expect(kept).not.to.contain(ready.cname_api_key);
  });

  it('returns one key to several concurrent verifications', async () => {
    const made = await newDomain();
    prove(made);
    const all = await Promise.all([verify(made), verify(made), verify(made)]);
    expect(all.map(({ status }) => status)).to.deep.equal(['ready', 'ready', 'ready']);
    expect(all.filter(({ cname_api_key: key }) => key !== undefined)).to.have.length(1);
  });

  it('issues no key to a domain with managed certificates', async () => {
    const made = await newDomain('auth0_managed_certs');
    prove(made);
    expect(await verify(made))
      .to.include({ status: 'ready' })
      .and.not.have.property('cname_api_key');
    expect(await rotate(made)).to.include({ status: 400 });
  });

  it('keeps two keys at most during a rotation, and issues none before verification', async () => {
    const made = await newDomain();
    expect(await rotate(made)).to.include({ status: 400 });
    prove(made);
    const { cname_api_key: first } = await verify(made);
    const keys = [first];
    for (let at = 0; at < 2; at++) {
      const { status, body } = await rotate(made);
      expect(status).to.equal(200);
      keys.push(body.cname_api_key);
    }
    expect(new Set(keys).size).to.equal(3);
    const record = await server.store.collection('documents').get(made.custom_domain_id);
    expect(record?.body.api_key_hashes).to.have.length(2);
  });

  it('treats a domain with a key in the tenant file as verified, and neither stores nor exports the key', async () => {
    const all = (await management.customDomains.list()) as unknown as (Shown & { domain: string })[];
    expect(all.find(({ domain }) => domain === 'file.example.test')).to.include({ status: 'ready' });
    const exported = await exportTenant(server.store);
    expect(exported).to.contain('api_key_hashes');
    for (const text of [await hashes(), exported]) expect(text).not.to.contain(FILE_KEY);
    // The exported tenant can be read again.
    const { tenant } = readTenant(parse(exported));
    expect(tenant.customDomains?.find(({ domain }) => domain === 'file.example.test')).to.include({
      status: 'ready',
    });
  });

  for (const [what, item, fault] of [
    ['a short key', { api_key: 'short' }, 'customDomains.0.api_key: must have at least 22 characters'],
    [
      'a key with a space',
      { api_keys: ['a key of more than twenty-two characters'] },
      'customDomains.0.api_keys.0: must be visible ASCII characters: it is sent in a header',
    ],
    [
      'an invalid hash',
      { api_key_hashes: ['x'] },
      'customDomains.0.api_key_hashes.0: must be SHA-256 hashes in base64url',
    ],
  ] as const) {
    it(`rejects ${what} in the tenant file`, () => {
      try {
        readTenant({ customDomains: [{ domain: 'a.example.test', ...item }] });
        expect.fail('it was taken');
      } catch (thrown) {
        expect(thrown).to.deep.equal(new TenantFault([fault]));
      }
    });
  }
});
