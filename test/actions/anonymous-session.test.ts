// A visitor who logs in or signs up: actions get the metadata that their application had stored in the anonymous
// session, through a ticket of that request.
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { createAgent, readForm } from '../support/agent.ts';
import {
  authorize,
  tenant as base,
  follow,
  payload,
  pkce,
  responseOf,
  spaRequest,
  submitLogin,
  token,
  USER,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { bindActions } from './support.ts';

const CLAIM = 'https://example.test/visitor';
const TRANSFER = 'urn:auth0:anon_transfer';
const SECRETS: Record<string, object> = { web: { client_secret: 'web-secret' } };
const tenant = {
  ...base,
  clients: base.clients.map((one) => ({ ...one, anonymous_sessions: { active: one.client_id !== 'third' } })),
};

describe('the anonymous session of a user who logs in', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(tenant);
    await bindActions(server, 'post-login', {
      code: `exports.onExecutePostLogin = async (event, api) => {
        const { anonymous_session: visitor = 'none', request } = event;
        api.idToken.setCustomClaim('${CLAIM}', { visitor, asked: JSON.stringify(request) });
      };`,
    });
    await bindActions(server, 'pre-user-registration', {
      code: `exports.onExecutePreUserRegistration = async (event, api) => {
        api.user.setUserMetadata('cart', event.anonymous_session?.metadata.cart ?? 'none');
      };`,
    });
  });
  after(() => server.stop());

  const post = (client: string, json: object) =>
    createAgent(server).request('/anonymous/token', {
      json: { client_id: client, ...SECRETS[client], ...json },
    });
  const visitor = async (client = 'spa') => {
    const begun = (await post(client, { metadata: { cart: 'c-1' } })).json();
    const answer = await post(client, { session_token: begun.session_token, audience: TRANSFER });
    expect(answer.status, answer.text).to.equal(200);
    const { anon_transfer_token: ticket, ...rest } = answer.json();
    return { id: payload(begun.access_token).sub as string, session: begun.session_token, ticket, rest };
  };
  const page = async (more: Record<string, string>) => {
    const agent = createAgent(server);
    const { challenge, verifier } = pkce();
    const sent = await authorize(agent, { ...spaRequest(challenge), ...more });
    return { agent, verifier, page: await follow(agent, sent, server.url) };
  };
  type Opened = Awaited<ReturnType<typeof page>>;
  const claimOf = async ({ agent, verifier }: Opened, end: Awaited<ReturnType<typeof submitLogin>>) => {
    const grant = { grant_type: 'authorization_code', client_id: 'spa', code_verifier: verifier };
    const { code } = responseOf(end);
    const answer = await token(agent, { ...grant, code, redirect_uri: 'http://localhost:5173/callback' });
    return payload(answer.json().id_token)[CLAIM];
  };
  const logIn = async (more: Record<string, string>) => {
    const opened = await page(more);
    return claimOf(opened, await submitLogin(opened.agent, server, opened.page, USER));
  };

  it('is given to actions through a ticket that is valid for half a minute and in no event', async () => {
    const { id, session, ticket, rest } = await visitor();
    expect(rest).to.deep.equal({ token_type: 'N_A', expires_in: 30 });
    const opened = await page({ anon_transfer_token: ticket });
    // The login itself may take longer.
    server.tick(60_000);
    const said = await claimOf(opened, await submitLogin(opened.agent, server, opened.page, USER));
    expect(said.visitor).to.deep.equal({ user_id: id, metadata: { cart: 'c-1' } });
    expect(said.asked).not.to.contain(ticket).and.not.contain(session);
  });

  it('is given once, in time, and for its own application; without it the login continues', async () => {
    const first = await visitor();
    const tickets = await Promise.all([1, 2].map(() => logIn({ anon_transfer_token: first.ticket })));
    expect(tickets.filter(({ visitor: told }) => told !== 'none')).to.have.length(1);
    const late = await visitor();
    server.tick(31_000);
    const foreign = await visitor('web');
    const replaced = await visitor();
    await post('spa', { session_token: replaced.session, audience: TRANSFER });
    for (const bad of [late.ticket, foreign.ticket, replaced.ticket, replaced.session, 'x', ''])
      expect((await logIn({ anon_transfer_token: bad })).visitor).to.equal('none');
  });

  it('is given before a new user is created', async () => {
    const { ticket } = await visitor();
    for (const [email, more, cart] of [
      ['with-cart@example.test', { anon_transfer_token: ticket }, 'c-1'],
      ['without@example.test', {}, 'none'],
    ] as const) {
      const { agent, page: form } = await page({ screen_hint: 'signup', ...more });
      const { action, fields } = readForm(form, 'email');
      const end = await agent.request(action, { form: { ...fields, email, password: 'Good-Enough-1' } });
      expect(end.status).to.equal(302);
      expect((await server.users.withEmail(email))[0]?.user_metadata).to.deep.equal({ cart });
    }
  });

  it('has a ticket for its application only, and none without a session', async () => {
    const { session } = await visitor();
    const refusal = async (client: string, json: object) => {
      const answer = await post(client, { audience: TRANSFER, ...json });
      return `${answer.status} ${answer.json().error}`;
    };
    expect(await refusal('web', { session_token: session })).to.equal('400 invalid_session_token');
    expect(await refusal('spa', { session_token: 'x' })).to.equal('400 invalid_session_token');
    expect(await refusal('spa', {})).to.equal('400 invalid_target');
    expect(await refusal('spa', { session_token: session, metadata: {} })).to.equal('400 invalid_request');
    expect(await refusal('third', { session_token: session })).to.match(/^40[13] /);
    server.tick(31 * 86_400_000);
    expect(await refusal('spa', { session_token: session })).to.equal('400 session_expired');
  });
});
