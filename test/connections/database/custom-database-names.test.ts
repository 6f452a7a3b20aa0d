// Accounts that a custom database finds by several names: guesses at them are counted together.
import { expect } from 'chai';
import { tenant as base } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { generous } from '../passwordless/tenant.ts';
import { REALM, realmLogin } from './support.ts';

/** Finds one account by `ada` with any number, and gives for a wrong password what `told` is. */
const login = (told: string, id: string) => `function login(name, password, callback) {
  if (!/^ada\\d*$/.test(name)) return callback(new WrongUsernameOrPasswordError(name));
  if (password !== 'right') return callback(new WrongUsernameOrPasswordError(${told}, 'wrong'));
  callback(null, { user_id: '${id}', email: 'ada@example.test' });
}`;
const getUser = (id: string) => `function (name, callback) {
  callback(null, /^ada\\d*$/.test(name) ? { user_id: '${id}', email: 'ada@example.test' } : null);
}`;
const NAMES = Array.from({ length: 6 }, (_, index) => `ada${index}`);

describe('an account that a custom database finds by several names', () => {
  let server: TestServer;
  before(async () => {
    const database = (name: string, customScripts: object, more: object = {}) => ({
      name,
      enabled_clients: ['web'],
      options: { enabledDatabaseCustomization: true, import_mode: false, customScripts, ...more },
    });
    const scripts = (id: string) => ({ login: login('name', id), get_user: getUser(id) });
    server = await startServer({
      tenant: {
        ...base,
        users: [],
        attackProtection: {
          rateLimits: { ...base.attackProtection.rateLimits, login: generous, token: generous },
          suspiciousIpThrottling: { enabled: false },
        },
        clients: base.clients.map((one) =>
          one.client_id === 'web' ? { ...one, grant_types: [...one.grant_types, REALM] } : one,
        ),
        databases: [
          ...base.databases,
          database('asked', scripts('asked-1')),
          database('moving', scripts('moving-1'), { import_mode: true }),
          database('told', { login: login("'told-1'", 'told-1') }),
          // Its right verdict comes after the wrong ones, and before those are answered.
          database('told-at-once', {
            login: login("'told-3'", 'told-3').replace(
              /callback\(null.*/,
              (given) => `setTimeout(() => ${given.replace(';', '')}, 150);`,
            ),
          }),
          database('told-address', { login: login("'ADA@example.test'", 'told-2') }),
          database('spelled', {
            login: login('name', 'u2').replaceAll('test(name)', "test(name.normalize('NFKC').toLowerCase())"),
          }),
          database('failing', {
            login: login('name', 'u3'),
            get_user: 'function (name, callback) { callback(new Error("no")); }',
          }),
        ],
      },
    });
  });
  after(() => server?.stop());

  const ask = async (realm: string, username: string, password: string) => {
    const { status, text } = await realmLogin(server, { realm, username, password });
    return { status, text };
  };
  const guess = (realm: string, names: readonly string[]) =>
    Promise.all(names.map((name) => ask(realm, name, 'wrong')));

  for (const realm of ['asked', 'moving', 'told', 'told-address']) {
    it(`has one count of wrong passwords: ${realm}`, async () => {
      for (let round = 0; round < 9; round++)
        for (const { status } of await guess(realm, NAMES)) expect(status).to.equal(403);
      const right = await ask(realm, 'ada5', 'right');
      expect(right).to.deep.equal(await ask(realm, 'nobody', 'right'));
      expect(right.status).to.equal(403);
      // Nor does it create the account here.
      const { records } = await server.store.collection('users').list({ limit: 100 });
      expect(records.map(({ id }) => id)).to.deep.equal([]);
    });
  }

  it('answers ten of guesses sent at once under many names, where only the verdict names the account', async () => {
    const names = Array.from({ length: 16 }, (_, index) => `ada${index}`);
    const answers = await Promise.all(
      names.map((name, index) => ask('told-at-once', name, index < 15 ? 'wrong' : 'right')),
    );
    expect(answers.map(({ status }) => status)).to.deep.equal(names.map(() => 403));
  });

  it('has one count for all spellings of a name', async () => {
    const spellings = ['ada', 'ADA', ' ada', 'a\u00adda', '\uff41da', 'a\u200bda'];
    await guess('spelled', [...spellings, ...spellings.slice(0, 4)]);
    for (const name of spellings) expect((await ask('spelled', name, 'right')).status, name).to.equal(429);
  });

  it('logs in where get_user fails, which is recorded', async () => {
    expect((await ask('failing', 'ada1', 'right')).status).to.equal(200);
  });

  it('is not locked for a caller who has logged in before by guesses of fewer than ten', async () => {
    await guess('failing', NAMES.slice(1));
    expect((await ask('failing', 'ada1', 'right')).status).to.equal(200);
  });
});
