// Asking for a second factor again at its page: another code, another request to the device, another address.
import { expect } from 'chai';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { follow, logIn, responseOf, USER, webRequest } from '../support/flows.ts';
import { messagesTo, nextMessageTo } from '../support/inbox.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { devicesOf } from './device.ts';
import { callsOf, codeOf, tenant } from './tenant.ts';

describe('a second factor that is asked for again at its page', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant });
    calls = callsOf(server);
  });
  after(() => server.stop());
  const someone = () => `mfa-${people++}@example.test`;
  const devices = devicesOf(() => ({ server, calls, someone }));

  /** Returns a user with a phone number, and the number of messages sent to it. */
  const withPhone = async () => {
    const email = someone();
    const phone = `+165055504${String(people).padStart(2, '0')}`;
    const mfa_token = await calls.mfaToken(email);
    const { oob_code } = (
      await calls.associate(mfa_token, {
        authenticator_types: ['oob'],
        oob_channels: ['sms'],
        phone_number: phone,
      })
    ).json();
    const { code: binding_code } = await nextMessageTo(server, phone);
    const done = await calls.verify('oob', { mfa_token, oob_code, binding_code });
    expect(done.status, done.text).to.equal(200);
    return { email, phone };
  };
  const open = (browser: Agent, email: string) =>
    logIn(browser, server, webRequest(), { email, password: USER.password });
  /** Presses the button that asks again. */
  const again = (browser: Agent, page: Answer): Promise<Answer> => {
    const action = /action="([^"]*\/resend)"/.exec(page.text)?.[1] ?? '';
    expect(action).to.match(/^\/u\/[\w-]+\/mfa\//);
    const { _csrf = '' } = readForm(page).fields;
    return browser.request(action, { form: { _csrf } });
  };
  const enter = async (browser: Agent, page: Answer, code: string) => {
    const { action, fields } = readForm(page, 'code');
    return browser.request(action, { form: { ...fields, code } });
  };

  it('sends another code, which replaces the first', async () => {
    const { email, phone } = await withPhone();
    const browser = createAgent(server);
    const page = await open(browser, email);
    const { code: first = '' } = await nextMessageTo(server, phone, 2);
    const resent = await again(browser, page);
    expect(resent.status).to.equal(200);
    const { code: second = '' } = await nextMessageTo(server, phone, 3);
    const wrong = first === second ? undefined : await enter(browser, resent, first);
    expect(wrong?.status ?? 400).to.equal(400);
    const done = await follow(browser, await enter(browser, wrong ?? resent, second), server.url);
    expect(responseOf(done).code).to.be.a('string');
  });

  it('sends nothing within half a minute, and the first code stays valid', async () => {
    const { email, phone } = await withPhone();
    const browser = createAgent(server);
    const resent = await again(browser, await open(browser, email));
    const { code = '' } = await nextMessageTo(server, phone, 3);
    const soon = await again(browser, resent);
    expect(soon.status).to.equal(429);
    expect(soon.text).to.contain('Wait half a minute before you ask for another one');
    expect(await messagesTo(server, phone)).to.have.length(3);
    const done = await follow(browser, await enter(browser, soon, code), server.url);
    expect(responseOf(done).code).to.be.a('string');
  });

  it('is limited for the user, in all browsers together', async () => {
    const { email, phone } = await withPhone();
    const [browser, other] = [createAgent(server), createAgent(server)];
    await again(browser, await open(browser, email));
    expect((await again(other, await open(other, email))).status).to.equal(429);
    server.tick(30_000);
    expect((await again(other, await other.get(await pathOf(other, email)))).status).to.equal(200);
    expect((await messagesTo(server, phone)).length).to.be.above(3);
  });
  const pathOf = async (browser: Agent, email: string) =>
    /action="(\/u\/[\w-]+\/mfa\/phone)"/.exec((await open(browser, email)).text)?.[1] ?? '';

  it("requires the page's CSRF token", async () => {
    const { email, phone } = await withPhone();
    const browser = createAgent(server);
    const page = await open(browser, email);
    await nextMessageTo(server, phone, 2);
    const action = /action="([^"]*\/resend)"/.exec(page.text)?.[1] ?? '';
    expect((await browser.request(action, { form: { _csrf: 'guessed' } })).status).to.equal(403);
    expect(await messagesTo(server, phone)).to.have.length(2);
  });

  it('sends another request to the device, beside the first', async () => {
    const { user, device } = await devices.enrolled();
    const browser = createAgent(server);
    const page = await open(browser, user);
    expect(await devices.waiting(device)).to.have.length(1);
    const resent = await again(browser, page);
    const number = /<strong dir="ltr">(\d\d)</.exec(resent.text)?.[1];
    const waiting = await devices.waiting(device);
    expect(waiting).to.have.length(2);
    const deviceRequest = waiting.find((one) => one.number === number);
    await devices.answerWith(device, deviceRequest?.id ?? '', 'allow');
    const { action, fields } = readForm(resent);
    const done = await follow(browser, await browser.request(action, { form: fields }), server.url);
    expect(responseOf(done).code).to.be.a('string');
  });

  it('asks for another address during an enrolment', async () => {
    const email = someone();
    const browser = createAgent(server);
    const choice = await open(browser, email);
    const path = /href="(\/u\/[\w-]+\/mfa\/phone)"/.exec(choice.text)?.[1] ?? '';
    const form = readForm(await browser.get(path), 'address');
    const sent = await browser.request(form.action, {
      form: { ...form.fields, address: '+16505550391', country: 'US' },
    });
    expect(sent.text).to.contain('XXXXXXX0391');
    const { code: stray = '' } = await nextMessageTo(server, '+16505550391');
    const back = await again(browser, sent);
    expect(back.status).to.equal(200);
    const next = readForm(back, 'address');
    const other = await browser.request(next.action, {
      form: { ...next.fields, address: '+16505550392', country: 'US' },
    });
    const { code = '' } = await nextMessageTo(server, '+16505550392');
    const wrong = stray === code ? other : await enter(browser, other, stray);
    const saved = readForm(await enter(browser, wrong, code), 'saved');
    const done = await browser.request(saved.action, { form: { ...saved.fields, saved: 'yes' } });
    expect(responseOf(await follow(browser, done, server.url)).code).to.be.a('string');
    const user = await server.users.findInConnection({ name: 'users' }, email);
    const stored = await server.store.collection('authenticators').findBy('user', user?.id ?? '');
    expect(stored.flatMap(({ phone_number: number }) => number ?? [])).to.deep.equal(['+16505550392']);
  });

  it('is rejected for a factor that the user does not have', async () => {
    const email = someone();
    const { secret } = await calls.enrollOtp(email);
    server.tick(31_000);
    const browser = createAgent(server);
    const page = await open(browser, email);
    const { action, fields } = readForm(page, 'code');
    const refused = await browser.request(`${action.replace(/otp$/, 'phone')}/resend`, { form: fields });
    expect(refused.status).to.equal(400);
    const done = await follow(browser, await enter(browser, page, codeOf(secret)), server.url);
    expect(responseOf(done).code).to.be.a('string');
  });
});
