// Saving a form of the console without a change leaves nothing that `gatehouse plan` would take away.
import { expect } from 'chai';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { API, tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { order, type TenantFolder, tenantFolder } from '../support/tenant-folder.ts';
import { fieldsOf, sendForm } from './forms.ts';

const WIDE = { capacity: 1e6, perMinute: 1e6 };

/** As little as a tenant file may say of what the forms are for. */
const { users: _users, ...small } = {
  ...tenant,
  attackProtection: { rateLimits: { console: WIDE, hosted: WIDE, login: WIDE } },
  clientGrants: [
    ...tenant.clientGrants,
    { default_for: 'third_party_clients', audience: API, subject_type: 'user', scope: ['read:things'] },
  ],
};

/** Forms that save what they show. */
const FORMS: readonly (readonly [page: string, action: string])[] = [
  ['/console/security/factors', '/console/security/factors'],
  ['/console/security/attacks', '/console/security/attacks/bruteForce'],
  ['/console/security/attacks', '/console/security/attacks/suspiciousIp'],
  ['/console/security/sessions', '/console/security/sessions/sessions'],
  ['/console/security/tenant', '/console/security/tenant/tenant'],
  ['/console/branding', '/console/branding'],
];

describe('a form of the console that is saved without a change', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  let folder: TenantFolder;
  let path: string;
  before(async () => {
    folder = await tenantFolder();
    path = await folder.write('tenant.json', small);
    server = await startConsole({ tenant: small });
    owner = await openConsole(server);
  });
  after(async () => {
    await server.stop();
    await folder.remove();
  });
  const plan = () => order(server, 'plan', { path });
  const saved = async (page: string, action: string, typed = {}) => {
    const answer = await sendForm(owner, await owner.get(page), action, typed);
    expect(answer.status, `${action}: ${answer.text.slice(0, 2000)}`).to.equal(303);
  };

  it('begins with a store that has what the file says', async () => {
    expect(await plan()).to.deep.equal([]);
  });

  for (const [page, action] of FORMS)
    it(`plans nothing: ${action}`, async () => {
      await saved(page, action);
      expect(await plan()).to.deep.equal([]);
    });

  it('plans nothing for what is opened to third parties, once it is opened and closed again', async () => {
    for (const at of ['registration', 'documents']) {
      const here = `/console/agents/${at}`;
      await saved(here, here);
      expect(await plan()).to.have.length(1);
      await saved(here, here);
      expect(await plan()).to.have.length(1);
      expect((await owner.post(`${here}/off`)).status).to.equal(303);
      expect(await plan()).to.deep.equal([]);
    }
  });

  it('plans nothing for each record that has a form of its own, on which nothing is changed', async () => {
    for (const list of [
      'clients',
      'resource-servers',
      'connections',
      'organizations',
      'roles',
      'client-grants',
    ]) {
      const { text } = await owner.get(`/console/resources/${list}`);
      const links = [...text.matchAll(new RegExp(`href="(/console/resources/${list}/[^"?/]+)"`, 'g'))];
      for (const at of new Set(links.map(([, one = '']) => one))) {
        const change = at.replace('/resources/', '/change/');
        const page = await owner.get(change);
        if (page.status !== 200 || !page.text.includes(`action="${change}"`)) continue;
        await owner.post(change, [...fieldsOf(page, change), ['step', 'save']]);
        expect(await plan(), change).to.deep.equal([]);
      }
    }
  });

  it('plans nothing for a connection and its applications', async () => {
    const { text } = await owner.get('/console/connections');
    const connections = new Set(
      [...text.matchAll(/href="(\/console\/connections\/con_[^"?/]+)"/g)].map(([, at = '']) => at),
    );
    expect(connections.size).to.be.at.least(2);
    for (const at of connections)
      for (const action of [at, `${at}/applications`]) {
        const page = [await owner.get(at), await owner.get(action)].find((one) =>
          one.text.includes(`action="${action}"`),
        );
        if (page === undefined) continue;
        await sendForm(owner, page, action);
        expect(await plan(), action).to.deep.equal([]);
      }
  });

  it('plans nothing for a message and a text', async () => {
    for (const at of ['/console/branding/messages/reset_email', '/console/branding/texts/login/en']) {
      const page = await owner.get(at);
      expect(page.status, at).to.equal(200);
      await sendForm(owner, page, at);
      expect(await plan(), at).to.deep.equal([]);
    }
  });

  it('plans what was changed alone', async () => {
    await saved('/console/security/attacks', '/console/security/attacks/bruteForce', { max_attempts: '7' });
    expect((await plan()).join('\n')).to.contain('max_attempts');
    expect(await plan()).to.have.length(1);
  });
});
