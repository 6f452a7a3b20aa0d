// Which role may do what at the console: every page and every form, those that are generated for the calls of the
// Management API included, as each role. The rules below are the whole of it; what they do not say is refused.
import { expect } from 'chai';
import { consoleRoutes } from '../../src/features/console/console-feature.ts';
import { placesOf } from '../../src/features/console/resources/declared.ts';
import { operationsOf } from '../../src/features/console/resources/operations.ts';
import { parseRouteKey } from '../../src/http/server/router.ts';
import { type AdministratorRole, ROLES } from '../../src/records/users/administrators.ts';
import { type Answer, readForm } from '../support/agent.ts';
import { openConsole, startConsole } from '../support/console.ts';
import { tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/** What everybody may: the pages that lead on, and what belongs to their own login. */
const EVERYBODY = [
  ...['', '/log', '/log/:id', '/resources', '/again', '/open', '/apis', '/organizations', '/roles'],
  ...['/security', '/password'],
].map((path) => `GET /console${path}`);
const OWN = [
  'POST /console/password',
  'POST /console/logout',
  // Their programs, which may do no more than they.
  'GET /console/device',
  'POST /console/device',
  'GET /console/agents/programs',
  'POST /console/agents/programs',
];

/** What an owner may alone. */
const isForOwners = (key: string) => / \/console\/administrators(\/|$)/.test(key);

/** Forms that are generated for calls of the Management API. */
const isGenerated = (key: string) => / \/console\/(create|change|replace|remove)\//.test(key);

/**
 * Forms, which change something or start it. A form that shows what its record has reads, and so does a preview, except
 * that of an application's document, which is fetched.
 */
const isRead = (key: string) =>
  key.startsWith('GET ') ? !isGenerated(key) : / \/console\/reveal\/|(?<!cimd)\/preview$/.test(key);

/** Pages that a viewer may not open: they show secrets or masked data, or are the form of a change. */
const HIDDEN_FROM_VIEWERS: readonly string[] = [
  'GET /console/actions/new',
  'GET /console/actions/:id/delete',
  'GET /console/actions/:id/test',
  'GET /console/users/new',
  'GET /console/users/transfer',
  'GET /console/users/transfer/:job',
  'GET /console/users/transfer/:job/file',
  'GET /console/users/:id/delete',
  'GET /console/connections/new',
  'GET /console/connections/new/:strategy',
  'GET /console/connections/tried',
  'GET /console/connections/:id/try',
  'GET /console/connections/:id/delete',
  'GET /console/resources/connections/:id/keys',
  'GET /console/resources/connections/:id/scim-configuration/tokens',
  'GET /console/resources/keys/encryption',
  'GET /console/resources/keys/encryption/:kid',
  'POST /console/reveal/keys/encryption/:kid',
  'GET /console/new-application',
  'GET /console/agents/registration',
  'GET /console/agents/documents',
  'GET /console/agents/apis/:id',
  'GET /console/applications/:id/try',
  'GET /console-try/:id',
];

/** The pages about users that support opens, with the form that shows the secrets of a generated one (`reveal`). */
const PAGES_OF_SUPPORT: readonly string[] = [
  'GET /console/security/blocked',
  'GET /console/users',
  'GET /console/users/found',
  'GET /console/users/:id',
  'GET /console/users/:id/identities',
  'GET /console/users/:id/factors',
  'GET /console/users/:id/sessions',
  'GET /console/users/:id/consents',
  'GET /console/users/:id/devices',
  'GET /console/users/:id/organizations',
  'GET /console/users/:id/events',
  'GET /console/resources/users',
  'GET /console/resources/users-by-email',
  'GET /console/resources/users/:id',
  'GET /console/resources/users/:id/organizations',
  'GET /console/resources/users/:id/authentication-methods',
  'GET /console/resources/users/:id/authentication-methods/:method_id',
  'GET /console/resources/users/:id/connected-accounts',
  'GET /console/resources/users/:id/enrollments',
  'GET /console/resources/guardian/enrollments/:enrollment_id',
  'GET /console/resources/user-blocks',
  'GET /console/resources/user-blocks/:id',
  'GET /console/resources/anomaly/blocks/ips/:id',
  'GET /console/resources/sessions/:id',
  'GET /console/resources/users/:id/sessions',
  'GET /console/resources/refresh-tokens',
  'GET /console/resources/users/:id/refresh-tokens',
  'GET /console/resources/refresh-tokens/:id',
  'GET /console/resources/grants',
  'GET /console/resources/device-credentials',
  'GET /console/resources/logs',
  'GET /console/resources/logs/:id',
  'GET /console/resources/users/:id/logs',
];

/** The changes that support makes. Add one only after considering how an attacker could use it. */
const FORMS_OF_SUPPORT: readonly string[] = [
  'POST /console/security/blocked/account',
  'POST /console/security/blocked/address',
  'POST /console/users/:id/profile',
  'POST /console/users/:id/block',
  'POST /console/users/:id/unblock',
  'POST /console/users/:id/lockouts',
  'POST /console/users/:id/verify',
  'POST /console/users/:id/reset',
  'POST /console/users/:id/factors',
  'POST /console/users/:id/factors/all',
  'POST /console/users/:id/factors/browsers',
  'POST /console/users/:id/sessions',
  'POST /console/users/:id/sessions/all',
  'POST /console/users/:id/sessions/token',
  'POST /console/users/:id/consents',
  'POST /console/users/:id/devices',
  'POST /console/remove/users/:id/authentication-methods',
  'POST /console/remove/users/:id/authenticators',
  'POST /console/remove/users/:id/authentication-methods/:method_id',
  'POST /console/remove/guardian/enrollments/:enrollment_id',
  'POST /console/remove/users/:id/multifactor/:provider',
  'POST /console/create/users/:id/multifactor/actions/invalidate-remember-browser',
  'POST /console/remove/user-blocks',
  'POST /console/remove/user-blocks/:id',
  'POST /console/remove/anomaly/blocks/ips/:id',
  'POST /console/remove/sessions/:id',
  'POST /console/create/sessions/:id/revoke',
  'POST /console/remove/users/:id/sessions',
  'POST /console/create/users/:id/revoke-access',
  'POST /console/create/refresh-tokens/revoke',
  'POST /console/remove/users/:id/refresh-tokens',
  'POST /console/remove/refresh-tokens/:id',
  'POST /console/remove/grants',
  'POST /console/remove/grants/:id',
  'POST /console/remove/device-credentials/:credential_id',
];

const RULES: Record<AdministratorRole, (key: string) => boolean> = {
  owner: () => true,
  editor: (key) => !isForOwners(key),
  viewer: (key) =>
    OWN.includes(key) || (isRead(key) && !isForOwners(key) && !HIDDEN_FROM_VIEWERS.includes(key)),
  support: (key) =>
    [...OWN, ...EVERYBODY].includes(key) ||
    // A generated form has a page of its own at the same path.
    FORMS_OF_SUPPORT.includes(isGenerated(key) ? key.replace('GET ', 'POST ') : key) ||
    PAGES_OF_SUPPORT.includes(key.replace(/^POST \/console\/reveal\//, 'GET /console/resources/')),
};

/** The roles; those that change nothing come first. */
const BY_POWER = ['viewer', 'support', 'editor', 'owner'] as const;

/** Routes without a session (test/console/routes.test.ts). */
const OPEN = ['GET /console/callback', 'GET /console/link', 'POST /console/link'];
const KEYS = Object.keys(consoleRoutes).filter((key) => !OPEN.includes(key));
// Last, because it ends the session.
const [last = ''] = KEYS.filter((key) => key.endsWith('/logout'));
const ORDERED = [...KEYS.filter((key) => key !== last), last];

describe('the console', () => {
  let server: TestServer;
  let ids: Record<string, string>;
  before(async () => {
    server = await startConsole({ tenant: { ...tenant, ...UNLIMITED } });
    const [user] = await server.users.withEmail(USER.email);
    const { records } = await server.store.collection('connections').list();
    ids = {
      users: user?.id ?? '',
      clients: 'web',
      applications: 'web',
      connections: records[0]?.id ?? '',
      organizations: 'org_acme',
      messages: 'verify_email',
    };
  });
  after(() => server.stop());

  /** Fills in a record that there is, as far as one is known. */
  const filled = (path: string) =>
    path
      .replaceAll(
        /\/([\w-]+)\/:\w+/g,
        (_all, name: string) => `/${name}/${encodeURIComponent(ids[name] ?? 'unknown1')}`,
      )
      .replaceAll(/:\w+/g, 'unknown1');

  it('is asked as every role, with a form for each operation that it generates', () => {
    const generated = [...placesOf().values()].flatMap((place) =>
      operationsOf(place).map(([operation]) => `POST /console/${operation}${place.path}`),
    );
    expect(generated).to.have.length.above(100);
    expect(KEYS).to.include.members(generated);
    expect(BY_POWER).to.have.members(ROLES);
  });

  for (const role of BY_POWER)
    it(`admits the role of ${role} where its rule says so, and nowhere else`, async () => {
      const { agent, get } = await openConsole(server, role);
      const { _csrf = '' } = readForm(await get('/console'), '_csrf').fields;
      const form = { _csrf, step: 'save', body: '{}', confirm: 'yes' };
      const found = { admitted: [] as string[], refused: [] as string[] };
      for (const key of ORDERED) {
        const { methods, path } = parseRouteKey(key);
        const answer: Answer = await agent.request(filled(path), methods[0] === 'GET' ? {} : { form });
        expect(answer.status, `${key}: ${answer.text.slice(0, 200)}`).to.be.below(500);
        // Neither is answered by a login.
        expect(answer.location, key).not.to.contain('/authorize');
        const isRefused = answer.status === 403;
        if (isRefused === RULES[role](key)) found[isRefused ? 'refused' : 'admitted'].push(key);
      }
      expect(found, 'against the rule').to.deep.equal({ admitted: [], refused: [] });
    }).timeout(120_000);
});
