// Domains, clients and client grants of organizations.
import type { ManagementClient } from 'auth0';
import { expect } from 'chai';
import type { TestServer } from '../support/server.ts';
import { ADMIN, callApi, managementClient, startManaged } from './support.ts';

describe('domains, clients and client grants of an organization', () => {
  let server: TestServer;
  let management: ManagementClient;
  let acme: string;
  let other: string;

  before(async () => {
    server = await startManaged();
    management = managementClient(server);
    acme = String((await management.organizations.create({ name: 'acme-ltd' })).id);
    other = String((await management.organizations.create({ name: 'other-ltd' })).id);
  });
  after(() => server.stop());

  const failure = (asked: PromiseLike<unknown>): Promise<unknown> =>
    Promise.resolve(asked).catch((thrown: unknown) => thrown);

  it('stores each domain for one organization, in lower case', async () => {
    const { discoveryDomains } = management.organizations;
    const made = await discoveryDomains.create(acme, { domain: 'Acme.example.test' });
    expect(made).to.deep.include({
      domain: 'acme.example.test',
      status: 'pending',
      use_for_organization_discovery: true,
    });
    for (const id of [acme, other])
      expect(await failure(discoveryDomains.create(id, { domain: 'ACME.example.test' }))).to.include({
        statusCode: 409,
      });
    expect(await failure(discoveryDomains.create(acme, { domain: 'not a domain' }))).to.include({
      statusCode: 400,
    });
    expect(await discoveryDomains.update(acme, made.id, { status: 'verified' })).to.deep.equal({
      ...made,
      status: 'verified',
    });
    expect(await discoveryDomains.get(acme, made.id)).to.include({ status: 'verified' });
    expect(await discoveryDomains.getByName(acme, 'acme.example.test')).to.include({ id: made.id });
    expect((await discoveryDomains.list(acme)).data.map(({ id }) => id)).to.deep.equal([made.id]);
    // Another organization's path does not reach the domain.
    for (const asked of [
      () => discoveryDomains.get(other, made.id),
      () => discoveryDomains.update(other, made.id, { status: 'pending' }),
      () => discoveryDomains.getByName(other, 'acme.example.test'),
    ])
      expect(await failure(asked())).to.include({ statusCode: 404 });
    await discoveryDomains.delete(other, made.id);
    expect(await discoveryDomains.get(acme, made.id)).to.include({ id: made.id });
    expect(await management.organizations.get(acme)).not.to.have.any.keys('discovery_domains', 'clients');
    await discoveryDomains.delete(acme, made.id);
    await discoveryDomains.create(other, { domain: 'acme.example.test' });
  });

  it('gives a domain to one of several concurrent requests', async () => {
    const add = (id: string) =>
      callApi(server, 'POST', `/organizations/${id}/discovery-domains`, { domain: 'race.example.test' });
    const statuses = (await Promise.all([add(acme), add(other), add(acme)])).map(({ status }) => status);
    expect(statuses.sort()).to.deep.equal([201, 409, 409]);
  });

  it('lists the clients of an organization, without deleted ones', async () => {
    const { clients } = management.organizations;
    const { client_id = '' } = await management.clients.create({ name: 'Member access' });
    const add = (id: string) =>
      clients.create(acme, { clients: [{ client_id: id, use_for_member_access: false }] });
    expect(await add(client_id)).to.have.nested.property('[0].client.name', 'Member access');
    expect(await failure(add(client_id))).to.include({ statusCode: 409 });
    expect(await failure(add('unknown'))).to.include({ statusCode: 404 });
    expect(await clients.update(acme, client_id, { use_for_member_access: true })).to.include({
      use_for_member_access: true,
    });
    expect((await clients.list(acme)).data).to.have.length(1);
    expect(await failure(clients.get(other, client_id))).to.include({ statusCode: 404 });
    await add(ADMIN.client_id);
    await clients.delete(acme, { clients: [ADMIN.client_id] });
    expect((await clients.list(acme)).data.map((one) => one.client_id)).to.deep.equal([client_id]);
    await management.clients.delete(client_id);
    expect((await clients.list(acme)).data).to.deep.equal([]);
  });

  it('associates client grants with organizations, in both directions', async () => {
    const { data } = await management.clientGrants.list();
    const grant = String(data[0]?.id);
    await management.organizations.clientGrants.create(acme, { grant_id: grant });
    expect((await management.clientGrants.organizations.list(grant)).data.map(({ id }) => id)).to.deep.equal([
      acme,
    ]);
    await management.organizations.clientGrants.delete(acme, grant);
    expect((await management.clientGrants.organizations.list(grant)).data).to.deep.equal([]);
  });
});
