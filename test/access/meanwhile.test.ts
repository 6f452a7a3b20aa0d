// What ends the login of an act between its judgement and its write: the act is not done.
import { expect } from 'chai';
import { send } from '../account/support.ts';
import { codeOf } from '../factors/tenant.ts';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import { follow } from '../support/flows.ts';
import { heldStore } from '../support/held-store.ts';
import { nextMessageTo } from '../support/inbox.ts';
import { softwareKey } from '../support/software-key.ts';
import { KINDS } from './kinds.ts';
import { byPage, type Held, startWorld } from './world.ts';

const NEW = 'Third-Horse-3';

/** A user who is logged in and may do what they want. */
interface Person {
  id: string;
  email: string;
  browser: Agent;
  me(method: string, path: string, json?: object): ReturnType<Agent['request']>;
}

/** An act that is about to be made. */
interface Act {
  /** The collection of the write that waits. */
  collection: string;
  run(): Promise<unknown>;
  /** Returns whether it was done. */
  isDone(): Promise<boolean>;
}

describe('an act of a user whose login ends right before the write', () => {
  const held = heldStore();
  let world: Awaited<ReturnType<typeof startWorld>>;
  before(async () => {
    world = await startWorld('suggest', { open: held.open });
  });
  after(() => world.stop());

  const person = async ({ email = '', tokens, browser }: Held): Promise<Person> => {
    const authorization = `Bearer ${tokens?.['me/']}`;
    return {
      id: (await world.server.users.withEmail(email))[0]?.id ?? '',
      email,
      browser: browser ?? createAgent(world.server),
      me: (method, path, json) =>
        createAgent(world.server).request(`/me/v1/authentication-methods${path}`, {
          method,
          ...(json && { json }),
          headers: { authorization },
        }),
    };
  };
  const someone = async () => person(await byPage(world, await world.someone()));
  const of = async (kind: string) => person((await KINDS[kind]?.make(world)) ?? {});
  const withFactor = () => of('an authenticator app at the token endpoint');
  const withPasskey = () => of('a passkey at the token endpoint');
  const factorsOf = ({ id }: Person) => world.server.store.collection('authenticators').findBy('user', id);
  const passkeysOf = ({ id }: Person) => world.server.store.collection('passkeys').findBy('user', id);
  const account = async ({ browser }: Person, path = '') =>
    follow(browser, await browser.get(`/account${path}`), world.server.url);
  const begun = async (one: Person, json: object) => {
    const answer = await one.me('POST', '', json);
    expect(answer.status, answer.text).to.equal(201);
    const { location } = answer.headers;
    const more: Record<string, any> = answer.json(); // any: as the API answers
    return { ...more, path: `/${String(location).split('/').pop()}` } as Record<string, any>;
  };
  const ACTS: Record<string, () => Promise<Act & { one: Person }>> = {
    'a new password': async () => {
      const one = await someone();
      const { path, auth_session } = await begun(one, { type: 'password' });
      return {
        one,
        collection: 'credentials',
        run: () => one.me('POST', `${path}/verify`, { auth_session, new_password: NEW }),
        isDone: async () => (await world.server.users.verifyPassword(one.id, NEW)) !== undefined,
      };
    },
    'a new second factor': async () => {
      const one = await someone();
      const { path, auth_session, manual_input_code: secret } = await begun(one, { type: 'totp' });
      return {
        one,
        collection: 'authenticators',
        run: () => one.me('POST', `${path}/verify`, { auth_session, otp_code: codeOf(secret) }),
        isDone: async () => (await factorsOf(one)).some(({ active }) => active),
      };
    },
    'the end of a second factor': async () => {
      const one = await withFactor();
      const [factor] = await factorsOf(one);
      return {
        one,
        collection: 'authenticators',
        run: () => one.me('DELETE', `/${encodeURIComponent(factor?.id ?? '')}`),
        isDone: async () => (await factorsOf(one)).length === 0,
      };
    },
    'a new passkey': async () => {
      const one = await withPasskey();
      const { path, auth_session, authn_params_public_key: asked } = await begun(one, { type: 'passkey' });
      const authn_response = softwareKey().create(asked, 'https://site.example.test');
      return {
        one,
        collection: 'passkeys',
        run: () => one.me('POST', `${path}/verify`, { auth_session, authn_response }),
        isDone: async () => (await passkeysOf(one)).length === 2,
      };
    },
    'the end of a passkey': async () => {
      const one = await withPasskey();
      const { authentication_methods: all } = (await one.me('GET', '')).json();
      const { id } = all.find(({ type }: { type: string }) => type === 'passkey');
      return {
        one,
        collection: 'passkeys',
        run: () => one.me('DELETE', `/${encodeURIComponent(id)}`),
        isDone: async () => (await passkeysOf(one)).length === 0,
      };
    },
    'a new recovery code': async () => {
      const one = await withFactor();
      const { path, auth_session } = await begun(one, { type: 'recovery-code' });
      return {
        one,
        collection: 'authenticators',
        run: () => one.me('POST', `${path}/verify`, { auth_session }),
        isDone: async () => (await factorsOf(one)).length > 1,
      };
    },
    'a new address': async () => {
      const one = await someone();
      const wanted = `new-${one.email}`;
      await send(one.browser, await account(one), '/account/profile/email', { email: wanted });
      const { link = '' } = await nextMessageTo(world.server, wanted, 1, 'link');
      const { pathname, search } = new URL(link);
      const page = await one.browser.get(pathname + search);
      return {
        one,
        collection: 'identities',
        run: () => send(one.browser, page, '/account/email'),
        isDone: async () => (await world.server.users.get(one.id))?.email === wanted,
      };
    },
    'a new phone number': async () => {
      const one = await someone();
      const phone = `+49151234${60_000 + world.next()}`;
      const asked = await send(one.browser, await account(one), '/account/profile/phone', { phone });
      const { code = '' } = await nextMessageTo(world.server, phone, 1, 'code');
      const { action, fields } = readForm(asked, 'code');
      return {
        one,
        collection: 'identities',
        run: () => one.browser.request(action, { form: { ...fields, code } }),
        isDone: async () => (await world.server.users.get(one.id))?.phone_number !== undefined,
      };
    },
    'the end of a link': async () => {
      const one = await someone();
      const other = await someone();
      expect(await world.server.users.link(one.id, other.id)).to.equal(true);
      const page = await account(one, '/applications');
      return {
        one,
        collection: 'identities',
        run: () => send(one.browser, page, '/account/applications/unlink'),
        isDone: async () => (await world.server.users.get(other.id)) !== undefined,
      };
    },
    deletion: async () => {
      const one = await someone();
      const page = await account(one, '/data');
      return {
        one,
        collection: 'identities',
        run: () => send(one.browser, page, '/account/data/delete', { confirm: one.email }),
        isDone: async () => (await world.server.users.get(one.id)) === undefined,
      };
    },
  };
  const ENDS: Record<string, (id: string) => Promise<unknown>> = {
    'a block': (id) => world.admin('PATCH', `/users/${encodeURIComponent(id)}`, { blocked: true }),
    'a new password': (id) => world.server.users.setPassword(id, 'Owners-Horse-4'),
    'the end of all sessions': (id) =>
      world.admin('POST', `/users/${encodeURIComponent(id)}/revoke-access`, {}),
  };
  for (const [act, prepare] of Object.entries(ACTS)) {
    it(`is done if nothing ends it: ${act}`, async () => {
      const { run, isDone } = await prepare();
      await run();
      expect(await isDone()).to.equal(true);
    });
    for (const [end, meanwhile] of Object.entries(ENDS))
      it(`is not done: ${act}, after ${end}`, async () => {
        const { one, collection, run, isDone } = await prepare();
        let hasEnded = false;
        held.beforeBatch(
          (write) => write.collection === collection,
          async () => {
            hasEnded = true;
            await meanwhile(one.id);
          },
        );
        await run();
        expect(await isDone()).to.equal(false);
        expect(hasEnded).to.equal(true);
      });
  }
});
