// The client grants of organizations in tenant files: as the deploy tool writes them, and as our export does.
import { expect } from 'chai';
import { parse } from 'yaml';
import { assess } from '../../src/moving/assess.ts';
import { readTenant } from '../../src/tenant/load.ts';
import { exportTenant } from '../../src/tenant/tenant-export.ts';
import { createAgent } from '../support/agent.ts';
import { API, tenant as base, payload, token } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { order, tenantFolder } from '../support/tenant-folder.ts';

const OTHER = 'urn:rfc9068';
const grant = (audience: string, more: object = {}) => ({
  client_id: 'Machine',
  audience,
  scope: [],
  organization_usage: 'allow',
  ...more,
});
const organization = (name: string, client_grants?: unknown[]) => ({
  id: `org_${name}`,
  name,
  ...(client_grants && { client_grants }),
});
const tenantOf = (clientGrants: object[], ...organizations: object[]) => ({
  ...base,
  clientGrants,
  organizations,
});

describe('the client grants of organizations in a tenant file', () => {
  const started: TestServer[] = [];
  const start = async (...of: Parameters<typeof tenantOf>) => {
    const server = await startServer({ tenant: tenantOf(...of) });
    started.push(server);
    return server;
  };
  after(async () => {
    for (const one of started) await one.stop();
  });
  /** Returns the organization of an application's own token, or the error. */
  const ask = async (server: TestServer, name: string, audience = API) => {
    const client = { client_id: 'm2m', client_secret: 'm2m-secret' };
    const answer = await token(createAgent(server), {
      ...{ grant_type: 'client_credentials', ...client, audience, organization: `org_${name}` },
    });
    const { access_token, error } = answer.json();
    return access_token === undefined ? error : payload(access_token).org_id;
  };
  const warningsOf = (...of: Parameters<typeof tenantOf>) =>
    readTenant(tenantOf(...of)).warnings.filter((line) => line.includes('client_grants'));
  /** Returns what `move check` says of organizations. */
  const assessed = (...of: Parameters<typeof tenantOf>) =>
    assess({ sections: tenantOf(...of) as never, placeOf: () => ({}) } as never)
      .filter(({ section }) => section === 'organizations')
      .map(({ verdict, statements }) => [verdict, ...statements.map(({ says }) => says)]);

  it('are those of the applications that it names, and let these get tokens for it alone', async () => {
    const server = await start(
      [grant(API)],
      organization('acme', [{ client_id: 'Machine' }]),
      organization('none', []),
      organization('silent'),
    );
    expect(await ask(server, 'acme')).to.equal('org_acme');
    for (const name of ['none', 'silent']) expect(await ask(server, name)).to.equal('access_denied');
  });

  it('are not guessed where an application has several: each is one entry, or has its audience', async () => {
    const grants = [grant(API), grant(OTHER), grant('hs256-api', { organization_usage: 'deny' })];
    const one = [{ client_id: 'Machine' }];
    const server = await start(
      grants,
      organization('unclear', one),
      organization('both', [...one, ...one]),
      organization('named', [{ client_id: 'm2m', audience: OTHER }]),
      organization('other', [{ client_id: 'Machine', audience: 'guarded-api' }, { client_id: 'Nobody' }]),
    );
    const all = async (name: string) => [await ask(server, name), await ask(server, name, OTHER)];
    expect(await all('unclear')).to.deep.equal(['access_denied', 'access_denied']);
    expect(await all('both')).to.deep.equal(['org_both', 'org_both']);
    expect(await ask(server, 'both', 'hs256-api')).to.equal('access_denied');
    expect(await all('named')).to.deep.equal(['access_denied', 'org_named']);
    expect(await all('other')).to.deep.equal(['access_denied', 'access_denied']);
    const file = [grants, organization('unclear', one), organization('both', [...one, ...one])] as const;
    const says = "Machine has several client grants: add the audience of the one that is the organization's";
    expect(warningsOf(...file)).to.deep.equal([`organizations[0].client_grants[0]: ${says}`]);
    expect(assessed(...file)).to.deep.equal([['not in force', says], ['in force']]);
    const unknown = [grants, organization('other', [{ client_id: 'Nobody' }])] as const;
    expect(warningsOf(...unknown)).to.deep.equal([
      'organizations[0].client_grants[0]: Nobody has no such client grant',
    ]);
  });

  it('are exported with the audience, and applied again without a change', async () => {
    const server = await start(
      [grant(API), grant(OTHER)],
      organization('acme', [{ client_id: 'Machine', audience: OTHER }]),
    );
    const written = await exportTenant(server.store);
    const [acme] = parse(written).organizations;
    expect(acme.client_grants).to.deep.equal([{ client_id: 'Machine', audience: OTHER }]);
    const folder = await tenantFolder();
    try {
      await folder.write('tenant.yaml', written);
      const path = `${folder.path}/tenant.yaml`;
      expect(await order(server, 'plan', { path })).to.deep.equal([]);
    } finally {
      await folder.remove();
    }
  });
});
