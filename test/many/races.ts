// What may happen only once does so whichever of several processes is asked: fifty concurrent requests to one address.
import { expect } from 'chai';
import { tenant as base, OTP_GRANT } from '../connections/passwordless/tenant.ts';
import { type Answer, createAgent, readForm } from '../support/agent.ts';
import {
  logIn,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  spaTokens,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import type { TestMailServer } from '../support/smtp.ts';
import { UNLIMITED } from '../support/unlimited.ts';
import { aMoment, PATIENCE } from '../support/wait-until.ts';

const MAX_ATTEMPTS = 10;
const RACERS = 50;
const WEB = { client_id: 'web', client_secret: 'web-secret' };

/** A tenant limited by what the races count, not by the number of requests. */
export const tenant = {
  ...base,
  attackProtection: {
    ...base.attackProtection,
    bruteForceProtection: { max_attempts: MAX_ATTEMPTS },
    rateLimits: UNLIMITED.attackProtection.rateLimits,
  },
};

/** The address of the processes, and their mail server. */
interface Place {
  url: string;
  ca: string;
  mail: TestMailServer;
}

/** Sends fifty requests at once, each from its own browser. */
const race = (send: (racer: number) => Promise<Answer>) =>
  Promise.all(Array.from({ length: RACERS }, (_, racer) => send(racer)));
const statuses = (answers: readonly Answer[]) =>
  Object.fromEntries(
    [...Map.groupBy(answers, ({ status }) => status)].map(([status, all]) => [status, all.length]),
  );

/** Declares the tests, for processes that exist when the tests run. */
export function oneTimeThings(about: () => Place): void {
  let people = 0;
  const someone = () => `racer-${++people}@example.test`;
  const agent = () => createAgent(about());
  /** Returns the newest message to an address, once there are `count`. */
  const mailTo = async (address: string, count = 1) => {
    for (const end = performance.now() + PATIENCE; performance.now() < end; ) {
      const found = about().mail.messages.filter(({ to }) => to?.some((one) => one.address === address));
      if (found.length >= count) return found.at(-1)?.text ?? '';
      await aMoment();
    }
    throw new Error(`there are not ${count} mails to ${address}`);
  };
  const signUp = async (email: string, by = agent()) =>
    by.request('/dbconnections/signup', {
      json: { client_id: 'web', connection: 'users', email, password: USER.password },
    });
  const byPassword = (username: string, password: string) =>
    token(agent(), { ...WEB, grant_type: 'password', username, password });

  it('exchange an authorization code for tokens once', async () => {
    const { verifier, challenge } = pkce();
    const { code } = responseOf(await logIn(agent(), about(), spaRequest(challenge)));
    const answers = await race(() =>
      token(agent(), {
        grant_type: 'authorization_code',
        client_id: 'spa',
        code,
        code_verifier: verifier,
        redirect_uri: SPA_CALLBACK,
      }),
    );
    expect(statuses(answers)).to.deep.equal({ 200: 1, 400: RACERS - 1 });
  });

  it('accept a rotating refresh token at most once, and then revoke its family', async () => {
    const { refresh_token } = await spaTokens(agent(), about(), { scope: 'openid offline_access' });
    const refresh = (value: string) =>
      token(agent(), { grant_type: 'refresh_token', client_id: 'spa', refresh_token: value });
    const answers = await race(() => refresh(refresh_token));
    const winners = answers.filter(({ status }) => status === 200);
    expect(winners.length).to.be.at.most(1);
    for (const winner of winners)
      expect((await refresh(winner.json().refresh_token)).json().error).to.equal('invalid_grant');
  });

  it('log in with a code by e-mail once, and create one user', async () => {
    const email = someone();
    const started = await agent().request('/passwordless/start', {
      json: { ...WEB, connection: 'email', email, send: 'code' },
    });
    expect(started.status, started.text).to.equal(200);
    const otp = /\b\d{6}\b/.exec(await mailTo(email))?.[0];
    const answers = await race(() =>
      token(agent(), { ...WEB, grant_type: OTP_GRANT, realm: 'email', username: email, otp }),
    );
    // The other attempts were refused as wrong, or as too many at a time.
    expect(statuses(answers)[200]).to.equal(1);
    expect(answers.filter(({ status }) => ![200, 403, 429].includes(status))).to.deep.equal([]);
  });

  it('sign up an address once', async () => {
    const email = someone();
    const answers = await race(() => signUp(email));
    expect(statuses(answers)).to.deep.equal({ 200: 1, 400: RACERS - 1 });
  });

  it('set a password with the link of a reset once', async () => {
    const email = someone();
    expect((await signUp(email)).status).to.equal(200);
    await mailTo(email);
    await agent().request('/dbconnections/change_password', { json: { connection: 'users', email } });
    // By address, because messages of earlier tests may still arrive.
    const link = /https:\S+ticket=[\w-]+/.exec(await mailTo(email, 2))?.[0] ?? '';
    const browser = agent();
    const { action, fields } = readForm(await browser.get(link), 'password');
    const passwords = Array.from({ length: RACERS }, (_, i) => `Another-Horse-${i}`);
    const answers = await race((i) => {
      const password = passwords[i] ?? '';
      return browser.request(action, { form: { ...fields, password, repeat: password } });
    });
    expect(answers.filter(({ status }) => status === 200)).to.have.length(1);
    const winner = passwords[answers.findIndex(({ status }) => status === 200)] ?? '';
    expect((await byPassword(email, winner)).status).to.equal(200);
  });

  it('accept a pushed request from one browser', async () => {
    const { request_uri } = (
      await agent().request('/oauth/par', { form: { ...webRequest(), ...WEB } })
    ).json();
    const query = new URLSearchParams({ client_id: 'web', request_uri });
    const answers = await race(() => agent().get(`/authorize?${query}`));
    expect(answers.filter(({ status }) => status < 400)).to.have.length(1);
  });

  it('judge no more concurrent wrong passwords than an account allows, and then lock it', async () => {
    const email = someone();
    expect((await signUp(email)).status).to.equal(200);
    const answers = await race((i) => byPassword(email, `wrong-${i}`));
    expect(statuses(answers)).to.deep.equal({ 403: MAX_ATTEMPTS, 429: RACERS - MAX_ATTEMPTS });
    expect((await byPassword(email, USER.password)).status).to.equal(429);
  });
}
