// Names of a directory that are given to somebody else, and the many ways to type one.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { REALM_GRANT } from '../../support/browser-logins.ts';
import { runCommand } from '../../support/command.ts';
import { tenant as base, payload, token } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/wait-until.ts';
import { generous } from '../passwordless/tenant.ts';
import {
  BASE,
  type DirectoryEntry,
  SERVICE,
  SERVICE_PASSWORD,
  startDirectory,
  type TestDirectory,
} from './directory.ts';

const PASSWORD = 'Ein-Passwort-2';
const UUIDS = ['f81d4fae-7dec-11d0-a765-00a0c91e6bf6', '9c5b94b1-35ad-49bb-b118-8e8fc24abf80'] as const;
/** Before and after the tests run. */
const [EARLIER, LATER] = ['20200102030405Z', '20991231235959.9+0100'];

const dnOf = (uid: string) => `uid=${uid},ou=people,${BASE}`;

function person(uid: string, attributes: DirectoryEntry['attributes'] = {}): DirectoryEntry {
  return {
    dn: dnOf(uid),
    password: PASSWORD,
    attributes: { uid, cn: uid, entryUUID: UUIDS[0].toUpperCase(), createTimestamp: EARLIER, ...attributes },
  };
}

describe('a name of a directory', () => {
  let directory: TestDirectory;
  let server: TestServer;

  before(async () => {
    directory = await startDirectory([]);
    const options = {
      LDAP_URL: directory.ldapsUrl,
      LDAP_CA: directory.ca,
      LDAP_BASE: BASE,
      LDAP_BIND_USER: SERVICE,
      LDAP_BIND_PASSWORD: SERVICE_PASSWORD,
    };
    server = await startServer({
      tenant: {
        ...base,
        attackProtection: {
          rateLimits: { ...base.attackProtection.rateLimits, login: generous, token: generous },
          suspiciousIpThrottling: { enabled: false },
        },
        connections: [
          ...['corp', 'guesses', 'many', 'known'].map((name) => ({ name, options })),
          ...['nsUniqueId', 'GUID'].map((id) => ({ name: id, options: { ...options, LDAP_UNIQUE_ID: id } })),
        ].map((one) => ({ ...one, strategy: 'ad', enabled_clients: ['web'] })),
      },
    });
  });
  after(async () => {
    await server?.stop();
    await directory?.stop();
  });

  const isNow = (...entries: DirectoryEntry[]) => {
    directory.entries.splice(0, directory.entries.length, ...entries);
  };
  const ask = (realm: string, username: string, password = PASSWORD, scope = 'openid profile email') =>
    token(createAgent(server), {
      grant_type: REALM_GRANT,
      client_id: 'web',
      client_secret: 'web-secret',
      realm,
      username,
      password,
      scope,
    });
  const subOf = async (username: string) => {
    const answer = await ask('corp', username);
    return answer.status === 200
      ? String(payload(answer.json().id_token).sub)
      : `${answer.status} ${answer.json().error}`;
  };
  /** Creates a user from before the directory showed its ids: identified by the uid. */
  const namedUser = async (uid: string, profile: object = {}) => {
    const [connection] = (await server.store.collection('connections').list({})).records.filter(
      ({ name }) => name === 'corp',
    );
    const made = await server.users.fromUpstream({
      connection: 'corp',
      connectionId: connection?.id,
      provider: 'ad',
      isSocial: false,
      upstreamId: `corp|${uid}`,
      profile: { username: uid, dn: dnOf(uid), ...profile },
      rootAttributes: 'on_each_login',
      nonPersistent: [],
    });
    expect(made).to.include({ isNew: true });
  };
  const refusalOf = async (user_id: string) => {
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    return records.find((one) => one.type === 'account_name_reused' && one.user_id === user_id);
  };
  const account = (...args: string[]) =>
    runCommand({
      cwd: server.dataDir,
      args: ['users', 'account', ...args],
      env: { DATA_DIR: server.dataDir },
    });

  it('identifies a new user by the entryUUID, and whoever gets the name later is another user', async () => {
    isNow(person('ada'));
    expect(await subOf('ada')).to.equal(`ad|corp|${UUIDS[0]}`);
    isNow(person('ada', { entryUUID: UUIDS[1], createTimestamp: LATER }));
    expect(await subOf('ada')).to.equal(`ad|corp|${UUIDS[1]}`);
    // A person who was renamed keeps the account.
    isNow({ ...person('lovelace'), dn: `uid=lovelace,ou=elsewhere,${BASE}` });
    expect(await subOf('lovelace')).to.equal(`ad|corp|${UUIDS[0]}`);
  });

  it('keeps a user that is identified by the name, and records the entry, if it is certainly the same', async () => {
    const [first, second] = ['11111111-0000-4000-8000-000000000001', '11111111-0000-4000-8000-000000000002'];
    await namedUser('bert');
    isNow(person('bert', { entryUUID: first }));
    expect(await subOf('bert')).to.equal('ad|corp|bert');
    // Once it is recorded, the person keeps the account under any name, and the name alone leads nowhere.
    isNow(
      { ...person('bertram', { entryUUID: first }), dn: dnOf('bertram') },
      person('bert', { entryUUID: second }),
    );
    expect(await subOf('bertram')).to.equal('ad|corp|bert');
    expect(await subOf('bert')).to.equal(`ad|corp|${second}`);
  });

  it('does not enter a user whose entry is recorded with one that hides its id', async () => {
    const { entryUUID: _, ...attributes } = person('bert').attributes;
    isNow({ ...person('bert'), attributes });
    expect(await subOf('bert')).to.equal('403 access_denied');
  });

  const doubts: [string, DirectoryEntry['attributes'], Partial<DirectoryEntry>?][] = [
    ['was created after the user', { createTimestamp: LATER }],
    ['does not say when it was created', { createTimestamp: [] }],
    ['says it in a form that is none', { createTimestamp: 'yesterday' }],
    ['has another DN', {}, { dn: `uid=x,ou=other,${BASE}` }],
  ];
  for (const [index, [why, attributes, more]] of doubts.entries()) {
    it(`refuses an entry with the name that identifies a user if it ${why}, until the operator decides`, async () => {
      const uid = `doubt${index}`;
      const entryUUID = `22222222-0000-4000-8000-00000000000${index}`;
      await namedUser(uid);
      isNow({ ...person(uid, { ...attributes, entryUUID }), ...more });
      const answer = await ask('corp', uid);
      expect(answer.status).to.equal(403);
      expect(answer.json().error_description).to.match(/administrator/);
      await until(async () => (await refusalOf(`ad|corp|${uid}`)) !== undefined);
      const event = await refusalOf(`ad|corp|${uid}`);
      expect(event?.connection).to.equal('corp');
      expect(event?.description)
        .to.include(entryUUID)
        .and.include(`gatehouse users account 'ad|corp|${uid}'`);
      const shown = await account(`ad|corp|${uid}`);
      expect(shown.stdout).to.include(entryUUID).and.include('--join').and.include(dnOf(uid));
      // Only the account that the operator has seen can be joined.
      const stale = await account(`ad|corp|${uid}`, '--join', UUIDS[0]);
      expect([stale.code, stale.stderr]).to.deep.equal([
        1,
        `${UUIDS[0]} is not the account that was refused last for ad|corp|${uid}: look again\n`,
      ]);
      const isSame = index % 2 === 0;
      const decided = await account(`ad|corp|${uid}`, ...(isSame ? ['--join', entryUUID] : ['--keep']));
      expect(decided.code, decided.stderr).to.equal(0);
      expect(await subOf(uid)).to.equal(isSame ? `ad|corp|${uid}` : `ad|corp|${entryUUID}`);
      expect((await account(`ad|corp|${uid}`, '--keep')).stderr).to.include('no account was refused');
    });
  }

  it('is no longer entered by whoever had it, once the operator says that the account is somebody else’s', async () => {
    const uid = 'kept';
    const { entryUUID: _, ...attributes } = person(uid).attributes;
    isNow({ ...person(uid), attributes });
    const before = (await ask('corp', uid, PASSWORD, 'openid offline_access')).json();
    expect(payload(before.id_token).sub).to.equal(`ad|corp|${uid}`);
    const web = { client_id: 'web', client_secret: 'web-secret', grant_type: 'refresh_token' };
    const refresh = (refresh_token: string) => token(createAgent(server), { ...web, refresh_token });
    const rotated = (await refresh(before.refresh_token)).json().refresh_token ?? before.refresh_token;
    isNow(person(uid, { entryUUID: '55555555-0000-4000-8000-000000000001', createTimestamp: LATER }));
    expect(await subOf(uid)).to.equal('403 access_denied');
    expect((await account(`ad|corp|${uid}`, '--keep')).code).to.equal(0);
    expect((await refresh(rotated)).json().error).to.equal('invalid_grant');
    expect((await server.users.get(`ad|corp|${uid}`))?.access_ended_at).to.be.a('string');
  });

  it('is not the id where the option names the id of another kind of directory', async () => {
    const [first, second] = ['1a2b3c4d-11111111-22222222-33333333', '1a2b3c4d-11111111-22222222-44444444'];
    const guid = (last: number) => Buffer.from([...Array<number>(15).fill(7), last]);
    const sub = async (realm: string, uid: string) =>
      String(payload((await ask(realm, uid)).json().id_token).sub);
    isNow(person('ns', { nsUniqueId: first.toUpperCase() }));
    expect(await sub('nsUniqueId', 'ns')).to.equal(`ad|nsUniqueId|${first}`);
    isNow(person('ns', { nsUniqueId: second }));
    expect(await sub('nsUniqueId', 'ns')).to.equal(`ad|nsUniqueId|${second}`);
    isNow(person('ed', { GUID: guid(1) }));
    const one = await sub('GUID', 'ed');
    isNow(person('ed', { GUID: guid(2) }));
    expect(one).to.match(/^ad\|GUID\|07070707-/);
    expect(await sub('GUID', 'ed')).to.not.equal(one);
    // Without the option, an entry with the form of such an id as its name is refused.
    isNow({ ...person(first), attributes: { uid: first, cn: first } });
    expect(await subOf(first)).to.equal('403 access_denied');
  });

  it('is warned of at the start if the directory shows no id of its entries', async () => {
    // It had no entries when the server started.
    await until(() =>
      server.logged().includes('the directory of corp shows neither objectGUID nor entryUUID'),
    );
  });

  it('is not accepted as an id if it has the form of an entryUUID, which could be that of another entry', async () => {
    isNow(person('real', { entryUUID: '33333333-0000-4000-8000-000000000001' }));
    expect(await subOf('real')).to.match(/^ad/);
    const { entryUUID: _, ...attributes } = person('33333333-0000-4000-8000-000000000001').attributes;
    isNow({ dn: dnOf('fake'), password: PASSWORD, attributes });
    expect(await subOf('33333333-0000-4000-8000-000000000001')).to.equal('403 access_denied');
  });

  describe('and wrong passwords', () => {
    /** Each finds the one entry, by one of its values. */
    const names = Array.from({ length: 6 }, (_, index) => `eve${index}`);
    const eve = (uuid: string) => person('eve', { uid: ['eve', ...names], entryUUID: uuid });
    const statuses = async (realm: string, typed: readonly string[], password: string) => {
      const all: number[] = [];
      for (const name of typed) all.push((await ask(realm, name, password)).status);
      return all;
    };
    const sixty = names.flatMap((name) => Array<string>(10).fill(name));
    it('are counted for the entry, whichever of its values is typed: of sixty, the right one is refused after ten', async () => {
      isNow(eve('44444444-0000-4000-8000-000000000001'));
      const wrong = await statuses(
        'guesses',
        sixty.slice(0, 54).filter((_, index) => index % 10 < 9),
        'wrong',
      );
      expect(new Set(wrong)).to.deep.equal(new Set([403]));
      const right = await ask('guesses', 'eve5');
      expect([right.status, right.json()]).to.deep.equal([
        403,
        { error: 'invalid_grant', error_description: 'Wrong email or password.' },
      ]);
      // Not more is told than about names of no entry.
      expect((await ask('guesses', 'nobody')).json()).to.deep.equal(right.json());
    });

    it('are counted so when they arrive at once', async () => {
      isNow(eve('44444444-0000-4000-8000-000000000002'));
      for (let round = 0; round < 4; round++) {
        const all = await Promise.all(names.map((name) => ask('many', name, 'wrong')));
        expect(new Set(all.map(({ status }) => status))).to.deep.equal(new Set([403]));
      }
      expect((await ask('many', 'eve')).status).to.equal(403);
    });

    it('do not lock out a caller that has logged in before, by whichever value', async () => {
      isNow(eve('44444444-0000-4000-8000-000000000003'));
      expect((await ask('known', 'eve0')).status).to.equal(200);
      // This address is known now, and has ten attempts of its own, over all values.
      expect(
        new Set(
          await statuses(
            'known',
            names.slice(1).flatMap((name) => [name, name]),
            'wrong',
          ),
        ),
      ).to.deep.equal(new Set([403]));
      expect((await ask('known', 'eve0')).status).to.equal(403);
    });
  });
});
