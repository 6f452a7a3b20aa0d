// Who may change an account: every kind of login, session and token (kinds.ts) at every entrance (entrances.ts). The
// tables there are what is true; a new grant, strategy, presence, entrance or act that is in none of them fails here.
// docs/understand/decisions/code-tests.md#tests-send-every-kind-of-login-to-every-entrance-of-an-account
import { expect } from 'chai';
import { strategies } from '../../src/features/connections/strategies.ts';
import type { CallRules } from '../../src/features/management/call.ts';
import { MANAGEMENT_CALLS } from '../../src/features/management/calls.ts';
import { parseRouteKey } from '../../src/http/server/router.ts';
import { FEATURES } from '../../src/server/features.ts';
import { PRESENCES, USER_ACTS } from '../../src/users/login.ts';
import {
  BY_OTHER_PROOF,
  call,
  ENTRANCES,
  LEVELS,
  type Level,
  OWN_CALLS,
  ownCall,
  SESSION_PAGES,
  sendForm,
} from './entrances.ts';
import { KINDS } from './kinds.ts';
import { startWorld } from './world.ts';

/** Grants whose tokens are not of this server, and where they are tested. */
const NOT_OURS: Record<string, string> = {
  'urn:auth0:params:oauth:grant-type:token-exchange:federated-connection-access-token':
    "a provider's token (test/account/connected-tokens.test.ts)",
};

/** The kind of the logins by each strategy. */
const STRATEGY_KINDS: Record<string, keyof typeof KINDS> = {
  auth0: 'a login at the page',
  email: 'a code by e-mail at the token endpoint',
  sms: 'a code by e-mail at the token endpoint',
  // Directories verify a password.
  ad: 'the password at the token endpoint',
  'auth0-adldap': 'the password at the token endpoint',
};

const KEYS = FEATURES.filter(({ name }) => name !== 'console' && name !== 'management').flatMap(
  ({ routes = {} }) => Object.keys(routes),
);
const WRITING = KEYS.filter((key) =>
  parseRouteKey(key).methods.some((one) => !['GET', 'HEAD'].includes(one)),
);

describe('who may change an account', () => {
  let world: Awaited<ReturnType<typeof startWorld>>;
  before(async () => {
    world = await startWorld();
  });
  after(() => world.stop());

  it('is said for every entrance that is declared', () => {
    const said = [...Object.keys(ENTRANCES), ...Object.values(BY_OTHER_PROOF).flat()];
    expect([...said].sort()).to.deep.equal([...new Set(WRITING)].sort());
    const own = (MANAGEMENT_CALLS as readonly CallRules[]).filter(
      ({ currentUserScopes }) => currentUserScopes !== undefined,
    );
    expect(Object.keys(OWN_CALLS).sort()).to.deep.equal(
      own.map(({ method, path }) => `${method} ${path}`).sort(),
    );
  });

  it('is said for every grant and strategy that is declared, and every presence', () => {
    const declared = FEATURES.flatMap(({ grants = [] }) => grants).map(({ grantType }) =>
      grantType.startsWith('/') ? `http://auth0.com${grantType}` : grantType,
    );
    const said = [...Object.values(KINDS).flatMap(({ grants }) => grants), ...Object.keys(NOT_OURS)];
    const engine = ['authorization_code', 'refresh_token', 'client_credentials', 'implicit'];
    expect([...new Set(said)].sort()).to.deep.equal([...new Set([...declared, ...engine])].sort());
    // Where users are sent to a provider, the three kinds of a login there are sent.
    const own = strategies.filter(({ page }) => page !== 'redirect').map(({ name }) => name);
    expect([...own].sort()).to.deep.equal(Object.keys(STRATEGY_KINDS).sort());
    expect(KINDS).to.include.all.keys(Object.values(STRATEGY_KINDS));
    expect(PRESENCES).to.deep.equal(['present', 'unconfirmed', 'absent']);
    expect(new Set(Object.values(USER_ACTS))).to.deep.equal(new Set(['fresh', 'attended']));
  });

  for (const [name, { has, but = {}, make }] of Object.entries(KINDS))
    it(`${name}: ${has}`, async () => {
      const { server } = world;
      const { tokens, browser, email } = await make(world);
      const [user] = email === undefined ? [] : await server.users.withEmail(email);
      const outcomes: Record<string, string> = {};
      const expected: Record<string, string> = {};
      const judge = (key: string, needs: Level, isRefused: boolean) => {
        outcomes[key] = isRefused ? 'refused' : 'allowed';
        const isEnough = LEVELS.indexOf(has) >= LEVELS.indexOf(needs);
        expected[key] = but[key] ?? (isEnough ? 'allowed' : 'refused');
      };
      for (const [key, needs] of Object.entries(ENTRANCES)) {
        const isPage = key.includes(' /account');
        const answer = await (isPage
          ? browser && sendForm(server, browser, key)
          : tokens && call(server, tokens, key));
        if (answer === undefined) continue;
        expect(answer.status, `${key}: ${answer.text.slice(0, 300)}`).to.be.below(500);
        const isRefused = isPage
          ? /\/authorize\?|\/account\/confirm\?/.test(answer.location)
          : [401, 403].includes(answer.status);
        judge(key, needs, isRefused);
      }
      for (const [key, { needs, open }] of Object.entries(SESSION_PAGES)) {
        if (user === undefined || browser === undefined) continue;
        const page = await open(world, browser, user.id);
        expect(page.status, `${key}: ${page.text.slice(0, 300)}`).to.be.below(500);
        // The page asks for a login, or for a factor that the user has.
        judge(key, needs, page.status >= 400 || /name="(password|code)"/.test(page.text));
      }
      for (const [key, needs] of Object.entries(OWN_CALLS)) {
        if (user === undefined || tokens === undefined) continue;
        const { status, text } = await ownCall(server, tokens['api/v2/'] ?? '', key, user.id);
        expect(status, `${key}: ${text.slice(0, 300)}`).to.be.below(500);
        judge(key, needs, [401, 403].includes(status));
      }
      expect(Object.keys(outcomes)).not.to.deep.equal([]);
      expect(outcomes).to.deep.equal(expected);
    });
});
